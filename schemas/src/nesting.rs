//! How deep JSON nests.
//!
//! Parsers accept only so many levels. What is stored must stay readable wherever it is shown:
//! within an event, a run, a line of the feed or a frame.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Levels of arrays and objects that JSON of any shape may have where it comes in: a payload, the
/// data of a step, a response.
pub const MAX_LEVELS: usize = 100;
/// Levels that the data of a new event may have. It is more than [`MAX_LEVELS`] for what an event
/// puts around such JSON, also several times over where events set off workflows, and less than
/// parsers accept for what is put around an event where it is shown.
pub const MAX_EVENT_LEVELS: usize = 120;
/// Levels that `serde_json` reads by itself.
const PARSER_LEVELS: usize = 127;
/// Levels that are read from the log, and one that a line puts around an event: earlier versions
/// stored some events deeper than they could read. Reading uses stack for each level, so there must
/// be a limit.
const READ_LEVELS: usize = 141;

/// Whether JSON has more than so many levels of arrays and objects.
pub fn is_deeper(json: &[u8], most: usize) -> bool {
    // There are at least as many brackets as levels, and counting them is cheap. Text may contain
    // brackets too, so only the second look is exact.
    let brackets = json.iter().filter(|&&byte| matches!(byte, b'[' | b'{'));
    brackets.count() > most && deepest(json) > most
}

fn deepest(json: &[u8]) -> usize {
    let (mut open, mut deepest) = (0_usize, 0_usize);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b'"' => skip_text(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Goes on behind the quotation mark that ends a text.
fn skip_text(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

/// The levels of arrays and objects of a value; 0 if it is neither.
pub fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(fields) => levels_of(fields),
        _ => 0,
    }
}

/// The levels of an object with these fields.
pub fn levels_of(fields: &Map<String, Value>) -> usize {
    1 + fields.values().map(levels).max().unwrap_or(0)
}

/// Reads JSON from the log, also what is a little deeper than parsers accept.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(json).or_else(|error| {
        if !is_deeper(json, PARSER_LEVELS) || is_deeper(json, READ_LEVELS) {
            return Err(error);
        }
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        deserializer.disable_recursion_limit();
        let value = serde::Deserialize::deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, nth| match nth % 2 {
            0 => json!([inner]),
            _ => json!({ "a": inner }),
        })
    }

    #[test]
    fn levels_are_counted_alike_in_a_value_and_in_its_text() {
        for count in [0, 1, 2, 99, 150] {
            let value = json!(["[[[", nested(count), {"{\"{": "\\\"[["}]);
            let expected = 1 + count.max(1);
            assert_eq!(levels(&value), expected);
            let text = value.to_string();
            assert_eq!(deepest(text.as_bytes()), expected, "{text}");
            assert!(is_deeper(text.as_bytes(), expected - 1), "{text}");
            assert!(!is_deeper(text.as_bytes(), expected), "{text}");
        }
        assert_eq!(levels(&json!("[[")), 0);
    }

    #[test]
    fn brackets_in_texts_and_side_by_side_are_no_levels() {
        let side_by_side = json!(vec![json!({ "a": [] }); 1_000]).to_string();
        assert!(!is_deeper(side_by_side.as_bytes(), 3));
        let text = json!(["[".repeat(1_000), "\"{\\".repeat(1_000)]).to_string();
        assert!(!is_deeper(text.as_bytes(), 1));
    }

    #[test]
    fn what_is_no_json_is_looked_at_without_a_panic() {
        for text in ["", "]]]]", "\"", "\"\\", "[\"", "}{"] {
            assert!(deepest(text.as_bytes()) <= 1, "{text}");
        }
    }

    #[test]
    fn more_is_read_from_the_log_than_parsers_accept_up_to_a_limit() {
        for count in [0, PARSER_LEVELS, PARSER_LEVELS + 1, READ_LEVELS] {
            let text = nested(count).to_string();
            let read: Value = read(text.as_bytes()).unwrap();
            assert_eq!(read, nested(count));
        }
        let too_deep = nested(READ_LEVELS + 1).to_string();
        assert!(read::<Value>(too_deep.as_bytes()).is_err());
        let mut broken = nested(READ_LEVELS).to_string();
        broken.push('x');
        assert!(read::<Value>(broken.as_bytes()).is_err());
    }
}
