//! One operation: its parameters, authorized callers and responses.

use std::borrow::Cow;

use access::{Api, Scope};
use serde_json::{Map, Value, json};

use super::shape::{headers, refer, sought};
use crate::paging::Sorts;
use crate::search;

const SORT: &str = "What the list is ordered by, ascending; descending after a `-`. Items that are \
                    equal in `createdAt`, `name` or `amount` are ordered by `id`; those that are \
                    equal in another field have the newest first, and after a `-` last.";

const SHORT_SORT: &str = "What the list is ordered by, ascending; descending after a `-`. Items \
                          that are equal in it are ordered by their id.";

/// The authorized callers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Caller {
    /// Anybody.
    Anybody,
    /// An API key with a scope.
    Key(Scope, Api),
    /// A person with an access token; the request is counted.
    Person,
    /// A person with an access token; the request is not counted.
    Uncounted,
    /// A person, or an anonymous caller.
    Perhaps,
}

/// An operation being built.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: Cow<'static, str>,
    pub(super) id: Cow<'static, str>,
    summary: Cow<'static, str>,
    description: Option<&'static str>,
    caller: Caller,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Vec<(u16, Value)>,
    answer_headers: Vec<&'static str>,
    refusals: Vec<u16>,
}

macro_rules! methods {
    ($($method:ident),+) => {$(
        pub(super) fn $method(
            path: impl Into<Cow<'static, str>>,
            id: impl Into<Cow<'static, str>>,
            summary: impl Into<Cow<'static, str>>,
        ) -> Operation {
            Operation::new(stringify!($method), path.into(), id.into(), summary.into())
        }
    )+};
}

methods!(get, post, put, patch, delete);

impl Operation {
    fn new(
        method: &'static str,
        path: Cow<'static, str>,
        id: Cow<'static, str>,
        summary: Cow<'static, str>,
    ) -> Self {
        Self {
            method,
            path,
            id,
            summary,
            description: None,
            caller: Caller::Anybody,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            answer_headers: Vec::new(),
            refusals: Vec::new(),
        }
    }

    pub(super) fn says(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// Requires an API key with this scope.
    pub(super) fn key(self, scope: Scope) -> Self {
        self.by(Caller::Key(scope, Api::Waypost))
            .refuses(&[401, 403, 429])
    }

    /// Like [`Self::key`], on the API that counts per minute and also accepts `X-Api-Key`.
    pub(super) fn business_key(self, scope: Scope) -> Self {
        self.by(Caller::Key(scope, Api::BusinessData))
            .refuses(&[401, 403, 429])
    }

    pub(super) fn person(self) -> Self {
        self.by(Caller::Person).refuses(&[401, 429])
    }

    pub(super) fn by(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Reads from the read models, and may be asked to wait for a position.
    pub(super) fn read(self) -> Self {
        self.parameter(refer("parameters", "MinPosition"))
            .refuses(&[400, 500, 503])
    }

    /// Returns a page of a list.
    pub(super) fn paged(self) -> Self {
        let paging = ["Limit", "Page", "Cursor"];
        let paged = paging.into_iter().fold(self, |operation, name| {
            operation.parameter(refer("parameters", name))
        });
        paged.answer_header("Link")
    }

    /// Its list can be searched, sorted by these fields, and limited to a span of time.
    pub(super) fn searched(self, kind: &search::Kind) -> Self {
        let filters = ["CreatedFrom", "CreatedBefore", "Search"];
        let searched = filters.into_iter().fold(self, |operation, name| {
            operation.parameter(refer("parameters", name))
        });
        searched.query_value("sort", SORT, sort_words(&kind.sorts()))
    }

    /// Its list, which is short, can be searched by a text and sorted.
    pub(super) fn sought_and_sorted(self, description: &str, sorts: &Sorts) -> Self {
        let sought = self.sought(description);
        sought.query_value("sort", SHORT_SORT, sort_words(sorts))
    }

    /// Its list can be searched by a text.
    pub(super) fn sought(self, description: &str) -> Self {
        self.sought_in("q", description)
    }

    /// Its list can be filtered by the content of a field.
    pub(super) fn sought_in(self, field: &str, description: &str) -> Self {
        self.query_value(field, description, sought())
    }

    /// Appends to the log.
    pub(super) fn command(self) -> Self {
        self.answer_header("Waypost-Position").refuses(&[500, 503])
    }

    /// Can be repeated under an `Idempotency-Key`.
    pub(super) fn idempotent(self) -> Self {
        self.parameter(refer("parameters", "IdempotencyKey"))
            .refuses(&[400, 409])
    }

    /// Is refused if the caller has not seen the current state of what it changes.
    pub(super) fn conditional(self) -> Self {
        self.parameter(refer("parameters", "IfMatch"))
            .refuses(&[400, 412])
    }

    /// Is also refused if the caller expects that nothing exists yet.
    pub(super) fn creates(self) -> Self {
        self.parameter(refer("parameters", "IfNoneMatch"))
            .conditional()
    }

    pub(super) fn parameter(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// A parameter in the path: any text unless `schema` restricts it.
    pub(super) fn path_value(self, name: &str, description: &str, schema: Value) -> Self {
        self.parameter(json!({
            "name": name, "in": "path", "required": true, "description": description,
            "schema": schema,
        }))
    }

    pub(super) fn query_value(self, name: &str, description: &str, schema: Value) -> Self {
        self.parameter(json!({
            "name": name, "in": "query", "description": description, "schema": schema,
        }))
    }

    /// A required JSON body.
    pub(super) fn takes(self, schema: &str) -> Self {
        self.body(json!({
            "required": true,
            "content": {"application/json": {"schema": refer("schemas", schema)}},
        }))
        .refuses(&[400, 413, 415])
    }

    pub(super) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// A JSON response.
    pub(super) fn answers(self, status: u16, description: &str, schema: Value) -> Self {
        self.answers_with(
            status,
            description,
            json!({"application/json": {"schema": schema}}),
        )
    }

    /// A response of other content types.
    pub(super) fn answers_with(mut self, status: u16, description: &str, content: Value) -> Self {
        let answer = json!({"description": description, "content": content});
        self.answers.push((status, answer));
        self
    }

    pub(super) fn answers_nothing(mut self, status: u16, description: &str) -> Self {
        self.answers
            .push((status, json!({"description": description})));
        self
    }

    /// A header of the responses above.
    pub(super) fn answer_header(mut self, name: &'static str) -> Self {
        self.answer_headers.push(name);
        self
    }

    pub(super) fn refuses(mut self, statuses: &[u16]) -> Self {
        for status in statuses {
            if !self.refusals.contains(status) {
                self.refusals.push(*status);
            }
            // A body that may be too large may also arrive too slowly.
            if *status == 413 && !self.refusals.contains(&408) {
                self.refusals.push(408);
            }
        }
        self
    }

    fn is_counted(&self) -> bool {
        matches!(
            self.caller,
            Caller::Key(..) | Caller::Person | Caller::Perhaps
        )
    }

    pub(super) fn write(mut self, tag: &str) -> Value {
        let counted = self.is_counted();
        self.refusals.sort_unstable();
        let mut object = Map::new();
        object.insert("operationId".to_owned(), self.id.as_ref().into());
        object.insert("tags".to_owned(), json!([tag]));
        object.insert("summary".to_owned(), self.summary.as_ref().into());
        if let Some(description) = self.description {
            object.insert("description".to_owned(), description.into());
        }
        if let Caller::Key(scope, _) = self.caller {
            object.insert("x-scope".to_owned(), scope.as_str().into());
        }
        object.insert("security".to_owned(), security(self.caller));
        if !self.parameters.is_empty() {
            object.insert("parameters".to_owned(), self.parameters.into());
        }
        if let Some(body) = self.body {
            object.insert("requestBody".to_owned(), body);
        }
        let headers = headers(&self.answer_headers, counted);
        let mut responses = Map::new();
        for (status, mut answer) in self.answers {
            if !headers.is_empty() {
                answer["headers"] = headers.clone().into();
            }
            responses.insert(status.to_string(), answer);
        }
        for status in self.refusals {
            let name = super::refusals::name(status, counted);
            responses.insert(status.to_string(), refer("responses", &name));
        }
        object.insert("responses".to_owned(), responses.into());
        object.into()
    }
}

/// The values of `sort` that ask for these orders.
fn sort_words(sorts: &Sorts) -> Value {
    let both = sorts
        .iter()
        .flat_map(|(word, _)| [(*word).to_owned(), format!("-{word}")]);
    let words: Vec<_> = both.collect();
    json!({"type": "string", "enum": words, "default": "-createdAt"})
}

fn security(caller: Caller) -> Value {
    match caller {
        Caller::Anybody => json!([]),
        Caller::Key(_, Api::Waypost) => json!([{"apiKey": []}]),
        Caller::Key(_, Api::BusinessData) => json!([{"apiKey": []}, {"apiKeyHeader": []}]),
        Caller::Person | Caller::Uncounted => json!([{"accessToken": []}]),
        Caller::Perhaps => json!([{}, {"accessToken": []}]),
    }
}
