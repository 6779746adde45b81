//! Writes the code of a program.

use gridloom_ptx::op::{Compare, IntArith, Order};
use gridloom_ptx::{
    Address, AddressBase, Dim, DimSpecial, Guard, LabelId, Operand, ParamId, RegId, ScalarType, Space, VarRef,
};

use super::super::assembly::{AfterReturn, Assembly, BlockIndex, Inlining, ParamsAt, at, int, special};
use super::super::origins::{PartOf, Shape};
use super::announced::Announced;
use super::{
    Control, ControlForm, Cursor, LoopTest, Looping, Part, ProgramStep, State, StepRun, Team, TeamBarrier,
    starts_with_steps, threads,
};

/// The code of a program under construction.
pub(super) struct Writer<'a> {
    asm: Assembly,
    block: [u32; 3],
    steps: &'a [ProgramStep],
    /// The offset of each step's parameters.
    slices: &'a [u64],
    /// A predicate that is true in the first thread of the first block, if there are conditionals.
    leader: Option<RegId>,
    /// Where a thread is in its team, unless the block is that of the steps.
    place: Option<Place>,
    /// The number of slots of a block.
    slots_of_block: u32,
    /// The number of blocks whose threads make the steps by themselves.
    own_blocks: Option<u32>,
    barrier: StepBarrier,
    /// The conditions, if they are in memory.
    phases: Option<Phases>,
    /// The step after whose barrier all conditions are read, because no later step of the pass sets
    /// any.
    read_after: Option<usize>,
}

/// Where a thread is in its team.
struct Place {
    /// The number of its slot among those of all blocks.
    slot: RegId,
    /// The number of slots.
    slots: u64,
    /// Its number in the slot.
    thread: RegId,
    /// The threads of a slot.
    threads: u64,
}

/// What orders the steps.
enum StepBarrier {
    Nothing,
    Block,
    Cluster,
    Grid {
        /// The address of the state.
        state: RegId,
        /// A predicate that is true in the first thread of each block.
        leader: RegId,
        /// What a block adds when it arrives.
        arrival: RegId,
        /// The highest bit of the counter, which changes when all blocks have arrived.
        turn: RegId,
    },
    /// As `Grid`, and tells whether a condition was set.
    Announced(Announced),
}

/// The conditions of a program of several blocks.
///
/// A step that sets a condition stores the value with the number of the phase. Phases use two
/// entries by turns, so that a block that is ahead cannot overwrite what another block has not
/// read.
struct Phases {
    /// The address of the state.
    state: RegId,
    /// The number of the phase.
    phase: RegId,
    /// The value of each condition when it was last read.
    values: Vec<RegId>,
}

pub(super) const TURN: i64 = 0x8000_0000;

impl<'a> Writer<'a> {
    pub(super) fn new(
        mut asm: Assembly,
        (steps, slices): (&'a [ProgramStep], &'a [u64]),
        (team, block, is_own): (Team, [u32; 3], bool),
        state: Option<State>,
        (has_controls, announces): (bool, bool),
    ) -> Self {
        let leader = has_controls.then(|| leader(&mut asm, team.blocks > 1));
        let place = (!is_own).then(|| place(&mut asm, team, block[0]));
        let state = state.map(|state| asm.load_param(ScalarType::U64, state.at.into()));
        let first = state.map(|_| leader_of_block(&mut asm));
        let barrier = match (team.barrier, state, first) {
            (TeamBarrier::Grid, Some(state), Some(leader)) if announces => {
                StepBarrier::Announced(Announced::new(&mut asm, state, leader, team.blocks))
            }
            (TeamBarrier::Grid, Some(state), Some(leader)) => {
                grid_barrier(&mut asm, state, leader, team.blocks)
            }
            (TeamBarrier::Cluster, ..) => StepBarrier::Cluster,
            // What the threads of a block share is used by one step after the other.
            (TeamBarrier::Thread, ..) if !steps.iter().any(|step| step.kernel.shares_block()) => {
                StepBarrier::Nothing
            }
            _ => StepBarrier::Block,
        };
        let phases = state.filter(|_| team.blocks > 1).map(|state| {
            let phase = asm.mov(ScalarType::U64, int(0));
            asm.phase = Some(phase);
            Phases { state, phase, values: Vec::new() }
        });
        let slots_of_block = team.slots;
        let own_blocks = (team.barrier == TeamBarrier::Thread).then_some(team.blocks);
        Writer {
            asm,
            block,
            steps,
            slices,
            leader,
            place,
            slots_of_block,
            own_blocks,
            barrier,
            phases,
            read_after: None,
        }
    }

    /// Returns whether a step has fewer blocks than the launch, whose other blocks leave it out.
    fn is_narrow(&self, step: &ProgramStep) -> bool {
        self.own_blocks.is_some_and(|blocks| step.grid[0] < blocks)
    }

    /// Ends the kernel.
    pub(super) fn end(mut self) -> Assembly {
        if let Some(phases) = self.phases.as_ref().filter(|phases| !phases.values.is_empty()) {
            let (address, phase) = (at(phases.state, State::PHASE), phases.phase);
            let guard = self.guard();
            self.asm.store(guard, Space::Global, ScalarType::U64, address, phase.into());
            if let StepBarrier::Announced(barrier) = self.barrier {
                barrier.end(&mut self.asm, guard);
            }
        }
        self.asm.ret();
        self.asm
    }

    /// Emits the barrier between two steps, for all threads of the team.
    fn barrier(&mut self) {
        match self.barrier {
            StepBarrier::Nothing => {}
            StepBarrier::Block => self.asm.barrier(),
            StepBarrier::Cluster => self.asm.cluster_barrier(),
            StepBarrier::Announced(barrier) => {
                let phase = self.phases.as_ref().map(|phases| phases.phase);
                let phase = phase.unwrap_or_else(|| self.asm.mov(ScalarType::U64, int(0)));
                barrier.wait(&mut self.asm, phase);
            }
            StepBarrier::Grid { state, leader, arrival, turn } => {
                self.asm.barrier();
                let (again, done) = (self.asm.label(), self.asm.label());
                self.asm.branch_if(leader, true, done);
                self.asm.arrive(at(state, State::ARRIVALS), arrival.into());
                self.asm.place(again);
                let seen = self.asm.load_acquire(at(state, State::ARRIVALS));
                let changed = self.asm.xor(seen.into(), turn.into());
                let bit = self.asm.and(changed.into(), TURN);
                let same = self.asm.compare(Compare::Eq, ScalarType::U32, bit.into(), int(0));
                self.asm.branch_if(same, false, again);
                self.asm.place(done);
                self.asm.xor_to(turn, turn.into(), int(TURN));
                self.asm.barrier();
            }
        }
    }

    /// Emits the initial values of conditions, and 0 passes of the conditionals that may not be
    /// reached.
    pub(super) fn initialize(&mut self, controls: &[&Control], parts: &[Part]) {
        let outermost: Vec<&Control> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Control(control) => Some(control),
                Part::Step(_) => None,
            })
            .collect();
        let mut has_conditions = false;
        self.begin_phases(controls);
        for (index, control) in controls.iter().enumerate() {
            let header = u64::from(Looping::BYTES) * index as u64;
            if let (LoopTest::Condition(number), None) = (control.test, &self.phases) {
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

    /// Emits the start of the first phase: the phase after the last one of the launch before.
    fn begin_phases(&mut self, controls: &[&Control]) {
        let Some(phases) = &mut self.phases else { return };
        for (index, control) in controls.iter().enumerate() {
            if let LoopTest::Condition(_) = control.test {
                let header = u64::from(Looping::BYTES) * index as u64;
                let initial = self.asm.load_param(ScalarType::U32, header + u64::from(Looping::INITIAL));
                phases.values.push(initial);
            }
        }
        if !phases.values.is_empty() {
            let last = at(phases.state, State::PHASE);
            let before = self.asm.load(Space::Global, Order::Weak, ScalarType::U64, last);
            self.asm.set(ScalarType::U64, phases.phase, before.into());
            if let (StepBarrier::Announced(barrier), [initial]) = (&self.barrier, &phases.values[..]) {
                barrier.begin(&mut self.asm, *initial);
            }
            self.next_phase();
        }
    }

    /// Emits the start of the next phase. Steps of the block that follow set conditions in it.
    fn next_phase(&mut self) {
        let Some(phases) = &self.phases else { return };
        let phase = phases.phase;
        self.asm.arith_to(phase, IntArith::Add, ScalarType::U64, phase.into(), int(1));
        // Every thread stores the same number, so none has to wait for another one to do so.
        let word = self.asm.phase_word();
        let word = Address { base: AddressBase::Var(VarRef::Symbol(word)), offset: 0 };
        self.asm.store_volatile(Space::Shared, ScalarType::U64, word, phase.into());
    }

    /// Emits reading a condition: its value changes if a step set it in the current phase.
    fn read_condition(&mut self, number: usize) -> Option<RegId> {
        let phases = self.phases.as_ref()?;
        let (state, phase, value) = (phases.state, phases.phase, phases.values[number]);
        let half = self.asm.and_wide(phase.into(), 1);
        let entry = self.asm.mul_add(half, 16, state);
        let first = i64::from(State::condition(number as u32));
        let set_in = self.asm.load(Space::Global, Order::Weak, ScalarType::U64, at(entry, first + 8));
        let new = self.asm.load(Space::Global, Order::Weak, ScalarType::U32, at(entry, first));
        let is_set = self.asm.compare(Compare::Eq, ScalarType::U64, set_in.into(), phase.into());
        self.asm.set_if(is_set, ScalarType::U32, value, new.into());
        Some(value)
    }

    fn read_conditions(&mut self) {
        let all = self.phases.as_ref().map_or(0, |phases| phases.values.len());
        for number in 0..all {
            self.read_condition(number);
        }
    }

    /// Returns the last step of a loop's body that sets a condition, if other steps follow it, and
    /// the conditions can be read after it.
    fn last_setter(&self, control: &Control) -> Option<usize> {
        let [body] = &control.bodies[..] else { return None };
        let step = |part: &Part| match part {
            Part::Step(step) => Some(*step),
            Part::Control(_) => None,
        };
        let steps: Vec<usize> = body.iter().map(step).collect::<Option<_>>()?;
        let repeats = steps.iter().enumerate().any(|(at, &one)| {
            let same = |other: &usize| self.steps[*other].kernel.same(&self.steps[one].kernel);
            steps[at + 1..].iter().any(same)
        });
        let is_in_memory = self.phases.is_some() && !matches!(self.barrier, StepBarrier::Announced(_));
        let setter = steps.iter().rposition(|&step| self.steps[step].kernel.sets_conditions())?;
        (is_in_memory && !repeats && setter + 1 < steps.len()).then(|| steps[setter])
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

    pub(super) fn parts(&mut self, parts: &[Part], place: &mut Cursor<'_>) -> Result<(), String> {
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

    /// Emits one step, after which all threads continue at `after`. The code does the work of
    /// `part`.
    fn step(&mut self, step: usize, params: ParamsAt, after: LabelId, part: PartOf) -> Result<(), String> {
        let step = &self.steps[step];
        let mut shape = Shape::Same;
        let mut how = Inlining {
            params,
            index: BlockIndex::Own,
            after: AfterReturn::GoesOn(after),
            block: None,
            thread: None,
            coherent: true,
        };
        let u32s = ScalarType::U32;
        match &self.place {
            None if self.is_narrow(step) => {
                let block = self.asm.mov(u32s, special(DimSpecial::CtaId, Dim::X));
                let idle = self.asm.compare(Compare::Ge, u32s, block.into(), int(step.grid[0].into()));
                self.asm.branch_if(idle, false, after);
                let index = coordinates(&mut self.asm, block, step.grid);
                let count = step.grid.map(|extent| self.asm.mov(u32s, int(extent.into())));
                how.index = BlockIndex::Registers { index, count };
            }
            None if step.block == self.block => {}
            None => {
                let tid = self.asm.mov(u32s, special(DimSpecial::Tid, Dim::X));
                let idle = self.asm.compare(Compare::Ge, u32s, tid.into(), int(step.block[0].into()));
                self.asm.branch_if(idle, false, after);
                how.block = Some(step.block);
            }
            Some(place) => {
                let (blocks, threads) = (threads(step.grid), threads(step.block));
                if blocks < place.slots {
                    let idle = self.asm.compare(Compare::Ge, u32s, place.slot.into(), int(blocks as i64));
                    self.asm.branch_if(idle, false, after);
                }
                if threads < place.threads {
                    let idle = self.asm.compare(Compare::Ge, u32s, place.thread.into(), int(threads as i64));
                    self.asm.branch_if(idle, false, after);
                }
                let index = coordinates(&mut self.asm, place.slot, step.grid);
                let count = step.grid.map(|extent| self.asm.mov(u32s, int(extent.into())));
                how.index = BlockIndex::Registers { index, count };
                how.block = Some(step.block);
                how.thread = Some(coordinates(&mut self.asm, place.thread, step.block));
                let slots = self.slots_of_block;
                shape = Shape::Slots { slots, threads: place.threads, grid: step.grid, block: step.block };
            }
        }
        let starts = self.asm.inline(&step.kernel, how)?;
        self.asm.sections.add(&step.kernel, starts, part, shape);
        Ok(())
    }

    /// Emits every step once, in order.
    fn straight(&mut self, run: &StepRun) -> Result<(), String> {
        for step in run.steps.clone() {
            let after = self.asm.label();
            self.step(step, ParamsAt::Offset(self.slices[step]), after, PartOf::One(step))?;
            self.asm.place(after);
            self.barrier();
            if self.read_after == Some(step) {
                self.read_conditions();
            }
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
        self.barrier();
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
            let part = PartOf::Counted { first: run.steps.start, count: index };
            this.step(run.steps.start, ParamsAt::Register(params), join, part)
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
                let part = PartOf::Counted { first: run.steps.start, count: index };
                this.step(step, ParamsAt::Register(params), join, part)?;
                this.asm.branch(join);
            }
            Ok(())
        })
    }

    /// Emits the load of the value that decides. All threads have it before the next step of any
    /// block can change it. `ordered` says that the steps of every thread meet at a barrier before
    /// the value is read again.
    fn value(&mut self, test: LoopTest, header: u64, ordered: bool) -> Option<RegId> {
        let (space, address) = match test {
            LoopTest::Count => return None,
            LoopTest::Value => {
                let address = self.asm.load_param(ScalarType::U64, header + u64::from(Looping::VALUE));
                (Space::Global, at(address, 0))
            }
            LoopTest::Condition(number) if self.phases.is_some() => {
                if !ordered {
                    let value = self.read_condition(number as usize);
                    self.barrier();
                    return value;
                }
                if let StepBarrier::Announced(barrier) = self.barrier {
                    let value = barrier.value(&mut self.asm);
                    self.next_phase();
                    return Some(value);
                }
                if self.read_after.is_none() {
                    self.read_conditions();
                }
                self.next_phase();
                return self.phases.as_ref().map(|phases| phases.values[number as usize]);
            }
            LoopTest::Condition(number) => (Space::Shared, self.condition_word(number)),
        };
        let value = self.asm.load(space, Order::Weak, ScalarType::U32, address);
        self.barrier();
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
        // Every pass has a barrier if its first part is a step.
        let ordered = starts_with_steps(control);
        let tests_condition = ordered && matches!(control.test, LoopTest::Condition(_));
        let around = self.read_after;
        self.read_after = self.last_setter(control).filter(|_| tests_condition);
        if self.read_after.is_some() && test_first {
            // Steps before the loop may have set them.
            self.read_conditions();
        }
        self.asm.place(again);
        let ended = self.asm.compare(Compare::Ge, ScalarType::U64, passes.into(), limit.into());
        self.asm.branch_if(ended, false, done);
        if let Some(value) = self.value(control.test, header, ordered) {
            let zero = self.asm.compare(Compare::Eq, ScalarType::U32, value.into(), int(0));
            self.asm.branch_if(zero, false, done);
        }
        self.asm.place(start);
        for body in &control.bodies {
            self.parts(body, place)?;
        }
        self.read_after = around;
        self.asm.arith_to(passes, IntArith::Add, ScalarType::U64, passes.into(), int(1));
        self.asm.branch(again);
        self.asm.place(done);
        if ordered && self.phases.is_some() && matches!(control.test, LoopTest::Condition(_)) {
            // A barrier lies between any two phases, so that a step of the phase after the next one
            // cannot overwrite what another block still reads.
            self.barrier();
        }
        self.store_passes(header, passes);
        Ok(())
    }

    /// Emits bodies of which at most one runs.
    fn choice(&mut self, control: &Control, header: u64, place: &mut Cursor<'_>) -> Result<(), String> {
        let value = self.value(control.test, header, false).ok_or("a count decides no branch")?;
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

/// Returns a predicate that is true in the first thread of the first block.
fn leader(asm: &mut Assembly, has_blocks: bool) -> RegId {
    let mut indices = vec![
        special(DimSpecial::Tid, Dim::X),
        special(DimSpecial::Tid, Dim::Y),
        special(DimSpecial::Tid, Dim::Z),
    ];
    if has_blocks {
        indices.push(special(DimSpecial::CtaId, Dim::X));
    }
    let sum = asm.mov(ScalarType::U32, int(0));
    for index in indices {
        let index = asm.mov(ScalarType::U32, index);
        asm.arith_to(sum, IntArith::Add, ScalarType::U32, sum.into(), index.into());
    }
    asm.compare(Compare::Eq, ScalarType::U32, sum.into(), int(0))
}

/// Returns a predicate that is true in the first thread of each block, whose threads are along x.
fn leader_of_block(asm: &mut Assembly) -> RegId {
    let thread = asm.mov(ScalarType::U32, special(DimSpecial::Tid, Dim::X));
    asm.compare(Compare::Eq, ScalarType::U32, thread.into(), int(0))
}

/// Emits the place of a thread in its team.
fn place(asm: &mut Assembly, team: Team, all_threads: u32) -> Place {
    let u32s = ScalarType::U32;
    let threads = all_threads / team.slots;
    let tid = asm.mov(u32s, special(DimSpecial::Tid, Dim::X));
    let block = asm.mov(u32s, special(DimSpecial::CtaId, Dim::X));
    let (slot, thread) = if team.slots == 1 {
        (block, tid)
    } else {
        let own = asm.arith(IntArith::Div, u32s, tid.into(), int(threads.into()));
        let thread = asm.arith(IntArith::Rem, u32s, tid.into(), int(threads.into()));
        asm.divide(team.slots, own, team.shared);
        (asm.mul_add_low(block, team.slots, own), thread)
    };
    let slots = u64::from(team.blocks) * u64::from(team.slots);
    Place { slot, slots, thread, threads: threads.into() }
}

/// Emits the registers of a barrier of the grid.
///
/// The counter changes its highest bit each time all blocks have arrived: the first block adds what
/// the others leave to it. A block cannot miss a change, because the next one needs its own
/// arrival. So the counter needs no reset, and may wrap around.
fn grid_barrier(asm: &mut Assembly, state: RegId, leader: RegId, blocks: u32) -> StepBarrier {
    let u32s = ScalarType::U32;
    let now = asm.load_acquire(at(state, State::ARRIVALS));
    let turn = asm.and(now.into(), TURN);
    let block = asm.mov(u32s, special(DimSpecial::CtaId, Dim::X));
    let is_first = asm.compare(Compare::Eq, u32s, block.into(), int(0));
    let arrival = asm.mov(u32s, int(1));
    asm.set_if(is_first, u32s, arrival, int(TURN - i64::from(blocks - 1)));
    StepBarrier::Grid { state, leader, arrival, turn }
}

/// Emits the coordinates of an index in a box with these extents.
fn coordinates(asm: &mut Assembly, index: RegId, extents: [u32; 3]) -> [RegId; 3] {
    let u32s = ScalarType::U32;
    let zero = |asm: &mut Assembly| asm.mov(u32s, int(0));
    let split = |asm: &mut Assembly, index: RegId, extent: u32| {
        let low = asm.arith(IntArith::Rem, u32s, index.into(), int(extent.into()));
        (low, asm.arith(IntArith::Div, u32s, index.into(), int(extent.into())))
    };
    match extents {
        [_, 1, 1] => [index, zero(asm), zero(asm)],
        [width, _, 1] => {
            let (x, y) = split(asm, index, width);
            [x, y, zero(asm)]
        }
        [width, height, _] => {
            let (x, row) = split(asm, index, width);
            let (y, z) = split(asm, row, height);
            [x, y, z]
        }
    }
}
