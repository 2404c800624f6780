//! Lists of records that are searched, filtered or sorted.
//!
//! The statements are put together from the texts in [`kind`] alone; whatever a client gives is
//! bound. They are planned anew each time: whether walking along an order or looking up what was
//! asked for is quicker depends on the text.

mod asked;
mod counts;
mod filter;
mod hit;
mod kind;
mod order;
mod rarest;
mod statement;
mod total;

pub(crate) use self::asked::{Search, anywhere, asked_text, asked_words};
pub(crate) use self::counts::Counts;
pub(crate) use self::hit::Hits;
pub(crate) use self::kind::{CLIENTS, COMPANIES, CONTACTS, DEALS, Kind, LEADS, ORDERS};
pub(crate) use self::statement::Within;
