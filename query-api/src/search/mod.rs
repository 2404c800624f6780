//! Lists of records that are searched, filtered or sorted.
//!
//! The statements are composed only of the texts in [`kind`], and clients' input is always bound.
//! They are planned anew each time: whether scanning in order or looking up the matches is faster
//! depends on the text.

mod counts;
mod filter;
mod hit;
mod kind;
mod order;
mod page;
mod query;
mod rarest;
mod short;
mod statement;
mod total;
mod turns;

pub(crate) use self::counts::Counts;
pub(crate) use self::hit::Hits;
pub(crate) use self::kind::{CLIENTS, COMPANIES, CONTACTS, DEALS, Kind, LEADS, ORDERS};
pub(crate) use self::query::{Search, anywhere, search_text, text_parameter};
pub(crate) use self::short::{ShortQuery, find_short_page};
pub(crate) use self::statement::Within;
