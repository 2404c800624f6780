//! The operator of an installation, and what operators have to do.

use reqwest::Method;
use reqwest::header::COOKIE;
use serde_json::json;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use crate::{Answer, Organization, Owner, Shape, System, eventually};

impl System {
    /// Starts a system whose operator is signed in.
    pub async fn operated(shape: Shape) -> (Self, Owner) {
        let mut system = Self::start(shape, &[]).await;
        let operator = Owner::sign_in(&system).await;
        for program in system.programs() {
            program.set("WAYPOST_OPERATOR_ORG", &operator.org);
            program.restart();
        }
        operator
            .is_shown("/dashboard/system", "You operate this installation")
            .await;
        (system, operator)
    }
}

impl Owner {
    /// Waits until a page says something, even during outages; returns the page's text.
    pub async fn is_shown(&self, path: &str, words: &str) -> String {
        eventually(words, async || {
            let request = self.client.request(Method::GET, path);
            let request = request.header(COOKIE, &self.cookie);
            let page = Answer::or_error(request).await.ok()?;
            let text = page.text();
            (page.status == 200 && text.contains(words)).then_some(text)
        })
        .await
    }
}

impl Organization<'_> {
    /// Adds contacts that cannot be projected until [`heal`]; returns their dead letter sequences.
    pub async fn has_dead_letters(&self, database: &mut PgConnection, ids: &[&str]) -> Vec<i64> {
        for id in ids {
            let fails =
                format!("ALTER TABLE contacts ADD CONSTRAINT fails_{id} CHECK (id <> '{id}')");
            let failing = database.execute(AssertSqlSafe(fails)).await;
            failing.expect("a constraint");
            let contact = json!({"id": id, "email": "a@b.c"});
            self.admin
                .post("/api/v1/records/contacts", &contact)
                .await
                .ok(201);
        }
        eventually("all of them to be put aside", async || {
            let found = sqlx::query_scalar(
                "SELECT sequence FROM dead_letters WHERE org_id = $1 ORDER BY sequence",
            );
            let found = found.bind(&self.id).fetch_all(&mut *database).await;
            let found: Vec<i64> = found.expect("dead letters");
            (found.len() == ids.len()).then_some(found)
        })
        .await
    }
}

/// Removes the reason why a contact became a dead letter.
pub async fn heal(database: &mut PgConnection, id: &str) {
    let heal = format!("ALTER TABLE contacts DROP CONSTRAINT fails_{id}");
    let healed = database.execute(AssertSqlSafe(heal)).await;
    healed.expect("no constraint");
}
