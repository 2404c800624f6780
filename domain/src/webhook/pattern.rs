//! Patterns that select events: `*`, `run.*`, `sos.triggered`, `custom.*`.

use std::collections::BTreeSet;

/// Every public type that Waypost defines; the user defines `custom.<name>`.
const TYPES: &[&str] = &[
    "workflow.saved",
    "workflow.triggered",
    "workflow.not_triggered",
    "run.started",
    "run.step_started",
    "run.step_succeeded",
    "run.step_failed",
    "run.waiting",
    "run.succeeded",
    "run.failed",
    "run.cancelled",
    "run.retried",
    "company.created",
    "company.updated",
    "company.deleted",
    "deal.created",
    "deal.updated",
    "deal.deleted",
    "contact.created",
    "contact.updated",
    "contact.deleted",
    "order.created",
    "order.updated",
    "order.deleted",
    "lead.created",
    "lead.updated",
    "lead.deleted",
    "client.created",
    "client.updated",
    "client.deleted",
    "location.updated",
    "place.entered",
    "place.left",
    "sos.triggered",
    "sos.acknowledged",
    "sos.resolved",
    "circle.member_joined",
    "circle.member_left",
    "key.created",
    "key.revoked",
    "webhook.created",
    "webhook.updated",
    "webhook.disabled",
    "webhook.deleted",
    "webhook.secret_rotated",
];

/// They are in a log of their own, with a feed of their own.
const POSITIONS: &str = "location.updated";
const CUSTOM: &str = "custom.";
const MAX_PATTERN: usize = 128;

/// Checks a pattern. One that no event can ever match is a mistake and refused.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let known =
        || TYPES.iter().any(|event_type| matches(pattern, event_type)) || is_custom(pattern);
    if pattern.len() <= MAX_PATTERN && known() {
        return Ok(());
    }
    Err(
        "must be *, a type such as run.succeeded, or a pattern such as run.* or custom.*"
            .to_owned(),
    )
}

/// What [`check_pattern`] accepts, as a regular expression for documents.
pub fn pattern_of_patterns() -> String {
    let kinds: BTreeSet<_> = TYPES
        .iter()
        .filter_map(|known| known.split('.').next())
        .collect();
    let kinds: Vec<_> = kinds.into_iter().collect();
    let types = TYPES.join("|").replace('.', "\\.");
    let word = "\\.[0-9A-Za-z_-]+";
    format!(
        "\\*|({kinds})\\.\\*|{types}|custom(({word})+(\\.\\*)?|\\.\\*)",
        kinds = kinds.join("|"),
    )
}

fn is_custom(pattern: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    pattern.strip_prefix(CUSTOM).is_some_and(|name| {
        let words = name.strip_suffix(".*").unwrap_or(name);
        name == "*"
            || words
                .split('.')
                .all(|word| !word.is_empty() && word.bytes().all(plain))
    })
}

/// Whether positions match a pattern, and nothing else does.
pub fn only_positions_match(pattern: &str) -> bool {
    let mut matched = TYPES.iter().filter(|known| matches(pattern, known));
    matched.next() == Some(&POSITIONS) && matched.next().is_none()
}

/// Whether a pattern matches an event type: `*` matches all, `run.*` all that begin with `run.`.
pub fn matches(pattern: &str, event_type: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(start) if start.ends_with('.') => {
            event_type.len() > start.len() && event_type.starts_with(start)
        }
        Some(_) => false,
        None => pattern == event_type,
    }
}

/// Whether an endpoint that subscribed to these patterns gets events of this type; without any it
/// gets all.
pub fn any_matches(patterns: &[String], event_type: &str) -> bool {
    let mut each = patterns.iter();
    patterns.is_empty() || each.any(|pattern| matches(pattern, event_type))
}

#[cfg(test)]
mod tests {
    use boon::{Compiler, Schemas};
    use schemas::{CATALOG, Visibility};

    use super::*;

    #[test]
    fn a_pattern_means_one_type_or_all_of_a_kind() {
        assert!(matches("*", "run.started"));
        assert!(matches("run.*", "run.started"));
        assert!(matches("run.started", "run.started"));
        assert!(matches("custom.order.*", "custom.order.paid"));
        assert!(!matches("run.*", "runner.started"));
        assert!(!matches("run.*", "run."));
        assert!(!matches("run.start*", "run.started"));
        assert!(!matches("run.started", "run.started_twice"));
    }

    fn is_documented(pattern: &str) -> bool {
        let schema = serde_json::json!({"pattern": format!("^({})$", pattern_of_patterns())});
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("pattern.json", schema).unwrap();
        let documented = compiler.compile("pattern.json", &mut schemas).unwrap();
        schemas.validate(&pattern.into(), documented).is_ok()
    }

    #[test]
    fn patterns_that_can_never_match_are_refused() {
        for right in [
            "*",
            "run.*",
            "sos.triggered",
            "custom.*",
            "custom.a_b",
            "custom.a.*",
        ] {
            assert_eq!(check_pattern(right), Ok(()), "{right}");
            assert!(is_documented(right), "{right}");
        }
        for wrong in [
            "",
            "run",
            "run.",
            "*.started",
            "run.strated",
            "runs.*",
            "**",
            "custom.",
            "custom.a b",
            "custom..a",
            "custom.*.*",
            "custom.*.*.",
            "custom.a.*.*",
            "custom.**",
            "organization.created",
            "run.started ",
        ] {
            assert!(check_pattern(wrong).is_err(), "{wrong} was taken");
            assert!(!is_documented(wrong), "{wrong} is documented");
        }
    }

    #[test]
    fn only_the_type_and_the_kind_of_positions_match_nothing_else() {
        for positions in ["location.updated", "location.*"] {
            assert!(only_positions_match(positions), "{positions}");
        }
        for others in ["*", "place.*", "custom.*", "custom.location"] {
            assert!(!only_positions_match(others), "{others}");
        }
    }

    #[test]
    fn every_public_type_of_the_catalogue_can_be_asked_for() {
        let public = CATALOG
            .iter()
            .filter(|entry| entry.visibility == Visibility::Public);
        for entry in public {
            assert_eq!(check_pattern(entry.name), Ok(()), "{}", entry.name);
        }
    }
}
