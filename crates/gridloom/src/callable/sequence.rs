//! The sequence of operations that the closure of a callable writes, with how each depends on the
//! arguments.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bytemuck::Pod;
use gridloom_core::backend;
use gridloom_core::memory::Region;
use gridloom_core::op::contract::without_signature;
use gridloom_core::op::{CallbackOp, ConditionalOp, MemcpyOp, MemsetOp, NodeKind, Operation, Test};
use gridloom_core::{Graph, Node};
use smallvec::SmallVec;

use super::operands::{CallArguments, CallMemory, LaunchShape, MemorySlot, Slot};
use super::params::{Binding, Origin, ParamId, Specs};
use super::recipe::{KernelRecipe, Recipe, RecipeKind};
use super::{Callable, MAX_INLINE_DEPTH};
use crate::buffer::{Buffer, Element, Memory};
use crate::conditional::While;
use crate::kernel::{Kernel, Parameters};
use crate::ops::{After, GraphOps, Ops, fill_value};
use crate::{Device, Error, ErrorKind, Result};

/// What a run of the closure recorded about the dependence on arguments.
#[derive(Default)]
struct Recorded {
    recipes: Vec<Recipe>,
    /// Conditionals that test a parameter. Their recipes are made last, when their bounds are
    /// known.
    tests: Vec<(Node, ParamId)>,
    /// Whether the graph has memory of its own, which two launches cannot use at once.
    has_cells: bool,
}

/// What a run of the closure built.
pub(super) struct Built {
    pub(super) graph: Graph,
    pub(super) recipes: Vec<Recipe>,
    /// Whether the graph may have only one executable, because launches of two would use the same
    /// memory.
    pub(super) is_exclusive: bool,
}

/// A sequence of operations. Each depends on the one before.
///
/// The closure of a [`Callable`] receives one, and so do the closures of loops, branches and
/// sections inside it.
///
/// The closures run once, when the graph is built. The operations they add run at every call.
/// Parameters are valid in the run they were given to: one kept from another run, or another
/// callable, is refused.
pub struct Sequence {
    graph: Graph,
    origin: Origin,
    tail: RefCell<SmallVec<[Node; 2]>>,
    bindings: Rc<[Binding]>,
    recorded: Rc<RefCell<Recorded>>,
    depth: Rc<Cell<usize>>,
}

/// A loop of a callable.
#[derive(Clone, Debug)]
pub struct Loop(While);

impl Loop {
    /// Ends the loop after at most this many passes.
    pub fn max_passes(self, passes: u64) -> Result<Self> {
        self.0.max_passes(passes).map(Loop)
    }
}

/// The integer that a conditional tests in the first call.
struct Tested(Region);

// SAFETY: it is the region of a `CallMemory<i32>`, which is aligned for one.
unsafe impl Memory<i32> for Tested {
    fn region(&self) -> Result<Region> {
        Ok(self.0.clone())
    }

    fn len(&self) -> usize {
        1
    }
}

/// Runs the closure. Returns the graph, and how its nodes depend on the arguments.
pub(super) fn build(
    device: &Arc<dyn backend::Device>,
    bindings: &[Binding],
    closure: impl FnOnce(&Sequence, Origin) -> Result<()>,
) -> Result<Built> {
    let origin = Origin::new();
    let sequence = Sequence {
        graph: Graph::new(device),
        origin,
        tail: RefCell::default(),
        bindings: bindings.into(),
        recorded: Rc::default(),
        depth: Rc::default(),
    };
    closure(&sequence, origin)?;
    let mut recorded = sequence.recorded.take();
    for (node, param) in recorded.tests {
        let Operation::Conditional(template) = node.operation()? else { continue };
        let make = move |bindings: &[Binding]| {
            let test = Test::Value(one_integer(bindings[param.index].region())?);
            Ok(Operation::Conditional(Arc::new(ConditionalOp { test, ..(*template).clone() })))
        };
        let what = RecipeKind::Other(Box::new(make));
        recorded.recipes.push(Recipe { node: node.key(), follows: param.bit(), bytes: 0, what });
    }
    Ok(Built { graph: sequence.graph, recipes: recorded.recipes, is_exclusive: recorded.has_cells })
}

/// Returns the region if it holds exactly one integer.
fn one_integer(region: &Region) -> Result<Region> {
    if region.bytes != 4 {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "a conditional tests one integer of 4 bytes, this memory has {}; take a slice of one",
                region.bytes
            ),
        ));
    }
    Ok(region.clone())
}

impl Sequence {
    /// Runs a kernel. `shape` is a [`LaunchConfig`](crate::LaunchConfig) or depends on the
    /// arguments ([`per_element`](super::per_element), [`shape_of`](super::shape_of)).
    pub fn launch<P: Parameters>(
        &self,
        kernel: &Kernel<P>,
        shape: impl Into<LaunchShape>,
        args: impl CallArguments<P>,
    ) -> Result<()> {
        self.add_launch(kernel.backend().clone(), shape.into(), args)
    }

    /// Runs a kernel without checking calls against the kernel's contract.
    ///
    /// # Safety
    /// With these arguments, whatever a call passes for the parameters among them, and in any
    /// launch shape, the kernel stays within the memory that they point to.
    pub unsafe fn launch_unchecked<P: Parameters>(
        &self,
        kernel: &Kernel<P>,
        shape: impl Into<LaunchShape>,
        args: impl CallArguments<P>,
    ) -> Result<()> {
        self.add_launch(without_signature(kernel.backend()), shape.into(), args)
    }

    fn add_launch<P: Parameters>(
        &self,
        kernel: Arc<dyn backend::Kernel>,
        shape: LaunchShape,
        args: impl CallArguments<P>,
    ) -> Result<()> {
        let launch = KernelRecipe { kernel, shape, slots: args.slots()?.into_vec() };
        let params = launch.slots.iter().filter_map(Slot::param).chain(launch.shape.params());
        self.check_own(params)?;
        let operation = launch.operation(&self.bindings)?;
        let bytes = operation.as_kernel().map_or(0, |kernel| kernel.args().bytes.len() as u64);
        let added = self.add(|after| after.submit(operation));
        let node = added.map_err(|error| {
            let label = format!("{} {}", self.next_label(NodeKind::Kernel), launch.kernel.name());
            launch.explain(error).at_node(label)
        })?;
        self.depends(&node, launch.follows(), bytes, RecipeKind::Kernel(launch));
        Ok(())
    }

    /// Fills memory with a value of 1, 2 or 4 bytes.
    pub fn memset<T: Element, V: Pod>(&self, dst: &impl CallMemory<T>, value: V) -> Result<()> {
        let (value, element_size) = fill_value(value)?;
        let dst = dst.slot()?;
        self.check_own(dst.param())?;
        self.follow(NodeKind::Memset, dst.follows(), move |bindings| {
            let dst = dst.region(bindings).clone();
            let width = dst.bytes / u64::from(element_size);
            if width * u64::from(element_size) != dst.bytes {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("{} bytes cannot be filled with values of {element_size} bytes", dst.bytes),
                ));
            }
            Ok(Operation::Memset(Arc::new(MemsetOp { dst, value, element_size, width, height: 1, pitch: 0 })))
        })
    }

    /// Copies all of `src` to `dst`. Both must have the same length in every call.
    pub fn memcpy<T: Element>(&self, dst: &impl CallMemory<T>, src: &impl CallMemory<T>) -> Result<()> {
        let (to, from) = (dst.slot()?, src.slot()?);
        self.check_own(to.param().into_iter().chain(from.param()))?;
        self.follow(NodeKind::Memcpy, to.follows() | from.follows(), move |bindings| {
            let (dst, src) = (to.region(bindings).clone(), from.region(bindings).clone());
            if dst.bytes != src.bytes {
                let message = format!(
                    "cannot copy {} to {}; both arrays must have the same length",
                    from.described::<T>(bindings),
                    to.described::<T>(bindings)
                );
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
            let bytes = src.bytes;
            Ok(Operation::Memcpy(Arc::new(MemcpyOp::linear(dst, src, bytes))))
        })
    }

    /// Calls a closure on the host.
    pub fn callback(&self, closure: impl FnMut() + Send + 'static) -> Result<()> {
        let callback = CallbackOp::closure(closure);
        self.follow(NodeKind::Callback, 0, move |_| Ok(Operation::Callback(callback.clone())))
    }

    /// Runs `body` once, then again while the value is not 0.
    ///
    /// ```
    /// use gridloom::prelude::*;
    /// use gridloom::demo_kernels;
    ///
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu()?;
    /// let module = device.load_ptx(demo_kernels::SWITCH)?;
    /// // SAFETY: the kernel doubles the integer that it is given the address of.
    /// let double = unsafe { module.kernel::<(PtrMut<i32>,)>("double_it")? };
    /// let grow = Callable::new(&device, move |g, (x,): (Param<i32>,)| {
    ///     g.do_while(&x, |body| body.launch(&double, LaunchConfig::one(), (&x,)))?.max_passes(10)
    /// });
    /// let x = device.buffer_from(&[1])?;
    /// grow.call(&device.stream()?, (&x,))?;
    /// assert_eq!(x.to_vec()?, [1024]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn do_while<R>(
        &self,
        value: &impl CallMemory<i32>,
        body: impl FnOnce(&Sequence) -> Result<R>,
    ) -> Result<Loop> {
        let repeat = self.flow(value, |after, value| after.do_while(value))?;
        self.fill(&repeat.body(), body)?;
        Ok(Loop(repeat))
    }

    /// Runs `body` while the value is not 0, testing before each pass.
    pub fn while_nonzero<R>(
        &self,
        value: &impl CallMemory<i32>,
        body: impl FnOnce(&Sequence) -> Result<R>,
    ) -> Result<Loop> {
        let repeat = self.flow(value, |after, value| after.while_nonzero(value))?;
        self.fill(&repeat.body(), body)?;
        Ok(Loop(repeat))
    }

    /// Runs `body` when the value is not 0.
    pub fn if_nonzero<R>(
        &self,
        value: &impl CallMemory<i32>,
        body: impl FnOnce(&Sequence) -> Result<R>,
    ) -> Result<()> {
        let choice = self.flow(value, |after, value| after.if_nonzero(value))?;
        self.fill(&choice.body(), body)
    }

    /// Runs `then` when the value is not 0, else `otherwise`.
    pub fn if_else_nonzero<R, Q>(
        &self,
        value: &impl CallMemory<i32>,
        then: impl FnOnce(&Sequence) -> Result<R>,
        otherwise: impl FnOnce(&Sequence) -> Result<Q>,
    ) -> Result<()> {
        let choice = self.flow(value, |after, value| after.if_else_nonzero(value))?;
        self.fill(&choice.then_body(), then)?;
        self.fill(&choice.else_body(), otherwise)
    }

    /// Runs the case whose index is the value, or none. `case` is called once for each index.
    pub fn switch_on<R>(
        &self,
        value: &impl CallMemory<i32>,
        cases: usize,
        mut case: impl FnMut(usize, &Sequence) -> Result<R>,
    ) -> Result<()> {
        let choice = self.flow(value, |after, value| after.switch_on(value, cases))?;
        for (number, body) in choice.bodies().iter().enumerate() {
            self.fill(body, |sequence| case(number, sequence))?;
        }
        Ok(())
    }

    /// Runs `body` `passes` times.
    pub fn repeat<R>(&self, passes: u64, body: impl FnOnce(&Sequence) -> Result<R>) -> Result<()> {
        let repeat = self.add(|after| after.repeat(passes))?;
        self.fill(&repeat.body(), body)
    }

    /// Runs sections side by side. Each starts after the operations before it. The next operation
    /// starts after all sections.
    pub fn parallel<R>(&self, sections: impl FnOnce(&Sections<'_>) -> Result<R>) -> Result<()> {
        let start = self.tail.borrow().clone();
        let parallel = Sections { parent: self, start, ends: RefCell::default() };
        sections(&parallel)?;
        let mut ends: SmallVec<[Node; 2]> = SmallVec::new();
        // Operations that the closure added to this sequence itself run beside the sections.
        let beside =
            self.tail.borrow().iter().filter(|node| !parallel.start.contains(node)).cloned().collect();
        let sections: [Vec<Node>; 2] = [parallel.ends.take(), beside];
        for end in sections.into_iter().flatten() {
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        if !ends.is_empty() {
            self.tail.replace(ends);
        }
        Ok(())
    }

    /// Adds the operations of another callable, with parameters of this one.
    pub fn call<S: Specs>(&self, callable: &Callable<S>, args: S) -> Result<()> {
        if self.depth.get() >= MAX_INLINE_DEPTH {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("callables call each other more than {MAX_INLINE_DEPTH} deep; does one call itself?"),
            ));
        }
        let _deeper = Deeper::than(&self.depth);
        callable.inline(self, args)
    }

    /// Names the operation added last, for pictures, errors and profiles.
    pub fn named(&self, name: &str) -> Result<()> {
        match self.tail.borrow().last() {
            Some(node) => node.set_name(name),
            None => Err(Error::new(ErrorKind::InvalidState, "there is no operation to name yet")),
        }
    }

    /// Allocates memory for one value that kernels of this graph pass to each other. From then on
    /// the graph has one executable, whose launches run one after the other.
    #[doc(hidden)]
    pub fn __cell<T: Element>(&self) -> Result<Buffer<T>> {
        self.recorded.borrow_mut().has_cells = true;
        Device::from_backend(self.graph.device().clone()).alloc(1)
    }

    pub(super) fn device_id(&self) -> backend::DeviceId {
        self.graph.device().id()
    }

    /// Refuses parameters of another run of the closure.
    fn check_own(&self, params: impl IntoIterator<Item = ParamId>) -> Result<()> {
        match params.into_iter().find(|param| param.origin != self.origin) {
            None => Ok(()),
            Some(param) => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "parameter {} is not of this run of the closure; use the parameters that the closure was given",
                    param.index
                ),
            )),
        }
    }

    /// Calls `add` at the position after the operation added last.
    fn add<N: AsRef<crate::Node>>(&self, add: impl FnOnce(&After<'_>) -> Result<N>) -> Result<N> {
        let mut tail = self.tail.borrow_mut();
        let nodes: SmallVec<[&Node; 4]> = tail.iter().collect();
        let added = add(&After { graph: &self.graph, nodes: &nodes })?;
        drop(nodes);
        tail.clear();
        tail.push(added.as_ref().0.clone());
        Ok(added)
    }

    /// Adds a node whose operation `make` builds from the arguments of each call.
    fn follow(
        &self,
        kind: NodeKind,
        follows: u64,
        make: impl Fn(&[Binding]) -> Result<Operation> + Send + Sync + 'static,
    ) -> Result<()> {
        let added = make(&self.bindings).and_then(|operation| self.add(|after| after.submit(operation)));
        let node = added.map_err(|error| error.at_node(self.next_label(kind)))?;
        self.depends(&node, follows, 0, RecipeKind::Other(Box::new(make)));
        Ok(())
    }

    /// Records how a node depends on the arguments, if it does.
    fn depends(&self, node: &crate::Node, follows: u64, bytes: u64, what: RecipeKind) {
        if follows != 0 {
            self.recorded.borrow_mut().recipes.push(Recipe { node: node.key(), follows, bytes, what });
        }
    }

    /// Returns the label of the node that is added next, for an error that keeps it from being
    /// added. A sequence only ever adds nodes, so their number is the next one's.
    fn next_label(&self, kind: NodeKind) -> String {
        let label = format!("{}#{}", kind.name(), self.graph.len());
        match self.graph.owner() {
            Some(owner) => format!("{}/{label}", owner.label()),
            None => label,
        }
    }

    /// Adds a conditional that tests `value`. If that is a parameter, the conditional depends on
    /// it.
    fn flow<C: AsRef<crate::Node>>(
        &self,
        value: &impl CallMemory<i32>,
        add: impl FnOnce(&After<'_>, &Tested) -> Result<C>,
    ) -> Result<C> {
        let slot = value.slot()?;
        self.check_own(slot.param())?;
        let tested = Tested(one_integer(slot.region(&self.bindings))?);
        let conditional = self.add(|after| add(after, &tested))?;
        if let MemorySlot::Param(param) = slot {
            self.recorded.borrow_mut().tests.push((conditional.as_ref().0.clone(), param));
        }
        Ok(conditional)
    }

    fn fill<R>(&self, body: &crate::Graph, closure: impl FnOnce(&Sequence) -> Result<R>) -> Result<()> {
        closure(&self.inside(body.0.clone(), SmallVec::new())).map(drop)
    }

    /// Returns a sequence of the same build in `graph`, after `tail`.
    fn inside(&self, graph: Graph, tail: SmallVec<[Node; 2]>) -> Sequence {
        Sequence {
            graph,
            origin: self.origin,
            tail: RefCell::new(tail),
            bindings: self.bindings.clone(),
            recorded: self.recorded.clone(),
            depth: self.depth.clone(),
        }
    }
}

/// Counts a level of callables that call each other, until it is dropped. The closure of a callable
/// may catch a panic of another one and continue.
struct Deeper<'a>(&'a Cell<usize>);

impl<'a> Deeper<'a> {
    fn than(depth: &'a Cell<usize>) -> Self {
        depth.set(depth.get() + 1);
        Deeper(depth)
    }
}

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Sections that run side by side. See [`Sequence::parallel`].
pub struct Sections<'a> {
    parent: &'a Sequence,
    start: SmallVec<[Node; 2]>,
    ends: RefCell<Vec<Node>>,
}

impl Sections<'_> {
    /// Adds one section.
    pub fn section<R>(&self, section: impl FnOnce(&Sequence) -> Result<R>) -> Result<()> {
        let sequence = self.parent.inside(self.parent.graph.clone(), self.start.clone());
        section(&sequence)?;
        self.ends.borrow_mut().extend(sequence.tail.into_inner());
        Ok(())
    }
}
