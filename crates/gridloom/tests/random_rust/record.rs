//! Records a program, by the functions that the attribute macros expand to.

use gridloom::__kernel as k;
use gridloom::Out;
use k::{IteratorMethods, Label, V};

use crate::tree::{Binary, ELEMENTS, Expr, Order, Over, Program, Shift, Slot, Stmt, Type, Unary, Value};

/// What stands for a value while a program is recorded.
#[derive(Clone, Copy)]
enum Twin {
    Bool(V<bool>),
    U8(V<u8>),
    I16(V<i16>),
    I32(V<i32>),
    U32(V<u32>),
    I64(V<i64>),
    U64(V<u64>),
    Usize(V<usize>),
    F32(V<f32>),
    F64(V<f64>),
}

/// What stands for an array.
#[derive(Clone, Copy)]
enum Array {
    U8(V<[u8; ELEMENTS]>),
    I16(V<[i16; ELEMENTS]>),
    I32(V<[i32; ELEMENTS]>),
    U32(V<[u32; ELEMENTS]>),
    I64(V<[i64; ELEMENTS]>),
    U64(V<[u64; ELEMENTS]>),
    Usize(V<[usize; ELEMENTS]>),
    F32(V<[f32; ELEMENTS]>),
    F64(V<[f64; ELEMENTS]>),
}

macro_rules! any {
    ($a:expr, |$x:ident| $apply:expr) => {
        match $a {
            Twin::Bool($x) => Twin::Bool($apply),
            Twin::U8($x) => Twin::U8($apply),
            Twin::I16($x) => Twin::I16($apply),
            Twin::I32($x) => Twin::I32($apply),
            Twin::U32($x) => Twin::U32($apply),
            Twin::I64($x) => Twin::I64($apply),
            Twin::U64($x) => Twin::U64($apply),
            Twin::Usize($x) => Twin::Usize($apply),
            Twin::F32($x) => Twin::F32($apply),
            Twin::F64($x) => Twin::F64($apply),
        }
    };
}

macro_rules! integer {
    ($a:expr, |$x:ident| $apply:expr) => {
        match $a {
            Twin::U8($x) => Twin::U8($apply),
            Twin::I16($x) => Twin::I16($apply),
            Twin::I32($x) => Twin::I32($apply),
            Twin::U32($x) => Twin::U32($apply),
            Twin::I64($x) => Twin::I64($apply),
            Twin::U64($x) => Twin::U64($apply),
            Twin::Usize($x) => Twin::Usize($apply),
            _ => unreachable!("an integer"),
        }
    };
}

macro_rules! integers {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $apply:expr) => {
        match ($a, $b) {
            (Twin::U8($x), Twin::U8($y)) => Twin::U8($apply),
            (Twin::I16($x), Twin::I16($y)) => Twin::I16($apply),
            (Twin::I32($x), Twin::I32($y)) => Twin::I32($apply),
            (Twin::U32($x), Twin::U32($y)) => Twin::U32($apply),
            (Twin::I64($x), Twin::I64($y)) => Twin::I64($apply),
            (Twin::U64($x), Twin::U64($y)) => Twin::U64($apply),
            (Twin::Usize($x), Twin::Usize($y)) => Twin::Usize($apply),
            _ => unreachable!("integers of one type"),
        }
    };
}

/// Applies to two numbers of one type what integers and floating-point numbers have.
macro_rules! numbers {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $apply:expr) => {
        match ($a, $b) {
            (Twin::F32($x), Twin::F32($y)) => Twin::F32($apply),
            (Twin::F64($x), Twin::F64($y)) => Twin::F64($apply),
            (a, b) => integers!(a, b, |$x, $y| $apply),
        }
    };
}

macro_rules! logical {
    ($a:expr, $b:expr, |$x:ident, $y:ident| $apply:expr) => {
        match ($a, $b) {
            (Twin::Bool($x), Twin::Bool($y)) => Twin::Bool($apply),
            (a, b) => integers!(a, b, |$x, $y| $apply),
        }
    };
}

macro_rules! counted {
    ($a:expr, $method:ident) => {
        match $a {
            Twin::U8(x) => Twin::U32(x.$method()),
            Twin::I16(x) => Twin::U32(x.$method()),
            Twin::I32(x) => Twin::U32(x.$method()),
            Twin::U32(x) => Twin::U32(x.$method()),
            Twin::I64(x) => Twin::U32(x.$method()),
            Twin::U64(x) => Twin::U32(x.$method()),
            Twin::Usize(x) => Twin::U32(x.$method()),
            _ => unreachable!("an integer"),
        }
    };
}

macro_rules! float {
    ($a:expr, |$x:ident| $apply:expr) => {
        match $a {
            Twin::F32($x) => Twin::F32($apply),
            Twin::F64($x) => Twin::F64($apply),
            _ => unreachable!("a floating-point number"),
        }
    };
}

macro_rules! cast_to {
    ($a:expr, $to:ty) => {
        match $a {
            Twin::Bool(x) => k::cast::<$to, _>(k::cast::<u8, _>(x)),
            Twin::U8(x) => k::cast::<$to, _>(x),
            Twin::I16(x) => k::cast::<$to, _>(x),
            Twin::I32(x) => k::cast::<$to, _>(x),
            Twin::U32(x) => k::cast::<$to, _>(x),
            Twin::I64(x) => k::cast::<$to, _>(x),
            Twin::U64(x) => k::cast::<$to, _>(x),
            Twin::Usize(x) => k::cast::<$to, _>(x),
            Twin::F32(x) => k::cast::<$to, _>(x),
            Twin::F64(x) => k::cast::<$to, _>(x),
        }
    };
}

fn cast(value: Twin, to: Type) -> Twin {
    match to {
        Type::Bool => unreachable!("nothing is cast to `bool`"),
        Type::U8 => Twin::U8(cast_to!(value, u8)),
        Type::I16 => Twin::I16(cast_to!(value, i16)),
        Type::I32 => Twin::I32(cast_to!(value, i32)),
        Type::U32 => Twin::U32(cast_to!(value, u32)),
        Type::I64 => Twin::I64(cast_to!(value, i64)),
        Type::U64 => Twin::U64(cast_to!(value, u64)),
        Type::Usize => Twin::Usize(cast_to!(value, usize)),
        Type::F32 => Twin::F32(cast_to!(value, f32)),
        Type::F64 => Twin::F64(cast_to!(value, f64)),
    }
}

fn literal(value: Value) -> Twin {
    match value {
        Value::Bool(x) => Twin::Bool(k::lit(x)),
        Value::U8(x) => Twin::U8(k::lit(x)),
        Value::I16(x) => Twin::I16(k::lit(x)),
        Value::I32(x) => Twin::I32(k::lit(x)),
        Value::U32(x) => Twin::U32(k::lit(x)),
        Value::I64(x) => Twin::I64(k::lit(x)),
        Value::U64(x) => Twin::U64(k::lit(x)),
        Value::Usize(x) => Twin::Usize(k::lit(x)),
        Value::F32(x) => Twin::F32(k::lit(x)),
        Value::F64(x) => Twin::F64(k::lit(x)),
    }
}

fn assign(to: Twin, from: Twin) {
    match (to, from) {
        (Twin::Bool(to), Twin::Bool(from)) => k::assign(&to, from),
        (Twin::U8(to), Twin::U8(from)) => k::assign(&to, from),
        (Twin::I16(to), Twin::I16(from)) => k::assign(&to, from),
        (Twin::I32(to), Twin::I32(from)) => k::assign(&to, from),
        (Twin::U32(to), Twin::U32(from)) => k::assign(&to, from),
        (Twin::I64(to), Twin::I64(from)) => k::assign(&to, from),
        (Twin::U64(to), Twin::U64(from)) => k::assign(&to, from),
        (Twin::Usize(to), Twin::Usize(from)) => k::assign(&to, from),
        (Twin::F32(to), Twin::F32(from)) => k::assign(&to, from),
        (Twin::F64(to), Twin::F64(from)) => k::assign(&to, from),
        _ => unreachable!("two values of one type"),
    }
}

/// A new variable of the type of a value.
fn declared_like(value: Twin) -> Twin {
    fn like<T: k::KernelType>(_: V<T>) -> V<T> {
        k::declare()
    }
    any!(value, |x| like(x))
}

macro_rules! compared {
    ($function:ident, $a:expr, $b:expr) => {
        match ($a, $b) {
            (Twin::Bool(a), Twin::Bool(b)) => k::$function(a, b),
            (Twin::U8(a), Twin::U8(b)) => k::$function(a, b),
            (Twin::I16(a), Twin::I16(b)) => k::$function(a, b),
            (Twin::I32(a), Twin::I32(b)) => k::$function(a, b),
            (Twin::U32(a), Twin::U32(b)) => k::$function(a, b),
            (Twin::I64(a), Twin::I64(b)) => k::$function(a, b),
            (Twin::U64(a), Twin::U64(b)) => k::$function(a, b),
            (Twin::Usize(a), Twin::Usize(b)) => k::$function(a, b),
            (Twin::F32(a), Twin::F32(b)) => k::$function(a, b),
            (Twin::F64(a), Twin::F64(b)) => k::$function(a, b),
            _ => unreachable!("two values of one type"),
        }
    };
}

fn compare(order: Order, a: Twin, b: Twin) -> V<bool> {
    match order {
        Order::Lt => compared!(lt, a, b),
        Order::Le => compared!(le, a, b),
        Order::Gt => compared!(gt, a, b),
        Order::Ge => compared!(ge, a, b),
        Order::Eq => compared!(eq, a, b),
        Order::Ne => compared!(ne, a, b),
    }
}

fn unary(op: Unary, a: Twin) -> Twin {
    match op {
        Unary::Not => match a {
            Twin::Bool(a) => Twin::Bool(k::not(a)),
            a => integer!(a, |x| k::not(x)),
        },
        Unary::WrappingNeg => integer!(a, |x| x.wrapping_neg()),
        Unary::CountOnes => counted!(a, count_ones),
        Unary::LeadingZeros => counted!(a, leading_zeros),
        Unary::TrailingZeros => counted!(a, trailing_zeros),
        Unary::Neg => float!(a, |x| k::neg(x, 0)),
        Unary::Abs => float!(a, |x| x.abs()),
        Unary::Sqrt => float!(a, |x| x.sqrt()),
        Unary::Floor => float!(a, |x| x.floor()),
        Unary::Ceil => float!(a, |x| x.ceil()),
        Unary::Trunc => float!(a, |x| x.trunc()),
        Unary::Round => float!(a, |x| x.round()),
    }
}

fn binary(op: Binary, a: Twin, b: Twin, line: u32) -> Twin {
    match op {
        Binary::WrappingAdd => integers!(a, b, |x, y| x.wrapping_add(y)),
        Binary::WrappingSub => integers!(a, b, |x, y| x.wrapping_sub(y)),
        Binary::WrappingMul => integers!(a, b, |x, y| x.wrapping_mul(y)),
        Binary::SaturatingAdd => integers!(a, b, |x, y| x.saturating_add(y)),
        Binary::SaturatingSub => integers!(a, b, |x, y| x.saturating_sub(y)),
        Binary::SaturatingMul => integers!(a, b, |x, y| x.saturating_mul(y)),
        Binary::And => logical!(a, b, |x, y| k::bit_and(x, y, line)),
        Binary::Or => logical!(a, b, |x, y| k::bit_or(x, y, line)),
        Binary::Xor => logical!(a, b, |x, y| k::bit_xor(x, y, line)),
        Binary::Min => integers!(a, b, |x, y| x.min(y)),
        Binary::Max => integers!(a, b, |x, y| x.max(y)),
        Binary::Add => numbers!(a, b, |x, y| k::add(x, y, line)),
        Binary::Sub => numbers!(a, b, |x, y| k::sub(x, y, line)),
        Binary::Mul => numbers!(a, b, |x, y| k::mul(x, y, line)),
        Binary::Div => numbers!(a, b, |x, y| k::div(x, y, line)),
        Binary::Rem => integers!(a, b, |x, y| k::rem(x, y, line)),
    }
}

macro_rules! checked_or {
    ($a:expr, $b:expr, $c:expr, $method:ident) => {
        match ($a, $b, $c) {
            (Twin::U8(a), Twin::U8(b), Twin::U8(c)) => Twin::U8(a.$method(b).unwrap_or(c)),
            (Twin::I16(a), Twin::I16(b), Twin::I16(c)) => Twin::I16(a.$method(b).unwrap_or(c)),
            (Twin::I32(a), Twin::I32(b), Twin::I32(c)) => Twin::I32(a.$method(b).unwrap_or(c)),
            (Twin::U32(a), Twin::U32(b), Twin::U32(c)) => Twin::U32(a.$method(b).unwrap_or(c)),
            (Twin::I64(a), Twin::I64(b), Twin::I64(c)) => Twin::I64(a.$method(b).unwrap_or(c)),
            (Twin::U64(a), Twin::U64(b), Twin::U64(c)) => Twin::U64(a.$method(b).unwrap_or(c)),
            (Twin::Usize(a), Twin::Usize(b), Twin::Usize(c)) => Twin::Usize(a.$method(b).unwrap_or(c)),
            _ => unreachable!("integers of one type"),
        }
    };
}

fn checked_or(op: Binary, a: Twin, b: Twin, c: Twin) -> Twin {
    match op {
        Binary::Add => checked_or!(a, b, c, checked_add),
        Binary::Sub => checked_or!(a, b, c, checked_sub),
        Binary::Mul => checked_or!(a, b, c, checked_mul),
        Binary::Div => checked_or!(a, b, c, checked_div),
        Binary::Rem => checked_or!(a, b, c, checked_rem),
        other => unreachable!("{other:?} has a result always"),
    }
}

fn shift(op: Shift, a: Twin, by: V<u32>, line: u32) -> Twin {
    match op {
        Shift::Left => integer!(a, |x| k::shl(x, by, line)),
        Shift::Right => integer!(a, |x| k::shr(x, by, line)),
        Shift::RotateLeft => integer!(a, |x| x.rotate_left(by)),
        Shift::RotateRight => integer!(a, |x| x.rotate_right(by)),
        Shift::WrappingLeft => integer!(a, |x| x.wrapping_shl(by)),
        Shift::WrappingRight => integer!(a, |x| x.wrapping_shr(by)),
    }
}

struct Recording {
    input: k::Slice<i32>,
    own: V<[u64; crate::tree::WORDS]>,
    values: Vec<Option<Twin>>,
    arrays: Vec<Option<Array>>,
    labels: Vec<Option<Label>>,
    end: Label,
}

impl Recording {
    fn condition(&mut self, expr: &Expr) -> V<bool> {
        match self.expr(expr) {
            Twin::Bool(holds) => holds,
            _ => unreachable!("a condition"),
        }
    }

    fn index(&mut self, expr: &Expr) -> V<usize> {
        match self.expr(expr) {
            Twin::Usize(index) => index,
            _ => unreachable!("an index"),
        }
    }

    /// The value of the branch that is taken.
    fn chosen(
        &mut self,
        cond: V<bool>,
        then: impl FnOnce(&mut Self) -> Twin,
        otherwise: impl FnOnce(&mut Self) -> Twin,
    ) -> Twin {
        let cond = k::if_begin(cond);
        let value = then(self);
        // The macro declares the result before the branch, where its type is inferred from them.
        let result = declared_like(value);
        assign(result, value);
        k::else_begin();
        let value = otherwise(self);
        assign(result, value);
        k::if_else_end(cond);
        result
    }

    fn expr(&mut self, expr: &Expr) -> Twin {
        match expr {
            Expr::Literal(value) => literal(*value),
            Expr::Variable(slot) => {
                let value = self.values[*slot].expect("a variable that was declared");
                any!(value, |x| k::get(&x))
            }
            Expr::Input(index, line) => {
                let index = self.index(index);
                Twin::I32(k::get(&self.input.__at(index, *line, "index out of bounds: `input`")))
            }
            Expr::InputLen => Twin::Usize(self.input.len()),
            Expr::Element(array, index, line) => {
                let index = self.index(index);
                let array = self.arrays[*array].expect("an array that was declared");
                element(array, index, *line)
            }
            Expr::PartElement(array, from, index, line) => {
                let index = self.index(index);
                let array = self.arrays[*array].expect("an array that was declared");
                part_element(array, *from, index, *line)
            }
            Expr::Own(word) => Twin::U64(k::get(&self.own.__at(k::lit(*word), 0, "own"))),
            Expr::Unary(op, a) => unary(*op, self.expr(a)),
            Expr::Binary(op, a, b, line) => {
                let (a, b) = (self.expr(a), self.expr(b));
                binary(*op, a, b, *line)
            }
            Expr::CheckedOr(op, a, b, c) => {
                let (a, b, c) = (self.expr(a), self.expr(b), self.expr(c));
                checked_or(*op, a, b, c)
            }
            Expr::Shift(op, a, by, line) => {
                let (a, by) = (self.expr(a), self.expr(by));
                let Twin::U32(by) = by else { unreachable!("shifts are by `u32`") };
                shift(*op, a, by, *line)
            }
            Expr::Compare(order, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                Twin::Bool(compare(*order, a, b))
            }
            Expr::Lazy(is_and, a, b) => {
                let result: V<bool> = k::var(self.condition(a));
                let goes_on = if *is_and { result } else { k::not(k::get(&result)) };
                let cond = k::if_begin(goes_on);
                let b = self.condition(b);
                k::assign(&result, b);
                k::if_end(cond);
                Twin::Bool(k::get(&result))
            }
            Expr::If(cond, a, b) => {
                let cond = self.condition(cond);
                let result = self.chosen(cond, |this| this.expr(a), |this| this.expr(b));
                any!(result, |x| k::get(&x))
            }
            Expr::Match(subject, arms) => {
                let subject = self.expr(subject);
                let is = |number: i64, order: Order| {
                    compare(order, subject, cast(literal(Value::I64(number)), type_of(subject)))
                };
                let tests = [
                    is(0, Order::Eq),
                    k::bit_or(is(1, Order::Eq), is(2, Order::Eq), 0),
                    k::bit_and(is(3, Order::Ge), is(20, Order::Le), 0),
                ];
                let result = self.chosen(
                    tests[0],
                    |this| this.expr(&arms[0]),
                    |this| {
                        this.chosen(
                            tests[1],
                            |this| this.expr(&arms[1]),
                            |this| {
                                this.chosen(tests[2], |this| this.expr(&arms[2]), |this| this.expr(&arms[3]))
                            },
                        )
                    },
                );
                any!(result, |x| k::get(&x))
            }
            Expr::MulAdd(parts) => match (self.expr(&parts[0]), self.expr(&parts[1]), self.expr(&parts[2])) {
                (Twin::F32(a), Twin::F32(b), Twin::F32(c)) => Twin::F32(a.mul_add(b, c)),
                (Twin::F64(a), Twin::F64(b), Twin::F64(c)) => Twin::F64(a.mul_add(b, c)),
                _ => unreachable!("floating-point numbers of one type"),
            },
            Expr::Cast(to, value) => cast(self.expr(value), *to),
        }
    }

    fn list(&mut self, list: &[Stmt]) {
        for stmt in list {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(slot, value) => {
                let value = self.expr(value);
                self.values[*slot] = Some(any!(value, |x| k::var(x)));
            }
            Stmt::Assign(slot, value) => {
                let value = self.expr(value);
                assign(self.values[*slot].expect("a variable that was declared"), value);
            }
            Stmt::Array(slot, values) => {
                let values = [0, 1, 2, 3].map(|index: usize| self.expr(&values[index]));
                self.arrays[*slot] = Some(array(values));
            }
            Stmt::SetElement(slot, index, value, line) => {
                let value = self.expr(value);
                let index = self.index(index);
                set_element(self.arrays[*slot].expect("an array that was declared"), index, value, *line);
            }
            Stmt::ReversePart(slot, from) => {
                change_part(self.arrays[*slot].expect("an array that was declared"), *from, None);
            }
            Stmt::FillPart(slot, from, value) => {
                let value = self.expr(value);
                change_part(self.arrays[*slot].expect("an array that was declared"), *from, Some(value));
            }
            Stmt::Store(word, value) => match self.expr(value) {
                Twin::U64(value) => k::assign(&self.own.__at(k::lit(*word), 0, "own"), value),
                _ => unreachable!("words are `u64`"),
            },
            Stmt::If(cond, then, otherwise) => {
                let cond = k::if_begin(self.condition(cond));
                self.list(then);
                if otherwise.is_empty() {
                    k::if_end(cond);
                } else {
                    k::else_begin();
                    self.list(otherwise);
                    k::if_else_end(cond);
                }
            }
            Stmt::For(slot, over, body) => self.for_(*slot, over, body),
            Stmt::While(slot, start, cond, body) => {
                let Twin::U32(start) = self.expr(start) else { unreachable!("counts are `u32`") };
                let left = k::var(k::rem(start, k::lit(6), 0));
                self.values[*slot] = Some(Twin::U32(left));
                let around = k::loop_begin();
                self.labels[*slot] = Some(around);
                k::leave_unless(around, k::gt(k::get(&left), k::lit(0)));
                let cond = self.condition(cond);
                k::leave_unless(around, cond);
                k::assign(&left, k::sub(k::get(&left), k::lit(1), 0));
                self.list(body);
                k::loop_step();
                k::loop_end(around);
            }
            Stmt::Loop { count, result, most, until, value, body } => {
                let passes: V<u32> = k::var(k::lit(0));
                self.values[*count] = Some(Twin::U32(passes));
                let around = k::loop_begin();
                k::assign(&passes, k::add(k::get(&passes), k::lit(1), 0));
                self.list(body);
                let ends: V<bool> = k::var(k::gt(k::get(&passes), k::lit(*most)));
                let goes_on = k::if_begin(k::not(k::get(&ends)));
                let until = self.condition(until);
                k::assign(&ends, until);
                k::if_end(goes_on);
                let cond = k::if_begin(k::get(&ends));
                let value = self.expr(value);
                let given = declared_like(value);
                assign(given, value);
                k::leave(around);
                k::if_end(cond);
                k::loop_step();
                k::loop_end(around);
                self.values[*result] = Some(given);
            }
            Stmt::Leave { around, is_continue, when } => {
                let cond = k::if_begin(self.condition(when));
                let label = self.labels[*around].expect("a loop that was started");
                if *is_continue {
                    k::again(label);
                } else {
                    k::leave(label);
                }
                k::if_end(cond);
            }
            Stmt::Return(when) => {
                let cond = k::if_begin(self.condition(when));
                k::leave(self.end);
                k::if_end(cond);
            }
        }
    }

    fn for_(&mut self, slot: Slot, over: &Over, body: &[Stmt]) {
        let (Over::Range(a, b) | Over::Inclusive(a, b) | Over::Reversed(a, b) | Over::Strided(a, b, _)) =
            over;
        let ends = (self.expr(a), self.expr(b));
        macro_rules! of_type {
            ($($variant:ident),*) => {
                match ends {
                    $((Twin::$variant(a), Twin::$variant(b)) => match over {
                        Over::Range(..) => self.over(slot, a..b, Twin::$variant, body),
                        Over::Inclusive(..) => self.over(slot, a..=b, Twin::$variant, body),
                        Over::Reversed(..) => self.over(slot, (a..b).rev(), Twin::$variant, body),
                        Over::Strided(_, _, by) => self.over(slot, (a..b).step_by(k::lit(*by)), Twin::$variant, body),
                    },)*
                    _ => unreachable!("integers of one type"),
                }
            };
        }
        of_type!(U8, I16, I32, U32, I64, U64, Usize)
    }

    fn over<I: k::Iterate>(&mut self, slot: Slot, over: I, item: impl Fn(I::Item) -> Twin, body: &[Stmt]) {
        let state = k::iterate(over);
        self.labels[slot] = Some(state.label());
        self.values[slot] = Some(item(state.next()));
        self.list(body);
        state.end();
    }
}

fn type_of(value: Twin) -> Type {
    match value {
        Twin::Bool(_) => Type::Bool,
        Twin::U8(_) => Type::U8,
        Twin::I16(_) => Type::I16,
        Twin::I32(_) => Type::I32,
        Twin::U32(_) => Type::U32,
        Twin::I64(_) => Type::I64,
        Twin::U64(_) => Type::U64,
        Twin::Usize(_) => Type::Usize,
        Twin::F32(_) => Type::F32,
        Twin::F64(_) => Type::F64,
    }
}

macro_rules! arrays {
    ($($variant:ident),*) => {
        fn array(values: [Twin; ELEMENTS]) -> Array {
            match values {
                $([Twin::$variant(a), Twin::$variant(b), Twin::$variant(c), Twin::$variant(d)] => {
                    Array::$variant(k::var(k::array([a, b, c, d])))
                })*
                _ => unreachable!("numbers of one type"),
            }
        }

        fn element(array: Array, index: V<usize>, line: u32) -> Twin {
            match array {
                $(Array::$variant(array) => Twin::$variant(k::get(&array.__at(index, line, "index out of bounds: `array`"))),)*
            }
        }

        fn part_element(array: Array, from: usize, index: V<usize>, line: u32) -> Twin {
            const OUTSIDE: &str = "index out of bounds: `array`";
            match array {
                $(Array::$variant(array) => {
                    let part = array.__at(k::lit(from).., line, OUTSIDE);
                    Twin::$variant(k::get(&part.__at(index, line, OUTSIDE)))
                })*
            }
        }

        /// Reverses a part of an array, or fills it with a value.
        fn change_part(array: Array, from: usize, value: Option<Twin>) {
            match (array, value) {
                $((Array::$variant(array), None) => array.__at(k::lit(from).., 0, "part").reverse(),
                (Array::$variant(array), Some(Twin::$variant(value))) => {
                    array.__at(k::lit(from).., 0, "part").fill(value);
                })*
                _ => unreachable!("a number of the type of the array"),
            }
        }

        fn set_element(array: Array, index: V<usize>, value: Twin, line: u32) {
            match (array, value) {
                $((Array::$variant(array), Twin::$variant(value)) => {
                    k::assign(&array.__at(index, line, "index out of bounds: `array`"), value)
                })*
                _ => unreachable!("a number of the type of the array"),
            }
        }
    };
}
arrays!(U8, I16, I32, U32, I64, U64, Usize, F32, F64);

/// A value as a word; all NaNs as one.
fn word(value: Twin) -> V<u64> {
    match value {
        Twin::F32(value) => k::select(value.is_nan(), k::lit(12_345), k::cast(value.to_bits())),
        Twin::F64(value) => k::select(value.is_nan(), k::lit(54_321), value.to_bits()),
        value => cast_to!(value, u64),
    }
}

/// The file that errors name.
pub(crate) const FILE: &str = "random.rs";

/// Records a program as the kernel `program(input: &[i32], out: Out<[u64; WORDS]>)`.
pub(crate) fn record(program: &Program, target: k::Target) -> Result<k::Recorded, k::RecordError> {
    k::record_anew(program.is_unchecked, target, "program", &|| {
        let _frame = k::enter(FILE, "program", program.is_overflow_checked);
        let input = k::param::<&[i32]>();
        let out = k::param::<Out<[u64; crate::tree::WORDS]>>();
        let end = k::block_begin();
        let mine = out.mine();
        k::leave_unless(end, k::get(&mine.__some));
        let (index, own) = mine.__value;
        let x: V<i32> = k::get(&input.__at(index, 0, "index out of bounds: `input`"));
        let mut recording = Recording {
            input,
            own: own.__place,
            values: vec![None; program.slots],
            arrays: vec![None; program.slots],
            labels: vec![None; program.slots],
            end,
        };
        recording.values[0] = Some(Twin::I32(x));
        recording.values[1] = Some(Twin::Usize(index));
        recording.list(&program.body);
        let mut sum: V<u64> = k::lit(0);
        for slot in &program.results {
            let value = recording.expr(&Expr::Variable(*slot));
            sum = sum.wrapping_mul(k::lit(31)).wrapping_add(word(value));
        }
        k::assign(&recording.own.__at(k::lit(0), 0, "own"), sum);
        k::block_end(end);
    })
}
