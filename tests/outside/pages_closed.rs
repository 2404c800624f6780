//! Every page of the dashboard shows only its own organization.

use harness::{Answer, Owner, eventually};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::{Value, json};

use super::only_begins;
use crate::system;

const KINDS: [&str; 6] = [
    "contacts",
    "companies",
    "deals",
    "orders",
    "leads",
    "clients",
];
/// A word that is in all data of the one organization.
const WORD: &str = "overheard";

/// Paths of the pages without an id.
fn lists() -> Vec<String> {
    let mut pages: Vec<_> = [
        "",
        "/workflows",
        "/runs",
        "/map",
        "/events",
        "/webhooks",
        "/settings/api-manager",
        "/people",
        "/system",
        "/charts/revenue.csv",
        "/charts/runs.csv",
    ]
    .map(|page| format!("/dashboard{page}"))
    .into();
    for kind in KINDS {
        pages.extend(["", "new/", "import/"].map(|at| format!("/dashboard/{at}{kind}")));
    }
    pages
}

/// An organization's data that others must not see, by the addresses of its pages.
struct Owned {
    owner: Owner,
    pages: Vec<String>,
    position: String,
}

impl Owned {
    async fn open() -> Self {
        let owner = Owner::sign_in(system().await).await;
        let send = async |method, path: &str, body: Value| {
            let path = format!("/dashboard/api/v1/{path}");
            let sent = owner.send(method, &path, Some(&body)).await;
            assert!(sent.status.is_success(), "{path}: {}", sent.text());
            sent
        };
        let key = json!({"name": WORD, "scopes": ["read:leads"]});
        owner.key(&key).await;
        let lead = json!({"name": WORD, "source": WORD, "status": WORD});
        send(Method::PUT, &format!("records/leads/{WORD}"), lead).await;
        let mut definition = only_begins();
        definition["name"] = WORD.into();
        send(Method::PUT, &format!("workflows/{WORD}"), definition).await;
        let hook = json!({"url": "http://127.0.0.1:1/", "description": WORD});
        let hook = send(Method::POST, "webhooks", hook).await;
        let run = format!("workflows/{WORD}/trigger");
        let run = send(Method::POST, &run, json!({"said": WORD})).await;
        let id = |answer: &Answer, name: &str| answer.json()[name].as_str().unwrap().to_owned();
        let pages = vec![
            format!("/dashboard/leads/{WORD}"),
            format!("/dashboard/workflows/{WORD}"),
            format!("/dashboard/webhooks/{}", id(&hook, "id")),
            format!("/dashboard/runs/{}", id(&run, "runId")),
            format!("/dashboard/events/{}", run.position()),
        ];
        let position = run.position();
        Self {
            owner,
            pages,
            position,
        }
    }

    fn after(&self, page: &str) -> String {
        format!("{page}?position={}", self.position)
    }
}

#[tokio::test]
async fn nobody_sees_a_page_of_another_organization_or_a_word_of_it() {
    let owned = Owned::open().await;
    let other = Owner::sign_in(system().await).await;
    // Naming the organization grants no access to it.
    let chosen = format!("{}; waypost_organization={}", other.cookie, owned.owner.org);
    let chosen = Owner {
        cookie: chosen,
        ..other.clone()
    };
    for page in &owned.pages {
        let page = owned.after(page);
        assert_eq!(owned.owner.page(&page).await.status, 200, "{page}");
        for stranger in [&other, &chosen] {
            let shown = stranger.page(&page).await;
            assert_eq!(shown.status, 404, "{page}: {}", shown.text());
        }
    }
    for list in lists() {
        for stranger in [&other, &chosen] {
            let shown = stranger.page(&owned.after(&list)).await;
            assert_eq!(shown.status, 200, "{list}");
            assert!(!shown.text().contains(WORD), "{list}");
        }
    }
    for search in [
        format!("/dashboard/leads?q={WORD}"),
        format!("/dashboard/runs?q={WORD}"),
        format!("/dashboard/runs?workflow={WORD}"),
        format!("/dashboard/runs/matching?action=cancel&workflow={WORD}"),
        format!("/dashboard/events?subject={WORD}"),
    ] {
        let shown = other.page(&search).await;
        assert_eq!(shown.status, 200, "{search}");
        for link in &owned.pages {
            let id = link.rsplit('/').next().unwrap();
            let found = format!("/{id}\"");
            assert!(!shown.text().contains(&found), "{search}: {}", shown.text());
        }
    }
}

#[tokio::test]
async fn every_page_redirects_a_person_who_is_not_signed_in_to_sign_in() {
    let client = system().await.client();
    let mut pages = lists();
    pages.extend(
        [
            "/leads/x",
            "/workflows/x",
            "/webhooks/x",
            "/runs/x",
            "/runs/matching",
            "/events/x",
        ]
        .map(|page| format!("/dashboard{page}")),
    );
    for page in pages {
        for cookie in ["", "waypost_session=nonsense"] {
            let request = client.request(Method::GET, &page).header(COOKIE, cookie);
            let answer = Answer::to(request).await;
            assert_eq!(answer.status, 303, "{page}");
            let to = answer.header("location").unwrap();
            assert!(
                to.starts_with("/dashboard/sign-in?next=%2Fdashboard"),
                "{to}"
            );
        }
    }
}

#[tokio::test]
async fn what_another_site_sends_with_a_session_changes_nothing() {
    let owned = Owned::open().await;
    let id = |page: usize| owned.pages[page].rsplit('/').next().unwrap();
    let (hook, run) = (id(2), id(3));
    let lead = format!("/dashboard/api/v1/records/leads/{WORD}");
    for (method, path) in [
        (Method::PUT, lead.clone()),
        (Method::DELETE, lead.clone()),
        (Method::POST, "/dashboard/api/v1/records/leads".to_owned()),
        (Method::PUT, format!("/dashboard/api/v1/workflows/{WORD}")),
        (
            Method::POST,
            format!("/dashboard/api/v1/workflows/{WORD}/trigger"),
        ),
        (Method::POST, format!("/dashboard/api/v1/runs/{run}/cancel")),
        (Method::POST, format!("/dashboard/api/v1/runs/{run}/retry")),
        (Method::POST, "/dashboard/api/v1/webhooks".to_owned()),
        (Method::PATCH, format!("/dashboard/api/v1/webhooks/{hook}")),
        (Method::DELETE, format!("/dashboard/api/v1/webhooks/{hook}")),
        (
            Method::POST,
            format!("/dashboard/api/v1/webhooks/{hook}/test"),
        ),
        (
            Method::POST,
            format!("/dashboard/api/v1/webhooks/{hook}/replay"),
        ),
        (
            Method::POST,
            format!("/dashboard/api/v1/webhooks/{hook}/rotate-secret"),
        ),
        (Method::POST, "/dashboard/people".to_owned()),
        (Method::DELETE, "/dashboard/people/1".to_owned()),
        (Method::POST, "/dashboard/keys".to_owned()),
        (Method::POST, format!("/dashboard/workflows/{WORD}/run")),
    ] {
        for origin in [None, Some("https://evil.example"), Some("null")] {
            let request = owned.owner.client.request(method.clone(), &path);
            let request = request
                .header(COOKIE, &owned.owner.cookie)
                .header(CONTENT_TYPE, "application/json")
                .body("{}");
            let forged = match origin {
                Some(origin) => request.header(ORIGIN, origin),
                None => request,
            };
            let refused = Answer::to(forged).await;
            assert_eq!(refused.status, 403, "{method} {path}: {}", refused.text());
        }
    }
    let kept = eventually("the lead", async || {
        let kept = owned.owner.page(&lead).await;
        (kept.status == 200).then(|| kept.json())
    });
    assert_eq!(kept.await["name"], WORD);
}
