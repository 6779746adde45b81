//! The memory that the threads of a kernel access.
//!
//! Addresses are followed through the registers of a kernel, for launches along x. An address is
//! exact if it is a pointer parameter plus a multiple of the thread's index in the grid. Other
//! addresses are known by the pointer that they start from, or not at all.

use gridloom_ptx::op::Instruction;
use gridloom_ptx::op::{AtomicOp, BitsOp, ConvertOp, IntArith, IntOp, MemoryOp, MulMode, Op, OperandRef};

use gridloom_ptx::{
    Address, AddressBase, Dim, DimSpecial, Imm, Operand, RegId, ScalarType, Space, SpecialReg, VarRef,
};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;

use super::flow::Flow;
use super::source::KernelSource;

/// The instructions that are looked at before a kernel counts as too complicated.
const MAX_WORK: usize = 100_000;
/// The most accesses of a kernel that are compared.
const MAX_ACCESSES: usize = 256;

/// What the threads of a kernel read and write in global memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses(Vec<Access>);

/// One access of every thread that reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Access {
    /// The offset of the pointer that the address starts from, in the parameters. `None` for any
    /// address.
    pointer: Option<u64>,
    /// Where each thread accesses, if that is known.
    place: Option<PerThread>,
    bytes: i64,
    writes: bool,
}

/// The distance from a pointer: `start + stride · index`, for the index of the thread in the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PerThread {
    start: i64,
    stride: i64,
}

/// The memory behind a pointer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointee {
    /// The address that is passed.
    pub address: u64,
    /// The start of the allocation that the address is in.
    pub start: u64,
    /// The end of the allocation.
    pub end: u64,
}

impl Accesses {
    /// Returns what a kernel accesses in a launch of `blocks` blocks of `threads` threads along x.
    /// `None` if that cannot be found out.
    #[must_use]
    pub fn of(source: &KernelSource, blocks: u32, threads: u32) -> Option<Self> {
        if source.has_calls() || blocks == 0 || threads == 0 {
            return None;
        }
        let body = source.body();
        let unset = vec![Value::Unset; body.registers.len()];
        let mut registers =
            Registers { source, blocks: blocks.into(), threads: threads.into(), values: unset.clone() };
        let flow = Flow::of(body);
        let is_start = starts(&flow);
        // The values at the start of every piece of straight code that was reached.
        let mut known: FxHashMap<usize, Vec<Value>> = FxHashMap::default();
        known.insert(0, unset);
        let (mut open, mut work) = (vec![0], 0);
        while let Some(start) = open.pop() {
            registers.values.clone_from(&known[&start]);
            let mut at = start;
            while let Some(instruction) = body.instructions.get(at) {
                work += 1;
                registers.run(instruction);
                let next = &flow.successors[at];
                if let [only] = next[..]
                    && only == at + 1
                    && !is_start[only]
                {
                    at = only;
                    continue;
                }
                for &to in next {
                    match known.entry(to) {
                        Entry::Vacant(new) => {
                            new.insert(registers.values.clone());
                            open.push(to);
                        }
                        Entry::Occupied(mut there) => {
                            let there = there.get_mut();
                            let joined: Vec<Value> = there
                                .iter()
                                .zip(&registers.values)
                                .map(|(one, other)| one.join(*other))
                                .collect();
                            if joined != *there {
                                *there = joined;
                                open.push(to);
                            }
                        }
                    }
                }
                break;
            }
            if work > MAX_WORK {
                return None;
            }
        }
        let mut found = Accesses::default();
        for (&start, values) in &known {
            registers.values.clone_from(values);
            let mut at = start;
            while let Some(instruction) = body.instructions.get(at) {
                registers.add_accesses(&instruction.op, &mut found)?;
                registers.run(instruction);
                at += 1;
                if is_start[at] {
                    break;
                }
            }
        }
        (found.0.len() <= MAX_ACCESSES).then_some(found)
    }

    /// Returns whether a kernel with these accesses can be followed by one with those of `later` in
    /// the same threads, without any other order: whatever a thread of one writes and another
    /// accesses, the same thread accesses in both.
    pub fn allow(
        &self,
        later: &Self,
        own: &dyn Fn(u64) -> Option<Pointee>,
        of_later: &dyn Fn(u64) -> Option<Pointee>,
    ) -> bool {
        self.0.iter().all(|one| {
            let mine = one.pointer.and_then(own);
            later.0.iter().filter(|other| one.writes || other.writes).all(|other| {
                match (mine, other.pointer.and_then(of_later)) {
                    (Some(mine), Some(theirs)) => {
                        let apart = mine.end <= theirs.start || theirs.end <= mine.start;
                        apart || same_thread(one, mine.address, other, theirs.address)
                    }
                    _ => false,
                }
            })
        })
    }
}

/// Returns whether two accesses to one allocation meet only within a thread.
fn same_thread(one: &Access, at: u64, other: &Access, other_at: u64) -> bool {
    let (Some(place), Some(other_place)) = (one.place, other.place) else { return false };
    let stride = i128::from(place.stride);
    if stride <= 0 || place.stride != other_place.stride {
        return false;
    }
    let distance =
        i128::from(other_at) - i128::from(at) + i128::from(other_place.start) - i128::from(place.start);
    // Thread `i` of one is at `stride · i`, thread `j` of the other at `stride · j + distance`.
    // They meet if `distance - stride · (i - j)` is above `-bytes` of the other and below those of
    // the one. The nearest threads decide.
    distance + stride >= i128::from(one.bytes) && distance - stride <= -i128::from(other.bytes)
}

/// What is known about the value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// No definition was seen yet.
    Unset,
    Exact(Form),
    /// The pointer at this offset of the parameters, plus some number.
    From(u64),
    /// Some number that is no pointer.
    Number,
    Anything,
}

/// `pointer + constant + thread · %tid.x + block · %ctaid.x`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Form {
    pointer: Option<u64>,
    constant: i64,
    thread: i64,
    block: i64,
}

impl Value {
    fn constant(constant: i64) -> Self {
        Value::Exact(Form { constant, ..Form::default() })
    }

    /// Returns the pointer that it starts from, if it starts from one.
    fn pointer(self) -> Option<u64> {
        match self {
            Value::Exact(form) => form.pointer,
            Value::From(pointer) => Some(pointer),
            _ => None,
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Value::Number | Value::Exact(Form { pointer: None, .. }))
    }

    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Value::Unset, value) | (value, Value::Unset) => value,
            (one, other) if one == other => one,
            (one, other) if one.is_number() && other.is_number() => Value::Number,
            (one, other) if one.pointer().is_some() && one.pointer() == other.pointer() => {
                one.pointer().map_or(Value::Anything, Value::From)
            }
            _ => Value::Anything,
        }
    }
}

struct Registers<'a> {
    source: &'a KernelSource,
    blocks: i64,
    threads: i64,
    values: Vec<Value>,
}

impl Registers<'_> {
    /// Executes an instruction.
    fn run(&mut self, instruction: &Instruction) {
        let op = &instruction.op;
        let exact = self.exact(op);
        let mut defined: SmallVec<[RegId; 4]> = SmallVec::new();
        let mut others = Value::Number;
        op.for_each_operand(&mut |operand, _| {
            let value = match operand {
                OperandRef::Def(reg) => return defined.push(reg),
                OperandRef::Use(reg) => self.values[reg.index()],
                OperandRef::Src(operand) => self.operand(operand),
                OperandRef::Pred(_) | OperandRef::Addr(_) => return,
            };
            if !value.is_number() {
                others = Value::Anything;
            }
        });
        for reg in defined {
            let value = match (exact, op) {
                (Some(value), _) => value,
                // What is read from memory may be a pointer if it is large enough.
                (None, Op::Memory(_) | Op::Atomic(_)) => {
                    let is_small = self.source.body().registers.ty(reg).size() < 8;
                    if is_small { Value::Number } else { Value::Anything }
                }
                (None, _) => others,
            };
            let there = &mut self.values[reg.index()];
            *there = if instruction.guard.is_some() { there.join(value) } else { value };
        }
    }

    fn operand(&self, operand: &Operand) -> Value {
        match operand {
            Operand::Reg(reg) => self.values[reg.index()],
            Operand::Imm(Imm::Int(number)) => Value::constant(*number),
            Operand::Imm(_) => Value::Number,
            Operand::Special(SpecialReg::Dim(special, dim)) => match (special, dim) {
                (DimSpecial::Tid, Dim::X) => Value::Exact(Form { thread: 1, ..Form::default() }),
                (DimSpecial::CtaId, Dim::X) => Value::Exact(Form { block: 1, ..Form::default() }),
                (DimSpecial::NTid, Dim::X) => Value::constant(self.threads),
                (DimSpecial::NCtaId, Dim::X) => Value::constant(self.blocks),
                (DimSpecial::Tid | DimSpecial::CtaId, _) => Value::constant(0),
                (DimSpecial::NTid | DimSpecial::NCtaId, _) => Value::constant(1),
                _ => Value::Number,
            },
            Operand::Special(_) => Value::Number,
            Operand::Address { .. } => Value::Anything,
        }
    }

    /// Returns the result of an instruction that keeps pointers or exact numbers, or `None` for any
    /// other instruction.
    fn exact(&self, op: &Op) -> Option<Value> {
        match op {
            Op::Memory(MemoryOp::Ld { ty, dsts, access }) if access.space == Space::Param => {
                let AddressBase::Var(VarRef::Param(id)) = access.addr.base else { return None };
                let at = self.source.function().params[id.index()].offset as i64 + access.addr.offset;
                match (ty.size(), dsts.len()) {
                    (8, 1) => {
                        Some(Value::Exact(Form { pointer: Some(u64::try_from(at).ok()?), ..Form::default() }))
                    }
                    (8, _) => Some(Value::Anything),
                    _ => Some(Value::Number),
                }
            }
            Op::Convert(ConvertOp::Mov { ty, src, .. }) => match self.operand(src) {
                value @ Value::Exact(_) => self.within(*ty, value),
                value => Some(value),
            },
            Op::Convert(ConvertOp::Cvta { src, .. }) => Some(self.operand(src)),
            Op::Convert(ConvertOp::Cvt(cvt)) if is_integer(cvt.src_ty) && is_integer(cvt.dst_ty) => {
                let [source] = &cvt.srcs[..] else { return None };
                let value = self.operand(source);
                let Value::Exact(Form { pointer: None, .. }) = value else { return None };
                self.within(cvt.src_ty, value).and_then(|value| self.within(cvt.dst_ty, value))
            }
            Op::Int(IntOp::Arith { op: IntArith::Add, ty, sat: false, a, b, .. }) => {
                Some(self.sum(*ty, self.operand(a), self.operand(b)))
            }
            Op::Int(IntOp::Arith { op: IntArith::Sub, ty, sat: false, a, b, .. }) => {
                let negative = scaled(self.operand(b), -1)?;
                Some(self.sum(*ty, self.operand(a), negative))
            }
            Op::Int(IntOp::Arith { op: IntArith::MulLo, ty, a, b, .. }) => {
                self.within(*ty, product(self.operand(a), self.operand(b))?)
            }
            Op::Int(IntOp::MulWide { ty, a, b, .. }) => {
                let (a, b) = (self.within(*ty, self.operand(a))?, self.within(*ty, self.operand(b))?);
                self.within(ScalarType::U64, product(a, b)?)
            }
            Op::Int(IntOp::Mad { mode, ty, sat: false, a, b, c, .. }) => {
                let (a, b) = (self.operand(a), self.operand(b));
                let (ty, product) = match mode {
                    MulMode::Lo => (*ty, product(a, b)?),
                    MulMode::Wide => (ScalarType::U64, product(self.within(*ty, a)?, self.within(*ty, b)?)?),
                    MulMode::Hi => return None,
                };
                Some(self.sum(ty, product, self.operand(c)))
            }
            Op::Bits(BitsOp::Shl { ty, a, b, .. }) => match self.operand(b) {
                Value::Exact(Form { pointer: None, constant: by @ 0..=31, thread: 0, block: 0 }) => {
                    self.within(*ty, scaled(self.operand(a), 1 << by)?)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn sum(&self, ty: ScalarType, one: Value, other: Value) -> Value {
        match (one, other) {
            (Value::Unset, _) | (_, Value::Unset) => Value::Anything,
            (Value::Exact(a), Value::Exact(b)) if a.pointer.is_none() || b.pointer.is_none() => {
                let add = || {
                    Some(Form {
                        pointer: a.pointer.or(b.pointer),
                        constant: a.constant.checked_add(b.constant)?,
                        thread: a.thread.checked_add(b.thread)?,
                        block: a.block.checked_add(b.block)?,
                    })
                };
                let pointer = a.pointer.or(b.pointer);
                let inexact = pointer.map_or(Value::Number, Value::From);
                add().and_then(|form| self.within(ty, Value::Exact(form))).unwrap_or(inexact)
            }
            (one, other) if one.is_number() && other.is_number() => Value::Number,
            (one, other) if other.is_number() => one.pointer().map_or(Value::Anything, Value::From),
            (one, other) if one.is_number() => other.pointer().map_or(Value::Anything, Value::From),
            _ => Value::Anything,
        }
    }

    /// Returns an exact value if it is the same in a type, signed or not: no thread's wraps around.
    fn within(&self, ty: ScalarType, value: Value) -> Option<Value> {
        let Value::Exact(form) = value else { return Some(value) };
        let bits = 8 * ty.size();
        if form.pointer.is_some() {
            return (bits == 64).then_some(value);
        }
        let extreme = |of: i64, count: i64| {
            let last = i128::from(of) * i128::from(count - 1);
            (last.min(0), last.max(0))
        };
        let ((low, high), (low_block, high_block)) =
            (extreme(form.thread, self.threads), extreme(form.block, self.blocks));
        let (low, high) =
            (i128::from(form.constant) + low + low_block, i128::from(form.constant) + high + high_block);
        let is_inside = match bits {
            64 => low > -(1 << 62) && high < 1 << 62,
            32 => low >= 0 && high < 1 << 31,
            _ => false,
        };
        is_inside.then_some(value)
    }

    /// Adds the accesses of an instruction to global memory. Returns `None` if it does something
    /// that is not known.
    fn add_accesses(&self, op: &Op, found: &mut Accesses) -> Option<()> {
        let mut add = |access: Access| {
            if !found.0.contains(&access) {
                found.0.push(access);
            }
        };
        match op {
            Op::Memory(MemoryOp::Ld { ty, dsts, access }) => {
                self.access(access.space, &access.addr, bytes(*ty, dsts.len()), false, &mut add)
            }
            Op::Memory(MemoryOp::Ldu { space, ty, dsts, addr }) => {
                self.access(*space, addr, bytes(*ty, dsts.len()), false, &mut add)
            }
            Op::Memory(MemoryOp::St { ty, srcs, access }) => {
                self.access(access.space, &access.addr, bytes(*ty, srcs.len()), true, &mut add)
            }
            Op::Memory(MemoryOp::Prefetch { .. } | MemoryOp::PrefetchUniform { .. }) => Some(()),
            Op::Atomic(AtomicOp::Atom { rmw, .. } | AtomicOp::Red { rmw }) => {
                self.access(rmw.space, &rmw.addr, bytes(rmw.ty, rmw.b.len()), true, &mut add)
            }
            Op::Memory(_) | Op::Unsupported(_) => None,
            Op::Int(_)
            | Op::Bits(_)
            | Op::Float(_)
            | Op::Compare(_)
            | Op::Convert(_)
            | Op::Control(_)
            | Op::Sync(_)
            | Op::Warp(_) => Some(()),
        }
    }

    fn access(
        &self,
        space: Space,
        address: &Address,
        bytes: i64,
        writes: bool,
        add: &mut dyn FnMut(Access),
    ) -> Option<()> {
        match space {
            Space::Global | Space::Generic => {}
            // Memory of the thread or block itself, or memory that no kernel writes.
            Space::Param
            | Space::ParamEntry
            | Space::ParamFunc
            | Space::Local
            | Space::Shared
            | Space::SharedCta
            | Space::Const => return Some(()),
            Space::SharedCluster => return None,
        }
        let value = match address.base {
            AddressBase::Reg(reg) => self.values[reg.index()],
            // The compiler's own tables, which are never written.
            AddressBase::Var(VarRef::Symbol(_)) if !writes => return Some(()),
            _ => Value::Anything,
        };
        let place = match value {
            Value::Exact(form) if form.block == form.thread * self.threads || self.blocks == 1 => {
                let start = form.constant.checked_add(address.offset)?;
                Some(PerThread { start, stride: form.thread })
            }
            _ => None,
        };
        add(Access { pointer: value.pointer(), place, bytes, writes });
        Some(())
    }
}

fn bytes(ty: ScalarType, count: usize) -> i64 {
    i64::from(ty.size()) * count as i64
}

/// Returns whether each instruction starts a piece of straight code: control may come from
/// elsewhere than the instruction before it.
fn starts(flow: &Flow) -> Vec<bool> {
    let mut is_start = vec![false; flow.successors.len()];
    is_start[0] = true;
    for (at, next) in flow.successors.iter().enumerate() {
        let falls_through = matches!(next[..], [only] if only == at + 1);
        if !falls_through {
            next.iter().for_each(|&to| is_start[to] = true);
            // What follows is reached in another way, or not at all.
            if let Some(after) = is_start.get_mut(at + 1) {
                *after = true;
            }
        }
    }
    is_start
}

fn is_integer(ty: ScalarType) -> bool {
    use ScalarType::{B32, B64, S32, S64, U32, U64};
    matches!(ty, B32 | B64 | S32 | S64 | U32 | U64)
}

/// Returns the product of a constant and an exact number.
fn product(one: Value, other: Value) -> Option<Value> {
    let constant = |value: Value| match value {
        Value::Exact(Form { pointer: None, constant, thread: 0, block: 0 }) => Some(constant),
        _ => None,
    };
    match (constant(one), constant(other)) {
        (Some(by), _) => scaled(other, by),
        (_, Some(by)) => scaled(one, by),
        _ => None,
    }
}

/// Returns a multiple of an exact number.
fn scaled(value: Value, by: i64) -> Option<Value> {
    let Value::Exact(Form { pointer: None, constant, thread, block }) = value else { return None };
    Some(Value::Exact(Form {
        pointer: None,
        constant: constant.checked_mul(by)?,
        thread: thread.checked_mul(by)?,
        block: block.checked_mul(by)?,
    }))
}
