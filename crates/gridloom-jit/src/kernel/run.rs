//! Running compiled code: threads in groups where they can and should be, one by one where not.

use super::{Checks, CompiledKernel, GROUPS, Part};
use crate::emit::{self, SINGLE};
use gridloom_interp::code::Pc;
use gridloom_interp::compiled::{Came, Compiled, EXITED, INTERPRET, KEPT, Machine, PC, YIELDED};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Groups that are watched to see whether their threads stay together.
const SAMPLE: u32 = 1024;

/// What compiled code is called as.
type Code = unsafe extern "C" fn(*const Machine, u32, u32, u32) -> u64;

/// What a call of compiled code has come to.
struct Outcome {
    /// Blocks whose threads have all exited.
    ended: u32,
    /// Groups whose threads went different ways.
    parted: u32,
}

impl Part {
    /// # Safety
    /// As for [`Compiled::run`], at the entry of this number.
    unsafe fn run(&self, machine: &Machine, entry: u32, threads: Range<u32>) -> Outcome {
        // SAFETY: the code was generated with this signature, and is complete; the rest is the caller's promise.
        let outcome = unsafe {
            let code: Code = std::mem::transmute::<*const u8, Code>(self.code.entry());
            code(machine, entry, threads.start, threads.end)
        };
        Outcome { ended: outcome as u32, parted: (outcome >> 32) as u32 }
    }

    /// Puts what groups keep at a barrier where the interpreter looks for it.
    ///
    /// # Safety
    /// A call of [`run`](Self::run) with these threads has just returned.
    unsafe fn expand(&self, machine: &Machine, threads: Range<u32>) {
        for thread in threads.step_by(self.lanes as usize) {
            // SAFETY: the tables of the machine have entries for all threads of the call and their warps, and the frame is that of the
            // group, which the code has filled where it says so.
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
        // However much is checked, groups keep the same.
        self.group_for(block, Checks::Few)
            .map_or(0, |part| part.layout.bytes as usize * threads.div_ceil(part.lanes) as usize)
    }

    unsafe fn run_blocks(&self, machine: &Machine, pc: Pc) -> Came {
        let threads: u32 = machine.block.iter().product();
        // SAFETY: the table has an entry for each thread; it is looked at between calls of the code that fills it.
        let places = || unsafe { std::slice::from_raw_parts_mut(machine.pcs, threads as usize) };
        let group = self.group_at(machine, pc).filter(|(part, _)| threads.is_multiple_of(part.lanes));
        let Some((part, entry)) = group else {
            let alone = Machine { blocks: 1, whole: 0, ..*machine };
            // SAFETY: the caller's promise.
            unsafe { self.run(&alone, pc, 0..threads) };
            let ended = places().iter().all(|&place| place == EXITED);
            return Came { ended: ended.into(), running: !ended };
        };
        // SAFETY: the caller's promise.
        let Outcome { ended, parted } = unsafe { part.run(machine, entry, 0..threads) };
        let blocks = ended + u32::from(ended < machine.blocks);
        self.count(blocks * (threads / part.lanes), parted, part.lanes);
        if ended == machine.blocks {
            return Came { ended, running: false };
        }
        let index = advance(machine.index, machine.grid, ended);
        let machine = &Machine { index, blocks: 1, ..*machine };
        let at = places()[0];
        // Of a group that waits, the first thread is noted.
        let all_wait = at != EXITED
            && at & KEPT != 0
            && places().iter().step_by(part.lanes as usize).all(|&place| place == at);
        // SAFETY: the code has just returned; the rest is the caller's promise.
        unsafe {
            part.expand(machine, 0..threads);
            self.run_parted(machine, 0..threads, parted);
        }
        if all_wait {
            // They have passed so many barriers that others should run before they go on behind this one.
            places().fill(((at & PC) + 1) | YIELDED);
        }
        Came { ended, running: true }
    }

    unsafe fn run(&self, machine: &Machine, pc: Pc, threads: Range<u32>) {
        let within = |part: &Part| {
            let (first, last) =
                (threads.start.next_multiple_of(part.lanes), threads.end / part.lanes * part.lanes);
            (first < last).then_some(first..last)
        };
        let group = self.group_at(machine, pc);
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
            self.count((last - first) / part.lanes, parted, part.lanes);
            part.expand(machine, first..last);
            if last < threads.end {
                self.run_single(machine, pc, last..threads.end);
            }
            self.run_parted(machine, first..last, parted);
        }
    }
}

impl CompiledKernel {
    /// Runs threads one by one.
    unsafe fn run_single(&self, machine: &Machine, pc: Pc, threads: Range<u32>) {
        let functions = &self.kernel.code().functions;
        let function = functions.partition_point(|function| function.entry <= pc) - 1;
        match self.single(function).and_then(|part| Some((part, part.entry(pc)?))) {
            // SAFETY: the caller's promise.
            Some((part, entry)) => unsafe {
                self.runs[1].fetch_add(threads.len() as u64, Ordering::Relaxed);
                part.run(machine, entry, threads);
            },
            // Some registers are only in compiled code, so there is no way back; whoever runs the launch reports it.
            None => panic!("no code for single threads of {} at {pc}", self.kernel.name()),
        }
    }

    /// The code for groups, with its entry at an instruction, where threads can and should be run in groups.
    fn group_at(&self, machine: &Machine, pc: Pc) -> Option<(&Part, u32)> {
        if self.parts_often() {
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

    /// The code for the largest groups that blocks of a shape can be run in: groups are never across rows of the block.
    fn group_for(&self, [x, y, z]: [u32; 3], checks: Checks) -> Option<&Part> {
        let fits = |&&lanes: &&u32| {
            lanes <= self.widest
                && (x.is_multiple_of(lanes) || lanes == GROUPS[0] && y == 1 && z == 1 && x > lanes)
        };
        self.group(*GROUPS.iter().rev().find(fits)?, checks)
    }

    /// Goes on with threads that have left their group, one by one.
    ///
    /// # Safety
    /// As for [`Compiled::run`]: a thread that has left its group is at an entry of the code for single threads, with its registers in memory.
    unsafe fn run_parted(&self, machine: &Machine, threads: Range<u32>, parted: u32) {
        if parted == 0 {
            return;
        }
        // SAFETY: the table has an entry for each thread of the call.
        let place = |thread: u32| unsafe { *machine.pcs.wrapping_add(thread as usize) };
        let mut thread = threads.start;
        while thread < threads.end {
            let (at, first) = (place(thread), thread);
            // Neighbours mostly go the same way.
            while thread < threads.end && place(thread) == at {
                thread += 1;
            }
            if at != EXITED && at & (YIELDED | INTERPRET) == 0 && at & SINGLE != 0 {
                // SAFETY: the caller's promise.
                unsafe { self.run_single(machine, at & PC, first..thread) };
            }
        }
    }

    fn count(&self, groups: u32, parted: u32, lanes: u32) {
        self.runs[0].fetch_add(u64::from(groups) * u64::from(lanes), Ordering::Relaxed);
        // A sample is enough, and threads of the host would wait for each other here.
        if self.groups.load(Ordering::Relaxed) < SAMPLE {
            self.groups.fetch_add(groups, Ordering::Relaxed);
            self.parted.fetch_add(parted, Ordering::Relaxed);
        }
    }

    /// Whether groups part so often that they do not pay.
    fn parts_often(&self) -> bool {
        let groups = self.groups.load(Ordering::Relaxed);
        groups >= SAMPLE && self.parted.load(Ordering::Relaxed) > groups / 2
    }
}

/// The block that comes so many after another.
fn advance(index: [u32; 3], grid: [u32; 3], blocks: u32) -> [u32; 3] {
    let mut rest = u64::from(blocks);
    std::array::from_fn(|i| {
        let sum = u64::from(index[i]) + rest;
        rest = sum / u64::from(grid[i]);
        (sum % u64::from(grid[i])) as u32
    })
}
