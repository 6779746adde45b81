//! Programs as trees: what a generated program is made of.

/// The types that a program computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    U8,
    I16,
    I32,
    U32,
    I64,
    U64,
    Usize,
    F32,
    F64,
}

impl Type {
    pub(crate) const ALL: [Type; 10] = [
        Type::Bool,
        Type::U8,
        Type::I16,
        Type::I32,
        Type::U32,
        Type::I64,
        Type::U64,
        Type::Usize,
        Type::F32,
        Type::F64,
    ];
    pub(crate) const NUMBERS: [Type; 9] =
        [Type::U8, Type::I16, Type::I32, Type::U32, Type::I64, Type::U64, Type::Usize, Type::F32, Type::F64];
    pub(crate) const INTEGERS: [Type; 7] =
        [Type::U8, Type::I16, Type::I32, Type::U32, Type::I64, Type::U64, Type::Usize];

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Type::Bool | Type::U8 => 8,
            Type::I16 => 16,
            Type::I32 | Type::U32 | Type::F32 => 32,
            Type::I64 | Type::U64 | Type::Usize | Type::F64 => 64,
        }
    }
}

/// A value of one of the types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    U8(u8),
    I16(i16),
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    Usize(usize),
    F32(f32),
    F64(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    WrappingNeg,
    CountOnes,
    LeadingZeros,
    TrailingZeros,
    /// Of floating-point numbers, as those that follow.
    Neg,
    Abs,
    Sqrt,
    Floor,
    Ceil,
    Trunc,
    Round,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    WrappingAdd,
    WrappingSub,
    WrappingMul,
    SaturatingAdd,
    SaturatingSub,
    SaturatingMul,
    And,
    Or,
    Xor,
    Min,
    Max,
    /// Those of Rust's operators, which fail where there is no result. Of floating-point numbers
    /// they are the operations.
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    Left,
    Right,
    RotateLeft,
    RotateRight,
    WrappingLeft,
    WrappingRight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

/// The number of a variable, an array or a loop.
pub(crate) type Slot = usize;

/// The line that an error names.
pub(crate) type Line = u32;

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Value),
    Variable(Slot),
    /// The element of the input at an index.
    Input(Box<Expr>, Line),
    /// How many elements the input has.
    InputLen,
    Element(Slot, Box<Expr>, Line),
    /// `array[from..][index]`.
    PartElement(Slot, usize, Box<Expr>, Line),
    /// A word of the thread's own element of the output.
    Own(usize),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>, Line),
    /// `a.checked_op(b).unwrap_or(c)`.
    CheckedOr(Binary, Box<Expr>, Box<Expr>, Box<Expr>),
    Shift(Shift, Box<Expr>, Box<Expr>, Line),
    Compare(Order, Box<Expr>, Box<Expr>),
    /// `a && b` or `a || b`.
    Lazy(bool, Box<Expr>, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `match a { 0 => …, 1 | 2 => …, 3..=20 => …, _ => … }`.
    Match(Box<Expr>, Box<[Expr; 4]>),
    MulAdd(Box<[Expr; 3]>),
    Cast(Type, Box<Expr>),
}

/// What a `for` loop goes over.
#[derive(Clone, Debug)]
pub(crate) enum Over {
    Range(Expr, Expr),
    Inclusive(Expr, Expr),
    Reversed(Expr, Expr),
    Strided(Expr, Expr, usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    Let(Slot, Expr),
    Assign(Slot, Expr),
    /// `let mut array = [a, b, c, d]`.
    Array(Slot, Box<[Expr; 4]>),
    SetElement(Slot, Expr, Expr, Line),
    /// `array[from..].reverse()`.
    ReversePart(Slot, usize),
    /// `array[from..].fill(value)`.
    FillPart(Slot, usize, Expr),
    /// Writes a word of the thread's own element of the output.
    Store(usize, Expr),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    For(Slot, Over, Vec<Stmt>),
    /// `let mut n = start % 6; while n > 0 && cond { n -= 1; … }`.
    While(Slot, Expr, Expr, Vec<Stmt>),
    /// `let mut n = 0; let mut x = loop { n += 1; …; if n > most || until { break value } }`.
    Loop {
        count: Slot,
        result: Slot,
        most: u32,
        until: Expr,
        value: Expr,
        body: Vec<Stmt>,
    },
    /// Leaves a loop, or goes on with its next pass, where a condition holds.
    Leave {
        around: Slot,
        is_continue: bool,
        when: Expr,
    },
    /// Ends the thread where a condition holds.
    Return(Expr),
}

pub(crate) struct Program {
    /// How many slots there are.
    pub(crate) slots: usize,
    pub(crate) body: Vec<Stmt>,
    /// The variables that are part of the result.
    pub(crate) results: Vec<Slot>,
    /// Whether `+`, `-` and `*` fail where they overflow.
    pub(crate) is_overflow_checked: bool,
    /// Whether the program is loaded without checks of its indices. All of them are then in range.
    pub(crate) is_unchecked: bool,
}

/// Words of the output that a thread owns.
pub(crate) const WORDS: usize = 4;

/// Elements of an array.
pub(crate) const ELEMENTS: usize = 4;
