//! Pages whose items are too large to be held in memory together.

use std::future::ready;

use axum::body::Body;
use axum::http::Uri;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use service::HttpError;

use super::{Listed, Page, respond};

impl Page {
    /// Returns a response like [`Self::answer`]'s, for which the items at these places are read and
    /// sent one after the other. Those that are gone by then are left out. If one cannot be read,
    /// the connection breaks off, so that no client mistakes a part for the whole.
    pub(crate) fn answer_one_by_one<T, F>(
        &self,
        uri: &Uri,
        mut places: Vec<T>,
        total: i64,
        read: impl Fn(T) -> F + Send + 'static,
    ) -> Response
    where
        T: Listed + Send + 'static,
        F: Future<Output = Result<Option<Vec<u8>>, HttpError>> + Send + 'static,
    {
        let total = self.total(places.is_empty(), total);
        let next = self.next_link(uri, &mut places);
        let items = stream::iter(places).then(read);
        let items = items.try_filter_map(|item| ready(Ok(item)));
        let items = items.enumerate().map(|(nth, item)| {
            let between: &[u8] = if nth == 0 { b"" } else { b"," };
            item.map(|item: Vec<u8>| Bytes::from([between, &item].concat()))
        });
        let items =
            items.inspect_err(|error| tracing::error!(%error, "A list was cut off on its way"));
        let (page, limit) = (self.number, self.limit);
        let end = format!("],\"total\":{total},\"page\":{page},\"limit\":{limit}}}");
        let begin = stream::once(ready(Ok(Bytes::from_static(b"{\"data\":["))));
        let end = stream::once(ready(Ok(Bytes::from(end))));
        respond(Body::from_stream(begin.chain(items).chain(end)), next)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::header;
    use chrono::{DateTime, Utc};
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::paging::Parameters;

    #[derive(Clone, Serialize)]
    struct Item(&'static str);

    impl Listed for Item {
        fn created_at(&self) -> DateTime<Utc> {
            DateTime::UNIX_EPOCH
        }

        fn id(&self) -> &str {
            self.0
        }
    }

    const ITEMS: [Item; 4] = [Item("a"), Item("gone"), Item("b"), Item("c")];

    /// Reads an item, unless it is gone.
    async fn read(item: Item) -> Result<Option<Vec<u8>>, HttpError> {
        match item.0 {
            "gone" => Ok(None),
            "broken" => Err(HttpError::not_found("broken")),
            _ => Ok(Some(serde_json::to_vec(&item).unwrap())),
        }
    }

    fn answer(query: &str, items: &[Item]) -> Response {
        let uri: Uri = format!("/list{query}").parse().unwrap();
        let parameters = Parameters::of(&uri).unwrap();
        let page = Page::from_parameters(&parameters).unwrap();
        page.answer_one_by_one(&uri, items.to_vec(), 9, read)
    }

    async fn body(response: Response) -> Option<Value> {
        let bytes = to_bytes(response.into_body(), 1 << 20).await.ok()?;
        Some(serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn what_is_sent_one_by_one_looks_like_any_page() {
        let first = answer("?limit=3", &ITEMS);
        assert_eq!(first.headers()[header::CONTENT_TYPE], "application/json");
        let link = first.headers()[header::LINK].to_str().unwrap().to_owned();
        assert!(link.contains("cursor="), "{link}");
        let sent = json!({"data": ["a", "b"], "total": 9, "page": 1, "limit": 3});
        assert_eq!(body(first).await, Some(sent));

        let last = answer("?limit=4&page=2", &ITEMS);
        assert!(!last.headers().contains_key(header::LINK));
        let sent = json!({"data": ["a", "b", "c"], "total": 9, "page": 2, "limit": 4});
        assert_eq!(body(last).await, Some(sent));
        let none = json!({"data": [], "total": 4, "page": 2, "limit": 4});
        assert_eq!(body(answer("?limit=4&page=2", &[])).await, Some(none));
    }

    #[tokio::test]
    async fn a_part_is_not_taken_for_the_whole() {
        let items = [Item("a"), Item("broken"), Item("b")];
        assert_eq!(body(answer("", &items)).await, None);
    }
}
