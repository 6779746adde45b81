//! Block programs: kernels of one block as steps of one block, under loops and branches.

use std::ops::Range;

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

/// What decides a conditional inside a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopTest {
    /// A 32-bit integer in memory, at the address in the header.
    Value,
    /// The condition with this number, which steps set. Steps get four times its number as the
    /// handle.
    Condition(u32),
    /// Only the greatest number of passes.
    Count,
}

/// A loop around the steps of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Looping {
    /// The test.
    pub test: LoopTest,
    /// Whether the test also decides about the first pass.
    pub test_first: bool,
}

impl Looping {
    /// The offset of the value's address in the header of a conditional.
    pub const VALUE: u32 = 0;
    /// The offset of the greatest number of passes.
    pub const LIMIT: u32 = 8;
    /// The offset of the address for the number of passes.
    pub const PASSES: u32 = 16;
    /// The offset of the condition's initial value.
    pub const INITIAL: u32 = 24;
    /// The offset of a word that is not 0 if the count of a conditional that is not reached stays,
    /// because the kernel runs several times in a launch.
    pub const KEEPS: u32 = 28;
    /// The size of the header of one conditional.
    pub const BYTES: u32 = 32;
}

/// The form of a conditional inside a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlForm {
    /// A loop around its one body.
    Loop {
        /// Whether the test also decides about the first pass.
        test_first: bool,
    },
    /// The first body runs if the value is not 0, and the second, if there is one, if it is 0.
    If,
    /// The body whose index is the value runs.
    Switch,
}

/// A conditional inside a program.
///
/// The parameters start with a header of [`Looping::BYTES`] bytes for each: the address of the
/// value ([`Looping::VALUE`]), the most passes ([`Looping::LIMIT`]), the address where the number
/// of passes is stored, or 0 ([`Looping::PASSES`]), 8 bytes each, the value that its condition
/// starts with ([`Looping::INITIAL`]) and [`Looping::KEEPS`], 4 bytes each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Control {
    /// The form.
    pub form: ControlForm,
    /// The test.
    pub test: LoopTest,
    /// The bodies.
    pub bodies: Vec<Vec<Part>>,
}

/// A part of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The step with this index. Indices count up through the program.
    Step(usize),
    /// A conditional. Their headers are in the order in which they start.
    Control(Control),
}

/// Combines steps into one kernel of one block that runs them in order, optionally in a loop.
///
/// `limit` is the most bytes of parameters. Returns the reason if the steps cannot be combined.
pub fn block_program(
    steps: &[ProgramStep],
    looping: Option<Looping>,
    limit: u32,
) -> Result<Rewritten, String> {
    let all: Vec<Part> = (0..steps.len()).map(Part::Step).collect();
    let parts = match looping {
        None => all,
        Some(Looping { test, test_first }) => {
            vec![Part::Control(Control { form: ControlForm::Loop { test_first }, test, bodies: vec![all] })]
        }
    };
    structured_program(steps, &parts, limit)
}

/// Combines steps into one kernel of one block that runs them in order, under conditionals.
///
/// `limit` is the most bytes of parameters. Returns the reason if the steps cannot be combined.
pub fn structured_program(steps: &[ProgramStep], parts: &[Part], limit: u32) -> Result<Rewritten, String> {
    let block = program_block(steps)?;
    for step in steps {
        check(step, block)?;
    }
    let mut layout = Layout::new(limit);
    let controls = controls(parts);
    let conditions = controls.iter().filter(|control| matches!(control.test, LoopTest::Condition(_))).count();
    if !controls.is_empty() {
        layout.place(u64::from(Looping::BYTES) * controls.len() as u64, 8)?;
    }
    let mut runs = Vec::new();
    find_runs(steps, parts, &mut runs);
    for run in &mut runs {
        if run.repeats() && run.kinds.first.len() > 1 {
            run.table = Some(layout.place(4 * run.steps.len() as u64, 4)?);
        }
    }
    let mut slices = Vec::with_capacity(steps.len());
    for step in steps {
        let align = step.kernel.param_align().max(SLICE_ALIGN);
        slices.push(layout.place(step.kernel.param_bytes(), align)?);
    }
    let mut header = vec![0; layout.at.max(1) as usize];
    for run in &runs {
        let Some(table) = run.table else { continue };
        for (index, (&kind, step)) in run.kinds.of.iter().zip(run.steps.clone()).enumerate() {
            let slice = slices[step];
            if slice > 0xffff {
                return Err("their arguments are too far apart".into());
            }
            let entry = (kind as u32) << 16 | slice as u32;
            put(&mut header, table + 4 * index as u64, &entry.to_le_bytes());
        }
    }
    let mut asm = Assembly::new(if conditions > 0 { Conditions::Shared } else { Conditions::Device });
    asm.share_conditions(conditions);
    let leader = if controls.is_empty() { None } else { Some(leader(&mut asm)) };
    let mut writer = Writer { asm, block, steps, slices: &slices, leader };
    writer.initialize(&controls, parts);
    let mut place = Cursor { runs: &runs, run: 0, control: 0 };
    writer.parts(parts, &mut place)?;
    writer.asm.ret();
    let module = writer.asm.finish(ENTRY, block, layout.at, layout.align)?;
    let slices = slices.into_iter().map(|slice| slice as u32).collect();
    Ok(Rewritten { module, header, slices, block, blocks: 1 })
}

/// Returns all conditionals in the order in which they start.
fn controls(parts: &[Part]) -> Vec<&Control> {
    let mut found = Vec::new();
    for part in parts {
        if let Part::Control(control) = part {
            found.push(control);
            found.extend(control.bodies.iter().flat_map(|body| controls(body)));
        }
    }
    found
}

/// Consecutive steps without a conditional between them.
struct StepRun {
    steps: Range<usize>,
    kinds: Kinds,
    /// The offset of the table of steps, if there is one.
    table: Option<u64>,
}

impl StepRun {
    fn repeats(&self) -> bool {
        self.kinds.first.len() < self.steps.len()
    }
}

fn find_runs(steps: &[ProgramStep], parts: &[Part], runs: &mut Vec<StepRun>) {
    let mut at = 0;
    while let Some(part) = parts.get(at) {
        match part {
            Part::Step(first) => {
                let count = parts[at..].iter().take_while(|part| matches!(part, Part::Step(_))).count();
                let range = *first..*first + count;
                let kinds = Kinds::of(&steps[range.clone()], *first);
                runs.push(StepRun { steps: range, kinds, table: None });
                at += count;
            }
            Part::Control(control) => {
                control.bodies.iter().for_each(|body| find_runs(steps, body, runs));
                at += 1;
            }
        }
    }
}

/// The next run and conditional to emit.
struct Cursor<'a> {
    runs: &'a [StepRun],
    run: usize,
    control: u64,
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

/// The different kernels among some steps.
struct Kinds {
    /// The kernel of each step.
    of: Vec<usize>,
    /// The index of the first step with each kernel.
    first: Vec<usize>,
}

impl Kinds {
    /// Returns the kernels of these steps, whose indices start at `start`.
    fn of(steps: &[ProgramStep], start: usize) -> Self {
        let mut kinds = Kinds { of: Vec::with_capacity(steps.len()), first: Vec::new() };
        for (index, step) in steps.iter().enumerate() {
            let same = |&first: &usize| {
                let other: &ProgramStep = &steps[first - start];
                other.block == step.block && other.kernel.same(&step.kernel)
            };
            let kind = kinds.first.iter().position(same).unwrap_or_else(|| {
                kinds.first.push(start + index);
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
    steps: &'a [ProgramStep],
    /// The offset of each step's parameters.
    slices: &'a [u64],
    /// A predicate that is true in the first thread of the block, if there are conditionals.
    leader: Option<RegId>,
}

impl Writer<'_> {
    /// Emits the initial values of conditions, and 0 passes of the conditionals that may not be
    /// reached.
    fn initialize(&mut self, controls: &[&Control], parts: &[Part]) {
        let outermost: Vec<&Control> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Control(control) => Some(control),
                Part::Step(_) => None,
            })
            .collect();
        let mut has_conditions = false;
        for (index, control) in controls.iter().enumerate() {
            let header = u64::from(Looping::BYTES) * index as u64;
            if let LoopTest::Condition(number) = control.test {
                let initial = self.asm.load_param(ScalarType::U32, header + u64::from(Looping::INITIAL));
                let (guard, word) = (self.guard(), self.condition_word(number));
                self.asm.store(guard, Space::Shared, ScalarType::U32, word, initial.into());
                has_conditions = true;
            }
            if !outermost.iter().any(|outer| std::ptr::eq(*outer, *control)) {
                let keeps = self.asm.load_param(ScalarType::U32, header + u64::from(Looping::KEEPS));
                let end = self.asm.label();
                let kept = self.asm.compare(Compare::Ne, ScalarType::U32, keeps.into(), int(0));
                self.asm.branch_if(kept, false, end);
                let zero = self.asm.mov(ScalarType::U64, int(0));
                self.store_passes(header, zero);
                self.asm.place(end);
            }
        }
        if has_conditions {
            self.asm.barrier();
        }
    }

    fn guard(&self) -> Option<Guard> {
        self.leader.map(|reg| Guard { reg, negated: false })
    }

    fn condition_word(&mut self, number: u32) -> Address {
        let words = self.asm.condition_words();
        Address { base: AddressBase::Var(VarRef::Symbol(words)), offset: 4 * i64::from(number) }
    }

    fn store_passes(&mut self, header: u64, passes: RegId) {
        let counter = self.asm.load_param(ScalarType::U64, header + u64::from(Looping::PASSES));
        let end = self.asm.label();
        let uncounted = self.asm.compare(Compare::Eq, ScalarType::U64, counter.into(), int(0));
        self.asm.branch_if(uncounted, false, end);
        let guard = self.guard();
        self.asm.store(guard, Space::Global, ScalarType::U64, at(counter, 0), passes.into());
        self.asm.place(end);
    }

    fn parts(&mut self, parts: &[Part], place: &mut Cursor<'_>) -> Result<(), String> {
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            match part {
                Part::Step(_) => {
                    let run = &place.runs[place.run];
                    place.run += 1;
                    self.run(run)?;
                    at += run.steps.len();
                }
                Part::Control(control) => {
                    let header = u64::from(Looping::BYTES) * place.control;
                    place.control += 1;
                    match control.form {
                        ControlForm::Loop { test_first } => {
                            self.looped(control, test_first, header, place)?
                        }
                        ControlForm::If | ControlForm::Switch => self.choice(control, header, place)?,
                    }
                    at += 1;
                }
            }
        }
        Ok(())
    }

    fn run(&mut self, run: &StepRun) -> Result<(), String> {
        match (run.repeats(), run.table) {
            (false, _) => self.straight(run),
            (true, Some(table)) => self.in_table_order(run, table),
            (true, None) => self.same_kernel(run),
        }
    }

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
    fn straight(&mut self, run: &StepRun) -> Result<(), String> {
        for step in run.steps.clone() {
            let after = self.asm.label();
            self.step(step, ParamsAt::Offset(self.slices[step]), after)?;
            self.asm.place(after);
            self.asm.barrier();
        }
        Ok(())
    }

    fn params_address(&mut self) -> RegId {
        let base = Operand::Address { base: VarRef::Param(ParamId(0)), offset: 0 };
        self.asm.mov(ScalarType::U64, base)
    }

    /// Emits a loop over the steps of a run. `body` emits the step whose number within the run is
    /// in the register.
    fn each_step(
        &mut self,
        run: &StepRun,
        body: impl FnOnce(&mut Self, RegId, LabelId) -> Result<(), String>,
    ) -> Result<(), String> {
        let (next, join) = (self.asm.label(), self.asm.label());
        let index = self.asm.mov(ScalarType::U32, int(0));
        self.asm.place(next);
        body(self, index, join)?;
        self.asm.place(join);
        self.asm.barrier();
        self.asm.arith_to(index, IntArith::Add, ScalarType::U32, index.into(), int(1));
        let count = int(run.steps.len() as i64);
        let more = self.asm.compare(Compare::Lt, ScalarType::U32, index.into(), count);
        self.asm.branch_if(more, false, next);
        Ok(())
    }

    /// Emits one kernel that runs repeatedly, with parameters at equal distances.
    fn same_kernel(&mut self, run: &StepRun) -> Result<(), String> {
        let slices = &self.slices[run.steps.clone()];
        let stride = slices.get(1).map_or(0, |second| second - slices[0]);
        let first = int(slices[0] as i64);
        let base = self.params_address();
        let base = self.asm.arith(IntArith::Add, ScalarType::U64, base.into(), first);
        self.each_step(run, |this, index, join| {
            let params = this.asm.mul_add_wide(index.into(), stride, base);
            this.step(run.steps.start, ParamsAt::Register(params), join)
        })
    }

    /// Emits several kernels that run in the order of a table.
    fn in_table_order(&mut self, run: &StepRun, table: u64) -> Result<(), String> {
        let base = self.params_address();
        self.each_step(run, |this, index, join| {
            let place = this.asm.mul_add_wide(index.into(), 4, base);
            let entry = this.asm.load(Space::Param, Order::Weak, ScalarType::U32, at(place, table as i64));
            let offset = this.asm.and(entry.into(), 0xffff);
            let kind = this.asm.shr(entry.into(), 16);
            let params = this.asm.mul_add_wide(offset.into(), 1, base);
            let first = &run.kinds.first;
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

    /// Emits the load of the value that decides. All threads have it before the first continues.
    fn value(&mut self, test: LoopTest, header: u64) -> Option<RegId> {
        let (space, address) = match test {
            LoopTest::Count => return None,
            LoopTest::Value => {
                let address = self.asm.load_param(ScalarType::U64, header + u64::from(Looping::VALUE));
                (Space::Global, at(address, 0))
            }
            LoopTest::Condition(number) => (Space::Shared, self.condition_word(number)),
        };
        let value = self.asm.load(space, Order::Weak, ScalarType::U32, address);
        self.asm.barrier();
        Some(value)
    }

    /// Emits a loop that ends when its test says so.
    fn looped(
        &mut self,
        control: &Control,
        test_first: bool,
        header: u64,
        place: &mut Cursor<'_>,
    ) -> Result<(), String> {
        let (again, start, done) = (self.asm.label(), self.asm.label(), self.asm.label());
        let limit = self.asm.load_param(ScalarType::U64, header + u64::from(Looping::LIMIT));
        let passes = self.asm.mov(ScalarType::U64, int(0));
        if !test_first {
            let none = self.asm.compare(Compare::Eq, ScalarType::U64, limit.into(), int(0));
            self.asm.branch_if(none, false, done);
            self.asm.branch(start);
        }
        self.asm.place(again);
        let ended = self.asm.compare(Compare::Ge, ScalarType::U64, passes.into(), limit.into());
        self.asm.branch_if(ended, false, done);
        if let Some(value) = self.value(control.test, header) {
            let zero = self.asm.compare(Compare::Eq, ScalarType::U32, value.into(), int(0));
            self.asm.branch_if(zero, false, done);
        }
        self.asm.place(start);
        for body in &control.bodies {
            self.parts(body, place)?;
        }
        self.asm.arith_to(passes, IntArith::Add, ScalarType::U64, passes.into(), int(1));
        self.asm.branch(again);
        self.asm.place(done);
        self.store_passes(header, passes);
        Ok(())
    }

    /// Emits bodies of which at most one runs.
    fn choice(&mut self, control: &Control, header: u64, place: &mut Cursor<'_>) -> Result<(), String> {
        let value = self.value(control.test, header).ok_or("a count decides no branch")?;
        let done = self.asm.label();
        let passes = self.asm.mov(ScalarType::U64, int(0));
        for (index, body) in control.bodies.iter().enumerate() {
            let next = self.asm.label();
            let (cmp, with) = match (control.form, index) {
                (ControlForm::Switch, case) => (Compare::Ne, case as i64),
                (_, 0) => (Compare::Eq, 0),
                (_, _) => (Compare::Ne, 0),
            };
            let other = self.asm.compare(cmp, ScalarType::U32, value.into(), int(with));
            self.asm.branch_if(other, false, next);
            self.parts(body, place)?;
            self.asm.set(ScalarType::U64, passes, int(1));
            self.asm.branch(done);
            self.asm.place(next);
        }
        self.asm.place(done);
        self.store_passes(header, passes);
        Ok(())
    }
}

/// Returns a predicate that is true in the first thread of the block.
fn leader(asm: &mut Assembly) -> RegId {
    let [x, y, z] =
        [Dim::X, Dim::Y, Dim::Z].map(|dim| asm.mov(ScalarType::U32, special(DimSpecial::Tid, dim)));
    let sum = asm.arith(IntArith::Add, ScalarType::U32, x.into(), y.into());
    let sum = asm.arith(IntArith::Add, ScalarType::U32, sum.into(), z.into());
    asm.compare(Compare::Eq, ScalarType::U32, sum.into(), int(0))
}
