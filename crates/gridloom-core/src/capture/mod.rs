//! Capture: code written against streams becomes a graph.
//!
//! Recording goes straight into the graph; nothing depends on a driver's capture state, and no device is involved. [`Capture`] is used like a
//! stream, and so is the stream itself while it captures.
//!
//! A capture is of one of three kinds and in one of five states:
//!
//! | kind | made by | ends with |
//! |---|---|---|
//! | primary | `stream.capture()` | `end`, which gives the graph |
//! | forked | `fork(n)`, or a stream that waits for an event recorded in a capture | being joined into another capture of the graph |
//! | body | a conditional | `end`, before the capture around it ends |
//!
//! | state | allows |
//! |---|---|
//! | not started (bodies) | `begin`; `graph`, to fill the body explicitly |
//! | capturing | every operation; `fork`, `join`, `end` |
//! | joined (forks) | nothing more |
//! | ended | `graph` |
//! | closed | nothing more |
//!
//! Everything can be closed at any time. Which step leads from where to where is decided in one function, `step` of the `state` module.
//!
//! Every recording of an event and every wait is a node. A wait also gets an edge from the recording where both are in one graph and it
//! does not come after it anyway; a stream that does not capture becomes a fork by it.

mod branch;
mod order;
mod session;
mod state;
mod value;

use std::fmt;
use std::sync::Arc;

pub(crate) use branch::Branch;
pub use branch::MAX_BRANCHES;
pub(crate) use session::Mark;
pub use state::{CaptureKind, CaptureState};
pub use value::ConditionDefault;

use crate::backend::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::event::Event;
use crate::executable::Executable;
use crate::graph::{Condition, ConditionalSpec, Graph, Node};
use crate::op::Operation;

/// A capture: what is done to it, or to its stream, is recorded in a graph and not run.
///
/// Dropping it half way discards what was recorded and leaves the stream usable; of a fork or body, it makes the capture it belongs to
/// refuse to end. A failed operation leaves the capture as it was before.
///
/// ```
/// use gridloom_core::null::NullDevice;
/// use gridloom_core::op::Operation;
/// use gridloom_core::Stream;
///
/// let stream = Stream::new(&NullDevice::new())?;
/// let capture = stream.capture()?;
/// let first = capture.add(Operation::Empty)?;
/// let forks = capture.fork(2)?;
/// let (left, right) = (capture.add(Operation::Empty)?, forks[0].add(Operation::Empty)?);
/// capture.join(&forks)?;
/// let last = capture.add(Operation::Empty)?;
/// let graph = capture.end()?;
/// assert_eq!(first.successors()?, [left.clone(), right.clone()]);
/// assert_eq!(last.predecessors()?, [left, right]);
/// # Ok::<(), gridloom_core::Error>(())
/// ```
pub struct Capture {
    branch: Branch,
}

impl Capture {
    pub(crate) fn new(branch: Branch) -> Self {
        branch.hold();
        Capture { branch }
    }

    /// Where it comes from.
    pub fn kind(&self) -> CaptureKind {
        self.branch.kind()
    }

    /// How far it has come.
    pub fn state(&self) -> CaptureState {
        self.branch.state()
    }

    /// Of a body, or a fork of one: the conditional node it is a body of, to name it, to bound its passes or to ask for them later.
    pub fn owner(&self) -> Result<Node> {
        self.branch.owner().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidState,
                "the capture is not of the body of a conditional, or was closed",
            )
        })
    }

    /// Starts recording. Only the body of a conditional waits for this; other captures have begun when they are made.
    ///
    /// What is recorded comes after what the body already holds.
    pub fn begin(&self) -> Result<()> {
        self.branch.begin()
    }

    /// Ends the capture. Every fork must have been joined, and every body that was begun must have ended.
    pub fn end(&self) -> Result<Graph> {
        self.branch.end()
    }

    /// Begins, records what `record` does, and ends: a body in one piece, which cannot be left open by mistake.
    pub fn fill(&self, record: impl FnOnce(&Capture) -> Result<()>) -> Result<Graph> {
        self.begin()?;
        let open = CloseOnDrop(self);
        record(self)?;
        let graph = self.end()?;
        std::mem::forget(open);
        Ok(graph)
    }

    /// The graph: of a capture that has ended, or of a body that has not begun, to fill it explicitly.
    pub fn graph(&self) -> Result<Graph> {
        self.branch.graph()
    }

    /// Gives the capture up, or is done with it. Of a primary capture the stream becomes an ordinary stream again.
    pub fn close(&self) {
        self.branch.close();
    }

    /// Splits the capture into `branches` that run side by side: this one, and the ones returned.
    pub fn fork(&self, branches: usize) -> Result<Vec<Capture>> {
        Ok(self.branch.fork(branches)?.into_iter().map(Capture::new).collect())
    }

    /// Joins forks into this capture: what is recorded next comes after them all. The forks can be dropped then.
    pub fn join<'a>(&self, forks: impl IntoIterator<Item = &'a Capture>) -> Result<()> {
        let branches: Vec<&Branch> = forks.into_iter().map(|fork| &fork.branch).collect();
        self.branch.join(&branches)
    }

    /// Makes a condition for the graph that is captured and the graphs inside it, with the value it takes at every launch.
    pub fn condition(&self, default: impl ConditionDefault) -> Result<Condition> {
        self.branch.condition(default.default_value()?)
    }

    /// Records one operation.
    pub fn add(&self, operation: Operation) -> Result<Node> {
        self.branch.add(&[], operation)
    }

    /// Records one operation that comes after these nodes of the graph too.
    pub fn add_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node> {
        self.branch.add(nodes, operation)
    }

    /// Records a conditional and returns the captures of its bodies, which have yet to begin. This capture goes on after the node.
    pub fn conditional(&self, spec: &ConditionalSpec) -> Result<(Node, Vec<Capture>)> {
        let (node, bodies) = self.branch.conditional(spec)?;
        Ok((node, bodies.into_iter().map(Capture::new).collect()))
    }

    /// Records a copy of a graph, as it is now, as a child node.
    pub fn embed(&self, graph: &Graph) -> Result<Node> {
        self.branch.embed(graph)
    }

    /// Records copies of the nodes of a graph, as it is now, among those of this capture: the first ones come after what was recorded last, and
    /// what is recorded next comes after the last ones.
    pub fn inline(&self, graph: &Graph) -> Result<Vec<Node>> {
        self.branch.inline(graph)
    }

    /// The device of its graph. An error where the capture does not record.
    pub fn recording_device(&self) -> Result<Arc<dyn Device>> {
        self.branch.recording_device()
    }

    /// Records a copy of the graph that an executable was made from, as a child node.
    pub fn launch_graph(&self, executable: &Executable) -> Result<Node> {
        self.branch.embed_executable(executable)
    }

    /// Records an event. Streams that wait for it become forks of this capture.
    pub fn record_event(&self, event: &Event) -> Result<Node> {
        self.branch.record_event(event)
    }

    /// Waits for an event. One that was recorded in this capture also joins the branch it was recorded in, up to there.
    pub fn wait_event(&self, event: &Event) -> Result<Node> {
        self.branch.wait_event(event)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if self.state() == CaptureState::Capturing {
            self.branch.close();
        }
        self.branch.let_go();
    }
}

/// Closes a body that is left half way.
struct CloseOnDrop<'a>(&'a Capture);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capture({:?}, {:?})", self.kind(), self.state())
    }
}

/// The error for something that a capturing stream, or an event recorded by one, cannot do.
pub(crate) fn refuse(operation: &str) -> Error {
    Error::new(
        ErrorKind::InvalidState,
        format!(
            "{operation} of a stream that is capturing: its work is being recorded, not run; end the capture first"
        ),
    )
}
