//! Checks a parsed expression and rewrites it so that all it does is paid for.
//!
//! `MiniJinja`'s own limit counts instructions, but a single one can compare two lists of any
//! length or repeat a text a hundred million times, and constants are even folded while compiling.
//! So every operand of an operator passes through a filter of ours that pays for it, slices and
//! `in` become such filters, and lazy values are collected. Filters and tests pay for themselves
//! ([`super::filters`]).

mod calls;
mod names;
mod operators;

use minijinja::machinery::ast::{Expr, GetAttr, GetItem, IfExpr};

use super::References;
use super::address::Section;
use super::filters::{INDEXED, PAID};
pub(super) use names::{Names, OF_A_RUN, OF_AN_EVENT, OF_BOTH};

/// How deep an expression may nest; also how many operands one chain of operators may have.
const MAX_DEPTH: usize = 60;

/// An expression with guards.
pub(super) struct Guarded {
    pub(super) source: String,
    pub(super) references: References,
    /// The section of the address after it, for one that is a part of an address.
    pub(super) section: Section,
    /// Whether there are values in its path or after it.
    pub(super) fills: bool,
}

pub(super) fn guard(
    source: &str,
    expression: &Expr<'_>,
    names: Names,
    usage: Usage,
) -> Result<Guarded, String> {
    let section = match usage {
        Usage::Address(section) => section,
        Usage::Inserted | Usage::Used => Section::Start,
    };
    let mut guard = Guard {
        source,
        names,
        references: References::default(),
        section,
        fills: false,
        depth: 0,
    };
    let written = guard.write(expression, usage)?;
    Ok(Guarded {
        source: written.text,
        references: guard.references,
        section: guard.section,
        fills: guard.fills,
    })
}

/// How a part of an expression is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// Its value is inserted as it is: secrets are allowed.
    Inserted,
    /// As before, into an address: the value is written so that it stays within its section.
    Address(Section),
    /// Its value is processed. Secrets are refused, since their traces could not be recognised in
    /// the result.
    Used,
}

/// A part as rewritten.
struct Written {
    text: String,
    /// Whether a `|` after it applies to all of it.
    tight: bool,
}

impl Written {
    fn tight(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            tight: true,
        }
    }

    fn loose(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            tight: false,
        }
    }

    /// Adds parentheses unless it is tight.
    fn atom(self) -> String {
        if self.tight {
            self.text
        } else {
            format!("({})", self.text)
        }
    }
}

struct Guard<'s> {
    source: &'s str,
    names: Names,
    references: References,
    section: Section,
    fills: bool,
    depth: usize,
}

impl Guard<'_> {
    fn write(&mut self, expression: &Expr<'_>, usage: Usage) -> Result<Written, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("too long or nested too deep".to_owned());
        }
        let written = match usage {
            Usage::Address(_) => self.write_address(expression),
            Usage::Inserted | Usage::Used => self.write_kind(expression, usage),
        };
        self.depth -= 1;
        written
    }

    fn atom(&mut self, expression: &Expr<'_>, usage: Usage) -> Result<String, String> {
        self.write(expression, usage).map(Written::atom)
    }

    /// An operand that is walked as a whole.
    fn paid(&mut self, expression: &Expr<'_>) -> Result<String, String> {
        self.through(PAID, expression)
    }

    /// An operand that passes through a guard.
    fn through(&mut self, guard: &str, expression: &Expr<'_>) -> Result<String, String> {
        let operand = self.atom(expression, Usage::Used)?;
        Ok(format!("{operand}|{guard}"))
    }

    fn write_kind(&mut self, expression: &Expr<'_>, usage: Usage) -> Result<Written, String> {
        match expression {
            Expr::Var(name) => self.name_of(name.id).map(Written::tight),
            Expr::Const(_) => self.verbatim(expression).map(Written::tight),
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(operation) => self.unary(operation),
            Expr::BinOp(operation) => self.binary(operation, usage),
            Expr::Compare(comparison) => self.compare(comparison),
            Expr::IfExpr(choice) => self.choice(choice, usage),
            Expr::Filter(filter) => self.filter(filter),
            Expr::Test(test) => self.test(test),
            Expr::GetAttr(lookup) => self.attribute(lookup, usage),
            Expr::GetItem(lookup) => self.item(lookup, usage),
            Expr::Call(_) => Err("functions and methods cannot be called; use a filter".to_owned()),
            Expr::List(list) => self.list(&list.items, usage),
            Expr::Tuple(tuple) => self.list(&tuple.items, usage),
            Expr::Map(map) => {
                let mut pairs = Vec::with_capacity(map.keys.len());
                for (key, value) in map.keys.iter().zip(&map.values) {
                    let key = self.paid(key)?;
                    let value = self.write(value, usage)?.text;
                    pairs.push(format!("({key}): ({value})"));
                }
                Ok(Written::tight(format!("{{{}}}", pairs.join(", "))))
            }
        }
    }

    /// A part of an address: what the author wrote stays as it is, every other value is kept
    /// within the section that it is in.
    fn write_address(&mut self, expression: &Expr<'_>) -> Result<Written, String> {
        let usage = Usage::Address(self.section);
        match expression {
            Expr::Const(constant) if constant.value.as_str().is_some() => {
                let text = constant.value.as_str().unwrap_or_default();
                self.section = self.section.behind(text);
                self.verbatim(expression).map(Written::tight)
            }
            Expr::IfExpr(choice) => self.choice(choice, usage),
            Expr::BinOp(operation) if operators::joins(operation) => self.binary(operation, usage),
            Expr::Filter(filter) if self.section == Section::Rest && filter.name == "urlencode" => {
                self.fills = true;
                self.write_kind(expression, Usage::Inserted)
            }
            _ => {
                self.fills |= self.section == Section::Rest;
                let value = self.write_kind(expression, Usage::Inserted)?;
                let written = match self.section.filter() {
                    Some(filter) => Written::tight(format!("{}|{filter}", value.atom())),
                    None => value,
                };
                self.section = self.section.behind_value();
                Ok(written)
            }
        }
    }

    fn choice(&mut self, choice: &IfExpr<'_>, usage: Usage) -> Result<Written, String> {
        let test = self.atom(&choice.test_expr, Usage::Used)?;
        let before = self.section;
        let then = self.atom(&choice.true_expr, usage)?;
        let Some(other) = &choice.false_expr else {
            return Ok(Written::loose(format!("{then} if {test}")));
        };
        let behind = std::mem::replace(&mut self.section, before);
        let other = self.atom(other, usage)?;
        self.section = behind.or(self.section);
        Ok(Written::loose(format!("{then} if {test} else {other}")))
    }

    fn list(&mut self, items: &[Expr<'_>], usage: Usage) -> Result<Written, String> {
        let items = items.iter().map(|item| Ok(self.write(item, usage)?.text));
        let items: Vec<_> = items.collect::<Result<_, String>>()?;
        Ok(Written::tight(format!("[{}]", items.join(", "))))
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

    /// What a `.` or `[` may follow: a filter binds less tightly than these.
    fn object(&mut self, expression: &Expr<'_>) -> Result<String, String> {
        let written = self.write(expression, Usage::Used)?;
        Ok(match expression {
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::List(_) | Expr::Map(_)
                if written.tight =>
            {
                written.text
            }
            _ => format!("({})", written.text),
        })
    }

    fn attribute(&mut self, lookup: &GetAttr<'_>, usage: Usage) -> Result<Written, String> {
        if let Expr::Var(name) = &lookup.expr {
            self.refer(name.id, Some(lookup.name), usage)?;
            return Ok(Written::tight(format!("{}.{}", name.id, lookup.name)));
        }
        let object = self.object(&lookup.expr)?;
        Ok(Written::tight(format!("{object}.{}", lookup.name)))
    }

    fn item(&mut self, lookup: &GetItem<'_>, usage: Usage) -> Result<Written, String> {
        let constant = lookup.subscript_expr.as_const();
        let key = match &constant {
            Some(_) => self.write(&lookup.subscript_expr, Usage::Used)?.text,
            None => self.paid(&lookup.subscript_expr)?,
        };
        if let Expr::Var(name) = &lookup.expr {
            self.refer(name.id, constant.as_ref().and_then(|c| c.as_str()), usage)?;
            return Ok(Written::tight(format!("{}[{key}]", name.id)));
        }
        let object = self.object(&lookup.expr)?;
        // A character of a text is found by counting from its beginning.
        Ok(Written::tight(format!("({object}|{INDEXED})[{key}]")))
    }
}
