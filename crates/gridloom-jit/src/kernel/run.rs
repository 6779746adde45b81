//! Running compiled code: threads run in groups if possible and worthwhile, else one by one.

use super::trial::Way;
use super::{Checks, CompiledKernel, GROUPS, Part};
use crate::emit::{self, SINGLE};
use gridloom_interp::code::Pc;
use gridloom_interp::compiled::{BlocksRun, Compiled, EXITED, INTERPRET, KEPT, Machine, PC, YIELDED};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How many groups are observed to decide whether threads stay together.
const SAMPLE: u32 = 1024;

/// The signature of compiled code.
type Code = unsafe extern "C" fn(*const Machine, u32, u32, u32) -> u64;

/// The result of a call of compiled code.
struct Outcome {
    /// How many blocks have ended.
    ended: u32,
    /// How many groups diverged.
    parted: u32,
}

impl Part {
    /// # Safety
    /// As for [`Compiled::run`], at the entry with this number.
    unsafe fn run(&self, machine: &Machine, entry: u32, threads: Range<u32>) -> Outcome {
        // SAFETY: the code is complete and was generated with this signature. The rest is the
        // caller's promise.
        let outcome = unsafe {
            let code: Code = std::mem::transmute::<*const u8, Code>(self.code.entry());
            code(machine, entry, threads.start, threads.end)
        };
        Outcome { ended: outcome as u32, parted: (outcome >> 32) as u32 }
    }

    /// Moves what groups keep at a barrier to where the interpreter reads it.
    ///
    /// # Safety
    /// A call of [`run`](Self::run) with these threads has just returned.
    unsafe fn expand(&self, machine: &Machine, threads: Range<u32>) {
        for thread in threads.step_by(self.lanes as usize) {
            // SAFETY: the tables of the machine have entries for all threads of the call and their
            // warps. The frame is that of the group, and the code has filled what its layout
            // describes.
            unsafe {
                let places = machine.pcs.wrapping_add(thread as usize);
                let place = *places;
                if place == EXITED || place & KEPT == 0 {
                    continue;
                }
                let registers = *machine.registers.wrapping_add(thread as usize / 32);
                let registers = registers.wrapping_add(thread as usize % 32);
                let frame = machine.kept.wrapping_add((thread / self.lanes * self.layout.bytes) as usize);
                self.layout.expand(place & PC, frame, registers);
                for lane in 0..self.lanes as usize {
                    *places.wrapping_add(lane) = place & !KEPT;
                }
            }
        }
    }
}

impl Compiled for CompiledKernel {
    fn is_entry(&self, pc: Pc) -> bool {
        self.entries.get(pc as usize).copied().unwrap_or(false)
    }

    fn uses_local(&self) -> bool {
        self.uses_local
    }

    fn kept_bytes(&self, block: [u32; 3]) -> usize {
        let [x, y, z] = block;
        let threads = x * y * z;
        // The spill frame does not depend on how much is checked.
        self.group_for(block, Checks::Few)
            .map_or(0, |part| part.layout.bytes as usize * threads.div_ceil(part.lanes) as usize)
    }

    unsafe fn run_blocks(&self, machine: &Machine, pc: Pc) -> BlocksRun {
        let is_undecided = self.may_run_alone && !self.always_alone;
        if is_undecided && !self.trial.is_worthwhile() && is_large(machine) {
            let start = Instant::now();
            // SAFETY: the caller's promise.
            let run = unsafe { self.run_blocks_in(machine, pc, Way::Groups) };
            self.trial.spend(start.elapsed());
            return run;
        }
        let Some(way) = self.way_to_measure(machine, pc) else {
            let way = self.way(machine);
            // SAFETY: the caller's promise.
            let run = unsafe { self.run_blocks_in(machine, pc, way) };
            if way == Way::Alone {
                // Threads that run alone take longer, so that a wrong choice is to be found sooner.
                self.trial.count_more(run.ended.saturating_sub(1));
            }
            return run;
        };
        let threads: u32 = machine.block.iter().product();
        // With two blocks a call, threads alone were often chosen where groups are twice as fast.
        let blocks = match way {
            Way::Groups => machine.blocks.min(MEASURED.div_ceil(threads.max(1))),
            Way::Alone => 1,
        };
        let some = Machine { blocks, ..*machine };
        // What is compiled now is not measured.
        let _is_compiled = match way {
            Way::Groups => self.group_in(machine, pc, way).is_some(),
            Way::Alone => self.single_unchecked_for(machine).is_some(),
        };
        let start = Instant::now();
        // SAFETY: the caller's promise.
        let run = unsafe { self.run_blocks_in(&some, pc, way) };
        self.trial.record(way, start.elapsed(), run.ended * threads);
        run
    }

    unsafe fn run(&self, machine: &Machine, pc: Pc, threads: Range<u32>) {
        // SAFETY: the caller's promise.
        unsafe { self.run_in(machine, pc, threads, self.way(machine)) }
    }
}

impl CompiledKernel {
    /// Returns how the threads of a launch are run.
    fn way(&self, machine: &Machine) -> Way {
        match self.may_run_alone && is_large(machine) {
            _ if self.always_alone => Way::Alone,
            true => self.trial.way(),
            false => Way::Groups,
        }
    }

    /// Returns the way that is to be measured when blocks start, if any.
    fn way_to_measure(&self, machine: &Machine, pc: Pc) -> Option<Way> {
        let starts = self.may_run_alone
            && !self.always_alone
            && pc == self.kernel.code().functions[0].entry
            && is_large(machine)
            && !self.parts_often();
        if starts { self.trial.next() } else { None }
    }

    /// Runs blocks in one of both ways.
    ///
    /// # Safety
    /// As for [`Compiled::run_blocks`].
    unsafe fn run_blocks_in(&self, machine: &Machine, pc: Pc, way: Way) -> BlocksRun {
        let threads: u32 = machine.block.iter().product();
        // SAFETY: the table has an entry for each thread. It is read only between calls of the code
        // that fills it.
        let places = || unsafe { std::slice::from_raw_parts_mut(machine.pcs, threads as usize) };
        let group = self.group_in(machine, pc, way).filter(|(part, _)| threads.is_multiple_of(part.lanes));
        let Some((part, entry)) = group else {
            // SAFETY: the caller's promise.
            return unsafe { self.run_blocks_alone(machine, pc, way) };
        };
        // SAFETY: the caller's promise.
        let Outcome { ended, parted } = unsafe { part.run(machine, entry, 0..threads) };
        let blocks = ended + u32::from(ended < machine.blocks);
        let groups = blocks * (threads / part.lanes);
        if ended == machine.blocks {
            self.count(groups, parted, part.lanes, 0);
            return BlocksRun { ended, running: false };
        }
        let index = advance(machine.index, machine.grid, ended);
        let machine = &Machine { index, blocks: 1, ..*machine };
        let at = places()[0];
        // For a group that waits, only the entry of its first thread is set.
        let all_wait = at != EXITED
            && at & KEPT != 0
            && places().iter().step_by(part.lanes as usize).all(|&place| place == at);
        // SAFETY: the code has just returned. The rest is the caller's promise.
        let left = unsafe {
            part.expand(machine, 0..threads);
            self.run_parted(machine, 0..threads, part.lanes, parted)
        };
        self.count(groups, parted, part.lanes, left);
        if all_wait {
            // The threads have passed so many barriers that others should run before they continue
            // after this one.
            places().fill(((at & PC) + 1) | YIELDED);
        }
        BlocksRun { ended, running: true }
    }

    /// Runs blocks whose threads are not all in groups that pass barriers together.
    ///
    /// # Safety
    /// As for [`Compiled::run_blocks`].
    unsafe fn run_blocks_alone(&self, machine: &Machine, pc: Pc, way: Way) -> BlocksRun {
        let threads: u32 = machine.block.iter().product();
        let mut ended = 0;
        loop {
            let index = advance(machine.index, machine.grid, ended);
            let block = Machine { index, blocks: 1, whole: 0, ..*machine };
            if ended > 0 && machine.shared_length > 0 {
                // SAFETY: shared memory is as long as the machine says, and only this block uses it.
                unsafe { std::slice::from_raw_parts_mut(machine.shared, machine.shared_length as usize) }
                    .fill(0);
            }
            // SAFETY: the caller's promise. The table has an entry for each thread. It is read only
            // between calls of the code that fills it.
            let places = unsafe {
                self.run_in(&block, pc, 0..threads, way);
                std::slice::from_raw_parts(machine.pcs, threads as usize)
            };
            if places.iter().any(|&place| place != EXITED) {
                return BlocksRun { ended, running: true };
            }
            ended += 1;
            // A thread alone looks at the flags only after many passes.
            if ended == machine.blocks || is_cancelled(machine) {
                return BlocksRun { ended, running: false };
            }
        }
    }

    /// Runs threads in one of both ways.
    ///
    /// # Safety
    /// As for [`Compiled::run`].
    unsafe fn run_in(&self, machine: &Machine, pc: Pc, threads: Range<u32>, way: Way) {
        let within = |part: &Part| {
            let (first, last) =
                (threads.start.next_multiple_of(part.lanes), threads.end / part.lanes * part.lanes);
            (first < last).then_some(first..last)
        };
        let group = self.group_in(machine, pc, way);
        let Some((part, entry, Range { start: first, end: last })) =
            group.and_then(|(part, entry)| Some((part, entry, within(part)?)))
        else {
            // SAFETY: the caller's promise.
            return unsafe { self.run_single(machine, pc, threads) };
        };
        // SAFETY: the caller's promise.
        unsafe {
            if threads.start < first {
                self.run_single(machine, pc, threads.start..first);
            }
            let Outcome { parted, .. } = part.run(machine, entry, first..last);
            part.expand(machine, first..last);
            if last < threads.end {
                self.run_single(machine, pc, last..threads.end);
            }
            let left = self.run_parted(machine, first..last, part.lanes, parted);
            self.count((last - first) / part.lanes, parted, part.lanes, left);
        }
    }

    /// Runs threads one by one.
    unsafe fn run_single(&self, machine: &Machine, pc: Pc, threads: Range<u32>) {
        let functions = &self.kernel.code().functions;
        let function = functions.partition_point(|function| function.entry <= pc) - 1;
        let part = match self.single_unchecked_for(machine).filter(|_| function == 0) {
            Some(part) => Some(part),
            None => self.single(function),
        };
        match part.and_then(|part| Some((part, part.entry(pc)?))) {
            // SAFETY: the caller's promise.
            Some((part, entry)) => unsafe {
                self.runs[1].fetch_add(threads.len() as u64, Ordering::Relaxed);
                part.run(machine, entry, threads);
            },
            // Some registers exist only in compiled code, so the interpreter cannot take over. The
            // caller of the launch reports the panic.
            None => panic!("no code for single threads of {} at {pc}", self.kernel.name()),
        }
    }

    /// Returns the code for single threads with few checks, if the kernel may run one thread
    /// after the other and the pointers of the launch are as the code assumes.
    fn single_unchecked_for(&self, machine: &Machine) -> Option<&Part> {
        let part = self.may_run_alone.then(|| self.single_unchecked(self.is_row(machine.block)))??;
        // SAFETY: the machine has the parameters of the launch.
        unsafe { part.bounds_checks.hold(machine.params, emit::HOST) }.then_some(part)
    }

    /// Returns the code for groups and its entry at an instruction, if threads can and should run
    /// in groups.
    fn group_in(&self, machine: &Machine, pc: Pc, way: Way) -> Option<(&Part, u32)> {
        if self.parts_often() || way == Way::Alone {
            return None;
        }
        let few = self.group_for(machine.block, Checks::Few)?;
        // SAFETY: the machine has the parameters of the launch.
        let part = if !unsafe { few.bounds_checks.hold(machine.params, emit::HOST) } {
            self.group_for(machine.block, Checks::All)?
        } else if few.bounds_checks.hold_for(machine.block) {
            few
        } else {
            self.group_for(machine.block, Checks::Some)?
        };
        Some((part, part.entry(pc)?))
    }

    /// Returns whether code for blocks of one row is to run a block.
    fn is_row(&self, [_, y, z]: [u32; 3]) -> bool {
        self.may_be_row && y * z == 1
    }

    /// Returns the code for the largest groups that fit a block shape. A group never spans two rows
    /// of the block.
    fn group_for(&self, [x, y, z]: [u32; 3], checks: Checks) -> Option<&Part> {
        let fits = |&&lanes: &&u32| {
            lanes <= self.widest
                && (x.is_multiple_of(lanes) || lanes == GROUPS[0] && y == 1 && z == 1 && x > lanes)
        };
        self.group(*GROUPS.iter().rev().find(fits)?, checks, self.is_row([x, y, z]))
    }

    /// Continues threads that have left their group, one by one. Returns their number, with those
    /// that have left it for the interpreter and will continue alone.
    ///
    /// # Safety
    /// As for [`Compiled::run`]. A thread that has left its group is at an entry of the code for
    /// single threads, with its registers in memory.
    unsafe fn run_parted(&self, machine: &Machine, threads: Range<u32>, lanes: u32, parted: u32) -> u32 {
        let mut left = 0;
        if parted == 0 {
            return left;
        }
        // SAFETY: the table has an entry for each thread of the call.
        let place = |thread: u32| unsafe { *machine.pcs.wrapping_add(thread as usize) };
        let mut thread = threads.start;
        while thread < threads.end {
            let (at, first) = (place(thread), thread);
            // Neighbours are often at the same instruction.
            while thread < threads.end && place(thread) == at {
                thread += 1;
            }
            if at == EXITED {
                continue;
            }
            if at & (YIELDED | INTERPRET) != 0 || at & SINGLE == 0 {
                // Whole groups at one place are still together.
                let (start, end) = (first.next_multiple_of(lanes), thread / lanes * lanes);
                left += thread - first - end.saturating_sub(start);
            } else {
                left += thread - first;
                // SAFETY: the table has an entry for each thread of the call. The rest is the caller's
                // promise.
                unsafe {
                    // Code for single threads does not record which of them exit.
                    let places = machine.pcs.wrapping_add(first as usize);
                    std::slice::from_raw_parts_mut(places, (thread - first) as usize).fill(EXITED);
                    self.run_single(machine, at & PC, first..thread);
                }
            }
        }
        left
    }

    /// Counts groups that ran, of which some diverged and some threads have left.
    fn count(&self, groups: u32, parted: u32, lanes: u32, left: u32) {
        let wide = (u64::from(groups) * u64::from(lanes)).saturating_sub(left.into());
        self.runs[0].fetch_add(wide, Ordering::Relaxed);
        // A sample is enough, and host threads would contend for the counters.
        if self.groups.load(Ordering::Relaxed) < SAMPLE {
            self.groups.fetch_add(groups, Ordering::Relaxed);
            self.parted.fetch_add(parted, Ordering::Relaxed);
        }
    }

    /// Returns whether groups diverge so often that they are not worthwhile.
    fn parts_often(&self) -> bool {
        let groups = self.groups.load(Ordering::Relaxed);
        groups >= SAMPLE && self.parted.load(Ordering::Relaxed) > groups / 2
    }
}

/// Threads of a call that measures, at least, if the launch has blocks enough.
const MEASURED: u32 = 512;

/// Threads of a launch that is large enough for it to matter how they are run.
const LARGE: u64 = 8192;

/// Returns whether the launch was cancelled, by a fault or by the user.
fn is_cancelled(machine: &Machine) -> bool {
    machine.cancel.iter().any(|flag| {
        // SAFETY: each points to an atomic flag that lives as long as the launch.
        unsafe { AtomicBool::from_ptr(flag.cast_mut().cast()) }.load(Ordering::Relaxed)
    })
}

fn is_large(machine: &Machine) -> bool {
    let extents = machine.grid.iter().chain(&machine.block);
    extents.fold(1u64, |threads, &extent| threads.saturating_mul(extent.into())) >= LARGE
}

/// Returns the index of the block that is `blocks` after another.
fn advance(index: [u32; 3], grid: [u32; 3], blocks: u32) -> [u32; 3] {
    let mut rest = u64::from(blocks);
    std::array::from_fn(|i| {
        let sum = u64::from(index[i]) + rest;
        rest = sum / u64::from(grid[i]);
        (sum % u64::from(grid[i])) as u32
    })
}
