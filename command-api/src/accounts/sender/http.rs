//! A service that sends short messages, in the shape of Twilio's Messages API.

use std::time::Duration;

use domain::account::Phone;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use service::settings::Secret;
use url::form_urlencoded::Serializer;

use super::SendError;
use crate::accounts::settings::SmsSettings;

/// Waiting longer than this between attempts would keep the person who asked waiting too.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(200);

pub(in crate::accounts) struct Messages {
    client: Client,
    url: Url,
    account: String,
    token: Secret<String>,
    from: String,
    text: String,
    attempts: u32,
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Messages(…)")
    }
}

/// The outcome of an attempt.
enum Attempt {
    Sent,
    /// A retry may help, after this time if the service names one.
    Failed(SendError, Option<Duration>),
    /// A retry will not help.
    Refused(SendError),
}

impl Messages {
    pub(super) fn new(base: &str, settings: &SmsSettings) -> Result<Self, SendError> {
        let wrong = |reason: &str| SendError(format!("WAYPOST_SMS_URL {reason}"));
        let mut url = Url::parse(base).map_err(|_| wrong("is not a URL"))?;
        let account = settings.account.as_str();
        url.path_segments_mut()
            .map_err(|()| wrong("is not an http or https address"))?
            .pop_if_empty()
            .extend(["2010-04-01", "Accounts", account, "Messages.json"]);
        Ok(Self {
            client: client(settings.timeout)?,
            url,
            account: account.to_owned(),
            token: settings.token.clone(),
            from: settings.from.clone(),
            text: settings.text.clone(),
            attempts: settings.attempts,
        })
    }

    pub(super) async fn send(&self, phone: &Phone, code: &str) -> Result<(), SendError> {
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.attempt(phone, code).await {
                Attempt::Sent => break,
                Attempt::Refused(error) => return Err(error),
                Attempt::Failed(error, _) if attempt >= self.attempts => return Err(error),
                Attempt::Failed(error, asked) => {
                    tracing::warn!(%error, attempt, "Retrying to send a code");
                    tokio::time::sleep(asked.unwrap_or(pause).min(LONGEST_PAUSE)).await;
                    pause *= 2;
                }
            }
        }
        Ok(())
    }

    async fn attempt(&self, phone: &Phone, code: &str) -> Attempt {
        match self.request(phone, code).send().await {
            Ok(response) => judge(&response),
            // The URL may contain what must not be shown; the rest of the reason does not.
            Err(error) => Attempt::Failed(SendError(error.without_url().to_string()), None),
        }
    }

    fn request(&self, phone: &Phone, code: &str) -> RequestBuilder {
        let body = Serializer::new(String::new())
            .append_pair("To", phone.as_str())
            .append_pair("From", &self.from)
            .append_pair("Body", &self.text.replace("{code}", code))
            .finish();
        self.client
            .post(self.url.clone())
            .basic_auth(&self.account, Some(self.token.expose()))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body)
    }
}

fn client(timeout: Duration) -> Result<Client, SendError> {
    // Another part of the process may have installed the provider already: it is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        Client::builder()
            .user_agent(concat!("Waypost/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .timeout(timeout)
    };
    // A machine without certificates to trust can still reach a service without TLS.
    let client = builder()
        .build()
        .or_else(|_| builder().tls_certs_only([]).build());
    client.map_err(|error| SendError(error.to_string()))
}

fn judge(response: &Response) -> Attempt {
    let status = response.status();
    if status.is_success() {
        return Attempt::Sent;
    }
    let error = SendError(format!("the service answered {}", status.as_u16()));
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        let asked = response.headers().get(RETRY_AFTER);
        let asked = asked.and_then(|value| value.to_str().ok()?.parse().ok());
        return Attempt::Failed(error, asked.map(Duration::from_secs));
    }
    Attempt::Refused(error)
}
