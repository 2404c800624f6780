//! Checks steps together: names must be unique, there must be a beginning, and ways must end.

use std::collections::{HashMap, HashSet};

use schemas::run::Way;
use schemas::workflow::{Action, Step};

use super::templates;
use crate::object::Errors;

/// Checks steps that are valid one by one.
pub(super) fn check(steps: &[Step], errors: &Errors) {
    let Some(graph) = Graph::new(steps, errors) else {
        return;
    };
    if let Some(circle) = graph.circle() {
        let ids: Vec<&str> = circle.iter().map(|nth| steps[*nth].id.as_str()).collect();
        let onward = graph.next[circle[0]].iter();
        let way = onward
            .filter(|(to, _)| circle.get(1) == Some(to))
            .map(|(_, way)| way.name());
        let way = way.take(1).collect::<String>();
        let place = format!("steps[{}].{way}", circle[0]);
        errors.add(place, format!("forms a loop: {}", ids.join(" -> ")));
        return;
    }
    graph.check_reachable(errors);
    let previous = graph.previous();
    let before = |nth| graph.ids_before(nth, &previous);
    templates::check_references(steps, before, errors);
}

struct Graph<'s> {
    steps: &'s [Step],
    /// The steps that follow each step, by their indexes, with the ways that lead there.
    next: Vec<Vec<(usize, Way)>>,
    trigger: Option<usize>,
}

fn is_trigger(step: &Step) -> bool {
    matches!(step.action, Action::Trigger(_))
}

impl<'s> Graph<'s> {
    /// Resolves names; `None` if they are inconsistent.
    fn new(steps: &'s [Step], errors: &Errors) -> Option<Self> {
        let wrong_before = errors.count();
        let mut places: HashMap<&str, usize> = HashMap::with_capacity(steps.len());
        for (nth, step) in steps.iter().enumerate() {
            if let Some(first) = places.insert(step.id.as_str(), nth) {
                let reason = format!("is already the id of steps[{first}]");
                errors.add(format!("steps[{nth}].id"), reason);
            }
        }
        let mut triggers = steps
            .iter()
            .enumerate()
            .filter(|(_, step)| is_trigger(step));
        let trigger = triggers.next().map(|(nth, _)| nth);
        for (nth, _) in triggers {
            errors.add(
                format!("steps[{nth}].type"),
                "only one TRIGGER step is allowed",
            );
        }
        let next = steps.iter().enumerate().map(|(nth, step)| {
            let ways = step.ways().into_iter();
            let targets = ways.flat_map(|(way, ids)| {
                let ids = ids.iter().enumerate();
                ids.map(move |(place, id)| (way, place, id))
            });
            let found = targets.filter_map(|(way, place, id)| {
                let place = || format!("steps[{nth}].{}[{place}]", way.name());
                match places.get(id.as_str()) {
                    None => errors.add(place(), "no step has this id"),
                    Some(target) if is_trigger(&steps[*target]) => {
                        errors.add(place(), "must not lead to the TRIGGER step");
                    }
                    Some(target) => return Some((*target, way)),
                }
                None
            });
            found.collect()
        });
        let next = next.collect();
        (errors.count() == wrong_before).then_some(Self {
            steps,
            next,
            trigger,
        })
    }

    /// The indexes of steps that lead back to the first of them, which is repeated at the end.
    fn circle(&self) -> Option<Vec<usize>> {
        let mut leading_here = vec![0_usize; self.steps.len()];
        for (target, _) in self.next.iter().flatten() {
            leading_here[*target] += 1;
        }
        let mut free: Vec<usize> = (0..self.steps.len())
            .filter(|nth| leading_here[*nth] == 0)
            .collect();
        while let Some(nth) = free.pop() {
            for (target, _) in &self.next[nth] {
                leading_here[*target] -= 1;
                if leading_here[*target] == 0 {
                    free.push(*target);
                }
            }
        }
        // Each remaining step has a remaining predecessor: going backwards must repeat.
        let left = |nth: &usize| leading_here[*nth] > 0;
        let mut way = vec![(0..self.steps.len()).find(left)?];
        loop {
            let here = *way.last()?;
            let leads_here = |nth: usize| self.next[nth].iter().any(|(to, _)| *to == here);
            let before = (0..self.steps.len()).find(|nth| left(nth) && leads_here(*nth))?;
            if let Some(start) = way.iter().position(|nth| *nth == before) {
                let mut circle = way.split_off(start);
                circle.push(before);
                circle.reverse();
                return Some(circle);
            }
            way.push(before);
        }
    }

    /// The steps that lead to each step.
    fn previous(&self) -> Vec<Vec<usize>> {
        let mut previous: Vec<Vec<usize>> = vec![Vec::new(); self.steps.len()];
        for (nth, next) in self.next.iter().enumerate() {
            for (target, _) in next {
                previous[*target].push(nth);
            }
        }
        previous
    }

    /// The ids of the steps on the ways to a step.
    fn ids_before(&self, step: usize, previous: &[Vec<usize>]) -> HashSet<&'s str> {
        let mut reached = vec![false; self.steps.len()];
        let mut open = previous[step].clone();
        while let Some(nth) = open.pop() {
            if !std::mem::replace(&mut reached[nth], true) {
                open.extend(&previous[nth]);
            }
        }
        let reached = reached.iter().enumerate().filter(|(_, reached)| **reached);
        reached
            .map(|(nth, _)| self.steps[nth].id.as_str())
            .collect()
    }

    /// If runs have a beginning, every step must be on a way from there.
    fn check_reachable(&self, errors: &Errors) {
        let Some(trigger) = self.trigger else {
            return;
        };
        let mut reached = vec![false; self.steps.len()];
        let mut open = vec![trigger];
        while let Some(nth) = open.pop() {
            if !std::mem::replace(&mut reached[nth], true) {
                open.extend(self.next[nth].iter().map(|(to, _)| *to));
            }
        }
        for (nth, _) in reached.iter().enumerate().filter(|(_, reached)| !**reached) {
            errors.add(
                format!("steps[{nth}]"),
                "cannot be reached from the TRIGGER step",
            );
        }
    }
}
