//! Reading from one copy (replica) of a stream.
//!
//! Any of the servers that keep a stream may answer a direct get, and none of them knows how much
//! it lacks: what it does not find may still exist. So these answers go no further than [`super`],
//! which asks the leader before it says that something does not exist.

use async_nats::{Client, HeaderMap, Message, Request, StatusCode, Subject, Subscriber};
use futures::StreamExt as _;
use serde_json::Value;

use super::{ReadTimeout, Stored, silence};
use crate::{ReadError, connection};

/// The status of the empty message that ends a batched get's answers.
const END_OF_BATCH: u16 = 204;
/// Which message of the same batched get was sent before; 0 for none.
const SENT_BEFORE: &str = "Nats-Last-Sequence";
/// How many messages a batched get has left out.
const LEFT_OUT: &str = "Nats-Num-Pending";
/// How far the copy had come when it searched for last messages.
const UP_TO: &str = "Nats-UpTo-Sequence";

/// Messages found in a copy.
#[derive(Default)]
pub(super) struct Found {
    pub(super) messages: Vec<Stored>,
    /// Whether it has more: the answer was cut.
    pub(super) more: bool,
    /// How far it had come, if last messages were searched.
    pub(super) up_to: Option<u64>,
}

impl Found {
    /// Adds the next answer; returns whether it was the last.
    fn is_ended_by(&mut self, message: Message) -> Result<bool, ReadError> {
        let said = |name| {
            let headers = message.headers.as_ref();
            headers.and_then(|headers| number(headers, name))
        };
        let before = self.messages.last().map_or(0, |last| last.sequence);
        if said(SENT_BEFORE).is_some_and(|sent| sent != before) {
            let lost = "an answer was lost on the way".to_owned();
            return Err(ReadError::Unavailable(lost));
        }
        if message
            .status
            .is_some_and(|status| status.as_u16() == END_OF_BATCH)
        {
            self.more = said(LEFT_OUT).is_some_and(|left_out| left_out > 0);
            self.up_to = said(UP_TO);
            return Ok(true);
        }
        let stored = read_message(message)?;
        let is_last = stored.is_none();
        self.messages.extend(stored);
        Ok(is_last)
    }
}

/// Asks the nearest copy.
#[derive(Clone)]
pub(super) struct Copies {
    client: Client,
    /// The subject on which the servers take direct gets for the stream.
    direct: String,
    pub(super) timeout: ReadTimeout,
}

impl Copies {
    pub(super) fn new(client: Client, stream: &str, timeout: ReadTimeout) -> Self {
        Self {
            client,
            direct: format!("$JS.API.DIRECT.GET.{stream}"),
            timeout,
        }
    }

    pub(super) async fn one(&self, query: &Value) -> Result<Option<Stored>, ReadError> {
        self.check()?;
        let request = Request::new()
            .payload(query.to_string().into())
            .timeout(None);
        let answer = self.client.send_request(self.direct.clone(), request);
        match self.timeout.wait(&self.client, answer).await? {
            Ok(message) => read_message(message),
            Err(error) => Err(ReadError::Unavailable(error.to_string())),
        }
    }

    /// Collects a batched get's answers up to the empty message that ends them. Each names the one
    /// before it, so that a lost one is noticed.
    pub(super) async fn many(&self, query: &Value) -> Result<Found, ReadError> {
        self.check()?;
        let timeout = self.timeout;
        let mut answers = timeout.wait(&self.client, self.ask(query)).await??;
        let mut found = Found::default();
        loop {
            let answer = timeout.wait(&self.client, answers.next()).await?;
            let message = answer.ok_or_else(silence)?;
            if found.is_ended_by(message)? {
                return Ok(found);
            }
        }
    }

    async fn ask(&self, query: &Value) -> Result<Subscriber, ReadError> {
        let failed = |error: String| ReadError::Unavailable(error);
        let inbox = self.client.new_inbox();
        let subscribed = self.client.subscribe(inbox.clone()).await;
        let answers = subscribed.map_err(|e| failed(e.to_string()))?;
        let query = query.to_string().into();
        let sent = self
            .client
            .publish_with_reply(self.direct.clone(), inbox, query);
        sent.await.map_err(|e| failed(e.to_string()))?;
        Ok(answers)
    }

    fn check(&self) -> Result<(), ReadError> {
        connection::check(&self.client).map_err(ReadError::Unavailable)
    }
}

fn number(headers: &HeaderMap, name: &'static str) -> Option<u64> {
    headers.get(name)?.as_str().parse().ok()
}

fn read_message(message: Message) -> Result<Option<Stored>, ReadError> {
    match message.status {
        None | Some(StatusCode::OK) => {}
        Some(StatusCode::NOT_FOUND) => return Ok(None),
        Some(status) => {
            let what = message.description.as_deref().unwrap_or_default();
            return Err(ReadError::Unavailable(format!(
                "direct get: {status} {what}"
            )));
        }
    }
    let headers = message.headers.unwrap_or_default();
    let subject = headers.get("Nats-Subject");
    let subject = subject.map(|value| Subject::from(value.as_str()));
    let (Some(subject), Some(sequence)) = (subject, number(&headers, "Nats-Sequence")) else {
        return Err(ReadError::Unavailable(
            "direct get: an answer without a subject".to_owned(),
        ));
    };
    Ok(Some(Stored {
        subject,
        sequence,
        headers,
        payload: message.payload,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: Option<u16>, headers: &[(&'static str, u64)]) -> Message {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.to_string());
        }
        map.insert("Nats-Subject", "evt.o.run.1");
        Message {
            subject: "_INBOX.1".into(),
            reply: None,
            payload: bytes::Bytes::new(),
            headers: Some(map),
            status: status.map(|status| StatusCode::from_u16(status).unwrap()),
            description: None,
            length: 0,
        }
    }

    fn message(sequence: u64, before: u64) -> Message {
        answer(None, &[("Nats-Sequence", sequence), (SENT_BEFORE, before)])
    }

    fn end(before: u64, left_out: u64) -> Message {
        answer(Some(204), &[(SENT_BEFORE, before), (LEFT_OUT, left_out)])
    }

    fn collect(answers: Vec<Message>) -> Option<(Vec<u64>, bool)> {
        let mut found = Found::default();
        for answer in answers {
            if found.is_ended_by(answer).ok()? {
                let sequences = found.messages.iter().map(|stored| stored.sequence);
                return Some((sequences.collect(), found.more));
            }
        }
        None
    }

    #[test]
    fn answers_that_follow_each_other_are_taken() {
        let whole = vec![message(3, 0), message(7, 3), message(8, 7), end(8, 2)];
        assert_eq!(collect(whole), Some((vec![3, 7, 8], true)));
        assert_eq!(collect(vec![end(0, 0)]), Some((vec![], false)));
        assert_eq!(collect(vec![answer(Some(404), &[])]), Some((vec![], false)));
    }

    #[test]
    fn an_answer_that_was_lost_on_the_way_is_missed_wherever_it_stood() {
        let all = || vec![message(3, 0), message(7, 3), message(8, 7), end(8, 2)];
        for lost in 0..3 {
            let mut answers = all();
            answers.remove(lost);
            assert_eq!(collect(answers), None, "the answer {lost}");
        }
    }
}
