//! Programs: kernels as steps of one kernel, under loops and branches.

pub(crate) mod announced;
mod team;
mod writer;

use std::ops::Range;

use super::assembly::{Assembly, Conditions};
use super::source::{KernelSource, Role};
use super::{Layout, Rewritten, SLICE_ALIGN, name_of, put};
pub use team::{State, Team, TeamBarrier};
use writer::Writer;

/// One step of a program.
#[derive(Clone, Debug)]
pub struct ProgramStep {
    /// The kernel.
    pub kernel: KernelSource,
    /// The blocks it was launched with.
    pub grid: [u32; 3],
    /// The threads of each block. In a program of one block: those of the whole program, or fewer,
    /// all along x.
    pub block: [u32; 3],
}

/// What decides a conditional inside a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopTest {
    /// A 32-bit integer in memory, at the address in the header.
    Value,
    /// The condition with this number, which steps set. Their handle is four times its number in a
    /// program of one block, and else the address in the [`State`].
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
    team_program(steps, parts, Team::ONE_BLOCK, limit)
}

/// Combines steps into one kernel that a team of blocks runs in order, under conditionals.
///
/// `limit` is the most bytes of parameters. Returns the reason if the steps cannot be combined.
pub fn team_program(
    steps: &[ProgramStep],
    parts: &[Part],
    team: Team,
    limit: u32,
) -> Result<Rewritten, String> {
    // One block has the shape of its steps if they have the same.
    let keeps_shape = team.is_one_block() || team.barrier == TeamBarrier::Thread;
    let own = if keeps_shape { program_block(steps) } else { None };
    let block = own.map_or_else(|| team.block(steps), Ok)?;
    for step in steps {
        check(step, own, team)?;
    }
    let mut layout = Layout::new(limit);
    let controls = controls(parts);
    let conditions = controls.iter().filter(|control| matches!(control.test, LoopTest::Condition(_))).count();
    if !controls.is_empty() {
        layout.place(u64::from(Looping::BYTES) * controls.len() as u64, 8)?;
    }
    let announces = announces(team, &controls);
    let state = match State::words(team, conditions as u32) {
        0 => None,
        words => Some(State { at: layout.place(8, 8)? as u32, words }),
    };
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
    let mut asm = Assembly::new(match (conditions, team.blocks) {
        (0, _) => Conditions::Device,
        (_, 1) => Conditions::Shared,
        (_, _) if announces => Conditions::Announced,
        (_, _) => Conditions::Phased,
    });
    asm.share_conditions(conditions);
    let mut writer = Writer::new(
        asm,
        (steps, &slices),
        (team, block, own.is_some()),
        state,
        (!controls.is_empty(), announces),
    );
    writer.initialize(&controls, parts);
    let mut place = Cursor { runs: &runs, run: 0, control: 0 };
    writer.parts(parts, &mut place)?;
    let asm = writer.end();
    let name = name_of(steps.iter().map(|step| &step.kernel));
    let (module, sections) = asm.finish(&name, block, layout.at, layout.align)?;
    let slices = slices.into_iter().map(|slice| slice as u32).collect();
    Ok(Rewritten { module, name, header, slices, block, blocks: team.blocks, state, sections })
}

/// Returns whether the blocks of a team tell each other at their barrier whether a condition was
/// set: there is one, and a loop tests it after a barrier.
fn announces(team: Team, controls: &[&Control]) -> bool {
    let tests = controls.iter().filter(|control| matches!(control.test, LoopTest::Condition(_)));
    let tests: Vec<&&Control> = tests.collect();
    let [only] = tests[..] else { return false };
    (team.barrier, team.slots) == (TeamBarrier::Grid, 1)
        && (2..1 << 16).contains(&team.blocks)
        && matches!(only.form, ControlForm::Loop { .. })
        && starts_with_steps(only)
}

/// Returns whether the first part of every body is a step.
fn starts_with_steps(control: &Control) -> bool {
    control.bodies.iter().all(|body| matches!(body.first(), Some(Part::Step(_))))
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

/// Returns the threads of the whole program: those of its largest step. `None` if the blocks of the
/// others are no beginnings of it.
fn program_block(steps: &[ProgramStep]) -> Option<[u32; 3]> {
    let largest = steps.iter().max_by_key(|step| threads(step.block))?.block;
    let fits = |block: [u32; 3]| block == largest || block[1..] == [1, 1] && largest[1..] == [1, 1];
    steps.iter().all(|step| fits(step.block)).then_some(largest)
}

fn threads(block: [u32; 3]) -> u64 {
    block.iter().map(|&extent| u64::from(extent)).product()
}

fn check(step: &ProgramStep, own: Option<[u32; 3]>, team: Team) -> Result<(), String> {
    let kernel = &step.kernel;
    let because = |reason: &str| Err(format!("{}: {reason}", kernel.name()));
    if let Some(reason) = kernel.obstacle(Role::Step).or_else(|| kernel.obstacle_in_block(step.block)) {
        return because(reason);
    }
    let directives = &kernel.function().directives;
    if directives.reqntid.is_some_and(|required| required != step.block) {
        return because("it requires another block (.reqntid)");
    }
    if directives.maxntid.is_some_and(|max| threads(max) < threads(step.block)) {
        return because("it allows fewer threads (.maxntid)");
    }
    if team.barrier == TeamBarrier::Thread {
        if step.grid[1..] != [1, 1] || Some(step.block) != own {
            return because("it has other blocks than the others");
        }
        if step.grid[0] != team.blocks && kernel.facts().callee_reads_place {
            return because("a function that it calls reads the number of blocks");
        }
    }
    if threads(step.grid) > u64::from(team.blocks) * u64::from(team.slots) {
        return because("it has more blocks than run at once");
    }
    let threads = threads(step.block) as u32;
    if own.is_none()
        && let Some(reason) = kernel.obstacle_to_other_numbers((step.grid, step.block), team.slots)
    {
        return because(reason);
    }
    let obstacle = match own {
        Some(block) if block == step.block => None,
        Some(_) => kernel.obstacle_in_part_of_block(threads),
        None => kernel.obstacle_at_other_places(threads, team.slots),
    };
    obstacle.map_or(Ok(()), |reason| because(&reason))
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
                (other.grid, other.block) == (step.grid, step.block) && other.kernel.same(&step.kernel)
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
