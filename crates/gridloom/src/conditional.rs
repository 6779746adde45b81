//! Conditional nodes with their bodies.
//!
//! The type of a body depends on where the conditional was added. In a graph, or after a node, it
//! is a [`Graph`]. In a capture it is a [`Capture`]. Both are filled with the same operations, in a
//! closure:
//!
//! ```
//! use gridloom::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let device = Device::cpu()?;
//! let stream = device.stream()?;
//! let x = device.buffer_from(&[0i32])?;
//!
//! let graph = Graph::new(&device);
//! graph.repeat(3)?.fill(|body| body.memset(&x, 1i32))?;
//!
//! let captured = stream.capture_scope(|capture| {
//!     capture.repeat(3)?.fill(|body| body.memset(&x, 1i32))?;
//!     Ok(())
//! })?;
//! assert_eq!(captured.diff(&graph), []);
//! # Ok(())
//! # }
//! ```
//!
//! A body can also be filled step by step, through the handles that the conditional returns.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use crate::{Capture, Error, ErrorKind, Graph, Node, Result};

mod sealed {
    pub trait Body {}
}

/// A body of a conditional: a [`Graph`], or a [`Capture`] that records one.
pub trait Body: sealed::Body + Sized {
    /// Calls `build` to add work to the body. A capture begins before the call and ends after it.
    fn fill<R>(&self, build: impl FnOnce(&Self) -> Result<R>) -> Result<R>;
}

impl sealed::Body for Graph {}
impl Body for Graph {
    fn fill<R>(&self, build: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        build(self)
    }
}

impl sealed::Body for Capture {}
impl Body for Capture {
    fn fill<R>(&self, build: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        let mut built = None;
        Capture::fill(self, |capture| {
            built = Some(build(capture)?);
            Ok(())
        })?;
        Ok(built.expect("the closure was run"))
    }
}

/// A conditional of any form: its node, and its bodies in order.
pub struct Conditional<B = Graph> {
    node: Node,
    bodies: Vec<B>,
}

impl<B> Conditional<B> {
    pub(crate) fn new(node: Node, bodies: Vec<B>) -> Self {
        Conditional { node, bodies }
    }

    /// Returns the node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns its bodies in order.
    pub fn bodies(&self) -> &[B] {
        &self.bodies
    }

    /// Returns its bodies in order and drops the rest.
    pub fn into_bodies(self) -> Vec<B> {
        self.bodies
    }
}

impl<B: Clone> Clone for Conditional<B> {
    fn clone(&self) -> Self {
        Conditional { node: self.node.clone(), bodies: self.bodies.clone() }
    }
}

impl<B> fmt::Debug for Conditional<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

macro_rules! conditional {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name<B = Graph>(Conditional<B>);

        impl<B: Body> $name<B> {
            pub(crate) fn new(conditional: Conditional<B>) -> Self {
                $name(conditional)
            }

            /// Returns the node. An operation on the node runs after the conditional.
            pub fn node(&self) -> &Node {
                &self.0.node
            }

            /// Gives the node a name, and returns the conditional.
            pub fn named(self, name: &str) -> Result<Self> {
                self.set_name(name)?;
                Ok(self)
            }
        }

        impl<B> Deref for $name<B> {
            type Target = Node;

            fn deref(&self) -> &Node {
                &self.0.node
            }
        }

        impl<B> AsRef<Node> for $name<B> {
            fn as_ref(&self) -> &Node {
                &self.0.node
            }
        }

        impl<B> From<$name<B>> for Node {
            fn from(conditional: $name<B>) -> Node {
                conditional.0.node
            }
        }

        impl<B: Clone> Clone for $name<B> {
            fn clone(&self) -> Self {
                $name(self.0.clone())
            }
        }

        impl<B> PartialEq for $name<B> {
            fn eq(&self, other: &Self) -> bool {
                self.0.node == other.0.node
            }
        }

        impl<B> Eq for $name<B> {}

        impl<B> Hash for $name<B> {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.node.hash(state);
            }
        }

        impl<B> fmt::Debug for $name<B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0.node.label())
            }
        }
    };
}

macro_rules! one_body {
    ($name:ident) => {
        impl<B: Body> $name<B> {
            /// Returns the body and drops the rest.
            pub fn into_body(mut self) -> B {
                self.0.bodies.swap_remove(0)
            }

            /// Calls `build` to add work to the body.
            pub fn fill<R>(self, build: impl FnOnce(&B) -> Result<R>) -> Result<Self> {
                self.0.bodies[0].fill(build)?;
                Ok(self)
            }
        }

        impl $name {
            /// Returns the body.
            pub fn body(&self) -> Graph {
                self.0.bodies[0].clone()
            }
        }

        impl $name<Capture> {
            /// Returns the capture of the body.
            pub fn body(&self) -> &Capture {
                &self.0.bodies[0]
            }
        }
    };
}

conditional! {
    /// A node with one body, which runs or not.
    If
}
conditional! {
    /// A node with two bodies. Exactly one of them runs.
    IfElse
}
conditional! {
    /// A loop: a node with one body, which runs any number of times.
    While
}
conditional! {
    /// A node with several bodies. At most one of them runs.
    Switch
}
one_body!(If);
one_body!(While);

impl IfElse {
    /// Returns the body that runs when the value is not 0.
    pub fn then_body(&self) -> Graph {
        self.0.bodies[0].clone()
    }

    /// Returns the body that runs when the value is 0.
    pub fn else_body(&self) -> Graph {
        self.0.bodies[1].clone()
    }
}

impl IfElse<Capture> {
    /// Returns the capture of the body that runs when the value is not 0.
    pub fn then_body(&self) -> &Capture {
        &self.0.bodies[0]
    }

    /// Returns the capture of the body that runs when the value is 0.
    pub fn else_body(&self) -> &Capture {
        &self.0.bodies[1]
    }
}

impl<B: Body> IfElse<B> {
    /// Returns both bodies and drops the rest.
    pub fn into_bodies(mut self) -> (B, B) {
        let otherwise = self.0.bodies.swap_remove(1);
        (self.0.bodies.swap_remove(0), otherwise)
    }

    /// Calls the closures to add work to the bodies: `then` to the one for a value that is not 0,
    /// `otherwise` to the one for 0.
    pub fn fill<R, Q>(
        self,
        then: impl FnOnce(&B) -> Result<R>,
        otherwise: impl FnOnce(&B) -> Result<Q>,
    ) -> Result<Self> {
        self.0.bodies[0].fill(then)?;
        self.0.bodies[1].fill(otherwise)?;
        Ok(self)
    }
}

impl<B: Body> While<B> {
    /// Ends the loop after at most this many passes, and returns it.
    pub fn max_passes(self, passes: u64) -> Result<Self> {
        self.set_max_passes(Some(passes))?;
        Ok(self)
    }
}

impl Switch {
    /// Returns the body of one case.
    pub fn body(&self, case: usize) -> Result<Graph> {
        self.case(case).cloned()
    }
}

impl Switch<Capture> {
    /// Returns the capture of the body of one case.
    pub fn body(&self, case: usize) -> Result<&Capture> {
        self.case(case)
    }
}

impl<B: Body> Switch<B> {
    fn case(&self, case: usize) -> Result<&B> {
        self.0.bodies.get(case).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("{} has {} bodies; there is no body {case}", self.label(), self.0.bodies.len()),
            )
        })
    }

    /// Returns the bodies of all cases.
    pub fn bodies(&self) -> &[B] {
        &self.0.bodies
    }

    /// Returns the bodies of all cases and drops the rest.
    pub fn into_bodies(self) -> Vec<B> {
        self.0.bodies
    }

    /// Calls `case` to add work to each body, with the index of the case.
    pub fn fill<R>(self, mut case: impl FnMut(usize, &B) -> Result<R>) -> Result<Self> {
        for (number, body) in self.0.bodies.iter().enumerate() {
            body.fill(|body| case(number, body))?;
        }
        Ok(self)
    }
}
