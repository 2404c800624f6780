//! The results, as a table.

use std::time::Duration;

/// Rows of figures, printed at the end.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<[String; 5]>,
    /// Prefix of each row's name.
    scope: &'static str,
}

impl Report {
    /// Sets the prefix of all further rows.
    pub(crate) fn within(&mut self, scope: &'static str) {
        self.scope = scope;
    }

    /// A rate of ours against another, both per second; the ratios are those of each round.
    pub(crate) fn rate(&mut self, what: &str, pairs: &[(f64, f64)], aim: &str) {
        let [ours, other, ratio] = medians(pairs.iter().copied());
        let row = [
            format!("{ours:.0}/s"),
            format!("{other:.0}/s"),
            format!("{ratio:.2}"),
        ];
        self.push(what, row, aim);
    }

    /// A time, without comparison.
    pub(crate) fn time(&mut self, what: &str, time: Duration, aim: &str) {
        let milliseconds = format!("{:.2} ms", time.as_secs_f64() * 1000.0);
        self.push(what, [milliseconds, String::new(), String::new()], aim);
    }

    /// A count, without comparison, and the total time.
    pub(crate) fn count(&mut self, what: &str, count: usize, time: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "counts of a bench are small")]
        let rate = count as f64 / time.as_secs_f64();
        let figure = format!("{count} in {:.1} s, {rate:.0}/s", time.as_secs_f64());
        self.push(what, [figure, String::new(), String::new()], "");
    }

    /// A time of ours against another; the ratios are those of each round.
    pub(crate) fn times(&mut self, what: &str, pairs: &[(Duration, Duration)], aim: &str) {
        let seconds =
            |(ours, other): &(Duration, Duration)| (ours.as_secs_f64(), other.as_secs_f64());
        let [ours, other, ratio] = medians(pairs.iter().map(seconds));
        let row = [
            format!("{:.2} ms", ours * 1000.0),
            format!("{:.2} ms", other * 1000.0),
            format!("{ratio:.2}"),
        ];
        self.push(what, row, aim);
    }

    /// A time alone and under load.
    pub(crate) fn slower(&mut self, what: &str, pairs: &[(Duration, Duration)], aim: &str) {
        let seconds =
            |(alone, beside): &(Duration, Duration)| (beside.as_secs_f64(), alone.as_secs_f64());
        let [beside, alone, ratio] = medians(pairs.iter().map(seconds));
        let row = [
            format!("{:.2} ms", beside * 1000.0),
            format!("{:.2} ms alone", alone * 1000.0),
            format!("{ratio:.2}"),
        ];
        self.push(what, row, aim);
    }

    /// Number of requests that were answered incorrectly, and how.
    pub(crate) fn refused(&mut self, what: &str, wrong: usize, of: usize, told: &str) {
        let figure = format!("{wrong} of {of}");
        self.push(what, [figure, told.to_owned(), String::new()], "none");
    }

    /// A program's memory before, at most and afterwards, in bytes.
    pub(crate) fn grown(&mut self, program: &str, bytes: [u64; 3]) {
        let [before, most, after] = bytes.map(|bytes| bytes / (1024 * 1024));
        let figure = format!("{most} MiB at most");
        let other = format!("{before} MiB before, {after} afterwards");
        self.push(
            &format!("memory of {program}"),
            [figure, other, String::new()],
            "",
        );
    }

    /// Number of correct responses.
    pub(crate) fn right(&mut self, what: &str, right: usize, of: usize) {
        let figure = format!("{right} of {of}");
        self.push(what, [figure, String::new(), String::new()], "all");
    }

    /// Memory of one of our processes, in bytes.
    pub(crate) fn memory(&mut self, what: &str, bytes: u64) {
        let figure = format!("{} MiB", bytes / (1024 * 1024));
        let what = format!("memory of {what}");
        self.push(&what, [figure, String::new(), String::new()], "");
    }

    /// Memory of ours against another, in bytes: now, and at most.
    pub(crate) fn memories(&mut self, what: &str, ours: (u64, u64), other: (u64, u64)) {
        let mebibytes = |bytes: u64| bytes / (1024 * 1024);
        let shown = |(now, most): (u64, u64)| {
            format!("{} MiB, {} at most", mebibytes(now), mebibytes(most))
        };
        #[expect(clippy::cast_precision_loss, reason = "memories of a bench are small")]
        let ratio = ours.0 as f64 / other.0.max(1) as f64;
        self.push(what, [shown(ours), shown(other), format!("{ratio:.2}")], "");
    }

    fn push(&mut self, what: &str, [ours, other, ratio]: [String; 3], aim: &str) {
        let what = format!("{}{what}", self.scope);
        eprintln!("{what}: {ours} {other} {ratio}");
        self.rows.push([what, ours, other, ratio, aim.to_owned()]);
    }

    /// Prints a Markdown table.
    pub(crate) fn print(&self) {
        println!("| What | Waypost | Against | Ratio | Aim |\n|---|---|---|---|---|");
        for row in &self.rows {
            println!("| {} |", row.join(" | "));
        }
    }
}

/// The medians of ours, of the other and of their ratios. A ratio is that of one round, whose two
/// sides met the machine in the same state.
fn medians(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> [f64; 3] {
    let ours = median(pairs.clone().map(|pair| pair.0));
    let other = median(pairs.clone().map(|pair| pair.1));
    let ratio = median(pairs.map(|(ours, other)| ours / other.max(f64::EPSILON)));
    [ours, other, ratio]
}

/// The median.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
