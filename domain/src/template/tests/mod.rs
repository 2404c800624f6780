mod absent;
mod addresses;
mod cost;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use schemas::{RunId, StepId};
use serde_json::{Map, Value, json};

use super::{Meter, Scope, Scrub, Secrets, Shown, Template, Test, Tree, Within, check, check_tree};

/// What a rendering may cost by default.
const WORK: u64 = 16 * 1024 * 1024;

fn meter() -> Meter {
    Meter::new(WORK)
}

fn scope() -> Scope {
    let trigger = json!({
        "email": "ada@example.com", "score": 7, "big": u64::MAX, "ratio": 0.5, "vip": true,
        "none": null, "tags": ["a", "b"], "address": {"city": "Berlin", "zip": "10115"},
    });
    let output = Arc::new(json!({"status": 201, "body": {"id": "c-1"}}));
    let (call, reply) = (StepId::from("call"), StepId::from("reply"));
    let steps = Arc::new(BTreeSet::from([call.clone(), reply]));
    let outputs = [(&call, &output)];
    Scope::new(&RunId::from("run-1"), &fields(trigger), &steps, outputs)
}

fn fields(value: Value) -> Arc<Map<String, Value>> {
    match value {
        Value::Object(fields) => Arc::new(fields),
        other => panic!("no object: {other}"),
    }
}

fn secrets() -> Secrets {
    let secrets = BTreeMap::from([("TOKEN".to_owned(), "s3cr3t \"x\"".to_owned())]);
    Secrets::Shown(Arc::new(Shown::new(Arc::new(secrets))))
}

fn render(source: &str) -> Result<Value, String> {
    let template = Template::parse(source).map_err(|error| error.to_string())?;
    let rendered = template.render(&scope(), &secrets(), &meter());
    rendered.map_err(|error| error.to_string())
}

#[test]
fn a_single_expression_keeps_its_type() {
    for (source, value) in [
        ("{{ trigger.score }}", json!(7)),
        ("{{ trigger.big }}", json!(u64::MAX)),
        ("{{trigger.ratio}}", json!(0.5)),
        ("{{ trigger.vip }}", json!(true)),
        ("{{ trigger.none }}", json!(null)),
        ("{{ trigger.tags }}", json!(["a", "b"])),
        (
            "{{ trigger.address }}",
            json!({"city": "Berlin", "zip": "10115"}),
        ),
        ("{{ steps.call.output.status }}", json!(201)),
        ("{{ steps['call'].output['body'].id }}", json!("c-1")),
        ("{{ run.id }}", json!("run-1")),
        ("{{ {'a': {'b': 1}} }}", json!({"a": {"b": 1}})),
        ("{{ trigger.score * 2 + 1 }}", json!(15)),
        ("{{ -trigger.score|abs }}", json!(7)),
        ("{{ 2 ** 10 // 3 % 7 - 1 }}", json!(4)),
        ("{{ 1 < trigger.score <= 7 }}", json!(true)),
        (
            "{{ 'a' in trigger.tags and not 'z' in trigger.tags }}",
            json!(true),
        ),
        ("{{ 'z' not in trigger.tags }}", json!(true)),
        (
            "{{ 'hot' if trigger.score >= 5 else 'cold' }}",
            json!("hot"),
        ),
        ("{{ trigger.tags[0] ~ trigger.tags[-1] }}", json!("ab")),
        ("{{ trigger.tags + ['c'] }}", json!(["a", "b", "c"])),
        ("{{ trigger.email[:3] }}", json!("ada")),
        ("{{ trigger.tags[::-1] }}", json!(["b", "a"])),
        (
            "{{ trigger.email|upper|replace('ADA', 'bob') }}",
            json!("bob@EXAMPLE.COM"),
        ),
        ("{{ trigger.tags|join(', ') }}", json!("a, b")),
        ("{{ trigger.missing|default('none') }}", json!("none")),
        ("{{ trigger.missing is defined }}", json!(false)),
        ("{{ trigger.score is divisibleby(7) }}", json!(true)),
        ("{{ 'a b/c'|urlencode }}", json!("a%20b/c")),
        ("{{ trigger.tags|map('upper')|list }}", json!(["A", "B"])),
        ("{{ [3, 1, 2]|sort(reverse=true)|first }}", json!(3)),
        (
            "{{ \"it's\" ~ ' \"quoted\" }}' }}",
            json!("it's \"quoted\" }}"),
        ),
    ] {
        assert_eq!(render(source), Ok(value), "{source}");
    }
}

#[test]
fn values_are_written_into_text() {
    for (source, text) in [
        ("no template", "no template"),
        ("", ""),
        ("to {{ trigger.email }}!", "to ada@example.com!"),
        ("{{ trigger.score }}{{ trigger.vip }}", "7true"),
        ("x {{ trigger.none }}", "x null"),
        (
            "city: {{ trigger.address }}",
            "city: {\"city\":\"Berlin\",\"zip\":\"10115\"}",
        ),
        ("a  {{- trigger.score -}}  b", "a7b"),
        ("Bearer {{ secrets.TOKEN }}", "Bearer s3cr3t \"x\""),
        ("{ not a template }", "{ not a template }"),
        ("{% raw text %}", "{% raw text %}"),
    ] {
        assert_eq!(render(source), Ok(Value::from(text)), "{source}");
    }
}

#[test]
fn an_error_names_the_expression_and_its_place() {
    let body = json!({"lead": {"emails": ["x", "{{ trigger.email.first.last }}"]}});
    let error = Tree::parse(&body)
        .unwrap()
        .render(&scope(), &Secrets::Masked, &meter())
        .unwrap_err();
    assert_eq!(
        error.at("body").to_string(),
        "body.lead.emails[1]: {{ trigger.email.first.last }}: undefined; use default() if it may \
         be absent"
    );
    let error = check_tree(&json!(["{{ nobody.x }}"])).unwrap_err();
    assert_eq!(
        error.at("steps[0].body").to_string(),
        "steps[0].body[0]: {{ nobody.x }}: unknown variable nobody; available: trigger, steps, \
         run, secrets"
    );
}

#[test]
fn what_is_not_there_is_an_error() {
    for source in [
        "{{ trigger.missing }}",
        "x{{ trigger.missing }}",
        "{{ trigger.missing ~ 'x' }}",
        "{{ trigger.missing + 1 }}",
        "{{ trigger.missing * 2 }}",
        "{{ trigger.missing|upper }}",
        "{{ [trigger.missing] }}",
        "{{ steps.later.output }}",
        "{{ secrets.OTHER }}",
        "{{ 'x' if trigger.missing else 'y' }}",
    ] {
        let error = render(source).unwrap_err();
        assert!(
            error.ends_with("undefined; use default() if it may be absent"),
            "{source}: {error}"
        );
    }
}

#[test]
fn what_cannot_be_right_is_refused_before_it_is_saved() {
    for (source, reason) in [
        ("{{ }}", "an expression is missing"),
        ("{{ trigger.a", "the braces are not closed"),
        ("{{ trigger. }}", "syntax error"),
        ("{{ 1 +", "not closed"),
        ("{{ trigger | nonsense }}", "unknown filter nonsense"),
        ("{{ trigger is nonsense }}", "unknown test nonsense"),
        ("{{ range(9) }}", "cannot be called"),
        ("{{ trigger.items() }}", "cannot be called"),
        ("{{ secrets }}", "a secret must be referenced by name"),
        (
            "{{ secrets[trigger.name] }}",
            "a secret must be referenced by name",
        ),
        (
            "{{ secrets.A|upper }}",
            "filters and operators are not allowed",
        ),
        ("{{ secrets.A[0] }}", "a secret"),
        (
            "{{ secrets.A == 'x' }}",
            "filters and operators are not allowed",
        ),
        (
            "{{ 'y' if secrets.A else 'n' }}",
            "filters and operators are not allowed",
        ),
        (
            "{{ ('x' ~ secrets.A)|length }}",
            "filters and operators are not allowed",
        ),
        ("{{ _meter }}", "unknown variable"),
        ("{{ trigger|_paid }}", "unknown filter"),
        (
            "{% if trigger.a %}{{ trigger.a }}{% endif %}",
            "only {{ expressions }}",
        ),
        ("{{ trigger.a }}{# note #}", "only {{ expressions }}"),
    ] {
        let error = check(source).unwrap_err().to_string();
        assert!(error.contains(reason), "{source}: {error}");
    }
}

#[test]
fn a_check_says_what_is_referred_to() {
    let found = check("{{ steps.a.output.x }} {{ steps['b-c'].output }} {{ 'k' ~ secrets.KEY }}");
    let found = found.unwrap();
    assert_eq!(Vec::from_iter(found.steps), ["a", "b-c"]);
    assert_eq!(Vec::from_iter(found.secrets), ["KEY"]);
}

#[test]
fn secrets_are_masked_where_they_would_be_recorded() {
    let header = Template::parse("Bearer {{ 'v1.' ~ secrets.TOKEN }}").unwrap();
    let recorded = header.render(&scope(), &Secrets::Masked, &meter()).unwrap();
    assert_eq!(recorded, json!("Bearer v1.***"));
}

#[test]
fn secrets_that_come_back_are_scrubbed_in_every_form() {
    let scrub = Scrub::new(["s3cr3t \"x\"", "4711", ""]);
    let body = json!({
        "plain": "was s3cr3t \"x\"!", "json": "{\"a\":\"s3cr3t \\\"x\\\"\"}",
        "form": "s3cr3t+%22x%22", "address": "/a/s3cr3t%20%22x%22", "number": 4711,
        "4711": ["other", 47110],
    });
    assert_eq!(
        scrub.value(body),
        json!({
            "plain": "was ***!", "json": "{\"a\":\"***\"}", "form": "***", "address": "/a/***",
            "number": "***", "***": ["other", 47110],
        })
    );
}

/// Runs on a thread with a stack as small as a worker's.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    thread.spawn(test).unwrap().join().unwrap();
}

#[test]
fn no_template_exhausts_the_machine() {
    on_a_small_stack(|| {
        let large = "x".repeat(200_000);
        let trigger = json!({"t": large, "l": vec![1; 50_000]});
        let scope = Scope::new(&RunId::from("r"), &fields(trigger), &Arc::default(), []);
        let many = |piece: &str, times: usize| vec![piece; times].join(" ~ ");
        for source in [
            "{{ 'a' * 100000000 }}".to_owned(),
            "{{ [1] * 100000000 }}".to_owned(),
            "{{ trigger.t * 400 }}".to_owned(),
            format!("{{{{ {} }}}}", many("trigger.t", 50)),
            format!("{{{{ {} }}}}", many("trigger.t", 200)),
            format!("{{{{ [{}] }}}}", many("trigger.t", 100).replace('~', ",")),
            "{{ trigger.t }}".repeat(100),
            "{{ trigger.t|replace('x', trigger.t) }}".to_owned(),
            "{{ trigger.t|replace('', trigger.t) }}".to_owned(),
            "{{ trigger.l|join(trigger.t) }}".to_owned(),
            "{{ trigger.t|split('') }}".to_owned(),
            "{{ trigger.t|list }}".to_owned(),
            "{{ 9 ** 9 ** 9 }}".to_owned(),
            format!("{{{{ {}1 }}}}", "-".repeat(2_000)),
            format!("{{{{ {}1 }}}}", "- ".repeat(1_000)),
            format!("{{{{ {}1{} }}}}", "(".repeat(1_000), ")".repeat(1_000)),
            format!("{{{{ {}1{} }}}}", "[".repeat(1_000), "]".repeat(1_000)),
            format!("{{{{ {}1 }}}}", "not ".repeat(500)),
            format!("{{{{ {}1 }}}}", "1+".repeat(1_000)),
            format!("{{{{ {}1 }}}}", "1**".repeat(600)),
            format!("{{{{ trigger{} }}}}", ".a".repeat(1_000)),
            format!("{{{{ trigger{} }}}}", "|list".repeat(400)),
            format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(150)),
            "{{ trigger.t".to_owned(),
        ] {
            let rendered =
                Template::parse(&source).and_then(|t| t.render(&scope, &Secrets::Masked, &meter()));
            let shown: String = source.chars().take(60).collect();
            assert!(rendered.is_err(), "{shown}");
            assert!(rendered.unwrap_err().to_string().len() < 700, "{shown}");
        }
    });
}

proptest! {
    #[test]
    fn texts_within_expressions_survive(text in "[^\\\\{}%#]{0,30}") {
        prop_assume!(!text.contains('"') && text.matches('-').count() < 4);
        let source = format!("{{{{ \"{text}\" ~ '' }}}}");
        prop_assert_eq!(render(&source), Ok(Value::from(text)));
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in "(\\{\\{|\\}\\}|[ -~]|trigger|secrets|\\|){0,40}") {
        if let Ok(template) = Template::parse(&text) {
            let masked = template.render(&scope(), &Secrets::Masked, &meter());
            let shown = template.render(&scope(), &secrets(), &meter());
            // Masking changes values, never the way taken.
            prop_assert!(masked.is_ok() || shown.is_err());
        }
    }

    #[test]
    fn a_tree_without_templates_stays_as_it_is(text in "[a-z]{0,8}", number: i64) {
        let value = json!({"a": [text, number, {"b": null}], "c": true});
        let tree = Tree::parse(&value).unwrap();
        prop_assert_eq!(tree.render(&scope(), &Secrets::Masked, &meter()), Ok(value));
    }
}

#[test]
fn a_test_says_whether_something_holds() {
    let holds = |source: &str, within, scope: &Scope| {
        Test::parse(source, within).and_then(|test| test.holds(scope, &meter()))
    };
    let event = Scope::of_event(&Arc::new(
        json!({"score": 80, "email": "a@b.c", "tags": []}),
    ));
    for (source, expected) in [
        ("data.score >= 50", true),
        ("data.score < 50 or data.email == 'x'", false),
        ("data.email", true),
        ("data.tags", false),
        ("'a' in data.email and not data.tags", true),
    ] {
        assert_eq!(
            holds(source, Within::Event, &event),
            Ok(expected),
            "{source}"
        );
    }
    assert!(holds("data.missing", Within::Event, &event).is_err());
    assert!(holds("data.missing.deeper > 1", Within::Event, &event).is_err());
    assert!(Test::parse("trigger.a", Within::Event).is_err());
    assert!(Test::parse("secrets.A", Within::Both).is_err());
    let both = scope().with_event(&Arc::new(json!({"email": "ada@example.com"})));
    assert_eq!(
        holds("data.email == trigger.email", Within::Both, &both),
        Ok(true)
    );
    assert_eq!(holds("trigger.vip", Within::Run, &scope()), Ok(true));
}
