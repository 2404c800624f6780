//! No expression costs more than it pays for.
//!
//! A rendering is measured in CPU time of its own thread, so that other load does not matter, and
//! compared with what plainly walking values takes for as many units. Unpaid work costs the square
//! of paid work, thousands of times as much.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use schemas::RunId;
use serde_json::{Map, Value, json};

use super::super::filters::{FILTERS, TESTS};
use super::super::{Meter, Scope, Secrets, Template};
use super::fields;

const WORK: u64 = 1 << 19;
const ITEMS: usize = 6_000;
/// How much more expensive than others a unit may be, and the least that a rendering takes: the
/// clock is coarse.
const DEARER: u32 = 8;
const AT_LEAST: Duration = Duration::from_millis(40);

static TRIGGER: LazyLock<Arc<Map<String, Value>>> = LazyLock::new(|| {
    let long = "a".repeat(ITEMS * 4);
    let words: Vec<_> = (0..ITEMS / 20)
        .map(|nth| format!("{}{nth}", &long[..90]))
        .collect();
    let maps: Vec<_> = words
        .iter()
        .map(|word| json!({"k": word, "n": {"m": 1}}))
        .collect();
    let lists: Vec<_> = (0..ITEMS / 200).map(|nth| vec![nth; 100]).collect();
    let map: Map<_, _> = words.iter().map(|k| (k.clone(), json!(k))).collect();
    fields(
        json!({"numbers": (1..=ITEMS).collect::<Vec<_>>(), "zeros": vec![0; ITEMS], "text": long,
        "words": words, "maps": maps, "lists": lists, "map": map, "few": [1, "a", 2.5], "b": "b"}),
    )
});

/// CPU time of this thread; wall-clock time where the system does not report it.
fn processor_time(began: Instant) -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = said.and_then(|said| said.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| began.elapsed(), Duration::from_nanos)
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    let before = processor_time(began);
    let value = run();
    (value, processor_time(began).saturating_sub(before))
}

/// How long all units of a rendering may take on this machine, as built.
fn bound() -> Duration {
    static BOUND: LazyLock<Duration> = LazyLock::new(|| {
        let looks = ["trigger.numbers == trigger.zeros"; 9].join(" or ");
        let template = Template::parse(&format!("{{{{ {looks} }}}}")).unwrap();
        let look = || {
            let meter = Meter::new(u64::MAX);
            template.render(&scope(), &Secrets::Masked, &meter).unwrap();
            meter.spent()
        };
        let (spent, took) = timed(|| (0..20).map(|_| look()).sum::<u64>());
        let rest = u32::try_from(spent / WORK).unwrap();
        AT_LEAST + took / rest * DEARER
    });
    *BOUND
}

fn scope() -> Scope {
    Scope::new(&RunId::from("r"), &TRIGGER, &Arc::default(), [])
}

/// Renders an expression; returns how long it took if that was longer than its means allow.
fn cost(expression: &str) -> Result<(), Duration> {
    let Ok(template) = Template::parse(&format!("{{{{ {expression} }}}}")) else {
        return Ok(());
    };
    let scope = scope();
    let mut took = Duration::MAX;
    // Other work may have interfered: what is too expensive is so each time.
    for _ in 0..3 {
        let meter = Meter::new(WORK);
        let rendered = timed(|| drop(template.render(&scope, &Secrets::Masked, &meter)));
        took = took.min(rendered.1);
        if took <= bound() {
            return Ok(());
        }
    }
    Err(took)
}

const LARGE: &[&str] = &["numbers", "text", "words", "maps", "map"];

#[test]
fn every_filter_and_test_pays_for_what_it_is_given() {
    let mut expressions = Vec::new();
    for large in LARGE.iter().map(|name| format!("trigger.{name}")) {
        for filter in FILTERS {
            // The same large value thousands of times, walked each time.
            let many = format!("trigger.zeros|map('default', {large}, true)|map('{filter}'");
            for arguments in [
                "",
                ", 'a'",
                ", 'k', 'b'",
                ", attribute='k'",
                ", 1",
                ", 'lower'",
            ] {
                expressions.push(format!("{many}{arguments})|length"));
            }
            expressions.push(format!("{large}|{filter}({large})|length"));
            expressions.push(format!("{large}|map('{filter}', {large})|length"));
            expressions.push(format!("{large}|map('{filter}', 'a', {large})|length"));
        }
        for test in TESTS {
            for other in LARGE {
                expressions.push(format!("{large}|select('{test}', trigger.{other})|length"));
            }
            let many = format!("trigger.zeros|map('default', {large}, true)");
            expressions.push(format!("{many}|reject('{test}', {large})|length"));
            let maps = format!("trigger.maps|rejectattr('k', '{test}', {large})");
            expressions.push(format!("{maps}|length"));
        }
        for start in ["''", "[]", "0"] {
            expressions.push(format!("{large}|sum(start={start})"));
        }
    }
    for expression in expressions {
        let cost = cost(&expression);
        assert!(cost.is_ok(), "{expression} took {cost:?} of {:?}", bound());
    }
}

#[test]
fn what_is_too_much_is_refused_at_once_and_says_so() {
    let numbers = json!({ "l": (0..33_000).collect::<Vec<_>>() });
    let scope = Scope::new(&RunId::from("r"), &fields(numbers), &Arc::default(), []);
    for expression in [
        "trigger.l|select('in', trigger.l)|length > 0",
        "trigger.l|reject('in', trigger.l)|length > 0",
    ] {
        let template = Template::parse(&format!("{{{{ {expression} }}}}")).unwrap();
        let meter = Meter::new(super::WORK);
        let (rendered, took) = timed(|| template.render(&scope, &Secrets::Masked, &meter));
        let error = rendered.unwrap_err().to_string();
        assert!(meter.is_exhausted());
        assert!(error.contains("is too expensive"), "{error}");
        assert!(error.contains("use shorter lists"), "{error}");
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

#[test]
fn a_rendering_that_is_stopped_ends() {
    let template = Template::parse("{{ trigger.numbers|sort|first }}").unwrap();
    let meter = Meter::new(super::WORK);
    meter.stop();
    let rendered = template.render(&scope(), &Secrets::Masked, &meter);
    let error = rendered.unwrap_err().to_string();
    assert!(error.contains("took too long"), "{error}");
}

fn leaf() -> impl Strategy<Value = String> {
    let long = proptest::sample::select(vec!["trigger.numbers", "trigger.zeros"]);
    let other = proptest::sample::select(vec![
        "trigger.text",
        "trigger.words",
        "trigger.maps",
        "trigger.lists",
        "trigger.map",
        "trigger.few",
    ]);
    let small = proptest::sample::select(vec!["'a'", "0", "-3", "2.5", "none", "'k'", "[1, 2]"]);
    prop_oneof![3 => long, 3 => other, 1 => small].prop_map(str::to_owned)
}

fn operation(
    operand: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = String> + Clone {
    let three = (operand.clone(), operand.clone(), operand);
    let filter = proptest::sample::select(FILTERS);
    let test = proptest::sample::select(TESTS);
    (0..26_u8, three, filter, test).prop_map(|(kind, (a, b, c), filter, test)| match kind {
        0..=2 => format!("({a})|{filter}"),
        3 => format!("({a})|{filter}({b})"),
        4 => format!("({a})|{filter}({b}, {c})"),
        5 => format!("({a})|map('{filter}')"),
        6 => format!("({a})|map('{filter}', {b})"),
        7 => format!("({a})|map('{filter}', {b}, {c})"),
        8 => format!("({a})|map('default', {b}, true)"),
        9 => format!("({a})|select('{test}', {b})"),
        10 => format!("({a})|rejectattr('k', '{test}', {b})"),
        11 => format!("({a}) is {test}({b})"),
        12 => format!("({a}) in ({b})"),
        13 => format!("({a}) == ({b})"),
        14 => format!("({a}) < ({b})"),
        15 => format!("({a}) ~ ({b})"),
        16 => format!("({a}) + ({b})"),
        17 => format!("({a})[{b}:{c}]"),
        18 => format!("({a})[::-1]"),
        19 => format!("({a})[{b}]"),
        20 => format!("[{a}, {b}]"),
        21 => format!("({a})|select('in', {b})"),
        22 => format!("({a})|replace({b}, {c})"),
        23 => format!("({a})|sum(start={b})"),
        24 => format!("({a})|join({b})"),
        _ => format!("{{{a}: {b}}}"),
    })
}

fn expressions() -> impl Strategy<Value = String> {
    let one = operation(leaf().boxed()).boxed();
    let two = operation(prop_oneof![leaf(), one.clone()].boxed()).boxed();
    let three = operation(prop_oneof![leaf(), two.clone()].boxed());
    prop_oneof![2 => one, 2 => two, 1 => three]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]
    #[test]
    fn nothing_costs_more_than_its_means(expression in expressions()) {
        let cost = cost(&expression);
        prop_assert!(cost.is_ok(), "{} took {:?} of {:?}", expression, cost, bound());
    }
}
