//! Capture: code written against streams becomes a graph.
//!
//! [`Stream::capture`] starts recording. What is then done on the stream, or on the [`Capture`] it returns, becomes nodes of a graph instead of
//! running; [`Capture::end`] gives the graph, which is like any other: it can be edited, embedded, instantiated. Nothing is asked of the
//! device meanwhile, and whatever else goes on there is not disturbed.
//!
//! A function of streams needs no change for it. Written against [`Ops`], it serves streams, captures, graphs and nodes alike:
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
//! Conditionals give a capture for each body, to be filled with [`Capture::fill`], or with `begin` and `end`, or explicitly through its
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
//!     capture.repeat(3)?.fill(|body| body.memset(&one, 1i32).map(drop))?;
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
//! Code that Gridloom does not know, such as a CUDA library, is captured with [`ForeignOps::foreign`].
//!
//! A capture that is dropped half way, by an early return or a panic, discards what was recorded and leaves its streams usable. See
//! [`gridloom_core::capture`] for the kinds and states of captures and what each allows.

mod foreign;

pub use foreign::{CaptureMode, ForeignOps, ForeignOptions, ForeignStream};
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::op::{ConditionalForm, Operation, Test};

use crate::buffer::{Buffer, Element, Memory};
use crate::ops::{AllocNode, Freeable, Ops, alloc_operation, one_value, spec};
use crate::{Capture, Condition, Device, Error, ErrorKind, Event, MemoryKind, Node, Result, Stream};

impl Ops for Capture {
    type Added = Node;

    fn submit(&self, operation: Operation) -> Result<Node> {
        self.add(operation)
    }

    fn record(&self, event: &Event) -> Result<Node> {
        self.record_event(event)
    }

    fn wait(&self, event: &Event) -> Result<Node> {
        self.wait_event(event)
    }
}

/// What a capture can do beyond what a stream can: allocations and control flow.
///
/// A conditional gives back the captures of its bodies, which have yet to begin; the capture goes on after the conditional.
/// [`Capture::owner`] of a body is the conditional node.
pub trait CaptureOps: Ops<Added = Node> {
    /// Records a conditional in its most general form; the other methods are ways to write it.
    fn branch(&self, spec: &ConditionalSpec) -> Result<Vec<Capture>>;

    /// Memory for `len` elements, provided at each launch to what is recorded after this.
    fn alloc<T: Element>(&self, len: usize) -> Result<AllocNode<T>> {
        self.alloc_in(len, MemoryKind::Device)
    }

    /// Memory of a given kind for `len` elements, provided at each launch.
    fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<AllocNode<T>> {
        self.alloc_for_peers(len, kind, &[])
    }

    /// Memory that other devices, named by their ordinals, can reach too.
    fn alloc_for_peers<T: Element>(
        &self,
        len: usize,
        kind: MemoryKind,
        peers: &[u32],
    ) -> Result<AllocNode<T>> {
        Ok(AllocNode::new(self.submit(alloc_operation::<T>(len, kind, peers)?)?, len))
    }

    /// Frees the memory of an alloc node, which the new node comes after too, or memory that outlived a launch of an executable.
    fn free(&self, memory: &impl Freeable) -> Result<Node>;

    /// A node that does nothing, for other nodes to come after.
    fn empty(&self) -> Result<Node> {
        self.submit(Operation::Empty)
    }

    /// A body that runs when the condition is not 0.
    fn if_then(&self, condition: &Condition) -> Result<Capture> {
        one(self, &spec(ConditionalForm::If, Test::Condition(condition.key()), 1))
    }

    /// Two bodies, of which exactly one runs: the first when the condition is not 0.
    fn if_else(&self, condition: &Condition) -> Result<(Capture, Capture)> {
        two(self, &spec(ConditionalForm::IfElse, Test::Condition(condition.key()), 2))
    }

    /// A body that runs again and again while the condition is not 0. It is tested before each pass.
    fn while_loop(&self, condition: &Condition) -> Result<Capture> {
        one(self, &spec(ConditionalForm::While, Test::Condition(condition.key()), 1))
    }

    /// `bodies` bodies, of which the one runs whose index is the condition's value, or none.
    fn switch(&self, condition: &Condition, bodies: usize) -> Result<Vec<Capture>> {
        self.branch(&spec(ConditionalForm::Switch, Test::Condition(condition.key()), bodies))
    }

    /// A body that runs when the integer in device memory is not 0.
    fn if_nonzero(&self, value: &impl Memory<i32>) -> Result<Capture> {
        one(self, &spec(ConditionalForm::If, Test::Value(one_value(value)?), 1))
    }

    /// Two bodies: the first runs when the integer in device memory is not 0, else the second.
    fn if_else_nonzero(&self, value: &impl Memory<i32>) -> Result<(Capture, Capture)> {
        two(self, &spec(ConditionalForm::IfElse, Test::Value(one_value(value)?), 2))
    }

    /// A body that runs while the integer in device memory is not 0. It is tested before each pass.
    fn while_nonzero(&self, value: &impl Memory<i32>) -> Result<Capture> {
        one(self, &spec(ConditionalForm::While, Test::Value(one_value(value)?), 1))
    }

    /// A body that runs once, then again while the integer in device memory is not 0.
    fn do_while(&self, value: &impl Memory<i32>) -> Result<Capture> {
        let spec = spec(ConditionalForm::While, Test::Value(one_value(value)?), 1);
        one(self, &ConditionalSpec { test_first: false, ..spec })
    }

    /// `bodies` bodies, of which the one runs whose index is the integer in device memory, or none.
    fn switch_on(&self, value: &impl Memory<i32>, bodies: usize) -> Result<Vec<Capture>> {
        self.branch(&spec(ConditionalForm::Switch, Test::Value(one_value(value)?), bodies))
    }

    /// A body that runs `passes` times. The counter belongs to the graph and starts anew whenever the node runs.
    fn repeat(&self, passes: u64) -> Result<Capture> {
        one(self, &spec(ConditionalForm::While, Test::Count(passes), 1))
    }
}

impl CaptureOps for Capture {
    fn branch(&self, spec: &ConditionalSpec) -> Result<Vec<Capture>> {
        Ok(self.conditional(spec)?.1)
    }

    fn free(&self, memory: &impl Freeable) -> Result<Node> {
        let (target, alloc) = memory.target()?;
        self.add_after(alloc.as_slice(), Operation::Free(target))
    }
}

/// The one body of a conditional that has one.
fn one<C: CaptureOps + ?Sized>(capture: &C, spec: &ConditionalSpec) -> Result<Capture> {
    let [body] = bodies(capture, spec)?;
    Ok(body)
}

/// The two bodies of a conditional that has two.
fn two<C: CaptureOps + ?Sized>(capture: &C, spec: &ConditionalSpec) -> Result<(Capture, Capture)> {
    let [then, otherwise] = bodies(capture, spec)?;
    Ok((then, otherwise))
}

fn bodies<const N: usize, C: CaptureOps + ?Sized>(
    capture: &C,
    spec: &ConditionalSpec,
) -> Result<[Capture; N]> {
    let bodies = capture.branch(spec)?;
    Ok(bodies.try_into().expect("the form fixes the number of bodies"))
}

/// What a stream can do beyond running operations.
pub trait StreamOps {
    /// Memory of the stream's device for `len` elements, like [`Device::alloc`]. Refused while the stream captures: memory for the graph
    /// comes from the capture.
    fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>>;

    /// Memory of a given kind for `len` elements, like [`Device::alloc_in`]. Refused while the stream captures.
    fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<Buffer<T>>;
}

impl StreamOps for Stream {
    fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        StreamOps::alloc_in(self, len, MemoryKind::Device)
    }

    fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<Buffer<T>> {
        if self.is_capturing() {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "an allocation on a stream that is capturing: it would be made once and not at each launch; use alloc of the capture for memory of the graph, or alloc of the device for memory that outlives it",
            ));
        }
        Device::from_backend(self.device().clone()).alloc_in(len, kind)
    }
}
