//! Business records.

use access::Scope;
use serde_json::{Value, json};

use super::Part;
use super::business::ORDER_STATUSES;
use super::operation::{Operation, delete, get, post, put};
use super::shape::{
    Fields, answer, id, like, meaning, nullable, number, request, schema, string, text, time,
    whole, word,
};

/// A kind: its name in paths, its noun, and two samples of it as lines and as a table.
struct Kind {
    path: &'static str,
    one: &'static str,
    a_noun: &'static str,
    lines: &'static str,
    rows: &'static str,
}

const KINDS: [Kind; 6] = [
    Kind {
        path: "companies",
        one: "Company",
        a_noun: "a company",
        lines: "{\"id\":\"1\",\"name\":\"Alder\"}\n{\"id\":\"2\",\"name\":\"Birch\"}\n",
        rows: "id,name\r\n1,Alder\r\n2,Birch\r\n",
    },
    Kind {
        path: "deals",
        one: "Deal",
        a_noun: "a deal",
        lines: "{\"id\":\"1\",\"title\":\"New roof\"}\n{\"id\":\"2\",\"title\":\"Heating\"}\n",
        rows: "id,title\r\n1,New roof\r\n2,Heating\r\n",
    },
    Kind {
        path: "contacts",
        one: "Contact",
        a_noun: "a contact",
        lines: "{\"id\":\"1\",\"email\":\"ada@example.org\"}\n{\"id\":\"2\",\"email\":\"grace@example.org\"}\n",
        rows: "id,email\r\n1,ada@example.org\r\n2,grace@example.org\r\n",
    },
    Kind {
        path: "orders",
        one: "Order",
        a_noun: "an order",
        lines: "{\"id\":\"1\",\"orderNumber\":\"A-1\",\"status\":\"ACTIVE\",\"amount\":12900}\n{\"id\":\"2\",\"orderNumber\":\"A-2\",\"status\":\"COMPLETED\",\"amount\":4900}\n",
        rows: "id,orderNumber,status,amount\r\n1,A-1,ACTIVE,12900\r\n2,A-2,COMPLETED,4900\r\n",
    },
    Kind {
        path: "leads",
        one: "Lead",
        a_noun: "a lead",
        lines: "{\"id\":\"1\",\"name\":\"Ada Lovelace\"}\n{\"id\":\"2\",\"name\":\"Grace Hopper\"}\n",
        rows: "id,name\r\n1,Ada Lovelace\r\n2,Grace Hopper\r\n",
    },
    Kind {
        path: "clients",
        one: "Client",
        a_noun: "a client",
        lines: "{\"id\":\"1\",\"name\":\"Alder\"}\n{\"id\":\"2\",\"name\":\"Birch\"}\n",
        rows: "id,name\r\n1,Alder\r\n2,Birch\r\n",
    },
];

pub(super) fn part() -> Part {
    Part {
        tag: "Records",
        description: "The organization's business records, written one by one or in bulk. Use \
                      your own ids, or leave them out for new ones.",
        operations: KINDS.iter().flat_map(operations).collect(),
        schemas: schemas(),
    }
}

fn operations(kind: &Kind) -> [Operation; 4] {
    let Kind {
        path, one, a_noun, ..
    } = kind;
    let lines = json!({"schema": {
        "type": "string",
        "description": "One record per line.",
        "examples": [kind.lines],
    }});
    let rows = json!({"schema": {
        "type": "string",
        "description": "A header row of field names, then one record per row.",
        "examples": [kind.rows],
    }});
    let answered = json!({"schema": {
        "type": "string",
        "description": "One line of answer for each line, as it is confirmed: \
                        `{\"line\":1,\"id\":\"…\",\"status\":\"created\"|\"updated\"|\"unchanged\"}` \
                        or `{\"line\":2,\"error\":\"…\"}`.",
    }});
    let sent = || json!({"schema": schema(&format!("{one}Record"))});
    let all = format!("/api/v1/records/{path}");
    let single = |operation: Operation| {
        operation
            .key(Scope::WriteRecords)
            .path_value("id", "The record.", id())
    };
    let at = format!("{all}/{{id}}");
    [
        post(all, format!("create{one}"), format!("Create {path}"))
            .says(
                "With `application/json`, creates one record, whose id must be new. With \
                 `application/x-ndjson`, each line creates or replaces a record and gets a line \
                 of answer. With `text/csv`, each row does so below the first, which names the \
                 fields, between commas, semicolons or tabs, and is line 1. Lines and rows may \
                 come with `Content-Encoding: gzip` or `zstd`. Every 10,000 lines count as one more request. A request takes at most \
                 1,000,000 lines and 1 GiB, unpacked. If one of these limits, the key's limit or the key's \
                 life ends first, the last line of the answer is an error that names the first \
                 line that was not written. The answer's `Waypost-Position` is that of the last \
                 line. If the answer begins earlier, because there is 1 MiB of it or the body \
                 pauses for a second, the header has a position known by then, and the last one \
                 follows as a trailer to clients that send `TE: trailers`.",
            )
            .key(Scope::WriteRecords)
            .idempotent()
            .body(json!({
                "required": true,
                "content": {"application/json": sent(), "application/x-ndjson": lines, "text/csv": rows},
            }))
            .answers_with(
                200,
                "A line of answer for each line.",
                json!({"application/x-ndjson": answered}),
            )
            .answers(201, "The record was created.", schema("RecordId"))
            .command()
            .refuses(&[400, 413, 415]),
        single(get(
            at.clone(),
            format!("get{one}"),
            format!("Read {a_noun}"),
        ))
        .read()
        .answers(
            200,
            "The record as it was written.",
            schema(&format!("Stored{one}")),
        )
        .answer_header("ETag")
        .refuses(&[404]),
        single(put(
            at.clone(),
            format!("put{one}"),
            format!("Create or replace {a_noun}"),
        ))
        .body(json!({"required": true, "content": {"application/json": sent()}}))
        .answers(200, "The record was replaced.", schema("RecordId"))
        .answers(201, "The record was created.", schema("RecordId"))
        .answer_header("ETag")
        .creates()
        .command()
        .refuses(&[400, 409, 413, 415]),
        single(delete(
            at,
            format!("delete{one}"),
            format!("Delete {a_noun}"),
        ))
        .says("Removes it from all lists, exports and totals.")
        .answers_nothing(204, "The record was deleted.")
        .conditional()
        .command()
        .refuses(&[400, 404, 409]),
    ]
}

/// Optional text fields.
fn texts(names: &[&'static str]) -> Fields {
    let shape = |name: &&'static str| (*name, nullable(text(1_000)));
    names.iter().map(shape).collect()
}

fn required_text(example: &str) -> Value {
    let shape = json!({
        "type": "string", "minLength": 1, "maxLength": 1000, "pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$",
    });
    like(shape, example)
}

fn record(mut fields: Fields, required: &[&str]) -> Value {
    fields.insert(0, ("id", meaning(nullable(id()), "A new one if absent.")));
    fields.push(("createdAt", meaning(nullable(time()), "Now if absent.")));
    request(fields, required)
}

fn contact() -> Value {
    let fields = texts(&[
        "firstName",
        "lastName",
        "email",
        "phone",
        "jobTitle",
        "companyId",
        "companyName",
        "city",
        "country",
        "owner",
    ]);
    let mut contact = record(fields, &[]);
    let given =
        |name: &str| json!({"required": [name], "properties": {name: required_text("Zoë")}});
    contact["anyOf"] = json!([given("firstName"), given("lastName"), given("email")]);
    contact
}

fn schemas() -> Vec<(&'static str, Value)> {
    let mut company = vec![("name", required_text("Acme"))];
    company.extend(texts(&[
        "domain", "industry", "phone", "email", "address", "city", "country", "owner",
    ]));
    company.extend([
        ("employees", nullable(whole())),
        (
            "annualRevenue",
            meaning(nullable(whole()), "In minor units."),
        ),
    ]);
    let mut deal = vec![("title", required_text("Heat pumps for Acme"))];
    deal.extend(texts(&[
        "stage",
        "currency",
        "companyId",
        "companyName",
        "contactId",
        "contactName",
        "owner",
    ]));
    deal.extend([
        ("amount", meaning(nullable(whole()), "In minor units.")),
        (
            "probability",
            meaning(nullable(number(0.0, 100.0)), "In percent."),
        ),
        (
            "expectedCloseDate",
            nullable(json!({"type": "string", "format": "date"})),
        ),
    ]);
    let client = request(texts(&["name", "email"]), &[]);
    let product = request(texts(&["name"]), &[]);
    let within = |shape: Value| json!({"anyOf": [shape, {"type": "null"}]});
    let mut order = vec![
        ("orderNumber", required_text("WP-00870")),
        ("status", word(ORDER_STATUSES)),
        ("amount", meaning(whole(), "In minor units.")),
    ];
    order.extend(texts(&["plan"]));
    order.extend([("client", within(client)), ("product", within(product))]);
    let mut lead = vec![("name", required_text("Ada Lovelace"))];
    lead.extend(texts(&["phone", "email", "service", "source", "status"]));
    lead.push(("score", meaning(nullable(whole()), "0 if absent.")));
    let mut client = vec![("name", required_text("Ada Lovelace"))];
    client.extend(texts(&["email", "phone", "company", "city"]));
    client.push((
        "isActive",
        json!({"type": ["boolean", "null"], "description": "true if absent."}),
    ));
    let kinds = [
        ("CompanyRecord", "StoredCompany", record(company, &["name"])),
        ("DealRecord", "StoredDeal", record(deal, &["title"])),
        ("ContactRecord", "StoredContact", contact()),
        (
            "OrderRecord",
            "StoredOrder",
            record(order, &["orderNumber", "status", "amount"]),
        ),
        ("LeadRecord", "StoredLead", record(lead, &["name"])),
        ("ClientRecord", "StoredClient", record(client, &["name"])),
    ];
    let mut schemas = vec![("RecordId", answer(vec![("id", string())]))];
    for (sent, kept, shape) in kinds {
        schemas.push((kept, stored(&shape)));
        schemas.push((sent, shape));
    }
    schemas
}

/// A record as returned by reads: all fields are present, null if not given.
fn stored(sent: &Value) -> Value {
    let mut shape = json!({"type": "object", "properties": sent["properties"]});
    let properties = &mut shape["properties"];
    properties["id"] = string();
    properties["createdAt"] = time();
    properties["updatedAt"] = time();
    for (name, kind) in [("score", "integer"), ("isActive", "boolean")] {
        if properties.get(name).is_some() {
            properties[name] = json!({"type": kind});
        }
    }
    let names = shape["properties"].as_object().into_iter();
    shape["required"] = names.flat_map(|fields| fields.keys().cloned()).collect();
    shape
}
