//! What the closure of a callable writes to: operations one after the other, and how each follows the arguments.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bytemuck::Pod;
use gridloom_core::backend;
use gridloom_core::graph::{ConditionalSpec, NodeKey};
use gridloom_core::memory::Region;
use gridloom_core::op::{
    ArgValue, CallbackOp, ConditionalForm, ConditionalOp, KernelArgs, KernelOp, MemcpyOp, MemsetOp,
    Operation, PointerValue, Test,
};
use smallvec::SmallVec;

use super::params::{Binding, Length, Param, Scalar, Specs};
use super::{Callable, MAX_INLINE_DEPTH};
use crate::buffer::{Buffer, BufferSlice, Element, Memory};
use crate::kernel::{Kernel, Null, Parameter, Parameters, Ptr, PtrMut};
use crate::ops::fill_value;
use crate::{Error, ErrorKind, Graph, LaunchConfig, Node, Result};

/// Makes the operation of a node from the arguments of a call.
type Make = Box<dyn Fn(&[Binding]) -> Result<Operation> + Send + Sync>;

/// A node that follows the arguments.
pub(super) struct Recipe {
    pub(super) node: NodeKey,
    /// A bit for each parameter that it follows.
    pub(super) follows: u64,
    pub(super) make: Make,
}

/// Everything that is found out while the closure runs.
#[derive(Default)]
struct Found {
    recipes: Vec<Recipe>,
    /// Conditionals that test a parameter; their recipes are made last, when their limits are known.
    tests: Vec<(Node, usize)>,
}

/// Operations one after the other: each depends on the one before.
///
/// The closure of a [`Callable`] gets one, and so do the closures of loops, branches and sections inside it.
pub struct Sequence {
    graph: Graph,
    tail: RefCell<SmallVec<[Node; 2]>>,
    bindings: Rc<[Binding]>,
    found: Rc<RefCell<Found>>,
    depth: Rc<Cell<usize>>,
}

/// A loop of a callable.
#[derive(Clone, Debug)]
pub struct Loop(Node);

impl Loop {
    /// Ends the loop after at most this many passes.
    pub fn max_passes(self, passes: u64) -> Result<Self> {
        self.0.set_loop_limit(Some(passes))?;
        Ok(self)
    }
}

/// Runs the closure and returns the graph and what in it follows the arguments.
pub(super) fn build(
    device: &Arc<dyn backend::Device>,
    bindings: &[Binding],
    closure: impl FnOnce(&Sequence) -> Result<()>,
) -> Result<(Graph, Vec<Recipe>)> {
    let sequence = Sequence {
        graph: Graph::new(device),
        tail: RefCell::default(),
        bindings: bindings.into(),
        found: Rc::default(),
        depth: Rc::default(),
    };
    closure(&sequence)?;
    let mut found = sequence.found.take();
    for (node, index) in found.tests {
        let Operation::Conditional(template) = node.operation()? else { continue };
        let make = move |bindings: &[Binding]| {
            let test = Test::Value(bindings[index].region().clone());
            Ok(Operation::Conditional(Arc::new(ConditionalOp { test, ..(*template).clone() })))
        };
        found.recipes.push(Recipe { node: node.key(), follows: 1 << index, make: Box::new(make) });
    }
    Ok((sequence.graph, found.recipes))
}

impl Sequence {
    /// Runs a kernel. `shape` is a [`LaunchConfig`], or follows the arguments ([`per_element`], [`shape_of`]).
    pub fn launch<P: Parameters>(
        &self,
        kernel: &Kernel<P>,
        shape: impl Into<LaunchShape>,
        args: impl CallArguments<P>,
    ) -> Result<()> {
        let (kernel, shape, slots) = (kernel.backend().clone(), shape.into(), args.slots()?);
        let follows = slots.iter().fold(shape.follows(), |follows, slot| follows | slot.follows());
        self.step(follows, move |bindings| {
            let values: SmallVec<[ArgValue; 8]> =
                slots.iter().map(|slot| slot.value(bindings)).collect::<Result<_>>()?;
            let args = KernelArgs::pack(kernel.name(), kernel.params(), values)?;
            let config = shape.config(bindings)?;
            Ok(Operation::Kernel(Arc::new(KernelOp { kernel: kernel.clone(), config, args })))
        })
    }

    /// Fills memory with a value of 1, 2 or 4 bytes.
    pub fn memset<T: Element, V: Pod>(&self, dst: &impl CallMemory<T>, value: V) -> Result<()> {
        let (value, element_size) = fill_value(value)?;
        let dst = dst.slot()?;
        self.step(dst.follows(), move |bindings| {
            let dst = dst.region(bindings).clone();
            let width = dst.bytes / u64::from(element_size);
            if width * u64::from(element_size) != dst.bytes {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!("{} bytes cannot be filled with values of {element_size}", dst.bytes),
                ));
            }
            Ok(Operation::Memset(Arc::new(MemsetOp { dst, value, element_size, width, height: 1, pitch: 0 })))
        })
    }

    /// Copies all of `src` to `dst`, which must be as long in every call.
    pub fn memcpy<T: Element>(&self, dst: &impl CallMemory<T>, src: &impl CallMemory<T>) -> Result<()> {
        let (dst, src) = (dst.slot()?, src.slot()?);
        self.step(dst.follows() | src.follows(), move |bindings| {
            let (dst, src) = (dst.region(bindings).clone(), src.region(bindings).clone());
            if dst.bytes != src.bytes {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "a copy of {} bytes to {}; both arrays must have the same length",
                        src.bytes, dst.bytes
                    ),
                ));
            }
            let bytes = src.bytes;
            Ok(Operation::Memcpy(Arc::new(MemcpyOp::linear(dst, src, bytes))))
        })
    }

    /// Calls a closure on the host.
    pub fn callback(&self, closure: impl FnMut() + Send + 'static) -> Result<()> {
        let callback = CallbackOp::closure(closure);
        self.step(0, move |_| Ok(Operation::Callback(callback.clone())))
    }

    /// Runs `body` once, then again while the value is not 0.
    pub fn do_while<R>(
        &self,
        value: &impl CallMemory<i32>,
        body: impl FnOnce(&Sequence) -> Result<R>,
    ) -> Result<Loop> {
        let (node, bodies) = self.conditional(ConditionalForm::While, value, 1, false)?;
        self.fill(&bodies[0], body)?;
        Ok(Loop(node))
    }

    /// Runs `body` while the value is not 0, testing before each pass.
    pub fn while_nonzero<R>(
        &self,
        value: &impl CallMemory<i32>,
        body: impl FnOnce(&Sequence) -> Result<R>,
    ) -> Result<Loop> {
        let (node, bodies) = self.conditional(ConditionalForm::While, value, 1, true)?;
        self.fill(&bodies[0], body)?;
        Ok(Loop(node))
    }

    /// Runs `body` when the value is not 0.
    pub fn if_nonzero<R>(
        &self,
        value: &impl CallMemory<i32>,
        body: impl FnOnce(&Sequence) -> Result<R>,
    ) -> Result<()> {
        let (_, bodies) = self.conditional(ConditionalForm::If, value, 1, true)?;
        self.fill(&bodies[0], body)
    }

    /// Runs `then` when the value is not 0, else `otherwise`.
    pub fn if_else_nonzero<R, Q>(
        &self,
        value: &impl CallMemory<i32>,
        then: impl FnOnce(&Sequence) -> Result<R>,
        otherwise: impl FnOnce(&Sequence) -> Result<Q>,
    ) -> Result<()> {
        let (_, bodies) = self.conditional(ConditionalForm::IfElse, value, 2, true)?;
        self.fill(&bodies[0], then)?;
        self.fill(&bodies[1], otherwise)
    }

    /// Runs the case whose number is the value, or none. `case` is called once for each.
    pub fn switch_on<R>(
        &self,
        value: &impl CallMemory<i32>,
        cases: usize,
        mut case: impl FnMut(usize, &Sequence) -> Result<R>,
    ) -> Result<()> {
        let (_, bodies) = self.conditional(ConditionalForm::Switch, value, cases, true)?;
        for (number, body) in bodies.iter().enumerate() {
            self.fill(body, |sequence| case(number, sequence))?;
        }
        Ok(())
    }

    /// Runs `body` this many times.
    pub fn repeat<R>(&self, passes: u64, body: impl FnOnce(&Sequence) -> Result<R>) -> Result<()> {
        let spec = ConditionalSpec {
            form: ConditionalForm::While,
            test: Test::Count(passes),
            test_first: true,
            limit: None,
            bodies: 1,
        };
        let node = self.add(|graph, after| graph.add_conditional(after, spec))?;
        self.fill(&node.body_handle(0), body)
    }

    /// Runs sections side by side: each starts after what came before, and what comes next starts after them all.
    pub fn parallel<R>(&self, sections: impl FnOnce(&Sections<'_>) -> Result<R>) -> Result<()> {
        let parallel = Sections { parent: self, start: self.tail.borrow().clone(), ends: RefCell::default() };
        sections(&parallel)?;
        let mut ends = parallel.ends.take();
        if !ends.is_empty() {
            let mut unique: SmallVec<[Node; 2]> = SmallVec::new();
            ends.retain(|node| {
                let new = !unique.contains(node);
                if new {
                    unique.push(node.clone());
                }
                new
            });
            self.tail.replace(unique);
        }
        Ok(())
    }

    /// Does what another callable does, with parameters of this one.
    pub fn call<S: Specs>(&self, callable: &Callable<S>, args: S) -> Result<()> {
        if self.depth.get() >= MAX_INLINE_DEPTH {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("callables call each other more than {MAX_INLINE_DEPTH} deep; does one call itself?"),
            ));
        }
        self.depth.set(self.depth.get() + 1);
        let outcome = callable.inline(self, args);
        self.depth.set(self.depth.get() - 1);
        outcome
    }

    /// Names the operation added last, for pictures, errors and profiles.
    pub fn named(&self, name: &str) -> Result<()> {
        match self.tail.borrow().last() {
            Some(node) => node.set_name(name),
            None => Err(Error::new(ErrorKind::InvalidState, "there is no operation to name yet")),
        }
    }

    pub(super) fn device_id(&self) -> backend::DeviceId {
        self.graph.device().id()
    }

    fn add(&self, add: impl FnOnce(&Graph, &[&Node]) -> Result<Node>) -> Result<Node> {
        let mut tail = self.tail.borrow_mut();
        let node = add(&self.graph, &tail.iter().collect::<SmallVec<[&Node; 4]>>())?;
        tail.clear();
        tail.push(node.clone());
        Ok(node)
    }

    fn step(
        &self,
        follows: u64,
        make: impl Fn(&[Binding]) -> Result<Operation> + Send + Sync + 'static,
    ) -> Result<()> {
        let operation = make(&self.bindings)?;
        let node = self.add(|graph, after| graph.add(after, operation))?;
        if follows != 0 {
            self.found.borrow_mut().recipes.push(Recipe { node: node.key(), follows, make: Box::new(make) });
        }
        Ok(())
    }

    fn conditional(
        &self,
        form: ConditionalForm,
        value: &impl CallMemory<i32>,
        bodies: usize,
        test_first: bool,
    ) -> Result<(Node, Vec<Graph>)> {
        let slot = value.slot()?;
        let region = slot.region(&self.bindings).clone();
        if region.bytes != 4 {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("a conditional tests one 4-byte integer, this memory has {} bytes", region.bytes),
            ));
        }
        let spec = ConditionalSpec { form, test: Test::Value(region), test_first, limit: None, bodies };
        let node = self.add(|graph, after| graph.add_conditional(after, spec))?;
        if let MemorySlot::Param(index) = slot {
            self.found.borrow_mut().tests.push((node.clone(), index));
        }
        let bodies = node.bodies()?;
        Ok((node, bodies))
    }

    fn fill<R>(&self, body: &Graph, closure: impl FnOnce(&Sequence) -> Result<R>) -> Result<()> {
        closure(&self.inside(body.clone(), SmallVec::new())).map(drop)
    }

    /// A sequence in this build, in `graph` and after `tail`.
    fn inside(&self, graph: Graph, tail: SmallVec<[Node; 2]>) -> Sequence {
        Sequence {
            graph,
            tail: RefCell::new(tail),
            bindings: self.bindings.clone(),
            found: self.found.clone(),
            depth: self.depth.clone(),
        }
    }
}

/// Sections that run side by side. See [`Sequence::parallel`].
pub struct Sections<'a> {
    parent: &'a Sequence,
    start: SmallVec<[Node; 2]>,
    ends: RefCell<Vec<Node>>,
}

impl Sections<'_> {
    /// One section.
    pub fn section<R>(&self, section: impl FnOnce(&Sequence) -> Result<R>) -> Result<()> {
        let sequence = self.parent.inside(self.parent.graph.clone(), self.start.clone());
        section(&sequence)?;
        self.ends.borrow_mut().extend(sequence.tail.into_inner());
        Ok(())
    }
}

/// Memory that an operation of a callable names: a parameter, or a buffer that is the same in every call.
pub trait CallMemory<T> {
    /// Which.
    fn slot(&self) -> Result<MemorySlot>;
}

/// Where the memory of an operation comes from.
#[derive(Clone, Debug)]
pub enum MemorySlot {
    /// From this parameter.
    Param(usize),
    /// It is the same in every call.
    Fixed(Region),
}

impl MemorySlot {
    fn follows(&self) -> u64 {
        match self {
            MemorySlot::Param(index) => 1 << index,
            MemorySlot::Fixed(_) => 0,
        }
    }

    fn region<'a>(&'a self, bindings: &'a [Binding]) -> &'a Region {
        match self {
            MemorySlot::Param(index) => bindings[*index].region(),
            MemorySlot::Fixed(region) => region,
        }
    }
}

impl<T: Element> CallMemory<T> for Param<[T]> {
    fn slot(&self) -> Result<MemorySlot> {
        Ok(MemorySlot::Param(self.index))
    }
}
impl<T: Element> CallMemory<T> for Param<T> {
    fn slot(&self) -> Result<MemorySlot> {
        Ok(MemorySlot::Param(self.index))
    }
}
impl<T: Element> CallMemory<T> for Buffer<T> {
    fn slot(&self) -> Result<MemorySlot> {
        self.region().map(MemorySlot::Fixed)
    }
}
impl<T: Element> CallMemory<T> for BufferSlice<T> {
    fn slot(&self) -> Result<MemorySlot> {
        self.region().map(MemorySlot::Fixed)
    }
}

/// Where a kernel argument comes from.
#[derive(Clone, Debug)]
pub enum Slot {
    /// It is the same in every call.
    Fixed(ArgValue),
    /// The address of memory.
    Memory(MemorySlot),
    /// The bytes of a scalar parameter.
    Scalar(usize),
    /// The length of an array parameter, in this many bytes; signed where `true`.
    Length(Length, usize, bool),
}

impl Slot {
    fn follows(&self) -> u64 {
        match self {
            Slot::Fixed(_) => 0,
            Slot::Memory(memory) => memory.follows(),
            Slot::Scalar(index) => 1 << index,
            Slot::Length(length, ..) => 1 << length.index,
        }
    }

    fn value(&self, bindings: &[Binding]) -> Result<ArgValue> {
        Ok(match self {
            Slot::Fixed(value) => value.clone(),
            Slot::Memory(memory) => ArgValue::Pointer(PointerValue::Region(memory.region(bindings).clone())),
            Slot::Scalar(index) => ArgValue::Bytes(SmallVec::from_slice(bindings[*index].value())),
            Slot::Length(length, bytes, signed) => {
                let elements = bindings[length.index].region().bytes / length.element_size as u64;
                let bits = 8 * *bytes as u32 - u32::from(*signed);
                if bits < 64 && elements >> bits != 0 {
                    return Err(Error::new(
                        ErrorKind::InvalidArgument,
                        format!(
                            "an array of {elements} elements, whose length does not fit a parameter of {bits} bits"
                        ),
                    ));
                }
                ArgValue::Bytes(SmallVec::from_slice(&elements.to_le_bytes()[..*bytes]))
            }
        })
    }
}

/// A value for a kernel parameter of type `P` inside a callable.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a kernel parameter of type `{P}` inside a callable",
    note = "give `&param` or `&buffer` for a pointer, `&scalar` or a plain value of the very type, or `param.len()` for a length"
)]
pub trait CallArg<P: Parameter> {
    /// Where the argument comes from.
    fn slot(self) -> Result<Slot>;
}

impl<T: Pod> CallArg<T> for T {
    fn slot(self) -> Result<Slot> {
        Ok(Slot::Fixed(ArgValue::Bytes(SmallVec::from_slice(bytemuck::bytes_of(&self)))))
    }
}
impl<T: Pod> CallArg<T> for &Scalar<T> {
    fn slot(self) -> Result<Slot> {
        Ok(Slot::Scalar(self.index))
    }
}
impl<T: Element, M: CallMemory<T>> CallArg<Ptr<T>> for &M {
    fn slot(self) -> Result<Slot> {
        CallMemory::slot(self).map(Slot::Memory)
    }
}
impl<T: Element, M: CallMemory<T>> CallArg<PtrMut<T>> for &M {
    fn slot(self) -> Result<Slot> {
        CallMemory::slot(self).map(Slot::Memory)
    }
}
impl<T> CallArg<Ptr<T>> for Null {
    fn slot(self) -> Result<Slot> {
        0u64.slot()
    }
}
impl<T> CallArg<PtrMut<T>> for Null {
    fn slot(self) -> Result<Slot> {
        0u64.slot()
    }
}
macro_rules! lengths {
    ($($integer:ty, $signed:literal);*) => {$(
        impl CallArg<$integer> for Length {
            fn slot(self) -> Result<Slot> {
                Ok(Slot::Length(self, size_of::<$integer>(), $signed))
            }
        }
    )*};
}
lengths!(u32, false; i32, true; u64, false; i64, true);

/// Arguments for the parameters `P` of a kernel inside a callable: a tuple of values.
pub trait CallArguments<P: Parameters> {
    /// Where each comes from.
    fn slots(self) -> Result<SmallVec<[Slot; 8]>>;
}

macro_rules! tuples {
    ($($P:ident $V:ident $index:tt),*) => {
        impl<$($P: Parameter, $V: CallArg<$P>),*> CallArguments<($($P,)*)> for ($($V,)*) {
            fn slots(self) -> Result<SmallVec<[Slot; 8]>> {
                Ok([$(self.$index.slot()?),*].into_iter().collect::<SmallVec<[Slot; 8]>>())
            }
        }
    };
}
tuples!();
tuples!(P0 V0 0);
tuples!(P0 V0 0, P1 V1 1);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20, P21 V21 21);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20, P21 V21 21, P22 V22 22);
tuples!(P0 V0 0, P1 V1 1, P2 V2 2, P3 V3 3, P4 V4 4, P5 V5 5, P6 V6 6, P7 V7 7, P8 V8 8, P9 V9 9, P10 V10 10, P11 V11 11, P12 V12 12, P13 V13 13, P14 V14 14, P15 V15 15, P16 V16 16, P17 V17 17, P18 V18 18, P19 V19 19, P20 V20 20, P21 V21 21, P22 V22 22, P23 V23 23);

/// The shape of a launch inside a callable.
#[derive(Clone)]
pub enum LaunchShape {
    /// The same in every call.
    Fixed(LaunchConfig),
    /// One thread for each element of an array parameter.
    PerElement(Length),
    /// Computed from the lengths of parameters.
    Computed(SmallVec<[Length; 4]>, Arc<dyn Fn(&[usize]) -> LaunchConfig + Send + Sync>),
}

/// One thread for each element of an array parameter, in blocks of [`LaunchConfig::LINEAR_BLOCK`].
pub fn per_element<T: Element>(param: &Param<[T]>) -> LaunchShape {
    LaunchShape::PerElement(param.len())
}

/// A launch shape computed from the lengths of array parameters: `shape_of([x.len(), y.len()], |lengths| …)`.
pub fn shape_of(
    lengths: impl IntoIterator<Item = Length>,
    shape: impl Fn(&[usize]) -> LaunchConfig + Send + Sync + 'static,
) -> LaunchShape {
    LaunchShape::Computed(lengths.into_iter().collect(), Arc::new(shape))
}

impl From<LaunchConfig> for LaunchShape {
    fn from(config: LaunchConfig) -> Self {
        LaunchShape::Fixed(config)
    }
}

impl LaunchShape {
    fn follows(&self) -> u64 {
        match self {
            LaunchShape::Fixed(_) => 0,
            LaunchShape::PerElement(length) => 1 << length.index,
            LaunchShape::Computed(lengths, _) => {
                lengths.iter().fold(0, |follows, length| follows | 1 << length.index)
            }
        }
    }

    fn config(&self, bindings: &[Binding]) -> Result<LaunchConfig> {
        let elements =
            |length: &Length| (bindings[length.index].region().bytes / length.element_size as u64) as usize;
        Ok(match self {
            LaunchShape::Fixed(config) => *config,
            LaunchShape::PerElement(length) => LaunchConfig::linear(elements(length)),
            LaunchShape::Computed(lengths, shape) => {
                shape(&lengths.iter().map(elements).collect::<SmallVec<[usize; 4]>>())
            }
        })
    }
}
