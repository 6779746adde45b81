//! The operations as methods of the handles, so that callers need not import a trait.

use std::ffi::c_void;

use bytemuck::Pod;
use gridloom_core::graph::ConditionalSpec;
use gridloom_core::op::Operation;

use super::{AllocNode, Freeable, GraphOps, Ops};
use crate::buffer::{CopySource, Element, Memory, Rows};
use crate::conditional::{Conditional, If, IfElse, Switch, While};
use crate::kernel::{Arg, Arguments, Kernel, Parameters, UntypedKernel};
use crate::{Capture, Condition, Event, Graph, LaunchConfig, MemoryKind, Node, Result, Stream};

/// The methods of [`Ops`] for one handle.
macro_rules! operations {
    ($handle:ty => $added:ty) => {
        impl $handle {
            /// Runs a kernel. The compiler checks the arguments against the kernel's parameters;
            /// see [`Ops::launch`].
            #[inline]
            pub fn launch<P: Parameters>(
                &self,
                kernel: &Kernel<P>,
                config: impl Into<LaunchConfig>,
                args: impl Arguments<P>,
            ) -> Result<$added> {
                Ops::launch(self, kernel, config, args)
            }

            /// Runs a kernel without checking the launch, or later changes of it, against the
            /// kernel's contract.
            ///
            /// # Safety
            /// As for [`Ops::launch_unchecked`].
            pub unsafe fn launch_unchecked<P: Parameters>(
                &self,
                kernel: &Kernel<P>,
                config: impl Into<LaunchConfig>,
                args: impl Arguments<P>,
            ) -> Result<$added> {
                // SAFETY: the caller makes the same promise.
                unsafe { Ops::launch_unchecked(self, kernel, config, args) }
            }

            /// Runs a kernel whose arguments are known only at run time. The number and sizes of
            /// the arguments are checked.
            ///
            /// # Safety
            /// As for [`Ops::launch_untyped`].
            pub unsafe fn launch_untyped(
                &self,
                kernel: &UntypedKernel,
                config: impl Into<LaunchConfig>,
                args: impl IntoIterator<Item = Arg>,
            ) -> Result<$added> {
                // SAFETY: the caller makes the same promise.
                unsafe { Ops::launch_untyped(self, kernel, config, args) }
            }

            /// Fills memory with a repeated value of 1, 2 or 4 bytes. The memory must hold a whole
            /// number of values.
            pub fn memset<T: Element, V: Pod>(&self, dst: &impl Memory<T>, value: V) -> Result<$added> {
                Ops::memset(self, dst, value)
            }

            /// Fills `height` rows of `width` values each.
            pub fn memset_2d<T: Element, V: Pod>(
                &self,
                dst: Rows<T>,
                value: V,
                width: usize,
                height: usize,
            ) -> Result<$added> {
                Ops::memset_2d(self, dst, value, width, height)
            }

            /// Copies all elements of `src` to `dst`. Both must have the same length. A host slice
            /// is copied now and not referenced later.
            pub fn memcpy<T: Element>(
                &self,
                dst: &impl Memory<T>,
                src: &(impl CopySource<T> + ?Sized),
            ) -> Result<$added> {
                Ops::memcpy(self, dst, src)
            }

            /// Copies `height` rows of `width` elements.
            pub fn memcpy_2d<T: Element>(
                &self,
                dst: Rows<T>,
                src: Rows<T>,
                width: usize,
                height: usize,
            ) -> Result<$added> {
                Ops::memcpy_2d(self, dst, src, width, height)
            }

            /// Copies planes of rows. `extents` are elements per row, rows per plane, and planes.
            pub fn memcpy_3d<T: Element>(
                &self,
                dst: Rows<T>,
                src: Rows<T>,
                extents: [usize; 3],
            ) -> Result<$added> {
                Ops::memcpy_3d(self, dst, src, extents)
            }

            /// Calls a closure on the host, in order with the device's work. The closure must not
            /// use the device. A panic in it becomes the launch's error; see [`Ops::callback`].
            pub fn callback(&self, closure: impl FnMut() + Send + 'static) -> Result<$added> {
                Ops::callback(self, closure)
            }

            /// Calls a closure on the host with a copy of the elements of host memory, in order
            /// with the device's work. See [`Ops::callback_with`].
            pub fn callback_with<T: Element>(
                &self,
                memory: &impl Memory<T>,
                closure: impl FnMut(&[T]) + Send + 'static,
            ) -> Result<$added> {
                Ops::callback_with(self, memory, closure)
            }

            /// Calls a C function on the host with a pointer to a copy of `bytes`. The function
            /// must not write to it. The copy need not be aligned.
            ///
            /// # Safety
            /// The function may be called from any thread with such a pointer, any number of times.
            pub unsafe fn callback_raw(
                &self,
                function: unsafe extern "C" fn(*mut c_void),
                bytes: &[u8],
            ) -> Result<$added> {
                // SAFETY: the caller makes the same promise.
                unsafe { Ops::callback_raw(self, function, bytes) }
            }

            /// Calls a C function on the host with the given pointer.
            ///
            /// # Safety
            /// As for [`Ops::callback_raw_pointer`].
            pub unsafe fn callback_raw_pointer(
                &self,
                function: unsafe extern "C" fn(*mut c_void),
                pointer: *mut c_void,
            ) -> Result<$added> {
                // SAFETY: the caller makes the same promise.
                unsafe { Ops::callback_raw_pointer(self, function, pointer) }
            }

            /// Records an event.
            pub fn record(&self, event: &Event) -> Result<$added> {
                Ops::record(self, event)
            }

            /// Waits for an event.
            pub fn wait(&self, event: &Event) -> Result<$added> {
                Ops::wait(self, event)
            }

            /// Adds one operation, for example one that [`Node::operation`] returned. The other
            /// methods build an operation and pass it to this one.
            #[inline]
            pub fn submit(&self, operation: Operation) -> Result<$added> {
                Ops::submit(self, operation)
            }
        }
    };
}
operations!(Stream => ());
operations!(Capture => Node);
operations!(Graph => Node);
operations!(Node => Node);

/// The methods of [`GraphOps`] for one handle.
macro_rules! graph_operations {
    ($handle:ty, bodies: $body:ty) => {
        impl $handle {
            /// Adds a node that does nothing, as a point for dependencies.
            pub fn empty(&self) -> Result<Node> {
                GraphOps::empty(self)
            }

            /// Allocates memory for `len` elements at each launch. Nodes that depend on this one
            /// can use it.
            pub fn alloc<T: Element>(&self, len: usize) -> Result<AllocNode<T>> {
                GraphOps::alloc(self, len)
            }

            /// Allocates memory of a given kind for `len` elements at each launch.
            pub fn alloc_in<T: Element>(&self, len: usize, kind: MemoryKind) -> Result<AllocNode<T>> {
                GraphOps::alloc_in(self, len, kind)
            }

            /// Allocates memory that other devices can access too. `peers` are their ordinals.
            pub fn alloc_for_peers<T: Element>(
                &self,
                len: usize,
                kind: MemoryKind,
                peers: &[u32],
            ) -> Result<AllocNode<T>> {
                GraphOps::alloc_for_peers(self, len, kind, peers)
            }

            /// Frees the memory of an alloc node, or memory that outlived a launch of an
            /// executable. The new node also depends on the alloc node.
            pub fn free(&self, memory: &impl Freeable) -> Result<Node> {
                GraphOps::free(self, memory)
            }

            /// Adds a node that runs a copy of another graph, taken now. [`Node::bodies`] returns
            /// the copy, which can be read and edited.
            pub fn embed(&self, graph: &Graph) -> Result<Node> {
                GraphOps::embed(self, graph)
            }

            /// Adds one operation that also depends on these nodes.
            pub fn submit_after(&self, nodes: &[&Node], operation: Operation) -> Result<Node> {
                GraphOps::submit_after(self, nodes, operation)
            }

            /// Adds a conditional in its most general form. The methods below build a specification
            /// and pass it to this one.
            pub fn conditional(&self, spec: ConditionalSpec) -> Result<Conditional<$body>> {
                GraphOps::conditional(self, spec)
            }

            /// Adds a body that runs when the condition is not 0.
            pub fn if_then(&self, condition: &Condition) -> Result<If<$body>> {
                GraphOps::if_then(self, condition)
            }

            /// Adds two bodies. The first runs when the condition is not 0, else the second.
            pub fn if_else(&self, condition: &Condition) -> Result<IfElse<$body>> {
                GraphOps::if_else(self, condition)
            }

            /// Adds a body that runs while the condition is not 0. The condition is tested before
            /// each pass.
            pub fn while_loop(&self, condition: &Condition) -> Result<While<$body>> {
                GraphOps::while_loop(self, condition)
            }

            /// Adds `bodies` bodies. The condition's value is the index of the body to run; out of
            /// range, none runs.
            pub fn switch(&self, condition: &Condition, bodies: usize) -> Result<Switch<$body>> {
                GraphOps::switch(self, condition, bodies)
            }

            /// Adds a body that runs when the integer in device memory is not 0.
            pub fn if_nonzero(&self, value: &impl Memory<i32>) -> Result<If<$body>> {
                GraphOps::if_nonzero(self, value)
            }

            /// Adds two bodies. The first runs when the integer in device memory is not 0, else the
            /// second.
            pub fn if_else_nonzero(&self, value: &impl Memory<i32>) -> Result<IfElse<$body>> {
                GraphOps::if_else_nonzero(self, value)
            }

            /// Adds a body that runs while the integer in device memory is not 0. It is tested
            /// before each pass.
            pub fn while_nonzero(&self, value: &impl Memory<i32>) -> Result<While<$body>> {
                GraphOps::while_nonzero(self, value)
            }

            /// Adds a body that runs once, then again while the integer in device memory is not 0.
            pub fn do_while(&self, value: &impl Memory<i32>) -> Result<While<$body>> {
                GraphOps::do_while(self, value)
            }

            /// Adds `bodies` bodies. The integer in device memory is the index of the body to run;
            /// out of range, none runs.
            pub fn switch_on(&self, value: &impl Memory<i32>, bodies: usize) -> Result<Switch<$body>> {
                GraphOps::switch_on(self, value, bodies)
            }

            /// Adds a body that runs `passes` times. The counter belongs to the graph and starts
            /// again whenever the node runs.
            pub fn repeat(&self, passes: u64) -> Result<While<$body>> {
                GraphOps::repeat(self, passes)
            }
        }
    };
}
graph_operations!(Graph, bodies: Graph);
graph_operations!(Node, bodies: Graph);
graph_operations!(Capture, bodies: Capture);
