//! Lists: the requested part, and the envelope of its response.
//!
//! A list is ordered newest first, then by id, unless another order is requested. A page is found
//! by its number, or by the cursor that the previous page returned. Both cost the same at any depth
//! of the list.

mod cursor;
mod find;
mod merged;
mod one_by_one;
mod parameters;
mod sort;

use axum::body::Body;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use serde::Serialize;
use service::HttpError;

use self::cursor::Cursor;
pub(crate) use self::cursor::{Grouping, SortKey, Sorted};
pub(crate) use self::find::{find_page, read_page, take_rows};
pub(crate) use self::merged::{Block, Window, time};
pub(crate) use self::parameters::{Parameters, time_of, wrong};
pub(crate) use self::sort::{BY_TIME, BY_TIME_AND_NAME, Sort, Sorts};

/// Items per page by default.
pub(crate) const DEFAULT_LIMIT: i64 = 20;
const MAX_LIMIT: i64 = 100;
/// Past the end of any list, and far from where sums with it exceed the range of a bigint.
const MAX_OFFSET: i64 = 1 << 60;
/// The room that is reserved for an item's JSON.
const ITEM_BYTES: usize = 320;

/// The requested part of a list.
#[derive(Debug)]
pub(crate) struct Page {
    number: i64,
    limit: i64,
    cursor: Option<Cursor>,
}

/// An item of a list.
pub(crate) trait Listed: Serialize {
    /// The time of its creation, by which lists are ordered.
    fn created_at(&self) -> DateTime<Utc>;
    /// Its id, by which lists are ordered next.
    fn id(&self) -> &str;
    /// Its key in a list that may have another order.
    fn sort_key(&self) -> SortKey {
        SortKey::Created(self.created_at())
    }
}

#[derive(Serialize)]
struct Envelope<T> {
    data: Vec<T>,
    total: i64,
    page: i64,
    limit: i64,
}

impl Page {
    /// Returns the page that a request asks for of a list that is always ordered newest first.
    pub(crate) fn from_parameters(parameters: &Parameters) -> Result<Self, HttpError> {
        sort::newest_first(parameters)?;
        Self::asked_in(parameters, Sorted::Created, DEFAULT_LIMIT)
    }

    /// Returns the page that a request asks for of a list in some order, with `limit` items unless
    /// the request names another number.
    pub(crate) fn asked_in(
        parameters: &Parameters,
        sorted: Sorted,
        limit: i64,
    ) -> Result<Self, HttpError> {
        let limit = parameters.count("limit", limit)?;
        if limit > MAX_LIMIT {
            let message = format!("limit: must be {MAX_LIMIT} or less, not {limit}");
            return Err(HttpError::bad_request(message));
        }
        let number = parameters.count("page", 1)?;
        let Some(text) = parameters.one("cursor")? else {
            let cursor = None;
            return Ok(Self {
                number,
                limit,
                cursor,
            });
        };
        if parameters.one("page")?.is_some() {
            return Err(HttpError::bad_request(
                "page and cursor cannot be given together",
            ));
        }
        let cursor = Cursor::decode(text);
        let cursor = cursor.filter(|cursor| cursor.sort_key.sorted() == sorted);
        let cursor = cursor.ok_or_else(|| {
            HttpError::bad_request("cursor: not a cursor from this list's Link header")
        })?;
        Ok(Self {
            number: cursor.page,
            limit,
            cursor: Some(cursor),
        })
    }

    /// The start of the page: items of this time or earlier, those of this time only if their id is
    /// later than [`Self::after_id`]. `None` for a page that is found by its number.
    pub(crate) fn after_time(&self) -> Option<DateTime<Utc>> {
        match self.cursor.as_ref()?.sort_key {
            SortKey::Created(time) => Some(time),
            SortKey::Name(_) | SortKey::Amount(_) | SortKey::Grouped(..) => None,
        }
    }

    /// The start of a page of a list that is ordered by name: items of this name or of one further
    /// on, those of this name only if their id is later than [`Self::after_id`].
    pub(crate) fn after_name(&self) -> Option<&str> {
        match &self.cursor.as_ref()?.sort_key {
            SortKey::Name(name) => Some(name),
            SortKey::Created(_) | SortKey::Amount(_) | SortKey::Grouped(..) => None,
        }
    }

    /// The item after which the page begins: its key and its id. `None` for a page that is found by
    /// its number.
    pub(crate) fn after(&self) -> Option<(&SortKey, &str)> {
        let cursor = self.cursor.as_ref()?;
        Some((&cursor.sort_key, &cursor.id))
    }

    /// The number of the page, from 1.
    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    /// See [`Self::after_time`].
    pub(crate) fn after_id(&self) -> &str {
        self.cursor.as_ref().map_or("", |cursor| &cursor.id)
    }

    /// The smallest id that the page's first item may have, if it has the time of
    /// [`Self::after_time`].
    pub(crate) fn least_id(&self) -> String {
        // The smallest text after the cursor's id.
        let behind = |cursor: &Cursor| format!("{}\u{1}", cursor.id);
        self.cursor.as_ref().map(behind).unwrap_or_default()
    }

    /// The number of items to skip from there.
    pub(crate) fn offset(&self) -> i64 {
        match self.cursor {
            None => (self.number - 1).saturating_mul(self.limit).min(MAX_OFFSET),
            Some(_) => 0,
        }
    }

    /// The number of items to fetch: one more than are shown, to see whether there is a next page.
    pub(crate) fn fetched(&self) -> i64 {
        self.limit + 1
    }

    /// Returns the address of the next page, if there is one. Removes the item that shows it.
    pub(crate) fn next_link<T: Listed>(&self, uri: &Uri, data: &mut Vec<T>) -> Option<String> {
        let shown = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let goes_on = data.len() > shown;
        data.truncate(shown);
        let last = data.last().filter(|_| goes_on);
        last.map(|last| self.link_behind(uri, last))
    }

    /// Returns the address of the items after an item of this page.
    pub(crate) fn link_behind<T: Listed>(&self, uri: &Uri, last: &T) -> String {
        let next = Cursor {
            page: self.number.saturating_add(1),
            sort_key: last.sort_key(),
            id: last.id().to_owned(),
        };
        next_address(uri, &next)
    }

    /// Returns the size of the whole list. If a page is empty, the count is slightly newer than the
    /// page, but the list ended before the page when it was read.
    fn total(&self, is_empty: bool, counted: i64) -> i64 {
        match &self.cursor {
            None if is_empty => counted.min(self.offset()),
            _ => counted,
        }
    }

    /// Returns a response with the page: the fetched items, of `total` in the whole list.
    pub(crate) fn answer<T: Listed>(&self, uri: &Uri, mut data: Vec<T>, total: i64) -> Response {
        let total = self.total(data.is_empty(), total);
        let next = self.next_link(uri, &mut data);
        let envelope = Envelope {
            data,
            total,
            page: self.number,
            limit: self.limit,
        };
        // Written to a vector of about the right size: `Json` lets its buffer grow from 128 bytes.
        let mut body = Vec::with_capacity(ITEM_BYTES * (1 + envelope.data.len()));
        if let Err(error) = serde_json::to_writer(&mut body, &envelope) {
            return HttpError::internal(error).into_response();
        }
        respond(body.into(), next)
    }
}

/// Returns a response with a page, and with the address of the next one.
fn respond(body: Body, next: Option<String>) -> Response {
    let json = HeaderValue::from_static("application/json");
    let mut response = ([(header::CONTENT_TYPE, json)], body).into_response();
    let link = next.and_then(|next| HeaderValue::try_from(format!("<{next}>; rel=\"next\"")).ok());
    if let Some(link) = link {
        response.headers_mut().insert(header::LINK, link);
    }
    response
}

/// Returns the address of the next page: this one's, except for its place in the list.
fn next_address(uri: &Uri, next: &Cursor) -> String {
    let mut address = format!("{}?", uri.path());
    let kept = uri.query().unwrap_or_default().split('&').filter(|part| {
        let name = part.split('=').next().unwrap_or_default();
        !matches!(name, "" | "page" | "cursor")
    });
    for part in kept {
        address.push_str(part);
        address.push('&');
    }
    address.push_str("cursor=");
    address.push_str(&next.encode());
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<Page, String> {
        let uri: Uri = format!("/list{query}").parse().unwrap();
        Parameters::of(&uri)
            .and_then(|parameters| Page::from_parameters(&parameters))
            .map_err(|error| error.message.into_owned())
    }

    #[test]
    fn a_page_is_the_first_of_twenty_unless_said_otherwise() {
        let page = asked("").unwrap();
        assert_eq!((page.offset(), page.limit), (0, 20));
        let page = asked("?limit=100&page=3&other=x").unwrap();
        assert_eq!((page.offset(), page.limit), (200, 100));
    }

    #[test]
    fn an_empty_page_does_not_count_what_came_after_it_was_read() {
        assert_eq!(asked("").unwrap().total(true, 1), 0);
        let third = asked("?limit=10&page=3").unwrap();
        assert_eq!((third.total(true, 7), third.total(true, 21)), (7, 20));
        assert_eq!(third.total(false, 21), 21);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (query, word) in [
            ("?limit=0", "limit"),
            ("?limit=101", "limit"),
            ("?limit=-1", "limit"),
            ("?limit=ten", "limit"),
            ("?limit=", "limit"),
            ("?limit=1.5", "limit"),
            ("?limit=99999999999999999999", "limit"),
            ("?limit=1&limit=2", "limit"),
            ("?page=0", "page"),
            ("?page=x", "page"),
            ("?page=-99999999999999999999", "page"),
            ("?cursor=x", "cursor"),
            ("?page=1&cursor=x", "page and cursor"),
            ("?sort=name", "sort"),
            ("?sort=createdAt", "sort"),
            ("?sort=", "sort"),
        ] {
            let message = asked(query).unwrap_err();
            assert!(message.starts_with(word), "{query}: {message}");
        }
    }

    #[test]
    fn a_page_beyond_all_numbers_is_past_the_end() {
        let page = asked("?page=99999999999999999999").unwrap();
        assert_eq!(page.offset(), MAX_OFFSET);
    }

    #[test]
    fn the_next_page_keeps_all_other_parameters() {
        let next = Cursor {
            page: 2,
            sort_key: SortKey::Created(DateTime::UNIX_EPOCH),
            id: "a".to_owned(),
        };
        let uri: Uri = "/a%20b?state=FAILED&page=1&limit=5".parse().unwrap();
        let address = next_address(&uri, &next);
        let page = asked(address.split_once("/a%20b").unwrap().1).unwrap();
        assert_eq!(page.cursor, Some(next));
        assert_eq!(page.limit, 5);
        assert!(address.contains("state=FAILED"), "{address}");
    }
}
