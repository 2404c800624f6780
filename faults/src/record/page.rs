//! The record as a self-contained page.

use std::fmt::Write as _;

use super::plot::{Band, Plots, Series};
use super::{Record, Second};
use crate::Deed;

const STYLE: &str = "\
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}
body{max-width:70rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2rem 0 .3rem}
svg{display:block;width:100%}
svg text{font-size:11px;fill:GrayText;text-anchor:middle}svg text.most{text-anchor:end}
svg path{fill:none;stroke-width:1.5}svg path.axis{stroke:GrayText;stroke-width:1}
.band{fill:#d9a406;opacity:.22}.band:hover{opacity:.5}
.acknowledged{fill:#2f7d4f;color:#2f7d4f}.refused{fill:#6b7fb3;color:#6b7fb3}
.unknown{fill:#c2412d;color:#c2412d}
path.p50{stroke:#2f7d4f}path.p99{stroke:#c2412d}path.lag{stroke:#3b63c4}
.p50{color:#2f7d4f}.p99{color:#c2412d}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;
padding:.15rem .8rem .15rem 0;border-bottom:1px solid #8884}td.number{text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}
.wrong{color:#c2412d;font-weight:600}code{overflow-wrap:anywhere}";

/// Escapes text for HTML.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The whole page.
pub(super) fn page(record: &Record) -> String {
    let seed = record.options.seed;
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Under faults, seed {seed}</title>\n<style>{STYLE}</style>\n"
    );
    head(record, &mut page);
    findings(record, &mut page);
    plots(record, &mut page);
    deeds(record, &mut page);
    checks(record, &mut page);
    page.push_str("</html>\n");
    page
}

fn head(record: &Record, page: &mut String) {
    let options = &record.options;
    let crowd = if options.hostile {
        "beside a hostile crowd"
    } else {
        "without a hostile crowd"
    };
    let deeds = Deed::possible(options);
    let chosen: Vec<_> = deeds.iter().map(ToString::to_string).collect();
    let _ = write!(
        page,
        "<h1>Under faults for {:.0} s</h1>\n<p>Seed {}, begun {}, NATS servers: {}, {crowd}. \
         Deeds to choose from: {}.</p>\n",
        record.raged,
        options.seed,
        escaped(&record.began()),
        options.nats,
        escaped(&chosen.join(", "))
    );
}

fn findings(record: &Record, page: &mut String) {
    let wrong = &record.findings.wrong;
    if wrong.is_empty() {
        page.push_str("<p>Nothing lost, nothing doubled, nothing differs.</p>\n");
        return;
    }
    let _ = write!(
        page,
        "<h2 class=\"wrong\">Wrong: {}</h2>\n<table>",
        wrong.len()
    );
    page.push_str("<tr><th>not so<th>where<th>expected<th>found</tr>\n");
    for one in wrong {
        let _ = writeln!(
            page,
            "<tr><td>{}<td><code>{}</code><td><code>{}</code><td><code>{}</code></tr>",
            escaped(one.check),
            escaped(&one.what),
            escaped(&one.expected),
            escaped(&one.found)
        );
    }
    page.push_str("</table>\n");
}

fn plots(record: &Record, page: &mut String) {
    let bands = record.deeds.iter().map(|done| Band {
        from: done.from,
        to: done.to,
        title: format!("{:.1} s: {}: {}", done.from, done.deed, done.what),
    });
    let ends = record.deeds.iter().map(|done| done.to);
    let ends = ends.chain(record.seconds.iter().map(|second| second.begins() + 1.0));
    let ends = ends.chain(record.lag.iter().map(|lag| lag.seconds));
    let plots = Plots {
        seconds: ends.fold(record.raged, f64::max),
        bands: bands.collect(),
    };
    let of = |class, value: fn(&Second) -> f64| Series {
        class,
        points: record
            .seconds
            .iter()
            .filter(|second| second.sent() > 0.0)
            .map(|second| (second.begins(), value(second)))
            .collect(),
    };
    let outcomes = [
        of("acknowledged", |second| count(second.acknowledged)),
        of("refused", |second| count(second.refused)),
        of("unknown", |second| count(second.unknown)),
    ];
    let _ = write!(
        page,
        "<h2>Attempts at commands, by the second in which they were sent</h2>\
         <p><span class=\"acknowledged\">acknowledged</span>, \
         <span class=\"refused\">refused</span>, <span class=\"unknown\">unknown</span>; \
         what was done stands behind, and says so where one points at it.</p>\n{}\n",
        plots.bars(&outcomes)
    );
    let latencies = [
        of("p99", |second| second.p99_ms),
        of("p50", |second| second.p50_ms),
    ];
    let _ = write!(
        page,
        "<h2>How long attempts took, in ms</h2><p><span class=\"p50\">half</span> took no longer, \
         <span class=\"p99\">99 of 100</span> took no longer.</p>\n{}\n",
        plots.lines(&latencies)
    );
    let points = record.lag.iter();
    let points = points.map(|lag| (lag.seconds, count_of(lag.events)));
    let lag = Series {
        class: "lag",
        points: points.collect(),
    };
    let _ = write!(
        page,
        "<h2>Events that the slowest read model had not folded</h2><p>A gap is a time in which \
         NATS or Postgres did not answer.</p>\n{}\n",
        plots.lines(&[lag])
    );
}

fn deeds(record: &Record, page: &mut String) {
    page.push_str(
        "<h2>What was done</h2>\n<table><tr><th>at, s<th>for, s<th>deed<th>to whom</tr>\n",
    );
    for done in &record.deeds {
        let _ = writeln!(
            page,
            "<tr><td class=\"number\">{:.2}<td class=\"number\">{:.2}<td>{}<td>{}</tr>",
            done.from,
            done.to - done.from,
            escaped(&done.deed),
            escaped(&done.what)
        );
    }
    page.push_str("</table>\n");
}

fn checks(record: &Record, page: &mut String) {
    page.push_str("<h2>What was checked</h2>\n<table><tr><th>things<th>check</tr>\n");
    for (check, count) in &record.findings.counts {
        let check = escaped(check);
        let _ = writeln!(page, "<tr><td class=\"number\">{count}<td>{check}</tr>");
    }
    page.push_str("</table>\n");
}

/// A number for a plot, in which exceeding `u32` makes no difference.
fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

fn count_of(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

impl Second {
    fn begins(&self) -> f64 {
        count(self.nth)
    }

    fn sent(&self) -> f64 {
        count(self.acknowledged + self.refused + self.unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::{Began, Done, Lag};
    use super::*;
    use crate::Options;
    use crate::check::{Findings, Wrong};

    #[test]
    fn findings_and_deeds_are_shown_on_the_page_as_text() {
        let mut findings = Findings::default();
        findings.wrong.push(Wrong {
            check: "a check",
            what: "<script>alert('1')</script>".to_owned(),
            expected: "\"a\" & b".to_owned(),
            found: "c".to_owned(),
        });
        let record = Record {
            options: Options::default(),
            began: Began {
                by_clock: chrono::DateTime::UNIX_EPOCH,
                at: Instant::now(),
            },
            raged: 3.0,
            deeds: vec![Done {
                round: 1,
                deed: "kill".to_owned(),
                what: "NATS".to_owned(),
                from: 1.0,
                to: 2.5,
            }],
            seconds: vec![Second {
                acknowledged: 2,
                ..Second::default()
            }],
            lag: vec![Lag {
                seconds: 1.0,
                events: 7,
            }],
            findings,
        };
        let page = page(&record);
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(&#39;1&#39;)"), "{page}");
        assert!(page.contains("&quot;a&quot; &amp; b"), "{page}");
        assert!(
            page.contains(">1.00<td class=\"number\">1.50<td>kill<td>NATS"),
            "{page}"
        );
    }
}
