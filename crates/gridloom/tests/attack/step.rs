//! One step of one thread: the objects it may use, and how it makes arguments.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gridloom::AllocSlice;
use gridloom::op::{ConditionalForm, Operation, Test};
use gridloom::prelude::*;

use super::choices::Choices;
use super::is_left_out;
use super::lineage::Lineage;
use super::token::{Intended, OnDrop, Token, call_in};
use super::trace::Trace;
use super::world::{Pool, World};
use crate::support::is_cpu;

/// What an operation of the attack is given.
pub(crate) struct Step<'a> {
    pub(crate) world: &'a Arc<World>,
    pub(crate) choices: &'a mut Choices,
    pub(crate) trace: &'a Trace,
    /// Objects of this thread alone, whose values are known.
    pub(crate) lineage: &'a mut Lineage,
}

/// Memory of any kind.
pub(crate) enum Operand {
    Buffer(Buffer<i32>),
    Slice(BufferSlice<i32>),
    Alloc(AllocNode<i32>),
    AllocSlice(AllocSlice<i32>),
}

impl Operand {
    /// Elements, or fewer: allocations that fail at launch have more than any kernel or copy should
    /// take.
    pub(crate) fn len(&self) -> usize {
        with_memory!(self, |memory| Memory::<i32>::len(memory)).min(1000)
    }
}

/// Does the same with memory of any kind.
macro_rules! with_memory {
    ($operand:expr, |$memory:ident| $body:expr) => {
        match $operand {
            $crate::attack::step::Operand::Buffer($memory) => $body,
            $crate::attack::step::Operand::Slice($memory) => $body,
            $crate::attack::step::Operand::Alloc($memory) => $body,
            $crate::attack::step::Operand::AllocSlice($memory) => $body,
        }
    };
}
pub(crate) use with_memory;

/// The most passes of a loop whose end nothing else assures.
pub(crate) const PASSES: u64 = 3;

/// Lengths of buffers, so that some fit each other.
pub(crate) const LENGTHS: &[usize] = &[1, 1, 4, 64, 300];

impl Step<'_> {
    /// One of a pool; `None` where it is empty.
    pub(crate) fn maybe<T: Clone>(&mut self, pool: &Pool<T>) -> Option<T> {
        let item = pool.get(self.choices);
        self.trace.note(format_args!("{}{}", pool.name, if item.is_some() { "" } else { "?" }));
        item
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let choice = self.choices.below(bound);
        self.trace.note(format_args!("{choice}"));
        choice
    }

    /// Returns the device, or now and then the other one.
    pub(crate) fn device(&mut self) -> Device {
        match &self.world.other {
            Some(other) if self.choices.one_in(60) => {
                self.trace.note(format_args!("other-device"));
                other.clone()
            }
            _ => self.world.device.clone(),
        }
    }

    pub(crate) fn stream(&mut self) -> Result<Stream> {
        match self.maybe(&self.world.streams) {
            Some(stream) if !self.choices.one_in(16) => Ok(stream),
            _ => {
                let stream = self.device().stream()?;
                self.world.streams.put(self.choices, stream.clone());
                Ok(stream)
            }
        }
    }

    pub(crate) fn event(&mut self) -> Result<Event> {
        match self.maybe(&self.world.events) {
            Some(event) if !self.choices.one_in(16) => Ok(event),
            _ => {
                let options =
                    EventOptions::new().timing(!self.choices.one_in(4)).blocking(self.choices.one_in(2));
                let event = self.device().event_with(options)?;
                self.world.events.put(self.choices, event.clone());
                Ok(event)
            }
        }
    }

    pub(crate) fn buffer(&mut self) -> Result<Buffer<i32>> {
        match self.maybe(&self.world.buffers) {
            Some(buffer) if !self.choices.one_in(if buffer.is_closed() { 1 } else { 12 }) => Ok(buffer),
            _ => {
                let len = self.choices.pick(LENGTHS);
                let kind = match self.choices.below(4) {
                    2 if !is_left_out("host-memory") => MemoryKind::Host,
                    3 if !is_left_out("managed-memory") => MemoryKind::Managed,
                    _ => MemoryKind::Device,
                };
                let buffer = self.device().alloc_in::<i32>(len, kind)?;
                buffer.write(&vec![1; len])?;
                self.world.buffers.put(self.choices, buffer.clone());
                Ok(buffer)
            }
        }
    }

    pub(crate) fn graph(&mut self) -> Result<Graph> {
        match self.maybe(&self.world.graphs) {
            // Large ones only slow the search down.
            Some(graph) if !self.choices.one_in(20) && size(&graph) < 60 => Ok(graph),
            _ => {
                let graph = Graph::new(&self.device());
                self.world.graphs.put(self.choices, graph.clone());
                Ok(graph)
            }
        }
    }

    pub(crate) fn node(&mut self) -> Result<Node> {
        match self.maybe(&self.world.nodes) {
            Some(node) => Ok(node),
            None => {
                let node = self.graph()?.empty()?;
                self.keep_node(&node);
                Ok(node)
            }
        }
    }

    pub(crate) fn keep_node(&mut self, node: &Node) {
        self.world.nodes.put(self.choices, node.clone());
    }

    pub(crate) fn condition(&mut self, graph: Option<&Graph>) -> Result<Condition> {
        match self.maybe(&self.world.conditions) {
            Some(condition) if !self.choices.one_in(3) => Ok(condition),
            _ => {
                let graph = match graph {
                    Some(graph) if !self.choices.one_in(8) => graph.clone(),
                    _ => self.graph()?,
                };
                let default = self.choices.pick(&[None, Some(0), Some(1), Some(1), Some(2)]);
                let condition = graph.condition(default)?;
                self.world.conditions.put(self.choices, condition.clone());
                Ok(condition)
            }
        }
    }

    /// Memory for an operation, of any length.
    pub(crate) fn operand(&mut self) -> Result<Operand> {
        Ok(match self.choices.below(10) {
            0..=4 => Operand::Buffer(self.buffer()?),
            5 | 6 => {
                let buffer = self.buffer()?;
                let (from, to) = (self.choices.below(buffer.len() + 1), self.choices.below(buffer.len() + 2));
                let slice = buffer.slice(from..to)?;
                self.world.slices.put(self.choices, slice.clone());
                Operand::Slice(slice)
            }
            7 => match self.maybe(&self.world.slices) {
                Some(slice) => Operand::Slice(slice),
                None => Operand::Buffer(self.buffer()?),
            },
            _ => match self.maybe(&self.world.allocs) {
                Some(alloc) if self.choices.one_in(2) => Operand::AllocSlice(alloc.slice(0..1)?),
                Some(alloc) => Operand::Alloc(alloc),
                None => Operand::Buffer(self.buffer()?),
            },
        })
    }

    /// Memory of one integer, mostly.
    pub(crate) fn one(&mut self) -> Result<Operand> {
        Ok(match self.operand()? {
            Operand::Buffer(buffer) if !self.choices.one_in(12) => Operand::Slice(buffer.slice(0..1)?),
            Operand::Slice(slice) if !slice.is_empty() => Operand::Slice(slice.slice(0..1)?),
            Operand::Alloc(alloc) if !self.choices.one_in(12) => Operand::AllocSlice(alloc.slice(0..1)?),
            other => other,
        })
    }

    /// A launch shape for so many elements, mostly.
    pub(crate) fn config(&mut self, elements: usize) -> LaunchConfig {
        let usual = LaunchConfig::linear(elements.clamp(1, 1000));
        match self.choices.below(24) {
            0 => LaunchConfig::new((0, 1, 1), 1),
            1 => LaunchConfig::new(1, (2000, 2000, 2000)),
            2 => LaunchConfig::new((3, 2, 1), (7, 3, 1)),
            3 => usual.shared(1000),
            4 => usual.shared(u32::MAX),
            5 if !is_left_out("cooperative") => usual.cooperative(),
            6 if !is_left_out("clusters") => usual.cluster(2),
            7 if !is_left_out("priorities") => usual.priority(self.choices.i32()),
            8 if !is_left_out("programmatic") => usual.programmatic(),
            9 => LaunchConfig::new((1, 70_000, 1), 1),
            _ => usual,
        }
    }

    /// Returns what dropping a value of the user's does.
    fn on_drop(&mut self) -> OnDrop {
        match self.choices.below(24) {
            0 if !is_left_out("drop-panics") => OnDrop::Panic,
            1 => OnDrop::Sleep,
            2 | 3 if !is_left_out("drop-calls") => OnDrop::Call(self.choices.u64()),
            _ => OnDrop::Nothing,
        }
    }

    /// A value of the user's, which may own something of the library's that nothing else refers to.
    pub(crate) fn token(&mut self) -> Token {
        let on_drop = self.on_drop();
        let world = self.world;
        let device = &world.device;
        let held: Option<Box<dyn Send + Sync>> = match self.choices.below(16) {
            0 => device.alloc::<i32>(9).ok().map(|buffer| Box::new(buffer) as _),
            1 => device.stream().ok().map(|stream| Box::new(stream) as _),
            2 => device.event().ok().map(|event| Box::new(event) as _),
            3 => {
                let graph = Graph::new(device);
                let token = Token::quiet(world);
                let added = graph.callback(move || {
                    let _ = &token;
                });
                let executable = added.and_then(|_| graph.instantiate());
                executable.ok().map(|executable| Box::new((graph, executable)) as _)
            }
            _ => None,
        };
        if !matches!(on_drop, OnDrop::Nothing) || held.is_some() {
            self.trace.note(format_args!("{on_drop:?}{}", if held.is_some() { "+held" } else { "" }));
        }
        Token::new(world, on_drop, held)
    }

    /// A callback: it counts, and now and then panics, waits or calls back in.
    pub(crate) fn callback(&mut self) -> impl FnMut() + Send + 'static {
        let token = self.token();
        let world = Arc::downgrade(self.world);
        let (behaviour, mut choices) = (self.choices.below(16), Choices::seeded(self.choices.u64()));
        self.trace.note(format_args!("callback{behaviour}"));
        move || {
            let _ = &token;
            let Some(world) = world.upgrade() else { return };
            world.calls.fetch_add(1, Ordering::SeqCst);
            match behaviour {
                0 if !is_left_out("callback-panics") => Intended::panic(&mut choices),
                1 => std::thread::sleep(Duration::from_micros(200)),
                2 | 3 if !is_left_out("callback-calls") => call_in(&world, &mut choices),
                4 => std::thread::yield_now(),
                _ => {}
            }
        }
    }
}

/// The most nodes that a launch on a GPU may run. Nothing can end a launch there that takes hours.
const MOST_RUNS: u64 = 3000;

/// Returns whether launches of an executable end soon. CPU devices see to that themselves.
///
/// It looks at the executable and not at the graph: another thread may have added a loop, and not
/// its limit yet, when the executable was made.
pub(crate) fn ends_soon(executable: &Executable) -> Result<bool> {
    Ok(is_cpu(&executable.device()) || runs(&executable.graph()?)? <= MOST_RUNS)
}

/// Returns the number of nodes that a launch of a graph runs at most.
pub(crate) fn runs(graph: &Graph) -> Result<u64> {
    let mut total = 0u64;
    for node in graph.nodes() {
        let passes = match node.operation()? {
            Operation::Conditional(op) if op.form == ConditionalForm::While => {
                let count = if let Test::Count(count) = op.test { count } else { u64::MAX };
                count.min(op.max_passes.unwrap_or(u64::MAX))
            }
            _ => 1,
        };
        for body in node.bodies()? {
            // A pass takes time without nodes too.
            let pass = runs(&body)?.saturating_add(1);
            total = total.saturating_add(pass.saturating_mul(passes));
        }
        total = total.saturating_add(1);
    }
    Ok(total)
}

/// Nodes of a graph, with those of all graphs inside it.
pub(crate) fn size(graph: &Graph) -> usize {
    let inside = |node: &Node| node.bodies().map_or(0, |bodies| bodies.iter().map(size).sum::<usize>());
    graph.nodes().iter().map(|node| 1 + inside(node)).sum()
}

/// Returns the structure of a graph on one line: each node with its number, its kind, the numbers
/// of those before it (with `~` if it may start early), its attributes, and its bodies.
pub(crate) fn outline(graph: &Graph) -> String {
    let (nodes, edges) = (graph.nodes(), graph.edges());
    let number = |node: &Node| nodes.iter().position(|other| other == node).unwrap_or(usize::MAX);
    let mut text = String::new();
    for (index, node) in nodes.iter().enumerate() {
        let kind = node.kind().map_or_else(|_| "?".to_owned(), |kind| format!("{kind:?}"));
        let _ = write!(text, " {index}{kind}");
        for (from, _, kind) in edges.iter().filter(|(_, to, _)| to == node) {
            let early = if *kind == EdgeKind::Programmatic { "~" } else { "" };
            let _ = write!(text, "<{early}{}", number(from));
        }
        if let Ok(Operation::Kernel(launch)) = node.operation() {
            let config = launch.config();
            let _ = write!(text, "({}", launch.kernel().name());
            let attributes = [
                (config.cooperative, " cooperative"),
                (config.cluster.is_some(), " cluster"),
                (config.priority.is_some(), " priority"),
            ];
            attributes.iter().filter(|(is_set, _)| *is_set).for_each(|(_, name)| text.push_str(name));
            text.push(')');
        }
        for body in node.bodies().unwrap_or_default() {
            let _ = write!(text, " {{{}}}", outline(&body));
        }
    }
    text
}
