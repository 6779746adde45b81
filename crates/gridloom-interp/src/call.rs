//! Calls and returns. A call uses no host stack: the state that a return restores is kept with the
//! lane.

use super::budget::{grow, growth};
use super::builtin;
use super::code::{Call, Code, Function, Op, Passed, Pc, Target};
use super::fault::{FaultKind, Raised};
use super::lanes::lanes_of;
use super::memory::FUNCTION_WINDOW;
use super::warp::{Caller, Context, Flow, Group, Warp};

/// The bytes of stack that a call uses in addition to the frame, so that endless recursion reaches
/// the stack limit.
const CALL_BYTES: u64 = 16;
/// The most register slots that a warp may use in nested calls.
const MAX_SLOTS: usize = 1 << 18;

/// One side of a call: the registers and the frame that hold a passed value.
#[derive(Clone, Copy)]
struct Side {
    base: u32,
    frame: u32,
}

impl Warp {
    pub(crate) fn call(
        &mut self,
        cx: &mut Context<'_>,
        call: &Call,
        group: Group,
        active: u32,
    ) -> Result<Flow, Raised> {
        let code = cx.code;
        match &call.target {
            Target::Builtin(builtin) => {
                for lane in lanes_of(active) {
                    let side = Side { base: group.base, frame: self.frame[lane as usize] };
                    let mut values = [0; 5];
                    for (value, &argument) in values.iter_mut().zip(&call.arguments) {
                        *value = self.read_passed(cx, argument, side, lane);
                    }
                    let result = builtin::call(cx, *builtin, values, lane)?;
                    if let Some(&place) = call.results.first() {
                        self.write_passed(cx, place, side, lane, result);
                    }
                }
                return Ok(Flow::Next);
            }
            Target::Function(index) => {
                self.set_pc(group.mask & !active, group.pc + 1);
                self.enter(cx, call, &code.functions[*index as usize], group, active)?;
            }
            Target::Indirect { address, table } => {
                self.set_pc(group.mask & !active, group.pc + 1);
                let targets = *self.registers(group.base, code).lanes(*address);
                let mut rest = active;
                while rest != 0 {
                    let lane = rest.trailing_zeros();
                    let target = targets[lane as usize];
                    let same = lanes_of(rest).filter(|&other| targets[other as usize] == target);
                    let same = same.fold(0, |mask, lane| mask | 1 << lane);
                    rest &= !same;
                    let function = resolve(code, target)
                        .filter(|index| table.as_ref().is_none_or(|table| table.contains(index)))
                        .map(|index| &code.functions[index as usize])
                        .filter(|function| accepts(function, call))
                        .ok_or_else(|| FaultKind::InvalidIndirectCall { target }.in_lane(lane))?;
                    self.enter(cx, call, function, group, same)?;
                }
            }
        }
        Ok(Flow::Apart)
    }

    fn enter(
        &mut self,
        cx: &mut Context<'_>,
        call: &Call,
        function: &Function,
        group: Group,
        lanes: u32,
    ) -> Result<(), Raised> {
        let base = group.base + call.slots;
        let slots = (base + function.slots) as usize;
        if slots > MAX_SLOTS {
            let limit = cx.launch.stack_bytes();
            return Err(FaultKind::StackOverflow { limit }.in_lane(lanes.trailing_zeros()));
        }
        if self.registers.len() < slots {
            cx.take(growth(&self.registers, slots), lanes.trailing_zeros())?;
            grow(&mut self.registers, slots);
            self.registers.resize(slots, [0; super::lanes::LANES]);
        }
        for slot in &mut self.registers[base as usize..slots] {
            lanes_of(lanes).for_each(|lane| slot[lane as usize] = 0);
        }
        for lane in lanes_of(lanes) {
            let i = lane as usize;
            let caller =
                Caller { call: group.pc, base: group.base, frame: self.frame[i], stack: self.stack[i] };
            let start = (u64::from(caller.stack) + CALL_BYTES).next_multiple_of(u64::from(function.align));
            self.grow_stack(cx, lane, start + u64::from(function.frame))?;
            let depth = self.calls[i].len() + 1;
            cx.take(growth(&self.calls[i], depth), lane)?;
            grow(&mut self.calls[i], depth);
            let (from, to) =
                (Side { base: caller.base, frame: caller.frame }, Side { base, frame: start as u32 });
            for (&argument, &param) in call.arguments.iter().zip(&function.params) {
                self.pass(cx, argument, from, param, to, lane);
            }
            (self.base[i], self.frame[i], self.pc[i]) = (base, start as u32, function.entry);
            self.calls[i].push(caller);
        }
        Ok(())
    }

    /// Returns from a function. A return from the kernel exits the lanes.
    pub(crate) fn return_from(&mut self, cx: &mut Context<'_>, pc: Pc, lanes: u32) {
        let code = cx.code;
        let function = function_at(code, pc);
        for lane in lanes_of(lanes) {
            let i = lane as usize;
            let Some(caller) = self.calls[i].pop() else {
                self.live &= !(1 << lane);
                continue;
            };
            if let (Op::Call(call), Some(function)) = (&code.instructions[caller.call as usize].op, function)
            {
                let (from, to) = (
                    Side { base: self.base[i], frame: self.frame[i] },
                    Side { base: caller.base, frame: caller.frame },
                );
                for (&value, &place) in function.returns.iter().zip(&call.results) {
                    self.pass(cx, value, from, place, to, lane);
                }
            }
            (self.pc[i], self.base[i], self.frame[i], self.stack[i]) =
                (caller.call + 1, caller.base, caller.frame, caller.stack);
            cx.memory.local[i].truncate(caller.stack as usize);
        }
    }

    /// Copies a value from one side of a call to the other.
    fn pass(&mut self, cx: &mut Context<'_>, value: Passed, from: Side, place: Passed, to: Side, lane: u32) {
        if let (Passed::Frame { offset, size }, Passed::Frame { offset: other, size: room }) = (value, place)
        {
            let (start, other) = ((from.frame + offset) as usize, (to.frame + other) as usize);
            let length = size.min(room) as usize;
            cx.memory.local[lane as usize].copy_within(start..start + length, other);
        } else {
            let bits = self.read_passed(cx, value, from, lane);
            self.write_passed(cx, place, to, lane, bits);
        }
    }

    fn read_passed(&mut self, cx: &Context<'_>, value: Passed, side: Side, lane: u32) -> u64 {
        match value {
            Passed::Slot { slot, .. } => self.registers[(side.base + slot.0) as usize][lane as usize],
            Passed::Source(source) => self.registers(side.base, cx.code).get(source, lane),
            Passed::Frame { offset, size } => {
                let mut bytes = [0; 8];
                let length = size.min(8) as usize;
                let start = (side.frame + offset) as usize;
                bytes[..length].copy_from_slice(&cx.memory.local[lane as usize][start..start + length]);
                u64::from_le_bytes(bytes)
            }
            Passed::Nowhere => 0,
        }
    }

    fn write_passed(&mut self, cx: &mut Context<'_>, place: Passed, side: Side, lane: u32, bits: u64) {
        match place {
            Passed::Slot { slot, size } => {
                let bits = if size < 8 { bits & ((1 << (8 * size)) - 1) } else { bits };
                self.registers[(side.base + slot.0) as usize][lane as usize] = bits;
            }
            Passed::Frame { offset, size } => {
                let length = size.min(8) as usize;
                let start = (side.frame + offset) as usize;
                cx.memory.local[lane as usize][start..start + length]
                    .copy_from_slice(&bits.to_le_bytes()[..length]);
            }
            Passed::Source(_) | Passed::Nowhere => {}
        }
    }
}

/// Returns the function at an address.
fn resolve(code: &Code, address: u64) -> Option<u32> {
    let symbol = address.checked_sub(FUNCTION_WINDOW)?;
    code.by_symbol.get(&u32::try_from(symbol).ok()?).copied()
}

/// Returns the function that an instruction belongs to.
fn function_at(code: &Code, pc: Pc) -> Option<&Function> {
    let after = code.functions.partition_point(|function| function.entry <= pc);
    code.functions.get(after.checked_sub(1)?)
}

/// Returns whether the parameters and results of a function match a call.
fn accepts(function: &Function, call: &Call) -> bool {
    function.params.len() == call.arguments.len()
        && (call.results.is_empty() || function.returns.len() == call.results.len())
}
