//! Operators and slices.

use minijinja::machinery::ast::{
    BinOp, BinOpKind, Compare, CompareOpKind, Slice, UnaryOp, UnaryOpKind,
};

use super::super::filters::{HELD, NUMBER, ORDERED, PAID, SLICED, SUMMAND, TEXT, WITHIN};
use super::{Guard, Usage, Written};

/// Whether an operation only joins its operands.
pub(super) fn joins(operation: &BinOp<'_>) -> bool {
    matches!(operation.op, BinOpKind::Concat)
}

/// The guard of a comparison's operands: whether one is equal can be said of any value, also of an
/// absent one, but not whether it is more or less.
fn guard_of(signs: &[&str]) -> &'static str {
    if signs.iter().all(|sign| matches!(*sign, "==" | "!=")) {
        PAID
    } else {
        ORDERED
    }
}

impl Guard<'_> {
    pub(super) fn slice(&mut self, slice: &Slice<'_>) -> Result<Written, String> {
        let object = self.atom(&slice.expr, Usage::Used)?;
        let mut bounds = Vec::with_capacity(3);
        for bound in [&slice.start, &slice.stop, &slice.step] {
            bounds.push(match bound {
                Some(bound) => self.write(bound, Usage::Used)?.text,
                None => "none".to_owned(),
            });
        }
        let bounds = bounds.join(", ");
        Ok(Written::tight(format!("{object}|{SLICED}({bounds})")))
    }

    pub(super) fn unary(&mut self, operation: &UnaryOp<'_>) -> Result<Written, String> {
        let operand = self.atom(&operation.expr, Usage::Used)?;
        Ok(Written::loose(match operation.op {
            UnaryOpKind::Not => format!("not {operand}"),
            UnaryOpKind::Neg => format!("-({operand})"),
        }))
    }

    pub(super) fn binary(
        &mut self,
        operation: &BinOp<'_>,
        usage: Usage,
    ) -> Result<Written, String> {
        let (left, right) = (&operation.left, &operation.right);
        let (sign, guard) = match operation.op {
            BinOpKind::Eq => return self.compared(left, "==", right),
            BinOpKind::Ne => return self.compared(left, "!=", right),
            BinOpKind::Lt => return self.compared(left, "<", right),
            BinOpKind::Lte => return self.compared(left, "<=", right),
            BinOpKind::Gt => return self.compared(left, ">", right),
            BinOpKind::Gte => return self.compared(left, ">=", right),
            BinOpKind::In => {
                let (item, all) = (
                    self.atom(left, Usage::Used)?,
                    self.write(right, Usage::Used)?,
                );
                return Ok(Written::tight(format!("{item}|{WITHIN}({})", all.text)));
            }
            BinOpKind::ScAnd => ("and", None),
            BinOpKind::ScOr => ("or", None),
            BinOpKind::Add => ("+", Some(SUMMAND)),
            // Operators without a meaning for texts and lists fail without walking them.
            BinOpKind::Sub => ("-", None),
            BinOpKind::Mul => ("*", Some(NUMBER)),
            BinOpKind::Div => ("/", None),
            BinOpKind::FloorDiv => ("//", None),
            BinOpKind::Rem => ("%", None),
            BinOpKind::Pow => ("**", None),
            BinOpKind::Concat => ("~", Some(TEXT)),
        };
        let usage = if joins(operation) { usage } else { Usage::Used };
        let mut sides = Vec::with_capacity(2);
        for side in [left, right] {
            let written = self.atom(side, usage)?;
            sides.push(match guard {
                Some(guard) => format!("{written}|{guard}"),
                None => written,
            });
        }
        let written = sides.join(&format!(" {sign} "));
        Ok(match operation.op {
            BinOpKind::Add => Written::tight(format!("({written})|{HELD}")),
            _ => Written::loose(written),
        })
    }

    fn compared(
        &mut self,
        left: &minijinja::machinery::ast::Expr<'_>,
        sign: &str,
        right: &minijinja::machinery::ast::Expr<'_>,
    ) -> Result<Written, String> {
        let guard = guard_of(&[sign]);
        let (left, right) = (self.through(guard, left)?, self.through(guard, right)?);
        Ok(Written::loose(format!("{left} {sign} {right}")))
    }

    /// A chain, as in `1 < x <= 9`.
    pub(super) fn compare(&mut self, comparison: &Compare<'_>) -> Result<Written, String> {
        let mut signs = Vec::with_capacity(comparison.ops.len());
        for operation in &comparison.ops {
            signs.push(match operation.op {
                CompareOpKind::Eq => "==",
                CompareOpKind::Ne => "!=",
                CompareOpKind::Lt => "<",
                CompareOpKind::Lte => "<=",
                CompareOpKind::Gt => ">",
                CompareOpKind::Gte => ">=",
                CompareOpKind::In | CompareOpKind::NotIn => {
                    return Err(
                        "`in` cannot be chained with other comparisons; combine them with `and`"
                            .to_owned(),
                    );
                }
            });
        }
        let guard = guard_of(&signs);
        let mut written = vec![self.through(guard, &comparison.expr)?];
        for (sign, operation) in signs.into_iter().zip(&comparison.ops) {
            written.push(sign.to_owned());
            written.push(self.through(guard, &operation.expr)?);
        }
        Ok(Written::loose(written.join(" ")))
    }
}
