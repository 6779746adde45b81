//! How many threads run at once, and how long the rows of blocks are assumed to be.

use super::{CompiledKernel, GROUPS};
use crate::analysis::flow::{Flow, Role, SlotSet};
use crate::analysis::lanewise;
use crate::analysis::range::{self, Ranges, RowLength};
use crate::analysis::uniformity::{Shape, Uniformity};
use crate::emit;
use crate::host;
use crate::native::{self, Kind, Native};
use crate::wide;
use gridloom_interp::Space;
use gridloom_interp::code::{Base, MemoryOperand, Op, Pc};
use gridloom_interp::lanes::Source;
use std::ops::Range;

/// The most vectors that the registers in use at once should occupy, of 16 bytes or of those of the
/// generator for wide vectors.
const VECTORS: u32 = 16;
const WIDE_VECTORS: u32 = 24;

/// The most scattered accesses with which larger groups are still worthwhile.
const FEW: usize = 2;

/// The most gathers and scatters with which groups of more than 16 are worthwhile.
const SEVERAL: usize = 12;

/// The most scattered or strided accesses with which groups of 16 are worthwhile where vectors are
/// wide.
const MANY: usize = 12;

/// The length, in instructions, above which a function is not analysed for several block sizes.
const LONG: usize = 2048;

impl CompiledKernel {
    /// Returns the greatest row length for which the most accesses to shared memory are known to be
    /// in bounds.
    pub(super) fn likely_row(&self, flow: &Flow<'_>, natives: &[Option<Native>], lanes: u32) -> u32 {
        let accesses = || flow.range.clone().filter_map(|pc| range::Access::of(flow, pc));
        let bytes = self.kernel.shared_bytes().into();
        let in_shared = |access: &range::Access<'_>| access.operand.space == Space::Shared;
        if bytes == 0 || flow.range.len() > LONG || !accesses().any(|access| in_shared(&access)) {
            return RowLength::MOST;
        }
        let mut best = (RowLength::MOST, 0);
        let mut row = RowLength::MOST;
        while row >= GROUPS[2] {
            let ranges = Ranges::of(flow, natives, RowLength { most: row, lanes });
            let inside =
                accesses().filter(|access| in_shared(access) && ranges.is_inside(access, bytes)).count();
            if inside > best.1 {
                best = (row, inside);
            }
            row /= 2;
        }
        best.0
    }

    /// Returns whether most of what is in loops may be faster one thread after the other.
    pub(super) fn find_may_run_alone(&self) -> bool {
        let code = self.kernel.code();
        let flow = Flow::of(code, 0, GROUPS[0]);
        if flow.loops.is_empty() || flow.range.clone().any(|pc| flow.role(pc) == Role::Interpreted) {
            return false;
        }
        let natives: Vec<Option<Native>> = flow
            .range
            .clone()
            .map(|pc| native::native(self.kernel.module(), code, 0, flow.instruction(pc)))
            .collect();
        let (shapes, _) = Uniformity::of(&flow, &natives, code.functions[0].slots, GROUPS[0]);
        may_be_better_alone(&flow, &natives, &shapes)
    }

    /// Returns the size of the largest groups whose registers fit into those of the machine.
    /// Scattered accesses that are emitted once per thread are no faster in larger groups, so these
    /// do not help if there are many of them. Gathers and scatters are, as long as they are few. If
    /// there are only a few, beside rows of bytes, a larger group is better: a small one would load
    /// few bytes of each row. A few accesses at known distances in shared memory are no reason
    /// against groups of 16. Nor are a few scattered ones if a vector holds 16 words.
    pub(super) fn find_widest(&self) -> u32 {
        let code = self.kernel.code();
        let flow = Flow::of(code, 0, GROUPS[0]);
        if flow
            .range
            .clone()
            .any(|pc| matches!(flow.instruction(pc).op, Op::Collective(_) | Op::ActiveMask { .. }))
        {
            // A warp executes collectives by itself.
            return GROUPS[2];
        }
        let natives: Vec<Option<Native>> = flow
            .range
            .clone()
            .map(|pc| native::native(self.kernel.module(), code, 0, flow.instruction(pc)))
            .collect();
        let function = &code.functions[0];
        let (shapes, _) = Uniformity::of(&flow, &natives, function.slots, GROUPS[0]);
        let (mut scattered, mut strided, mut packed) = (0, 0, false);
        let (mut accesses, mut records) = (0, 0);
        let mut gathers = Vec::new();
        for pc in flow.range.clone() {
            if let Some((operand, elements)) = accessed(&flow.instruction(pc).op) {
                accesses += 1;
                records += usize::from(is_in_large_record(&shapes, operand, elements));
            }
            let in_row = match &flow.instruction(pc).op {
                Op::Load(load) => {
                    let row = in_row(&shapes, &load.operand, load.extend.size, load.destinations.len());
                    let narrow =
                        row == Some(Row::Packed) && load.extend.signed_to.is_none_or(|bits| bits <= 32);
                    packed |= narrow;
                    strided += usize::from(row == Some(Row::Strided));
                    matches!(row, Some(Row::Whole | Row::Strided)) || narrow
                }
                Op::Store(store) => {
                    let row = in_row(&shapes, &store.operand, store.size, store.sources.len());
                    strided += usize::from(row == Some(Row::Strided));
                    row.is_some()
                }
                Op::Map(_) if natives[(pc - flow.range.start) as usize].is_none() => return GROUPS[0],
                Op::Atomic(_) => false,
                _ => true,
            };
            match wide::is_available() && is_gathered(&shapes, &flow.instruction(pc).op) {
                true if !in_row => gathers.push(pc),
                true => {}
                false => scattered += usize::from(!in_row),
            }
        }
        if 2 * records > accesses {
            return GROUPS[0];
        }
        if at_once(&flow, &gathers) > SEVERAL {
            return GROUPS[1];
        }
        if strided > FEW || scattered > if packed { FEW } else { 0 } {
            // The rest takes as long for sixteen threads as for eight if vectors are wide.
            let wide = wide::is_available() && strided + scattered <= MANY;
            return if wide { GROUPS[1] } else { GROUPS[0] };
        }
        let storage = emit::storage(&flow, &natives, &shapes);
        let lanewise = lanewise::registers(&flow, &natives, &shapes, &storage, wide::is_available());
        // The number of vectors for eight threads.
        let vectors = |live: &SlotSet| {
            let varying =
                live.iter().filter(|&slot| shapes.get(slot) == Shape::Varying && !lanewise[slot.0 as usize]);
            varying.map(|slot| if function.type_of(slot).bits() == 64 { 4 } else { 2 }).sum::<u32>()
        };
        let blocks = flow.blocks.iter();
        let most = blocks.flat_map(|block| flow.live_before(block)).map(|live| vectors(&live)).max();
        // Elements that are widened and narrowed take registers on the way.
        let most = most.unwrap_or(0) * if packed && scattered == 0 { 2 } else { 1 };
        let fits = |&&lanes: &&u32| {
            // A wide vector has as many words as the smaller groups have threads.
            let fits = match wide::is_available() {
                true => lanes <= GROUPS[1] || most / 2 * (lanes / 16) <= WIDE_VECTORS,
                false => most * (lanes / 8) <= VECTORS,
            };
            fits && (strided == 0 || lanes <= GROUPS[1])
        };
        GROUPS.iter().rev().find(fits).copied().unwrap_or(GROUPS[0])
    }
}

/// Returns the most of some instructions that are in one loop, with those that are in none.
fn at_once(flow: &Flow<'_>, some: &[Pc]) -> usize {
    let mut loops: Vec<Range<Pc>> = Vec::new();
    for pc in flow.range.clone() {
        if let Op::Branch { target } = flow.instruction(pc).op
            && target <= pc
        {
            loops.push(target..pc + 1);
        }
    }
    let innermost = |pc: Pc| {
        let around = (0..loops.len()).filter(|&i| loops[i].contains(&pc));
        around.min_by_key(|&i| loops[i].len())
    };
    let mut counts = vec![0; loops.len()];
    let mut outside = 0;
    for &pc in some {
        match innermost(pc) {
            Some(of) => counts[of] += 1,
            None => outside += 1,
        }
    }
    outside + counts.into_iter().max().unwrap_or(0)
}

/// What vectors save in a loop that threads leave at different times, for an instruction of 32 bits
/// and for one of 64 bits, of which a vector holds half as many. Threads of a group wait for others
/// there, and a thread alone does not.
const WORD_SAVES: i64 = 4;
const WIDE_SAVES: i64 = 1;

/// What they save for an instruction of 64 bits with the generator for wide vectors.
const WIDE_SAVES_IN_WIDE_VECTORS: i64 = 4;

/// What vectors lose there for an access that is made thread by thread, for a product of 64 bits,
/// and for an instruction that is emitted once for each thread.
const ACCESS_LOSES: i64 = 48;
const PRODUCT_LOSES: i64 = 40;
const EACH_LOSES: i64 = 36;

/// What vectors lose in each pass to find which threads go on.
const PASS_LOSES: i64 = 24;

/// What vectors save for a branch inside the loop that threads take differently: for a thread
/// alone, half of those are mispredicted.
const BRANCH_SAVES: i64 = 236;

/// Returns what vectors save, or lose if negative, for an instruction in such a loop.
fn saved_by_vectors(flow: &Flow<'_>, native: Option<&Native>, shapes: &Uniformity, pc: Pc) -> i64 {
    let varies = |source: Source| shapes.source(source) == Shape::Varying;
    let access = |operand: &MemoryOperand| match operand.base {
        Base::Source(source) if varies(source) => -ACCESS_LOSES,
        _ => WORD_SAVES,
    };
    let map = match &flow.instruction(pc).op {
        Op::Load(load) => return access(&load.operand),
        Op::Store(store) => return access(&store.operand),
        Op::Atomic(atomic) => return access(&atomic.operand),
        Op::Map(map) => map,
        _ => return WORD_SAVES,
    };
    let Some(native) = native.filter(|_| map.sources().iter().any(|&source| varies(source))) else {
        return WORD_SAVES;
    };
    let is_wide = native.result.bits() == 64 || native.operands[0].bits() == 64 && map.sources().len() > 1;
    let by_register = |index: usize| matches!(map.sources().get(index), Some(&source) if varies(source));
    match native.kind {
        Kind::Mul | Kind::MadLow if is_wide && !host::multiplies_wide_vectors() => -PRODUCT_LOSES,
        Kind::MulHigh { .. } if is_wide && wide::is_available() => WIDE_SAVES,
        Kind::Div { .. } | Kind::Rem { .. } if !is_wide && wide::is_available() => WORD_SAVES,
        Kind::CountOnes | Kind::Reverse | Kind::CountZeros | Kind::FindBit { .. } if wide::is_available() => {
            WIDE_SAVES
        }
        Kind::MulHigh { .. } | Kind::Min { .. } | Kind::Max { .. } if is_wide => -EACH_LOSES,
        Kind::ShiftLeft | Kind::ShiftRight { .. } if by_register(1) && !wide::is_available() => -EACH_LOSES,
        Kind::Funnel { .. } if by_register(2) && !wide::is_available() => -EACH_LOSES,
        Kind::Div { .. }
        | Kind::Rem { .. }
        | Kind::CountZeros
        | Kind::CountOnes
        | Kind::FindBit { .. }
        | Kind::Reverse => -EACH_LOSES,
        _ if is_wide && wide::is_available() => WIDE_SAVES_IN_WIDE_VECTORS,
        _ if is_wide => WIDE_SAVES,
        _ => WORD_SAVES,
    }
}

/// Returns whether vectors access scattered elements with an instruction for each vector, where
/// they are wide.
fn is_gathered(shapes: &Uniformity, op: &Op) -> bool {
    let (operand, elements, size) = match op {
        Op::Load(load) => (&load.operand, load.destinations.len(), load.extend.size),
        Op::Store(store) => (&store.operand, store.sources.len(), store.size),
        _ => return false,
    };
    let has_size = matches!(size, 4 | 8) || matches!(op, Op::Load(_)) && size < 4;
    let varies = matches!(
        operand.base,
        Base::Source(base) if matches!(shapes.source(base), Shape::Varying | Shape::Affine(_))
    );
    let is_far = !operand.narrow && matches!(operand.space, Space::Global | Space::Const | Space::Generic);
    elements == 1 && has_size && varies && (is_far || operand.space == Space::Shared)
}

/// Returns whether most of what is in loops may be faster one thread after the other: it is in
/// loops that threads leave at different times, and there are scattered accesses in them or vectors
/// save less than they lose.
fn may_be_better_alone(flow: &Flow<'_>, natives: &[Option<Native>], shapes: &Uniformity) -> bool {
    let differs = |pc: Pc| {
        let guard = flow.instruction(pc).guard;
        guard.is_some_and(|guard| shapes.get(guard.slot) != Shape::Uniform)
    };
    let mut loops: Vec<Range<Pc>> = Vec::new();
    for pc in flow.range.clone() {
        if let Op::Branch { target } = flow.instruction(pc).op
            && target <= pc
        {
            loops.push(target..pc + 1);
        }
    }
    let (mut alone, mut all) = (0, 0);
    for range in &loops {
        let is_inside =
            |other: &Range<Pc>| other != range && range.start <= other.start && other.end <= range.end;
        if loops.iter().any(is_inside) {
            continue;
        }
        let leaves = |pc: Pc| match flow.instruction(pc).op {
            Op::Branch { target } => !range.contains(&target) || target == range.start,
            Op::Exit | Op::Return => true,
            _ => false,
        };
        let saved = |pc: Pc| {
            let native = natives[(pc - flow.range.start) as usize].as_ref();
            saved_by_vectors(flow, native, shapes, pc)
        };
        let branches = range
            .clone()
            .filter(|&pc| matches!(flow.instruction(pc).op, Op::Branch { .. }) && !leaves(pc) && differs(pc));
        let saved = range.clone().map(saved).sum::<i64>() + BRANCH_SAVES * branches.count() as i64;
        all += range.len();
        let is_scattered = |pc: Pc| {
            let operand = match &flow.instruction(pc).op {
                Op::Load(load) => &load.operand,
                Op::Store(store) => &store.operand,
                Op::Atomic(atomic) => &atomic.operand,
                _ => return false,
            };
            matches!(operand.base, Base::Source(base) if shapes.source(base) == Shape::Varying)
        };
        let is_doubtful = saved < PASS_LOSES || range.clone().any(is_scattered);
        if range.clone().any(|pc| leaves(pc) && differs(pc)) && is_doubtful {
            alone += range.len();
        }
    }
    2 * alone > all
}

/// The least distance of records in bytes with which small groups are faster. The records of a
/// group of eight fill four lines then, and those of the next group are on their way before it
/// ends.
const LARGE_RECORD: u64 = 32;

/// Returns where an instruction accesses memory, other than parameters, and how many elements.
fn accessed(op: &Op) -> Option<(&MemoryOperand, usize)> {
    let (operand, elements) = match op {
        Op::Load(load) => (&load.operand, load.destinations.len()),
        Op::Store(store) => (&store.operand, store.sources.len()),
        Op::Atomic(atomic) => (&atomic.operand, 1),
        _ => return None,
    };
    (operand.space != Space::Param).then_some((operand, elements))
}

/// Returns whether each thread accesses several elements of a large record of its own.
fn is_in_large_record(shapes: &Uniformity, operand: &MemoryOperand, elements: usize) -> bool {
    let Base::Source(base) = operand.base else { return false };
    operand.space == Space::Global
        && elements > 1
        && matches!(shapes.source(base), Shape::Affine(step) if step.unsigned_abs() >= LARGE_RECORD)
}

/// How a whole group makes an access at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    /// With vectors, or with one element for all threads.
    Whole,
    /// With vectors of elements that are narrower than a register.
    Packed,
    /// Each thread by itself, at a known distance from the one before in shared memory.
    Strided,
}

/// Returns whether the threads of a group access consecutive elements, or one element for all.
fn in_row(shapes: &Uniformity, operand: &MemoryOperand, size: u32, elements: usize) -> Option<Row> {
    let shared = !matches!(operand.space, Space::Local | Space::Generic);
    let shape = match operand.base {
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
        Shape::Affine(_) if elements == 1 && size == 4 && operand.space == Space::Shared => {
            Some(Row::Strided)
        }
        _ => None,
    }
}
