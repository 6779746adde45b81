//! Capture: recording the work of streams as a graph.
//!
//! Recording writes straight into the graph. It does not use a driver's capture mode and involves
//! no device. A [`Capture`] is used like a stream, and so is the stream itself while it captures.
//!
//! A capture has one of three kinds and one of five states:
//!
//! | kind | created by | ends with |
//! |---|---|---|
//! | primary | `stream.capture()` | `end`, which returns the graph |
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
//! A capture can be closed in any state. The function `step` of the `state` module decides every
//! other transition.
//!
//! A recording of an event on a capturing *stream* is a node until a stream of the same capture
//! waits for it. From then on the event only orders work, and the recording and the wait are edges,
//! as in CUDA's own capture. The event is then recorded by no launch, and nobody else can wait for
//! it. [`Capture::record_event`] and [`Capture::wait_event`] always add nodes. A stream that does
//! not capture becomes a fork by waiting for an event of a capture.

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

/// A capture. Work on it, or on its stream, is recorded in a graph and not run.
///
/// A failed operation leaves the capture unchanged. Dropping a primary capture before its end
/// discards what was recorded and leaves the stream usable. Dropping a fork or body before its end
/// makes the capture that it belongs to refuse to end.
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

    /// Returns the kind of the capture.
    pub fn kind(&self) -> CaptureKind {
        self.branch.kind()
    }

    /// Returns the state of the capture.
    pub fn state(&self) -> CaptureState {
        self.branch.state()
    }

    /// Returns the conditional node whose body this capture records. The handle can name the node,
    /// bound its passes, or read their number later. Fails if this is not the capture of a body
    /// or of a fork of one.
    pub fn owner(&self) -> Result<Node> {
        self.branch.owner().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidState,
                "the capture is not of the body of a conditional, or was closed",
            )
        })
    }

    /// Starts recording. Only the body of a conditional needs this call. Other captures begin when
    /// they are created.
    ///
    /// Recorded operations come after what the body already holds.
    pub fn begin(&self) -> Result<()> {
        self.branch.begin()
    }

    /// Ends the capture and returns the graph. Every fork must be joined first, and every body that
    /// was begun must have ended.
    pub fn end(&self) -> Result<Graph> {
        self.branch.end()
    }

    /// Begins, calls `record` and ends. If `record` fails or panics, the capture is closed.
    pub fn fill(&self, record: impl FnOnce(&Capture) -> Result<()>) -> Result<Graph> {
        self.begin()?;
        let open = CloseOnDrop(self);
        record(self)?;
        let graph = self.end()?;
        std::mem::forget(open);
        Ok(graph)
    }

    /// Returns the graph of a capture that has ended, or of a body that has not begun, to fill it
    /// explicitly.
    pub fn graph(&self) -> Result<Graph> {
        self.branch.graph()
    }

    /// Closes the capture. While it records, that discards it. The stream of a primary capture
    /// becomes an ordinary stream again.
    pub fn close(&self) {
        self.branch.close();
    }

    /// Splits the capture into `branches` that run concurrently: this one, and those returned.
    pub fn fork(&self, branches: usize) -> Result<Vec<Capture>> {
        Ok(self.branch.fork(branches)?.into_iter().map(Capture::new).collect())
    }

    /// Joins forks into this capture. The next operation depends on all of them. The forks can then
    /// be dropped.
    pub fn join<'a>(&self, forks: impl IntoIterator<Item = &'a Capture>) -> Result<()> {
        let branches: Vec<&Branch> = forks.into_iter().map(|fork| &fork.branch).collect();
        self.branch.join(&branches)
    }

    /// Creates a condition for the captured graph and the graphs inside it. Every launch sets it to
    /// `default`.
    pub fn condition(&self, default: impl ConditionDefault) -> Result<Condition> {
        self.branch.condition(default.default_value()?)
    }

    /// Records one operation.
    pub fn add(&self, operation: Operation) -> Result<Node> {
        self.branch.add(&[], operation)
    }

    /// Records one operation that also depends on these nodes of the graph.
    pub fn add_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node> {
        self.branch.add(nodes, operation)
    }

    /// Records a conditional and returns the captures of its bodies, which have not begun. This
    /// capture continues after the node.
    pub fn conditional(&self, spec: &ConditionalSpec) -> Result<(Node, Vec<Capture>)> {
        let (node, bodies) = self.branch.conditional(spec)?;
        Ok((node, bodies.into_iter().map(Capture::new).collect()))
    }

    /// Records a copy of a graph as a child node. Later edits of the graph do not affect the copy.
    pub fn embed(&self, graph: &Graph) -> Result<Node> {
        self.branch.embed(graph)
    }

    /// Records copies of the nodes of a graph, without a child node. The first ones depend on what
    /// was recorded last. The next operation depends on the last ones.
    pub fn inline(&self, graph: &Graph) -> Result<Vec<Node>> {
        self.branch.inline(graph)
    }

    /// Returns the device of the graph. Fails if the capture does not record.
    pub fn recording_device(&self) -> Result<Arc<dyn Device>> {
        self.branch.recording_device()
    }

    /// Records a copy of the graph of an executable as a child node.
    pub fn launch_graph(&self, executable: &Executable) -> Result<Node> {
        self.branch.embed_executable(executable)
    }

    /// Records an event. Streams that wait for it become forks of this capture.
    pub fn record_event(&self, event: &Event) -> Result<Node> {
        self.branch.record_event(event)
    }

    /// Records a wait for an event. If the event was recorded in this capture, the next operation
    /// depends on the recording.
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

/// Closes a body that is not completed.
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

/// Returns the error for a call that a capturing stream does not allow.
pub(crate) fn refuse(operation: &str) -> Error {
    Error::new(
        ErrorKind::InvalidState,
        format!(
            "{operation} of a stream that is capturing: its work is being recorded, not run; end the capture first"
        ),
    )
}
