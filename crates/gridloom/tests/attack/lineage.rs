//! Objects that belong to one thread of the attack, and a model on the host that knows every value
//! they must have.
//!
//! Whatever the other threads do to the same device, nothing here may fail and no value may be
//! another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gridloom::prelude::*;

use super::choices::Choices;
use super::step::Step;
use super::world::World;

const BUFFERS: usize = 3;
const LEN: usize = 40;
/// The most actions of a graph.
const ACTIONS: usize = 8;

/// What a node, or a few, do to the buffers.
#[derive(Clone, Debug)]
enum Action {
    Increase {
        x: usize,
        by: i32,
    },
    Affine {
        out: usize,
        x: usize,
        a: i32,
        b: i32,
    },
    Mix {
        out: usize,
        x: usize,
    },
    Fill {
        x: usize,
        value: i32,
    },
    Copy {
        dst: usize,
        src: usize,
    },
    Host {
        x: usize,
        value: i32,
    },
    Call,
    /// Runs another one in a loop of so many passes.
    Repeat(u64, Box<Action>),
    /// The same, with a condition that a kernel sets; at least one pass.
    Loop(i32, Box<Action>),
    /// Runs another one where the first element is not 0.
    If(usize, Box<Action>),
    Embed(Box<Action>),
    /// Adds a number by way of memory that the graph allocates and frees.
    Scratch {
        x: usize,
        by: i32,
    },
}

/// The values that the buffers must have.
#[derive(Clone)]
struct Model {
    values: Vec<Vec<i32>>,
    calls: usize,
}

impl Model {
    fn apply(&mut self, action: &Action) {
        match action {
            Action::Increase { x, by } | Action::Scratch { x, by } => {
                self.values[*x].iter_mut().for_each(|value| *value = value.wrapping_add(*by));
            }
            Action::Affine { out, x, a, b } => {
                self.values[*out] =
                    self.values[*x].iter().map(|value| value.wrapping_mul(*a).wrapping_add(*b)).collect();
            }
            Action::Mix { out, x } => {
                let pairs = self.values[*out].iter().zip(&self.values[*x]);
                self.values[*out] = pairs.map(|(out, x)| out.wrapping_mul(31).wrapping_add(*x)).collect();
            }
            Action::Fill { x, value } | Action::Host { x, value } => self.values[*x] = vec![*value; LEN],
            Action::Copy { dst, src } => self.values[*dst] = self.values[*src].clone(),
            Action::Call => self.calls += 1,
            Action::Repeat(passes, inner) => (0..*passes).for_each(|_| self.apply(inner)),
            Action::Loop(passes, inner) => (0..*passes).for_each(|_| self.apply(inner)),
            Action::If(x, inner) => {
                if self.values[*x][0] != 0 {
                    self.apply(inner);
                }
            }
            Action::Embed(inner) => self.apply(inner),
        }
    }
}

/// An action in a graph, with its innermost node.
#[derive(Clone)]
struct Planned {
    action: Action,
    leaf: Node,
    enabled: bool,
}

impl Planned {
    fn leaf_mut(&mut self) -> &mut Action {
        let mut action = &mut self.action;
        loop {
            match action {
                Action::Repeat(_, inner) | Action::Loop(_, inner) => action = inner,
                Action::If(_, inner) | Action::Embed(inner) => action = inner,
                leaf => return leaf,
            }
        }
    }

    fn is_nested(&self) -> bool {
        matches!(self.action, Action::Repeat(..) | Action::Loop(..) | Action::If(..) | Action::Embed(_))
    }
}

/// The objects of one thread.
pub(crate) struct Lineage {
    buffers: Vec<Buffer<i32>>,
    /// The counter of loops.
    left: Buffer<i32>,
    model: Model,
    calls: Arc<AtomicUsize>,
    streams: Vec<Stream>,
    current: usize,
    event: Event,
    graph: Graph,
    planned: Vec<Planned>,
    executable: Option<(Executable, Vec<Planned>)>,
}

impl Lineage {
    pub(crate) fn new(world: &World) -> Result<Self> {
        let device = &world.device;
        let values: Vec<Vec<i32>> = (0..BUFFERS).map(|x| vec![x as i32; LEN]).collect();
        Ok(Lineage {
            buffers: values.iter().map(|values| device.buffer_from(values)).collect::<Result<_>>()?,
            left: device.buffer_from(&[0])?,
            model: Model { values, calls: 0 },
            calls: Arc::default(),
            streams: vec![device.stream()?, device.stream()?],
            current: 0,
            event: device.event()?,
            graph: Graph::new(device),
            planned: Vec::new(),
            executable: None,
        })
    }

    fn stream(&self) -> &Stream {
        &self.streams[self.current]
    }

    /// Everything is as the model says.
    pub(crate) fn check(&self) -> Result<()> {
        self.stream().synchronize()?;
        for (x, buffer) in self.buffers.iter().enumerate() {
            assert_eq!(buffer.to_vec()?, self.model.values[x], "buffer {x} of the thread's own");
        }
        assert_eq!(
            self.calls.load(Ordering::SeqCst),
            self.model.calls,
            "calls of the thread's own callbacks"
        );
        Ok(())
    }

    /// Goes on with another stream, which waits for the first.
    fn change_stream(&mut self, choices: &mut Choices) -> Result<()> {
        let next = (self.current + 1) % self.streams.len();
        match choices.one_in(3) {
            true => self.stream().synchronize()?,
            false => {
                self.stream().record(&self.event)?;
                self.streams[next].wait(&self.event)?;
            }
        }
        self.current = next;
        Ok(())
    }

    /// Launches the executable, and has the model do the same.
    fn launch(&mut self) -> Result<()> {
        if let Some((executable, planned)) = &self.executable {
            executable.launch(&self.streams[self.current])?;
            let done = planned.iter().filter(|planned| planned.enabled);
            done.for_each(|planned| self.model.apply(&planned.action));
        }
        Ok(())
    }
}

/// One action without inner ones.
fn leaf(choices: &mut Choices) -> Action {
    let (x, y) = (choices.below(BUFFERS), choices.below(BUFFERS));
    match choices.below(7) {
        0 => Action::Affine { out: x, x: y, a: choices.i32(), b: choices.i32() },
        1 => Action::Mix { out: x, x: y },
        2 => Action::Fill { x, value: choices.i32() },
        3 if x != y => Action::Copy { dst: x, src: y },
        4 => Action::Host { x, value: choices.i32() },
        5 => Action::Call,
        _ => Action::Increase { x, by: choices.i32() },
    }
}

fn action(choices: &mut Choices) -> Action {
    match choices.below(12) {
        0 => Action::Repeat(choices.below(4) as u64, Box::new(leaf(choices))),
        1 => Action::Loop(1 + choices.below(3) as i32, Box::new(leaf(choices))),
        2 => Action::If(choices.below(BUFFERS), Box::new(leaf(choices))),
        3 => Action::Embed(Box::new(leaf(choices))),
        4 => Action::Repeat(2, Box::new(Action::If(choices.below(BUFFERS), Box::new(leaf(choices))))),
        5 => Action::Scratch { x: choices.below(BUFFERS), by: choices.i32() },
        _ => leaf(choices),
    }
}

/// Adds a leaf anywhere.
fn add_leaf<P: Ops>(world: &Arc<World>, lineage: &Lineage, place: &P, action: &Action) -> Result<P::Added> {
    let (kernels, buffers) = (&world.kernels, &lineage.buffers);
    let config = LaunchConfig::linear(LEN);
    match *action {
        Action::Increase { x, by } => place.launch(&kernels.increase, config, (&buffers[x], LEN, by)),
        Action::Affine { out, x, a, b } => {
            place.launch(&kernels.affine, config, (&buffers[out], &buffers[x], LEN, a, b))
        }
        Action::Mix { out, x } => place.launch(&kernels.mix, config, (&buffers[out], &buffers[x], LEN)),
        Action::Fill { x, value } => place.memset(&buffers[x], value),
        Action::Copy { dst, src } => place.memcpy(&buffers[dst], &buffers[src]),
        Action::Host { x, value } => place.memcpy(&buffers[x], &vec![value; LEN]),
        Action::Call => place.callback(world.counter(&lineage.calls)),
        _ => unreachable!("not a leaf"),
    }
}

/// Adds an action to a graph; its last node, and its innermost.
fn add_action<P: GraphOps<Body = Graph>>(
    world: &Arc<World>,
    lineage: &Lineage,
    place: &P,
    action: &Action,
) -> Result<(Node, Node)> {
    match action {
        Action::Repeat(passes, inner) => {
            let node = place.repeat(*passes)?;
            Ok((node.node().clone(), add_action(world, lineage, &node.into_body(), inner)?.1))
        }
        Action::Loop(passes, inner) => {
            let again = lineage.graph.condition(Some(1))?;
            let node = place.memset(&lineage.left, *passes)?.while_loop(&again)?;
            let (last, leaf) = add_action(world, lineage, &node.body(), inner)?;
            last.launch(&world.kernels.countdown, LaunchConfig::one(), (&again, &lineage.left))?;
            Ok((node.node().clone(), leaf))
        }
        Action::If(x, inner) => {
            let node = place.if_nonzero(&lineage.buffers[*x].slice(0..1)?)?;
            Ok((node.node().clone(), add_action(world, lineage, &node.into_body(), inner)?.1))
        }
        Action::Embed(inner) => {
            let graph = Graph::new(&world.device);
            let (_, leaf) = add_action(world, lineage, &graph, inner)?;
            let node = place.embed(&graph)?;
            let copies = node.bodies()?[0].nodes();
            let leaf = copies.into_iter().find(|copy| copy.kind().ok() == leaf.kind().ok());
            Ok((node, leaf.expect("the copy has what the graph has")))
        }
        Action::Scratch { x, by } => {
            let scratch = place.alloc::<i32>(LEN)?;
            let filled = scratch.memcpy(&scratch, &lineage.buffers[*x])?;
            let config = LaunchConfig::linear(LEN);
            let done = filled.launch(&world.kernels.increase, config, (&scratch, LEN, *by))?;
            let last = done.memcpy(&lineage.buffers[*x], &scratch)?.free(&scratch)?;
            Ok((last, done))
        }
        leaf => {
            let node = add_leaf(world, lineage, place, leaf)?;
            Ok((node.clone(), node))
        }
    }
}

/// Returns what a leaf is to do instead.
fn changed(action: &Action, choices: &mut Choices) -> Action {
    let (value, place) = (choices.i32(), choices.below(BUFFERS));
    match *action {
        Action::Increase { .. } => Action::Increase { x: place, by: value },
        Action::Affine { out, b, .. } => Action::Affine { out, x: place, a: value, b },
        Action::Mix { out, .. } => Action::Mix { out, x: place },
        Action::Fill { .. } => Action::Fill { x: place, value },
        Action::Copy { src, .. } if place != src => Action::Copy { dst: place, src },
        Action::Host { .. } => Action::Host { x: place, value },
        ref other => other.clone(),
    }
}

/// Gives a leaf other parameters. Nodes of definitions and of executables have the same methods.
macro_rules! change_leaf {
    ($world:expr, $lineage:expr, $node:expr, $action:expr) => {{
        let (kernels, buffers) = (&$world.kernels, &$lineage.buffers);
        match $action {
            Action::Increase { x, by } => $node.set_args(&kernels.increase, (&buffers[x], LEN, by))?,
            Action::Affine { out, x, a, b } => {
                $node.set_args(&kernels.affine, (&buffers[out], &buffers[x], LEN, a, b))?;
            }
            Action::Mix { out, x } => $node.set_args(&kernels.mix, (&buffers[out], &buffers[x], LEN))?,
            Action::Fill { x, value } => $node.set_memset(&buffers[x], value)?,
            Action::Copy { dst, src } => $node.set_memcpy(&buffers[dst], &buffers[src])?,
            Action::Host { x, value } => $node.set_memcpy(&buffers[x], &vec![value; LEN])?,
            Action::Call => $node.set_callback($world.counter(&$lineage.calls))?,
            _ => {}
        }
    }};
}

/// One operation on the objects of the thread. All of them must succeed.
pub(crate) fn act(step: &mut Step<'_>) -> Result<()> {
    let choice = step.below(24);
    let (world, choices, lineage) = (step.world, &mut *step.choices, &mut *step.lineage);
    let outcome = match choice {
        0..=4 => extend(world, lineage, choices),
        5 | 6 => {
            let mode = choices.pick(&[ConditionalMode::Auto, ConditionalMode::Hosted]);
            let options = InstantiateOptions::new().conditional_mode(mode);
            let executable = lineage.graph.instantiate_with(&options)?;
            lineage.executable = Some((executable, lineage.planned.clone()));
            Ok(())
        }
        7..=10 => lineage.launch(),
        11 | 12 => {
            let action = leaf(choices);
            add_leaf(world, lineage, lineage.stream(), &action)?;
            lineage.model.apply(&action);
            Ok(())
        }
        13 | 14 => change_executable(world, lineage, choices),
        15 => update(world, lineage, choices),
        16 => {
            lineage.launch()?;
            lineage.executable = None;
            Ok(())
        }
        17 => {
            let (copy, _) = lineage.graph.deep_clone()?;
            let actions: Vec<Action> = lineage.planned.iter().map(|planned| planned.action.clone()).collect();
            let executable = copy.instantiate()?;
            executable.launch(lineage.stream())?;
            actions.iter().for_each(|action| lineage.model.apply(action));
            Ok(())
        }
        18 => {
            let (x, by) = (choices.below(BUFFERS), choices.i32());
            world.adder.call(lineage.stream(), (&lineage.buffers[x], by))?;
            lineage.model.apply(&Action::Increase { x, by });
            Ok(())
        }
        19 => capture(world, lineage, choices),
        20 => lineage.change_stream(choices),
        21 => enable(lineage, choices),
        _ => lineage.check(),
    };
    outcome.map_err(|error| error.context("of the thread's own"))
}

fn extend(world: &Arc<World>, lineage: &mut Lineage, choices: &mut Choices) -> Result<()> {
    if lineage.planned.len() >= ACTIONS {
        lineage.graph = Graph::new(&world.device);
        lineage.planned.clear();
    }
    let action = action(choices);
    let tail = lineage.graph.nodes();
    // After everything: the model knows no other order.
    let tail = lineage.graph.join(&tail)?;
    let (_, leaf) = add_action(world, lineage, &tail, &action)?;
    lineage.planned.push(Planned { action, leaf, enabled: true });
    Ok(())
}

fn change_executable(world: &Arc<World>, lineage: &mut Lineage, choices: &mut Choices) -> Result<()> {
    let Some((executable, mut planned)) = lineage.executable.take() else { return Ok(()) };
    let place = choices.below(planned.len().max(1));
    if let Some(planned) = planned.get_mut(place)
        && planned.enabled
    {
        let leaf = executable.node(&planned.leaf)?;
        let changed = changed(planned.leaf_mut(), choices);
        change_leaf!(world, lineage, leaf, changed);
        *planned.leaf_mut() = changed;
    }
    lineage.executable = Some((executable, planned));
    Ok(())
}

/// Changes the definition, and has the executable take it over where it has the same nodes.
fn update(world: &Arc<World>, lineage: &mut Lineage, choices: &mut Choices) -> Result<()> {
    let mut planned = std::mem::take(&mut lineage.planned);
    let place = choices.below(planned.len().max(1));
    if let Some(planned) = planned.get_mut(place) {
        let leaf = planned.leaf.clone();
        let changed = changed(planned.leaf_mut(), choices);
        change_leaf!(world, lineage, leaf, changed);
        *planned.leaf_mut() = changed;
    }
    lineage.planned = planned;
    let Some((executable, planned)) = &mut lineage.executable else { return Ok(()) };
    let same = planned.len() == lineage.planned.len()
        && planned.iter().zip(&lineage.planned).all(|(one, other)| one.leaf == other.leaf);
    if !same {
        return Ok(());
    }
    for planned in planned.iter_mut().filter(|planned| !planned.enabled) {
        executable.node(&planned.leaf)?.set_enabled(true)?;
        planned.enabled = true;
    }
    executable.update(&lineage.graph)?;
    planned.clone_from(&lineage.planned);
    Ok(())
}

/// Switches a node of the executable off or on.
fn enable(lineage: &mut Lineage, choices: &mut Choices) -> Result<()> {
    let Some((executable, planned)) = &mut lineage.executable else { return Ok(()) };
    let place = choices.below(planned.len().max(1));
    let Some(planned) = planned.get_mut(place) else { return Ok(()) };
    let kind = planned.leaf.kind();
    let can = matches!(kind, Ok(NodeKind::Kernel | NodeKind::Memcpy | NodeKind::Memset));
    if can && !planned.is_nested() && !matches!(planned.action, Action::Scratch { .. }) {
        planned.enabled = choices.one_in(2);
        executable.node(&planned.leaf)?.set_enabled(planned.enabled)?;
        assert_eq!(executable.node(&planned.leaf)?.is_enabled(), planned.enabled);
    }
    Ok(())
}

/// Captures a few leaves, one after the other, and runs them.
fn capture(world: &Arc<World>, lineage: &mut Lineage, choices: &mut Choices) -> Result<()> {
    let actions: Vec<Action> = (0..1 + choices.below(4)).map(|_| leaf(choices)).collect();
    let stream = lineage.stream();
    let graph = stream.capture_scope(|capture| {
        for action in &actions {
            match choices.one_in(2) {
                true => drop(add_leaf(world, lineage, capture, action)?),
                false => add_leaf(world, lineage, stream, action)?,
            }
        }
        Ok(())
    })?;
    graph.instantiate()?.launch(stream)?;
    actions.iter().for_each(|action| lineage.model.apply(action));
    Ok(())
}
