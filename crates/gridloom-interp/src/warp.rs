//! A warp: 32 lanes, each with its own program counter and call stack. Lanes that share both run as
//! a group.

use super::barrier::Barriers;
use super::code::{BarrierAction, BranchTable, Code, Guard, Instruction, Op, Pc};
use super::compiled::{Compiled, EXITED, INTERPRET, Local, Machine, PC, REFUSED, YIELDED};
use super::fault::{FaultKind, Raised};
use super::lanes::{Frame, LANES, Lanes, lanes_of};
use super::launch::Launch;
use super::memory::Memory;

/// The number of instructions in a turn. A group that branches backwards after that lets others
/// run: first the other groups of the warp, then the other warps of the block, then, in a
/// cooperative launch, the other blocks.
const TURN: u64 = 4096;

/// The state of the block and launch that a warp needs.
pub(crate) struct Context<'a> {
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) code: &'a Code,
    pub(crate) memory: Memory<'a>,
    pub(crate) barriers: &'a mut Barriers,
    /// The bytes that the block took from the launch's budget.
    pub(crate) taken: &'a mut u64,
    /// `%ctaid`.
    pub(crate) block: [u32; 3],
    pub(crate) compiled: Option<&'a dyn Compiled>,
    /// The memory that compiled code may use as [`Machine::kept`].
    pub(crate) kept: *mut u8,
}

impl Context<'_> {
    /// Takes bytes from the launch's budget, if there is one.
    pub(crate) fn take(&mut self, bytes: u64, lane: u32) -> Result<(), Raised> {
        let Some(budget) = self.launch.budget.filter(|_| bytes > 0) else { return Ok(()) };
        if !budget.take(bytes) {
            return Err(FaultKind::OutOfMemory { bytes }.in_lane(lane));
        }
        *self.taken += bytes;
        Ok(())
    }
}

/// The state that a return restores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The call instruction. Execution continues after it.
    pub(crate) call: Pc,
    pub(crate) base: u32,
    pub(crate) frame: u32,
    pub(crate) stack: u32,
}

/// The state of a warp. It is reused for the next block, so that its memory is allocated once.
#[derive(Default)]
pub(crate) struct Warp {
    /// Its number in the block.
    pub(crate) index: u32,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    /// Live lanes that wait at a collective or at a barrier of the block. Their program counter
    /// stays at the instruction.
    pub(crate) at_collective: u32,
    pub(crate) at_barrier: u32,
    /// The barrier at which each lane in `at_barrier` waits.
    pub(crate) barrier: [u8; LANES],
    /// Lanes whose turn is over.
    yielded: u32,
    pub(crate) pc: [Pc; LANES],
    /// The first register slot of each lane's function.
    pub(crate) base: [u32; LANES],
    /// The start of each lane's frame, and the end of its stack, in local memory.
    pub(crate) frame: [u32; LANES],
    pub(crate) stack: [u32; LANES],
    pub(crate) calls: [Vec<Caller>; LANES],
    pub(crate) registers: Vec<Lanes>,
    /// The number of executed instructions.
    pub(crate) steps: u64,
    turn_end: u64,
    /// Whether the block must check its barriers before this warp continues.
    arrived: bool,
    /// Lanes whose next instruction compiled code left to the interpreter.
    interpret: u32,
    /// Those of them whose access must fault.
    refused: u32,
}

/// Lanes that are at the same instruction of the same call.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) pc: Pc,
    pub(crate) base: u32,
    pub(crate) mask: u32,
    /// The next instruction at which other lanes are ready. The group stops there to join them.
    limit: Pc,
}

/// The effect of an instruction on the course of a group.
pub(crate) enum Flow {
    /// All lanes continue with the next instruction.
    Next,
    /// All lanes continue with this one.
    Jump(Pc),
    /// Lanes continue separately. [`Warp::pc`] is already set.
    Apart,
}

impl Warp {
    /// Puts `threads` lanes at the start of the kernel.
    ///
    /// Registers that compiled code has written keep their values.
    pub(crate) fn reset(
        &mut self,
        index: u32,
        threads: u32,
        code: &Code,
        local: &mut [Vec<u8>],
        compiled: bool,
    ) {
        let kernel = &code.functions[0];
        self.index = index;
        self.live = if threads >= 32 { u32::MAX } else { (1 << threads) - 1 };
        (self.at_collective, self.at_barrier, self.yielded) = (0, 0, 0);
        (self.steps, self.turn_end, self.arrived) = (0, 0, false);
        (self.interpret, self.refused) = (0, 0);
        self.pc = [kernel.entry; LANES];
        self.base = [0; LANES];
        self.frame = [0; LANES];
        self.stack = [kernel.frame; LANES];
        self.calls.iter_mut().for_each(Vec::clear);
        if compiled {
            return;
        }
        self.registers.clear();
        self.registers.resize(kernel.slots as usize, [0; LANES]);
        for memory in local {
            memory.clear();
            memory.resize(kernel.frame as usize, 0);
        }
    }

    /// Allocates the registers of compiled code. Compiled code sets those it reads.
    pub(crate) fn reserve(&mut self, code: &Code) {
        let slots = code.functions[0].slots as usize;
        if self.registers.len() < slots {
            self.registers.resize(slots, [0; LANES]);
        }
    }

    /// Returns the instruction of all lanes, if it is the same instruction of the kernel itself and
    /// no lane has exited or waits.
    pub(crate) fn together(&self, threads: u32) -> Option<Pc> {
        let all = if threads >= 32 { u32::MAX } else { (1 << threads) - 1 };
        let pc = self.pc[0];
        let kernel = |lane: u32| self.pc[lane as usize] == pc && self.base[lane as usize] == 0;
        let ready = self.live == all && self.ready() == all && self.interpret == 0;
        (ready && lanes_of(all).all(kernel)).then_some(pc)
    }

    /// Puts all lanes at instructions of the kernel, as compiled code left them.
    pub(crate) fn put(&mut self, pcs: &[u32]) {
        for (lane, &at) in (0..).zip(pcs) {
            match at {
                EXITED => self.live &= !(1 << lane),
                at => {
                    self.pc[lane as usize] = at & PC;
                    self.interpret |= u32::from(at & INTERPRET != 0) << lane;
                    self.refused |= u32::from(at & REFUSED != 0) << lane;
                }
            }
        }
    }

    /// Returns the lanes that could execute an instruction now.
    pub(crate) fn ready(&self) -> u32 {
        self.live & !self.at_collective & !self.at_barrier
    }

    /// Runs until every lane waits, has exited or has finished its turn.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>) -> Result<(), Raised> {
        self.yielded = 0;
        self.arrived = false;
        self.turn_end = self.steps + TURN;
        self.poll(cx)?;
        while !self.arrived {
            if self.at_collective != 0 {
                self.complete_collectives(cx);
            }
            let ready = self.ready() & !self.yielded;
            if ready == 0 {
                break;
            }
            let group = self.select(ready);
            self.run_group(cx, group)?;
        }
        Ok(())
    }

    /// Returns the group to run: the deepest call first, then the earliest instruction. So lanes
    /// that diverged wait for each other where their paths join.
    fn select(&self, ready: u32) -> Group {
        let first = ready.trailing_zeros() as usize;
        let mut group = Group { pc: self.pc[first], base: self.base[first], mask: 0, limit: Pc::MAX };
        for lane in lanes_of(ready) {
            let (pc, base) = (self.pc[lane as usize], self.base[lane as usize]);
            if base > group.base || (base == group.base && pc < group.pc) {
                group.limit = if base == group.base { group.pc } else { Pc::MAX };
                (group.pc, group.base, group.mask) = (pc, base, 1 << lane);
            } else if (base, pc) == (group.base, group.pc) {
                group.mask |= 1 << lane;
            } else if base == group.base {
                group.limit = group.limit.min(pc);
            }
        }
        group
    }

    pub(crate) fn set_pc(&mut self, lanes: u32, pc: Pc) {
        for lane in lanes_of(lanes) {
            self.pc[lane as usize] = pc;
        }
    }

    /// Returns the registers of a group's function.
    pub(crate) fn registers<'a>(&'a mut self, base: u32, code: &'a Code) -> Frame<'a> {
        Frame { slots: &mut self.registers[base as usize..], constants: &code.constants }
    }

    /// Runs a group until it splits, waits, joins other lanes or has finished its turn.
    fn run_group(&mut self, cx: &mut Context<'_>, mut group: Group) -> Result<(), Raised> {
        let code = cx.code;
        if let Some(compiled) = cx.compiled
            && self.interpret & group.mask == 0
            && compiled.is_entry(group.pc)
        {
            return self.run_compiled(cx, compiled, group);
        }
        self.interpret &= !group.mask;
        loop {
            let Instruction { guard, op, .. } = &code.instructions[group.pc as usize];
            self.steps += 1;
            let active = match guard {
                Some(guard) => self.test(*guard, group),
                None => group.mask,
            };
            let flow = if active == 0 {
                Ok(Flow::Next)
            } else if let Op::Map(function) = op {
                function.run(&mut self.registers(group.base, code), active);
                Ok(Flow::Next)
            } else {
                self.execute(cx, op, group, active)
            };
            let flow = match flow {
                Ok(_) if self.refused & group.mask != 0 => {
                    let reason = "an access that compiled code refuses was granted".to_owned();
                    let lane = (self.refused & group.mask).trailing_zeros();
                    Err(FaultKind::IllegalInstruction { reason }.in_lane(lane))
                }
                flow => flow,
            };
            let next = match flow {
                Ok(Flow::Next) => group.pc + 1,
                Ok(Flow::Jump(target)) => target,
                Ok(Flow::Apart) => return Ok(()),
                Err(raised) => {
                    self.set_pc(group.mask, group.pc);
                    return Err(raised);
                }
            };
            let backwards = next <= group.pc;
            group.pc = next;
            if backwards && self.steps >= self.turn_end {
                self.set_pc(group.mask, next);
                return self.end_turn(cx, group.mask);
            }
            let entered = cx.compiled.is_some_and(|compiled| compiled.is_entry(next));
            if next >= group.limit || entered {
                self.set_pc(group.mask, next);
                return Ok(());
            }
        }
    }

    /// Runs a group that is at an entry in compiled code. Each lane returns at an instruction for
    /// the interpreter.
    fn run_compiled(
        &mut self,
        cx: &mut Context<'_>,
        compiled: &dyn Compiled,
        group: Group,
    ) -> Result<(), Raised> {
        let first = self.index * LANES as u32;
        let mut pcs = [EXITED; LANES];
        let registers = self.registers[group.base as usize..].as_mut_ptr().cast::<u64>();
        let mut local = [Local { start: std::ptr::null_mut(), length: 0 }; LANES];
        if compiled.uses_local() {
            for (entry, memory) in local.iter_mut().zip(cx.memory.local.iter_mut()) {
                *entry = Local { start: memory.as_mut_ptr(), length: memory.len() as u64 };
            }
        }
        let machine = Machine {
            registers: (&raw const registers).wrapping_sub(self.index as usize),
            pcs: pcs.as_mut_ptr().wrapping_sub(first as usize),
            local: local.as_ptr().wrapping_sub(first as usize),
            frames: self.frame.as_ptr().wrapping_sub(first as usize),
            kept: cx.kept,
            ..cx.launch.machine(cx.memory.shared, cx.block)
        };
        let mut rest = group.mask;
        while rest != 0 {
            let start = rest.trailing_zeros();
            let length = (rest >> start).trailing_ones();
            // SAFETY: the lanes of the group are at the entry, in the function whose registers
            // start at the group's base. The tables above belong to this warp and live until the
            // call returns. Nothing else uses the warp meanwhile.
            unsafe { compiled.run(&machine, group.pc, first + start..first + start + length) };
            rest &= if start + length == 32 { 0 } else { u32::MAX << (start + length) };
        }
        self.steps += 1;
        let mut yielded = 0;
        for lane in lanes_of(group.mask) {
            match pcs[lane as usize] {
                EXITED => self.live &= !(1 << lane),
                at => {
                    self.pc[lane as usize] = at & PC;
                    yielded |= u32::from(at & YIELDED != 0) << lane;
                    self.interpret |= u32::from(at & INTERPRET != 0) << lane;
                    self.refused |= u32::from(at & REFUSED != 0) << lane;
                }
            }
        }
        if yielded != 0 { self.end_turn(cx, yielded) } else { Ok(()) }
    }

    /// Executes one instruction in all live lanes, which are all at it. Returns whether all of them
    /// continue with the next instruction. Otherwise they are where the instruction sent them.
    pub(crate) fn step(&mut self, cx: &mut Context<'_>, pc: Pc) -> Result<bool, Raised> {
        let group = Group { pc, base: 0, mask: self.live, limit: Pc::MAX };
        let Instruction { guard, op, .. } = &cx.code.instructions[pc as usize];
        self.set_pc(group.mask, pc);
        self.steps += 1;
        self.turn_end = self.steps + TURN;
        let active = guard.map_or(group.mask, |guard| self.test(guard, group));
        let flow = match op {
            _ if active == 0 => Flow::Next,
            Op::Map(function) => {
                function.run(&mut self.registers(0, cx.code), active);
                Flow::Next
            }
            op => self.execute(cx, op, group, active)?,
        };
        match flow {
            Flow::Next => {
                self.set_pc(group.mask, pc + 1);
                Ok(true)
            }
            Flow::Jump(target) => {
                self.set_pc(group.mask, target);
                Ok(false)
            }
            Flow::Apart => {
                // Lanes that wait with different masks may be complete, and no other lane would
                // check for it.
                self.complete_collectives(cx);
                Ok(false)
            }
        }
    }

    fn test(&self, guard: Guard, group: Group) -> u32 {
        let values = &self.registers[(group.base + guard.slot.0) as usize];
        let mut set = 0;
        for (lane, &value) in values.iter().enumerate() {
            set |= u32::from(value != 0) << lane;
        }
        (if guard.negated { !set } else { set }) & group.mask
    }

    /// Lets others run before these lanes run again.
    fn end_turn(&mut self, cx: &Context<'_>, lanes: u32) -> Result<(), Raised> {
        self.yielded |= lanes;
        self.turn_end = self.steps + TURN;
        self.poll(cx)
    }

    /// Checks whether the launch was cancelled or is past its limit.
    fn poll(&self, cx: &Context<'_>) -> Result<(), Raised> {
        let lane = self.live.trailing_zeros();
        match cx.launch.step_limit {
            Some(limit) if self.steps > limit => return Err(FaultKind::StepLimit { limit }.in_lane(lane)),
            _ => {}
        }
        if cx.launch.is_cancelled() {
            return Err(FaultKind::Cancelled.in_lane(lane));
        }
        Ok(())
    }

    /// Executes any instruction except a map, in the active lanes of a group.
    fn execute(&mut self, cx: &mut Context<'_>, op: &Op, group: Group, active: u32) -> Result<Flow, Raised> {
        let rest = group.mask & !active;
        let first = active.trailing_zeros();
        match op {
            Op::Map(_) | Op::Nothing => {}
            Op::Special { destination, register } => {
                self.read_special(cx, group, active, *destination, *register)
            }
            Op::FrameAddress { destination, offset } => {
                for lane in lanes_of(active) {
                    let address = self.frame[lane as usize] + offset;
                    self.registers(group.base, cx.code).set(*destination, lane, address.into());
                }
            }
            Op::Load(load) => self.load(cx, load, group.base, active)?,
            Op::Store(store) => self.store(cx, store, group.base, active)?,
            Op::Atomic(atomic) => self.atomic(cx, atomic, group.base, active)?,
            Op::CopyAsync(copy) => self.copy_async(cx, copy, group.base, active)?,
            Op::Alloca(alloca) => self.alloca(cx, alloca, group.base, active)?,
            Op::StackSave { destination } => {
                for lane in lanes_of(active) {
                    let stack = self.stack[lane as usize];
                    self.registers(group.base, cx.code).set(*destination, lane, stack.into());
                }
            }
            Op::StackRestore { source } => self.stack_restore(cx, *source, group.base, active)?,
            Op::Mbarrier(mbarrier) => return self.mbarrier(cx, mbarrier, group, active),
            Op::Fence => std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst),
            Op::ActiveMask { destination } => {
                for lane in lanes_of(active) {
                    self.registers(group.base, cx.code).set(*destination, lane, active.into());
                }
            }
            Op::Branch { target } if rest == 0 => return Ok(Flow::Jump(*target)),
            Op::Branch { target } => {
                self.set_pc(active, *target);
                self.set_pc(rest, group.pc + 1);
                // A loop that some lanes leave in every pass must also end its turn.
                if *target <= group.pc && self.steps >= self.turn_end {
                    self.end_turn(cx, active)?;
                }
                return Ok(Flow::Apart);
            }
            Op::BranchTable(table) => {
                self.branch_table(cx, table, group, active);
                self.set_pc(rest, group.pc + 1);
                if self.steps >= self.turn_end {
                    self.end_turn(cx, active)?;
                }
                return Ok(Flow::Apart);
            }
            Op::Call(call) => {
                let flow = self.call(cx, call, group, active)?;
                // Recursion can run as long as a loop.
                if matches!(flow, Flow::Apart) && self.steps >= self.turn_end {
                    self.end_turn(cx, active)?;
                }
                return Ok(flow);
            }
            Op::Return => {
                self.set_pc(rest, group.pc + 1);
                self.return_from(cx, group.pc, active);
                return Ok(Flow::Apart);
            }
            Op::Exit => {
                self.set_pc(rest, group.pc + 1);
                self.live &= !active;
                return Ok(Flow::Apart);
            }
            Op::Trap => return Err(FaultKind::Trap.in_lane(first)),
            Op::Breakpoint => return Err(FaultKind::Breakpoint.in_lane(first)),
            Op::Yield => {
                self.set_pc(group.mask, group.pc + 1);
                self.end_turn(cx, active)?;
                return Ok(Flow::Apart);
            }
            Op::Collective(collective) => return self.meet(cx, collective, group, active),
            Op::Barrier(barrier) => {
                let frame = Frame {
                    slots: &mut self.registers[group.base as usize..],
                    constants: &cx.code.constants,
                };
                let waits = !matches!(barrier.action, BarrierAction::Arrive);
                for lane in lanes_of(active) {
                    let id = frame.get(barrier.id, lane) as u32;
                    let threads = barrier.threads.map(|threads| frame.get(threads, lane) as u32);
                    self.barrier[lane as usize] = cx
                        .barriers
                        .arrive(id, threads, waits, self.index, lane)
                        .map_err(|k| k.in_lane(lane))?;
                }
                if waits {
                    self.at_barrier |= active;
                    self.set_pc(active, group.pc);
                    self.set_pc(rest, group.pc + 1);
                } else {
                    self.set_pc(group.mask, group.pc + 1);
                    self.arrived = true;
                }
                return Ok(Flow::Apart);
            }
        }
        Ok(Flow::Next)
    }

    /// Sends each lane to its entry of the table. An index past the end, which PTX leaves
    /// undefined, takes the last entry.
    fn branch_table(&mut self, cx: &Context<'_>, table: &BranchTable, group: Group, active: u32) {
        for lane in lanes_of(active) {
            let index = self.registers(group.base, cx.code).get(table.index, lane) as u32 as usize;
            self.pc[lane as usize] = table.targets[index.min(table.targets.len() - 1)];
        }
    }

    /// Releases lanes that wait at a barrier.
    pub(crate) fn release(&mut self, lanes: u32) {
        self.at_barrier &= !lanes;
        for lane in lanes_of(lanes) {
            self.pc[lane as usize] += 1;
        }
    }

    /// Ends the turn after an instruction after which all lanes continue.
    pub(crate) fn pause(&mut self, cx: &Context<'_>, group: Group) -> Result<Flow, Raised> {
        self.set_pc(group.mask, group.pc + 1);
        self.end_turn(cx, group.mask)?;
        Ok(Flow::Apart)
    }
}
