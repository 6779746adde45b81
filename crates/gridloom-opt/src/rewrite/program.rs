//! Block programs: kernels of one block as steps of one block.

use gridloom_ptx::op::{Compare, IntArith, Order};
use gridloom_ptx::{
    Address, AddressBase, Dim, DimSpecial, Guard, LabelId, ParamId, RegId, ScalarType, Space, VarRef,
};

use super::assembly::{AfterReturn, Assembly, BlockIndex, Conditions, Inlining, ParamsAt, at, int, special};
use super::source::{KernelSource, Role};
use super::{ENTRY, Layout, Rewritten, SLICE_ALIGN, put};
use gridloom_ptx::Operand;

/// One step of a block program.
#[derive(Clone, Debug)]
pub struct ProgramStep {
    /// The kernel.
    pub kernel: KernelSource,
    /// The threads it was launched with, in one block: those of the whole program, or fewer, all
    /// along x.
    pub block: [u32; 3],
}

/// What decides whether a loop makes another pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopTest {
    /// A 32-bit integer in memory, at the address in the header, is not 0.
    Value,
    /// The one condition that the steps set is not 0.
    Condition,
    /// Only the greatest number of passes.
    Count,
}

/// A loop around the steps of a program.
///
/// The header of the parameters starts with the address of the value ([`Looping::VALUE`]), the most
/// passes ([`Looping::LIMIT`]), the address where the number of passes is stored, or 0
/// ([`Looping::PASSES`]), 8 bytes each, and the value that the condition starts with
/// ([`Looping::INITIAL`]), 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Looping {
    /// The test.
    pub test: LoopTest,
    /// Whether the test also decides about the first pass.
    pub test_first: bool,
}

impl Looping {
    /// The offset of the value's address in the header.
    pub const VALUE: u32 = 0;
    /// The offset of the greatest number of passes in the header.
    pub const LIMIT: u32 = 8;
    /// The offset of the address for the number of passes in the header.
    pub const PASSES: u32 = 16;
    /// The offset of the condition's initial value in the header.
    pub const INITIAL: u32 = 24;
    const BYTES: u64 = 32;
}

/// Combines steps into one kernel of one block that runs them in order.
///
/// `limit` is the most bytes of parameters. Returns the reason if the steps cannot be combined.
pub fn block_program(
    steps: &[ProgramStep],
    looping: Option<Looping>,
    limit: u32,
) -> Result<Rewritten, String> {
    let block = program_block(steps)?;
    for step in steps {
        check(step, block)?;
    }
    let kinds = Kinds::of(steps);
    let mut layout = Layout::new(limit);
    if looping.is_some() {
        layout.place(Looping::BYTES, 8)?;
    }
    let repeats = kinds.first.len() < steps.len();
    let table =
        if repeats && kinds.first.len() > 1 { Some(layout.place(4 * steps.len() as u64, 4)?) } else { None };
    let mut slices = Vec::with_capacity(steps.len());
    for step in steps {
        let align = step.kernel.param_align().max(SLICE_ALIGN);
        slices.push(layout.place(step.kernel.param_bytes(), align)?);
    }
    let mut header = vec![0; layout.at.max(1) as usize];
    if let Some(table) = table {
        for (index, (&kind, &slice)) in kinds.of.iter().zip(&slices).enumerate() {
            let entry = (kind as u32) << 16 | slice as u32;
            put(&mut header, table + 4 * index as u64, &entry.to_le_bytes());
        }
    }
    let conditions = match looping {
        Some(Looping { test: LoopTest::Condition, .. }) => Conditions::Shared,
        _ => Conditions::Device,
    };
    let mut writer = Writer { asm: Assembly::new(conditions), block, kinds: &kinds, steps };
    let run = |writer: &mut Writer<'_>| match (repeats, table) {
        (false, _) => writer.straight(&slices),
        (true, Some(table)) => writer.in_table_order(table),
        (true, None) => writer.same_kernel(&slices),
    };
    match looping {
        None => run(&mut writer)?,
        Some(looping) => writer.looped(looping, run)?,
    }
    writer.asm.ret();
    let module = writer.asm.finish(ENTRY, block, layout.at, layout.align)?;
    let slices = slices.into_iter().map(|slice| slice as u32).collect();
    Ok(Rewritten { module, header, slices, block, blocks: 1 })
}

/// Returns the threads of the whole program: those of its largest step.
fn program_block(steps: &[ProgramStep]) -> Result<[u32; 3], String> {
    let largest = steps.iter().max_by_key(|step| threads(step.block)).ok_or("there are no steps")?.block;
    let fits = |block: [u32; 3]| block == largest || block[1..] == [1, 1] && largest[1..] == [1, 1];
    match steps.iter().find(|step| !fits(step.block)) {
        None => Ok(largest),
        Some(step) => {
            Err(format!("blocks of {:?} and of {largest:?} threads do not go together", step.block))
        }
    }
}

fn threads(block: [u32; 3]) -> u64 {
    block.iter().map(|&extent| u64::from(extent)).product()
}

fn check(step: &ProgramStep, block: [u32; 3]) -> Result<(), String> {
    let kernel = &step.kernel;
    let because = |reason: &str| Err(format!("{}: {reason}", kernel.name()));
    if let Some(reason) = kernel.obstacle(Role::Step) {
        return because(reason);
    }
    let directives = &kernel.function().directives;
    if directives.reqntid.is_some_and(|required| required != step.block) {
        return because("it requires another block (.reqntid)");
    }
    if directives.maxntid.is_some_and(|max| threads(max) < threads(step.block)) {
        return because("it allows fewer threads (.maxntid)");
    }
    if step.block != block
        && let Some(reason) = kernel.obstacle_in_part_of_block(step.block[0])
    {
        return because(&reason);
    }
    Ok(())
}

/// The different kernels among the steps.
struct Kinds {
    /// The kernel of each step.
    of: Vec<usize>,
    /// The first step with each kernel.
    first: Vec<usize>,
}

impl Kinds {
    fn of(steps: &[ProgramStep]) -> Self {
        let mut kinds = Kinds { of: Vec::with_capacity(steps.len()), first: Vec::new() };
        for (index, step) in steps.iter().enumerate() {
            let same = |&first: &usize| {
                let other: &ProgramStep = &steps[first];
                other.block == step.block && other.kernel.same(&step.kernel)
            };
            let kind = kinds.first.iter().position(same).unwrap_or_else(|| {
                kinds.first.push(index);
                kinds.first.len() - 1
            });
            kinds.of.push(kind);
        }
        kinds
    }
}

struct Writer<'a> {
    asm: Assembly,
    block: [u32; 3],
    kinds: &'a Kinds,
    steps: &'a [ProgramStep],
}

impl Writer<'_> {
    /// Emits one step, after which all threads continue at `after`.
    fn step(&mut self, step: usize, params: ParamsAt, after: LabelId) -> Result<(), String> {
        let step = &self.steps[step];
        let part = (step.block != self.block).then_some(step.block[0]);
        if let Some(threads) = part {
            let tid = special(DimSpecial::Tid, Dim::X);
            let idle = self.asm.compare(Compare::Ge, ScalarType::U32, tid, int(threads.into()));
            self.asm.branch_if(idle, false, after);
        }
        let how = Inlining {
            params,
            index: BlockIndex::Own,
            after: AfterReturn::GoesOn(after),
            threads: part,
            coherent: true,
        };
        self.asm.inline(&step.kernel, how)
    }

    /// Emits every step once, in order.
    fn straight(&mut self, slices: &[u64]) -> Result<(), String> {
        for (step, &slice) in slices.iter().enumerate() {
            let after = self.asm.label();
            self.step(step, ParamsAt::Offset(slice), after)?;
            self.asm.place(after);
            self.asm.barrier();
        }
        Ok(())
    }

    fn params_address(&mut self) -> RegId {
        let base = Operand::Address { base: VarRef::Param(ParamId(0)), offset: 0 };
        self.asm.mov(ScalarType::U64, base)
    }

    /// Emits a loop over the steps. `params` computes the address of the parameters of the step in
    /// the register.
    fn each_step(
        &mut self,
        body: impl FnOnce(&mut Self, RegId, LabelId) -> Result<(), String>,
    ) -> Result<(), String> {
        let (next, join) = (self.asm.label(), self.asm.label());
        let index = self.asm.mov(ScalarType::U32, int(0));
        self.asm.place(next);
        body(self, index, join)?;
        self.asm.place(join);
        self.asm.barrier();
        self.asm.arith_to(index, IntArith::Add, ScalarType::U32, index.into(), int(1));
        let count = int(self.steps.len() as i64);
        let more = self.asm.compare(Compare::Lt, ScalarType::U32, index.into(), count);
        self.asm.branch_if(more, false, next);
        Ok(())
    }

    /// Emits one kernel that runs repeatedly, with parameters at equal distances.
    fn same_kernel(&mut self, slices: &[u64]) -> Result<(), String> {
        let base = self.params_address();
        let base = self.asm.arith(IntArith::Add, ScalarType::U64, base.into(), int(slices[0] as i64));
        let stride = slices.get(1).map_or(0, |second| second - slices[0]);
        self.each_step(|this, index, join| {
            let params = this.asm.mul_add_wide(index.into(), stride, base);
            this.step(0, ParamsAt::Register(params), join)
        })
    }

    /// Emits several kernels that run in the order of a table.
    fn in_table_order(&mut self, table: u64) -> Result<(), String> {
        let base = self.params_address();
        self.each_step(|this, index, join| {
            let place = this.asm.mul_add_wide(index.into(), 4, base);
            let entry = this.asm.load(Space::Param, Order::Weak, ScalarType::U32, at(place, table as i64));
            let offset = this.asm.and(entry.into(), 0xffff);
            let kind = this.asm.shr(entry.into(), 16);
            let params = this.asm.mul_add_wide(offset.into(), 1, base);
            let first = this.kinds.first.clone();
            let labels: Vec<LabelId> = first.iter().map(|_| this.asm.label()).collect();
            for (number, &label) in labels.iter().enumerate().skip(1) {
                let here = this.asm.compare(Compare::Eq, ScalarType::U32, kind.into(), int(number as i64));
                this.asm.branch_if(here, false, label);
            }
            for (&step, &label) in first.iter().zip(&labels) {
                this.asm.place(label);
                this.step(step, ParamsAt::Register(params), join)?;
                this.asm.branch(join);
            }
            Ok(())
        })
    }

    /// Emits the steps in a loop that ends when the test says so.
    fn looped(
        &mut self,
        looping: Looping,
        run: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let (again, body, done) = (self.asm.label(), self.asm.label(), self.asm.label());
        let leader = self.leader();
        let limit = self.asm.load_param(ScalarType::U64, Looping::LIMIT.into());
        let passes = self.asm.mov(ScalarType::U64, int(0));
        let value = match looping.test {
            LoopTest::Count => None,
            LoopTest::Value => {
                let address = self.asm.load_param(ScalarType::U64, Looping::VALUE.into());
                Some((Space::Global, at(address, 0)))
            }
            LoopTest::Condition => {
                let word = self.asm.condition_word();
                let address = Address { base: AddressBase::Var(VarRef::Symbol(word)), offset: 0 };
                let initial = self.asm.load_param(ScalarType::U32, Looping::INITIAL.into());
                let guard = Some(Guard { reg: leader, negated: false });
                self.asm.store(guard, Space::Shared, ScalarType::U32, address, initial.into());
                self.asm.barrier();
                Some((Space::Shared, address))
            }
        };
        if !looping.test_first {
            let none = self.asm.compare(Compare::Eq, ScalarType::U64, limit.into(), int(0));
            self.asm.branch_if(none, false, done);
            self.asm.branch(body);
        }
        self.asm.place(again);
        let ended = self.asm.compare(Compare::Ge, ScalarType::U64, passes.into(), limit.into());
        self.asm.branch_if(ended, false, done);
        if let Some((space, address)) = value {
            let value = self.asm.load(space, Order::Weak, ScalarType::U32, address);
            // All threads have read it before the first can change it.
            self.asm.barrier();
            let zero = self.asm.compare(Compare::Eq, ScalarType::U32, value.into(), int(0));
            self.asm.branch_if(zero, false, done);
        }
        self.asm.place(body);
        run(self)?;
        self.asm.arith_to(passes, IntArith::Add, ScalarType::U64, passes.into(), int(1));
        self.asm.branch(again);
        self.asm.place(done);
        let counter = self.asm.load_param(ScalarType::U64, Looping::PASSES.into());
        let end = self.asm.label();
        let uncounted = self.asm.compare(Compare::Eq, ScalarType::U64, counter.into(), int(0));
        self.asm.branch_if(uncounted, false, end);
        let guard = Some(Guard { reg: leader, negated: false });
        self.asm.store(guard, Space::Global, ScalarType::U64, at(counter, 0), passes.into());
        self.asm.place(end);
        Ok(())
    }

    /// Returns a predicate that is true in the first thread of the block.
    fn leader(&mut self) -> RegId {
        let [x, y, z] =
            [Dim::X, Dim::Y, Dim::Z].map(|dim| self.asm.mov(ScalarType::U32, special(DimSpecial::Tid, dim)));
        let sum = self.asm.arith(IntArith::Add, ScalarType::U32, x.into(), y.into());
        let sum = self.asm.arith(IntArith::Add, ScalarType::U32, sum.into(), z.into());
        self.asm.compare(Compare::Eq, ScalarType::U32, sum.into(), int(0))
    }
}
