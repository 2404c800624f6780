//! The sequences of a stream that are gone, according to the server.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::Client;
use serde::Deserialize;
use tokio::time::timeout;

use crate::beginning::begins;
use crate::connection;
use crate::streams::LogStream;

/// How long the server may take to count.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The server's last answer.
#[derive(Debug, Default)]
pub(crate) struct Deleted {
    /// Everything before this sequence has expired, or was erased as the beginning of the stream.
    first: u64,
    /// Deleted sequences after the first, in order.
    single: Vec<u64>,
}

#[derive(Deserialize)]
struct StreamInfo {
    config: Config,
    state: State,
}

#[derive(Default, Deserialize)]
struct Config {
    #[serde(default)]
    metadata: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
struct State {
    first_seq: u64,
    #[serde(default)]
    deleted: Vec<u64>,
    /// Messages found damaged when the server started. They count as deleted, too.
    lost: Option<Lost>,
}

#[derive(Deserialize)]
struct Lost {
    /// Absent if the server cannot say which.
    msgs: Option<Vec<u64>>,
}

impl Deleted {
    pub(crate) async fn ask(client: &Client, stream: &LogStream) -> Result<Self, String> {
        connection::check(client)?;
        let subject = format!("$JS.API.STREAM.INFO.{}", stream.name);
        let asked = client.request(subject, r#"{"deleted_details":true}"#.into());
        let answer = timeout(TIMEOUT, asked).await;
        let answer = answer.map_err(|_| "no answer in time".to_owned())?;
        let answer = answer.map_err(|error| error.to_string())?;
        let answer: StreamInfo =
            serde_json::from_slice(&answer.payload).map_err(|error| error.to_string())?;
        Ok(answer.into())
    }

    /// Whether every sequence from `from` to before `next` is known to be gone.
    pub(crate) fn explain(&self, from: u64, next: u64) -> bool {
        let from = from.max(self.first);
        if from >= next {
            return true;
        }
        let start = self.single.partition_point(|sequence| *sequence < from);
        let gone = self.single[start..].iter().copied();
        gone.take_while(|sequence| *sequence < next).count() as u64 == next - from
    }
}

impl From<StreamInfo> for Deleted {
    fn from(answer: StreamInfo) -> Self {
        let StreamInfo { config, state } = answer;
        let mut single = state.deleted;
        single.sort_unstable();
        match state.lost.map(|lost| lost.msgs) {
            None => {}
            Some(Some(lost)) => single.retain(|sequence| !lost.contains(sequence)),
            // Any that it calls deleted may be one that it lost.
            Some(None) => single.clear(),
        }
        let begins = begins(&config.metadata).unwrap_or(u64::MAX);
        Self {
            first: state.first_seq.min(begins),
            single,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_before_the_first_has_expired() {
        let deleted = Deleted {
            first: 10,
            single: Vec::new(),
        };
        assert!(deleted.explain(1, 10));
        assert!(deleted.explain(5, 6));
        assert!(!deleted.explain(5, 11));
        assert!(!deleted.explain(10, 12));
    }

    #[test]
    fn a_gap_must_be_deleted_whole() {
        let deleted = Deleted {
            first: 3,
            single: vec![5, 6, 8, 9],
        };
        assert!(deleted.explain(5, 7));
        assert!(deleted.explain(8, 10));
        assert!(deleted.explain(1, 3));
        assert!(!deleted.explain(5, 9), "7 was not deleted");
        assert!(!deleted.explain(4, 7), "4 was not deleted");
        assert!(!deleted.explain(8, 11), "10 was not deleted");
    }

    fn told(state: &str) -> Deleted {
        let answer = format!(r#"{{"config":{{}},"state":{state}}}"#);
        serde_json::from_str::<StreamInfo>(&answer).unwrap().into()
    }

    #[test]
    fn what_the_server_lost_is_not_excused_as_deleted() {
        let deleted = told(r#"{"first_seq":1,"deleted":[4,3,9]}"#);
        assert!(deleted.explain(3, 5) && deleted.explain(9, 10));
        let lost = told(r#"{"first_seq":1,"deleted":[3,4,9],"lost":{"msgs":[4]}}"#);
        assert!(lost.explain(3, 4) && !lost.explain(3, 5) && lost.explain(9, 10));
        let unknown = told(r#"{"first_seq":1,"deleted":[3],"lost":{"msgs":null}}"#);
        assert!(!unknown.explain(3, 4));
    }

    #[test]
    fn a_beginning_of_what_is_for_ever_does_not_expire() {
        let answer = r#"{"config":{"metadata":{"waypost-begins":"3"}},"state":{"first_seq":6}}"#;
        let lost: Deleted = serde_json::from_str::<StreamInfo>(answer).unwrap().into();
        assert!(lost.explain(1, 3) && !lost.explain(1, 6) && !lost.explain(4, 6));
    }

    #[test]
    fn nothing_is_excused_before_the_server_was_asked() {
        assert!(!Deleted::default().explain(1, 2));
    }
}
