//! Capture: code written against streams becomes a graph.
//!
//! [`Stream::capture`](crate::Stream::capture) starts recording. What is then done on the stream, or on the [`Capture`] it returns, becomes nodes of a graph instead of
//! running; [`Capture::end`] gives the graph, which is like any other: it can be edited, embedded, instantiated. Nothing is asked of the
//! device meanwhile, and whatever else goes on there is not disturbed.
//!
//! A function of streams needs no change for it. Written against [`Ops`](crate::Ops), it serves streams, captures, graphs and nodes alike:
//!
//! ```
//! use gridloom::prelude::*;
//!
//! fn fill_and_copy<S: Ops>(on: &S, from: &Buffer<i32>, to: &Buffer<i32>) -> Result<()> {
//!     on.memset(from, 7i32)?;
//!     on.memcpy(to, from)?;
//!     Ok(())
//! }
//!
//! # fn main() -> Result<()> {
//! let device = Device::cpu()?;
//! let stream = device.stream()?;
//! let (from, to) = (device.buffer_from(&[0i32; 4])?, device.buffer_from(&[0i32; 4])?);
//!
//! let graph = stream.capture_scope(|capture| fill_and_copy(capture, &from, &to))?;
//! assert_eq!((graph.len(), to.to_vec()?), (2, vec![0; 4])); // recorded, not run
//!
//! graph.instantiate()?.launch(&stream)?;
//! stream.synchronize()?;
//! assert_eq!(to.to_vec()?, [7; 4]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Capture::fork`] and [`Capture::join`] split it into branches that run side by side. Events do it too, as they do for streams that run: a
//! stream that waits for an event recorded in a capture becomes a fork of that capture, and is an ordinary stream again when it ends.
//! Conditionals give a capture for each body, to be filled with a closure, or with `begin` and `end`, or explicitly through its
//! `graph()`:
//!
//! ```
//! use gridloom::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let device = Device::cpu()?;
//! let stream = device.stream()?;
//! let (one, other) = (device.buffer_from(&[0i32])?, device.buffer_from(&[0i32])?);
//! let event = device.event()?;
//! let side = device.stream()?;
//!
//! let graph = stream.capture_scope(|capture| {
//!     stream.record(&event)?;
//!     side.wait(&event)?; // from here on `side` is captured too
//!     side.memset(&other, 2i32)?;
//!     capture.repeat(3)?.fill(|body| body.memset(&one, 1i32))?;
//!     side.record(&event)?;
//!     capture.wait(&event)?;
//!     capture.memcpy(&one, &other).map(drop)
//! })?;
//! assert!(!side.is_capturing());
//!
//! graph.instantiate()?.launch(&stream)?;
//! stream.synchronize()?;
//! assert_eq!(one.to_vec()?, [2]);
//! # Ok(())
//! # }
//! ```
//!
//! Code that Gridloom does not know, such as a CUDA library, is captured with [`Capture::foreign`].
//!
//! A capture that is dropped half way, by an early return or a panic, discards what was recorded and leaves its streams usable. See
//! [`gridloom_core::capture`] for the kinds and states of captures and what each allows.

#[cfg(feature = "cuda")]
mod foreign;

use std::fmt;

#[cfg(feature = "cuda")]
pub use foreign::{CaptureMode, ForeignOptions, ForeignStream};
use gridloom_core as core;
use gridloom_core::capture::{CaptureKind, CaptureState, ConditionDefault};

use crate::{Condition, Executable, Graph, Node, Result};

/// A capture: what is done to it, or to its stream, is recorded in a graph and not run.
///
/// Dropping it half way discards what was recorded and leaves the stream usable; of a fork or body, it
/// makes the capture it belongs to refuse to end. A failed operation leaves the capture as it was before.
///
/// A conditional gives back the captures of its bodies, which have yet to begin; the capture goes on
/// after the conditional.
#[repr(transparent)]
pub struct Capture(pub(crate) core::Capture);

impl Capture {
    /// Returns where it comes from.
    pub fn kind(&self) -> CaptureKind {
        self.0.kind()
    }

    /// Returns how far it has come.
    pub fn state(&self) -> CaptureState {
        self.0.state()
    }

    /// Returns, of a body or a fork of one, the conditional node it is a body of.
    pub fn owner(&self) -> Result<Node> {
        self.0.owner().map(Node)
    }

    /// Starts recording. Only the body of a conditional waits for this; other captures have begun when
    /// they are made.
    ///
    /// What is recorded comes after what the body already holds.
    pub fn begin(&self) -> Result<()> {
        self.0.begin()
    }

    /// Ends the capture. Every fork must have been joined, and every body that was begun must have ended.
    pub fn end(&self) -> Result<Graph> {
        self.0.end().map(Graph)
    }

    /// Begins, records what `record` does, and ends: a body in one piece, which cannot be left open by
    /// mistake.
    pub fn fill(&self, record: impl FnOnce(&Capture) -> Result<()>) -> Result<Graph> {
        self.0.fill(|_| record(self)).map(Graph)
    }

    /// Returns the graph: of a capture that has ended, or of a body that has not begun, to fill it
    /// explicitly.
    pub fn graph(&self) -> Result<Graph> {
        self.0.graph().map(Graph)
    }

    /// Gives the capture up, or is done with it. Of a primary capture the stream becomes an ordinary
    /// stream again.
    pub fn close(&self) {
        self.0.close();
    }

    /// Splits the capture into `branches` that run side by side: this one, and the ones returned.
    pub fn fork(&self, branches: usize) -> Result<Vec<Capture>> {
        Ok(self.0.fork(branches)?.into_iter().map(Capture).collect())
    }

    /// Joins forks into this capture: what is recorded next comes after them all. The forks can be
    /// dropped then.
    pub fn join<'a>(&self, forks: impl IntoIterator<Item = &'a Capture>) -> Result<()> {
        self.0.join(forks.into_iter().map(|fork| &fork.0))
    }

    /// Makes a condition for the graph that is captured and the graphs inside it, as
    /// [`Graph::condition`] does.
    pub fn condition(&self, default: impl ConditionDefault) -> Result<Condition> {
        self.0.condition(default).map(Condition)
    }

    /// Records copies of the nodes of a graph, as it is now, among those of this capture: the first ones
    /// come after what was recorded last, and what is recorded next comes after the last ones.
    pub fn inline(&self, graph: &Graph) -> Result<Vec<Node>> {
        Ok(self.0.inline(&graph.0)?.into_iter().map(Node).collect())
    }

    /// Records a copy of the graph that an executable was made from, as a child node.
    pub fn launch_graph(&self, executable: &Executable) -> Result<Node> {
        self.0.launch_graph(&executable.0).map(Node)
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
