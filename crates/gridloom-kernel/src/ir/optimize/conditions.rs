//! Simplifies conditions.

use std::rc::Rc;

use super::facts::as_less;
use super::fold::integer_suffix;
use super::ranges::{DEPTH, values};
use super::values::{Arg, Expr, Number, Pass};
use crate::ir::Ty;

/// The most parts of a condition that are negated one by one, and the most that are inside of each
/// other.
const MOST_NEGATED: usize = 1_000;
const DEEPEST: usize = 64;

fn complement(order: &str) -> Option<&'static str> {
    Some(match order {
        "setp.lt" => "setp.ge",
        "setp.ge" => "setp.lt",
        "setp.gt" => "setp.le",
        "setp.le" => "setp.gt",
        "setp.eq" => "setp.ne",
        "setp.ne" => "setp.eq",
        _ => return None,
    })
}

/// Returns the comparison with its operands exchanged.
fn exchanged(order: &str) -> Option<&'static str> {
    Some(match order {
        "setp.lt" => "setp.gt",
        "setp.gt" => "setp.lt",
        "setp.le" => "setp.ge",
        "setp.ge" => "setp.le",
        "setp.eq" => "setp.eq",
        "setp.ne" => "setp.ne",
        _ => return None,
    })
}

impl Pass<'_> {
    /// Returns whether one of two conditions is known to be the opposite of the other.
    pub(super) fn are_opposite(&self, a: Number, b: Number) -> bool {
        self.are_opposite_within(a, b, DEPTH)
    }

    fn are_opposite_within(&self, a: Number, b: Number, depth: usize) -> bool {
        let (Some(x), Some(y)) = (self.expr(a), self.expr(b)) else { return false };
        // `a && b` and `!a || !b`.
        if depth > 0
            && let (("and", "or") | ("or", "and"), ("pred", "pred")) =
                ((&*x.op, &*y.op), (x.suffix, y.suffix))
            && let (Some(one), Some(other)) = (values(&x.args), values(&y.args))
        {
            let is_pair = |a: Number, b: Number| self.are_opposite_within(a, b, depth - 1);
            return is_pair(one[0], other[0]) && is_pair(one[1], other[1])
                || is_pair(one[0], other[1]) && is_pair(one[1], other[0]);
        }
        let is_not = |expr: &Expr, of: Number| {
            expr.op == "not" && expr.suffix == "pred" && expr.args[..] == [Arg::Value(of)]
        };
        is_not(&x, b)
            || is_not(&y, a)
            || integer_suffix(x.suffix).is_some()
                && x.suffix == y.suffix
                && x.args == y.args
                && complement(&x.op) == Some(&*y.op)
    }

    pub(super) fn logic(&mut self, op: &str, args: &[Number]) -> Option<Number> {
        let truths: Vec<Option<bool>> = args.iter().map(|&arg| self.truth(arg)).collect();
        match (op, args, &truths[..]) {
            ("and" | "or", &[a, b], _) if a == b => Some(a),
            ("and", &[a, b], _) if self.are_opposite(a, b) => Some(self.constant(Ty::Bool, 0)),
            ("or", &[a, b], _) if self.are_opposite(a, b) => Some(self.constant(Ty::Bool, 1)),
            ("and", &[_, b], [Some(true), _]) => Some(b),
            ("and", &[a, _], [_, Some(true)]) => Some(a),
            ("and", _, [Some(false), _] | [_, Some(false)]) => Some(self.constant(Ty::Bool, 0)),
            ("or", &[_, b], [Some(false), _]) => Some(b),
            ("or", &[a, _], [_, Some(false)]) => Some(a),
            ("or", _, [Some(true), _] | [_, Some(true)]) => Some(self.constant(Ty::Bool, 1)),
            ("xor", &[_, b], [Some(false), _]) => Some(b),
            ("xor", &[a, _], [_, Some(false)]) => Some(a),
            ("xor", &[_, b], [Some(true), _]) => self.one("not", "pred", Ty::Bool, b),
            ("xor", &[a, _], [_, Some(true)]) => self.one("not", "pred", Ty::Bool, a),
            ("not", _, &[Some(truth)]) => Some(self.constant(Ty::Bool, (!truth).into())),
            ("not", &[a], _) => {
                let expr: Rc<Expr> = self.expr(a)?;
                let inner = values(&expr.args)?;
                if !inner.iter().all(|&arg| self.is_usable(arg)) {
                    return None;
                }
                match (&*expr.op, expr.suffix) {
                    ("not", "pred") => Some(inner[0]),
                    ("and" | "or", "pred") => {
                        let op = if expr.op == "and" { "or" } else { "and" };
                        self.negated(a, op, (inner[0], inner[1]))
                    }
                    (order, suffix) if integer_suffix(suffix).is_some() => {
                        let order = complement(order)?;
                        self.two(order, suffix, Ty::Bool, inner[0], inner[1])
                    }
                    _ => None,
                }
            }
            ("and" | "or", &[a, b], _) if a > b => {
                let op = if op == "and" { "and" } else { "or" };
                self.two(op, "pred", Ty::Bool, b, a)
            }
            _ => None,
        }
    }

    /// Returns the negation of `a && b` as `!a || !b`, and that of `a || b` as `!a && !b`. `op` is
    /// the instruction of the negation.
    ///
    /// The parts are negated likewise. Conditions share parts, so there can be exponentially many
    /// ways down to a part: within the outermost negation, each part is negated once, and
    /// `MOST_NEGATED` parts at most. What is `DEEPEST` parts down is negated as a whole, so that
    /// the recursion fits the stack. The kernel does not grow beyond [`MOST`](super::MOST).
    fn negated(&mut self, condition: Number, op: &'static str, parts: (Number, Number)) -> Option<Number> {
        if let Some(&negation) = self.negations.get(&condition) {
            return negation;
        }
        if self.negations.len() == MOST_NEGATED {
            return None;
        }
        self.negations.insert(condition, None);
        let goes_on = self.negation_depth < DEEPEST && self.can_grow(3);
        self.negation_depth += 1;
        let negation = if goes_on { self.negated_parts(op, parts) } else { None };
        self.negation_depth -= 1;
        if self.negation_depth == 0 {
            // What is known about conditions changes from here on.
            self.negations.clear();
        } else {
            self.negations.insert(condition, negation);
        }
        negation
    }

    fn negated_parts(&mut self, op: &'static str, (a, b): (Number, Number)) -> Option<Number> {
        let a = self.one("not", "pred", Ty::Bool, a)?;
        let b = self.one("not", "pred", Ty::Bool, b)?;
        self.two(op, "pred", Ty::Bool, a, b)
    }

    /// Returns the condition that a number is 1 or 0 by.
    fn stored_condition(&self, number: Number) -> Option<Number> {
        let expr = self.expr(number).filter(|expr| expr.op == "selp")?;
        let args = values(&expr.args)?;
        let (Some(1), Some(0)) = (self.constant_of(args[0]), self.constant_of(args[1])) else { return None };
        self.is_usable(args[2]).then_some(args[2])
    }

    pub(super) fn comparison(
        &mut self,
        op: &str,
        suffix: &'static str,
        a: Number,
        b: Number,
    ) -> Option<Number> {
        let (width, is_signed) = integer_suffix(suffix)?;
        let order = op.strip_prefix("setp.")?;
        let whole = (a, b);
        let decided = match as_less(order, a, b) {
            Some((a, b, is_less)) => self.less(suffix, a, b, DEPTH).map(|less| less == is_less),
            None => {
                let (ra, rb) =
                    (self.range_as(a, width, is_signed, DEPTH), self.range_as(b, width, is_signed, DEPTH));
                let apart = ra.high < rb.low || rb.high < ra.low;
                let is_equal = if a == b { Some(true) } else { apart.then_some(false) };
                is_equal.map(|equal| equal == (order == "eq"))
            }
        };
        if let Some(decided) = decided {
            return Some(self.constant(Ty::Bool, decided.into()));
        }
        // A condition that was stored as a number.
        if self.constant_of(b) == Some(0)
            && let "eq" | "ne" = order
            && let Some(condition) = self.stored_condition(a)
        {
            return if order == "ne" {
                Some(condition)
            } else {
                self.one("not", "pred", Ty::Bool, condition)
            };
        }
        // Two such conditions.
        if let "eq" | "ne" = order
            && let (Some(one), Some(other)) = (self.stored_condition(a), self.stored_condition(b))
        {
            let differ = self.two("xor", "pred", Ty::Bool, one, other)?;
            return if order == "ne" { Some(differ) } else { self.one("not", "pred", Ty::Bool, differ) };
        }
        if self.constant_of(a).is_some() && self.constant_of(b).is_none() {
            let op = exchanged(op)?;
            return self.two(op, suffix, Ty::Bool, b, a);
        }
        // Two values that each fit into 32 bits.
        if width == 64
            && (!is_signed || [a, b].iter().all(|&value| self.range_as(value, 64, true, DEPTH).low >= 0))
            && let (Some(a), Some(b)) = (self.narrow(a), self.narrow(b))
        {
            let op = comparison(order)?;
            let narrow = self.two(op, "u32", Ty::Bool, a, b)?;
            self.note_same(narrow, op, suffix, whole);
            return Some(narrow);
        }
        if width == 64
            && let Some((a, b)) = self.signed_halves(a, b)
        {
            let op = comparison(order)?;
            let narrow = self.two(op, if is_signed { "s32" } else { "u32" }, Ty::Bool, a, b)?;
            self.note_same(narrow, op, suffix, whole);
            return Some(narrow);
        }
        if width == 64
            && !is_signed
            && let "lt" | "ge" = order
            && let (Some(a), Some(b)) = (self.low_difference(a, b), self.narrow(b))
        {
            let op = if order == "lt" { "setp.lt" } else { "setp.ge" };
            let narrow = self.two(op, "u32", Ty::Bool, a, b)?;
            self.note_same(narrow, op, suffix, whole);
            return Some(narrow);
        }
        None
    }
}

/// Returns the instruction that compares integers in an order.
fn comparison(order: &str) -> Option<&'static str> {
    Some(match order {
        "eq" => "setp.eq",
        "ne" => "setp.ne",
        "lt" => "setp.lt",
        "le" => "setp.le",
        "gt" => "setp.gt",
        "ge" => "setp.ge",
        _ => return None,
    })
}
