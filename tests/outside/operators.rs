//! For operators only: the metrics, which a proxy in front of the services does not expose, and for
//! whom such a proxy is trusted to speak.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use harness::{Answer, Client, Owner, System, eventually};
use reqwest::Method;
use serde_json::json;

use crate::{SHAPE, system};

/// The shipped configuration of the proxy.
fn shipped() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join("deploy/proxy/Caddyfile")).expect("the Caddyfile")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Caddy with the shipped configuration, in front of a system of ours; stopped when dropped.
struct Caddy {
    process: Child,
    folder: PathBuf,
    client: Client,
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Caddy {
    /// `None` if this machine has no Caddy.
    fn before(system: &System) -> Option<Self> {
        Command::new("caddy").arg("version").output().ok()?;
        let (port, checks) = (free_port(), free_port());
        let folder = std::env::temp_dir().join(format!("waypost-caddy-{port}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let config = shipped()
            .replace("{args.0}:8080", &system.addr().to_string())
            .replace("8079", &checks.to_string());
        let file = folder.join("Caddyfile");
        std::fs::write(&file, config).expect("written");
        let log = std::fs::File::create(folder.join("log")).expect("a log");
        let process = Command::new("caddy")
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&file)
            .env("WAYPOST_SITE", format!("http://127.0.0.1:{port}"))
            .env("HOME", &folder)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("caddy");
        let client = Client::new(&format!("http://127.0.0.1:{port}"));
        Some(Self {
            process,
            folder,
            client,
        })
    }
}

#[tokio::test]
async fn the_shipped_proxy_shows_the_metrics_to_nobody() {
    let text = shipped();
    let shut = text.find("@inside path /metrics").expect("what shuts it");
    assert!(
        shut < text.find("@reads").expect("reads"),
        "before all reads"
    );
    let system = system().await;
    let Some(caddy) = Caddy::before(system) else {
        return eprintln!("caddy is not installed: only the file was looked at");
    };
    let client = &caddy.client;
    eventually("the proxy to pass requests on", async || {
        let answer = client.request(Method::GET, "/healthz").send().await.ok()?;
        (answer.status() == 200).then_some(())
    })
    .await;
    client.get("/metrics").await.error(404);
    for spelling in [
        "/metrics/",
        "//metrics",
        "/%6detrics",
        "/METRICS",
        "/x/../metrics",
    ] {
        let answer = client.get(spelling).await;
        assert_ne!(answer.status, 200, "{spelling}");
        assert!(!answer.text().contains("waypost_"), "{spelling}");
    }
    // Without the proxy they are where they were.
    let (_, inside) = system.clients().remove(0);
    assert!(inside.get("/metrics").await.text().contains("waypost_"));
}

#[tokio::test]
async fn metrics_take_a_token_where_one_is_set() {
    let system = System::start(SHAPE, &[("WAYPOST_METRICS_TOKEN", "let-me-see")]).await;
    for (name, client) in system.clients() {
        for sent in [
            None,
            Some("Bearer let-me"),
            Some("Bearer let-me-see-more"),
            Some("let-me-see"),
        ] {
            let mut request = client.request(Method::GET, "/metrics");
            if let Some(sent) = sent {
                request = request.header("Authorization", sent);
            }
            let error = Answer::to(request).await.error(401);
            assert!(error.contains("WAYPOST_METRICS_TOKEN"), "{name}: {error}");
        }
        let request = client.request(Method::GET, "/metrics");
        let request = request.header("Authorization", "Bearer let-me-see");
        let answer = Answer::to(request).await;
        assert_eq!(answer.status, 200, "{name}");
        assert!(answer.text().contains("waypost_"), "{name}");
        client.get("/healthz").await.ok(200);
    }
}

#[tokio::test]
async fn what_came_to_the_proxy_by_tls_keeps_its_session_to_tls() {
    let owner = Owner::sign_in(system().await).await;
    let credentials = json!({"email": owner.email, "password": owner.password});
    for (scheme, secure) in [("https", true), ("http", false)] {
        let host = owner.client.base().trim_start_matches("http://");
        let request = owner.client.request(Method::POST, "/dashboard/sign-in");
        let request = request
            .header("X-Forwarded-Proto", scheme)
            .header("Origin", format!("{scheme}://{host}"))
            .header("Content-Type", "application/json");
        let answer = Answer::to(request.body(credentials.to_string())).await;
        assert_eq!(answer.status, 204, "{scheme}: {}", answer.text());
        let cookie = answer.header("set-cookie").expect("a session");
        assert_eq!(cookie.ends_with("; Secure"), secure, "{cookie}");
    }
}

/// Otherwise anyone could start over under a made-up address.
#[tokio::test]
async fn only_a_trusted_proxy_is_believed_about_addresses() {
    for (proxies, believed) in [("", false), ("127.0.0.1", true)] {
        let settings = [
            ("WAYPOST_TRUSTED_PROXIES", proxies),
            ("WAYPOST_SIGN_IN_PER_ADDRESS", "3"),
        ];
        let system = System::start(SHAPE, &settings).await;
        let mut statuses = Vec::new();
        for nth in 0..6 {
            let body =
                json!({"email": format!("n{nth}@example.org"), "password": "wrong password"});
            let client = system.client();
            let request = client.request(Method::POST, "/auth/login");
            let request = request
                .header("X-Forwarded-For", format!("198.51.100.{nth}"))
                .header("Content-Type", "application/json");
            let answer = Answer::to(request.body(body.to_string())).await;
            statuses.push(answer.status.as_u16());
        }
        let refused = statuses.iter().filter(|status| **status == 429).count();
        assert_eq!(refused > 0, !believed, "{proxies}: {statuses:?}");
    }
}
