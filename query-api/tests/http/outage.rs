//! Without Postgres.

use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::support::{TestApi, settings};

#[tokio::test]
async fn without_the_read_models_reads_are_503_and_exports_500() {
    // Nothing listens there.
    let nowhere = PgConnectOptions::new().host("127.0.0.1").port(1);
    let models = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(1))
        .connect_lazy_with(nowhere);
    let api = TestApi::open_with(settings(), Some(models)).await;
    for (path, status) in [
        ("/api/v1/records/contacts/c1", 503),
        ("/api/v1/workflows", 503),
        ("/api/v1/workflows/w/runs", 503),
        ("/api/export/contacts", 500),
        ("/api/export/contacts?format=pdf", 500),
    ] {
        let began = Instant::now();
        let answer = api.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(
            answer.error().contains("database"),
            "{path}: {}",
            answer.error()
        );
        assert!(began.elapsed() < Duration::from_secs(2), "{path}");
    }
    api.close().await;
}
