//! `waypost stats`.

use serde_json::{Value, json};

use super::exports::write_of;
use crate::system;

#[tokio::test]
async fn the_stats_show_what_an_organization_stores() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    let before = system.waypost(&["stats", "--org", &org.id]).await;
    let before = &before["organizations"][0];
    assert_eq!(before["rows"]["contacts"], 0);
    let contacts = ["a", "b", "c"].map(|id| json!({"id": id, "firstName": "Ada"}));
    write_of("contacts", &org, &contacts).await;
    let contact = "/api/v1/records/contacts/c";
    org.admin.delete(contact).await.ok(204);
    let lead = json!({"id": "l", "name": "Bo"});
    let position = write_of("leads", &org, &[lead]).await;
    for record in ["contacts/a", "leads/l"] {
        let path = format!("/api/v1/records/{record}");
        org.admin.get_at(&path, &position).await.ok(200);
    }
    let after = system.waypost(&["stats", "--org", &org.id]).await;
    let after = &after["organizations"][0];
    assert_eq!(after["orgId"], org.id);
    assert_eq!(after["rows"]["contacts"], 2);
    assert_eq!(after["rows"]["leads"], 1);
    // Including the marker records used to await the writes.
    let events = |told: &Value| told["events"].as_u64().unwrap();
    assert_eq!(events(after), events(before) + 5 + 4);
    assert!(after["bytes"].as_u64() > before["bytes"].as_u64());
    let of = |told: &Value, kind: &str| told["eventsByKind"][kind].as_u64();
    assert_eq!((of(before, "contact"), of(before, "lead")), (None, None));
    assert_eq!(
        (of(after, "contact"), of(after, "lead")),
        (Some(6), Some(3))
    );
    let kinds = after["eventsByKind"].as_object().unwrap().values();
    assert_eq!(kinds.filter_map(Value::as_u64).sum::<u64>(), events(after));
    let bytes = after["bytesByKind"].as_object().unwrap();
    assert!(bytes["contacts"].as_u64() > bytes["leads"].as_u64());
    assert_eq!(bytes["deals"], 0);
    assert_eq!(
        after["bytes"],
        bytes.values().filter_map(Value::as_u64).sum::<u64>()
    );
    let all = system.waypost(&["stats"]).await;
    let all = all["organizations"].as_array().unwrap();
    let told = |id: &str| all.iter().find(|told| told["orgId"] == id);
    assert_eq!(told(&org.id).unwrap()["rows"], after["rows"]);
    assert_eq!(told(&other.id).unwrap()["rows"]["contacts"], 0);
}
