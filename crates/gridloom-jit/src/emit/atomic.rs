//! Atomic operations.

use super::Emitter;
use super::address::Access;
use super::memory::shared_flags;
use super::value::{Val, scalar_type};
use crate::analysis::flow::Role;
use crate::native::Class;
use crate::runtime;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData, Value};
use gridloom_interp::Space;
use gridloom_interp::code::{Atomic, AtomicKind, Guard, Rmw};
use gridloom_ptx::ScalarType;
use gridloom_ptx::op::AtomOp;

/// Returns whether an atomic operation is compiled.
pub(crate) fn atomic_role(atomic: &Atomic) -> Role {
    match &atomic.kind {
        AtomicKind::Update { operands, .. } if operands.len() == 1 => Role::Compiled,
        _ => Role::Interpreted,
    }
}

impl Emitter<'_> {
    pub(crate) fn atomic(&mut self, atomic: &Atomic, guard: Option<Guard>) {
        let AtomicKind::Update { size, function, operands } = &atomic.kind else {
            return self.defect("a wide atomic operation");
        };
        let size = *size;
        let class = Self::element(size);
        let narrow = atomic.operand.narrow;
        let access = Access { space: atomic.operand.space, size, align: size, writes: true, narrow };
        let guard = self.access_guard(guard);
        let (address, offset) = self.address(&atomic.operand);
        let [b, c] = operands[0];
        let (b, c) = (self.get(b, class), self.get(c, class));
        let native = self.native_atomic();
        // All addresses are checked before the first operation, so that none happens twice.
        let destination = atomic.destinations.first().copied();
        let sure = guard.is_none()
            && access.space == Space::Shared
            && self.is_within_shared(access, &atomic.operand);
        // A short addition to shared memory is faster without a loop.
        let is_short = sure && destination.is_none() && matches!(native, Some(Atomically::Rmw(_)));
        let in_loop = !is_short && !matches!(guard, Some(Val::One(_))) && !self.do_few_go();
        if in_loop
            && let Some(places) =
                self.places_of_active(access, &atomic.operand, (&address, offset), guard.as_ref())
        {
            let update = |emitter: &mut Self, host: Value, [b, c]: [Value; 2]| {
                emitter.update(native, (access, function), class, host, [b, c])
            };
            let operands = [&b, &c];
            let wants = destination.is_some();
            let old = self.update_each_active(&places, operands, (class, guard.as_ref(), wants), update);
            if let Some(slot) = destination {
                self.define(slot, Val::Many(old), class, guard.as_ref());
            }
            return;
        }
        let places = if sure {
            Vec::new()
        } else {
            self.places(access, &atomic.operand, &address, offset, guard.as_ref())
        };
        let mut results = Vec::new();
        for lane in 0..self.lanes as usize {
            let (host, condition) = match places.get(lane) {
                Some(&operand) => operand,
                None => {
                    let base = self.lane_address(&atomic.operand, &address, lane);
                    let (host, at) =
                        self.host_address(access, &atomic.operand, base, offset, access.size, lane);
                    (self.sum_with(host, at.into()), None)
                }
            };
            let nothing = self.constant(0, class);
            let done = condition.map(|condition| self.when(condition, nothing, scalar_type(class)));
            let (b, c) = (self.lane(&b, class, lane), self.lane(&c, class, lane));
            let mut old = self.update(native, (access, function), class, host, [b, c]);
            if let Some(done) = done {
                old = self.rejoin(done, old);
            }
            results.push(old);
        }
        if let Some(slot) = destination {
            let value =
                if self.lanes == 1 { Val::One(results[0]) } else { Val::Many(self.gather(&results, class)) };
            self.define(slot, value, class, guard.as_ref());
        }
    }

    /// Emits an atomic operation of one thread. Returns the old value.
    fn update(
        &mut self,
        native: Option<Atomically>,
        (access, function): (Access, &Rmw),
        class: Class,
        host: Value,
        [b, c]: [Value; 2],
    ) -> Value {
        match native {
            Some(Atomically::AddFloats(float)) => self.add_floats(float, (access, function), class, host, b),
            // No other host thread accesses shared memory while this block runs.
            Some(how) if access.space == Space::Shared => self.update_alone(how, class, host, b, c),
            Some(how) => self.update_shared(how, class, host, b, c),
            None => self.call_update((access, function), class, host, [b, c]),
        }
    }

    /// Emits an atomic operation on memory that other host threads access. One that leaves the
    /// value as it is only loads it, which needs no exclusive access.
    fn update_shared(&mut self, how: Atomically, class: Class, host: Value, b: Value, c: Value) -> Value {
        let (ty, flags) = (scalar_type(class), MemFlagsData::trusted());
        let is_extreme = |op: AtomicRmwOp| {
            matches!(op, AtomicRmwOp::Smin | AtomicRmwOp::Umin | AtomicRmwOp::Smax | AtomicRmwOp::Umax)
        };
        match how {
            Atomically::Rmw(op) if !is_extreme(op) => {
                return self.b.ins().atomic_rmw(ty, flags, op, host, b);
            }
            _ => {}
        }
        // Any load of x86 is as ordered as an atomic operation that does not write.
        let old = if cfg!(target_arch = "x86_64") {
            self.b.ins().load(ty, shared_flags(), host, 0)
        } else {
            self.b.ins().atomic_load(ty, flags, host)
        };
        let changes = match how {
            Atomically::Rmw(op) => {
                let less = match op {
                    AtomicRmwOp::Smin => IntCC::SignedLessThan,
                    AtomicRmwOp::Smax => IntCC::SignedGreaterThan,
                    AtomicRmwOp::Umin => IntCC::UnsignedLessThan,
                    _ => IntCC::UnsignedGreaterThan,
                };
                self.b.ins().icmp(less, b, old)
            }
            _ => self.b.ins().icmp(IntCC::Equal, old, b),
        };
        let done = self.when(changes, old, ty);
        let old = match how {
            Atomically::Rmw(op) => self.b.ins().atomic_rmw(ty, flags, op, host, b),
            _ => self.b.ins().atomic_cas(flags, host, b, c),
        };
        self.rejoin(done, old)
    }

    /// Returns whether few threads are known to make the access being compiled.
    fn do_few_go(&self) -> bool {
        let lanes = self.lanes as usize;
        lanes <= 4 || (0..lanes).filter(|&lane| self.is_known_to_go(lane) != Some(false)).count() <= 4
    }

    /// Calls the interpreter's function for an atomic operation of one thread.
    fn call_update(
        &mut self,
        (access, function): (Access, &Rmw),
        class: Class,
        host: Value,
        [b, c]: [Value; 2],
    ) -> Value {
        let function = self.constant(std::ptr::from_ref(function) as u64, Class::B64);
        let (b, c) = (self.convert(b, class, Class::B64), self.convert(c, class, Class::B64));
        let size = self.b.ins().iconst(I32, i64::from(access.size));
        let old = self
            .call(runtime::update as *const () as usize, &[function, host, b, c, size], Some(I64))
            .unwrap_or(host);
        self.convert(old, Class::B64, class)
    }

    /// Emits an atomic addition of floats: it is tried until no other host thread has written in
    /// between. Returns the bits of the old value.
    fn add_floats(
        &mut self,
        float: Class,
        (access, function): (Access, &Rmw),
        class: Class,
        host: Value,
        b: Value,
    ) -> Value {
        let is_alone = access.space == Space::Shared;
        let ty = scalar_type(class);
        // Only shared memory keeps subnormal numbers.
        let ftz = !is_alone;
        let more = self.float_of_bits(b, float, false);
        let more = self.flush(more, ftz, float, false);
        let (again, done) = (self.b.create_block(), self.b.create_block());
        self.b.append_block_param(again, ty);
        self.b.append_block_param(done, ty);
        let first = self.b.ins().load(ty, shared_flags(), host, 0);
        self.b.ins().jump(again, &[first.into()]);
        self.b.switch_to_block(again);
        let old = self.b.block_params(again)[0];
        let number = self.float_of_bits(old, float, false);
        let number = self.flush(number, ftz, float, false);
        let sum = self.b.ins().fadd(number, more);
        let sum = if float == Class::F32 {
            self.keeps_nan = false;
            self.canonical(sum, false)
        } else {
            // The interpreter knows which NaN it is.
            let (cold, write) = (self.b.create_block(), self.b.create_block());
            self.b.set_cold_block(cold);
            let is_nan = self.b.ins().fcmp(FloatCC::Unordered, sum, sum);
            self.b.ins().brif(is_nan, cold, &[], write, &[]);
            self.go_on_in(cold);
            let updated = self.call_update((access, function), class, host, [b, b]);
            self.b.ins().jump(done, &[updated.into()]);
            self.go_on_in(write);
            sum
        };
        let sum = self.flush(sum, ftz, float, false);
        let sum = self.float_bits(sum, float, false);
        if is_alone {
            self.b.ins().store(shared_flags(), sum, host, 0);
            self.b.ins().jump(done, &[old.into()]);
        } else {
            let found = self.b.ins().atomic_cas(MemFlagsData::trusted(), host, old, sum);
            let same = self.b.ins().icmp(IntCC::Equal, found, old);
            self.b.ins().brif(same, done, &[old.into()], again, &[found.into()]);
        }
        self.b.seal_block(again);
        self.go_on_in(done);
        self.b.block_params(done)[0]
    }

    /// Emits an atomic operation on memory that no other host thread accesses.
    fn update_alone(&mut self, how: Atomically, class: Class, host: Value, b: Value, c: Value) -> Value {
        let old = self.b.ins().load(scalar_type(class), shared_flags(), host, 0);
        let new = match how {
            Atomically::Cas => {
                let same = self.b.ins().icmp(IntCC::Equal, old, b);
                self.b.ins().select(same, c, old)
            }
            Atomically::AddFloats(_) => b,
            Atomically::Rmw(op) => match op {
                AtomicRmwOp::Add => self.b.ins().iadd(old, b),
                AtomicRmwOp::And => self.b.ins().band(old, b),
                AtomicRmwOp::Or => self.b.ins().bor(old, b),
                AtomicRmwOp::Xor => self.b.ins().bxor(old, b),
                AtomicRmwOp::Smin => self.b.ins().smin(old, b),
                AtomicRmwOp::Umin => self.b.ins().umin(old, b),
                AtomicRmwOp::Smax => self.b.ins().smax(old, b),
                AtomicRmwOp::Umax => self.b.ins().umax(old, b),
                _ => b,
            },
        };
        self.b.ins().store(shared_flags(), new, host, 0);
        old
    }

    /// Returns the machine's instruction for the atomic operation being compiled, if there is one.
    fn native_atomic(&self) -> Option<Atomically> {
        let (op, ty) = self.atomic_operation()?;
        match (op, ty) {
            (AtomOp::Add, ScalarType::F32) => return Some(Atomically::AddFloats(Class::F32)),
            (AtomOp::Add, ScalarType::F64) => return Some(Atomically::AddFloats(Class::F64)),
            _ => {}
        }
        if ty.is_float() && op != AtomOp::Exch || ty.bits() < 32 || ty.packed().is_some() {
            return None;
        }
        Some(Atomically::Rmw(match (op, ty.is_signed()) {
            (AtomOp::Add, _) => AtomicRmwOp::Add,
            (AtomOp::And, _) => AtomicRmwOp::And,
            (AtomOp::Or, _) => AtomicRmwOp::Or,
            (AtomOp::Xor, _) => AtomicRmwOp::Xor,
            (AtomOp::Exch, _) => AtomicRmwOp::Xchg,
            (AtomOp::Min, true) => AtomicRmwOp::Smin,
            (AtomOp::Min, false) => AtomicRmwOp::Umin,
            (AtomOp::Max, true) => AtomicRmwOp::Smax,
            (AtomOp::Max, false) => AtomicRmwOp::Umax,
            (AtomOp::Cas, _) => return Some(Atomically::Cas),
            _ => return None,
        }))
    }

    fn atomic_operation(&self) -> Option<(AtomOp, ScalarType)> {
        use gridloom_interp::code::Meaning;
        use gridloom_ptx::op::{AtomicOp, Op as Ptx};
        let Meaning::Instruction(index) = self.plan.flow.instruction(self.pc).meaning else { return None };
        let body = self.body?;
        match &body.instructions.get(index as usize)?.op {
            Ptx::Atomic(AtomicOp::Atom { rmw, .. } | AtomicOp::Red { rmw }) => Some((rmw.op, rmw.ty)),
            _ => None,
        }
    }
}

/// The machine's form of an atomic operation.
#[derive(Clone, Copy)]
enum Atomically {
    Rmw(AtomicRmwOp),
    Cas,
    /// An addition of floats of a class, for which there is no instruction.
    AddFloats(Class),
}
