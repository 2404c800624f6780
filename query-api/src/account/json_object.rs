//! One JSON object, written field by field while the client reads it.

use std::io;

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc;

/// A piece is sent once it holds this many bytes.
const PIECE_BYTES: usize = 32 * 1024;

/// The object being written. It never holds more than a piece.
pub(super) struct JsonObjectWriter {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    text: Vec<u8>,
    /// Whether a value precedes, so that a comma is needed.
    follows: bool,
}

impl JsonObjectWriter {
    pub(super) fn new(pieces: mpsc::Sender<io::Result<Bytes>>) -> Self {
        Self {
            pieces,
            text: Vec::with_capacity(PIECE_BYTES),
            follows: false,
        }
    }

    /// Writes a field with its value.
    pub(super) fn field(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.name(name);
        serde_json::to_writer(&mut self.text, value)?;
        self.follows = true;
        Ok(())
    }

    /// Begins a list field.
    pub(super) fn list(&mut self, name: &str) {
        self.name(name);
        self.text.push(b'[');
        self.follows = false;
    }

    /// Writes an item of the list.
    pub(super) async fn item(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.text
            .extend(if self.follows { ",\n" } else { "\n" }.bytes());
        serde_json::to_writer(&mut self.text, value)?;
        self.follows = true;
        if self.text.len() < PIECE_BYTES {
            return Ok(());
        }
        self.hand_on().await
    }

    pub(super) fn end_list(&mut self) {
        self.text.push(b']');
        self.follows = true;
    }

    /// Ends the object.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        self.text.extend_from_slice(b"\n}\n");
        self.hand_on().await
    }

    fn name(&mut self, name: &str) {
        self.text
            .extend(if self.follows { ",\n" } else { "{\n" }.bytes());
        self.text.extend(format!("\"{name}\": ").bytes());
    }

    async fn hand_on(&mut self) -> io::Result<()> {
        let full = std::mem::replace(&mut self.text, Vec::with_capacity(PIECE_BYTES));
        let sent = self.pieces.send(Ok(full.into())).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_is_one_object() {
        let (pieces, mut taken) = mpsc::channel(8);
        let mut object = JsonObjectWriter::new(pieces);
        object
            .field("account", &serde_json::json!({"id": 1}))
            .unwrap();
        object.list("none");
        object.end_list();
        object.list("many");
        for nth in 0..20_000 {
            object.item(&nth).await.unwrap();
            while let Ok(piece) = taken.try_recv() {
                assert!(piece.unwrap().len() < PIECE_BYTES + 16);
            }
        }
        object.end_list();
        object.finish().await.unwrap();
        let (pieces, mut taken) = mpsc::channel(8);
        let mut short = JsonObjectWriter::new(pieces);
        short.list("some");
        short.item(&1).await.unwrap();
        short.item(&2).await.unwrap();
        short.end_list();
        short.field("last", &"x").unwrap();
        short.finish().await.unwrap();
        let text = taken.recv().await.unwrap().unwrap();
        let read: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(read, serde_json::json!({"some": [1, 2], "last": "x"}));
    }
}
