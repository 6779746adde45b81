//! The names that most programs with graphs use: `use gridloom::prelude::*;`.

pub use crate::buffer::{Buffer, BufferSlice, Element, Memory};
pub use crate::callable::{Callable, Param, Scalar, Sequence, Shape, per_element, shape_of};
#[cfg(feature = "cuda")]
pub use crate::capture::CaptureMode;
pub use crate::conditional::{If, IfElse, Switch, While};
pub use crate::device::Device;
#[cfg(feature = "cpu")]
pub use crate::device::{CpuOptions, Engine};
pub use crate::kernel::{ConditionHandle, Kernel, Len, Null, Nullable, Ptr, PtrMut};
pub use crate::module::Module;
pub use crate::ops::{AllocNode, GraphOps, Ops};
pub use crate::{
    Capture, Condition, ConditionalMode, Dim3, EdgeKind, Error, ErrorKind, Event, EventOptions, Executable,
    ExecutableNode, Graph, HazardCheck, InstantiateOptions, LaunchConfig, MemoryKind, Node, NodeKind, Result,
    Stream,
};
