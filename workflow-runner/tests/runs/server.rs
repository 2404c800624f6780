//! Access to the server that bypasses the log.

use event_log::LogSettings;

/// Removes the streams of a log.
pub(crate) async fn remove_streams(settings: &LogSettings) -> Option<()> {
    let context = async_nats::jetstream::new(connect_past_the_log(settings.nats_url()).await?);
    let mut names = context.stream_names();
    while let Some(Ok(name)) = futures::StreamExt::next(&mut names).await {
        if name.contains(&settings.log_prefix) {
            context.delete_stream(name).await.ok()?;
        }
    }
    Some(())
}

/// A connection for operations that no client of the log would do.
pub(crate) async fn connect_past_the_log(url: &str) -> Option<async_nats::Client> {
    let url = url::Url::parse(url).ok()?;
    let user = url.username().to_owned();
    let password = url.password().unwrap_or_default().to_owned();
    let options = async_nats::ConnectOptions::new().user_and_password(user, password);
    let address = format!("{}:{}", url.host_str()?, url.port().unwrap_or(4222));
    options.connect(address).await.ok()
}
