//! Conditional nodes with their bodies.

use std::ops::Deref;

use crate::{Error, ErrorKind, Graph, Node, Result};

macro_rules! conditional {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name(Node);

        impl $name {
            pub(crate) fn new(node: Node) -> Self {
                $name(node)
            }

            /// The same node, named.
            pub fn named(self, name: &str) -> Result<Self> {
                self.0.set_name(name)?;
                Ok(self)
            }
        }

        impl Deref for $name {
            type Target = Node;

            fn deref(&self) -> &Node {
                &self.0
            }
        }
    };
}

conditional! {
    /// A node with one body that runs or not.
    If
}
conditional! {
    /// A node with two bodies, of which exactly one runs.
    IfElse
}
conditional! {
    /// A loop.
    While
}
conditional! {
    /// A node with several bodies, of which at most one runs.
    Switch
}

impl If {
    /// The body, to add nodes to.
    pub fn body(&self) -> Graph {
        body(&self.0, 0)
    }
}

impl IfElse {
    /// The body that runs when the value is not 0.
    pub fn then_body(&self) -> Graph {
        body(&self.0, 0)
    }

    /// The body that runs when the value is 0.
    pub fn else_body(&self) -> Graph {
        body(&self.0, 1)
    }
}

impl While {
    /// The body, to add nodes to.
    pub fn body(&self) -> Graph {
        body(&self.0, 0)
    }

    /// The same loop, ended after at most this many passes.
    pub fn limit(self, passes: u64) -> Result<Self> {
        self.0.set_max_passes(Some(passes))?;
        Ok(self)
    }
}

impl Switch {
    /// The body of one case.
    pub fn body(&self, case: usize) -> Result<Graph> {
        let bodies = self.0.bodies()?;
        bodies.get(case).cloned().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("{} has {} bodies; there is no body {case}", self.0.label(), bodies.len()),
            )
        })
    }
}

/// A body of a conditional. The handle of a deleted conditional gives a handle that is just as invalid.
fn body(node: &Node, index: usize) -> Graph {
    node.body_handle(index)
}
