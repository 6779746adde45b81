//! Capture: code written against streams becomes a graph.
//!
//! Recording goes straight into the graph; nothing depends on a driver's capture state, and no device is involved. [`Capture`] is used like a stream,
//! and so is the stream itself while it captures.

mod lane;
mod state;

use std::fmt;
use std::sync::Arc;

pub(crate) use lane::{Lane, Mark, Session, refuse};
pub use state::{CaptureKind, CaptureState};

use crate::error::Result;
use crate::event::Event;
use crate::executable::Executable;
use crate::graph::{Condition, ConditionalSpec, Graph, Node};
use crate::op::Operation;
use state::Action;

/// A capture in progress: what is done to it, or to its stream, is recorded.
///
/// Dropping it half way discards what was recorded and leaves the stream usable. [`end`](Capture::end) gives the graph.
pub struct Capture {
    pub(crate) lane: Arc<Lane>,
}

impl Capture {
    pub(crate) fn new(lane: Arc<Lane>) -> Self {
        Capture { lane }
    }

    /// Where it comes from.
    pub fn kind(&self) -> CaptureKind {
        self.lane.kind
    }

    /// How far it has come.
    pub fn state(&self) -> CaptureState {
        self.lane.state()
    }

    /// Starts recording. Only the body of a conditional waits for this; other captures have begun when they are made.
    pub fn begin(&self) -> Result<()> {
        self.lane.act(Action::Begin)
    }

    /// Ends the capture. Every fork must have been joined.
    pub fn end(&self) -> Result<Graph> {
        self.lane.end()
    }

    /// The graph: of a capture that has ended, or of a body that has not begun, to fill it explicitly.
    pub fn graph(&self) -> Result<Graph> {
        self.lane.act(Action::Graph)?;
        Ok(self.lane.session.graph.clone())
    }

    /// Gives the capture up, or is done with it. Of a primary capture the stream becomes an ordinary stream again.
    pub fn close(&self) {
        self.lane.close();
    }

    /// Splits the capture into `branches` that run side by side: this one, and the ones returned.
    pub fn fork(&self, branches: usize) -> Result<Vec<Capture>> {
        Ok(self.lane.fork(branches)?.into_iter().map(Capture::new).collect())
    }

    /// Joins forks into this capture: what is recorded next comes after them all.
    pub fn join<'a>(&self, forks: impl IntoIterator<Item = &'a Capture>) -> Result<()> {
        let lanes: Vec<&Lane> = forks.into_iter().map(|fork| &*fork.lane).collect();
        self.lane.join(&lanes)
    }

    /// Makes a condition for the graph that is captured.
    pub fn condition(&self, default: Option<u32>) -> Result<Condition> {
        self.lane.act(Action::Record)?;
        Ok(self.lane.session.graph.condition(default))
    }

    /// Records one operation.
    pub fn add(&self, operation: Operation) -> Result<Node> {
        self.lane.add(operation)
    }

    /// Records a conditional and returns the captures of its bodies, which have yet to begin. This capture goes on after the node.
    pub fn conditional(&self, spec: ConditionalSpec) -> Result<(Node, Vec<Capture>)> {
        let node = self.lane.conditional(spec)?;
        let bodies = node.bodies()?;
        let captures =
            bodies.into_iter().map(|body| Capture::new(Session::start(body, CaptureKind::Body, None)));
        Ok((node, captures.collect()))
    }

    /// Records a copy of a graph, as it is now, as a child node.
    pub fn embed(&self, graph: &Graph) -> Result<Node> {
        self.lane.record(|here, after| here.embed(after, graph))
    }

    /// Records a copy of the graph that an executable was made from, as a child node.
    pub fn embed_executable(&self, executable: &Executable) -> Result<Node> {
        self.lane
            .record(|here, after| here.embed_definition(after, executable.device(), &executable.definition()))
    }

    /// Records an event. Streams that wait for it become forks of this capture.
    pub fn record_event(&self, event: &Event) -> Result<Node> {
        self.lane.record_event(event)
    }

    /// Waits for an event. One that was recorded in this capture also joins the branch it was recorded in, up to there.
    pub fn wait_event(&self, event: &Event) -> Result<Node> {
        self.lane.wait_event(event)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if matches!(self.state(), CaptureState::Capturing) && self.kind() == CaptureKind::Primary {
            self.lane.close();
        }
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capture({:?}, {:?})", self.kind(), self.state())
    }
}
