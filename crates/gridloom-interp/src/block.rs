//! A block: its warps, shared memory and barriers, as a state machine that can be left and resumed.

use super::barrier::{self, Barriers};
use super::code::{BarrierAction, Code, Op, Pc};
use super::compiled::{BlocksRun, Compiled, EXITED, Local, Machine, PC, REFUSED, SHARED_MARGIN, YIELDED};
use super::fault::{Fault, FaultKind, KernelPlace, Raised, SourceLine, Waiting};
use super::lanes::{LANES, lanes_of};
use super::launch::Launch;
use super::memory::Memory;
use super::special::coordinates;
use super::warp::{Context, Warp};
use std::ops::Range;

/// The progress of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Some threads are live.
    Running,
    /// All threads have exited.
    Done,
}

/// The state of a block. It is reused for the next block, so that its memory is allocated once.
#[derive(Default)]
pub(crate) struct ThreadBlock {
    /// The linear index of the block in the grid.
    linear: u64,
    index: [u32; 3],
    /// How many blocks, including this one, compiled code may run in one call.
    ahead: u32,
    /// Shared memory, between margins.
    shared: Vec<u8>,
    warps: Vec<Warp>,
    /// The local memory of every thread, 32 per warp.
    local: Vec<Vec<u8>>,
    barriers: Barriers,
    last: Range<u64>,
    /// The instruction of all threads, while compiled code runs them together.
    together: Option<Pc>,
    /// Whether the warps hold the state of this block. While all threads run together, the warps
    /// are not used.
    materialised: bool,
    /// Tables for compiled code: the program counter of each thread, the registers of each warp,
    /// and the local memory of each thread.
    pcs: Vec<u32>,
    registers: Vec<*mut u64>,
    local_table: Vec<Local>,
    kept: Vec<u128>,
    /// The bytes that it took from the launch's budget.
    taken: u64,
}

/// Returns shared memory without the margins around it.
fn within_margins(memory: &mut [u8]) -> &mut [u8] {
    let end = memory.len() - SHARED_MARGIN;
    &mut memory[SHARED_MARGIN..end]
}

/// The most blocks that one call of compiled code runs before cancellation is checked.
const MAX_BLOCKS_AHEAD: u64 = 256;

// SAFETY: the tables of pointers are filled from the block's own memory before each call of
// compiled code, and are read at no other time.
unsafe impl Send for ThreadBlock {}

impl ThreadBlock {
    /// Returns the linear index of the current block.
    pub(crate) fn number(&self) -> u64 {
        self.linear
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn forget_taken(&mut self) {
        self.taken = 0;
    }

    /// Starts the block with a linear index. `ahead` is the number of blocks from this one on that
    /// the caller wants to run.
    pub(crate) fn reset(&mut self, launch: &Launch<'_>, linear: u64, ahead: u64) {
        let code = &launch.kernel.code;
        let threads = launch.threads_per_block();
        let warps = threads.div_ceil(LANES as u32) as usize;
        self.linear = linear;
        self.index = coordinates(linear, launch.grid);
        self.ahead = 1;
        self.shared.clear();
        let bytes = (launch.kernel.shared_bytes() + launch.dynamic_shared) as usize;
        self.shared.resize(bytes + 2 * SHARED_MARGIN, 0);
        self.last = 0..0;
        self.together = None;
        self.materialised = false;
        let start = code.functions[0].entry;
        if let Some(compiled) = launch.machine_code()
            && compiled.is_entry(start)
            && !launch.is_cancelled()
        {
            self.together = Some(start);
            if code.functions[0].frame == 0 && !compiled.uses_local() {
                self.ahead = ahead.min(MAX_BLOCKS_AHEAD) as u32;
            }
            if self.warps.len() != warps {
                self.warps.resize_with(warps, Warp::default);
                self.local.resize_with(warps * LANES, Vec::new);
            }
            self.warps.iter_mut().for_each(|warp| warp.reserve(code));
            let frame = code.functions[0].frame as usize;
            for memory in self.local.iter_mut().filter(|memory| frame > 0 || !memory.is_empty()) {
                memory.clear();
                memory.resize(frame, 0);
            }
        } else {
            self.materialise(launch, false);
        }
    }

    /// Puts the warps into the state at the start of this block.
    fn materialise(&mut self, launch: &Launch<'_>, compiled: bool) {
        if std::mem::replace(&mut self.materialised, true) {
            return;
        }
        let code = &launch.kernel.code;
        let threads = launch.threads_per_block();
        if let Some(compiled) = launch.machine_code() {
            self.keep(compiled, launch.block);
        }
        let warps = threads.div_ceil(LANES as u32) as usize;
        self.warps.resize_with(warps, Warp::default);
        self.local.resize_with(warps * LANES, Vec::new);
        self.barriers.reset(warps);
        for ((i, warp), local) in (0..).zip(&mut self.warps).zip(self.local.chunks_mut(LANES)) {
            warp.reset(i, threads - i * LANES as u32, code, local, compiled);
        }
    }

    /// Gives every warp one turn.
    pub(crate) fn run(&mut self, launch: &Launch<'_>) -> Result<Progress, Box<Fault>> {
        // The warps of a cancelled launch raise the fault. Compiled code would only return at once.
        if let Some(compiled) = launch.machine_code().filter(|_| !launch.is_cancelled()) {
            if self.together.is_none() {
                self.together = self.find_together(launch);
            }
            if let Some(pc) = self.together.take() {
                return self.run_together(launch, compiled, pc);
            }
        } else if let Some(pc) = self.together.take() {
            self.leave_together(launch, pc);
        }
        let mut ran = false;
        for i in 0..self.warps.len() {
            // Another lane may have exited and so completed a collective at which all lanes of this
            // warp wait. The warp checks that itself.
            if self.warps[i].ready() == 0 {
                continue;
            }
            ran = true;
            self.with_warp(launch, i, |warp, cx| warp.run(cx))?;
            self.release(launch);
        }
        if self.warps.iter().all(|warp| warp.live == 0) {
            return Ok(Progress::Done);
        }
        if !ran {
            return Err(self.deadlock(launch));
        }
        Ok(Progress::Running)
    }

    /// Runs a warp, and adds the position to a fault.
    fn with_warp<T>(
        &mut self,
        launch: &Launch<'_>,
        i: usize,
        run: impl FnOnce(&mut Warp, &mut Context<'_>) -> Result<T, Raised>,
    ) -> Result<T, Box<Fault>> {
        let mut cx = Context {
            launch,
            code: &launch.kernel.code,
            memory: Memory {
                shared: within_margins(&mut self.shared),
                local: &mut self.local[i * LANES..][..LANES],
                params: launch.params,
                map: launch.memory_map,
                heap: launch.heap,
                last: &mut self.last,
            },
            barriers: &mut self.barriers,
            taken: &mut self.taken,
            block: self.index,
            compiled: launch.machine_code(),
            kept: self.kept.as_mut_ptr().cast(),
        };
        run(&mut self.warps[i], &mut cx).map_err(|raised| self.fault(launch, i, raised))
    }

    fn release(&mut self, launch: &Launch<'_>) {
        barrier::release(&mut self.warps, &mut self.barriers, &launch.kernel.code);
    }

    /// Returns the instruction of all threads of the block, if it is the same and no thread has
    /// exited or waits.
    fn find_together(&self, launch: &Launch<'_>) -> Option<Pc> {
        let threads = launch.threads_per_block();
        let pc = self.warps.first()?.together(threads)?;
        let same = |(i, warp): (u32, &Warp)| warp.together(threads - i * LANES as u32) == Some(pc);
        (!self.barriers.are_pending() && (0..).zip(&self.warps).all(same)).then_some(pc)
    }

    /// Runs all threads from `pc` for as long as they stay together. The interpreter executes
    /// instructions that are not compiled, warp by warp.
    fn run_together(
        &mut self,
        launch: &Launch<'_>,
        compiled: &dyn Compiled,
        mut pc: Pc,
    ) -> Result<Progress, Box<Fault>> {
        let code = &launch.kernel.code;
        loop {
            if compiled.is_entry(pc) {
                if !self.enter(launch, compiled, pc) {
                    return Ok(Progress::Done);
                }
                let at = self.pcs[0];
                if self.pcs.iter().any(|&other| other != at) {
                    self.scatter(launch);
                    return Ok(Progress::Running);
                }
                if at == EXITED {
                    return Ok(Progress::Done);
                }
                if at & REFUSED != 0 {
                    self.scatter(launch);
                    return Ok(Progress::Running);
                }
                pc = at & PC;
                if at & YIELDED != 0 {
                    // Blocks of a cooperative launch may wait for each other.
                    self.together = Some(pc);
                    return Ok(Progress::Running);
                }
            }
            if !code.instructions[pc as usize].is_plain_barrier(code) {
                self.materialise(launch, true);
                let mut together = true;
                for i in 0..self.warps.len() {
                    together &= self.with_warp(launch, i, |warp, cx| warp.step(cx, pc))?;
                }
                if !together {
                    self.release(launch);
                    return Ok(Progress::Running);
                }
            }
            pc += 1;
            if launch.is_cancelled() {
                self.together = Some(pc);
                return Ok(Progress::Running);
            }
        }
    }

    /// Runs compiled code in all threads of this block, and then in the following blocks while each
    /// ends. Returns whether the current block, which may be a later one, is still running.
    fn enter(&mut self, launch: &Launch<'_>, compiled: &dyn Compiled, pc: Pc) -> bool {
        let threads = launch.threads_per_block();
        self.pcs.clear();
        self.pcs.resize(threads as usize, EXITED);
        self.registers.clear();
        self.registers.extend(self.warps.iter_mut().map(|warp| warp.registers.as_mut_ptr().cast::<u64>()));
        self.local_table.clear();
        if compiled.uses_local() {
            let table = self.local.iter_mut();
            self.local_table.extend(
                table.map(|memory| Local { start: memory.as_mut_ptr(), length: memory.len() as u64 }),
            );
        }
        self.keep(compiled, launch.block);
        let machine = Machine {
            registers: self.registers.as_ptr(),
            pcs: self.pcs.as_mut_ptr(),
            local: self.local_table.as_ptr(),
            kept: self.kept.as_mut_ptr().cast(),
            blocks: std::mem::replace(&mut self.ahead, 1),
            whole: 1,
            ..launch.machine(within_margins(&mut self.shared), self.index)
        };
        // SAFETY: all threads are at `pc`, in the kernel itself, and each warp has room for its
        // registers. The tables are those of this block, and nothing else uses the block meanwhile.
        // The caller of the launch promised that the memory is valid. More than one block is run
        // only from the start of the kernel, and then no local memory is used.
        let BlocksRun { ended, running } = unsafe { compiled.run_blocks(&machine, pc) };
        self.linear += u64::from(if running { ended } else { ended.max(1) - 1 });
        self.index = coordinates(self.linear, launch.grid);
        running
    }

    /// Allocates the spill frame of compiled code.
    fn keep(&mut self, compiled: &dyn Compiled, block: [u32; 3]) {
        let words = compiled.kept_bytes(block).div_ceil(size_of::<u128>());
        if self.kept.len() < words {
            self.kept.resize(words, 0);
        }
    }

    /// Puts all threads at one instruction and continues warp by warp.
    fn leave_together(&mut self, launch: &Launch<'_>, pc: Pc) {
        self.pcs.clear();
        self.pcs.resize(launch.threads_per_block() as usize, pc);
        self.scatter(launch);
    }

    /// Puts each thread where compiled code left it and continues warp by warp.
    fn scatter(&mut self, launch: &Launch<'_>) {
        self.materialise(launch, true);
        for (warp, pcs) in self.warps.iter_mut().zip(self.pcs.chunks(LANES)) {
            warp.put(pcs);
        }
    }

    fn thread(&self, launch: &Launch<'_>, warp: usize, lane: u32) -> [u32; 3] {
        coordinates((warp * LANES) as u64 + u64::from(lane), launch.block)
    }

    /// Returns where a thread is in the kernel itself.
    fn place(&self, code: &Code, warp: usize, lane: u32) -> KernelPlace {
        let slots = code.functions[0].slots as usize;
        let warp = &self.warps[warp];
        let registers = warp.registers.iter().take(slots).map(|lanes| lanes[lane as usize]).collect();
        KernelPlace { instruction: instruction(warp, code, lane), registers }
    }

    fn fault(&self, launch: &Launch<'_>, warp: usize, raised: Raised) -> Box<Fault> {
        let lane = raised.lane.min(31);
        let pc = self.warps[warp].pc[lane as usize];
        let (line, source) = position(&launch.kernel.code, pc);
        Box::new(Fault {
            kind: *raised.kind,
            kernel: launch.kernel.name().to_owned(),
            block: self.index,
            thread: self.thread(launch, warp, lane),
            line: Some(line).filter(|&line| line > 0),
            source,
            place: Some(self.place(&launch.kernel.code, warp, lane)),
        })
    }

    /// Returns the fault for a block whose live threads all wait and can never continue.
    fn deadlock(&mut self, launch: &Launch<'_>) -> Box<Fault> {
        let code = &launch.kernel.code;
        let mut first = None;
        let mut waiting: Vec<(u32, Waiting)> = Vec::new();
        for w in 0..self.warps.len() {
            for lane in lanes_of(self.warps[w].live) {
                first.get_or_insert((w, lane));
                let warp = &mut self.warps[w];
                let pc = warp.pc[lane as usize];
                let at = describe(warp, code, lane);
                match waiting.iter_mut().find(|(other, place)| *other == pc && place.at == at) {
                    Some((_, place)) => place.threads += 1,
                    None => {
                        let (line, source) = position(code, pc);
                        let instruction = instruction(&self.warps[w], code, lane);
                        waiting.push((pc, Waiting { at, line, source, threads: 1, instruction }));
                    }
                }
            }
        }
        let (warp, lane) = first.unwrap_or_default();
        Box::new(Fault {
            kind: FaultKind::Deadlock { waiting: waiting.into_iter().map(|(_, place)| place).collect() },
            kernel: launch.kernel.name().to_owned(),
            block: self.index,
            thread: self.thread(launch, warp, lane),
            line: None,
            source: None,
            place: Some(self.place(code, warp, lane)),
        })
    }
}

/// Returns the index of the instruction in the kernel's body that a lane is at. In a function that
/// the kernel calls, it is that of the call.
fn instruction(warp: &Warp, code: &Code, lane: u32) -> u32 {
    let lane = lane as usize;
    let pc = warp.calls[lane].first().map_or(warp.pc[lane], |caller| caller.call);
    code.positions.get(pc as usize).map_or(0, |position| position.instruction)
}

fn position(code: &Code, pc: u32) -> (u32, Option<SourceLine>) {
    code.positions.get(pc as usize).map_or((0, None), |position| (position.line, position.source.clone()))
}

/// Returns a description of what a lane waits at.
fn describe(warp: &mut Warp, code: &Code, lane: u32) -> String {
    match &code.instructions[warp.pc[lane as usize] as usize].op {
        Op::Barrier(barrier) => {
            let base = warp.base[lane as usize];
            let id = warp.barrier[lane as usize];
            let what = if matches!(barrier.action, BarrierAction::Reduce { .. }) {
                "reducing barrier"
            } else {
                "barrier"
            };
            match barrier.threads {
                Some(threads) => {
                    format!("{what} {id} for {} threads", warp.registers(base, code).get(threads, lane))
                }
                None => format!("{what} {id}"),
            }
        }
        Op::Collective(_) => match warp.collective_of(code, lane) {
            Some((kind, members)) => format!("{kind} with mask {members:#x}"),
            None => "a collective".to_owned(),
        },
        _ => "an instruction".to_owned(),
    }
}
