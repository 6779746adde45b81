//! Capture: turns code written for streams into a graph.
//!
//! [`Stream::capture`](crate::Stream::capture) starts recording. Operations on the stream, or on
//! the [`Capture`] it returns, then become nodes of a graph and do not run. [`Capture::end`]
//! returns the graph, which is like any other: it can be edited, embedded and instantiated.
//! Recording makes no calls to the device and does not disturb other work there.
//!
//! A function that takes a stream needs no change. Written against [`Ops`](crate::Ops), it works
//! with streams, captures, graphs and nodes:
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
//! [`Capture::fork`] and [`Capture::join`] split a capture into branches that run side by side.
//! Events do so too, as they do for streams that run: a stream that waits for an event recorded in
//! a capture becomes a fork of that capture. When the capture ends, it is an ordinary stream again.
//! A conditional returns one capture for each body. A body is filled with a closure, between
//! `begin` and `end`, or node by node through its `graph()`:
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
//! [`Capture::foreign`] captures code that calls CUDA itself, such as a CUDA library.
//!
//! Dropping a capture before it ended, after an early return or a panic, discards what was recorded
//! and leaves its streams usable. See [`gridloom_core::capture`] for the kinds and states of
//! captures and what each allows.

#[cfg(feature = "cuda")]
mod foreign;

use std::fmt;

#[cfg(feature = "cuda")]
pub use foreign::{CaptureMode, ForeignOptions, ForeignStream};
use gridloom_core as core;
use gridloom_core::capture::{CaptureKind, CaptureState, ConditionDefault};

use crate::{Condition, Executable, Graph, Node, Result};

/// A capture. Operations on it, or on its stream, are recorded in a graph and do not run.
///
/// Dropping a capture before it ended discards what was recorded and leaves the stream usable. If a
/// fork or body is dropped before it ended, the capture it belongs to refuses to end. A failed
/// operation leaves the capture unchanged.
///
/// A conditional returns the captures of its bodies, which have not begun. This capture continues
/// after the conditional.
#[repr(transparent)]
pub struct Capture(pub(crate) core::Capture);

impl Capture {
    /// Returns whether it is a primary capture, a fork or a body.
    pub fn kind(&self) -> CaptureKind {
        self.0.kind()
    }

    /// Returns its state.
    pub fn state(&self) -> CaptureState {
        self.0.state()
    }

    /// Returns the conditional node that this body, or this fork of a body, belongs to.
    pub fn owner(&self) -> Result<Node> {
        self.0.owner().map(Node)
    }

    /// Starts recording. Only the body of a conditional needs this call; other captures begin when
    /// they are made.
    ///
    /// New nodes come after those that the body already has.
    pub fn begin(&self) -> Result<()> {
        self.0.begin()
    }

    /// Ends the capture and returns its graph. Every fork must have been joined, and every body
    /// that began must have ended.
    pub fn end(&self) -> Result<Graph> {
        self.0.end().map(Graph)
    }

    /// Begins a body, records what `record` does, and ends it. The body cannot be left open by
    /// mistake.
    pub fn fill(&self, record: impl FnOnce(&Capture) -> Result<()>) -> Result<Graph> {
        self.0.fill(|_| record(self)).map(Graph)
    }

    /// Returns the graph of a capture that has ended, or of a body that has not begun, to add nodes
    /// to it directly.
    pub fn graph(&self) -> Result<Graph> {
        self.0.graph().map(Graph)
    }

    /// Closes the capture. A capture that has not ended is discarded. The stream of a primary
    /// capture becomes an ordinary stream again.
    pub fn close(&self) {
        self.0.close();
    }

    /// Splits the capture into `branches` that run side by side: this one and the returned ones.
    pub fn fork(&self, branches: usize) -> Result<Vec<Capture>> {
        Ok(self.0.fork(branches)?.into_iter().map(Capture).collect())
    }

    /// Joins forks into this capture. What is recorded next depends on all of them. The forks can
    /// then be dropped.
    pub fn join<'a>(&self, forks: impl IntoIterator<Item = &'a Capture>) -> Result<()> {
        self.0.join(forks.into_iter().map(|fork| &fork.0))
    }

    /// Creates a condition for the captured graph and the graphs inside it, as [`Graph::condition`]
    /// does.
    pub fn condition(&self, default: impl ConditionDefault) -> Result<Condition> {
        self.0.condition(default).map(Condition)
    }

    /// Records copies of the nodes of a graph, as it is now. The first ones depend on what was
    /// recorded last. What is recorded next depends on the last ones.
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
