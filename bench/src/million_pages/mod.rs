//! Pages of lists of a million rows of one status, and of all rows, each over the first page from a
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

/// How pages are measured.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// How long a page is measured, all rounds together.
    pub(crate) time: Duration,
    /// Rounds in which the bare handler and the page take turns: the machine's speed changes
    /// within a minute by more than what separates two pages.
    pub(crate) rounds: usize,
}

/// Measures lists with `of_status` rows of one status, and a fifth as many others.
pub(crate) async fn measure(of_status: usize, sample: Sample, report: &mut Report) {
    orders::measure(of_status, sample, report).await;
    filled::measure(of_status, sample, report).await;
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
    /// The name of the list in reports and in the bare handler.
    of: &'static str,
    path: String,
    /// The parameter that filters by a status, and that status.
    filter: Option<(&'static str, &'static str)>,
    /// The status that all rows of the list have, by which the bare handler filters.
    status: Option<&'static str>,
    /// Number of rows.
    rows: usize,
}

impl List {
    /// A list of all rows, of which five of six have a status, and the list of these.
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

    /// The measured pages that the list has.
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

    /// Its name in reports.
    fn name(&self) -> String {
        match self.filter {
            Some((_, status)) => format!("{} of {status}", self.of),
            None => self.of.to_owned(),
        }
    }
}

impl<'a> Reader<'a> {
    /// Waits until the query API is ready.
    async fn ready(system: &'a System, addr: SocketAddr, org: &'a str, key: &'a str) -> Self {
        until_ready(addr).await;
        Self {
            system,
            addr,
            org,
            key,
        }
    }

    /// Compares the latency that `percent` of the responses did not exceed.
    async fn compare(
        &self,
        list: &List,
        (percent, when): (usize, &str),
        sample: Sample,
        report: &mut Report,
    ) {
        let role = ["--first-page", self.org];
        let bare = self.system.spawn_self(&role).await;
        let bare_request = Arc::new(vec![load::get(&bare::path(list), "none", "")]);
        for page in list.pages() {
            let request = Arc::new(vec![load::get(&list.page(page), self.key, "")]);
            let mut pairs = Vec::new();
            for _ in 0..sample.rounds {
                let first = asked(bare.addr, &bare_request, sample).await;
                let ours = asked(self.addr, &request, sample).await;
                pairs.push((ours.percentile(percent), first.percentile(percent)));
            }
            let what = format!("{}, page {page}{when}, p{percent}", list.name());
            report.times(&what, &pairs, AIM);
        }
    }
}

/// Requests the same page repeatedly, after a short warm-up.
async fn asked(addr: SocketAddr, requests: &Arc<Vec<Vec<u8>>>, sample: Sample) -> Outcome {
    let rounds = u32::try_from(sample.rounds).expect("few rounds");
    let time = sample.time / rounds;
    load::run(addr, CONNECTIONS, time / 4, "200", requests.clone()).await;
    let outcome = load::run(addr, CONNECTIONS, time, "200", requests.clone()).await;
    assert_eq!(outcome.other, 0, "every page is there");
    outcome
}
