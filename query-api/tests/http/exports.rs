//! Exported files.

use std::io::Cursor;
use std::time::Duration;

use calamine::{Reader, Xlsx};
use futures::StreamExt;

use query_api::QuerySettings;
use query_api::exports::ExportSettings;

use crate::support::{TestApi, settings};

const CONTACTS: &str = "INSERT INTO contacts
    SELECT $1, 'c' || lpad(i::text, 5, '0'), 'Ada', 'Lovelace, \"Countess\"', '=1+1', '+4915112345678',
           NULL, '', E'two\\nlines', 'Αθήνα', '-5', '@owner',
           '2026-11-21T00:00:00Z'::timestamptz + make_interval(secs => i / 100), '2026-11-21T12:00:00.5Z'
    FROM generate_series(0, 24999) AS i";

async fn api_with_contacts() -> TestApi {
    let api = TestApi::open().await;
    api.execute(CONTACTS).await;
    api
}

fn ids() -> Vec<String> {
    let moments = (0..250).rev();
    let ids = moments.flat_map(|moment| (0..100).map(move |i| moment * 100 + i));
    ids.map(|id| format!("c{id:05}")).collect()
}

#[tokio::test]
async fn csv_has_every_contact_newest_first() {
    let api = api_with_contacts().await;
    let answer = api.get("/api/export/contacts?format=crm").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/csv; charset=utf-8")
    );
    let name = answer.header("content-disposition").unwrap();
    assert!(
        name.starts_with("attachment; filename=\"contacts-20"),
        "{name}"
    );
    assert!(name.ends_with(".csv\""), "{name}");
    let text = answer.text();
    let (header, rows) = text.split_once("\r\n").unwrap();
    assert_eq!(
        header,
        "id,firstName,lastName,email,phone,jobTitle,companyId,companyName,city,country,owner,\
         createdAt,updatedAt"
    );
    assert!(rows.starts_with(
        "c24900,Ada,\"Lovelace, \"\"Countess\"\"\",'=1+1,+4915112345678,,,\"two\nlines\",Αθήνα,-5,\
         '@owner,2026-11-21T00:04:09Z,2026-11-21T12:00:00.500Z\r\n"
    ));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let found: Vec<String> = reader
        .records()
        .map(|row| row.unwrap()[0].to_owned())
        .collect();
    assert_eq!(found, ids());
    api.close().await;
}

#[tokio::test]
async fn rows_that_are_stored_in_no_order_come_newest_first_too() {
    let api = TestApi::open().await;
    let shuffled = "INSERT INTO contacts (org_id, id, created_at, updated_at)
        SELECT $1, 'c' || lpad(i::text, 5, '0'), '2026-11-21Z'::timestamptz - make_interval(secs => i), now()
        FROM generate_series(0, 4999) AS i ORDER BY md5(i::text)";
    api.execute(shuffled).await;
    api.execute("ANALYZE contacts -- of $1").await;
    let text = api.get("/api/export/contacts").await.text();
    let found: Vec<_> = text.lines().skip(1).map(|row| &row[..6]).collect();
    let wanted: Vec<_> = (0..5_000).map(|id| format!("c{id:05}")).collect();
    assert_eq!(found, wanted);
    api.close().await;
}

#[tokio::test]
async fn excel_and_pdf_have_every_contact_too() {
    let api = api_with_contacts().await;
    let excel = api.get("/api/export/contacts?format=excel").await;
    let sheet_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    assert_eq!(excel.header("content-type"), Some(sheet_type));
    assert!(
        excel
            .header("content-disposition")
            .unwrap()
            .ends_with(".xlsx\"")
    );
    let length = excel.body.len().to_string();
    assert_eq!(excel.header("content-length"), Some(length.as_str()));
    let mut workbook = Xlsx::new(Cursor::new(excel.body)).unwrap();
    let sheet = workbook.worksheet_range("Contacts").unwrap();
    let found: Vec<String> = sheet.rows().skip(1).map(|row| row[0].to_string()).collect();
    assert_eq!(found, ids());

    let pdf = api.get("/api/export/contacts?format=pdf").await;
    assert_eq!(pdf.header("content-type"), Some("application/pdf"));
    assert!(pdf.body.starts_with(b"%PDF-1.7\n"));
    assert!(pdf.body.ends_with(b"%%EOF\n"));
    api.close().await;
}

#[tokio::test]
async fn an_organization_without_contacts_gets_files_without_rows() {
    let api = TestApi::open().await;
    let csv = api.get("/api/export/contacts").await;
    assert_eq!((csv.status, csv.text().lines().count()), (200, 1));
    for format in ["excel", "pdf"] {
        let answer = api
            .get(&format!("/api/export/contacts?format={format}"))
            .await;
        assert_eq!(answer.status, 200, "{format}");
        assert!(!answer.body.is_empty(), "{format}");
    }
    api.close().await;
}

#[tokio::test]
async fn head_says_what_get_would_send_and_reads_nothing() {
    let api = TestApi::open().await;
    // Reading would fail.
    api.execute("DROP TABLE contacts -- of $1").await;
    for format in ["csv", "excel", "pdf"] {
        let path = format!("/api/export/contacts?format={format}");
        let answer = api.ask("HEAD", &path, &[]).await;
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{format}");
        assert!(
            answer.headers.contains_key("content-disposition"),
            "{format}"
        );
        assert_eq!(answer.header("content-length"), None, "{format}");
        let failed = api.get(&path).await;
        assert_eq!(failed.status, 500, "{format}");
        assert!(!failed.error().contains("contacts"), "{}", failed.error());
    }
    api.close().await;
}

#[tokio::test]
async fn an_export_that_fails_midway_breaks_off() {
    let api = api_with_contacts().await;
    let answer = api.open_answer("GET", "/api/export/contacts", &[]).await;
    assert_eq!(answer.status(), 200);
    let mut pieces = answer.into_body().into_data_stream();
    pieces.next().await.unwrap().unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE application_name = 'reads' AND query LIKE 'COPY%' AND datname = current_database()";
    sqlx::query(end).execute(&api.pool).await.unwrap();
    let mut ended_well = true;
    while let Some(piece) = pieces.next().await {
        ended_well &= piece.is_ok();
    }
    assert!(!ended_well, "the client took a part for the whole");
    // The next export gets a working connection.
    let again = api.get("/api/export/contacts").await;
    assert_eq!(again.text().matches("\r\n").count(), 25_001);
    api.close().await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_nothing_with_it() {
    let api = api_with_contacts().await;
    // More than there are places and connections.
    for _ in 0..12 {
        for format in ["csv", "pdf"] {
            let path = format!("/api/export/contacts?format={format}");
            let answer = api.open_answer("GET", &path, &[]);
            let early = tokio::time::timeout(std::time::Duration::from_millis(30), answer);
            drop(early.await);
        }
    }
    let answer = api.get("/api/export/contacts?format=pdf").await;
    assert_eq!(answer.status, 200);
    api.close().await;
}

#[tokio::test]
async fn an_export_shows_one_moment() {
    let api = api_with_contacts().await;
    let answer = api.open_answer("GET", "/api/export/contacts", &[]).await;
    api.execute("DELETE FROM contacts WHERE org_id = $1").await;
    let body = axum::body::to_bytes(answer.into_body(), 64 << 20)
        .await
        .unwrap();
    let rows = csv::Reader::from_reader(&body[..]).into_records().count();
    assert_eq!(rows, 25_000);
    api.close().await;
}

/// Contacts, with one file at a time and a limit on how long a client may take nothing.
async fn api_with_stall(stall: Duration) -> TestApi {
    let settings = settings();
    let exports = ExportSettings {
        files: 1,
        stall,
        ..settings.exports
    };
    let settings = QuerySettings {
        exports,
        ..settings
    };
    let api = TestApi::open_with(settings, None).await;
    api.execute(CONTACTS).await;
    api
}

#[tokio::test]
async fn a_file_is_written_to_its_end_however_slowly() {
    let api = api_with_stall(Duration::from_millis(1)).await;
    for format in ["pdf", "excel"] {
        let path = format!("/api/export/contacts?format={format}");
        let answer = api.open_answer("GET", &path, &[]).await;
        assert_eq!(answer.status(), 200, "{format}");
    }
    api.close().await;
}

#[tokio::test]
async fn a_finished_file_is_kept_for_its_client_no_longer_than_it_may_wait() {
    let api = api_with_stall(Duration::from_secs(1)).await;
    let path = "/api/export/contacts?format=pdf";
    let unread = api.open_answer("GET", path, &[]).await;
    assert_eq!(unread.status(), 200);
    // It waits for the file that no client fetches, but not forever.
    let next = api.get(path).await;
    assert_eq!(next.status, 200);
    assert!(next.body.ends_with(b"%%EOF\n"));
    let pieces: Vec<_> = unread.into_body().into_data_stream().collect().await;
    assert!(pieces.last().unwrap().is_err(), "a part for the whole");
    api.close().await;
}

#[tokio::test]
async fn a_file_without_room_is_not_made() {
    let settings = settings();
    let exports = ExportSettings {
        file_bytes: 10_000,
        ..settings.exports
    };
    let api = TestApi::open_with(
        QuerySettings {
            exports,
            ..settings
        },
        None,
    )
    .await;
    api.execute(CONTACTS).await;
    for format in ["pdf", "excel"] {
        let path = format!("/api/export/contacts?format={format}");
        assert_eq!(api.get(&path).await.status, 500, "{format}");
    }
    // A CSV that is sent directly needs none.
    let csv = api.get("/api/export/contacts").await;
    assert_eq!(csv.text().matches("\r\n").count(), 25_001);
    api.close().await;
}
