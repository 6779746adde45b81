//! Makes programs from seeds.

use crate::support::Random;
use crate::tree::{
    Binary, ELEMENTS, Expr, Line, Order, Over, Program, Shift, Slot, Stmt, Type, Unary, Value, WORDS,
};

#[derive(Clone, Copy)]
struct Variable {
    slot: Slot,
    ty: Type,
    is_mutable: bool,
}

/// What statements can name.
#[derive(Clone, Default)]
struct Scope {
    variables: Vec<Variable>,
    arrays: Vec<(Slot, Type)>,
    /// The loops around that can be left.
    loops: Vec<Slot>,
}

struct Generator {
    random: Random,
    slots: usize,
    lines: Line,
    /// Whether operations may fail.
    can_fail: bool,
    /// How deep loops are nested.
    nested: usize,
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

impl Generator {
    fn slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }

    fn line(&mut self) -> Line {
        self.lines += 1;
        self.lines
    }

    fn literal(&mut self, ty: Type) -> Expr {
        let random = &mut self.random;
        let small = random.pick(&[0i64, 1, 2, 3, 5, 7, 8, 31, 32, 64, 100, 127, 255, 1000]);
        let small = if random.one_in(4) { -small } else { small };
        let float = random.pick(&[0.5, -1.25, 3.0, 1e-3, 1000.0, 0.1, -0.0, 7.75, 1e10, f64::INFINITY]);
        let is_extreme = random.one_in(8);
        let is_least = random.one_in(2);
        macro_rules! integer {
            ($variant:ident, $t:ty) => {
                Value::$variant(match (is_extreme, is_least) {
                    (true, true) => <$t>::MIN,
                    (true, false) => <$t>::MAX,
                    _ => small as $t,
                })
            };
        }
        Expr::Literal(match ty {
            Type::Bool => Value::Bool(is_least),
            Type::U8 => integer!(U8, u8),
            Type::I16 => integer!(I16, i16),
            Type::I32 => integer!(I32, i32),
            Type::U32 => integer!(U32, u32),
            Type::I64 => integer!(I64, i64),
            Type::U64 => integer!(U64, u64),
            // Indices are small more often.
            Type::Usize if !is_extreme => Value::Usize(small.unsigned_abs() as usize),
            Type::Usize => integer!(Usize, usize),
            Type::F32 => Value::F32(float as f32),
            Type::F64 => Value::F64(float),
        })
    }

    fn leaf(&mut self, ty: Type, scope: &Scope) -> Expr {
        let known: Vec<Slot> = scope.variables.iter().filter(|v| v.ty == ty).map(|v| v.slot).collect();
        if !known.is_empty() && !self.random.one_in(4) {
            return Expr::Variable(self.random.pick(&known));
        }
        match ty {
            Type::U64 if self.random.one_in(6) => Expr::Own(self.random.below(WORDS)),
            Type::Usize if self.random.one_in(6) => Expr::InputLen,
            _ => self.literal(ty),
        }
    }

    /// An index that is in range always, or one that may not be.
    fn index(&mut self, scope: &Scope, len: usize, depth: usize) -> Expr {
        if len == ELEMENTS && self.random.one_in(3) {
            return Expr::Literal(Value::Usize(self.random.below(ELEMENTS)));
        }
        let ty = self.random.pick(&[Type::Usize, Type::U32, Type::U8, Type::I32]);
        let any = self.expr(ty, scope, depth);
        let any = if ty == Type::Usize { any } else { Expr::Cast(Type::Usize, boxed(any)) };
        if self.can_fail && self.random.one_in(10) {
            return any;
        }
        let bound = Expr::Literal(Value::Usize(len));
        if len.is_power_of_two() && self.random.one_in(2) {
            let mask = Expr::Literal(Value::Usize(len - 1));
            return Expr::Binary(Binary::And, boxed(any), boxed(mask), 0);
        }
        if self.random.one_in(3) {
            let most = Expr::Literal(Value::Usize(len - 1));
            return Expr::Binary(Binary::Min, boxed(any), boxed(most), 0);
        }
        Expr::Binary(Binary::Rem, boxed(any), boxed(bound), 0)
    }

    fn expr(&mut self, ty: Type, scope: &Scope, depth: usize) -> Expr {
        if depth == 0 || self.random.one_in(7) {
            return self.leaf(ty, scope);
        }
        let below = depth - 1;
        if self.random.one_in(9) {
            let cond = self.expr(Type::Bool, scope, below);
            let (a, b) = (self.expr(ty, scope, below), self.expr(ty, scope, below));
            return Expr::If(boxed(cond), boxed(a), boxed(b));
        }
        if self.random.one_in(18) {
            let of = self.random.pick(&Type::INTEGERS);
            let subject = self.expr(of, scope, below);
            let arms = [0; 4].map(|_| self.expr(ty, scope, below));
            return Expr::Match(boxed(subject), Box::new(arms));
        }
        let arrays: Vec<Slot> =
            scope.arrays.iter().filter(|(_, of)| *of == ty).map(|(slot, _)| *slot).collect();
        if !arrays.is_empty() && self.random.one_in(5) {
            let array = self.random.pick(&arrays);
            if self.random.one_in(4) {
                let from = self.random.below(ELEMENTS - 1);
                let index = self.index(scope, ELEMENTS - from, below);
                return Expr::PartElement(array, from, boxed(index), self.line());
            }
            let index = self.index(scope, ELEMENTS, below);
            return Expr::Element(array, boxed(index), self.line());
        }
        match ty {
            Type::Bool => self.condition(scope, below),
            Type::F32 | Type::F64 => self.float(ty, scope, below),
            _ => self.integer(ty, scope, below),
        }
    }

    fn condition(&mut self, scope: &Scope, depth: usize) -> Expr {
        match self.random.below(9) {
            0 | 1 => {
                let (a, b) = (self.expr(Type::Bool, scope, depth), self.expr(Type::Bool, scope, depth));
                Expr::Lazy(self.random.one_in(2), boxed(a), boxed(b))
            }
            2 => {
                let op = self.random.pick(&[Binary::And, Binary::Or, Binary::Xor]);
                let (a, b) = (self.expr(Type::Bool, scope, depth), self.expr(Type::Bool, scope, depth));
                Expr::Binary(op, boxed(a), boxed(b), 0)
            }
            3 => Expr::Unary(Unary::Not, boxed(self.expr(Type::Bool, scope, depth))),
            _ => {
                let ty = self.random.pick(&Type::NUMBERS);
                let order =
                    self.random.pick(&[Order::Lt, Order::Le, Order::Gt, Order::Ge, Order::Eq, Order::Ne]);
                let (a, b) = (self.expr(ty, scope, depth), self.expr(ty, scope, depth));
                Expr::Compare(order, boxed(a), boxed(b))
            }
        }
    }

    fn float(&mut self, ty: Type, scope: &Scope, depth: usize) -> Expr {
        match self.random.below(9) {
            0..=3 => {
                let op = self.random.pick(&[Binary::Add, Binary::Sub, Binary::Mul, Binary::Div]);
                let (a, b) = (self.expr(ty, scope, depth), self.expr(ty, scope, depth));
                Expr::Binary(op, boxed(a), boxed(b), 0)
            }
            4 => {
                let parts = [0; 3].map(|_| self.expr(ty, scope, depth));
                Expr::MulAdd(Box::new(parts))
            }
            5 | 6 => {
                let op = self.random.pick(&[
                    Unary::Neg,
                    Unary::Abs,
                    Unary::Sqrt,
                    Unary::Floor,
                    Unary::Ceil,
                    Unary::Trunc,
                    Unary::Round,
                ]);
                Expr::Unary(op, boxed(self.expr(ty, scope, depth)))
            }
            7 => {
                let of = self.random.pick(&Type::INTEGERS);
                Expr::Cast(ty, boxed(self.expr(of, scope, depth)))
            }
            _ => {
                let of = if ty == Type::F32 { Type::F64 } else { Type::F32 };
                Expr::Cast(ty, boxed(self.expr(of, scope, depth)))
            }
        }
    }

    fn integer(&mut self, ty: Type, scope: &Scope, depth: usize) -> Expr {
        const CHECKED: [Binary; 5] = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Rem];
        match self.random.below(16) {
            0..=3 => {
                let op = self.random.pick(&[
                    Binary::WrappingAdd,
                    Binary::WrappingSub,
                    Binary::WrappingMul,
                    Binary::SaturatingAdd,
                    Binary::SaturatingSub,
                    Binary::SaturatingMul,
                ]);
                let (a, b) = (self.expr(ty, scope, depth), self.expr(ty, scope, depth));
                Expr::Binary(op, boxed(a), boxed(b), 0)
            }
            4 | 5 => {
                let op = self.random.pick(&[Binary::And, Binary::Or, Binary::Xor, Binary::Min, Binary::Max]);
                let (a, b) = (self.expr(ty, scope, depth), self.expr(ty, scope, depth));
                Expr::Binary(op, boxed(a), boxed(b), 0)
            }
            6 => {
                let op = self.random.pick(&CHECKED);
                let (a, b) = (self.expr(ty, scope, depth), self.expr(ty, scope, depth));
                let otherwise = self.expr(ty, scope, depth);
                Expr::CheckedOr(op, boxed(a), boxed(b), boxed(otherwise))
            }
            // By a number that is known and not 0, which cannot fail.
            7 | 8 => {
                let op = self.random.pick(&[Binary::Div, Binary::Rem]);
                let by = self.random.pick(&[1u8, 2, 3, 4, 5, 7, 8, 10, 16, 31, 32, 64, 100]);
                let by = match ty {
                    Type::U8 => Value::U8(by),
                    Type::I16 => Value::I16(by.into()),
                    Type::I32 => Value::I32(by.into()),
                    Type::U32 => Value::U32(by.into()),
                    Type::I64 => Value::I64(by.into()),
                    Type::U64 => Value::U64(by.into()),
                    _ => Value::Usize(by.into()),
                };
                let a = self.expr(ty, scope, depth);
                Expr::Binary(op, boxed(a), boxed(Expr::Literal(by)), 0)
            }
            9 => {
                let op = self.random.pick(&[
                    Shift::RotateLeft,
                    Shift::RotateRight,
                    Shift::WrappingLeft,
                    Shift::WrappingRight,
                ]);
                let (a, by) = (self.expr(ty, scope, depth), self.expr(Type::U32, scope, depth));
                Expr::Shift(op, boxed(a), boxed(by), 0)
            }
            10 => {
                let op = self.random.pick(&[Shift::Left, Shift::Right]);
                let (a, by) = (self.expr(ty, scope, depth), self.expr(Type::U32, scope, depth));
                if self.can_fail && self.random.one_in(4) {
                    return Expr::Shift(op, boxed(a), boxed(by), self.line());
                }
                let bits = Expr::Literal(Value::U32(ty.bits()));
                let by = Expr::Binary(Binary::Rem, boxed(by), boxed(bits), 0);
                Expr::Shift(op, boxed(a), boxed(by), 0)
            }
            11 => {
                let op = self.random.pick(&[Unary::Not, Unary::WrappingNeg]);
                Expr::Unary(op, boxed(self.expr(ty, scope, depth)))
            }
            12 if ty == Type::U32 => {
                let of = self.random.pick(&Type::INTEGERS);
                let op = self.random.pick(&[Unary::CountOnes, Unary::LeadingZeros, Unary::TrailingZeros]);
                Expr::Unary(op, boxed(self.expr(of, scope, depth)))
            }
            13 if ty == Type::I32 => {
                let index = self.index(scope, INPUT_LEN, depth);
                Expr::Input(boxed(index), self.line())
            }
            14 if self.can_fail => {
                let op = self.random.pick(&CHECKED);
                let (a, b) = (self.expr(ty, scope, depth), self.expr(ty, scope, depth));
                Expr::Binary(op, boxed(a), boxed(b), self.line())
            }
            _ => {
                let of = self.random.pick(&Type::ALL);
                let value = self.expr(of, scope, depth);
                if of == ty { value } else { Expr::Cast(ty, boxed(value)) }
            }
        }
    }

    fn block(&mut self, scope: &Scope, depth: usize, count: usize) -> Vec<Stmt> {
        let mut scope = scope.clone();
        (0..count).flat_map(|_| self.statement(&mut scope, depth)).collect()
    }

    fn declare(&mut self, scope: &mut Scope, ty: Type, is_mutable: bool) -> Slot {
        let slot = self.slot();
        scope.variables.push(Variable { slot, ty, is_mutable });
        slot
    }

    fn statement(&mut self, scope: &mut Scope, depth: usize) -> Vec<Stmt> {
        let mutable: Vec<Variable> = scope.variables.iter().copied().filter(|v| v.is_mutable).collect();
        let form = self.random.below(if depth > 0 { 19 } else { 8 });
        match form {
            2..=5 if !mutable.is_empty() => {
                let variable = self.random.pick(&mutable);
                vec![Stmt::Assign(variable.slot, self.expr(variable.ty, scope, 3))]
            }
            6 => vec![Stmt::Store(self.random.below(WORDS), self.expr(Type::U64, scope, 2))],
            7 if !scope.arrays.is_empty() => {
                let (array, ty) = self.random.pick(&scope.arrays);
                if self.random.one_in(4) {
                    let from = self.random.below(ELEMENTS);
                    return vec![if self.random.one_in(2) {
                        Stmt::ReversePart(array, from)
                    } else {
                        Stmt::FillPart(array, from, self.expr(ty, scope, 2))
                    }];
                }
                let index = self.index(scope, ELEMENTS, 2);
                let value = self.expr(ty, scope, 2);
                vec![Stmt::SetElement(array, index, value, self.line())]
            }
            8..=10 => {
                let cond = self.expr(Type::Bool, scope, 2);
                let then = self.block(scope, depth - 1, 2);
                let otherwise =
                    if self.random.one_in(2) { self.block(scope, depth - 1, 2) } else { Vec::new() };
                vec![Stmt::If(cond, then, otherwise)]
            }
            11 | 12 if self.nested < 3 => vec![self.for_loop(scope, depth)],
            13 if self.nested < 3 => {
                let start = self.expr(Type::U32, scope, 1);
                let mut inner = scope.clone();
                let slot = self.declare(&mut inner, Type::U32, false);
                let cond = self.expr(Type::Bool, &inner, 1);
                inner.loops.push(slot);
                vec![Stmt::While(slot, start, cond, self.nested_block(&inner, depth, 2))]
            }
            14 if self.nested < 3 => {
                let mut inner = scope.clone();
                let count = self.declare(&mut inner, Type::U32, false);
                // It ends with a value, so that it is not left from inside.
                let body = self.nested_block(&inner, depth, 1);
                let most = self.random.between(1, 5) as u32;
                let until = self.expr(Type::Bool, &inner, 1);
                let ty = self.random.pick(&Type::ALL);
                let value = self.expr(ty, &inner, 2);
                let result = self.declare(scope, ty, true);
                vec![Stmt::Loop { count, result, most, until, value, body }]
            }
            15 => {
                let ty = self.random.pick(&Type::NUMBERS);
                let values = [0; ELEMENTS].map(|_| self.expr(ty, scope, 1));
                let slot = self.slot();
                scope.arrays.push((slot, ty));
                vec![Stmt::Array(slot, Box::new(values))]
            }
            16 | 17 if !scope.loops.is_empty() => {
                let around = self.random.pick(&scope.loops);
                let when = self.expr(Type::Bool, scope, 1);
                vec![Stmt::Leave { around, is_continue: self.random.one_in(2), when }]
            }
            18 if self.random.one_in(4) => vec![Stmt::Return(self.expr(Type::Bool, scope, 2))],
            _ => {
                let ty = self.random.pick(&Type::ALL);
                let value = self.expr(ty, scope, 3);
                let slot = self.declare(scope, ty, true);
                vec![Stmt::Let(slot, value)]
            }
        }
    }

    fn nested_block(&mut self, scope: &Scope, depth: usize, count: usize) -> Vec<Stmt> {
        self.nested += 1;
        let body = self.block(scope, depth - 1, count);
        self.nested -= 1;
        body
    }

    fn for_loop(&mut self, scope: &Scope, depth: usize) -> Stmt {
        let ty = self.random.pick(&[Type::U32, Type::I32, Type::Usize, Type::U8, Type::I64]);
        let number = |value: u8| {
            Expr::Literal(match ty {
                Type::U32 => Value::U32(value.into()),
                Type::I32 => Value::I32(value.into()),
                Type::Usize => Value::Usize(value.into()),
                Type::U8 => Value::U8(value),
                _ => Value::I64(value.into()),
            })
        };
        let start = number(self.random.below(3) as u8);
        // A number of passes that is known, or one that is known to be small.
        let end = if self.random.one_in(2) {
            number(self.random.between(1, 8) as u8)
        } else {
            let any = self.expr(ty, scope, 2);
            Expr::Binary(Binary::Rem, boxed(any), boxed(number(7)), 0)
        };
        let over = match self.random.below(5) {
            0 => Over::Inclusive(start, end),
            1 => Over::Reversed(start, end),
            2 => Over::Strided(start, end, self.random.between(1, 4) as usize),
            _ => Over::Range(start, end),
        };
        let mut inner = scope.clone();
        let slot = self.declare(&mut inner, ty, false);
        inner.loops.push(slot);
        Stmt::For(slot, over, self.nested_block(&inner, depth, 2))
    }
}

/// How many elements the input has.
pub(crate) const INPUT_LEN: usize = 16;

/// Makes the program of a seed.
pub(crate) fn generate(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let can_fail = random.one_in(3);
    let is_overflow_checked = !random.one_in(4);
    let is_unchecked = !can_fail && random.one_in(3);
    let statements = 2 + random.below(9);
    let mut generator = Generator { random, slots: 2, lines: 0, can_fail, nested: 0 };
    let mut scope = Scope::default();
    scope.variables.push(Variable { slot: 0, ty: Type::I32, is_mutable: false });
    scope.variables.push(Variable { slot: 1, ty: Type::Usize, is_mutable: false });
    let body: Vec<Stmt> = (0..statements).flat_map(|_| generator.statement(&mut scope, 3)).collect();
    let results = scope.variables.iter().map(|variable| variable.slot).collect();
    Program { slots: generator.slots, body, results, is_overflow_checked, is_unchecked }
}
