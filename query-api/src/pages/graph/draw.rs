//! The drawing itself, as SVG: every box links to the description of its step in words.

use std::fmt::{Error, Write as _};

use minijinja::HtmlEscape;

use super::layout::{Layout, lay_out};
use super::{Edge, Graph, Node};

const BOX_WIDTH: f64 = 168.0;
const BOX_HEIGHT: f64 = 48.0;
const ACROSS: f64 = BOX_WIDTH + 28.0;
const DOWN: f64 = BOX_HEIGHT + 52.0;
const MARGIN: f64 = 8.0;
/// Maximum length of an id in a box.
const MOST_LETTERS: usize = 20;

/// Draws the graph as SVG, empty if it is too large to be read.
pub(in crate::pages) fn draw(graph: &Graph) -> String {
    if !graph.is_drawable() {
        return String::new();
    }
    write_all(graph, &lay_out(graph)).unwrap_or_default()
}

fn write_all(graph: &Graph, layout: &Layout) -> Result<String, Error> {
    let width = (layout.columns - 1.0) * ACROSS + BOX_WIDTH + 2.0 * MARGIN;
    let height = row(layout.layers.saturating_sub(1)) + BOX_HEIGHT + MARGIN;
    let mut svg = format!(
        "<svg class=\"flow\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         role=\"group\" aria-label=\"The steps and the ways between them\">\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path class=\"tip\" d=\"M0 0L8 4L0 8z\"/></marker></defs>"
    );
    for (edge, bends) in graph.edges.iter().zip(&layout.bends) {
        write_edge(&mut svg, edge, bends, layout)?;
    }
    for (node, (column, layer)) in graph.nodes.iter().zip(&layout.places) {
        write_node(&mut svg, node, left(*column), row(*layer))?;
    }
    svg.push_str("</svg>");
    Ok(svg)
}

fn left(column: f64) -> f64 {
    MARGIN + column * ACROSS
}

fn row(layer: usize) -> f64 {
    MARGIN + crate::pages::chart::precise(layer) * DOWN
}

fn write_edge(svg: &mut String, edge: &Edge, bends: &[f64], layout: &Layout) -> Result<(), Error> {
    let ((from, above), (to, below)) = (layout.places[edge.from], layout.places[edge.to]);
    // Different edges leave a box at different points, so that their labels can be read.
    let aside = match edge.label {
        "then" => -BOX_WIDTH / 5.0,
        "else" => BOX_WIDTH / 5.0,
        "timeout" => BOX_WIDTH / 3.0,
        _ => 0.0,
    };
    let (mut x, mut y) = (
        left(from) + BOX_WIDTH / 2.0 + aside,
        row(above) + BOX_HEIGHT,
    );
    let start = (x, y);
    write!(
        svg,
        "<path class=\"way\" marker-end=\"url(#tip)\" d=\"M{x:.0} {y:.0}"
    )?;
    for (nth, column) in bends.iter().enumerate() {
        let (through, top) = (left(*column) + BOX_WIDTH / 2.0, row(above + 1 + nth));
        curve(svg, (x, y), (through, top))?;
        write!(svg, "V{:.0}", top + BOX_HEIGHT)?;
        (x, y) = (through, top + BOX_HEIGHT);
    }
    curve(svg, (x, y), (left(to) + BOX_WIDTH / 2.0, row(below) - 2.0))?;
    svg.push_str("\"/>");
    if !edge.label.is_empty() {
        // On the inner side, since the edge bends to the outer one.
        let anchor = if aside < 0.0 { "start" } else { "end" };
        let beside = start.0 + if aside < 0.0 { 6.0 } else { -6.0 };
        write!(
            svg,
            "<text class=\"label\" x=\"{beside:.0}\" y=\"{:.0}\" text-anchor=\"{anchor}\">{}</text>",
            start.1 + 14.0,
            edge.label
        )?;
    }
    Ok(())
}

fn curve(svg: &mut String, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) -> Result<(), Error> {
    let half = f64::midpoint(y, to_y);
    write!(
        svg,
        "C{x:.0} {half:.0} {to_x:.0} {half:.0} {to_x:.0} {to_y:.0}"
    )
}

fn write_node(svg: &mut String, node: &Node, x: f64, y: f64) -> Result<(), Error> {
    let id = HtmlEscape(&node.id);
    let state = node.state.as_deref().unwrap_or_default().to_lowercase();
    let (state, kind) = (
        HtmlEscape(&state),
        node.kind.to_lowercase().replace('_', " "),
    );
    let told = match &node.state {
        Some(_) => format!("{} · {state}", HtmlEscape(&kind)),
        None => HtmlEscape(&kind).to_string(),
    };
    let short: String = node.id.chars().take(MOST_LETTERS).collect();
    let cut = if short.len() < node.id.len() {
        "…"
    } else {
        ""
    };
    write!(
        svg,
        "<a href=\"#step-{id}\" class=\"node {state}\" data-live=\"node-{id}\">\
         <title>{id}: {told}</title>\
         <rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"9\"/>\
         <text class=\"id\" x=\"{:.0}\" y=\"{:.0}\">{}{cut}</text>\
         <text class=\"kind\" x=\"{:.0}\" y=\"{:.0}\">{told}</text></a>",
        x + 12.0,
        y + 20.0,
        HtmlEscape(&short),
        x + 12.0,
        y + 37.0,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_step_leads_to_its_words_and_every_way_has_its_name() {
        let steps = json!([
            {"id": "hot", "type": "CONDITION", "then": ["call"], "else": ["wait"]},
            {"id": "call", "type": "HTTP"},
            {"id": "wait", "type": "WAIT_FOR_EVENT", "next": ["call"], "onTimeout": ["call"]},
        ]);
        let svg = draw(&Graph::of_steps(steps.as_array().unwrap()));
        for part in [
            "#step-hot",
            "#step-call",
            "#step-wait",
            ">then<",
            ">else<",
            ">timeout<",
            "wait for event",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert_eq!(svg.matches("class=\"way\"").count(), 4);
    }

    #[test]
    fn states_are_shown_and_texts_cannot_become_markup() {
        let steps = json!([{"id": "<b>", "type": "\"", "state": "FAILED"}]);
        let steps = steps.as_array().unwrap();
        let svg = draw(&Graph::of_steps(steps).with_states(steps));
        assert!(svg.contains("node failed") && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn what_nobody_could_read_is_not_drawn() {
        let steps: Vec<_> = (0..200)
            .map(|nth| json!({"id": format!("s{nth}")}))
            .collect();
        assert_eq!(draw(&Graph::of_steps(&steps)), "");
        assert_eq!(draw(&Graph::default()), "");
    }
}
