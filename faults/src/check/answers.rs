//! Answers over HTTP against the fold.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{Evidence, Findings, holds};
use crate::definitions;
use hostile::Dice;

const LISTS: &str = "lists whose total equals the fold";
const ANALYTICS: &str = "analytics that equal the fold";
const PLACES: &str = "persons' positions that equal the fold";

pub(super) async fn check(evidence: &Evidence<'_>, findings: &mut Findings) {
    let mut dice = Dice::new(0);
    for org in &evidence.world.orgs {
        for (path, total) in totals(evidence, &org.id) {
            let answer = read(evidence, &mut dice, &org.key, &path).await;
            let right = answer["total"] == total;
            findings.judge(
                LISTS,
                right,
                format!("{path} of {}", org.id),
                total,
                &answer["total"],
            );
        }
        let expected = analytics(evidence, &org.id);
        let found = read(evidence, &mut dice, &org.key, "/api/v1/analytics").await;
        let right = holds(&found, &expected);
        findings.judge(
            ANALYTICS,
            right,
            format!("analytics of {}", org.id),
            &expected,
            &found,
        );
    }
    positions(evidence, &mut dice, findings).await;
}

async fn read(evidence: &Evidence<'_>, dice: &mut Dice, token: &str, path: &str) -> Value {
    let answer = evidence.client.read(dice, token, path, None).await;
    match answer {
        Some(answer) if answer.is_success() => answer.json(),
        Some(answer) => json!({"status": answer.status, "error": answer.json()}),
        None => json!({"error": "no answer"}),
    }
}

/// Lists and how long they should be.
fn totals(evidence: &Evidence<'_>, org: &str) -> Vec<(String, usize)> {
    let count = |table: &str, wanted: &dyn Fn(&Value) -> bool| {
        let rows = evidence.fold.table(table).values();
        rows.filter(|row| row["org_id"] == org && wanted(row))
            .count()
    };
    let all = |table: &str| count(table, &|_| true);
    let mut lists = vec![
        ("/api/v1/orders?limit=1".to_owned(), all("orders")),
        ("/api/v1/leads?limit=1".to_owned(), all("leads")),
        ("/api/v1/clients?limit=1".to_owned(), all("clients")),
        ("/api/v1/keys?limit=1".to_owned(), all("api_keys")),
        ("/api/v1/webhooks?limit=1".to_owned(), all("webhooks")),
        ("/api/v1/workflows?limit=1".to_owned(), all("workflows")),
    ];
    for status in ["ACTIVE", "COMPLETED"] {
        let path = format!("/api/v1/orders?limit=1&status={status}");
        lists.push((path, count("orders", &|row| row["status"] == status)));
    }
    for workflow in definitions::all() {
        let of_it = |row: &Value| row["workflow_id"] == workflow;
        let path = format!("/api/v1/workflows/{workflow}/runs?limit=1");
        lists.push((path.clone(), count("runs", &of_it)));
        let succeeded = |row: &Value| of_it(row) && row["state"] == "SUCCEEDED";
        lists.push((format!("{path}&state=SUCCEEDED"), count("runs", &succeeded)));
    }
    lists
}

fn analytics(evidence: &Evidence<'_>, org: &str) -> Value {
    let of_org = |table: &str| {
        let rows = evidence.fold.table(table).values();
        rows.filter(|row| row["org_id"] == org)
            .cloned()
            .collect::<Vec<_>>()
    };
    let (orders, leads) = (of_org("orders"), of_org("leads").len());
    let earning = |row: &&Value| matches!(row["status"].as_str(), Some("ACTIVE" | "COMPLETED"));
    let revenue: i64 = orders
        .iter()
        .filter(earning)
        .filter_map(|row| row["amount"].as_i64())
        .sum();
    json!({"totalRevenue": revenue, "totalOrders": orders.len(), "totalLeads": leads})
}

/// Each person's own history, and what a family sees of each other.
async fn positions(evidence: &Evidence<'_>, dice: &mut Dice, findings: &mut Findings) {
    let time = |value: &Value| -> Option<DateTime<Utc>> { value.as_str()?.parse().ok() };
    let of = |account: u64| {
        let rows = evidence.fold.table("positions").values();
        let mut rows: Vec<_> = rows.filter(|row| row["account_id"] == account).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(time(&row["recorded_at"])));
        rows
    };
    for person in &evidence.world.persons {
        let path = format!("/location/history?user_id={}&limit=1000", person.id);
        let found = read(evidence, dice, &person.token(), &path).await;
        // The limited person may have used up this window, and tokens end with passwords.
        let Some(found) = found["data"].as_array() else {
            findings.judge(PLACES, !person.steady, path, "an answer", found);
            continue;
        };
        let expected = of(person.id);
        let expected: Vec<_> = expected.iter().take(1_000).collect();
        let what = format!("history of {}", person.id);
        findings.judge(
            PLACES,
            found.len() == expected.len(),
            what,
            expected.len(),
            found.len(),
        );
        for (expected, found) in expected.iter().zip(found) {
            let row = json!({"recorded_at": expected["recorded_at"], "lat": expected["lat"],
                "place_name": expected["place_name"], "user_id": person.id});
            findings.judge(PLACES, holds(found, &row), &path, &row, found);
        }
    }
    let family = || evidence.world.persons.iter().filter(|person| person.steady);
    for viewer in family() {
        let found = read(evidence, dice, &viewer.token(), "/location/latest").await;
        for subject in family() {
            let expected = of(subject.id).first().map(|row| row["recorded_at"].clone());
            let all = found["data"].as_array().into_iter().flatten();
            let seen = all.into_iter().find(|one| one["user_id"] == subject.id);
            let seen = seen.map(|one| one["recorded_at"].clone());
            let right = seen.as_ref().and_then(time) == expected.as_ref().and_then(time);
            let what = format!("{} as {} sees them", subject.id, viewer.id);
            findings.judge(PLACES, right, what, json!(expected), json!(seen));
        }
    }
}
