//! A drawing of a workflow's steps: boxes in layers, connected by edges.

mod draw;
mod layout;
mod words;

use serde::Deserialize;
use serde_json::Value as Json;

pub(super) use self::draw::draw;
pub(super) use self::words::{in_words, trigger_in_words};

/// Larger graphs are only shown as a list: no one reads a drawing of them.
const MOST_STEPS: usize = 150;
const MOST_EDGES: usize = 400;

/// The part of a step that a drawing shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) kind: String,
    /// The state within a run, if one is shown.
    pub(super) state: Option<String>,
}

/// An edge from one step to another, by their indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// `then`, `else` or `timeout`; empty for the plain edge.
    pub(super) label: &'static str,
}

/// Steps and the edges between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
}

/// A step of an outline: see the table `workflow_outlines`.
#[derive(Debug, Deserialize)]
struct Outlined {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    ways: Vec<(String, Vec<String>)>,
}

impl Graph {
    /// Returns the graph of the steps of a definition.
    pub(super) fn of_steps(steps: &[Json]) -> Self {
        let text = |step: &Json, name: &str| step[name].as_str().unwrap_or_default().to_owned();
        let ids = |step: &Json, name: &str| -> Vec<String> {
            let ids = step[name].as_array().into_iter().flatten();
            ids.filter_map(|id| id.as_str().map(str::to_owned))
                .collect()
        };
        let steps = steps.iter().map(|step| Outlined {
            id: text(step, "id"),
            kind: text(step, "type"),
            ways: ["next", "then", "else", "onTimeout"]
                .map(|way| (way.to_owned(), ids(step, way)))
                .into(),
        });
        Self::of(&steps.collect::<Vec<_>>())
    }

    /// Returns the graph of a version's outline, empty if it cannot be read.
    pub(super) fn of_outline(outline: &str) -> Self {
        let steps: Vec<Outlined> = serde_json::from_str(outline).unwrap_or_default();
        Self::of(&steps)
    }

    fn of(steps: &[Outlined]) -> Self {
        let place = |id: &String| steps.iter().position(|step| step.id == *id);
        let mut edges = Vec::new();
        for (from, step) in steps.iter().enumerate() {
            for (way, targets) in &step.ways {
                let label = match way.as_str() {
                    "then" => "then",
                    "else" => "else",
                    "onTimeout" => "timeout",
                    _ => "",
                };
                let targets = targets.iter().filter_map(place);
                edges.extend(targets.map(|to| Edge { from, to, label }));
            }
        }
        let nodes = steps.iter().map(|step| Node {
            id: step.id.clone(),
            kind: step.kind.clone(),
            state: None,
        });
        Self {
            nodes: nodes.collect(),
            edges,
        }
    }

    /// Whether a drawing of it is readable.
    pub(super) fn is_drawable(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.len() <= MOST_STEPS && self.edges.len() <= MOST_EDGES
    }

    /// Adds the states of a run's steps.
    pub(super) fn with_states(mut self, steps: &[Json]) -> Self {
        for node in &mut self.nodes {
            let step = steps.iter().find(|step| step["id"] == node.id.as_str());
            node.state = step
                .and_then(|step| step["state"].as_str())
                .map(str::to_owned);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_and_its_outline_give_the_same_graph() {
        let steps = json!([
            {"id": "start", "type": "TRIGGER", "next": ["hot"]},
            {"id": "hot", "type": "CONDITION", "if": "true", "then": ["a"], "else": ["b"]},
            {"id": "a", "type": "WAIT_FOR_EVENT", "next": ["b"], "onTimeout": ["b"]},
            {"id": "b", "type": "NOTIFY", "next": ["nowhere"]},
        ]);
        let outline = json!([
            {"id": "start", "type": "TRIGGER", "ways": [["next", ["hot"]]]},
            {"id": "hot", "type": "CONDITION", "ways": [["then", ["a"]], ["else", ["b"]]]},
            {"id": "a", "type": "WAIT_FOR_EVENT", "ways": [["next", ["b"]], ["onTimeout", ["b"]]]},
            {"id": "b", "type": "NOTIFY"},
        ]);
        let graph = Graph::of_steps(steps.as_array().unwrap());
        assert_eq!(graph, Graph::of_outline(&outline.to_string()));
        let labels: Vec<_> = graph
            .edges
            .iter()
            .map(|edge| (edge.from, edge.to, edge.label))
            .collect();
        assert_eq!(
            labels,
            [
                (0, 1, ""),
                (1, 2, "then"),
                (1, 3, "else"),
                (2, 3, ""),
                (2, 3, "timeout")
            ]
        );
        assert_eq!(Graph::of_outline("nonsense"), Graph::default());
    }
}
