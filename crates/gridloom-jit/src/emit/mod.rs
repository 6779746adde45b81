//! Code generation: one function of a kernel, for groups of one thread or of several.
//!
//! ```text
//! fn(machine, entry, first, last) -> blocks that ended, and groups that parted
//!   for each block, round and group of threads in first..last:     (`rounds`)
//!     jump to the entry: load the registers that are live there
//!     …                                                            the blocks of the function
//!     where a thread exits or leaves: store live registers, note where it is, next group
//! ```

mod arith;
mod branch;
mod exit;
mod float;
mod memory;
mod predicate;
mod rounds;
mod special;
mod value;

pub(crate) use memory::atomic_role;
pub(crate) use special::special_role;

use crate::flow::{Flow, Role, SlotSet};
use crate::invariant::Invariants;
use crate::kept::Layout;
use crate::lazy;
use crate::native::{Class, Kind, Native};
use crate::runtime;
use crate::shape::{self, Shape, Shapes};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    self, AbiParam, Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Type, Value,
};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use gridloom_interp::KernelCode;
use gridloom_interp::code::{Instruction, Op, Pc};
use gridloom_interp::lanes::{Lanewise, Slot, Source};
use gridloom_ptx::SymbolId;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use value::{Val, scalar_type, vector_type};

/// The thread must be run by the code for single threads, from an entry of it.
pub(crate) const SINGLE: u32 = 1 << 29;

/// What is compiled, and how.
pub(crate) struct Plan<'a> {
    pub(crate) kernel: &'a KernelCode,
    pub(crate) function: usize,
    pub(crate) flow: &'a Flow<'a>,
    /// For each instruction of the function, how it is computed.
    pub(crate) natives: &'a [Option<Native>],
    pub(crate) shapes: &'a Shapes,
    pub(crate) invariants: &'a Invariants,
    /// How each slot is held.
    pub(crate) storage: &'a [Class],
    /// Registers whose NaN need not be canonical.
    pub(crate) lazy: &'a [bool],
    /// What groups keep between barriers.
    pub(crate) layout: &'a Layout,
    /// Threads of a group.
    pub(crate) lanes: u32,
    /// Instructions that the code can be entered at, each the start of a block.
    pub(crate) entries: &'a [Pc],
}

pub(crate) struct Emitter<'a> {
    b: FunctionBuilder<'a>,
    flow: &'a Flow<'a>,
    natives: &'a [Option<Native>],
    shapes: &'a Shapes,
    invariants: &'a Invariants,
    /// The values of invariant definitions, by instruction: those that a block shares, and, while a group is entered, those that it needs.
    known: HashMap<Pc, Vec<Value>>,
    /// Whether invariant definitions are being computed, out of their places.
    ahead: bool,
    body: Option<&'a gridloom_ptx::Body>,
    isa: &'a OwnedTargetIsa,
    lanes: u32,
    entries: &'a [Pc],
    param_bytes: u64,
    shared_bytes: u64,
    frame_bytes: u64,
    storage: &'a [Class],
    layout: &'a Layout,
    variables: Vec<Vec<Variable>>,
    blocks: Vec<Block>,
    /// The machine, and what is known of the group.
    machine: Value,
    /// Fields of it, by their offset.
    fields: HashMap<usize, Value>,
    /// How far accesses to shared memory may go, by their length and alignment.
    limits: HashMap<(u32, i64), Value>,
    /// The first block.
    start: Block,
    thread: Value,
    position: [Option<Value>; 3],
    /// Which block of the grid it is.
    index: [Value; 3],
    next: Block,
    fuel: Variable,
    round: rounds::Round,
    buffer: Option<StackSlot>,
    /// The instruction being compiled, and what is live before it.
    pc: Pc,
    live: SlotSet,
    /// Addresses that were checked in this block, with alignment and offset.
    checked: Vec<(Value, u32, i64)>,
    /// Bases in shared memory that were, with alignment and the offsets that are good.
    checked_shared: Vec<(Value, u32, std::ops::Range<i64>)>,
    /// Addresses of 32 bits, extended.
    widened: Vec<(Value, Value)>,
    /// Affine values of 32 bits, by that of the first thread, that do not wrap around within the group, read with a sign or without.
    unwrapped: Vec<(Value, i64, bool)>,
    /// Predicates that the ends of a group tell, in this block.
    predicates: Vec<(Slot, Rc<predicate::Predicate>)>,
    /// Where the block ends.
    block_end: Pc,
    /// Registers whose NaN need not be canonical; whether the instruction being compiled takes any NaN, and may give any.
    lazy: &'a [bool],
    any_nan: bool,
    keeps_nan: bool,
    /// The threads that go a short way, while the others wait.
    party: Option<branch::Party>,
    /// Blocks that lead away from the one being written, to be written next.
    ways: Vec<(Block, branch::Way)>,
    /// What was found to be wrong with this compiler.
    defect: Option<&'static str>,
}

/// Writes the code of a function.
pub(crate) fn build(func: &mut ir::Function, isa: &OwnedTargetIsa, plan: &Plan<'_>) -> Result<(), String> {
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
            match plan.shapes.get(Slot(slot)) {
                Shape::Varying => {
                    let ty = vector_type(class.untyped()).unwrap_or(I64);
                    let count = plan.lanes as usize / value::per_vector(class);
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
        flow: plan.flow,
        natives: plan.natives,
        shapes: plan.shapes,
        invariants: plan.invariants,
        known: HashMap::new(),
        ahead: false,
        body,
        isa,
        lanes: plan.lanes,
        entries: plan.entries,
        param_bytes: plan.kernel.param_bytes(),
        shared_bytes: plan.kernel.shared_bytes().into(),
        frame_bytes: function.frame.into(),
        storage: plan.storage,
        layout: plan.layout,
        variables,
        blocks,
        machine: params[0],
        fields: HashMap::new(),
        limits: HashMap::new(),
        start,
        thread: params[2],
        position: [None; 3],
        index: [params[0]; 3],
        next,
        fuel,
        round,
        buffer: None,
        pc: plan.flow.range.start,
        live: plan.flow.blocks[0].live_in.clone(),
        checked: Vec::new(),
        checked_shared: Vec::new(),
        widened: Vec::new(),
        unwrapped: Vec::new(),
        predicates: Vec::new(),
        block_end: plan.flow.range.start,
        lazy: plan.lazy,
        any_nan: false,
        keeps_nan: false,
        party: None,
        ways: Vec::new(),
        defect: None,
    };
    emitter.loops([params[1], params[2], params[3]]);
    for index in 0..plan.flow.blocks.len() {
        emitter.block(index);
    }
    emitter.b.seal_all_blocks();
    let defect = emitter.defect;
    emitter.b.finalize(isa.frontend_config());
    match defect {
        Some(defect) => Err(format!("the compiler has met {defect}")),
        None => Ok(()),
    }
}

/// How each slot is held: as a float where most instructions on it are of floats, so that it need not move between registers.
pub(crate) fn storage(flow: &Flow<'_>, natives: &[Option<Native>], shapes: &Shapes) -> Vec<Class> {
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
            let step = matches!(shapes.get(Slot(slot)), Shape::Affine(_));
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
    /// Notes that the compiler contradicts itself; what it writes is then thrown away.
    pub(crate) fn defect(&mut self, what: &'static str) {
        self.defect.get_or_insert(what);
    }

    /// A field of the machine, which stays what it is during a call: loaded once, at its start.
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

    /// Truth of all, or any, of masks.
    pub(crate) fn all_true(&mut self, masks: &[Value]) -> Value {
        let mut all = masks[0];
        for &mask in &masks[1..] {
            all = self.b.ins().band(all, mask);
        }
        self.b.ins().vall_true(all)
    }

    pub(crate) fn any_true(&mut self, masks: &[Value]) -> Value {
        let mut any = masks[0];
        for &mask in &masks[1..] {
            any = self.b.ins().bor(any, mask);
        }
        self.b.ins().vany_true(any)
    }

    /// Goes on with a block that everything that leads to has been written of, so that registers are known in it.
    pub(crate) fn go_on_in(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
        if self.party.is_some() {
            self.b.set_cold_block(block);
        }
    }

    fn block(&mut self, index: usize) {
        let flow = self.flow;
        let block = &flow.blocks[index];
        self.b.switch_to_block(self.blocks[index]);
        // All that leads here is written, unless something leads back.
        if !flow.loops.iter().any(|&(head, _)| head == block.range.start) {
            self.b.seal_block(self.blocks[index]);
        }
        self.forget_all();
        self.block_end = block.range.end;
        let live = flow.live_before(block);
        for (pc, live) in block.range.clone().zip(live) {
            (self.pc, self.live) = (pc, live);
            let instruction = flow.instruction(pc);
            match flow.role(pc) {
                Role::Interpreted => return self.interpret_next(),
                Role::Terminator => {
                    self.terminator(instruction);
                    return self.write_ways();
                }
                Role::Compiled => self.instruction(instruction),
            }
        }
        match flow.block_at(block.range.end) {
            Some(next) => {
                self.b.ins().jump(self.blocks[next], &[]);
            }
            None => self.defect("a function without an end"),
        }
    }

    /// Computes the invariant definitions that are the same in a whole block.
    fn compute_for_block(&mut self) {
        let invariants = self.invariants;
        let order = invariants.order.iter();
        self.compute_ahead(order.filter(|(pc, _)| invariants.is_of_block(*pc)));
    }

    /// Computes the invariant definitions that a group needs where it is entered, and puts them into their registers. On the way others are
    /// overwritten, so they are loaded after this.
    fn compute_for_entry(&mut self, index: usize) {
        let (flow, invariants) = (self.flow, self.invariants);
        let live = &flow.blocks[index].live_in;
        let reaching: Vec<(Slot, Pc)> =
            live.iter().filter_map(|slot| Some((slot, invariants.at_block(index, slot)?))).collect();
        let mut needed: HashSet<Pc> = reaching.iter().map(|&(_, pc)| pc).collect();
        for (pc, reads) in invariants.order.iter().rev() {
            if needed.contains(pc) {
                needed.extend(reads.iter().map(|&(_, definition)| definition));
            }
        }
        let order = invariants.order.iter();
        self.compute_ahead(order.filter(|(pc, _)| needed.contains(pc) && !invariants.is_of_block(*pc)));
        for (slot, definition) in reaching {
            self.recall(slot, definition);
        }
    }

    fn compute_ahead<'i>(&mut self, order: impl Iterator<Item = &'i (Pc, Vec<(Slot, Pc)>)>) {
        self.ahead = true;
        for (pc, reads) in order {
            for &(slot, definition) in reads {
                self.recall(slot, definition);
            }
            self.pc = *pc;
            let instruction = self.flow.instruction(*pc);
            self.instruction(instruction);
            let mut values = Vec::new();
            instruction.for_each_definition(&mut |slot| {
                let variables = self.variables[slot.0 as usize].clone();
                values.extend(variables.iter().map(|&variable| self.b.use_var(variable)));
            });
            self.known.insert(*pc, values);
        }
        self.ahead = false;
        self.forget_all();
    }

    fn forget_all(&mut self) {
        self.checked.clear();
        self.checked_shared.clear();
        self.widened.clear();
        self.unwrapped.clear();
        self.predicates.clear();
    }

    /// Gives a register the value of an invariant definition.
    pub(crate) fn recall(&mut self, slot: Slot, definition: Pc) {
        let Some(values) = self.known.get(&definition).cloned() else {
            return self.defect("an invariant that was not computed");
        };
        let variables = self.variables[slot.0 as usize].clone();
        for (variable, value) in variables.into_iter().zip(values) {
            self.b.def_var(variable, value);
        }
    }

    fn instruction(&mut self, instruction: &'a Instruction) {
        if !self.ahead && self.invariants.is_of_block(self.pc) {
            let pc = self.pc;
            return instruction.for_each_definition(&mut |slot| self.recall(slot, pc));
        }
        match &instruction.op {
            Op::Map(map) => self.map(instruction, map),
            Op::Load(load) => self.load(load, instruction.guard),
            Op::Store(store) => self.store(store, instruction.guard),
            Op::Atomic(atomic) => self.atomic(atomic, instruction.guard),
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

    /// A function of registers.
    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn map(&mut self, instruction: &Instruction, map: &Box<dyn Lanewise>) {
        self.keeps_nan = false;
        let guard = self.guard(instruction.guard);
        let Some(native) = self.natives[(self.pc - self.flow.range.start) as usize] else {
            let results = self.call_map(map);
            for (&slot, value) in map.destinations().iter().zip(results) {
                let class = self.storage(slot);
                self.define(slot, value, class, guard.as_ref());
            }
            return;
        };
        let destinations = map.destinations();
        self.keeps_nan = destinations.iter().all(|slot| self.lazy[slot.0 as usize]);
        // What only passes a value on may pass any NaN on to where any may be.
        self.any_nan = lazy::ignores_payload(&native)
            || self.keeps_nan && matches!(native.kind, Kind::Copy | Kind::Select);
        let operands: Vec<Val> = map
            .sources()
            .iter()
            .zip(native.operands)
            .map(|(&source, class)| self.get(source, class))
            .collect();
        self.any_nan = false;
        if let (&[p, q], Kind::Compare { compare, signed, ftz, combine }) = (destinations, native.kind) {
            let alone = Native { kind: Kind::Compare { compare, signed, ftz, combine: None }, ..native };
            let holds = self.evaluate(&alone, &operands[..2], map);
            let opposite = match &holds {
                Val::Many(parts) => Val::Many(parts.iter().map(|&part| self.b.ins().bnot(part)).collect()),
                Val::One(value) | Val::Affine(value, _) => Val::One(self.b.ins().bxor_imm_u(*value, 1)),
            };
            for (slot, value) in [(p, holds), (q, opposite)] {
                let value = match combine {
                    None => value,
                    Some(op) => {
                        let kind = Kind::Logic(match op {
                            gridloom_ptx::op::BoolOp::And => gridloom_ptx::op::LogicOp::And,
                            gridloom_ptx::op::BoolOp::Or => gridloom_ptx::op::LogicOp::Or,
                            gridloom_ptx::op::BoolOp::Xor => gridloom_ptx::op::LogicOp::Xor,
                        });
                        let logic = Native { kind, operands: [Class::Pred; 4], result: Class::Pred };
                        self.evaluate(&logic, &[value, operands[2].clone()], map)
                    }
                };
                let value = self.fit(slot, value, Class::Pred);
                self.define(slot, value, Class::Pred, guard.as_ref());
            }
            return;
        }
        let value = self.evaluate(&native, &operands, map);
        self.keeps_nan = false;
        for &slot in destinations {
            let value = self.fit(slot, value.clone(), native.result);
            self.define(slot, value, native.result, guard.as_ref());
        }
        if let (&[slot], None) = (destinations, &guard) {
            self.note_predicate(slot, &native, &operands, map.sources());
        }
    }

    /// A value of all threads for a register that differs between them, though this value does not.
    fn fit(&mut self, slot: Slot, value: Val, class: Class) -> Val {
        match (self.shapes.get(slot), &value) {
            (Shape::Varying, Val::One(one)) if class == Class::Pred => {
                let parts = self.vectors(&Val::One(*one), class);
                Val::Many(parts)
            }
            _ => value,
        }
    }

    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn evaluate(&mut self, native: &Native, operands: &[Val], map: &Box<dyn Lanewise>) -> Val {
        if operands.iter().all(|operand| self.is_one(operand)) {
            let values: Vec<Value> =
                operands.iter().map(|operand| self.lane(operand, Class::B64, 0)).collect();
            let lowered = self.lower(native, &values, false);
            let Some(rare) = lowered.rare else { return Val::One(lowered.value) };
            let joined = self.unless(rare, &[lowered.value], native.result, map);
            return Val::One(joined[0]);
        }
        let shapes: Vec<Shape> = operands
            .iter()
            .map(|operand| match operand {
                Val::One(_) => Shape::Uniform,
                Val::Affine(_, step) => Shape::Affine(*step),
                Val::Many(_) => Shape::Varying,
            })
            .collect();
        let constant = |i: usize| match map.sources().get(i) {
            Some(Source::Constant(index)) => Some(self.flow.code.constants[*index as usize][0]),
            _ => None,
        };
        if shapes.iter().all(|&shape| shape != Shape::Varying)
            && let Some(shape) = shape::affine(native, &shapes, constant)
        {
            return self.evaluate_affine(native, operands, shape);
        }
        if let Some((values, rare)) = self.lower_vectors(native, operands) {
            if rare.is_empty() {
                return Val::Many(values);
            }
            let any = self.any_true(&rare);
            return Val::Many(self.unless(any, &values, native.result, map));
        }
        let mut results = Vec::new();
        let mut rare = None;
        for lane in 0..self.lanes as usize {
            let values: Vec<Value> = operands
                .iter()
                .zip(native.operands)
                .map(|(operand, class)| self.lane(operand, class, lane))
                .collect();
            let lowered = self.lower(native, &values, false);
            results.push(lowered.value);
            if let Some(new) = lowered.rare {
                rare = Some(match rare {
                    None => new,
                    Some(old) => self.b.ins().bor(old, new),
                });
            }
        }
        let parts = self.gather(&results, native.result);
        Val::Many(match rare {
            None => parts,
            Some(rare) => self.unless(rare, &parts, native.result, map),
        })
    }

    /// A result that is affine because its operands are; where the register is widened, only if it does not wrap in the group.
    fn evaluate_affine(&mut self, native: &Native, operands: &[Val], shape: Shape) -> Val {
        let at = |emitter: &mut Self, lane: usize| {
            let values: Vec<Value> = operands
                .iter()
                .zip(native.operands)
                .map(|(operand, class)| emitter.lane(operand, class, lane))
                .collect();
            emitter.lower(native, &values, false).value
        };
        let first = at(self, 0);
        let step = match shape {
            Shape::Affine(step) => step,
            _ => 0,
        };
        // An invariant is known not to.
        if let Some(signed) = shape::widens(native)
            && !self.invariants.contains(self.pc)
        {
            let narrow = operands
                .iter()
                .zip(native.operands)
                .take(2)
                .all(|(operand, class)| class.bits() == 32 || matches!(operand, Val::One(_)));
            if !narrow || matches!(native.kind, Kind::Extend { to: 32, .. }) {
                let lane = self.lanes as usize - 1;
                let last = at(self, lane);
                let expected = self.b.ins().iadd_imm_s(first, step.wrapping_mul(lane as i64));
                let same = self.b.ins().icmp(IntCC::Equal, last, expected);
                self.go_on_if(same);
            } else {
                for (operand, class) in operands.iter().zip(native.operands).take(2) {
                    if let (&Val::Affine(value, step), 32) = (operand, class.bits()) {
                        self.require_no_wrap(value, step, signed);
                    }
                }
            }
        }
        if step == 0 { Val::One(first) } else { Val::Affine(first, step) }
    }

    /// Leaves the instruction to the interpreter unless a truth value holds.
    fn go_on_if(&mut self, holds: Value) {
        let (go_on, cold) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        self.b.ins().brif(holds, go_on, &[], cold, &[]);
        self.go_on_in(cold);
        self.interpret_here();
        self.go_on_in(go_on);
    }

    /// Whether an affine value of 32 bits, of a step that is not large, does not wrap around within the group.
    fn does_not_wrap(&mut self, first: Value, step: i64, signed: bool) -> Value {
        let span = step * i64::from(self.lanes - 1);
        let (most, least) =
            if signed { (i64::from(i32::MAX), i64::from(i32::MIN)) } else { (i64::from(u32::MAX), 0) };
        let (limit, compare) = match (step > 0, signed) {
            (true, true) => (most - span, IntCC::SignedLessThanOrEqual),
            (true, false) => (most - span, IntCC::UnsignedLessThanOrEqual),
            (false, true) => (least - span, IntCC::SignedGreaterThanOrEqual),
            (false, false) => (least - span, IntCC::UnsignedGreaterThanOrEqual),
        };
        let limit = self.b.ins().iconst(I32, i64::from(limit as u32));
        self.b.ins().icmp(compare, first, limit)
    }

    /// Leaves the instruction to the interpreter where an affine operand wraps around within the group, unless that is known not to be.
    fn require_no_wrap(&mut self, first: Value, step: i64, signed: bool) {
        if !self.unwrapped.contains(&(first, step, signed)) {
            let holds = self.does_not_wrap(first, step, signed);
            self.go_on_if(holds);
            self.unwrapped.push((first, step, signed));
        }
    }

    /// Values, unless a truth value holds: then what the interpreter's function gives.
    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn unless(&mut self, rare: Value, values: &[Value], class: Class, map: &Box<dyn Lanewise>) -> Vec<Value> {
        let (cold, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(cold);
        for &value in values {
            let ty = self.b.func.dfg.value_type(value);
            self.b.append_block_param(done, ty);
        }
        let arguments: Vec<ir::BlockArg> = values.iter().map(|&value| value.into()).collect();
        self.b.ins().brif(rare, cold, &[], done, &arguments);
        self.go_on_in(cold);
        let result = self.call_map_as(map, class).swap_remove(0);
        let exact = match result {
            Val::Many(parts) => parts,
            Val::One(value) | Val::Affine(value, _) => vec![value],
        };
        let arguments: Vec<ir::BlockArg> = exact.iter().map(|&value| value.into()).collect();
        if arguments.len() != values.len() {
            self.defect("a result of two shapes");
        }
        self.b.ins().jump(done, &arguments);
        self.go_on_in(done);
        self.b.block_params(done).to_vec()
    }

    /// Calls the interpreter's function for an instruction; results in the class of their registers.
    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn call_map(&mut self, map: &Box<dyn Lanewise>) -> Vec<Val> {
        let classes: Vec<Class> = map.destinations().iter().map(|&slot| self.storage(slot)).collect();
        self.call_map_with(map, &classes)
    }

    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn call_map_as(&mut self, map: &Box<dyn Lanewise>, class: Class) -> Vec<Val> {
        self.call_map_with(map, &vec![class; map.destinations().len()])
    }

    #[expect(clippy::borrowed_box, reason = "the runtime is given the address of the box")]
    fn call_map_with(&mut self, map: &Box<dyn Lanewise>, classes: &[Class]) -> Vec<Val> {
        const MOST: usize = 8;
        let (sources, destinations) = (map.sources(), map.destinations());
        if sources.len() > MOST || destinations.len() > MOST {
            self.defect("an instruction of too many operands");
        }
        let uniform = sources.iter().all(|&source| self.shapes.source(source) == Shape::Uniform);
        let lanes = if uniform { 1 } else { self.lanes as usize };
        let size = (self.lanes as usize * 2 * MOST * 8) as u32;
        let buffer = match self.buffer {
            Some(buffer) => buffer,
            None => {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 4);
                *self.buffer.insert(self.b.create_sized_stack_slot(data))
            }
        };
        for (i, &source) in sources.iter().enumerate() {
            let value = self.get(source, Class::B64);
            for lane in 0..lanes {
                let value = self.lane(&value, Class::B64, lane);
                self.b.ins().stack_store(I64, value, buffer, (8 * (lane * sources.len() + i)) as i32);
            }
        }
        let results_at = (self.lanes as usize * MOST * 8) as i32;
        let arguments = [
            self.b.ins().iconst(I64, std::ptr::from_ref(map) as i64),
            self.b.ins().stack_addr(I64, buffer, 0),
            self.b.ins().stack_addr(I64, buffer, results_at),
            self.b.ins().iconst(I32, lanes as i64),
        ];
        self.call(runtime::call_map as *const () as usize, &arguments, None);
        let mut results = Vec::new();
        for (i, &class) in classes.iter().enumerate() {
            let values: Vec<Value> = (0..lanes)
                .map(|lane| {
                    let at = results_at + (8 * (lane * destinations.len() + i)) as i32;
                    let value = self.b.ins().stack_load(I64, I64, buffer, at);
                    self.convert(value, Class::B64, class)
                })
                .collect();
            results.push(if uniform { Val::One(values[0]) } else { Val::Many(self.gather(&values, class)) });
        }
        results
    }
}
