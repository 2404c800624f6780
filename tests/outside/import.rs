//! `waypost import`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use harness::{Organization, System};
use serde_json::{Value, json};

use super::ndjson;
use crate::system;

/// A file that is deleted with its folder.
pub(super) struct Files(local_servers::TemporaryHome);

impl Files {
    pub(super) fn new() -> Self {
        Self(local_servers::TemporaryHome::new().expect("a folder"))
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

pub(super) async fn import(
    system: &System,
    org: &Organization<'_>,
    file: &str,
    stdin: &[u8],
) -> Value {
    let arguments = ["import", "--org", &org.id, "contacts", file];
    let done = system.waypost_reading(&arguments, stdin).await;
    assert!(
        !done["position"].as_str().expect("a position").is_empty(),
        "{done}"
    );
    done
}

pub(super) async fn exported(org: &Organization<'_>, position: &Value) -> Vec<csv::StringRecord> {
    let answer = org
        .admin
        .get_at("/api/export/contacts", position.as_str().unwrap())
        .await;
    assert_eq!(answer.status, 200);
    let mut rows = csv::Reader::from_reader(answer.body.as_slice());
    rows.records().collect::<Result<_, _>>().unwrap()
}

pub(super) fn rejects(done: &Value) -> Vec<Value> {
    let path = done["rejectsFile"].as_str().expect("a rejects file");
    let rejects = std::fs::read_to_string(path).expect("the rejects file");
    // They contain what the file contained: only their owner may read them.
    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_file(path).unwrap();
    let rejects: Vec<_> = rejects.lines().map(serde_json::from_str).collect();
    assert_eq!(rejects.len(), done["rejected"]);
    rejects
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("NDJSON")
}

const CSV: &str = "\u{feff}id,firstName,lastName,email,city,createdAt\r\n\
    a,Ada,Lovelace,ada@example.org,\"London, UK\",2020-01-01T00:00:00Z\r\n\
    b,Grace,\"Hopper \"\"Amazing\"\"\",grace@example.org,,\r\n\
    c,Zoë,,zoe@example.org,\"Two\nlines\",\r\n";

#[tokio::test]
async fn a_csv_is_imported_and_importing_it_again_changes_nothing() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let file = files.write("contacts.csv", CSV);
    let file = file.to_str().unwrap();
    let done = import(system, &org, file, b"").await;
    assert_eq!(
        (&done["imported"], &done["rejected"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(done.get("rejectsFile"), None);
    let first = exported(&org, &done["position"]).await;
    assert_eq!(first.len(), 3);
    let cities: Vec<_> = first.iter().map(|row| row[8].to_owned()).collect();
    assert!(cities.contains(&"Two\nlines".to_owned()), "{cities:?}");

    let again = import(system, &org, file, b"").await;
    assert_eq!(again["rejected"], 0);
    assert_eq!(exported(&org, &again["position"]).await, first);
}

#[tokio::test]
async fn cells_are_separated_by_semicolons_or_tabs_if_the_header_row_is() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    for (id, delimiter) in [("a", ";"), ("b", "\t")] {
        let rows = format!("id|firstName|city\r\n{id}|\"Ada|Bea\"|Bergen, NO\r\n");
        let file = files.write("list.csv", rows.replace('|', delimiter));
        let done = import(system, &org, file.to_str().unwrap(), b"").await;
        assert_eq!(done["imported"], 1, "{done}");
        let rows = exported(&org, &done["position"]).await;
        let row = rows.iter().find(|row| &row[0] == id).unwrap();
        assert_eq!(
            (&row[1], &row[8]),
            (&*format!("Ada{delimiter}Bea"), "Bergen, NO")
        );
    }
}

#[tokio::test]
async fn ndjson_is_imported_from_a_file_and_from_stdin() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let lines = ndjson((0..300).map(|nth| json!({"id": format!("n{nth}"), "email": "a@b.c"})));
    let file = files.write("contacts.ndjson", &lines);
    let done = import(system, &org, file.to_str().unwrap(), b"").await;
    assert_eq!(done["imported"], 300);
    let more = "{\"id\":\"n0\",\"email\":\"new@b.c\"}\n{\"id\":\"s1\",\"email\":\"s@b.c\"}\n";
    let done = import(system, &org, "-", more.as_bytes()).await;
    assert_eq!(
        (&done["imported"], &done["rejected"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(exported(&org, &done["position"]).await.len(), 301);
}

#[tokio::test]
async fn rejected_rows_are_reported_with_their_reasons() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let file = files.write(
        "contacts.csv",
        "id,email,city,createdAt\n\
         good,a@b.c,\"Rome\n(Lazio)\",\n\
         nobody,,Oslo,\n\
         late,d@e.f,Bonn,yesterday\n\
         wide,g@h.i,Kiel,,surplus\n\
         fine,j@k.l,Köln,\n",
    );
    let done = import(system, &org, file.to_str().unwrap(), b"").await;
    assert_eq!(
        (&done["imported"], &done["rejected"]),
        (&json!(2), &json!(3))
    );
    let rejects = rejects(&done);
    let wanted = [
        (2, json!("email"), "email"),
        (3, json!("createdAt"), "createdAt"),
        (4, Value::Null, "5 cells"),
    ];
    for (reject, (row, field, reason)) in rejects.iter().zip(wanted) {
        assert_eq!(reject["row"], row, "{reject}");
        assert_eq!(reject["line"], row + 2, "{reject}");
        assert_eq!(reject["field"], field, "{reject}");
        let error = reject["error"].as_str().unwrap();
        assert!(error.contains(reason), "{error}");
    }
    let ids: Vec<_> = exported(&org, &done["position"]).await;
    let mut ids: Vec<_> = ids.iter().map(|row| row[0].to_owned()).collect();
    ids.sort();
    assert_eq!(ids, ["fine", "good"]);
}

#[tokio::test]
async fn rejected_lines_of_ndjson_are_reported_too() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let file = files.write(
        "contacts.ndjson",
        b"{\"id\":\"a\",\"email\":\"a\"}\nno json\n{\"id\":\"b\"}\n\xff\xfe\n{\"id\":\"c\",\"email\":\"c\"}\n",
    );
    let done = import(system, &org, file.to_str().unwrap(), b"").await;
    assert_eq!(
        (&done["imported"], &done["rejected"]),
        (&json!(2), &json!(3))
    );
    let rejects = rejects(&done);
    let rows: Vec<_> = rejects.iter().map(|reject| &reject["row"]).collect();
    assert_eq!(rows, [2, 3, 4]);
}

#[tokio::test]
async fn what_cannot_be_imported_at_all_fails_with_a_reason() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let unknown = files.write("contacts.csv", "id,shoe size\na,41\n");
    let unknown = unknown.to_str().unwrap();
    let other = files.write("contacts.pdf", "%PDF");
    let other = other.to_str().unwrap();
    for (arguments, named) in [
        (
            ["import", "--org", &org.id, "contacts", unknown],
            "shoe size",
        ),
        (
            ["import", "--org", &org.id, "contacts", other],
            "contacts.pdf",
        ),
        (
            ["import", "--org", &org.id, "contacts", "/no/such.csv"],
            "/no/such.csv",
        ),
        (
            ["import", "--org", &org.id, "spaceships", unknown],
            "spaceships",
        ),
        (["import", "--org", "nobody", "contacts", unknown], ""),
    ] {
        let output = system.waypost_output(&arguments, b"").await;
        assert!(!output.status.success(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.is_empty() && said.contains(named), "{said}");
    }
}

#[tokio::test]
async fn an_export_of_hubspot_is_known_by_its_header() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let file = files.write(
        "hubspot.csv",
        "Record ID,First Name,Last Name,Email,Lead Score,Create Date\n\
         1,Zoë,Müller,zoe@x.y,7,2024-05-02 09:15\n\
         2,Ada,Byron,ada@x.y,,last summer\n",
    );
    let file = file.to_str().unwrap();
    let dry = ["import", "--org", &org.id, "--dry-run", "contacts", file];
    let found = system.waypost_reading(&dry, b"").await;
    assert_eq!(
        (&found["imported"], &found["dryRun"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(rejects(&found)[0]["row"], 2);
    let none = org.admin.get("/api/export/contacts").await;
    assert_eq!(none.text().lines().count(), 1, "nothing was imported");

    let done = import(system, &org, file, b"").await;
    assert_eq!(
        (&done["imported"], &done["rejected"]),
        (&json!(1), &json!(1))
    );
    drop(rejects(&done));
    let rows = exported(&org, &done["position"]).await;
    assert_eq!((&rows[0][0], &rows[0][2]), ("1", "Müller"));
    assert_eq!(&rows[0][11], "2024-05-02T09:15:00Z");
}

#[tokio::test]
async fn an_import_can_map_columns_to_fields_and_leave_columns_out() {
    let system = system().await;
    let org = system.organization().await;
    let files = Files::new();
    let file = files.write("list.csv", "Postfach,Notiz\na@x.y,neu\n");
    let file = file.to_str().unwrap();
    let named = ["--map", "Postfach=email", "--map", "Notiz="];
    let arguments = [
        &["import", "--org", &org.id],
        &named[..],
        &["contacts", file],
    ]
    .concat();
    let done = system.waypost_reading(&arguments, b"").await;
    assert_eq!(done["imported"], 1);
    assert_eq!(&exported(&org, &done["position"]).await[0][3], "a@x.y");
}
