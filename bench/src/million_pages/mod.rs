//! Pages of lists of a million rows of one status, and of all rows, each over the first page by a
//! bare handler with one indexed query of the same table.

mod bare;
mod filled;
mod orders;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::load::{self, Outcome};
use crate::report::Report;
use crate::system::{System, until_ready};

pub(crate) use self::bare::serve as serve_first_page;

const LIMIT: usize = 100;
const PAGES: [usize; 4] = [1, 100, 5_000, 10_000];
const AIM: &str = "2 at most";
const CONNECTIONS: usize = 1;

/// Measures lists with so many rows of one status, and a fifth as many others.
pub(crate) async fn measure(of_status: usize, time: Duration, report: &mut Report) {
    orders::measure(of_status, time, report).await;
    filled::measure(of_status, time, report).await;
}

/// A running query API, and an organization whose lists are read there.
struct Reader<'a> {
    system: &'a System,
    addr: SocketAddr,
    org: &'a str,
    key: &'a str,
}

/// A list of that organization.
struct List {
    /// What is listed, as reports and the bare handler call it.
    of: &'static str,
    path: String,
    /// The parameter that filters by a status, and that status.
    filter: Option<(&'static str, &'static str)>,
    /// The status that all rows of the list have, by which the bare handler filters.
    status: Option<&'static str>,
    /// How many rows it has.
    rows: usize,
}

impl List {
    /// A list of all rows, of which five of six are of a status, and the list of these.
    fn whole_and_part(
        of: &'static str,
        path: &str,
        filter: (&'static str, &'static str),
        rows: usize,
    ) -> [Self; 2] {
        let list = |filter: Option<(_, _)>, rows| Self {
            of,
            path: path.to_owned(),
            filter,
            status: filter.map(|(_, status)| status),
            rows,
        };
        [list(None, rows), list(Some(filter), rows / 6 * 5)]
    }

    /// The pages that it has of those that are measured.
    fn pages(&self) -> impl Iterator<Item = usize> {
        let has = |page: &usize| page * LIMIT <= self.rows;
        PAGES.into_iter().filter(has)
    }

    fn page(&self, number: usize) -> String {
        let page = format!("{}?limit={LIMIT}&page={number}", self.path);
        match self.filter {
            Some((name, status)) => format!("{page}&{name}={status}"),
            None => page,
        }
    }

    /// What the report calls it.
    fn name(&self) -> String {
        match self.filter {
            Some((_, status)) => format!("{} of {status}", self.of),
            None => self.of.to_owned(),
        }
    }
}

impl<'a> Reader<'a> {
    /// Waits until the query API answers.
    async fn ready(system: &'a System, addr: SocketAddr, org: &'a str, key: &'a str) -> Self {
        until_ready(addr).await;
        Self {
            system,
            addr,
            org,
            key,
        }
    }

    /// Compares the answers that a percentage of all did not exceed.
    async fn compare(
        &self,
        list: &List,
        (percent, when): (usize, &str),
        time: Duration,
        report: &mut Report,
    ) {
        let bare = self.bare_first_page(list, time).await;
        for page in list.pages() {
            let request = load::get(&list.page(page), self.key, "");
            let outcome = asked(self.addr, request, time).await;
            report.times(
                &format!("{}, page {page}{when}, p{percent}", list.name()),
                outcome.percentile(percent),
                bare.percentile(percent),
                AIM,
            );
        }
    }

    /// What a bare handler takes for the first page.
    async fn bare_first_page(&self, list: &List, time: Duration) -> Outcome {
        let role = ["--first-page", self.org];
        let bare = self.system.spawn_self(&role).await;
        let request = load::get(&bare::path(list), "none", "");
        asked(bare.addr, request, time).await
    }
}

/// Asks for the same page again and again, after a moment to warm up.
async fn asked(addr: SocketAddr, request: Vec<u8>, time: Duration) -> Outcome {
    let requests = Arc::new(vec![request]);
    load::run(addr, CONNECTIONS, time / 4, "200", requests.clone()).await;
    let outcome = load::run(addr, CONNECTIONS, time, "200", requests).await;
    assert_eq!(outcome.other, 0, "every page is there");
    outcome
}
