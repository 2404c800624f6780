//! Filters and tests.

use minijinja::machinery::ast::{CallArg, Filter, Test};

use super::super::filters::{FILTERS, TESTS};
use super::{Guard, Usage, Written};

impl Guard<'_> {
    pub(super) fn filter(&mut self, filter: &Filter<'_>) -> Result<Written, String> {
        known("filter", filter.name, FILTERS)?;
        applied(filter)?;
        let input = filter.expr.as_ref().ok_or("a filter without input")?;
        let input = self.atom(input, Usage::Used)?;
        let arguments = self.arguments(&filter.args)?;
        Ok(Written::tight(format!(
            "{input}|{}{arguments}",
            filter.name
        )))
    }

    pub(super) fn test(&mut self, test: &Test<'_>) -> Result<Written, String> {
        known("test", test.name, TESTS)?;
        let input = self.atom(&test.expr, Usage::Used)?;
        let arguments = self.arguments(&test.args)?;
        Ok(Written::loose(format!(
            "{input} is {}{arguments}",
            test.name
        )))
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Result<String, String> {
        let mut written = Vec::with_capacity(arguments.len());
        for argument in arguments {
            written.push(match argument {
                CallArg::Pos(value) => self.write(value, Usage::Used)?.text,
                CallArg::Kwarg(name, value) => {
                    format!("{name}={}", self.write(value, Usage::Used)?.text)
                }
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                    return Err("arguments cannot be unpacked".to_owned());
                }
            });
        }
        Ok(if written.is_empty() {
            String::new()
        } else {
            format!("({})", written.join(", "))
        })
    }
}

/// Checks that what `map` and `select` apply to each item is named in the expression and known.
fn applied(filter: &Filter<'_>) -> Result<(), String> {
    let (what, nth, names) = match filter.name {
        "map" => ("filter", 0, FILTERS),
        "select" | "reject" => ("test", 0, TESTS),
        "selectattr" | "rejectattr" => ("test", 1, TESTS),
        _ => return Ok(()),
    };
    let Some(CallArg::Pos(name)) = filter.args.get(nth) else {
        return Ok(());
    };
    let constant = name.as_const();
    match constant.as_ref().and_then(|name| name.as_str()) {
        Some(name) => known(what, name, names),
        None => Err(format!(
            "the {what} applied by {} must be a literal string, as in {}('{}')",
            filter.name, filter.name, names[0]
        )),
    }
}

fn known(what: &str, name: &str, names: &[&str]) -> Result<(), String> {
    if names.contains(&name) {
        return Ok(());
    }
    Err(format!(
        "unknown {what} {name}; available: {}",
        names.join(", ")
    ))
}
