//! Commands from an organization's pages, in the session of an owner.

use access::{LimitSettings, SESSION_COOKIE};
use axum::body::Body;
use axum::http::Request;
use command_api::{Origin, PeopleSettings, organizations};
use domain::account::Email;
use schemas::{AccountId, AggregateType, Event, OrgId, StreamId, TokenId};
use serde_json::json;
use uuid::Uuid;

use crate::support::{Answer, TestApi};

const HOST: &str = "waypost.example";
const PEOPLE: &str = "/dashboard/people";

/// An owner with a session.
struct Owner<'h> {
    api: &'h TestApi,
    cookie: String,
}

async fn owner_of(api: &TestApi, org: &OrgId) -> AccountId {
    let stream = StreamId::new(org, AggregateType::Organization, org.as_str());
    let events = api.commands.log().load(&stream).await.unwrap();
    let owner = events.iter().find_map(|recorded| match &recorded.event {
        Event::OrganizationMemberAdded(added) => Some(added.account_id),
        _ => None,
    });
    owner.unwrap()
}

fn new_email() -> String {
    format!("{}@example.org", Uuid::new_v4())
}

impl<'h> Owner<'h> {
    /// Founds an organization and signs in as its owner.
    async fn sign_in(api: &'h TestApi) -> Self {
        let (origin, people) = (Origin::operator(), PeopleSettings::default());
        let email = Email::parse(&new_email()).unwrap();
        let founded = organizations::create(&api.commands, &origin, "Org", Some(&email), &people);
        let org = founded.await.unwrap().answer.org_id;
        let account = owner_of(api, &org).await;
        while api.access.organizations_of(account).is_empty() {
            tokio::task::yield_now().await;
        }
        let id = TokenId::from(Uuid::new_v4());
        let token = api.access.make_token(account, &id, 0).access_token;
        Self {
            api,
            cookie: format!("{SESSION_COOKIE}={token}"),
        }
    }

    async fn send(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("host", HOST)
            .header("origin", format!("http://{HOST}"))
            .header("cookie", &self.cookie)
            .header("content-type", "application/json");
        self.api.ask(request.body(body.into()).unwrap()).await
    }

    async fn invites(&self) -> Answer {
        let body = json!({"email": new_email()});
        self.send("POST", PEOPLE, body.to_string()).await
    }
}

#[tokio::test]
async fn commands_of_the_pages_count_against_the_sessions_limit() {
    let api = TestApi::with_limits(LimitSettings {
        staff_requests: 3,
        ..LimitSettings::default()
    })
    .await;
    let owner = Owner::sign_in(&api).await;
    let invited = owner.invites().await;
    assert_eq!(invited.status, 201, "{}", invited.body);
    let policy = invited.header("ratelimit-policy");
    assert_eq!(policy, Some("\"hourly\";q=3;w=3600"));
    // What fails counts too, and so does what the pages send to the key APIs.
    let no_key = owner.send("DELETE", "/dashboard/keys/none", "").await;
    assert_eq!(no_key.status, 404, "{}", no_key.body);
    let workflow = json!({"name": "W", "status": "DRAFT", "steps": []}).to_string();
    let path = "/dashboard/api/v1/workflows/w";
    let saved = owner.send("PUT", path, workflow.clone()).await;
    assert_ne!(saved.status, 429, "{}", saved.body);
    let left = saved.header("ratelimit").unwrap();
    assert!(left.starts_with("\"hourly\";r=0;"), "{left}");

    let key = json!({"name": "k", "scopes": ["admin"]}).to_string();
    for (method, path, body) in [
        ("POST", PEOPLE, json!({"email": new_email()}).to_string()),
        ("DELETE", "/dashboard/people/1", String::new()),
        ("DELETE", "/dashboard/people/invites/none", String::new()),
        ("POST", "/dashboard/keys", key),
        ("DELETE", "/dashboard/keys/none", String::new()),
        ("POST", "/dashboard/workflows/w/run", "{}".to_owned()),
        ("PUT", "/dashboard/api/v1/workflows/w", workflow),
    ] {
        let refused = owner.send(method, path, body).await;
        assert_eq!(refused.status, 429, "{method} {path}: {}", refused.body);
        for name in ["retry-after", "ratelimit", "ratelimit-policy"] {
            assert!(refused.header(name).is_some(), "{method} {path}: {name}");
        }
    }
}

#[tokio::test]
async fn no_limit_keeps_an_owner_from_answering_a_call_for_help_or_signing_out() {
    let api = TestApi::with_limits(LimitSettings {
        staff_requests: 1,
        ..LimitSettings::default()
    })
    .await;
    let owner = Owner::sign_in(&api).await;
    assert_eq!(owner.invites().await.status, 201);
    assert_eq!(owner.invites().await.status, 429);
    for reply in ["acknowledge", "resolve"] {
        let path = format!("/dashboard/sos/none/{reply}");
        let unknown = owner.send("POST", &path, "").await;
        assert_eq!(unknown.status, 404, "{}", unknown.body);
        assert_eq!(unknown.header("ratelimit"), None);
    }
    let signed_out = owner.send("POST", "/dashboard/sign-out", "").await;
    assert_eq!(signed_out.status, 204, "{}", signed_out.body);
}
