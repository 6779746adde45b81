//! Computes each value once (value numbering).
//!
//! The pass goes through the kernel in order and tracks the value of each register. Two registers
//! with the same value share it. A variable is tracked from write to write. Where two control-flow
//! paths join with different values, it gets a new one. What is known about values (constants,
//! ranges, comparisons that were branched on or checked) holds in the statements behind the test.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

mod statements;
mod variables;

use super::fold;
use super::range::Range;
use crate::ir::{Base, Effect, Inst, Label, Mem, Operand, Program, Reg, Space, Stmt, Ty};

/// A value.
pub(super) type Number = u32;

/// What an instruction reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Arg {
    Value(Number),
    Special(&'static str),
    Mem { space: Space, base: MemBase, index: Option<Number>, offset: i64 },
    Address(Base),
}

/// What an address starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MemBase {
    Value(Number),
    Fixed(Base),
}

/// How a value is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Expr {
    pub(super) op: Cow<'static, str>,
    pub(super) suffix: &'static str,
    pub(super) args: Vec<Arg>,
}

pub(super) struct Value {
    pub(super) ty: Ty,
    pub(super) constant: Option<u64>,
    pub(super) expr: Option<Rc<Expr>>,
    pub(super) range: Option<Range>,
    /// The register that holds it, where that is written once and before what follows.
    home: Option<Reg>,
}

/// A comparison: instruction, type and arguments.
pub(super) type Comparison = (&'static str, &'static str, (Number, Number));

/// A fact to forget at the end of a list of statements.
enum Undo {
    Known(Expr),
    Home(Number),
    Copy(Number),
    Order((&'static str, Number, Number), Option<bool>),
    Refined(Number, Option<Range>),
    Truth(Number, Option<bool>),
}

/// The variables where several paths of control join.
struct Join {
    values: Vec<Number>,
    differs: Vec<bool>,
    /// The ranges of integers, as the types of the variables have them. The types of their values
    /// can differ in their signs.
    ranges: Vec<Option<Range>>,
}

pub(super) struct Pass<'a> {
    /// The size of blocks, where it is the same in every launch.
    pub(super) block: Option<[u32; 3]>,
    regs: &'a mut Vec<Ty>,
    labels: u32,
    /// How many statements the kernel has at most, with those that this pass has added.
    statements: usize,
    pub(super) values: Vec<Value>,
    constants: HashMap<(Ty, u64), Number>,
    known: HashMap<Expr, Number>,
    /// The values of registers that are written once.
    of_reg: Vec<Option<Number>>,
    /// The place of each variable among them.
    var_index: Vec<Option<usize>>,
    vars: Vec<Reg>,
    now: Vec<Number>,
    holders: HashMap<Number, Vec<Reg>>,
    copies: HashMap<Number, Reg>,
    orders: HashMap<(&'static str, Number, Number), bool>,
    refined: HashMap<Number, Range>,
    truths: HashMap<Number, bool>,
    /// Comparisons of 64 bits that have become those of 32 bits, by what they have become.
    wider: HashMap<Number, Comparison>,
    /// The negations of the parts of the condition that is being negated. `None`: the part is
    /// negated as a whole.
    pub(super) negations: HashMap<Number, Option<Number>>,
    /// How many negations are inside of each other now.
    pub(super) negation_depth: usize,
    undo: Vec<Undo>,
    out: Vec<Stmt>,
    left: HashMap<Label, Join>,
    continued: HashMap<Label, Join>,
    /// Variables of 64 bits whose low half is also kept, and where.
    halves: HashMap<Reg, Reg>,
    loops: usize,
    is_trial: bool,
    /// The ranges of variables at the end of the last pass of a loop.
    ends: Option<Vec<Range>>,
}

/// Returns whether threads have to come to an instruction together.
pub(super) fn is_convergent(op: &str) -> bool {
    ["shfl", "vote", "match", "redux", "bar", "activemask"].iter().any(|name| op.starts_with(name))
}

pub(super) fn run(program: &mut Program) {
    let is_variable = variables(program);
    let body = std::mem::take(&mut program.body);
    let labels = most_label(&body) + 1;
    let mut pass = Pass::new(&mut program.regs, labels, &is_variable);
    pass.block = program.rules.block;
    pass.statements = super::count(&body);
    let (list, _) = pass.in_list(body);
    program.body = list;
}

fn most_label(list: &[Stmt]) -> u32 {
    let of = |stmt: &Stmt| match stmt {
        Stmt::Block { label, .. } | Stmt::Loop { label, .. } => label.0,
        _ => 0,
    };
    list.iter()
        .map(|stmt| stmt.inner().into_iter().map(most_label).fold(of(stmt), u32::max))
        .max()
        .unwrap_or(0)
}

/// Finds the registers that are written more than once, or read where their write may not have
/// happened.
pub(crate) fn variables(program: &Program) -> Vec<bool> {
    struct Walk {
        writes: Vec<u32>,
        is_defined: Vec<bool>,
        is_variable: Vec<bool>,
    }
    impl Walk {
        fn list(&mut self, list: &[Stmt]) {
            let mut here = Vec::new();
            for stmt in list {
                stmt.reads(&mut |operand| {
                    for Reg(reg) in operand.regs() {
                        self.is_variable[reg as usize] |= !self.is_defined[reg as usize];
                    }
                });
                stmt.inner().into_iter().for_each(|inner| self.list(inner));
                if let Stmt::Inst(Inst { dst: Some(Reg(dst)), .. }) = stmt {
                    self.writes[*dst as usize] += 1;
                    self.is_defined[*dst as usize] = true;
                    here.push(*dst as usize);
                }
            }
            here.into_iter().for_each(|reg| self.is_defined[reg] = false);
        }
    }
    let count = program.regs.len();
    let mut walk =
        Walk { writes: vec![0; count], is_defined: vec![false; count], is_variable: vec![false; count] };
    walk.list(&program.body);
    walk.writes.iter().zip(walk.is_variable).map(|(&writes, variable)| variable || writes > 1).collect()
}

impl<'a> Pass<'a> {
    fn new(regs: &'a mut Vec<Ty>, labels: u32, is_variable: &[bool]) -> Self {
        let count = regs.len();
        let mut pass = Pass {
            block: None,
            regs,
            labels,
            statements: 0,
            values: Vec::new(),
            constants: HashMap::new(),
            known: HashMap::new(),
            of_reg: vec![None; count],
            var_index: vec![None; count],
            vars: Vec::new(),
            now: Vec::new(),
            holders: HashMap::new(),
            copies: HashMap::new(),
            orders: HashMap::new(),
            refined: HashMap::new(),
            truths: HashMap::new(),
            wider: HashMap::new(),
            negations: HashMap::new(),
            negation_depth: 0,
            undo: Vec::new(),
            out: Vec::new(),
            left: HashMap::new(),
            continued: HashMap::new(),
            halves: HashMap::new(),
            loops: 0,
            is_trial: false,
            ends: None,
        };
        for (index, _) in is_variable.iter().enumerate().filter(|(_, is)| **is) {
            pass.add_var(Reg(index as u32));
        }
        pass
    }

    fn add_var(&mut self, reg: Reg) {
        let value = self.opaque(self.regs[reg.0 as usize], None);
        self.var_index[reg.0 as usize] = Some(self.vars.len());
        self.vars.push(reg);
        self.now.push(value);
        self.holders.entry(value).or_default().push(reg);
    }

    pub(super) fn is_var(&self, reg: Reg) -> bool {
        self.var_index[reg.0 as usize].is_some()
    }

    pub(super) fn ty_of(&self, reg: Reg) -> Ty {
        self.regs[reg.0 as usize]
    }

    /// Returns the number that a register has now, if that is known.
    pub(super) fn known_now(&mut self, reg: Reg) -> Option<u64> {
        let number = self.of_register(reg);
        self.constant_of(number)
    }

    /// Returns the range of the number that a register has now.
    pub(super) fn range_of_reg(&mut self, reg: Reg) -> Range {
        let number = self.of_register(reg);
        self.range_in(number, self.ty_of(reg))
    }

    /// Returns whether the kernel may have so many statements more, and counts them if it may. Each
    /// loop that is unrolled, and each condition that is negated, only knows its own part.
    pub(super) fn can_grow(&mut self, statements: usize) -> bool {
        let sum = self.statements + statements;
        let can = sum <= super::MOST;
        if can {
            self.statements = sum;
        }
        can
    }

    pub(super) fn new_reg(&mut self, ty: Ty) -> Reg {
        self.regs.push(ty);
        self.of_reg.push(None);
        self.var_index.push(None);
        Reg(self.regs.len() as u32 - 1)
    }

    pub(super) fn new_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    // Values.

    pub(super) fn opaque(&mut self, ty: Ty, range: Option<Range>) -> Number {
        self.values.push(Value { ty, constant: None, expr: None, range, home: None });
        self.values.len() as Number - 1
    }

    /// Returns the number with these bits.
    pub(super) fn constant(&mut self, ty: Ty, bits: u64) -> Number {
        if let Some(&known) = self.constants.get(&(ty, bits)) {
            return known;
        }
        self.values.push(Value { ty, constant: Some(bits), expr: None, range: None, home: None });
        let number = self.values.len() as Number - 1;
        self.constants.insert((ty, bits), number);
        number
    }

    pub(super) fn constant_of(&self, number: Number) -> Option<u64> {
        self.values[number as usize].constant
    }

    pub(super) fn expr(&self, number: Number) -> Option<Rc<Expr>> {
        self.values[number as usize].expr.clone()
    }

    pub(super) fn ty(&self, number: Number) -> Ty {
        self.values[number as usize].ty
    }

    /// Returns the variable that has a value now.
    fn holder(&self, number: Number) -> Option<Reg> {
        let holders = self.holders.get(&number)?;
        holders.iter().copied().find(|reg| {
            self.var_index[reg.0 as usize].is_some_and(|index| self.now.get(index) == Some(&number))
        })
    }

    /// Returns whether an instruction can read a value here.
    pub(super) fn is_usable(&self, number: Number) -> bool {
        let value = &self.values[number as usize];
        value.constant.is_some()
            || value.home.is_some()
            || self.copies.contains_key(&number)
            || self.holder(number).is_some()
    }

    fn operand(&self, number: Number) -> Option<Operand> {
        let value = &self.values[number as usize];
        if let Some(bits) = value.constant {
            return Some(Operand::Imm(value.ty, bits));
        }
        value
            .home
            .or_else(|| self.holder(number))
            .or_else(|| self.copies.get(&number).copied())
            .map(Operand::Reg)
    }

    fn of_register(&mut self, reg: Reg) -> Number {
        let index = reg.0 as usize;
        if let Some(var) = self.var_index[index] {
            return self.now[var];
        }
        match self.of_reg[index] {
            Some(number) => number,
            None => {
                // Never written: whatever it has, it stays.
                let number = self.opaque(self.regs[index], None);
                self.values[number as usize].home = Some(reg);
                self.of_reg[index] = Some(number);
                number
            }
        }
    }

    fn value(&mut self, operand: &Operand) -> Option<Number> {
        match *operand {
            Operand::Reg(reg) => Some(self.of_register(reg)),
            Operand::Imm(ty, bits) => Some(self.constant(ty, bits)),
            _ => None,
        }
    }

    fn arg(&mut self, operand: &Operand) -> Arg {
        match *operand {
            Operand::Reg(reg) => Arg::Value(self.of_register(reg)),
            Operand::Imm(ty, bits) => Arg::Value(self.constant(ty, bits)),
            Operand::Special(name) => Arg::Special(name),
            Operand::Address(base) => Arg::Address(base),
            Operand::Mem(mem) => {
                let base = match mem.base {
                    Base::Reg(reg) => MemBase::Value(self.of_register(reg)),
                    other => MemBase::Fixed(other),
                };
                let index = mem.index.map(|reg| self.of_register(reg));
                self.place(Arg::Mem { space: mem.space, base, index, offset: mem.offset })
            }
        }
    }

    /// Returns the operands of an instruction for the values it reads, or `None` if no register
    /// holds one of them.
    fn operands(&mut self, args: &[Arg]) -> Option<Vec<Operand>> {
        let reg_of = |pass: &mut Self, number: Number| match pass.operand(number)? {
            Operand::Reg(reg) => Some(reg),
            // An address or an index is in a register.
            imm => {
                let ty = pass.ty(number);
                let reg = pass.new_reg(ty);
                pass.out.push(Stmt::Inst(Inst {
                    op: "mov".into(),
                    suffix: ty.bit_suffix(),
                    dst: Some(reg),
                    args: vec![imm],
                    effect: Effect::None,
                }));
                Some(reg)
            }
        };
        let mut operands = Vec::with_capacity(args.len());
        for arg in args {
            operands.push(match *arg {
                Arg::Value(number) => self.operand(number)?,
                Arg::Special(name) => Operand::Special(name),
                Arg::Address(base) => Operand::Address(base),
                Arg::Mem { space, base, index, offset } => {
                    let base = match base {
                        MemBase::Value(number) => Base::Reg(reg_of(self, number)?),
                        MemBase::Fixed(base) => base,
                    };
                    let index = match index {
                        Some(number) => Some(reg_of(self, number)?),
                        None => None,
                    };
                    Operand::Mem(Mem { space, base, index, offset })
                }
            });
        }
        Some(operands)
    }

    /// Returns the value of an instruction without effect: one that is known, or a new one,
    /// computed here.
    pub(super) fn make(
        &mut self,
        op: Cow<'static, str>,
        suffix: &'static str,
        ty: Ty,
        args: Vec<Arg>,
        dst: Option<Reg>,
    ) -> Option<Number> {
        let constants: Option<Vec<u64>> = args
            .iter()
            .map(|arg| match arg {
                Arg::Value(number) => self.constant_of(*number),
                _ => None,
            })
            .collect();
        if let Some(constants) = constants
            && let Some(bits) = fold::fold(&op, suffix, ty, &constants)
        {
            return Some(self.constant(ty, bits));
        }
        if let Some(number) = self.simplify(&op, suffix, ty, &args) {
            return Some(number);
        }
        let expr = Expr { op, suffix, args };
        if let Some(&number) = self.known.get(&expr)
            && self.is_usable(number)
        {
            return Some(number);
        }
        let operands = self.operands(&expr.args)?;
        let reg = dst.unwrap_or_else(|| self.new_reg(ty));
        self.out.push(Stmt::Inst(Inst {
            op: expr.op.clone(),
            suffix,
            dst: Some(reg),
            args: operands,
            effect: Effect::None,
        }));
        let number = self.opaque(ty, None);
        self.give_home(number, reg);
        self.of_reg[reg.0 as usize] = Some(number);
        self.values[number as usize].expr = Some(Rc::new(expr.clone()));
        self.known.insert(expr.clone(), number);
        self.undo.push(Undo::Known(expr));
        Some(number)
    }

    fn give_home(&mut self, number: Number, reg: Reg) {
        self.values[number as usize].home = Some(reg);
        self.undo.push(Undo::Home(number));
    }

    // What is known.

    fn undo_to(&mut self, mark: usize) {
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some(Undo::Known(expr)) => {
                    self.known.remove(&expr);
                }
                Some(Undo::Home(number)) => self.values[number as usize].home = None,
                Some(Undo::Copy(number)) => {
                    self.copies.remove(&number);
                }
                Some(Undo::Order(key, before)) => match before {
                    Some(before) => {
                        self.orders.insert(key, before);
                    }
                    None => {
                        self.orders.remove(&key);
                    }
                },
                Some(Undo::Refined(number, before)) => match before {
                    Some(before) => {
                        self.refined.insert(number, before);
                    }
                    None => {
                        self.refined.remove(&number);
                    }
                },
                Some(Undo::Truth(number, before)) => match before {
                    Some(before) => {
                        self.truths.insert(number, before);
                    }
                    None => {
                        self.truths.remove(&number);
                    }
                },
                None => return,
            }
        }
    }

    pub(super) fn truth(&self, number: Number) -> Option<bool> {
        self.constant_of(number).map(|bits| bits != 0).or_else(|| self.truths.get(&number).copied())
    }

    pub(super) fn order(&self, key: (&'static str, Number, Number)) -> Option<bool> {
        self.orders.get(&key).copied()
    }

    pub(super) fn refined(&self, number: Number) -> Option<Range> {
        self.refined.get(&number).copied()
    }

    pub(super) fn set_order(&mut self, key: (&'static str, Number, Number), holds: bool) {
        let before = self.orders.insert(key, holds);
        self.undo.push(Undo::Order(key, before));
    }

    /// Returns the value of a special register, where it was read.
    pub(super) fn known_special(&self, name: &'static str) -> Option<Number> {
        let expr = Expr { op: "mov".into(), suffix: "u32", args: vec![Arg::Special(name)] };
        self.known.get(&expr).copied()
    }

    /// Notes that a condition is the same as a comparison of wider numbers.
    pub(super) fn note_same(
        &mut self,
        condition: Number,
        op: &'static str,
        suffix: &'static str,
        args: (Number, Number),
    ) {
        if self.constant_of(condition).is_none() {
            self.wider.insert(condition, (op, suffix, args));
        }
    }

    pub(super) fn same_as(&self, condition: Number) -> Option<Comparison> {
        self.wider.get(&condition).copied()
    }

    pub(super) fn set_truth(&mut self, number: Number, holds: bool) {
        let before = self.truths.insert(number, holds);
        self.undo.push(Undo::Truth(number, before));
    }

    /// Notes that a value is in a range.
    pub(super) fn refine(&mut self, number: Number, range: Range) {
        if self.constant_of(number).is_some() {
            return;
        }
        let before = self.refined.get(&number).copied();
        let range = before.map_or(range, |before| before.and(range));
        if before != Some(range) {
            self.refined.insert(number, range);
            self.undo.push(Undo::Refined(number, before));
        }
    }
}
