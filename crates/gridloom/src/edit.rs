//! Changes to the parameters of nodes, in a definition or in one executable.
//!
//! ```
//! use gridloom::prelude::*;
//!
//! # fn main() -> Result<()> {
//! let device = Device::cpu()?;
//! let buffer = device.alloc::<u32>(4)?;
//! let graph = Graph::new(&device);
//! let fill = graph.memset(&buffer, 1u32)?;
//! let exec = graph.instantiate()?;
//! exec.node(&fill)?.set_memset(&buffer, 7u32)?;
//!
//! let stream = device.stream()?;
//! exec.launch(&stream)?;
//! assert_eq!(buffer.to_vec()?, [7; 4]);
//! graph.instantiate()?.launch(&stream)?;
//! assert_eq!(buffer.to_vec()?, [1; 4]);
//! # Ok(())
//! # }
//! ```

use std::ffi::c_void;
use std::sync::Arc;

use bytemuck::Pod;
use gridloom_core::op::contract::param_type;
use gridloom_core::op::{
    CallbackOp, ConditionalOp, KernelArgs, Launch, MemcpyOp, MemsetOp, NodeKind, Operation, RawCallback,
    RawData, Test,
};

use crate::buffer::{CopySource, Element, Memory};
use crate::kernel::{Arg, Arguments, Kernel, Parameters, TypedArg};
use crate::ops::{copy_operation, fill_operation, kernel_launch, one_value};
use crate::{Error, ErrorKind, Event, ExecutableNode, LaunchConfig, Node, Result};

/// The operations that nodes of definitions and nodes of executables have in common.
trait Edit {
    fn current(&self) -> Result<Operation>;

    /// Replaces the node's operation by one of the same kind.
    fn replace(&self, operation: Operation) -> Result<()>;

    /// Returns the name of the node, for errors.
    fn label(&self) -> String;

    fn refusal(&self, message: String) -> Error {
        Error::new(ErrorKind::InvalidArgument, message).at_node(self.label())
    }

    fn current_kernel(&self) -> Result<Launch> {
        match self.current()? {
            Operation::Kernel(kernel) => Ok(kernel),
            other => Err(self.refusal(format!("a {} node launches no kernel", other.kind().name()))),
        }
    }

    fn replace_conditional(&self, change: impl FnOnce(ConditionalOp) -> ConditionalOp) -> Result<()> {
        match self.current()? {
            Operation::Conditional(current) => {
                self.replace(Operation::Conditional(Arc::new(change((*current).clone()))))
            }
            other => Err(self.refusal(format!("a {} node is not a conditional", other.kind().name()))),
        }
    }
}

impl Edit for Node {
    fn current(&self) -> Result<Operation> {
        self.operation()
    }

    fn label(&self) -> String {
        Node::label(self)
    }

    fn replace(&self, operation: Operation) -> Result<()> {
        self.0.set_operation(operation)
    }
}

impl Edit for ExecutableNode<'_> {
    fn current(&self) -> Result<Operation> {
        Ok(self.operation())
    }

    fn label(&self) -> String {
        ExecutableNode::label(self)
    }

    fn replace(&self, operation: Operation) -> Result<()> {
        self.0.set_operation(operation)
    }
}

/// The setters that nodes of definitions and nodes of executables share.
macro_rules! setters {
    ($node:ty) => {
        impl $node {
            /// Replaces the node's operation by one of the same kind. On an error nothing changes.
            /// The other setters build an operation and pass it to this one.
            pub fn set_operation(&self, operation: Operation) -> Result<()> {
                self.replace(operation)
            }

            /// Gives the node another kernel with its arguments. The launch shape stays the same.
            pub fn set_kernel<P: Parameters>(
                &self,
                kernel: &Kernel<P>,
                args: impl Arguments<P>,
            ) -> Result<()> {
                let config = *self.current_kernel()?.config();
                self.replace(Operation::Kernel(kernel_launch(kernel, config, args)?))
            }

            /// Gives the kernel another launch shape and attributes.
            pub fn set_config(&self, config: impl Into<LaunchConfig>) -> Result<()> {
                let current = self.current_kernel()?;
                self.replace(Operation::Kernel(Launch::new(current.with_config(config.into()))))
            }

            /// Replaces every use of the memory `old` by this node by the same element of `new`.
            /// Returns the number of uses: operands of copies and fills, the value that a
            /// conditional tests, and addresses in kernel arguments, also inside structures.
            ///
            /// # Safety
            /// As for [`Graph::replace_memory`](crate::Graph::replace_memory).
            pub unsafe fn replace_memory<T: Element>(
                &self,
                old: &impl Memory<T>,
                new: &impl Memory<T>,
            ) -> Result<usize> {
                // SAFETY: the caller makes the same promise.
                match unsafe { self.current()?.with_memory_replaced(&old.region()?, &new.region()?) }? {
                    Some((operation, uses)) => self.replace(operation).map(|()| uses),
                    None => Ok(0),
                }
            }

            /// Changes the operands of a one-dimensional copy.
            pub fn set_memcpy<T: Element>(
                &self,
                dst: &impl Memory<T>,
                src: &(impl CopySource<T> + ?Sized),
            ) -> Result<()> {
                self.replace(copy_operation(dst, src)?)
            }

            /// Changes the operands and extents of a copy, in their most general form.
            pub fn set_memcpy_op(&self, operation: MemcpyOp) -> Result<()> {
                self.replace(Operation::Memcpy(Arc::new(operation)))
            }

            /// Changes the destination and value of a one-dimensional fill.
            pub fn set_memset<T: Element, V: Pod>(&self, dst: &impl Memory<T>, value: V) -> Result<()> {
                self.replace(fill_operation(dst, value)?)
            }

            /// Changes the destination, value and extents of a fill, in their most general form.
            pub fn set_memset_op(&self, operation: MemsetOp) -> Result<()> {
                self.replace(Operation::Memset(Arc::new(operation)))
            }

            /// Changes the closure of a callback node.
            pub fn set_callback(&self, closure: impl FnMut() + Send + 'static) -> Result<()> {
                self.replace(Operation::Callback(CallbackOp::closure(closure)))
            }

            /// Gives a callback node another closure, which is called with a copy of host memory.
            pub fn set_callback_with<T: Element>(
                &self,
                memory: &impl Memory<T>,
                closure: impl FnMut(&[T]) + Send + 'static,
            ) -> Result<()> {
                self.replace(Operation::Callback(crate::ops::reading_callback(memory, closure)?))
            }

            /// Gives a callback node a C function. It is called with a pointer to a copy of
            /// `bytes`, which it must not write to and which need not be aligned.
            ///
            /// # Safety
            /// The function may be called from any thread with such a pointer, any number of times.
            pub unsafe fn set_callback_raw(
                &self,
                function: unsafe extern "C" fn(*mut c_void),
                bytes: &[u8],
            ) -> Result<()> {
                // SAFETY: the caller promised that the function may be called with a pointer to
                // these bytes.
                let callback = unsafe { RawCallback::new(function, RawData::Bytes(bytes.into())) };
                self.replace(Operation::Callback(CallbackOp::Raw(callback)))
            }

            /// Changes the memory that a conditional tests. The conditional must test a value in
            /// device memory.
            pub fn set_tested(&self, value: &impl Memory<i32>) -> Result<()> {
                let test = Test::Value(one_value(value)?);
                self.replace_conditional(|current| ConditionalOp { test, ..current })
            }

            /// Changes the number of passes of a loop that repeats its body a fixed number of
            /// times.
            pub fn set_passes(&self, passes: u64) -> Result<()> {
                self.replace_conditional(|current| ConditionalOp { test: Test::Count(passes), ..current })
            }

            /// Changes the event that the node records or waits for.
            pub fn set_event(&self, event: &Event) -> Result<()> {
                let event = event.core.backend().clone();
                match self.current()? {
                    Operation::EventRecord(_) => self.replace(Operation::EventRecord(event)),
                    Operation::EventWait(_) => self.replace(Operation::EventWait(event)),
                    other => Err(self.refusal(format!("a {} node has no event", other.kind().name()))),
                }
            }
        }
    };
}
setters!(Node);
setters!(ExecutableNode<'_>);

impl Node {
    /// Bounds the passes of a loop, or removes the bound.
    pub fn set_max_passes(&self, max_passes: Option<u64>) -> Result<()> {
        self.0.set_max_passes(max_passes)
    }

    /// Changes all arguments of the node's kernel. `kernel` must be the kernel that the node
    /// launches.
    pub fn set_args<P: Parameters>(&self, kernel: &Kernel<P>, args: impl Arguments<P>) -> Result<()> {
        let current = self.current_kernel()?;
        if !Arc::ptr_eq(current.kernel(), kernel.backend()) {
            return Err(self.refusal(format!(
                "the node launches {}, not {}; use set_kernel to launch another kernel",
                current.kernel().name(),
                kernel.name()
            )));
        }
        self.replace(Operation::Kernel(kernel_launch(kernel, *current.config(), args)?))
    }

    /// Changes one argument of the node's kernel, by position. The value is a plain value of
    /// exactly the declared type, memory of the declared elements, or any integer that fits for a
    /// [`Len`](crate::Len). The kernel's contract is checked.
    ///
    /// Returns an error if the kernel was launched without types, as an
    /// [`UntypedKernel`](crate::kernel::UntypedKernel) or by `launch_unchecked`.
    pub fn set_arg<K>(&self, index: usize, value: impl TypedArg<K>) -> Result<()> {
        let current = self.current_kernel()?;
        let param = param_type(&**current.kernel(), number(index));
        let value =
            param.and_then(|param| value.typed(param)).map_err(|error| error.at_node(self.label()))?;
        // SAFETY: the value has the parameter's type (`TypedArg`). Whoever looked the kernel up
        // promised the rest for as long as its contract holds (`Module::kernel`). The contract is
        // checked before the operation is replaced.
        unsafe { self.edit_args(|args, kernel| args.set_whole(kernel, index, value)) }
    }

    /// Changes one argument of the node's kernel, by position. Its size is checked, and the
    /// kernel's contract if it has one.
    ///
    /// # Safety
    /// The value is what the kernel expects at this position. With it, in any launch shape, the
    /// kernel stays within the memory that its arguments point to. Memory whose address is passed
    /// as a plain value exists for as long as the operation exists or is in flight.
    pub unsafe fn set_arg_unchecked(&self, index: usize, value: Arg) -> Result<()> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.edit_args(|args, kernel| args.set_whole(kernel, index, value.0)) }
    }

    /// Changes a part of one argument of the node's kernel: the bytes from `offset` on, for example
    /// an address inside a structure.
    ///
    /// # Safety
    /// As for [`set_arg_unchecked`](Node::set_arg_unchecked).
    pub unsafe fn set_arg_part(&self, index: usize, offset: usize, value: Arg) -> Result<()> {
        // SAFETY: the caller makes the same promise.
        unsafe { self.edit_args(|args, kernel| args.set(kernel, index, offset, value.0)) }
    }

    /// Replaces the node's launch by one with the arguments that `edit` produces. `edit` receives
    /// the current arguments and the kernel's name.
    ///
    /// # Safety
    /// As for [`set_arg_unchecked`](Node::set_arg_unchecked).
    unsafe fn edit_args(&self, edit: impl FnOnce(&mut KernelArgs, &str) -> Result<()>) -> Result<()> {
        let current = self.current_kernel()?;
        let mut args = current.args().clone();
        edit(&mut args, current.kernel().name())?;
        // SAFETY: the caller promises it for the new value. The other arguments come from whoever
        // made the launch.
        let launch = unsafe { current.with_args(args) };
        self.replace(Operation::Kernel(Launch::new(launch)))
    }
}

impl ExecutableNode<'_> {
    /// Bounds the passes of a loop, or removes the bound.
    pub fn set_max_passes(&self, max_passes: Option<u64>) -> Result<()> {
        if !matches!(self.current()?.kind(), NodeKind::While) {
            return Err(self.refusal("the node is not a loop, so its passes cannot be bounded".into()));
        }
        self.replace_conditional(|current| ConditionalOp { max_passes, ..current })
    }

    /// Changes all arguments of the node's kernel. `kernel` must be the kernel that the node
    /// launches.
    #[inline]
    pub fn set_args<P: Parameters>(&self, kernel: &Kernel<P>, args: impl Arguments<P>) -> Result<()> {
        self.0.executable().change(|changes| {
            // SAFETY: the arguments have the types that the kernel was looked up with. Whoever
            // looked it up promised that it stays within what such arguments point to, as long as
            // its contract holds (`Module::kernel`). The contract is checked there.
            unsafe { changes.arguments(self.key(), kernel.backend(), |writer| args.write(writer)) }
        })
    }

    /// Changes one argument of the node's kernel, by position. The value is a plain value of
    /// exactly the declared type, memory of the declared elements, or any integer that fits for a
    /// [`Len`](crate::Len). The kernel's contract is checked.
    ///
    /// ```
    /// use gridloom::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// # let device = Device::cpu()?;
    /// # let module = device.load_ptx(gridloom::demo_kernels::HEAT)?;
    /// // SAFETY: heat_step reads `n` floats from its second argument and writes `n` to its first.
    /// let step = unsafe { module.kernel::<(PtrMut<f32>, Ptr<f32>, Len<u32>, f32)>("heat_step")? };
    /// let (out, x) = (device.alloc::<f32>(8)?, device.buffer_from(&[1.0f32; 8])?);
    /// let graph = Graph::new(&device);
    /// let node = graph.launch(&step, LaunchConfig::linear(8), (&out, &x, 8, 0.4))?;
    /// let exec = graph.instantiate()?;
    /// let node = exec.node(&node)?;
    ///
    /// node.set_arg(3, 0.25f32)?;
    /// node.set_arg(1, &device.buffer_from(&[2.0f32; 8])?)?;
    /// assert_eq!(node.set_arg(3, 1u32).unwrap_err().kind(), ErrorKind::ParameterMismatch);
    /// assert_eq!(node.set_arg(2, 9).unwrap_err().kind(), ErrorKind::ContractViolation);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Returns an error if the kernel was launched without types, as an
    /// [`UntypedKernel`](crate::kernel::UntypedKernel) or by `launch_unchecked`.
    #[inline]
    pub fn set_arg<K>(&self, index: usize, value: impl TypedArg<K>) -> Result<()> {
        self.0.executable().change(|changes| {
            // SAFETY: the value has the parameter's type (`TypedArg`).
            unsafe { changes.typed_argument(self.key(), number(index), |param| value.typed(param)) }
        })
    }

    /// Changes one argument of the node's kernel, by position. Its size is checked, and the
    /// kernel's contract if it has one.
    ///
    /// # Safety
    /// As for [`Node::set_arg_unchecked`].
    #[inline]
    pub unsafe fn set_arg_unchecked(&self, index: usize, value: Arg) -> Result<()> {
        // SAFETY: the caller makes the same promise.
        self.0.executable().change(|changes| unsafe { changes.argument(self.key(), number(index), &value.0) })
    }

    /// Changes a part of one argument of the node's kernel: the bytes from `offset` on, for example
    /// an address inside a structure.
    ///
    /// # Safety
    /// As for [`Node::set_arg_unchecked`].
    pub unsafe fn set_arg_part(&self, index: usize, offset: usize, value: Arg) -> Result<()> {
        self.0.executable().change(|changes| {
            // SAFETY: the caller makes the same promise.
            unsafe { changes.argument_part(self.key(), number(index), offset, &value.0) }
        })
    }
}

/// Converts the position of a parameter. A position beyond `u32::MAX` saturates; no kernel has so
/// many parameters.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
