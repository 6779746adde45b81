//! A kernel as machine code: compiled when it first runs, part by part.

use crate::anchor::Anchors;
use crate::emit::{self, Plan, SINGLE, Tables};
use crate::filled;
use crate::flow::{self, Flow, Role, SlotSet};
use crate::host;
use crate::idle;
use crate::invariant::Invariants;
use crate::kept::Layout;
use crate::lanewise;
use crate::lazy;
use crate::native::{self, Native};
use crate::range::{self, Ranges, Rows};
use crate::region::Regions;
use crate::shape::{Shape, Shapes};
use gridloom_interp::code::{Base, Op, Pc, Place};
use gridloom_interp::compiled::{Came, Compiled, EXITED, INTERPRET, KEPT, Machine, PC, YIELDED};
use gridloom_interp::{KernelCode, Space};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Threads that a group that is run in vectors may have.
const GROUPS: [u32; 3] = [8, 16, 32];

/// Vectors that the registers in use at once should take at most.
const VECTORS: u32 = 16;

/// Accesses that may be made thread by thread in larger groups.
const FEW: usize = 2;

/// Instructions of a function that is too long to be looked at for several sizes of blocks.
const LONG: usize = 2048;

/// Groups that are watched to see whether their threads stay together.
const SAMPLE: u32 = 1024;

/// What compiled code is called as.
type Code = unsafe extern "C" fn(*const Machine, u32, u32, u32) -> u64;

/// Which accesses to memory are checked that are likely to be good.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    /// Those to shared memory that could be outside in a block of as many threads as it seems to be meant for, and those whose address
    /// is not known to be near a pointer that the launch was given.
    Few,
    /// The same, in blocks of any size.
    Some,
    All,
}

/// The code of one function, for groups of one size.
struct Part {
    code: host::Machine,
    /// What the code refers to.
    _tables: Tables,
    entries: Vec<Pc>,
    /// Threads of a group.
    lanes: u32,
    /// What groups keep between barriers.
    layout: Layout,
    /// What the code takes for granted of pointers.
    anchors: Anchors,
}

/// What a call of compiled code has come to.
struct Outcome {
    /// Blocks whose threads have all exited.
    ended: u32,
    /// Groups whose threads went different ways.
    parted: u32,
}

impl Part {
    fn entry(&self, pc: Pc) -> Option<u32> {
        self.entries.binary_search(&pc).ok().map(|index| index as u32)
    }

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

/// The texts of a compiled kernel, for a person to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Which part of the kernel it is.
    pub name: String,
    /// Cranelift's intermediate code.
    pub clif: String,
    /// Machine code.
    pub assembly: String,
}

/// A kernel as machine code.
pub struct CompiledKernel {
    kernel: Arc<KernelCode>,
    /// For each instruction whether it is an entry of the code for single threads.
    entries: Vec<bool>,
    uses_local: bool,
    /// For each function the code for single threads, where it could be compiled.
    single: Vec<OnceLock<Option<Part>>>,
    /// The code of the kernel itself for groups of each size, where it could be compiled, by how much it checks.
    groups_of: [[OnceLock<Option<Part>>; 3]; GROUPS.len()],
    /// Threads of the largest group that pays.
    widest: u32,
    /// Groups run, and those of them whose threads parted.
    groups: AtomicU32,
    parted: AtomicU32,
}

impl CompiledKernel {
    /// Prepares a kernel to be compiled.
    ///
    /// # Errors
    /// Why the kernel is left to the interpreter.
    pub fn new(kernel: Arc<KernelCode>) -> Result<Self, String> {
        let code = kernel.code();
        if let Some(reason) = flow::refusal(code) {
            return Err(reason);
        }
        let mut entries = vec![false; code.instructions.len() + 1];
        for function in 0..code.functions.len() {
            let flow = Flow::of(code, function);
            if let Some(reason) = flow.too_large() {
                return Err(reason);
            }
            for pc in entries_of(&flow, true) {
                entries[pc as usize] = true;
            }
        }
        let uses_local = code.instructions.iter().any(|instruction| {
            let space = match &instruction.op {
                Op::Load(load) => load.place.space,
                Op::Store(store) => store.place.space,
                Op::Atomic(atomic) => atomic.place.space,
                _ => return false,
            };
            matches!(space, Space::Local | Space::Generic)
        });
        let single = code.functions.iter().map(|_| OnceLock::new()).collect();
        let mut this = CompiledKernel {
            kernel,
            entries,
            uses_local,
            single,
            groups_of: Default::default(),
            widest: 8,
            groups: AtomicU32::new(0),
            parted: AtomicU32::new(0),
        };
        host::target()?;
        this.widest = this.find_widest();
        Ok(this)
    }

    /// Makes groups as large as 8, 16 or 32 threads, whether or not that pays. For tests of groups of each size.
    #[doc(hidden)]
    pub fn with_groups_of(mut self, threads: u32) -> Self {
        self.widest = threads;
        self
    }

    /// Whether threads of a warp are run in vectors.
    pub fn is_vectorized(&self) -> bool {
        self.group(self.widest, Checks::Few).is_some()
    }

    /// Compiles all of it now rather than when it first runs.
    ///
    /// # Errors
    /// What could not be compiled, which the interpreter then runs.
    pub fn compile_all(&self) -> Result<(), String> {
        self.compile(0, self.widest, Checks::Few, false).map_err(|error| format!("in groups: {error}"))?;
        for function in 0..self.kernel.code().functions.len() {
            self.compile(function, 1, Checks::All, false)?;
        }
        Ok(())
    }

    /// Its code, as texts.
    ///
    /// # Errors
    /// What could not be compiled.
    pub fn listings(&self) -> Result<Vec<Listing>, String> {
        let mut listings = Vec::new();
        let functions = self.kernel.code().functions.len();
        let parts = (self.is_vectorized().then_some((0, self.widest)).into_iter())
            .chain((0..functions).map(|function| (function, 1)));
        for (function, lanes) in parts {
            let part = self.compile(function, lanes, Checks::Few, true)?;
            let symbol = self.kernel.code().functions[function].symbol;
            let name = self.kernel.module().symbol(gridloom_ptx::SymbolId(symbol)).name();
            let name = match lanes {
                1 => format!("{name}, one thread"),
                lanes => format!("{name}, {lanes} threads"),
            };
            if let Some([clif, assembly]) = part.code.listing.clone() {
                listings.push(Listing { name, clif, assembly });
            }
        }
        Ok(listings)
    }

    fn compile(&self, function: usize, lanes: u32, checks: Checks, list: bool) -> Result<Part, String> {
        let code = self.kernel.code();
        let flow = Flow::of(code, function);
        let natives: Vec<Option<Native>> = flow
            .range
            .clone()
            .map(|pc| native::native(self.kernel.module(), code, function, flow.instruction(pc)))
            .collect();
        let slots = code.functions[function].slots;
        let shapes = if lanes == 1 { Shapes::single(slots) } else { Shapes::of(&flow, &natives, slots) };
        let entries = entries_of(&flow, lanes == 1);
        let invariants = Invariants::of(&flow, &natives, self.kernel.param_bytes());
        let row = match (lanes, checks) {
            (2.., Checks::Few) => self.likely_row(&flow, &natives, lanes),
            _ => Rows::MOST,
        };
        let ranges = Ranges::of(&flow, &natives, Rows { most: row, lanes });
        let anchors = match (lanes, checks) {
            (1, _) | (_, Checks::All) => Anchors::none(),
            _ => Anchors::of(&flow, &natives, (&ranges, row), self.kernel.param_bytes()),
        };
        let storage = emit::storage(&flow, &natives, &shapes);
        let lazy = lazy::registers(&flow, &natives);
        let lanewise = match lanes {
            1 => vec![false; slots as usize],
            _ => lanewise::registers(&flow, &natives, &shapes, &storage),
        };
        let layout = match lanes {
            1 => Layout::none(),
            _ => Layout::of(&flow, (&shapes, &invariants), (&storage, &lazy), lanes),
        };
        let (regions, idle) = match lanes {
            1 => (Regions::one(&flow, &entries), Vec::new()),
            _ => {
                let regions = Regions::of(&flow, &entries, &layout);
                let idle = idle::of(&flow, &natives, &invariants, &layout, &regions, &entries);
                (regions, idle)
            }
        };
        let filled = if lanes == 1 { None } else { filled::element(&flow, &natives, &ranges) };
        let plan = Plan {
            kernel: &self.kernel,
            function,
            flow: &flow,
            natives: &natives,
            shapes: &shapes,
            invariants: &invariants,
            ranges: &ranges,
            anchors: &anchors,
            lanewise: &lanewise,
            storage: &storage,
            lazy: &lazy,
            layout: &layout,
            regions: &regions,
            idle: &idle,
            filled,
            lanes,
            entries: &entries,
        };
        let mut tables = Tables::default();
        let code = host::Machine::compile(list, |func, isa| {
            tables = emit::build(func, isa, &plan)?;
            Ok(())
        })?;
        Ok(Part { code, _tables: tables, entries, lanes, layout, anchors })
    }

    /// The most threads of a row with which as many accesses to shared memory as possible are inside it whatever they are given.
    fn likely_row(&self, flow: &Flow<'_>, natives: &[Option<Native>], lanes: u32) -> u32 {
        let accesses = || flow.range.clone().filter_map(|pc| range::Access::of(flow, pc));
        let bytes = self.kernel.shared_bytes().into();
        let in_shared = |access: &range::Access<'_>| access.place.space == Space::Shared;
        if bytes == 0 || flow.range.len() > LONG || !accesses().any(|access| in_shared(&access)) {
            return Rows::MOST;
        }
        let mut best = (Rows::MOST, 0);
        let mut row = Rows::MOST;
        while row >= GROUPS[2] {
            let ranges = Ranges::of(flow, natives, Rows { most: row, lanes });
            let inside =
                accesses().filter(|access| in_shared(access) && ranges.is_inside(access, bytes)).count();
            if inside > best.1 {
                best = (row, inside);
            }
            row /= 2;
        }
        best.0
    }

    fn single(&self, function: usize) -> Option<&Part> {
        self.single[function].get_or_init(|| self.compile(function, 1, Checks::All, false).ok()).as_ref()
    }

    /// The code for groups of a size, which is one of [`GROUPS`].
    fn group(&self, lanes: u32, checks: Checks) -> Option<&Part> {
        let index = GROUPS.iter().position(|&size| size == lanes)?;
        let part = &self.groups_of[index][checks as usize];
        part.get_or_init(|| self.compile(0, lanes, checks, false).ok()).as_ref()
    }

    /// The largest groups whose registers have room in those of the machine. What is done thread by thread, with what lies anywhere in memory,
    /// is written out for each, so that larger ones do not pay; unless there is little of it beside rows of bytes, of which a small group
    /// would take little at a time from where it is far to.
    fn find_widest(&self) -> u32 {
        let code = self.kernel.code();
        let flow = Flow::of(code, 0);
        let natives: Vec<Option<Native>> = flow
            .range
            .clone()
            .map(|pc| native::native(self.kernel.module(), code, 0, flow.instruction(pc)))
            .collect();
        let function = &code.functions[0];
        let shapes = Shapes::of(&flow, &natives, function.slots);
        let (mut scattered, mut packed) = (0, false);
        for pc in flow.range.clone() {
            let in_row = match &flow.instruction(pc).op {
                Op::Load(load) => {
                    let row = in_row(&shapes, &load.place, load.extend.size, load.destinations.len());
                    let narrow = row == Some(Row::Packed) && load.extend.signed_to.is_none();
                    packed |= narrow;
                    row == Some(Row::Whole) || narrow
                }
                Op::Store(store) => {
                    in_row(&shapes, &store.place, store.size, store.sources.len()) == Some(Row::Whole)
                }
                Op::Map(_) if natives[(pc - flow.range.start) as usize].is_none() => return GROUPS[0],
                Op::Atomic(_) => false,
                _ => true,
            };
            scattered += usize::from(!in_row);
        }
        if scattered > if packed { FEW } else { 0 } {
            return GROUPS[0];
        }
        let storage = emit::storage(&flow, &natives, &shapes);
        let lanewise = lanewise::registers(&flow, &natives, &shapes, &storage);
        // Vectors for eight threads.
        let vectors = |live: &SlotSet| {
            let varying =
                live.iter().filter(|&slot| shapes.get(slot) == Shape::Varying && !lanewise[slot.0 as usize]);
            varying.map(|slot| if function.type_of(slot).bits() == 64 { 4 } else { 2 }).sum::<u32>()
        };
        let blocks = flow.blocks.iter();
        let most = blocks.flat_map(|block| flow.live_before(block)).map(|live| vectors(&live)).max();
        let fits = |&&lanes: &&u32| most.unwrap_or(0) * (lanes / 8) <= VECTORS;
        GROUPS.iter().rev().find(fits).copied().unwrap_or(GROUPS[0])
    }

    /// Runs threads one by one.
    unsafe fn run_single(&self, machine: &Machine, pc: Pc, threads: Range<u32>) {
        let functions = &self.kernel.code().functions;
        let function = functions.partition_point(|function| function.entry <= pc) - 1;
        match self.single(function).and_then(|part| Some((part, part.entry(pc)?))) {
            // SAFETY: the caller's promise.
            Some((part, entry)) => unsafe {
                part.run(machine, entry, threads);
            },
            // Some registers are only in compiled code, so there is no way back; whoever runs the launch reports it.
            None => panic!("no code for single threads of {} at {pc}", self.kernel.name()),
        }
    }
}

/// How an access of a group is made at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// As vectors, or as one element for all.
    Whole,
    /// As vectors of elements that are narrower than a register.
    Packed,
}

/// Whether an access of a group is one of elements that lie in a row, or of one element for all.
fn in_row(shapes: &Shapes, place: &Place, size: u32, elements: usize) -> Option<Row> {
    let shared = !matches!(place.space, Space::Local | Space::Generic);
    let shape = match place.base {
        Base::Source(source) => shapes.source(source),
        Base::Frame => Shape::Varying,
    };
    match shape {
        _ if !shared => None,
        Shape::Uniform => Some(Row::Whole),
        Shape::Affine(step) if elements == 1 && step == i64::from(size) => match size {
            4 | 8 => Some(Row::Whole),
            1 | 2 => Some(Row::Packed),
            _ => None,
        },
        _ => None,
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

/// Where the code of a function can be entered: at its start, behind each instruction that is left to the interpreter, at the
/// head of each loop that is left to let others run, and, on request, at every block.
fn entries_of(flow: &Flow<'_>, every_block: bool) -> Vec<Pc> {
    let mut entries = Vec::new();
    for block in &flow.blocks {
        let pc = block.range.start;
        let behind = pc > flow.range.start && flow.role(pc - 1) == Role::Interpreted;
        let loops = flow.loops.iter().any(|&(head, waits)| head == pc && waits);
        let wanted = every_block || pc == flow.range.start || behind || loops;
        if wanted && flow.role(pc) != Role::Interpreted {
            entries.push(pc);
        }
    }
    if entries.is_empty() {
        entries.push(flow.range.start);
    }
    entries
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
        self.count((ended + 1) * (threads / part.lanes), parted);
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
            self.count((last - first) / part.lanes, parted);
            part.expand(machine, first..last);
            if last < threads.end {
                self.run_single(machine, pc, last..threads.end);
            }
            self.run_parted(machine, first..last, parted);
        }
    }
}

impl CompiledKernel {
    /// The code for groups, with its entry at an instruction, where threads can and should be run in groups.
    fn group_at(&self, machine: &Machine, pc: Pc) -> Option<(&Part, u32)> {
        if self.parts_often() {
            return None;
        }
        let few = self.group_for(machine.block, Checks::Few)?;
        // SAFETY: the machine has the parameters of the launch.
        let part = if !unsafe { few.anchors.hold(machine.params, emit::HOST) } {
            self.group_for(machine.block, Checks::All)?
        } else if few.anchors.hold_for(machine.block) {
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

    fn count(&self, groups: u32, parted: u32) {
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

impl std::fmt::Debug for CompiledKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CompiledKernel({})", self.kernel.name())
    }
}
