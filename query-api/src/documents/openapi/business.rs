//! Business data.

use access::Scope;
use serde_json::Value;

use super::Part;
use super::operation::get;
use super::shape::{
    answer, array, day, integer, like, list, meaning, nullable, schema, string, time, whole,
    with_optional, word,
};
use crate::search;

pub(super) const ORDER_STATUSES: &[&str] = &["PAYMENT_PENDING", "ACTIVE", "COMPLETED", "CANCELLED"];

pub(super) fn part() -> Part {
    Part {
        tag: "Business data",
        description: "Orders, leads, clients and their totals. 100 requests per key and clock \
                      minute. The key may be sent as `X-Api-Key` instead.",
        operations: vec![
            get("/api/v1/orders", "listOrders", "List orders")
                .business_key(Scope::ReadOrders)
                .query_value(
                    "status",
                    "Only orders with this status.",
                    word(ORDER_STATUSES),
                )
                .read()
                .paged()
                .searched(&search::ORDERS)
                .answers(200, "Orders, newest first unless sorted.", list("Order")),
            get("/api/v1/leads", "listLeads", "List leads")
                .business_key(Scope::ReadLeads)
                .sought_in("status", "Only leads with this status, whatever its case.")
                .read()
                .paged()
                .searched(&search::LEADS)
                .answers(200, "Leads, newest first unless sorted.", list("Lead")),
            get(
                "/api/v1/analytics",
                "getAnalytics",
                "Read the analytics summary",
            )
            .business_key(Scope::ReadAnalytics)
            .query_value("from", "The series' first day; `to` goes with it.", day())
            .query_value(
                "to",
                "The series' last day. A series has 1,100 steps at most.",
                day(),
            )
            .query_value(
                "by",
                "The series' steps, weeks from Monday on; default `day`.",
                word(&["day", "week", "month"]),
            )
            .query_value(
                "timezone",
                "The IANA time zone in which days begin and end; default `UTC`.",
                like(string(), "Europe/Berlin"),
            )
            .query_value(
                "groupBy",
                "What each step's `groups` are told apart by: the status of orders and leads, the \
                 plan of orders, the source of leads, the city of clients. A series has 10,000 \
                 groups at most.",
                word(&["status", "plan", "source", "city"]),
            )
            .read()
            .refuses(&[400])
            .answers(
                200,
                "The summary, with the series that was asked for.",
                schema("Analytics"),
            ),
            get("/api/v1/clients", "listClients", "List clients")
                .business_key(Scope::ReadClients)
                .sought_in("city", "Only clients of this city, whatever its case.")
                .query_value(
                    "isActive",
                    "Only clients that are active, or only those that are not.",
                    serde_json::json!({"type": "boolean"}),
                )
                .read()
                .paged()
                .searched(&search::CLIENTS)
                .answers(200, "Clients, newest first unless sorted.", list("Client")),
        ],
        schemas: schemas(),
    }
}

fn order_fields() -> Vec<(&'static str, Value)> {
    let client = answer(vec![
        ("name", nullable(string())),
        ("email", nullable(string())),
    ]);
    vec![
        ("id", string()),
        ("orderNumber", like(string(), "WP-00870")),
        ("status", word(ORDER_STATUSES)),
        ("amount", meaning(whole(), "In minor units.")),
        ("plan", nullable(string())),
        ("createdAt", time()),
        ("client", client),
        ("product", answer(vec![("name", nullable(string()))])),
    ]
}

fn money() -> Value {
    meaning(serde_json::json!({"type": "integer"}), "In minor units.")
}

/// A step of the series of analytics.
fn step() -> Value {
    let revenue = || meaning(money(), "Of ACTIVE and COMPLETED orders created in it.");
    let count = || integer(0, i64::MAX);
    let group = answer(vec![
        (
            "value",
            meaning(
                nullable(string()),
                "As it was written, its first 100 characters; null for those that have none.",
            ),
        ),
        ("revenue", revenue()),
        ("orders", count()),
        ("leads", count()),
        ("clients", count()),
    ]);
    with_optional(
        answer(vec![
            (
                "start",
                meaning(day(), "The first day of the step within the span."),
            ),
            ("revenue", revenue()),
            ("orders", count()),
            ("leads", count()),
        ]),
        vec![(
            "groups",
            meaning(
                array(&group),
                "The step by what it has in the field, by value; only with `groupBy`.",
            ),
        )],
    )
}

fn schemas() -> Vec<(&'static str, Value)> {
    let optional = || nullable(string());
    let month = serde_json::json!({"type": "string", "pattern": r"^\d{4}-\d{2}$"});
    let mut months = array(&answer(vec![("month", month), ("revenue", money())]));
    months["minItems"] = 12.into();
    months["maxItems"] = 12.into();
    vec![
        ("Order", answer(order_fields())),
        (
            "Lead",
            answer(vec![
                ("id", string()),
                ("name", string()),
                ("phone", optional()),
                ("email", optional()),
                ("service", optional()),
                ("source", optional()),
                ("status", optional()),
                ("score", whole()),
                ("createdAt", time()),
            ]),
        ),
        (
            "Client",
            answer(vec![
                ("id", string()),
                ("name", string()),
                ("email", optional()),
                ("phone", optional()),
                ("company", optional()),
                ("city", optional()),
                ("isActive", serde_json::json!({"type": "boolean"})),
                ("createdAt", time()),
            ]),
        ),
        (
            "Analytics",
            with_optional(
                answer(vec![
                    (
                        "totalRevenue",
                        meaning(
                            money(),
                            "Revenue of ACTIVE and COMPLETED orders, in minor units (cents).",
                        ),
                    ),
                    ("totalOrders", integer(0, i64::MAX)),
                    ("totalLeads", integer(0, i64::MAX)),
                    (
                        "conversionRate",
                        meaning(
                            serde_json::json!({"type": "number"}),
                            "100 × totalOrders ÷ totalLeads, rounded to two decimals; 0 without \
                         leads.",
                        ),
                    ),
                    (
                        "monthlyRevenue",
                        meaning(
                            months,
                            "The last 12 months including this one (UTC), oldest first.",
                        ),
                    ),
                ]),
                vec![(
                    "series",
                    meaning(
                        array(&step()),
                        "Step by step, oldest first; only with `from` and `to`.",
                    ),
                )],
            ),
        ),
    ]
}
