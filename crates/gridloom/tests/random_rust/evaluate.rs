//! What a program computes, by the operators and methods of Rust.

use crate::tree::{
    Binary, ELEMENTS, Expr, Line, Order, Over, Program, Shift, Slot, Stmt, Type, Unary, Value, WORDS,
};

/// The line of a check that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed(pub(crate) Line);

type Result<T> = std::result::Result<T, Failed>;

enum Flow {
    Next,
    Break(Slot),
    Continue(Slot),
    Return,
}

/// More steps than this are taken for a program that does not end.
const MOST_STEPS: usize = 2_000_000;

struct Run<'a> {
    input: &'a [i32],
    own: [u64; WORDS],
    values: Vec<Value>,
    arrays: Vec<Option<[Value; ELEMENTS]>>,
    is_overflow_checked: bool,
    steps: usize,
}

/// Applies to two integers of one type what is an expression of Rust.
macro_rules! integers {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $apply:expr) => {
        match ($a, $b) {
            (Value::U8($x), Value::U8($y)) => Value::U8($apply),
            (Value::I16($x), Value::I16($y)) => Value::I16($apply),
            (Value::I32($x), Value::I32($y)) => Value::I32($apply),
            (Value::U32($x), Value::U32($y)) => Value::U32($apply),
            (Value::I64($x), Value::I64($y)) => Value::I64($apply),
            (Value::U64($x), Value::U64($y)) => Value::U64($apply),
            (Value::Usize($x), Value::Usize($y)) => Value::Usize($apply),
            (a, b) => unreachable!("integers of one type, not {a:?} and {b:?}"),
        }
    };
}

/// The same where the result may be missing.
macro_rules! checked {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $apply:expr) => {
        match ($a, $b) {
            (Value::U8($x), Value::U8($y)) => $apply.map(Value::U8),
            (Value::I16($x), Value::I16($y)) => $apply.map(Value::I16),
            (Value::I32($x), Value::I32($y)) => $apply.map(Value::I32),
            (Value::U32($x), Value::U32($y)) => $apply.map(Value::U32),
            (Value::I64($x), Value::I64($y)) => $apply.map(Value::I64),
            (Value::U64($x), Value::U64($y)) => $apply.map(Value::U64),
            (Value::Usize($x), Value::Usize($y)) => $apply.map(Value::Usize),
            (a, b) => unreachable!("integers of one type, not {a:?} and {b:?}"),
        }
    };
}

/// Applies to an integer what is an expression of Rust.
macro_rules! integer {
    ($a:expr, |$x:ident| $apply:expr) => {
        match $a {
            Value::U8($x) => Value::U8($apply),
            Value::I16($x) => Value::I16($apply),
            Value::I32($x) => Value::I32($apply),
            Value::U32($x) => Value::U32($apply),
            Value::I64($x) => Value::I64($apply),
            Value::U64($x) => Value::U64($apply),
            Value::Usize($x) => Value::Usize($apply),
            other => unreachable!("an integer, not {other:?}"),
        }
    };
}

macro_rules! counted {
    ($a:expr, $method:ident) => {
        match $a {
            Value::U8(x) => Value::U32(x.$method()),
            Value::I16(x) => Value::U32(x.$method()),
            Value::I32(x) => Value::U32(x.$method()),
            Value::U32(x) => Value::U32(x.$method()),
            Value::I64(x) => Value::U32(x.$method()),
            Value::U64(x) => Value::U32(x.$method()),
            Value::Usize(x) => Value::U32(x.$method()),
            other => unreachable!("an integer, not {other:?}"),
        }
    };
}

macro_rules! float {
    ($a:expr, |$x:ident| $apply:expr) => {
        match $a {
            Value::F32($x) => Value::F32($apply),
            Value::F64($x) => Value::F64($apply),
            other => unreachable!("a floating-point number, not {other:?}"),
        }
    };
}

macro_rules! cast {
    ($a:expr, $to:ty) => {
        match $a {
            Value::Bool(x) => x as u8 as $to,
            Value::U8(x) => x as $to,
            Value::I16(x) => x as $to,
            Value::I32(x) => x as $to,
            Value::U32(x) => x as $to,
            Value::I64(x) => x as $to,
            Value::U64(x) => x as $to,
            Value::Usize(x) => x as $to,
            Value::F32(x) => x as $to,
            Value::F64(x) => x as $to,
        }
    };
}

fn cast(value: Value, to: Type) -> Value {
    match to {
        Type::Bool => unreachable!("nothing is cast to `bool`"),
        Type::U8 => Value::U8(cast!(value, u8)),
        Type::I16 => Value::I16(cast!(value, i16)),
        Type::I32 => Value::I32(cast!(value, i32)),
        Type::U32 => Value::U32(cast!(value, u32)),
        Type::I64 => Value::I64(cast!(value, i64)),
        Type::U64 => Value::U64(cast!(value, u64)),
        Type::Usize => Value::Usize(cast!(value, usize)),
        Type::F32 => Value::F32(cast!(value, f32)),
        Type::F64 => Value::F64(cast!(value, f64)),
    }
}

fn is(order: Order, compared: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    match order {
        Order::Lt => compared == Some(Less),
        Order::Le => matches!(compared, Some(Less | Equal)),
        Order::Gt => compared == Some(Greater),
        Order::Ge => matches!(compared, Some(Greater | Equal)),
        Order::Eq => compared == Some(Equal),
        Order::Ne => compared != Some(Equal),
    }
}

fn compare(order: Order, a: Value, b: Value) -> bool {
    let compared = match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.partial_cmp(&b),
        (Value::U8(a), Value::U8(b)) => a.partial_cmp(&b),
        (Value::I16(a), Value::I16(b)) => a.partial_cmp(&b),
        (Value::I32(a), Value::I32(b)) => a.partial_cmp(&b),
        (Value::U32(a), Value::U32(b)) => a.partial_cmp(&b),
        (Value::I64(a), Value::I64(b)) => a.partial_cmp(&b),
        (Value::U64(a), Value::U64(b)) => a.partial_cmp(&b),
        (Value::Usize(a), Value::Usize(b)) => a.partial_cmp(&b),
        (Value::F32(a), Value::F32(b)) => a.partial_cmp(&b),
        (Value::F64(a), Value::F64(b)) => a.partial_cmp(&b),
        (a, b) => unreachable!("two values of one type, not {a:?} and {b:?}"),
    };
    is(order, compared)
}

fn unary(op: Unary, a: Value) -> Value {
    match op {
        Unary::Not => match a {
            Value::Bool(a) => Value::Bool(!a),
            a => integer!(a, |x| !x),
        },
        Unary::WrappingNeg => integer!(a, |x| x.wrapping_neg()),
        Unary::CountOnes => counted!(a, count_ones),
        Unary::LeadingZeros => counted!(a, leading_zeros),
        Unary::TrailingZeros => counted!(a, trailing_zeros),
        Unary::Neg => float!(a, |x| -x),
        Unary::Abs => float!(a, |x| x.abs()),
        Unary::Sqrt => float!(a, |x| x.sqrt()),
        Unary::Floor => float!(a, |x| x.floor()),
        Unary::Ceil => float!(a, |x| x.ceil()),
        Unary::Trunc => float!(a, |x| x.trunc()),
        Unary::Round => float!(a, |x| x.round()),
    }
}

/// The result of an operation on numbers; none where Rust's operator fails.
fn binary(op: Binary, a: Value, b: Value, is_overflow_checked: bool) -> Option<Value> {
    if let (Value::F32(_), _) | (Value::F64(_), _) = (a, b) {
        let value = match (a, b) {
            (Value::F32(a), Value::F32(b)) => Value::F32(match op {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                other => unreachable!("{other:?} of floating-point numbers"),
            }),
            (Value::F64(a), Value::F64(b)) => Value::F64(match op {
                Binary::Add => a + b,
                Binary::Sub => a - b,
                Binary::Mul => a * b,
                Binary::Div => a / b,
                other => unreachable!("{other:?} of floating-point numbers"),
            }),
            (a, b) => unreachable!("two values of one type, not {a:?} and {b:?}"),
        };
        return Some(value);
    }
    if let (Value::Bool(a), Value::Bool(b)) = (a, b) {
        return Some(Value::Bool(match op {
            Binary::And => a & b,
            Binary::Or => a | b,
            Binary::Xor => a ^ b,
            other => unreachable!("{other:?} of conditions"),
        }));
    }
    Some(match op {
        Binary::WrappingAdd => integers!(a, b, |x, y| x.wrapping_add(y)),
        Binary::WrappingSub => integers!(a, b, |x, y| x.wrapping_sub(y)),
        Binary::WrappingMul => integers!(a, b, |x, y| x.wrapping_mul(y)),
        Binary::SaturatingAdd => integers!(a, b, |x, y| x.saturating_add(y)),
        Binary::SaturatingSub => integers!(a, b, |x, y| x.saturating_sub(y)),
        Binary::SaturatingMul => integers!(a, b, |x, y| x.saturating_mul(y)),
        Binary::And => integers!(a, b, |x, y| x & y),
        Binary::Or => integers!(a, b, |x, y| x | y),
        Binary::Xor => integers!(a, b, |x, y| x ^ y),
        Binary::Min => integers!(a, b, |x, y| x.min(y)),
        Binary::Max => integers!(a, b, |x, y| x.max(y)),
        Binary::Add if !is_overflow_checked => integers!(a, b, |x, y| x.wrapping_add(y)),
        Binary::Sub if !is_overflow_checked => integers!(a, b, |x, y| x.wrapping_sub(y)),
        Binary::Mul if !is_overflow_checked => integers!(a, b, |x, y| x.wrapping_mul(y)),
        Binary::Add => return checked!(a, b, |x, y| x.checked_add(y)),
        Binary::Sub => return checked!(a, b, |x, y| x.checked_sub(y)),
        Binary::Mul => return checked!(a, b, |x, y| x.checked_mul(y)),
        Binary::Div => return checked!(a, b, |x, y| x.checked_div(y)),
        Binary::Rem => return checked!(a, b, |x, y| x.checked_rem(y)),
    })
}

fn shift(op: Shift, a: Value, by: u32, is_overflow_checked: bool) -> Option<Value> {
    Some(match op {
        Shift::RotateLeft => integer!(a, |x| x.rotate_left(by)),
        Shift::RotateRight => integer!(a, |x| x.rotate_right(by)),
        Shift::WrappingLeft => integer!(a, |x| x.wrapping_shl(by)),
        Shift::WrappingRight => integer!(a, |x| x.wrapping_shr(by)),
        Shift::Left if !is_overflow_checked => integer!(a, |x| x.wrapping_shl(by)),
        Shift::Right if !is_overflow_checked => integer!(a, |x| x.wrapping_shr(by)),
        Shift::Left => return checked!(a, a, |x, _y| x.checked_shl(by)),
        Shift::Right => return checked!(a, a, |x, _y| x.checked_shr(by)),
    })
}

/// The numbers of a range, as the type of its ends has them.
fn items(over: [Value; 2], kind: &Over) -> Vec<Value> {
    macro_rules! of_type {
        ($variant:ident, $start:expr, $end:expr) => {{
            let (start, end) = ($start, $end);
            let most = 100_000;
            let items: Vec<_> = match kind {
                Over::Range(..) => (start..end).take(most).collect(),
                Over::Inclusive(..) => (start..=end).take(most).collect(),
                Over::Reversed(..) => (start..end).rev().take(most).collect(),
                Over::Strided(_, _, by) => (start..end).step_by(*by).take(most).collect(),
            };
            items.into_iter().map(Value::$variant).collect()
        }};
    }
    match over {
        [Value::U8(a), Value::U8(b)] => of_type!(U8, a, b),
        [Value::I16(a), Value::I16(b)] => of_type!(I16, a, b),
        [Value::I32(a), Value::I32(b)] => of_type!(I32, a, b),
        [Value::U32(a), Value::U32(b)] => of_type!(U32, a, b),
        [Value::I64(a), Value::I64(b)] => of_type!(I64, a, b),
        [Value::U64(a), Value::U64(b)] => of_type!(U64, a, b),
        [Value::Usize(a), Value::Usize(b)] => of_type!(Usize, a, b),
        other => unreachable!("integers of one type, not {other:?}"),
    }
}

impl Run<'_> {
    fn condition(&mut self, expr: &Expr) -> Result<bool> {
        match self.expr(expr)? {
            Value::Bool(holds) => Ok(holds),
            other => unreachable!("a condition, not {other:?}"),
        }
    }

    fn index(&mut self, expr: &Expr) -> Result<usize> {
        match self.expr(expr)? {
            Value::Usize(index) => Ok(index),
            other => unreachable!("an index, not {other:?}"),
        }
    }

    fn expr(&mut self, expr: &Expr) -> Result<Value> {
        Ok(match expr {
            Expr::Literal(value) => *value,
            Expr::Variable(slot) => self.values[*slot],
            Expr::Input(index, line) => {
                let index = self.index(index)?;
                Value::I32(*self.input.get(index).ok_or(Failed(*line))?)
            }
            Expr::InputLen => Value::Usize(self.input.len()),
            Expr::Element(array, index, line) => {
                let index = self.index(index)?;
                let array = self.arrays[*array].expect("an array that was declared");
                *array.get(index).ok_or(Failed(*line))?
            }
            Expr::PartElement(array, from, index, line) => {
                let index = self.index(index)?;
                let array = self.arrays[*array].expect("an array that was declared");
                *array[*from..].get(index).ok_or(Failed(*line))?
            }
            Expr::Own(word) => Value::U64(self.own[*word]),
            Expr::Unary(op, a) => unary(*op, self.expr(a)?),
            Expr::Binary(op, a, b, line) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                binary(*op, a, b, self.is_overflow_checked).ok_or(Failed(*line))?
            }
            Expr::CheckedOr(op, a, b, c) => {
                let (a, b, c) = (self.expr(a)?, self.expr(b)?, self.expr(c)?);
                binary(*op, a, b, true).unwrap_or(c)
            }
            Expr::Shift(op, a, by, line) => {
                let (a, by) = (self.expr(a)?, self.expr(by)?);
                let Value::U32(by) = by else { unreachable!("shifts are by `u32`") };
                shift(*op, a, by, self.is_overflow_checked).ok_or(Failed(*line))?
            }
            Expr::Compare(order, a, b) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                Value::Bool(compare(*order, a, b))
            }
            Expr::Lazy(is_and, a, b) => {
                let a = self.condition(a)?;
                Value::Bool(if a == *is_and { self.condition(b)? } else { a })
            }
            Expr::If(cond, a, b) => {
                if self.condition(cond)? {
                    self.expr(a)?
                } else {
                    self.expr(b)?
                }
            }
            Expr::Match(subject, arms) => {
                let subject = self.expr(subject)?;
                // Numbers that `i64` does not have become others that are in the last arm.
                let Value::I64(number) = cast(subject, Type::I64) else {
                    unreachable!("it was cast to `i64`")
                };
                let arm = match number {
                    0 => 0,
                    1 | 2 => 1,
                    3..=20 => 2,
                    _ => 3,
                };
                self.expr(&arms[arm])?
            }
            Expr::MulAdd(parts) => {
                match (self.expr(&parts[0])?, self.expr(&parts[1])?, self.expr(&parts[2])?) {
                    (Value::F32(a), Value::F32(b), Value::F32(c)) => Value::F32(a.mul_add(b, c)),
                    (Value::F64(a), Value::F64(b), Value::F64(c)) => Value::F64(a.mul_add(b, c)),
                    other => unreachable!("floating-point numbers of one type, not {other:?}"),
                }
            }
            Expr::Cast(to, value) => cast(self.expr(value)?, *to),
        })
    }

    fn list(&mut self, list: &[Stmt]) -> Result<Flow> {
        for stmt in list {
            self.steps += 1;
            assert!(self.steps < MOST_STEPS, "a program that does not end");
            match self.stmt(stmt)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    /// A pass of a loop: whether there may be another one, or where to go.
    fn pass(&mut self, around: Slot, body: &[Stmt]) -> Result<std::result::Result<bool, Flow>> {
        Ok(match self.list(body)? {
            Flow::Next => Ok(true),
            Flow::Continue(slot) if slot == around => Ok(true),
            Flow::Break(slot) if slot == around => Ok(false),
            other => Err(other),
        })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow> {
        match stmt {
            Stmt::Let(slot, value) | Stmt::Assign(slot, value) => self.values[*slot] = self.expr(value)?,
            Stmt::Array(slot, values) => {
                let mut all = [Value::Bool(false); ELEMENTS];
                for (element, value) in all.iter_mut().zip(values.iter()) {
                    *element = self.expr(value)?;
                }
                self.arrays[*slot] = Some(all);
            }
            Stmt::SetElement(slot, index, value, line) => {
                let value = self.expr(value)?;
                let index = self.index(index)?;
                let array = self.arrays[*slot].as_mut().expect("an array that was declared");
                *array.get_mut(index).ok_or(Failed(*line))? = value;
            }
            Stmt::ReversePart(slot, from) => {
                self.arrays[*slot].as_mut().expect("an array that was declared")[*from..].reverse();
            }
            Stmt::FillPart(slot, from, value) => {
                let value = self.expr(value)?;
                self.arrays[*slot].as_mut().expect("an array that was declared")[*from..].fill(value);
            }
            Stmt::Store(word, value) => match self.expr(value)? {
                Value::U64(value) => self.own[*word] = value,
                other => unreachable!("words are `u64`, not {other:?}"),
            },
            Stmt::If(cond, then, otherwise) => {
                return if self.condition(cond)? { self.list(then) } else { self.list(otherwise) };
            }
            Stmt::For(slot, over, body) => {
                let (Over::Range(a, b)
                | Over::Inclusive(a, b)
                | Over::Reversed(a, b)
                | Over::Strided(a, b, _)) = over;
                let ends = [self.expr(a)?, self.expr(b)?];
                for item in items(ends, over) {
                    self.values[*slot] = item;
                    match self.pass(*slot, body)? {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(flow) => return Ok(flow),
                    }
                }
            }
            Stmt::While(slot, start, cond, body) => {
                let Value::U32(start) = self.expr(start)? else { unreachable!("counts are `u32`") };
                let mut left = start % 6;
                self.values[*slot] = Value::U32(left);
                while left > 0 && self.condition(cond)? {
                    left -= 1;
                    self.values[*slot] = Value::U32(left);
                    match self.pass(*slot, body)? {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(flow) => return Ok(flow),
                    }
                }
            }
            Stmt::Loop { count, result, most, until, value, body } => {
                let mut passes = 0;
                loop {
                    passes += 1;
                    self.values[*count] = Value::U32(passes);
                    match self.list(body)? {
                        Flow::Next => {}
                        Flow::Continue(slot) if slot == *count => continue,
                        other => return Ok(other),
                    }
                    if passes > *most || self.condition(until)? {
                        self.values[*result] = self.expr(value)?;
                        break;
                    }
                }
            }
            Stmt::Leave { around, is_continue, when } => {
                if self.condition(when)? {
                    return Ok(if *is_continue { Flow::Continue(*around) } else { Flow::Break(*around) });
                }
            }
            Stmt::Return(when) => {
                if self.condition(when)? {
                    return Ok(Flow::Return);
                }
            }
        }
        Ok(Flow::Next)
    }
}

/// A value as a word; all NaNs as one.
fn word(value: Value) -> u64 {
    match value {
        Value::F32(value) if value.is_nan() => 12_345,
        Value::F64(value) if value.is_nan() => 54_321,
        Value::F32(value) => value.to_bits().into(),
        Value::F64(value) => value.to_bits(),
        value => match cast(value, Type::U64) {
            Value::U64(word) => word,
            _ => unreachable!("it was cast to `u64`"),
        },
    }
}

/// Runs a program as the thread of an element. Returns what it writes to its element of the output.
pub(crate) fn evaluate(program: &Program, input: &[i32], thread: usize) -> Result<[u64; WORDS]> {
    let mut run = Run {
        input,
        own: [0; WORDS],
        values: vec![Value::Bool(false); program.slots],
        arrays: vec![None; program.slots],
        is_overflow_checked: program.is_overflow_checked,
        steps: 0,
    };
    run.values[0] = Value::I32(input[thread]);
    run.values[1] = Value::Usize(thread);
    if let Flow::Next = run.list(&program.body)? {
        let mixed = program
            .results
            .iter()
            .fold(0u64, |sum, &slot| sum.wrapping_mul(31).wrapping_add(word(run.values[slot])));
        run.own[0] = mixed;
    }
    Ok(run.own)
}
