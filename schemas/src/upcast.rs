//! Upcasters: pure functions that lift an older version of an event's data to the next.

use serde_json::Value;

use crate::nesting;

/// Lifts one version of one type to the next.
pub(crate) struct Upcaster {
    /// The recorded type it reads, such as `run.started.v1`.
    from: &'static str,
    /// The recorded type it makes.
    to: &'static str,
    lift: fn(Value) -> Value,
}

/// Every upcaster; a type with three versions has two.
pub(crate) const UPCASTERS: &[Upcaster] = &[
    // The first version did not record who gave a key: such a key depends on no other.
    Upcaster {
        from: "key.created.v1",
        to: "key.created.v2",
        lift: |mut data| {
            if let Some(fields) = data.as_object_mut() {
                fields.insert("createdBy".to_owned(), "operator".into());
            }
            data
        },
    },
    // Before there were conditions and waits, every step continued by `next`.
    Upcaster {
        from: "run.step_succeeded.v1",
        to: "run.step_succeeded.v2",
        lift: |mut data| {
            if let Some(fields) = data.as_object_mut() {
                fields.insert("way".to_owned(), "next".into());
            }
            data
        },
    },
    // Before, a secret could go to any host.
    Upcaster {
        from: "secret.set.v1",
        to: "secret.set.v2",
        lift: |mut data| {
            if let Some(fields) = data.as_object_mut() {
                fields.insert("hosts".to_owned(), Value::Array(Vec::new()));
            }
            data
        },
    },
    // The second version adds reasons; data of the first is read unchanged.
    Upcaster {
        from: "workflow.not_triggered.v1",
        to: "workflow.not_triggered.v2",
        lift: std::convert::identity,
    },
    // The third version adds matches and schedules; data of the second is read unchanged.
    Upcaster {
        from: "workflow.not_triggered.v2",
        to: "workflow.not_triggered.v3",
        lift: std::convert::identity,
    },
    // The second version adds types of step; data of the first is read unchanged.
    Upcaster {
        from: "workflow.saved.v1",
        to: "workflow.saved.v2",
        lift: std::convert::identity,
    },
];

/// Lifts recorded data to the newest version, or returns `None` if no upcaster knows the type.
///
/// # Errors
/// If `data` is not JSON.
pub(crate) fn lift(
    upcasters: &[Upcaster],
    recorded_type: &str,
    data: &[u8],
) -> Result<Option<(String, Vec<u8>)>, serde_json::Error> {
    let next = |from: &str| upcasters.iter().find(|upcaster| upcaster.from == from);
    let Some(mut upcaster) = next(recorded_type) else {
        return Ok(None);
    };
    let mut data: Value = nesting::read(data)?;
    loop {
        data = (upcaster.lift)(data);
        match next(upcaster.to) {
            Some(further) => upcaster = further,
            None => return Ok(Some((upcaster.to.to_owned(), serde_json::to_vec(&data)?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;
    use crate::run::Way;
    use crate::{CATALOG, CatalogEntry, Event};

    /// A type that has had three shapes: `name`, then `title`, then `title` and `tags`.
    const THREE_VERSIONS: &[Upcaster] = &[
        Upcaster {
            from: "note.written.v1",
            to: "note.written.v2",
            lift: |mut data| json!({ "title": data["name"].take() }),
        },
        Upcaster {
            from: "note.written.v2",
            to: "note.written.v3",
            lift: |mut data| {
                data["tags"] = json!([]);
                data
            },
        },
    ];

    fn lifted(recorded_type: &str, data: &str) -> Option<(String, Value)> {
        let lifted = lift(THREE_VERSIONS, recorded_type, data.as_bytes()).unwrap();
        lifted.map(|(newest, data)| (newest, serde_json::from_slice(&data).unwrap()))
    }

    #[test]
    fn every_older_version_is_lifted_to_the_newest() {
        let newest = Some((
            "note.written.v3".to_owned(),
            json!({"title": "x", "tags": []}),
        ));
        assert_eq!(lifted("note.written.v1", r#"{"name":"x"}"#), newest);
        assert_eq!(lifted("note.written.v2", r#"{"title":"x"}"#), newest);
    }

    #[test]
    fn the_newest_version_and_other_types_are_left_alone() {
        assert_eq!(lifted("note.written.v3", "{}"), None);
        assert_eq!(lifted("other.v1", "{}"), None);
    }

    #[test]
    fn data_that_is_not_json_is_an_error() {
        assert!(lift(THREE_VERSIONS, "note.written.v1", b"{").is_err());
    }

    #[test]
    fn a_step_of_the_first_version_went_on_by_next() {
        let first = json!({"runId": "r", "workflowId": "w", "stepId": "s", "attempt": 2,
                           "output": {"way": "then"}});
        let event = Event::decode("run.step_succeeded.v1", first.to_string().as_bytes()).unwrap();
        let Event::RunStepSucceeded(succeeded) = event else {
            panic!("{event:?}");
        };
        assert_eq!(succeeded.way, Way::Next);
        assert_eq!(
            (succeeded.attempt, &succeeded.output["way"]),
            (2, &json!("then"))
        );
    }

    #[test]
    fn every_upcaster_leads_to_a_type_of_the_catalogue() {
        let newest: HashSet<String> = CATALOG.iter().map(CatalogEntry::recorded_type).collect();
        for upcaster in UPCASTERS {
            let (mut at, mut steps) = (upcaster.to, 0);
            while let Some(next) = UPCASTERS.iter().find(|u| u.from == at) {
                (at, steps) = (next.to, steps + 1);
                assert!(
                    steps <= UPCASTERS.len(),
                    "{} goes in circles",
                    upcaster.from
                );
            }
            assert!(newest.contains(at), "{} ends at {at}", upcaster.from);
        }
    }
}
