//! A kernel as machine code. Each part is compiled when it first runs.

mod run;
mod trial;
mod width;

use crate::analysis::bounds_checks::BoundsChecks;
use crate::analysis::divergence::Divergence;
use crate::analysis::flow::{self, Flow, Role};
use crate::analysis::idle_threads;
use crate::analysis::lanewise;
use crate::analysis::nan_canonicalization;
use crate::analysis::range::{Ranges, RowLength};
use crate::analysis::region::Regions;
use crate::analysis::rematerialization::Rematerialization;
use crate::analysis::shared_init;
use crate::analysis::uniformity::Uniformity;
use crate::analysis::unrolled;
use crate::emit::{self, Plan, Tables};
use crate::host;
use crate::native::{self, Native};
use crate::spill_frame::FrameLayout;
use crate::wide;
use gridloom_interp::code::{Instruction, Op, Pc};
use gridloom_interp::{KernelCode, Space};
use gridloom_ptx::{Dim, DimSpecial, SpecialReg};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The sizes of groups that run in vectors, in threads.
const GROUPS: [u32; 3] = [8, 16, 32];

/// How many of the accesses that are probably valid are still checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checks {
    /// Checks accesses to shared memory that could be out of bounds in a block of the size the
    /// kernel seems to be written for, and accesses whose address is not known to be near a pointer
    /// parameter.
    Few,
    /// Checks the same accesses, for blocks of any size.
    Some,
    All,
}

/// The code of one function, for groups of one size.
struct Part {
    code: host::Machine,
    /// The data that the code refers to.
    _tables: Tables,
    entries: Vec<Pc>,
    /// The number of threads of a group.
    lanes: u32,
    /// What groups keep in their spill frame between barriers.
    layout: FrameLayout,
    /// What the code assumes about pointers.
    bounds_checks: BoundsChecks,
}

impl Part {
    fn entry(&self, pc: Pc) -> Option<u32> {
        self.entries.binary_search(&pc).ok().map(|index| index as u32)
    }
}

/// How many threads of a kernel ran in vectors and one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// The number run in vectors.
    pub wide: u64,
    /// The number run one by one.
    pub alone: u64,
}

impl Runs {
    /// Returns the share of threads that ran in vectors, or `None` if none ran.
    pub fn share_wide(self) -> Option<f64> {
        let all = self.wide + self.alone;
        (all > 0).then(|| self.wide as f64 / all as f64)
    }
}

/// The listing of a compiled kernel, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The part of the kernel.
    pub name: String,
    /// The intermediate code (CLIF) of Cranelift.
    pub clif: String,
    /// The machine code. On hosts with AVX-512 it is the bytes of the instructions, unless the
    /// feature `disassembly` is on.
    pub assembly: String,
}

/// A kernel as machine code.
pub struct CompiledKernel {
    kernel: Arc<KernelCode>,
    /// For each instruction, whether it is an entry of the code for single threads.
    entries: Vec<bool>,
    uses_local: bool,
    /// The code for single threads of each function, if it could be compiled.
    single: Vec<OnceLock<Option<Part>>>,
    /// The kernel's own code for single threads with few checks, for kernels that mostly run it.
    /// There is also code for blocks of one row.
    single_unchecked: [OnceLock<Option<Part>>; 2],
    /// The kernel's own code for groups, if it could be compiled, by group size and by how much it
    /// checks, for any block and for those of one row.
    groups_of: [[[OnceLock<Option<Part>>; 2]; 3]; GROUPS.len()],
    /// Whether there is code of its own for blocks of one row: it reads no other axis of the
    /// thread's index.
    may_be_row: bool,
    /// The size of the largest groups that are worthwhile.
    widest: u32,
    /// Whether large launches may be faster one thread after the other.
    may_run_alone: bool,
    /// Whether all launches do.
    always_alone: bool,
    trial: trial::Trial,
    /// Whether vectors have 128 bits also where the host has longer ones.
    narrow: bool,
    /// How many groups ran, and how many of those diverged.
    groups: AtomicU32,
    parted: AtomicU32,
    /// How often threads ran in groups, and how often alone.
    runs: [AtomicU64; 2],
}

impl CompiledKernel {
    /// Prepares a kernel to be compiled.
    ///
    /// # Errors
    /// Returns why the kernel must be interpreted.
    pub fn new(kernel: Arc<KernelCode>) -> Result<Self, String> {
        let code = kernel.code();
        if let Some(reason) = flow::refusal(code) {
            return Err(reason);
        }
        let mut entries = vec![false; code.instructions.len() + 1];
        // Functions that only report a failure are left to the interpreter.
        let mut failing = vec![false; code.instructions.len()];
        for function in 0..code.functions.len() {
            let flow = Flow::of(code, function, 1);
            if function > 0 && flow.never_returns() {
                failing[flow.range.start as usize..flow.range.end as usize].fill(true);
                continue;
            }
            if let Some(reason) = flow.too_large() {
                return Err(reason);
            }
            for pc in entries_of(&flow, true) {
                entries[pc as usize] = true;
            }
        }
        let compiled = code.instructions.iter().zip(&failing).filter(|(_, failing)| !**failing);
        let uses_local = compiled.into_iter().any(|(instruction, _)| {
            let space = match &instruction.op {
                Op::Load(load) => load.operand.space,
                Op::Store(store) => store.operand.space,
                Op::Atomic(atomic) => atomic.operand.space,
                _ => return false,
            };
            matches!(space, Space::Local | Space::Generic)
        });
        let reads_other_axis = |instruction: &Instruction| {
            let Op::Special { register, .. } = instruction.op else { return false };
            matches!(register, SpecialReg::Dim(DimSpecial::Tid, Dim::Y | Dim::Z))
        };
        let may_be_row = !code.instructions.iter().any(reads_other_axis);
        let single = code.functions.iter().map(|_| OnceLock::new()).collect();
        let mut this = CompiledKernel {
            kernel,
            entries,
            uses_local,
            single,
            single_unchecked: Default::default(),
            groups_of: Default::default(),
            may_be_row,
            widest: 8,
            may_run_alone: false,
            always_alone: false,
            trial: trial::Trial::default(),
            narrow: false,
            groups: AtomicU32::new(0),
            parted: AtomicU32::new(0),
            runs: Default::default(),
        };
        host::target()?;
        this.widest = this.find_widest();
        this.may_run_alone = this.find_may_run_alone();
        Ok(this)
    }

    /// Limits groups to 8, 16 or 32 threads, whether or not that is worthwhile. For tests of each
    /// size.
    #[doc(hidden)]
    pub fn with_groups_of(mut self, threads: u32) -> Self {
        (self.widest, self.may_run_alone) = (threads, false);
        self
    }

    /// Runs all threads one after the other, whether or not that is faster. For tests of that code.
    #[doc(hidden)]
    pub fn with_threads_alone(mut self) -> Self {
        (self.may_run_alone, self.always_alone) = (true, true);
        self
    }

    /// Limits vectors to 128 bits, so that Cranelift compiles everything. For tests of both
    /// generators.
    #[doc(hidden)]
    pub fn with_narrow_vectors(mut self) -> Self {
        self.narrow = true;
        self
    }

    /// Returns whether threads run in vectors.
    pub fn is_vectorized(&self) -> bool {
        self.group(self.widest, Checks::Few, self.may_be_row).is_some()
    }

    /// Returns how many threads have run in vectors and how many one by one, counted once each time
    /// they enter compiled code. A thread that leaves its group and continues alone has run alone,
    /// because that may be nearly all of its work.
    pub fn runs(&self) -> Runs {
        let [wide, alone] = [&self.runs[0], &self.runs[1]].map(|count| count.load(Ordering::Relaxed));
        Runs { wide, alone }
    }

    /// Compiles what most launches run, now rather than when it first runs.
    pub fn compile_first(&self) {
        if !self.is_vectorized() {
            self.single(0);
        }
    }

    /// Returns how many bytes of machine code exist for the kernel so far.
    pub fn code_bytes(&self) -> usize {
        let groups = self.groups_of.iter().flatten().flatten();
        let parts = self.single.iter().chain(&self.single_unchecked).chain(groups);
        parts.filter_map(|part| part.get()?.as_ref()).map(|part| part.code.bytes).sum()
    }

    /// Compiles everything now instead of when it first runs.
    ///
    /// # Errors
    /// Returns what could not be compiled. The interpreter runs that.
    pub fn compile_all(&self) -> Result<(), String> {
        self.compile(0, self.widest, Checks::Few, self.may_be_row, false)
            .map_err(|error| format!("in groups: {error}"))?;
        for function in 0..self.kernel.code().functions.len() {
            self.compile(function, 1, Checks::All, false, false)?;
        }
        Ok(())
    }

    /// Returns its code as text.
    ///
    /// # Errors
    /// Returns what could not be compiled.
    pub fn listings(&self) -> Result<Vec<Listing>, String> {
        let mut listings = Vec::new();
        let functions = self.kernel.code().functions.len();
        let parts = (self.is_vectorized().then_some((0, self.widest)).into_iter())
            .chain((0..functions).map(|function| (function, 1)));
        for (function, lanes) in parts {
            let part = self.compile(function, lanes, Checks::Few, self.may_be_row && function == 0, true)?;
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

    /// Compiles a function, on request for blocks of one row.
    fn compile(
        &self,
        function: usize,
        lanes: u32,
        checks: Checks,
        is_row: bool,
        list: bool,
    ) -> Result<Part, String> {
        let code = self.kernel.code();
        let flow = Flow::of(code, function, lanes);
        let natives: Vec<Option<Native>> = flow
            .range
            .clone()
            .map(|pc| native::native(self.kernel.module(), code, function, flow.instruction(pc)))
            .collect();
        let slots = code.functions[function].slots;
        let (shapes, divergence) = match lanes {
            1 => (Uniformity::single(slots), Divergence::none(&flow)),
            _ => Uniformity::of(&flow, &natives, slots, lanes),
        };
        let entries = entries_of(&flow, lanes == 1);
        let rematerialization = Rematerialization::of(&flow, &natives, self.kernel.param_bytes());
        let row = match (lanes, checks) {
            (2.., Checks::Few) => self.likely_row(&flow, &natives, lanes),
            _ => RowLength::MOST,
        };
        let ranges = Ranges::of(&flow, &natives, RowLength { most: row, lanes });
        let bounds_checks = match (lanes, checks) {
            (_, Checks::All) => BoundsChecks::none(),
            _ => BoundsChecks::of(&flow, &natives, (&ranges, row), self.kernel.param_bytes()),
        };
        let storage = emit::storage(&flow, &natives, &shapes);
        let noncanonical_nan = nan_canonicalization::registers(&flow, &natives);
        let collective = flow.range.clone().any(|pc| matches!(flow.instruction(pc).op, Op::Collective(_)));
        let lanewise = match lanes {
            1 => vec![false; slots as usize],
            // Warps make scattered accesses in loops, with addresses from vectors.
            32 if collective => vec![false; slots as usize],
            _ => {
                lanewise::registers(&flow, &natives, &shapes, &storage, wide::is_available() && !self.narrow)
            }
        };
        let layout = match lanes {
            1 => FrameLayout::none(),
            _ => FrameLayout::of(&flow, (&shapes, &rematerialization), (&storage, &noncanonical_nan), lanes),
        };
        let (regions, idle) = match lanes {
            1 => (Regions::one(&flow, &entries), Vec::new()),
            _ => {
                let regions = Regions::of(&flow, &entries, &layout);
                let idle = idle_threads::of(&flow, &natives, &rematerialization, &layout, &regions, &entries);
                (regions, idle)
            }
        };
        let unrolled = match (lanes, checks) {
            (1, Checks::Few) => unrolled::of(&flow, &natives),
            _ => Vec::new(),
        };
        let filled = if lanes == 1 { None } else { shared_init::element(&flow, &natives, &ranges) };
        let mut plan = Plan {
            kernel: &self.kernel,
            function,
            flow: &flow,
            natives: &natives,
            uniformity: &shapes,
            divergence: &divergence,
            rematerialization: &rematerialization,
            ranges: &ranges,
            bounds_checks: &bounds_checks,
            lanewise: &lanewise,
            storage: &storage,
            noncanonical_nan: &noncanonical_nan,
            frame_layout: &layout,
            regions: &regions,
            idle_threads: &idle,
            shared_init: filled,
            unrolled: &unrolled,
            is_row,
            lanes,
            vector_bytes: 16,
            entries: &entries,
        };
        let mut tables = Tables::default();
        if wide::is_available() && !self.narrow {
            plan.vector_bytes = wide::vector_bytes(lanes);
            let code = host::Machine::compile_wide(list, |func, isa| {
                tables = emit::build(func, isa, &plan)?;
                Ok(())
            });
            if let Ok(code) = code {
                return Ok(Part { code, _tables: tables, entries, lanes, layout, bounds_checks });
            }
            // The generator for wide vectors does not support some operation of the kernel.
            plan.vector_bytes = 16;
        }
        let code = host::Machine::compile(list, |func, isa| {
            tables = emit::build(func, isa, &plan)?;
            Ok(())
        })?;
        Ok(Part { code, _tables: tables, entries, lanes, layout, bounds_checks })
    }

    fn single(&self, function: usize) -> Option<&Part> {
        let part = &self.single[function];
        part.get_or_init(|| self.compile(function, 1, Checks::All, false, false).ok()).as_ref()
    }

    /// Returns the kernel's own code for single threads that checks few accesses.
    fn single_unchecked(&self, is_row: bool) -> Option<&Part> {
        let part = &self.single_unchecked[usize::from(is_row)];
        part.get_or_init(|| self.compile(0, 1, Checks::Few, is_row, false).ok()).as_ref()
    }

    /// Returns the code for groups of one of the sizes in [`GROUPS`].
    fn group(&self, lanes: u32, checks: Checks, is_row: bool) -> Option<&Part> {
        let index = GROUPS.iter().position(|&size| size == lanes)?;
        let part = &self.groups_of[index][checks as usize][usize::from(is_row)];
        part.get_or_init(|| self.compile(0, lanes, checks, is_row, false).ok()).as_ref()
    }
}

/// Returns the instructions where the code of a function can be entered: its start, the instruction
/// after each one that is interpreted, the head of each loop that is left to let others run and, on
/// request, every basic block.
fn entries_of(flow: &Flow<'_>, every_block: bool) -> Vec<Pc> {
    let mut entries = Vec::new();
    for block in &flow.blocks {
        let pc = block.range.start;
        let behind = pc > flow.range.start && flow.role(pc - 1) == Role::Interpreted;
        let loops = flow.loops.iter().any(|&(head, waits)| head == pc && (waits || flow.enters_passes()));
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

impl std::fmt::Debug for CompiledKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CompiledKernel({})", self.kernel.name())
    }
}
