//! Steps described in words, for those who do not look at the drawing.

use chrono::{DateTime, Utc};
use domain::workflow::Schedule;
use serde_json::Value as Json;

/// Describes what a step does and where it leads, in plain sentences.
pub(in crate::pages) fn in_words(step: &Json) -> String {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let does = match text("type") {
        "TRIGGER" => "Runs begin here".to_owned(),
        "HTTP" => format!("Sends `{} {}`", text("method"), text("url")),
        "NOTIFY" => format!("Writes the event `custom.{}`", text("event")),
        "CONDITION" => format!("Goes on by whether `{}`", text("if")),
        "DELAY" => format!("Waits {}", span(&step["seconds"])),
        "WAIT_FOR_EVENT" => awaited(step),
        "RECORD" => format!("Writes a record of `{}`", text("kind")),
        other => format!("Does what `{other}` steps do"),
    };
    let ways = [
        ("then", "if so"),
        ("else", "if not"),
        ("next", "then"),
        ("onTimeout", "on timeout"),
    ];
    let ways = ways.iter().filter_map(|(way, name)| {
        let ids = step[*way].as_array().into_iter().flatten();
        let ids: Vec<String> = ids
            .filter_map(Json::as_str)
            .map(|id| format!("`{id}`"))
            .collect();
        (!ids.is_empty()).then(|| format!("{name} {}", ids.join(" and ")))
    });
    let ways: Vec<String> = ways.collect();
    let join = if step["join"] == "all" {
        ", after all that lead here"
    } else {
        ""
    };
    let onward = if ways.is_empty() {
        "; ends".to_owned()
    } else {
        format!("; {}", ways.join("; "))
    };
    format!("{does}{join}{onward}.")
}

fn awaited(step: &Json) -> String {
    let event = step["event"].as_str().unwrap_or_default();
    let matching = step["match"].as_str();
    let matching = matching.map(|matching| format!(" where `{matching}`"));
    let timeout = Some(&step["timeoutSeconds"]).filter(|seconds| !seconds.is_null());
    let timeout = timeout.map(|seconds| format!(", at most {}", span(seconds)));
    let (matching, timeout) = (matching.unwrap_or_default(), timeout.unwrap_or_default());
    format!("Waits for `{event}`{matching}{timeout}")
}

/// Formats a number of seconds in the largest unit without a remainder.
fn span(seconds: &Json) -> String {
    let Some(whole) = seconds.as_u64() else {
        return format!("{seconds} seconds");
    };
    let units = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let unit = units
        .iter()
        .find(|(length, _)| whole > 0 && whole % length == 0);
    let (length, name) = unit.copied().unwrap_or((1, "second"));
    let count = whole / length;
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// Describes what starts a workflow of these steps.
pub(in crate::pages) fn trigger_in_words(steps: &[Json], now: DateTime<Utc>) -> String {
    let Some(trigger) = steps.iter().find(|step| step["type"] == "TRIGGER") else {
        return "Nothing starts it yet: it has no TRIGGER step.".to_owned();
    };
    let on = &trigger["on"];
    if let Some(event) = on["event"].as_str() {
        let filter = on["filter"]
            .as_str()
            .map(|filter| format!(" where `{filter}`"));
        let filter = filter.unwrap_or_default();
        return format!("Starts on every event `{event}`{filter}, through the API, or by hand.");
    }
    if let Some(schedule) = on["schedule"].as_str() {
        let zone = on["timezone"].as_str().unwrap_or("UTC");
        let next = Schedule::parse(schedule, zone)
            .ok()
            .and_then(|read| read.next_after(now));
        let next = next.map(|next| format!(" Next time: {} UTC.", next.format("%Y-%m-%d %H:%M")));
        let next = next.unwrap_or_default();
        return format!(
            "Starts on the schedule `{schedule}` ({zone} time), through the API, or by hand.{next}"
        );
    }
    "Starts through the API or by hand.".to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_says_what_it_does_and_where_it_leads() {
        for (step, words) in [
            (
                json!({"type": "DELAY", "seconds": 3600, "next": ["a", "b"]}),
                "Waits 1 hour; then `a` and `b`.",
            ),
            (
                json!({"type": "CONDITION", "if": "trigger.score >= 80", "then": ["a"], "else": ["b"]}),
                "Goes on by whether `trigger.score >= 80`; if so `a`; if not `b`.",
            ),
            (
                json!({"type": "WAIT_FOR_EVENT", "event": "contact.*", "timeoutSeconds": 90, "onTimeout": ["x"], "join": "all"}),
                "Waits for `contact.*`, at most 90 seconds, after all that lead here; on timeout `x`.",
            ),
            (
                json!({"type": "NOTIFY", "event": "done"}),
                "Writes the event `custom.done`; ends.",
            ),
            (json!({}), "Does what `` steps do; ends."),
        ] {
            assert_eq!(in_words(&step), words);
        }
    }

    #[test]
    fn what_starts_a_workflow_is_said() {
        let now = "2026-11-23T08:00:00Z".parse().unwrap();
        let told = |on: Json| trigger_in_words(&[json!({"type": "TRIGGER", "on": on})], now);
        assert_eq!(told(Json::Null), "Starts through the API or by hand.");
        assert!(
            told(json!({"event": "lead.created", "filter": "data.score > 5"}))
                .contains("where `data.score > 5`")
        );
        let scheduled = told(json!({"schedule": "0 9 * * *", "timezone": "UTC"}));
        assert!(
            scheduled.contains("Next time: 2026-11-23 09:00 UTC"),
            "{scheduled}"
        );
        assert!(trigger_in_words(&[], now).contains("no TRIGGER step"));
    }
}
