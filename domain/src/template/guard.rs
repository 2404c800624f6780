//! Judges a parsed expression and writes it out again with guards around whatever could grow.
//!
//! `MiniJinja`'s own bound counts instructions, but a single one can repeat a text a hundred
//! million times, and constants are even folded while compiling. So every operand of `*`, `+` and
//! `~` and every input of a filter passes through a filter of ours that charges for it.

use minijinja::machinery::ast::{
    BinOp, BinOpKind, CallArg, Compare, CompareOpKind, Expr, Filter, GetAttr, GetItem, Slice, Test,
    UnaryOp, UnaryOpKind,
};

use super::References;
use super::filters::{CHARGE, FILTERS, NUMBER, SUMMAND, TESTS, TEXT};

/// How deep an expression may nest; also how many operands one chain of operators may have.
const MAX_DEPTH: usize = 60;

/// The names that an expression may use.
pub(super) type Names = &'static [&'static str];

/// Within a run.
pub(super) const OF_A_RUN: Names = &["trigger", "steps", "run", "secrets"];
/// Over an event alone.
pub(super) const OF_AN_EVENT: Names = &["data"];
/// Over an event within a run.
pub(super) const OF_BOTH: Names = &["data", "trigger", "steps", "run"];

/// An expression with guards.
pub(super) struct Guarded {
    pub(super) source: String,
    pub(super) references: References,
}

pub(super) fn guard(
    source: &str,
    expression: &Expr<'_>,
    names: Names,
    place: Place,
) -> Result<Guarded, String> {
    let mut guard = Guard {
        source,
        names,
        references: References::default(),
        depth: 0,
    };
    let source = guard.write(expression, place)?;
    Ok(Guarded {
        source,
        references: guard.references,
    })
}

/// Where a part stands within its expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Its value is inserted as it is: secrets are welcome.
    Inserted,
    /// Its value is worked on. A secret's traces would be in the result where nobody could
    /// recognise them, so secrets are refused.
    Used,
}

struct Guard<'s> {
    source: &'s str,
    names: Names,
    references: References,
    depth: usize,
}

impl Guard<'_> {
    fn write(&mut self, expression: &Expr<'_>, place: Place) -> Result<String, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("too long or nested too deep".to_owned());
        }
        let written = self.write_kind(expression, place);
        self.depth -= 1;
        written
    }

    fn write_kind(&mut self, expression: &Expr<'_>, place: Place) -> Result<String, String> {
        match expression {
            Expr::Var(name) => self.name_of(name.id),
            Expr::Const(_) => self.verbatim(expression),
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(operation) => self.unary(operation),
            Expr::BinOp(operation) => self.binary(operation, place),
            Expr::Compare(comparison) => self.compare(comparison),
            Expr::IfExpr(choice) => {
                let test = self.atom(&choice.test_expr, Place::Used)?;
                let then = self.atom(&choice.true_expr, place)?;
                Ok(match &choice.false_expr {
                    Some(other) => format!("{then} if {test} else {}", self.atom(other, place)?),
                    None => format!("{then} if {test}"),
                })
            }
            Expr::Filter(filter) => self.filter(filter),
            Expr::Test(test) => self.test(test),
            Expr::GetAttr(lookup) => self.attribute(lookup, place),
            Expr::GetItem(lookup) => self.item(lookup, place),
            Expr::Call(_) => Err("functions and methods cannot be called; use a filter".to_owned()),
            Expr::List(list) => Ok(format!("[{}]", self.items(&list.items, place)?)),
            Expr::Tuple(tuple) => Ok(format!("[{}]", self.items(&tuple.items, place)?)),
            Expr::Map(map) => {
                let mut pairs = Vec::with_capacity(map.keys.len());
                for (key, value) in map.keys.iter().zip(&map.values) {
                    let key = self.write(key, Place::Used)?;
                    pairs.push(format!("({key}): ({})", self.write(value, place)?));
                }
                Ok(format!("{{{}}}", pairs.join(", ")))
            }
        }
    }

    /// With parentheses unless it is one piece anyway.
    fn atom(&mut self, expression: &Expr<'_>, place: Place) -> Result<String, String> {
        let written = self.write(expression, place)?;
        Ok(match expression {
            Expr::Var(_)
            | Expr::Const(_)
            | Expr::GetAttr(_)
            | Expr::GetItem(_)
            | Expr::Slice(_)
            | Expr::Filter(_)
            | Expr::List(_)
            | Expr::Tuple(_)
            | Expr::Map(_) => written,
            _ => format!("({written})"),
        })
    }

    /// What a `.` or `[` may follow: a filter binds less tightly than these.
    fn object(&mut self, expression: &Expr<'_>) -> Result<String, String> {
        let written = self.atom(expression, Place::Used)?;
        Ok(match expression {
            Expr::Filter(_) | Expr::Const(_) => format!("({written})"),
            _ => written,
        })
    }

    fn items(&mut self, items: &[Expr<'_>], place: Place) -> Result<String, String> {
        let written: Result<Vec<_>, _> = items.iter().map(|item| self.write(item, place)).collect();
        Ok(written?.join(", "))
    }

    fn verbatim(&self, expression: &Expr<'_>) -> Result<String, String> {
        let span = expression.span();
        let range = span.start_offset as usize..span.end_offset as usize;
        let text = self.source.get(range).unwrap_or_default().trim();
        if text.is_empty() {
            return Err("a constant cannot be read".to_owned());
        }
        Ok(text.to_owned())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> Result<String, String> {
        let object = self.object(&slice.expr)?;
        let mut bounds = Vec::with_capacity(3);
        for bound in [&slice.start, &slice.stop, &slice.step] {
            bounds.push(match bound {
                Some(bound) => self.atom(bound, Place::Used)?,
                None => String::new(),
            });
        }
        // An empty step after its colon is no expression.
        if bounds[2].is_empty() {
            bounds.pop();
        }
        Ok(format!("{object}[{}]", bounds.join(":")))
    }

    fn unary(&mut self, operation: &UnaryOp<'_>) -> Result<String, String> {
        let operand = self.atom(&operation.expr, Place::Used)?;
        Ok(match operation.op {
            UnaryOpKind::Not => format!("not {operand}"),
            UnaryOpKind::Neg => format!("-({operand})"),
        })
    }

    fn binary(&mut self, operation: &BinOp<'_>, place: Place) -> Result<String, String> {
        let (sign, guard) = match operation.op {
            BinOpKind::Eq => ("==", None),
            BinOpKind::Ne => ("!=", None),
            BinOpKind::Lt => ("<", None),
            BinOpKind::Lte => ("<=", None),
            BinOpKind::Gt => (">", None),
            BinOpKind::Gte => (">=", None),
            BinOpKind::ScAnd => ("and", None),
            BinOpKind::ScOr => ("or", None),
            BinOpKind::Add => ("+", Some(SUMMAND)),
            BinOpKind::Sub => ("-", None),
            BinOpKind::Mul => ("*", Some(NUMBER)),
            BinOpKind::Div => ("/", None),
            BinOpKind::FloorDiv => ("//", None),
            BinOpKind::Rem => ("%", None),
            BinOpKind::Pow => ("**", None),
            BinOpKind::Concat => ("~", Some(TEXT)),
            BinOpKind::In => ("in", None),
        };
        let joins = matches!(operation.op, BinOpKind::Concat);
        let place = if joins { place } else { Place::Used };
        let mut sides = Vec::with_capacity(2);
        for side in [&operation.left, &operation.right] {
            let written = self.atom(side, place)?;
            sides.push(match guard {
                Some(guard) => format!("({written}|{guard})"),
                None => written,
            });
        }
        Ok(sides.join(&format!(" {sign} ")))
    }

    fn compare(&mut self, comparison: &Compare<'_>) -> Result<String, String> {
        let mut written = vec![self.atom(&comparison.expr, Place::Used)?];
        for operation in &comparison.ops {
            let sign = match operation.op {
                CompareOpKind::Eq => "==",
                CompareOpKind::Ne => "!=",
                CompareOpKind::Lt => "<",
                CompareOpKind::Lte => "<=",
                CompareOpKind::Gt => ">",
                CompareOpKind::Gte => ">=",
                CompareOpKind::In => "in",
                CompareOpKind::NotIn => "not in",
            };
            written.push(sign.to_owned());
            written.push(self.atom(&operation.expr, Place::Used)?);
        }
        Ok(written.join(" "))
    }

    fn filter(&mut self, filter: &Filter<'_>) -> Result<String, String> {
        known("filter", filter.name, FILTERS)?;
        let input = filter.expr.as_ref().ok_or("a filter without input")?;
        let input = self.atom(input, Place::Used)?;
        let arguments = self.arguments(&filter.args)?;
        Ok(format!("{input}|{CHARGE}|{}{arguments}", filter.name))
    }

    fn test(&mut self, test: &Test<'_>) -> Result<String, String> {
        known("test", test.name, TESTS)?;
        let input = self.atom(&test.expr, Place::Used)?;
        let arguments = self.arguments(&test.args)?;
        Ok(format!("{input} is {}{arguments}", test.name))
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) -> Result<String, String> {
        let mut written = Vec::with_capacity(arguments.len());
        for argument in arguments {
            written.push(match argument {
                CallArg::Pos(value) => self.write(value, Place::Used)?,
                CallArg::Kwarg(name, value) => {
                    format!("{name}={}", self.write(value, Place::Used)?)
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

    fn attribute(&mut self, lookup: &GetAttr<'_>, place: Place) -> Result<String, String> {
        if let Expr::Var(name) = &lookup.expr {
            self.refer(name.id, Some(lookup.name), place)?;
            return Ok(format!("{}.{}", name.id, lookup.name));
        }
        Ok(format!("{}.{}", self.object(&lookup.expr)?, lookup.name))
    }

    fn item(&mut self, lookup: &GetItem<'_>, place: Place) -> Result<String, String> {
        let key = self.write(&lookup.subscript_expr, Place::Used)?;
        if let Expr::Var(name) = &lookup.expr {
            let constant = lookup.subscript_expr.as_const();
            self.refer(name.id, constant.as_ref().and_then(|c| c.as_str()), place)?;
            return Ok(format!("{}[{key}]", name.id));
        }
        Ok(format!("{}[{key}]", self.object(&lookup.expr)?))
    }

    /// A name that stands alone.
    fn name_of(&self, name: &str) -> Result<String, String> {
        match name {
            name if !self.names.contains(&name) => Err(format!(
                "unknown name {name}; there are {}",
                self.names.join(", ")
            )),
            "secrets" => Err("a secret must be named, as in secrets.NAME".to_owned()),
            name => Ok(name.to_owned()),
        }
    }

    /// Notes what `steps.<id>` and `secrets.<NAME>` name.
    fn refer(&mut self, root: &str, member: Option<&str>, place: Place) -> Result<(), String> {
        if !self.names.contains(&root) {
            return self.name_of(root).map(drop);
        }
        match (root, member) {
            ("secrets", None) => Err("a secret must be named, as in secrets.NAME".to_owned()),
            ("secrets", Some(_)) if place == Place::Used => Err(
                "a secret can only be inserted as it is or joined with ~, not worked on".to_owned(),
            ),
            ("secrets", Some(name)) => {
                self.references.secrets.insert(name.to_owned());
                Ok(())
            }
            ("steps", Some(id)) => {
                self.references.steps.insert(id.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn known(what: &str, name: &str, names: &[&str]) -> Result<(), String> {
    if names.contains(&name) {
        return Ok(());
    }
    Err(format!(
        "unknown {what} {name}; there are {}",
        names.join(", ")
    ))
}
