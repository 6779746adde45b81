//! Computes each value once.
//!
//! The pass goes through the kernel in order and knows for each register which value it has. Two
//! registers with the same value share it. A variable is followed from write to write: where two
//! ways meet with different values, it has a new one. What is known of values (constants, ranges,
//! comparisons that were branched on or checked) holds in the statements that the test leads to.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

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

/// What is undone at the end of a list of statements.
enum Undo {
    Known(Expr),
    Home(Number),
    Copy(Number),
    Order((&'static str, Number, Number), Option<bool>),
    Refined(Number, Option<Range>),
    Truth(Number, Option<bool>),
}

/// The variables where several ways meet.
struct Join {
    values: Vec<Number>,
    differs: Vec<bool>,
    /// The ranges of integers, as the types of the variables have them. The types of their values
    /// can differ in their signs.
    ranges: Vec<Option<Range>>,
}

pub(super) struct Pass<'a> {
    regs: &'a mut Vec<Ty>,
    labels: u32,
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

/// Trials of loops inside of loops are repeated for each loop around: so many are nested at most.
const MOST_TRIALS: usize = 3;

/// Returns whether threads have to come to an instruction together.
pub(super) fn is_convergent(op: &str) -> bool {
    ["shfl", "vote", "match", "redux", "bar", "activemask"].iter().any(|name| op.starts_with(name))
}

pub(super) fn run(program: &mut Program) {
    let is_variable = variables(program);
    let body = std::mem::take(&mut program.body);
    let labels = most_label(&body) + 1;
    let mut pass = Pass::new(&mut program.regs, labels, &is_variable);
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
fn variables(program: &Program) -> Vec<bool> {
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
            regs,
            labels,
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

    /// The number that a register has now, if that is known.
    pub(super) fn known_now(&mut self, reg: Reg) -> Option<u64> {
        let number = self.of_register(reg);
        self.constant_of(number)
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

    /// The number with these bits.
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

    /// The variable that has a value now.
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

    /// Operands of an instruction from what it reads; `None` where a value is nowhere to be read.
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

    /// The value of an instruction without effect: one that is known, or a new one, computed here.
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

    /// The value of a special register, where it was read.
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

    // Variables.

    fn write_var(&mut self, reg: Reg, number: Number) {
        let Some(index) = self.var_index[reg.0 as usize] else { return };
        if self.now[index] == number {
            return;
        }
        let Some(operand) = self.operand(number) else { return };
        let ty = self.regs[reg.0 as usize];
        self.push_mov(reg, ty, operand);
        self.now[index] = number;
        let holders = self.holders.entry(number).or_default();
        if !holders.contains(&reg) {
            holders.push(reg);
        }
        if let Some(&half) = self.halves.get(&reg) {
            match self.low_half(number).filter(|&low| self.is_usable(low)) {
                Some(low) => self.write_var(half, low),
                // The half is always that of the variable.
                None => self.write_half(half, reg),
            }
        }
    }

    /// Writes the low half of a variable from the variable itself.
    fn write_half(&mut self, half: Reg, reg: Reg) {
        self.out.push(Stmt::Inst(Inst {
            op: "cvt".into(),
            suffix: "u32.u64",
            dst: Some(half),
            args: vec![Operand::Reg(reg)],
            effect: Effect::None,
        }));
        if let Some(index) = self.var_index[half.0 as usize] {
            self.now[index] = self.fresh(half, None);
        }
    }

    /// The range of a variable now, as its type has it.
    fn range_now(&self, index: usize) -> Range {
        self.range_in(self.now[index], self.regs[self.vars[index].0 as usize])
    }

    fn push_mov(&mut self, dst: Reg, ty: Ty, value: Operand) {
        self.out.push(Stmt::Inst(Inst {
            op: "mov".into(),
            suffix: ty.bit_suffix(),
            dst: Some(dst),
            args: vec![value],
            effect: Effect::None,
        }));
    }

    /// Adds the variables as they are now to those that come to a place.
    fn join(&mut self, into: Option<Join>) -> Join {
        let ranges: Vec<Option<Range>> = self
            .now
            .iter()
            .zip(&self.vars)
            .map(|(&number, reg)| {
                let ty = self.regs[reg.0 as usize];
                ty.is_integer().then(|| self.range_in(number, ty))
            })
            .collect();
        match into {
            None => Join { values: self.now.clone(), differs: vec![false; self.now.len()], ranges },
            Some(mut join) => {
                for (index, range) in ranges.into_iter().enumerate().take(join.values.len()) {
                    join.differs[index] |= join.values[index] != self.now[index];
                    join.ranges[index] = match (join.ranges[index], range) {
                        (Some(a), Some(b)) => Some(a.or(b)),
                        _ => None,
                    };
                }
                join
            }
        }
    }

    /// Goes on where several ways have met.
    fn meet(&mut self, join: Join) {
        self.forget_new(join.values.len());
        for index in 0..join.values.len() {
            let reg = self.vars[index];
            if join.differs[index] {
                self.now[index] = self.fresh(reg, join.ranges[index]);
            } else {
                self.now[index] = join.values[index];
                if let Some(range) = join.ranges[index] {
                    self.limit_in(join.values[index], range, self.regs[reg.0 as usize]);
                }
            }
        }
    }

    /// Forgets the values of variables that were added after the first so many.
    fn forget_new(&mut self, count: usize) {
        for index in count..self.now.len() {
            self.now[index] = self.fresh(self.vars[index], None);
        }
    }

    /// A new value that a variable has.
    fn fresh(&mut self, reg: Reg, range: Option<Range>) -> Number {
        let number = self.opaque(self.regs[reg.0 as usize], range);
        self.holders.entry(number).or_default().push(reg);
        number
    }

    // Statements.

    /// Goes through a list. Returns it, and whether its end is reached.
    fn in_list(&mut self, list: Vec<Stmt>) -> (Vec<Stmt>, bool) {
        let outer = std::mem::take(&mut self.out);
        let mark = self.undo.len();
        let reached = self.list(list);
        self.undo_to(mark);
        (std::mem::replace(&mut self.out, outer), reached)
    }

    fn list(&mut self, list: Vec<Stmt>) -> bool {
        list.into_iter().all(|stmt| self.stmt(stmt))
    }

    /// Goes through a statement. Returns whether what follows is reached.
    fn stmt(&mut self, stmt: Stmt) -> bool {
        match stmt {
            Stmt::Inst(inst) => {
                self.inst(inst);
                true
            }
            Stmt::Check { cond, fails_when, site } => {
                let Some(number) = self.value(&cond) else { return true };
                match self.truth(number) {
                    Some(truth) if truth == fails_when => {
                        self.out.push(Stmt::Fail(site));
                        false
                    }
                    Some(_) => true,
                    None => {
                        let cond = self.operand(number).unwrap_or(cond);
                        self.out.push(Stmt::Check { cond, fails_when, site });
                        self.assume(number, !fails_when);
                        true
                    }
                }
            }
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise),
            Stmt::Block { label, body } => {
                let (body, reached) = self.in_list(body);
                let mut join = self.left.remove(&label);
                if reached {
                    join = Some(self.join(join));
                }
                self.out.push(Stmt::Block { label, body });
                match join {
                    Some(join) => {
                        self.meet(join);
                        true
                    }
                    None => false,
                }
            }
            Stmt::Loop { label, body, step } => self.repeat(label, body, step),
            Stmt::Break { label, when: None } => {
                let join = self.left.remove(&label);
                let join = self.join(join);
                self.left.insert(label, join);
                self.out.push(Stmt::Break { label, when: None });
                false
            }
            Stmt::Break { label, when: Some((cond, when)) } => {
                let Some(number) = self.value(&cond) else { return true };
                match self.truth(number) {
                    Some(truth) if truth == when => self.stmt(Stmt::Break { label, when: None }),
                    Some(_) => true,
                    None => {
                        let cond = self.operand(number).unwrap_or(cond);
                        let mark = self.undo.len();
                        self.assume(number, when);
                        let join = self.left.remove(&label);
                        let join = self.join(join);
                        self.left.insert(label, join);
                        self.undo_to(mark);
                        self.out.push(Stmt::Break { label, when: Some((cond, when)) });
                        self.assume(number, !when);
                        true
                    }
                }
            }
            Stmt::Continue(label) => {
                let join = self.continued.remove(&label);
                let join = self.join(join);
                self.continued.insert(label, join);
                self.out.push(Stmt::Continue(label));
                false
            }
            Stmt::Exit | Stmt::Fail(_) => {
                self.out.push(stmt);
                false
            }
            Stmt::SetCondition { handle, value } => {
                let handle = self.replaced(&handle);
                let value = self.replaced(&value);
                self.out.push(Stmt::SetCondition { handle, value });
                true
            }
            Stmt::SameForAll { .. } | Stmt::Reached { .. } | Stmt::Barrier | Stmt::Print { .. } => {
                self.out.push(stmt);
                true
            }
        }
    }

    fn replaced(&mut self, operand: &Operand) -> Operand {
        let number = self.value(operand);
        number.and_then(|number| self.operand(number)).unwrap_or(*operand)
    }

    fn inst(&mut self, inst: Inst) {
        let args: Vec<Arg> = inst.args.iter().map(|arg| self.arg(arg)).collect();
        let Some(dst) = inst.dst else {
            let operands = self.operands(&args).unwrap_or(inst.args.clone());
            self.out.push(Stmt::Inst(Inst { args: operands, ..inst }));
            return;
        };
        let ty = self.regs[dst.0 as usize];
        let is_var = self.var_index[dst.0 as usize].is_some();
        let is_pure = inst.effect == Effect::None && !is_convergent(&inst.op);
        if is_pure {
            let home = if is_var { None } else { Some(dst) };
            let number = match (&*inst.op, &args[..]) {
                ("mov", [Arg::Value(number)]) if self.ty(*number).class() == ty.class() => Some(*number),
                _ => self.make(inst.op.clone(), inst.suffix, ty, args.clone(), home),
            };
            if let Some(number) = number
                && self.is_usable(number)
            {
                return if is_var { self.write_var(dst, number) } else { self.alias(dst, ty, number) };
            }
        }
        // Computed as it is.
        let operands = self.operands(&args).unwrap_or(inst.args.clone());
        let range = loaded(&inst, ty);
        let number = self.opaque(ty, range);
        if is_var {
            let value = self.new_reg(ty);
            self.out.push(Stmt::Inst(Inst { args: operands, dst: Some(value), ..inst }));
            self.give_home(number, value);
            self.of_reg[value.0 as usize] = Some(number);
            self.write_var(dst, number);
        } else {
            self.out.push(Stmt::Inst(Inst { args: operands, ..inst }));
            self.give_home(number, dst);
            self.of_reg[dst.0 as usize] = Some(number);
        }
    }

    /// Notes that a register has a value that is known.
    fn alias(&mut self, dst: Reg, ty: Ty, number: Number) {
        self.of_reg[dst.0 as usize] = Some(number);
        let value = &self.values[number as usize];
        if value.constant.is_none() && value.home.is_none() && !self.copies.contains_key(&number) {
            // A variable has it, and may be written before this register is read.
            if let Some(holder) = self.holder(number) {
                self.push_mov(dst, ty, Operand::Reg(holder));
                self.copies.insert(number, dst);
                self.undo.push(Undo::Copy(number));
            }
        }
    }

    fn branch(&mut self, cond: Operand, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> bool {
        let Some(number) = self.value(&cond) else { return true };
        if let Some(truth) = self.truth(number) {
            return self.list(if truth { then } else { otherwise });
        }
        let cond = self.operand(number).unwrap_or(cond);
        let before = self.now.clone();
        let mut join = None;
        let mut lists = Vec::new();
        let mut ends = Vec::new();
        for (side, truth) in [(then, true), (otherwise, false)] {
            self.now[..before.len()].copy_from_slice(&before);
            self.forget_new(before.len());
            let outer = std::mem::take(&mut self.out);
            let mark = self.undo.len();
            self.assume(number, truth);
            let reached = self.list(side);
            if reached {
                join = Some(self.join(join));
            }
            self.undo_to(mark);
            lists.push(std::mem::replace(&mut self.out, outer));
            ends.push(reached);
        }
        let otherwise = lists.pop().unwrap_or_default();
        let then = lists.pop().unwrap_or_default();
        self.out.push(Stmt::If { cond, then, otherwise });
        let Some(join) = join else { return false };
        self.meet(join);
        match ends[..] {
            [true, false] => self.assume(number, true),
            [false, true] => self.assume(number, false),
            _ => {}
        }
        true
    }

    fn repeat(&mut self, label: Label, body: Vec<Stmt>, step: Vec<Stmt>) -> bool {
        if !self.is_trial
            && let Some(unrolled) = self.unrolled(label, &body, &step)
        {
            return self.stmt(unrolled);
        }
        let mut written = HashSet::new();
        written_in(&body, &mut written);
        written_in(&step, &mut written);
        let written: Vec<usize> =
            (0..self.vars.len()).filter(|&index| written.contains(&self.vars[index])).collect();
        let start: Vec<Range> = written.iter().map(|&index| self.range_now(index)).collect();
        let back = (self.loops < MOST_TRIALS).then(|| self.trial(label, &body, &step, &written));
        let ranges: Vec<Option<Range>> = match back {
            Some(Some(back)) => start.iter().zip(&back).map(|(start, back)| Some(start.or(*back))).collect(),
            // It is not repeated.
            Some(None) => start.iter().copied().map(Some).collect(),
            None => vec![None; written.len()],
        };
        let is_integer = |pass: &Self, index: usize| pass.regs[pass.vars[index].0 as usize].is_integer();
        let mut halves = Vec::new();
        for (&index, range) in written.iter().zip(&ranges) {
            let reg = self.vars[index];
            let range = range.filter(|_| is_integer(self, index));
            let fits = range.is_some_and(|range| range.is_in(Range::of_bits(32, false)));
            if self.regs[reg.0 as usize] == Ty::U64
                && fits
                && !self.halves.contains_key(&reg)
                && let Some(low) = self.low_half(self.now[index])
                && self.is_usable(low)
            {
                let half = self.new_reg(Ty::U32);
                self.add_var(half);
                self.write_var(half, low);
                self.halves.insert(reg, half);
                halves.push(reg);
            }
        }
        self.at_head(&written, &ranges);
        self.loops += 1;
        let (body, step) = self.once(label, body, step).0;
        self.loops -= 1;
        for reg in halves {
            self.halves.remove(&reg);
        }
        self.out.push(Stmt::Loop { label, body, step });
        match self.left.remove(&label) {
            Some(join) => {
                self.meet(join);
                true
            }
            None => false,
        }
    }

    /// The variables at the start of a pass of a loop.
    fn at_head(&mut self, written: &[usize], ranges: &[Option<Range>]) {
        for (&index, range) in written.iter().zip(ranges) {
            let reg = self.vars[index];
            let is_integer = self.regs[reg.0 as usize].is_integer();
            let number = self.fresh(reg, range.filter(|_| is_integer));
            self.now[index] = number;
            let fits = range.is_some_and(|range| range.is_in(Range::of_bits(32, false)));
            if let Some(&half) = self.halves.get(&reg) {
                let low = self.fresh(half, range.filter(|_| fits));
                if let Some(half_index) = self.var_index[half.0 as usize] {
                    self.now[half_index] = low;
                }
                if fits {
                    let expr = Expr { op: "cvt".into(), suffix: "u64.u32", args: vec![Arg::Value(low)] };
                    self.values[number as usize].expr = Some(Rc::new(expr));
                }
            }
        }
    }

    /// Goes through a pass of a loop. Returns its statements, and whether there is a next pass;
    /// then the variables are those at its end.
    fn once(&mut self, label: Label, body: Vec<Stmt>, step: Vec<Stmt>) -> ((Vec<Stmt>, Vec<Stmt>), bool) {
        let outer = std::mem::take(&mut self.out);
        let mark = self.undo.len();
        let reached = self.list(body);
        let mut join = self.continued.remove(&label);
        if reached {
            join = Some(self.join(join));
        }
        self.undo_to(mark);
        let body = std::mem::take(&mut self.out);
        let again = match join {
            Some(join) => {
                self.meet(join);
                self.list(step)
            }
            None => false,
        };
        // The ranges at the end are read before what is known of them is undone.
        let ends =
            if again { Some((0..self.now.len()).map(|index| self.range_now(index)).collect()) } else { None };
        self.ends = ends;
        self.undo_to(mark);
        ((body, std::mem::replace(&mut self.out, outer)), again)
    }

    /// Goes through a pass of a loop without keeping it. Returns the ranges of variables at its
    /// end, if there is a next pass.
    fn trial(&mut self, label: Label, body: &[Stmt], step: &[Stmt], written: &[usize]) -> Option<Vec<Range>> {
        let was_trial = std::mem::replace(&mut self.is_trial, true);
        let now = self.now.clone();
        let of_reg = self.of_reg.clone();
        let joins = (std::mem::take(&mut self.left), std::mem::take(&mut self.continued));
        let halves = std::mem::take(&mut self.halves);
        let mark = self.undo.len();
        self.at_head(written, &vec![None; written.len()]);
        self.loops += 1;
        let (_, again) = self.once(label, body.to_vec(), step.to_vec());
        self.loops -= 1;
        let ends = self.ends.take();
        self.undo_to(mark);
        (self.left, self.continued) = joins;
        self.halves = halves;
        self.now[..now.len()].copy_from_slice(&now);
        self.forget_new(now.len());
        self.of_reg[..of_reg.len()].copy_from_slice(&of_reg);
        self.is_trial = was_trial;
        let ends = ends.filter(|_| again)?;
        Some(written.iter().map(|&index| ends[index]).collect())
    }
}

/// The range of what an instruction loads.
fn loaded(inst: &Inst, ty: Ty) -> Option<Range> {
    if !inst.op.starts_with("ld") || !ty.is_integer() {
        return None;
    }
    match inst.suffix {
        "u8" => Some(Range::of_bits(8, false)),
        "u16" => Some(Range::of_bits(16, false)),
        "s8" => Some(Range::of_bits(8, true)),
        "s16" => Some(Range::of_bits(16, true)),
        _ => None,
    }
}

/// The registers that statements write.
fn written_in(list: &[Stmt], into: &mut HashSet<Reg>) {
    for stmt in list {
        if let Stmt::Inst(Inst { dst: Some(dst), .. }) = stmt {
            into.insert(*dst);
        }
        stmt.inner().into_iter().for_each(|inner| written_in(inner, into));
    }
}
