//! Code generation: one function of a kernel, for groups of one thread or of several.
//!
//! ```text
//! fn(machine, entry, first, last) -> blocks that ended, and groups that parted
//!   for each block, round and group of threads in first..last:     (`rounds`)
//!     jump to the entry: load the registers that are live there
//!     …                                                            the blocks of the function
//!     where a thread exits or leaves: store live registers, note where it is, next group
//! ```

mod active_lanes;
mod address;
mod arith;
mod atomic;
mod barrier;
mod bit_counts;
mod bit_fields;
mod branch;
mod collective;
mod dead;
mod divergent;
mod each_active;
mod elementary;
mod exit;
mod float;
mod fold;
mod index_vectors;
mod interleaved;
mod load_sinking;
mod map;
mod masked;
mod matching;
mod memory;
mod narrow;
mod near;
mod parts;
mod predicate;
mod prefetch;
mod records;
mod rematerialize;
mod restart;
mod rounds;
mod scalarized;
mod scattered;
mod share;
mod short_floats;
mod side_exits;
mod special;
mod speculative_nan;
mod unrolled;
mod value;
mod wide_integers;
mod windows;

pub(crate) use address::HOST;
pub(crate) use arith::integer_condition;
pub(crate) use atomic::atomic_role;
pub(crate) use side_exits::Tables;
pub(crate) use special::special_role;

use crate::analysis::bounds_checks::BoundsChecks;
use crate::analysis::divergence::Divergence;
use crate::analysis::flow::{Flow, Role, SlotSet};
use crate::analysis::idle_threads::IdleThreads;
use crate::analysis::range::Ranges;
use crate::analysis::region::Regions;
use crate::analysis::rematerialization::Rematerialization;
use crate::analysis::uniformity::{Shape, Uniformity};
use crate::analysis::unrolled::UnrolledLoop;
use crate::host;
use crate::native::{Class, Kind, Native};
use crate::spill_frame::FrameLayout;
use crate::wide::{self, Intrinsic};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{self, AbiParam, Block, FuncRef, InstBuilder, MemFlagsData, Type, Value};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use gridloom_interp::KernelCode;
use gridloom_interp::code::{Instruction, Op, Pc};
use gridloom_interp::lanes::{Slot, Source};
use gridloom_ptx::SymbolId;
use parts::VectorLength;
use std::collections::HashMap;
use std::rc::Rc;
use value::{per_vector, scalar_type, vector_type};

/// The thread must be run by the code for single threads, from an entry of it.
pub(crate) const SINGLE: u32 = 1 << 29;

/// What is compiled, and how.
pub(crate) struct Plan<'a> {
    pub(crate) kernel: &'a KernelCode,
    pub(crate) function: usize,
    pub(crate) flow: &'a Flow<'a>,
    /// For each instruction of the function, how it is computed.
    pub(crate) natives: &'a [Option<Native>],
    pub(crate) uniformity: &'a Uniformity,
    /// Where its threads diverge.
    pub(crate) divergence: &'a Divergence,
    pub(crate) rematerialization: &'a Rematerialization,
    pub(crate) ranges: &'a Ranges,
    /// Addresses that need no check.
    pub(crate) bounds_checks: &'a BoundsChecks,
    /// Registers that only single threads need, in the block where they are written.
    pub(crate) lanewise: &'a [bool],
    /// How each slot is held.
    pub(crate) storage: &'a [Class],
    /// Registers whose NaN need not be canonical.
    pub(crate) noncanonical_nan: &'a [bool],
    /// What groups keep between barriers.
    pub(crate) frame_layout: &'a FrameLayout,
    pub(crate) regions: &'a Regions,
    /// For each barrier that groups pass, which threads have nothing to do behind it.
    pub(crate) idle_threads: &'a [Option<IdleThreads>],
    /// Bytes of the elements that a block fills shared memory with before it reads any.
    pub(crate) shared_init: Option<u32>,
    /// Loops whose passes a single thread makes one by one.
    pub(crate) unrolled: &'a [UnrolledLoop],
    /// Whether blocks are one row of threads, of whose index only that axis is read.
    pub(crate) is_row: bool,
    /// Threads of a group.
    pub(crate) lanes: u32,
    /// Bytes of a vector. More than 16 are for the generator for wide vectors.
    pub(crate) vector_bytes: usize,
    /// Instructions that the code can be entered at, each the start of a block.
    pub(crate) entries: &'a [Pc],
}

/// What is known at the point where code is being emitted.
#[derive(Clone, Default)]
struct Facts {
    /// Addresses that were checked, with alignment and offset.
    checked: Vec<(Value, u32, i64)>,
    /// Vectors of addresses that were checked.
    checked_groups: Vec<(Vec<Value>, u32, i64)>,
    /// Vectors of addresses in shared memory that were checked, with alignment, size and offset.
    checked_words: Vec<(Vec<Value>, u32, u32, i64)>,
    /// Bases in shared memory that were checked, with alignment and the offsets that are valid.
    checked_shared: Vec<(Value, u32, std::ops::Range<i64>)>,
    /// Addresses of 32 bits, with the values they were extended to.
    widened: Vec<(Value, Value)>,
    /// Affine values of 32 bits, by that of the first thread, that do not wrap around within the
    /// group, read with a sign or without.
    unwrapped: Vec<(Value, i64, bool)>,
    /// Predicates that are known for the whole group from its first and last thread.
    predicates: Vec<(Slot, Rc<predicate::Predicate>)>,
    /// Words of records that are loaded and may be read later.
    fields: Vec<records::Field>,
    /// Addresses of the first threads whose records are prefetched, and whether they are written.
    prefetched: Vec<(Value, bool)>,
}

impl Facts {
    /// Returns which addresses are valid, wherever the code of some threads is written.
    fn of_addresses(&self) -> Self {
        Self {
            checked: self.checked.clone(),
            checked_groups: self.checked_groups.clone(),
            checked_words: self.checked_words.clone(),
            checked_shared: self.checked_shared.clone(),
            ..Self::default()
        }
    }
}

pub(crate) struct Emitter<'a> {
    b: FunctionBuilder<'a>,
    plan: &'a Plan<'a>,
    /// The values of invariant definitions, by instruction: those that a block shares, and, while a
    /// group is entered, those that it needs.
    rematerialized: HashMap<Pc, Vec<Value>>,
    /// Whether invariant definitions are being computed now, away from their places in the code.
    rematerializing: bool,
    body: Option<&'a gridloom_ptx::Body>,
    isa: &'a OwnedTargetIsa,
    /// Threads that code is emitted for now: those of a group, or in some short blocks the first of
    /// them.
    lanes: u32,
    length: VectorLength,
    /// Functions that stand for operations of the generator for wide vectors.
    intrinsics: HashMap<(Intrinsic, Vec<Type>), FuncRef>,
    /// Parts of wide vectors that were made in this block.
    quarters: HashMap<(Value, usize), Value>,
    param_bytes: u64,
    shared_bytes: u64,
    frame_bytes: u64,
    /// Registers written in this block whose values are not in vectors.
    by_lane: Vec<(Slot, Rc<scalarized::Scalarized>)>,
    variables: Vec<Vec<Variable>>,
    blocks: Vec<Block>,
    /// The machine, and what is known of the group.
    machine: Value,
    /// Fields of the machine that are loaded, by their offset.
    fields: HashMap<usize, Value>,
    /// How far accesses to shared memory may go, by their length and alignment.
    limits: HashMap<(u32, i64), Value>,
    /// The first block.
    start: Block,
    /// Where a block of the grid begins, and products that are computed there.
    block_start: Option<Block>,
    products: Vec<((Value, Value), Value)>,
    /// The loops over groups, of each region, and the region being written.
    groups: Vec<rounds::Groups>,
    region: usize,
    thread: Value,
    position: [Option<Value>; 3],
    /// Which block of the grid it is.
    index: [Value; 3],
    next: Block,
    fuel: Variable,
    round: rounds::Round,
    side_exits: side_exits::SideExits,
    /// Instructions whose results are not known to be right yet.
    speculation: Option<speculative_nan::SpeculativeNan>,
    /// Where the group can leave at an earlier instruction.
    restart: Option<restart::Restart>,
    /// The instruction being compiled, and what is live before it.
    pc: Pc,
    live: SlotSet,
    /// What is live behind it, in the block being written.
    live_after: SlotSet,
    /// Vectors of constants that the instruction being compiled has used already.
    vector_constants: Vec<((Type, Vec<u8>), Value)>,
    /// Vectors that were made of values of the first thread in this block, with the step between
    /// threads and how many there are.
    spreads: HashMap<(Value, i64, Type, u32), Vec<Value>>,
    /// Integers that were extended with their sign in this block.
    extended: HashMap<(Value, Type), Value>,
    /// The number of the element that a pass of an unrolled loop is for: in 32 bits, in 64 bits, and
    /// whether it was extended with its sign.
    widened_number: Option<(Value, Value, bool)>,
    rows: load_sinking::LoadedRows,
    /// What vectors of addresses were computed from, by the first of them.
    indices: HashMap<Value, index_vectors::Indices>,
    /// Where the instruction being compiled starts, behind which everything is that is written
    /// later in the block.
    trunk: Option<Block>,
    facts: Facts,
    /// What was known before the branch at the end of the block that was written last.
    facts_before: Facts,
    /// Where the block ends.
    block_end: Pc,
    /// Registers whose NaN need not be canonical, and others of which that is so now, until the end
    /// of the block; whether the instruction being compiled takes any NaN, and may give any.
    pending: SlotSet,
    any_nan: bool,
    keeps_nan: bool,
    /// The threads that run a short block, while the others wait.
    party: Option<branch::Party>,
    /// The threads that run the block being written, where others wait.
    running: Option<divergent::Running>,
    /// Where threads that have diverged wait.
    apart: divergent::Apart,
    /// Blocks that lead away from the one being written, to be written next.
    ways: Vec<(Block, branch::Way)>,
    /// Registers that are in the frame of the group as they were after the last barrier.
    unchanged: barrier::Unchanged,
    /// A contradiction that the compiler found in itself, if any.
    defect: Option<&'static str>,
}

/// Emits the code of a function. The code refers to the tables that are returned, so they must live
/// as long as it.
pub(crate) fn build(
    func: &mut ir::Function,
    isa: &OwnedTargetIsa,
    plan: &Plan<'_>,
) -> Result<Tables, String> {
    let mut signature = ir::Signature::new(isa.default_call_conv());
    signature.params.extend([I64, I32, I32, I32].map(AbiParam::new));
    signature.returns.push(AbiParam::new(I64));
    func.signature = signature;
    let mut context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(func, &mut context);
    let code = plan.kernel.code();
    let function = &code.functions[plan.function];
    let variables = (0..function.slots)
        .map(|slot| {
            let class = plan.storage[slot as usize];
            match plan.uniformity.get(Slot(slot)) {
                Shape::Varying => {
                    let ty = vector_type(class, plan.vector_bytes).unwrap_or(I64);
                    let count = plan.lanes as usize / per_vector(class, plan.vector_bytes);
                    (0..count).map(|_| b.declare_var(ty)).collect()
                }
                _ => vec![b.declare_var(scalar_type(class))],
            }
        })
        .collect();
    let start = b.create_block();
    b.append_block_params_for_function_params(start);
    let blocks = plan.flow.blocks.iter().map(|_| b.create_block()).collect();
    let (fuel, next) = (b.declare_var(I32), b.create_block());
    let round = rounds::Round::declare(&mut b);
    b.switch_to_block(start);
    let params = b.block_params(start).to_vec();
    let body = plan.kernel.module().function(SymbolId(function.symbol)).and_then(|f| f.body.as_deref());
    let mut emitter = Emitter {
        b,
        plan,
        rematerialized: HashMap::new(),
        rematerializing: false,
        body,
        isa,
        lanes: plan.lanes,
        length: VectorLength(plan.vector_bytes),
        intrinsics: HashMap::new(),
        quarters: HashMap::new(),
        param_bytes: plan.kernel.param_bytes(),
        shared_bytes: plan.kernel.shared_bytes().into(),
        frame_bytes: function.frame.into(),
        by_lane: Vec::new(),
        variables,
        blocks,
        machine: params[0],
        fields: HashMap::new(),
        limits: HashMap::new(),
        start,
        block_start: None,
        products: Vec::new(),
        groups: Vec::new(),
        region: 0,
        thread: params[2],
        position: [None; 3],
        index: [params[0]; 3],
        next,
        fuel,
        round,
        side_exits: side_exits::SideExits::default(),
        speculation: None,
        restart: None,
        pc: plan.flow.range.start,
        live: plan.flow.blocks[0].live_in.clone(),
        live_after: plan.flow.blocks[0].live_in.clone(),
        vector_constants: Vec::new(),
        spreads: HashMap::new(),
        extended: HashMap::new(),
        widened_number: None,
        rows: load_sinking::LoadedRows::default(),
        indices: HashMap::new(),
        trunk: None,
        facts: Facts::default(),
        facts_before: Facts::default(),
        block_end: plan.flow.range.start,
        pending: SlotSet::new(function.slots),
        any_nan: false,
        keeps_nan: false,
        party: None,
        running: None,
        apart: divergent::Apart::default(),
        ways: Vec::new(),
        unchanged: barrier::Unchanged::default(),
        defect: None,
    };
    emitter.prepare_apart();
    emitter.loops([params[1], params[2], params[3]]);
    for index in 0..plan.flow.blocks.len() {
        emitter.meet(index);
        emitter.block(index);
    }
    emitter.write_ends();
    emitter.write_side_exits();
    emitter.b.seal_all_blocks();
    let defect = emitter.defect;
    let mut tables = std::mem::take(&mut emitter.side_exits.tables);
    let unchanged = std::mem::take(&mut emitter.unchanged);
    unchanged.remove_stores(emitter.b.func, &mut tables, plan.frame_layout.bytes);
    emitter.b.finalize(isa.frontend_config());
    match defect {
        Some(defect) => Err(format!("internal error of the CPU code generator: {defect}")),
        None => Ok(tables),
    }
}

/// Returns how each slot is held: as a float where most instructions on it are of floats, so that
/// it need not move between registers.
pub(crate) fn storage(flow: &Flow<'_>, natives: &[Option<Native>], shapes: &Uniformity) -> Vec<Class> {
    let function = &flow.code.functions[flow.function];
    let mut votes = vec![0i32; function.slots as usize];
    for pc in flow.range.clone() {
        let Some(native) = &natives[(pc - flow.range.start) as usize] else { continue };
        let Op::Map(map) = &flow.instruction(pc).op else { continue };
        if native.kind == Kind::Copy || native.kind == Kind::Select {
            continue;
        }
        let mut vote = |Slot(slot): Slot, class: Class| {
            votes[slot as usize] += if class.is_float() { 1 } else { -1 };
        };
        map.destinations().iter().for_each(|&slot| vote(slot, native.result));
        for (source, class) in map.sources().iter().zip(native.operands) {
            if let Source::Slot(slot) = source {
                vote(*slot, class);
            }
        }
    }
    (0..function.slots)
        .map(|slot| {
            let ty = function.type_of(Slot(slot));
            let step = matches!(shapes.get(Slot(slot)), Shape::Affine(_) | Shape::Offsets(_));
            let float =
                !step && (votes[slot as usize] > 0 || votes[slot as usize] == 0 && Class::of(ty).is_float());
            match (ty.bits(), float) {
                (1, _) => Class::Pred,
                (64.., true) => Class::F64,
                (64.., false) => Class::B64,
                (32, true) => Class::F32,
                _ => Class::B32,
            }
        })
        .collect()
}

impl<'a> Emitter<'a> {
    /// Notes that the compiler contradicts itself. The code of the function is then discarded.
    pub(crate) fn defect(&mut self, what: &'static str) {
        self.defect.get_or_insert(what);
    }

    /// Returns a field of the machine, which stays what it is during a call: loaded once, at its
    /// start.
    pub(crate) fn machine_field(&mut self, offset: usize, ty: Type) -> Value {
        if let Some(&value) = self.fields.get(&offset) {
            return value;
        }
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let machine = self.machine;
        let value = self.at_start(|start| start.ins().load(ty, flags, machine, offset as i32));
        self.fields.insert(offset, value);
        value
    }

    /// Writes code to the end of the first block, which every other is behind.
    pub(crate) fn at_start<T>(&mut self, write: impl FnOnce(&mut FuncCursor<'_>) -> T) -> T {
        let start = self.start;
        let mut cursor = FuncCursor::new(self.b.func);
        match cursor.func.layout.last_inst(start) {
            Some(last) if cursor.func.dfg.insts[last].opcode().is_terminator() => cursor.goto_inst(last),
            _ => cursor.goto_bottom(start),
        }
        write(&mut cursor)
    }

    /// Calls a function of the runtime.
    pub(crate) fn call(
        &mut self,
        address: usize,
        arguments: &[Value],
        result: Option<Type>,
    ) -> Option<Value> {
        let mut signature = ir::Signature::new(self.isa.default_call_conv());
        for &argument in arguments {
            let ty = self.b.func.dfg.value_type(argument);
            signature.params.push(AbiParam::new(ty));
        }
        signature.returns.extend(result.map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let callee = self.b.ins().iconst(I64, address as i64);
        let call = self.b.ins().call_indirect(signature, callee, arguments);
        self.b.inst_results(call).first().copied()
    }

    /// Calls a function of the runtime where that is rare. The called function saves all registers,
    /// so that the code around the call may keep values in them.
    pub(crate) fn call_rarely(&mut self, address: usize, arguments: &[Value]) {
        let types: Vec<Type> = arguments.iter().map(|&value| self.b.func.dfg.value_type(value)).collect();
        let preserving = match self.is_wide() {
            true => wide::preserving(address),
            false => host::preserving(address, &types),
        };
        let Ok(address) = preserving else {
            self.call(address, arguments, None);
            return;
        };
        let mut signature = ir::Signature::new(CallConv::PreserveAll);
        signature.params.extend(types.into_iter().map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let callee = self.b.ins().iconst(I64, address as i64);
        self.b.ins().call_indirect(signature, callee, arguments);
    }

    /// Returns the truth of masks being set in all threads.
    pub(crate) fn all_true(&mut self, masks: &[Value]) -> Value {
        let mut all = masks[0];
        for &mask in &masks[1..] {
            all = self.b.ins().band(all, mask);
        }
        let lanes = self.b.func.dfg.value_type(all).lane_count();
        if cfg!(target_arch = "x86_64") && matches!(lanes, 2 | 4) && !self.is_wide() {
            // One instruction fewer than a comparison with zero and a test.
            let signs = self.b.ins().vhigh_bits(I32, all);
            return self.b.ins().icmp_imm_u(IntCC::Equal, signs, (1 << lanes) - 1);
        }
        self.b.ins().vall_true(all)
    }

    /// Returns the truth of masks being set in any thread.
    pub(crate) fn any_true(&mut self, masks: &[Value]) -> Value {
        let mut any = masks[0];
        for &mask in &masks[1..] {
            any = self.b.ins().bor(any, mask);
        }
        self.b.ins().vany_true(any)
    }

    /// Continues in a block whose predecessors have all been emitted, so that registers are known
    /// in it.
    pub(crate) fn go_on_in(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
        self.forget_constants();
        if self.party.is_some() {
            self.b.set_cold_block(block);
        }
    }

    fn block(&mut self, index: usize) {
        self.write_block(index);
        self.write_exits();
    }

    fn write_block(&mut self, index: usize) {
        let flow = self.plan.flow;
        let block = &flow.blocks[index];
        let region = self.plan.regions.of_block(index);
        self.visit(region, self.groups[region]);
        self.b.switch_to_block(self.blocks[index]);
        // All that leads here is written, unless something leads back.
        if !flow.loops.iter().any(|&(head, _)| head == block.range.start) {
            self.b.seal_block(self.blocks[index]);
        }
        self.forget_all();
        self.forget_constants();
        let follows = flow.follows(index) && !(self.plan.divergence.is_met(index) && self.rejoins(index));
        if follows && self.plan.entries.binary_search(&block.range.start).is_err() {
            self.facts = std::mem::take(&mut self.facts_before);
            self.facts.fields.clear();
        }
        self.write_instructions(index);
    }

    /// Writes the instructions of a block, for all threads of a group or those that run it.
    fn write_instructions(&mut self, index: usize) {
        let flow = self.plan.flow;
        let block = &flow.blocks[index];
        self.block_end = block.range.end;
        let mut live = flow.live_before(block).into_iter();
        self.live_after = live.next().unwrap_or_else(|| block.live_out.clone());
        self.begin_restart(block.range.start, block.live_in.clone());
        for pc in block.range.clone() {
            let after = live.next().unwrap_or_else(|| block.live_out.clone());
            (self.pc, self.live) = (pc, std::mem::replace(&mut self.live_after, after));
            let instruction = flow.instruction(pc);
            match flow.role(pc) {
                Role::Interpreted => {
                    self.check_speculation();
                    self.settle_pending();
                    return self.interpret_next();
                }
                Role::Terminator => {
                    self.trunk = None;
                    self.check_speculation();
                    self.settle_pending();
                    self.make_passes_behind(index);
                    // Each branch from here finds out more for itself.
                    self.facts_before = self.facts.clone();
                    self.terminator(instruction);
                    return self.write_ways();
                }
                Role::Compiled => {
                    self.check_speculation_before(instruction);
                    self.instruction(instruction);
                    self.end_restart();
                }
            }
        }
        self.live.clone_from(&block.live_out);
        self.check_speculation();
        self.settle_pending();
        self.facts_before = self.facts.clone();
        match flow.block_at(block.range.end) {
            Some(next) if let Some(running) = self.running.clone() => self.go_apart(&[(next, running.bits)]),
            Some(next) => {
                self.b.ins().jump(self.blocks[next], &[]);
            }
            None => self.defect("a function without an end"),
        }
    }

    /// Forgets what a register held, which is written anew.
    pub(crate) fn forget_register(&mut self, slot: Slot) {
        self.facts.predicates.retain(|(other, _)| *other != slot);
        self.by_lane.retain(|(other, _)| *other != slot);
        self.pending.remove(slot);
    }

    fn forget_all(&mut self) {
        self.facts = Facts::default();
        self.by_lane.clear();
        self.pending.clear();
        self.spreads.clear();
        self.extended.clear();
    }

    fn instruction(&mut self, instruction: &'a Instruction) {
        self.forget_constants();
        self.trunk = self.b.current_block().filter(|_| !self.rematerializing && self.party.is_none());
        if !self.rematerializing
            && self.plan.rematerialization.is_of_block(self.pc)
            && !self.is_divided(instruction)
        {
            let pc = self.pc;
            return instruction.for_each_definition(&mut |slot| self.recall(slot, pc));
        }
        if !records::keeps_memory(instruction) {
            self.facts.fields.clear();
        }
        match &instruction.op {
            Op::Map(map) => self.map(instruction, map),
            Op::Load(load) => self.load(load, instruction.guard),
            Op::Store(store) => self.store(store, instruction.guard),
            Op::Atomic(atomic) => self.atomic(atomic, instruction.guard),
            Op::Collective(collective) => self.collective(collective, instruction.guard),
            Op::ActiveMask { destination } => self.active_mask(*destination, instruction.guard),
            Op::Fence => {
                self.b.ins().fence();
            }
            Op::FrameAddress { destination, offset } => {
                let value = self.frame_address(*offset);
                let guard = self.guard(instruction.guard);
                self.define(*destination, value, Class::B64, guard.as_ref());
            }
            Op::Special { destination, register } => {
                let (value, class) = self.special(*register);
                let guard = self.guard(instruction.guard);
                self.define(*destination, value, class, guard.as_ref());
            }
            _ => {}
        }
    }
}
