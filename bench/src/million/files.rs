//! Files of records, as another system would provide them.

use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

/// Returns the nth record of a kind.
pub(super) fn record(kind: &str, n: usize) -> Value {
    let email = format!("person{n}@example.com");
    let created = format!(
        "20{:02}-{:02}-{:02}T09:30:00Z",
        n % 26,
        n % 12 + 1,
        n % 28 + 1
    );
    let city = ["Berlin", "London", "Oslo", "Łódź"][n % 4];
    match kind {
        "companies" => json!({
            "id": format!("c{n}"), "name": format!("Company {n}"), "domain": format!("c{n}.example"),
            "city": city, "createdAt": created,
        }),
        "deals" => json!({
            "id": format!("d{n}"), "title": format!("Deal {n}"), "amount": n % 100_000,
            "stage": "proposal", "createdAt": created,
        }),
        "contacts" => json!({
            "id": format!("p{n}"), "firstName": "Ada", "lastName": format!("Number {n}"),
            "email": email, "phone": format!("+4930{n:07}"), "jobTitle": "Engineer",
            "companyId": format!("c{}", n % 5_003), "companyName": format!("Company {}", n % 5_003),
            "city": city, "country": "DE", "createdAt": created,
        }),
        "orders" => json!({
            "id": format!("o{n}"), "orderNumber": format!("O-{n}"), "amount": n % 100_000,
            "status": (["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"][n % 4]),
            "plan": "Basic", "client": {"name": format!("Client {}", n % 997), "email": email},
            "createdAt": created,
        }),
        "leads" => json!({
            "id": format!("l{n}"), "name": format!("Lead {n}"), "email": email, "source": "web",
            "status": "NEW", "score": n % 100, "createdAt": created,
        }),
        _ => json!({
            "id": format!("k{n}"), "name": format!("Client {n}"), "email": email, "city": city,
            "createdAt": created,
        }),
    }
}

/// Writes `count` records, one per line.
pub(super) fn write(path: &Path, kind: &str, count: usize) {
    let file = std::fs::File::create(path).expect("a file");
    let mut file = std::io::BufWriter::new(file);
    for n in 0..count {
        serde_json::to_writer(&mut file, &record(kind, n)).expect("a line");
        file.write_all(b"\n").expect("a line");
    }
    file.flush().expect("a file");
}

/// The same as CSV.
pub(super) fn write_csv(path: &Path, kind: &str, count: usize) {
    let file = std::fs::File::create(path).expect("a file");
    let mut file = std::io::BufWriter::new(file);
    for n in 0..count {
        let record = record(kind, n);
        let fields = record.as_object().expect("an object");
        if n == 0 {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            writeln!(file, "{}", names.join(",")).expect("a line");
        }
        let cells = fields.values().map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let cells: Vec<String> = cells.collect();
        writeln!(file, "{}", cells.join(",")).expect("a line");
    }
    file.flush().expect("a file");
}
