//! Typed memory of alloc nodes.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, RangeBounds};

use gridloom_core::memory::{Base, Region};
use gridloom_core::op::{FreeTarget, NodeKind, Operation};

use crate::buffer::{Buffer, Element, Memory, check_alignment, resolve};
use crate::{Error, ErrorKind, Node, Result};

/// An alloc node, and the typed memory it provides.
pub struct AllocNode<T> {
    node: Node,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> AllocNode<T> {
    /// Wraps a node that allocates `len` elements.
    pub(crate) fn new(node: Node, len: usize) -> Self {
        AllocNode { node, len, element: PhantomData }
    }

    /// Views an alloc node's memory as elements of type `T`.
    pub(crate) fn of(node: &Node) -> Result<Self> {
        let alloc = match node.operation()? {
            Operation::Alloc(alloc) => alloc,
            other => return Err(node.wrong_kind(NodeKind::Alloc, other.kind())),
        };
        check_alignment::<T>()?;
        let (bytes, size) = (alloc.bytes(), size_of::<T>() as u64);
        if size == 0 || !bytes.is_multiple_of(size) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "{} allocates {bytes} bytes, which are not whole elements of {size} bytes ({})",
                    node.label(),
                    std::any::type_name::<T>()
                ),
            ));
        }
        Ok(AllocNode::new(node.clone(), (bytes / size) as usize))
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `false`: an allocation has at least one element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a part of the memory.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<AllocSlice<T>> {
        let (start, len) = resolve(range, self.len)?;
        Ok(AllocSlice { alloc: self.clone(), start, len })
    }

    /// Gives the node a name and returns it.
    pub fn named(self, name: &str) -> Result<Self> {
        self.node.set_name(name)?;
        Ok(self)
    }
}

impl<T> Clone for AllocNode<T> {
    fn clone(&self) -> Self {
        AllocNode { node: self.node.clone(), len: self.len, element: PhantomData }
    }
}

impl<T> AsRef<Node> for AllocNode<T> {
    fn as_ref(&self) -> &Node {
        &self.node
    }
}

impl<T> From<AllocNode<T>> for Node {
    fn from(alloc: AllocNode<T>) -> Node {
        alloc.node
    }
}

impl<T> Deref for AllocNode<T> {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl<T> fmt::Debug for AllocNode<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AllocNode<{}>({}, {})", std::any::type_name::<T>(), self.node.label(), self.len)
    }
}

// SAFETY: the memory of an alloc node is aligned for any element.
unsafe impl<T: Element> Memory<T> for AllocNode<T> {
    fn region(&self) -> Result<Region> {
        let bytes = (self.len * size_of::<T>()) as u64;
        Ok(Region { base: Base::AllocNode(self.node.key()), offset: 0, bytes })
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// A part of the memory of an [`AllocNode`].
pub struct AllocSlice<T> {
    alloc: AllocNode<T>,
    start: usize,
    len: usize,
}

// SAFETY: it starts a whole number of elements into the aligned memory.
unsafe impl<T: Element> Memory<T> for AllocSlice<T> {
    fn region(&self) -> Result<Region> {
        let size = size_of::<T>() as u64;
        let part = self.alloc.region()?.part(self.start as u64 * size, self.len as u64 * size);
        Ok(part.expect("checked when the slice was made"))
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl<T> fmt::Debug for AllocSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[{}..{}]", self.alloc, self.start, self.start + self.len)
    }
}

mod sealed {
    pub trait Freeable {}
}

/// Memory that a graph can free: that of an [`AllocNode`], or a [`Buffer`] that outlived a launch.
pub trait Freeable: sealed::Freeable {
    /// Returns the memory to free, and the alloc node to depend on where there is one.
    #[doc(hidden)]
    fn target(&self) -> Result<(FreeTarget, Option<&Node>)>;
}

impl<T> sealed::Freeable for AllocNode<T> {}
impl<T: Element> Freeable for AllocNode<T> {
    fn target(&self) -> Result<(FreeTarget, Option<&Node>)> {
        Ok((FreeTarget::AllocNode(self.node.key()), Some(&self.node)))
    }
}

impl<T> sealed::Freeable for Buffer<T> {}
impl<T: Element> Freeable for Buffer<T> {
    fn target(&self) -> Result<(FreeTarget, Option<&Node>)> {
        Ok((FreeTarget::Outliving(self.allocation()?), None))
    }
}
