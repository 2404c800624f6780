//! The layout of steps: in layers from the top, each step below all that lead to it, and within a
//! layer close to its neighbours.

use super::Graph;
use crate::pages::chart::precise;

/// Sweeps over the layers. More change little.
const SWEEPS: usize = 8;
/// Places for edges to pass through layers. Beyond this number they are drawn straight.
const MOST_BENDS: usize = 2_000;

/// The position of everything, in grid units. Columns may be halves.
#[derive(Debug)]
pub(super) struct Layout {
    /// Column and layer of each step.
    pub(super) places: Vec<(f64, usize)>,
    /// The columns that each edge passes in the layers between its ends.
    pub(super) bends: Vec<Vec<f64>>,
    pub(super) columns: f64,
    pub(super) layers: usize,
}

/// An item that takes a place in a layer: a step, or an edge that passes through.
#[derive(Clone, Copy, Debug)]
struct Item {
    layer: usize,
    column: f64,
}

pub(super) fn lay_out(graph: &Graph) -> Layout {
    let layers = layers_of(graph);
    let count = layers.iter().max().map_or(0, |last| last + 1);
    let mut items: Vec<Item> = layers
        .iter()
        .map(|layer| Item {
            layer: *layer,
            column: 0.0,
        })
        .collect();
    let (bends, joints) = bend(graph, &layers, &mut items);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (nth, item) in items.iter().enumerate() {
        rows[item.layer].push(nth);
    }
    arrange(&mut rows, &mut items, &joints);
    let least = items
        .iter()
        .map(|item| item.column)
        .fold(f64::INFINITY, f64::min);
    let least = if least.is_finite() { least } else { 0.0 };
    let most = items
        .iter()
        .map(|item| item.column - least)
        .fold(0.0, f64::max);
    let column = |nth: usize| items[nth].column - least;
    Layout {
        places: layers
            .iter()
            .enumerate()
            .map(|(nth, layer)| (column(nth), *layer))
            .collect(),
        bends: bends
            .iter()
            .map(|bends| bends.iter().map(|nth| column(*nth)).collect())
            .collect(),
        columns: most + 1.0,
        layers: count,
    }
}

/// Returns the longest path to each step. Edges that lead back, which no saved definition has, are
/// ignored.
fn layers_of(graph: &Graph) -> Vec<usize> {
    let count = graph.nodes.len();
    let mut layers = vec![0; count];
    for _ in 0..count {
        let mut moved = false;
        for edge in &graph.edges {
            let below = layers[edge.from] + 1;
            if layers[edge.to] < below && below < count {
                layers[edge.to] = below;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    layers
}

/// Gives each edge a place in every layer that it passes. Returns these places by edge, and all
/// connected pairs in neighbouring layers, the upper one first.
fn bend(
    graph: &Graph,
    layers: &[usize],
    items: &mut Vec<Item>,
) -> (Vec<Vec<usize>>, Vec<(usize, usize)>) {
    let span = |edge: &super::Edge| layers[edge.to].saturating_sub(layers[edge.from] + 1);
    let straight = graph.edges.iter().map(span).sum::<usize>() > MOST_BENDS;
    let (mut bends, mut joints) = (Vec::new(), Vec::new());
    for edge in &graph.edges {
        let mut passed = Vec::new();
        let mut above = edge.from;
        let between = if straight { 0 } else { span(edge) };
        for nth in 0..between {
            items.push(Item {
                layer: layers[edge.from] + 1 + nth,
                column: 0.0,
            });
            passed.push(items.len() - 1);
            joints.push((above, items.len() - 1));
            above = items.len() - 1;
        }
        joints.push((above, edge.to));
        bends.push(passed);
    }
    (bends, joints)
}

/// Orders each layer by the positions of its neighbours, downwards and upwards in turn, and then
/// moves everything towards them as far as there is room.
fn arrange(rows: &mut [Vec<usize>], items: &mut [Item], joints: &[(usize, usize)]) {
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    let mut below = above.clone();
    for (upper, lower) in joints {
        above[*lower].push(*upper);
        below[*upper].push(*lower);
    }
    for row in rows.iter() {
        spread(row, items);
    }
    for sweep in 0..SWEEPS {
        let downwards = sweep % 2 == 0;
        let near = if downwards { &above } else { &below };
        let order: Vec<usize> = if downwards {
            (0..rows.len()).collect()
        } else {
            (0..rows.len()).rev().collect()
        };
        for layer in order {
            let row = &mut rows[layer];
            let wanted: Vec<f64> = row
                .iter()
                .map(|nth| middle(&near[*nth], items, items[*nth].column))
                .collect();
            let mut sorted: Vec<(f64, usize)> =
                wanted.into_iter().zip(row.iter().copied()).collect();
            sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
            *row = sorted.iter().map(|(_, nth)| *nth).collect();
            settle(&sorted, items);
        }
    }
}

/// Puts a layer's items side by side around the middle.
fn spread(row: &[usize], items: &mut [Item]) {
    let half = precise(row.len().saturating_sub(1)) / 2.0;
    for (place, nth) in row.iter().enumerate() {
        items[*nth].column = precise(place) - half;
    }
}

/// Returns the mean column of an item's neighbours.
fn middle(near: &[usize], items: &[Item], own: f64) -> f64 {
    if near.is_empty() {
        return own;
    }
    let sum: f64 = near.iter().map(|nth| items[*nth].column).sum();
    sum / precise(near.len())
}

/// Places items, in their order, as close to their wanted columns as their neighbours allow.
fn settle(sorted: &[(f64, usize)], items: &mut [Item]) {
    // Items that would overlap share a block in the middle of their wanted columns.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (wanted, _) in sorted {
        blocks.push((*wanted, 1));
        while let [.., (first, many), (second, more)] = blocks[..] {
            if first + precise(many) <= second {
                break;
            }
            blocks.pop();
            let (held, added) = (precise(many), precise(more));
            let start = (first * held + (second - held) * added) / (held + added);
            if let Some(last) = blocks.last_mut() {
                *last = (start, many + more);
            }
        }
    }
    let places = blocks
        .iter()
        .flat_map(|(start, many)| (0..*many).map(move |nth| start + precise(nth)));
    for ((_, nth), place) in sorted.iter().zip(places) {
        items[*nth].column = place;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pages::graph::{Edge, Node};

    fn graph(count: usize, edges: &[(usize, usize)]) -> Graph {
        let node = |nth: usize| Node {
            id: format!("s{nth}"),
            kind: "NOTIFY".to_owned(),
            state: None,
        };
        let edge = |(from, to): &(usize, usize)| Edge {
            from: *from,
            to: *to,
            label: "",
        };
        Graph {
            nodes: (0..count).map(node).collect(),
            edges: edges.iter().map(edge).collect(),
        }
    }

    #[test]
    fn a_chain_of_steps_is_laid_out_in_a_straight_line() {
        let layout = lay_out(&graph(3, &[(0, 1), (1, 2)]));
        assert_eq!(layout.places, [(0.0, 0), (0.0, 1), (0.0, 2)]);
        assert_eq!((layout.layers, layout.bends.concat().len()), (3, 0));
    }

    #[test]
    fn a_fork_is_centred_on_its_step_and_a_long_edge_passes_beside_the_others() {
        let layout = lay_out(&graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]));
        let (first, left, right) = (layout.places[0].0, layout.places[1].0, layout.places[2].0);
        assert!(
            (f64::midpoint(left, right) - first).abs() < 0.01,
            "{layout:?}"
        );
        let layout = lay_out(&graph(3, &[(0, 1), (1, 2), (0, 2)]));
        assert_eq!(layout.bends[2].len(), 1);
        assert!(
            (layout.bends[2][0] - layout.places[1].0).abs() >= 0.99,
            "{layout:?}"
        );
    }

    #[test]
    fn what_leads_back_does_no_harm() {
        let layout = lay_out(&graph(2, &[(0, 1), (1, 0), (1, 1)]));
        assert!(layout.layers <= 2);
        assert_eq!(lay_out(&graph(0, &[])).layers, 0);
    }

    proptest! {
        #[test]
        fn steps_are_placed_below_what_leads_to_them_and_never_overlap(
            count in 1..24_usize, pairs in prop::collection::vec((0..24_usize, 0..24_usize), 0..60),
        ) {
            let edges: Vec<_> = pairs.into_iter()
                .filter(|(from, to)| from < to && *to < count).collect();
            let layout = lay_out(&graph(count, &edges));
            for (from, to) in edges {
                prop_assert!(layout.places[from].1 < layout.places[to].1);
            }
            for (nth, (column, layer)) in layout.places.iter().enumerate() {
                prop_assert!((0.0..=layout.columns).contains(column));
                for (other, below) in &layout.places[..nth] {
                    prop_assert!(below != layer || (other - column).abs() > 0.99);
                }
            }
        }
    }
}
