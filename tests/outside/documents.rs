//! `GET /api/export/contacts` as an Excel workbook and as a PDF.

use std::io::Cursor;
use std::process::Command;

use calamine::{Data, Reader as _, Xlsx};
use serde_json::json;

use super::exports::write;
use crate::system;

const EXPORT: &str = "/api/export/contacts";

fn workbook(bytes: &[u8]) -> Xlsx<Cursor<Vec<u8>>> {
    Xlsx::new(Cursor::new(bytes.to_vec())).expect("a workbook")
}

#[tokio::test]
async fn a_workbook_has_a_header_and_typed_cells() {
    let org = system().await.organization().await;
    let position = write(
        &org,
        &[
            json!({"id": "007", "firstName": "=1+1", "phone": "+4930123456", "email": "a@b.c",
                "city": "Köln \"am Rhein\" <&>", "createdAt": "2020-01-02T03:04:05Z"}),
            json!({"id": "x", "lastName": "12345", "createdAt": "2021-01-01T00:00:00Z"}),
        ],
    )
    .await;
    let path = format!("{EXPORT}?format=excel");
    let answer = org.admin.get_at(&path, &position).await;
    assert_eq!(answer.status, 200);
    let mut book = workbook(&answer.body);
    let sheet = book.sheet_names()[0].clone();
    assert_eq!(
        book.worksheet_formula(&sheet).unwrap().used_cells().count(),
        0
    );
    let range = book.worksheet_range(&sheet).unwrap();
    assert_eq!(range.get_size(), (3, 13));
    let row = |nth: usize| -> Vec<Data> { range.rows().nth(nth).unwrap().to_vec() };
    let header: Vec<_> = row(0).iter().map(ToString::to_string).collect();
    assert_eq!(
        header.join(","),
        "id,firstName,lastName,email,phone,jobTitle,companyId,companyName,city,country,owner,\
         createdAt,updatedAt"
    );
    let text = |text: &str| Data::String(text.to_owned());
    let (newer, older) = (row(1), row(2));
    assert_eq!((&newer[0], &newer[2]), (&text("x"), &text("12345")));
    assert_eq!((&newer[1], &newer[8]), (&Data::Empty, &Data::Empty));
    assert_eq!((&older[0], &older[1]), (&text("007"), &text("=1+1")));
    assert_eq!(older[4], text("+4930123456"));
    assert_eq!(older[8], text("Köln \"am Rhein\" <&>"));
    let Data::DateTime(created_at) = &older[11] else {
        panic!("createdAt is no date: {:?}", older[11]);
    };
    let created_at = created_at.to_ymd_hms_milli();
    assert_eq!(created_at, (2020, 1, 2, 3, 4, 5, 0));
}

#[tokio::test]
async fn an_empty_workbook_has_its_header() {
    let org = system().await.organization().await;
    let answer = org.admin.get(&format!("{EXPORT}?format=excel")).await;
    let mut book = workbook(&answer.body);
    let sheet = book.sheet_names()[0].clone();
    let range = book.worksheet_range(&sheet).unwrap();
    assert_eq!(range.get_size(), (1, 13));
}

/// The texts of a PDF as read by another program, if that is installed.
pub(super) fn text_of(pdf: &[u8]) -> Option<String> {
    let folder = local_servers::TemporaryHome::new().expect("a folder");
    let file = folder.path().join("export.pdf");
    std::fs::write(&file, pdf).unwrap();
    let output = Command::new("pdftotext")
        .args(["-layout", "-enc", "UTF-8"])
        .arg(&file)
        .arg("-")
        .output();
    let Ok(output) = output else {
        eprintln!("pdftotext is not installed: the texts of the PDF were not read");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn a_pdf_shows_every_contact() {
    let org = system().await.organization().await;
    let records: Vec<_> = (0..200)
        .map(|nth| json!({"id": format!("c{nth}"), "firstName": "Zoë", "lastName": format!("L{nth}x")}))
        .collect();
    let position = write(&org, &records).await;
    let path = format!("{EXPORT}?format=pdf");
    let answer = org.admin.get_at(&path, &position).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(b"%PDF-1."), "a PDF");
    assert!(answer.body.trim_ascii_end().ends_with(b"%%EOF"), "whole");
    let Some(text) = text_of(&answer.body) else {
        return;
    };
    assert!(text.contains("Test & Söhne"), "{text}");
    assert!(text.contains("Zoë"));
    for nth in 0..200 {
        assert!(text.contains(&format!("L{nth}x")), "contact {nth}");
    }
}

#[tokio::test]
async fn an_empty_pdf_is_a_pdf() {
    let org = system().await.organization().await;
    let answer = org.admin.get(&format!("{EXPORT}?format=pdf")).await;
    assert!(answer.body.starts_with(b"%PDF-1."));
    if let Some(text) = text_of(&answer.body) {
        assert!(text.contains("Contacts"), "{text}");
    }
}
