//! Outputs of steps that have not succeeded: of the definition's two steps, `reply` has not.

use serde_json::json;

use super::super::{Address, Meter, Secrets, Template, Test, Within};
use super::{meter, render, scope};

const UNDEFINED: &str = "undefined; use default() if it may be absent";

#[test]
fn the_output_of_a_step_that_has_not_succeeded_is_null_whatever_is_looked_up_beneath_it() {
    for source in [
        "{{ steps.reply.output }}",
        "{{ steps.reply.output.status }}",
        "{{ steps.reply.output.a.b[0] }}",
        "{{ steps['reply'].output['a'][trigger.score].b }}",
        "{{ steps[trigger.none|default('reply', true)].output.status }}",
        "{{ steps.reply }}",
        "{{ steps.reply.output.a and trigger.vip }}",
    ] {
        assert_eq!(render(source), Ok(json!(null)), "{source}");
    }
    for (source, value) in [
        ("{{ [steps.reply.output.a, 1] }}", json!([null, 1])),
        ("{{ {'a': steps.reply.output.a} }}", json!({ "a": null })),
        (
            "{{ steps }}",
            json!({"call": {"output": {"status": 201, "body": {"id": "c-1"}}}, "reply": null}),
        ),
        ("{{ steps.reply.output|tojson }}", json!("null")),
    ] {
        assert_eq!(render(source), Ok(value), "{source}");
    }
}

#[test]
fn what_is_absent_is_empty_within_text() {
    for (source, text) in [
        ("a{{ steps.reply.output.status }}b", "ab"),
        ("{{ 'a' ~ steps.reply.output.status }}", "a"),
        ("{{ steps.reply.output|string }}", ""),
        ("{{ ['a', steps.reply.output.b, 'c']|join('-') }}", "a--c"),
    ] {
        assert_eq!(render(source), Ok(json!(text)), "{source}");
    }
}

#[test]
fn default_replaces_what_is_absent() {
    for (source, value) in [
        ("{{ steps.reply.output.status|default('x') }}", json!("x")),
        ("{{ steps.reply.output|default }}", json!("")),
        ("{{ steps.reply|d(7) }}", json!(7)),
        (
            "{{ steps.reply.output.status|default(0) >= 400 }}",
            json!(false),
        ),
        (
            "{{ steps.reply.output.id|default(steps.call.output.body.id) }}",
            json!("c-1"),
        ),
    ] {
        assert_eq!(render(source), Ok(value), "{source}");
    }
}

#[test]
fn what_is_absent_is_undefined_false_and_equal_to_nothing_else() {
    for (source, expected) in [
        ("steps.reply.output.status", false),
        ("not steps.reply.output.status", true),
        ("steps.reply.output.ok or trigger.vip", true),
        ("steps.reply.output.ok|bool", false),
        ("'a' if steps.reply.output.ok else ''", false),
        ("steps.reply is defined", false),
        ("steps.reply.output.status is defined", false),
        ("steps.reply.output.status is undefined", true),
        ("steps.call.output.status is defined", true),
        ("steps.reply.output.status is none", false),
        ("steps.reply.output.status is string", false),
        ("steps.reply.output.status is number", false),
        ("steps.reply.output.status is mapping", false),
        ("steps.reply.output.status == none", false),
        ("steps.reply.output.status == ''", false),
        ("steps.reply.output.status == 0", false),
        ("steps.reply.output.status != 200", true),
        ("200 == steps.reply.output.status", false),
        ("steps.reply.output.status is eq(200)", false),
        ("steps.reply.output.a == steps.reply.output.b", true),
        (
            "steps.reply.output.status and steps.reply.output.status >= 400",
            false,
        ),
    ] {
        let test = Test::parse(source, Within::Run).unwrap();
        assert_eq!(test.holds(&scope(), &meter()), Ok(expected), "{source}");
    }
}

#[test]
fn whatever_else_is_done_with_what_is_absent_is_an_error() {
    for source in [
        "steps.reply.output.status >= 400",
        "400 < steps.reply.output.status",
        "1 < steps.reply.output.status < 9",
        "steps.reply.output.status is ge(400)",
        "steps.reply.output.status in [200, 201]",
        "200 in steps.reply.output.all",
        "'x' in steps.reply.output.text",
        "steps.reply.output.text is in('text')",
        "steps.reply.output.text is startingwith('t')",
        "steps.reply.output.n + 1",
        "2 * steps.reply.output.n",
        "steps.reply.output.text|upper",
        "steps.reply.output.all|length",
        "steps.reply.output.all|first",
        "steps.reply.output.n|float",
        "steps.reply.output.all[:2]",
        "trigger.email|replace('a', steps.reply.output.text)",
        "[steps.reply.output.text]|map('upper')",
    ] {
        let error = render(&format!("{{{{ {source} }}}}")).unwrap_err();
        assert!(error.ends_with(UNDEFINED), "{source}: {error}");
    }
    assert!(render("{{ steps.reply.output.n - 1 }}").is_err());
    assert!(render("{{ -steps.reply.output.n }}").is_err());
}

#[test]
fn names_that_nothing_defines_are_still_errors() {
    for source in [
        "{{ steps.reply.outptu }}",
        "{{ steps.reply.outptu.status }}",
        "{{ steps.other.output }}",
        "{{ steps.call.output.missing }}",
        "{{ trigger.tags[steps.reply.output.n] }}",
    ] {
        let error = render(source).unwrap_err();
        assert!(error.ends_with(UNDEFINED), "{source}: {error}");
    }
}

#[test]
fn an_address_does_not_lose_a_part_that_is_absent() {
    let rendered = |source: &str| {
        let address = Address::parse(source).unwrap();
        address.render(&scope(), &Secrets::Masked, &meter())
    };
    for source in [
        "https://crm.example/leads/{{ steps.reply.output.id }}",
        "https://crm.example/leads?id={{ steps.reply.output.id }}",
        "https://crm.example/leads/{{ steps.reply.output.id|urlencode }}",
        "https://{{ steps.reply.output.host }}/",
        "{{ steps.reply.output.scheme }}://crm.example/",
    ] {
        let error = rendered(source).unwrap_err().to_string();
        assert!(error.ends_with(UNDEFINED), "{source}: {error}");
    }
    let known = rendered("https://crm.example/{{ steps.reply.output.id|default('new') }}");
    assert_eq!(known, Ok("https://crm.example/new".to_owned()));
}

#[test]
fn what_is_absent_is_paid_for_too() {
    let template = Template::parse("{{ [steps.reply.output.a, steps.reply.output.b] }}").unwrap();
    let spent = |work| {
        let meter = Meter::new(work);
        let rendered = template.render(&scope(), &Secrets::Masked, &meter);
        rendered.map(|_| meter.spent())
    };
    assert_eq!(spent(48), Ok(48));
    let error = spent(47).unwrap_err().to_string();
    assert!(error.contains("is too expensive"), "{error}");
}
