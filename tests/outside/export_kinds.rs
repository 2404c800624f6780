//! Exports of companies and deals: columns, formats, and what only companies have.

use std::io::Cursor;

use calamine::{Data, Reader as _, Xlsx};
use harness::Answer;
use serde_json::{Value, json};

use super::exports::write_of;
use crate::system;

const COMPANIES: &str = "id,name,domain,industry,phone,email,address,city,country,employees,\
                         annualRevenue,owner,createdAt,updatedAt";
const DEALS: &str = "id,title,stage,amount,currency,probability,companyId,companyName,contactId,\
                     contactName,owner,expectedCloseDate,createdAt,updatedAt";
const CRM: &str = "Company name,Company domain name,Industry,Phone number,Street address,City,\
                   Country/Region,Number of employees,Annual revenue,Company owner,Create date";

/// A company with every field, and its cells from `name` on.
fn company() -> (Value, Vec<&'static str>) {
    let company = json!({
        "id": "c-1", "name": "=Bäckerei \"Grün\", Söhne", "domain": "gruen.example",
        "industry": "Food & Drink", "phone": "+4930123456", "email": "info@gruen.example",
        "address": "Straße 1\nHof", "city": "Αθήνα", "country": "Россия", "employees": 12,
        "annualRevenue": -1_500_000, "owner": "@owner", "createdAt": "2020-01-02T03:04:05Z",
    });
    let cells = vec![
        "'=Bäckerei \"Grün\", Söhne",
        "gruen.example",
        "Food & Drink",
        "+4930123456",
        "info@gruen.example",
        "Straße 1\nHof",
        "Αθήνα",
        "Россия",
        "12",
        "-1500000",
        "'@owner",
        "2020-01-02T03:04:05Z",
    ];
    (company, cells)
}

fn deal() -> (Value, Vec<&'static str>) {
    let deal = json!({
        "id": "d-1", "title": "-Renewal", "stage": "won", "amount": -250, "currency": "EUR",
        "probability": 62.5, "companyId": "c-1", "companyName": "Grün", "contactId": "p-1",
        "contactName": "Zoë", "owner": "o", "expectedCloseDate": "2026-12-31",
        "createdAt": "2020-01-02T03:04:05Z",
    });
    let cells = vec![
        "'-Renewal",
        "won",
        "-250",
        "EUR",
        "62.5",
        "c-1",
        "Grün",
        "p-1",
        "Zoë",
        "o",
        "2026-12-31",
        "2020-01-02T03:04:05Z",
    ];
    (deal, cells)
}

#[track_caller]
fn rows(answer: &Answer, header: &str) -> Vec<Vec<String>> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    assert!(!text.starts_with('\u{feff}'), "no byte-order mark");
    assert_eq!(text.split("\r\n").next(), Some(header));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader
        .records()
        .map(|row| row.expect("a row as wide as the header"));
    rows.map(|row| row.iter().map(str::to_owned).collect())
        .collect()
}

#[tokio::test]
async fn every_field_has_its_column_and_absent_ones_are_empty() {
    let org = system().await.organization().await;
    for (kind, header, (record, cells), least) in [
        ("companies", COMPANIES, company(), json!({"name": "bare"})),
        ("deals", DEALS, deal(), json!({"title": "bare"})),
    ] {
        let mut least = least;
        least["id"] = json!("bare");
        least["createdAt"] = json!("2019-01-01T00:00:00Z");
        let position = write_of(kind, &org, &[least, record]).await;
        let client = org.client(&[&format!("export:{kind}:read")]).await;
        let path = format!("/api/export/{kind}");
        let rows = rows(&client.get_at(&path, &position).await, header);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0][1..=12], cells, "{kind}");
        let updated_at = chrono::DateTime::parse_from_rfc3339(&rows[0][13]).unwrap();
        assert!((chrono::Utc::now() - updated_at.to_utc()).num_minutes() < 10);
        assert_eq!(rows[1][..2], ["bare", "bare"], "the older one comes last");
        assert!(rows[1][2..12].iter().all(String::is_empty), "{:?}", rows[1]);
    }
}

#[tokio::test]
async fn companies_come_under_the_labels_of_other_crms_too() {
    let org = system().await.organization().await;
    let (record, cells) = company();
    let position = write_of("companies", &org, &[record]).await;
    let path = "/api/export/companies?format=crm";
    let answer = org.admin.get_at(path, &position).await;
    let mut expected = cells;
    expected.remove(4); // no e-mail address
    assert_eq!(rows(&answer, CRM), [expected]);
}

#[tokio::test]
async fn a_file_says_what_it_is() {
    let org = system().await.organization().await;
    let csv = ("text/csv; charset=utf-8", "csv");
    let excel = (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xlsx",
    );
    let pdf = ("application/pdf", "pdf");
    for (kind, query, name, (content_type, extension)) in [
        ("companies", "", "companies", csv),
        ("companies", "?format=csv", "companies", csv),
        ("companies", "?format=crm", "companies-crm", csv),
        ("companies", "?format=CRM", "companies", csv),
        ("companies", "?format=docx", "companies", csv),
        ("companies", "?format=excel", "companies", excel),
        ("companies", "?format=pdf", "companies", pdf),
        ("deals", "", "deals", csv),
        ("deals", "?format=crm", "deals", csv),
        ("deals", "?format=%00", "deals", csv),
        ("deals", "?format=excel", "deals", excel),
        ("deals", "?format=pdf", "deals", pdf),
    ] {
        let before = chrono::Utc::now().date_naive();
        let answer = org.admin.get(&format!("/api/export/{kind}{query}")).await;
        let after = chrono::Utc::now().date_naive();
        assert_eq!(answer.status, 200, "{kind}{query}");
        assert_eq!(answer.header("content-type"), Some(content_type), "{query}");
        let named = |day| format!("attachment; filename=\"{name}-{day}.{extension}\"");
        let disposition = answer.header("content-disposition").unwrap().to_owned();
        let expected = [named(before), named(after)];
        assert!(expected.contains(&disposition), "{disposition}");
    }
}

#[tokio::test]
async fn a_workbook_has_numbers_and_days_as_such() {
    let org = system().await.organization().await;
    let records = [company().0, deal().0];
    for ((kind, header), record) in [("companies", COMPANIES), ("deals", DEALS)]
        .iter()
        .zip(records)
    {
        let position = write_of(kind, &org, &[record]).await;
        let path = format!("/api/export/{kind}?format=excel");
        let answer = org.admin.get_at(&path, &position).await;
        assert_eq!(answer.status, 200);
        let mut book = Xlsx::new(Cursor::new(answer.body)).expect("a workbook");
        let sheet = book.sheet_names()[0].clone();
        let formulas = book.worksheet_formula(&sheet).unwrap();
        assert_eq!(formulas.used_cells().count(), 0);
        let range = book.worksheet_range(&sheet).unwrap();
        let names: Vec<_> = range.rows().next().unwrap().to_vec();
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        assert_eq!(names.join(","), *header);
        let row: Vec<Data> = range.rows().nth(1).unwrap().to_vec();
        let cell = |name: &str| &row[names.iter().position(|n| n == name).unwrap()];
        let date = |name: &str| match cell(name) {
            Data::DateTime(moment) => moment.to_ymd_hms_milli(),
            other => panic!("{name} is no date: {other:?}"),
        };
        assert_eq!(date("createdAt"), (2020, 1, 2, 3, 4, 5, 0));
        if *kind == "companies" {
            assert_eq!(cell("employees"), &Data::Float(12.0));
            assert_eq!(cell("annualRevenue"), &Data::Float(-1_500_000.0));
            assert_eq!(cell("phone"), &Data::String("+4930123456".to_owned()));
            let name = "=Bäckerei \"Grün\", Söhne".to_owned();
            assert_eq!(cell("name"), &Data::String(name), "text as it was given");
        } else {
            assert_eq!(cell("amount"), &Data::Float(-250.0));
            assert_eq!(cell("probability"), &Data::Float(62.5));
            assert_eq!(date("expectedCloseDate"), (2026, 12, 31, 0, 0, 0, 0));
        }
    }
}

#[tokio::test]
async fn a_pdf_shows_its_title_headings_and_pages() {
    let org = system().await.organization().await;
    for (kind, title, headings) in [
        ("companies", "Companies", ["Industry", "Employees", "Owner"]),
        ("deals", "Deals", ["Stage", "Currency", "Probability"]),
    ] {
        let made = |nth: u32| {
            let name = format!("Ńr{nth} Ωμέγα Жук");
            match kind {
                "deals" => json!({"id": format!("d{nth}"), "title": name}),
                _ => json!({"id": format!("c{nth}"), "name": name}),
            }
        };
        let records: Vec<_> = (0..120).map(made).collect();
        let position = write_of(kind, &org, &records).await;
        let path = format!("/api/export/{kind}?format=pdf");
        let answer = org.admin.get_at(&path, &position).await;
        assert_eq!(answer.status, 200);
        let Some(text) = super::documents::text_of(&answer.body) else {
            return;
        };
        let pages: Vec<&str> = text.trim_end_matches('\u{c}').split('\u{c}').collect();
        assert!(pages.len() > 1, "several pages");
        assert!(pages[0].contains(title) && pages[0].contains("Test & Söhne"));
        for (page, number) in pages.iter().zip(1..) {
            let foot = format!("Page {number} of {}", pages.len());
            assert!(page.contains(&foot), "{foot}: {page}");
            for heading in headings {
                assert!(page.contains(heading), "{heading} on page {number}");
            }
            let year = chrono::Utc::now().format("%Y").to_string();
            assert!(page.contains(&year) && page.contains("Test & Söhne"));
        }
        for nth in 0..120 {
            assert!(text.contains(&format!("Ńr{nth} Ωμέγα")), "{kind} {nth}");
        }
    }
}

#[tokio::test]
async fn an_export_is_refused_only_for_want_of_key_scope_or_room() {
    let org = system().await.organization().await;
    let nobody = org.system.client();
    for (kind, scope, other) in [
        ("companies", "export:companies:read", "export:deals:read"),
        ("deals", "export:deals:read", "export:contacts:read"),
    ] {
        for format in ["csv", "crm", "excel", "pdf", "nonsense"] {
            let path = format!("/api/export/{kind}?format={format}");
            nobody.get(&path).await.error(401);
            let terms = json!({"name": "n", "scopes": [other], "rateLimit": 1});
            let (client, _) = org.unused_key(&terms).await;
            let message = client.get(&path).await.error(403);
            assert!(message.contains(scope), "{message}");
            let refused = client.get(&path).await;
            refused.error(429);
            let policy = refused.header("ratelimit-policy");
            assert_eq!(policy, Some("\"hourly\";q=1;w=3600"));
        }
    }
}

#[tokio::test]
async fn another_organizations_records_are_never_in_it() {
    let system = system().await;
    let (org, other) = (system.organization().await, system.organization().await);
    for (kind, header, (record, _)) in [
        ("companies", COMPANIES, company()),
        ("deals", DEALS, deal()),
    ] {
        let position = write_of(kind, &org, &[record]).await;
        let path = format!("/api/export/{kind}");
        let mine = org.admin.get_at(&path, &position).await;
        assert_eq!(rows(&mine, header).len(), 1);
        let theirs = other.admin.get_at(&path, &position).await;
        assert_eq!(rows(&theirs, header).len(), 0);
    }
    let path = "/api/export/companies?format=crm";
    assert_eq!(rows(&other.admin.get(path).await, CRM).len(), 0);
}
