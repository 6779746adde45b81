//! Single arguments whose types are checked when they are given.

use std::marker::PhantomData;

use bytemuck::Pod;
use gridloom_core::op::contract::{Integer, ParamKind, ParamType};
use gridloom_core::op::{ArgValue, PointerValue};

use super::parameters::{Ptr, PtrMut};
use crate::buffer::{Element, Memory};
use crate::{Error, ErrorKind, Result};

/// Tells that an argument is a plain value of type `T`.
pub struct PlainArg<T>(PhantomData<fn() -> T>);

/// Tells that an argument is memory of elements `T`.
pub struct MemoryArg<T>(PhantomData<fn() -> T>);

/// A value for one parameter of a kernel whose types are known at run time. `K` says what kind of value it is, and is
/// never written: `node.set_arg(3, 0.5f32)`, `node.set_arg(0, &buffer)`.
///
/// # Safety
/// What [`typed`](TypedArg::typed) gives is a value for the parameter, as [`IntoArg`](super::IntoArg) of its type asks for.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a kernel parameter",
    note = "give a plain value of the very type, an integer for a `Len`, or `&buffer`, `&slice` or `&alloc` for a pointer"
)]
pub unsafe trait TypedArg<K> {
    /// Returns the argument, where the parameter takes it.
    fn typed(self, param: &ParamType) -> Result<ArgValue>;
}

// SAFETY: the types are compared, and a length is an integer of the size that the parameter has.
unsafe impl<T: Pod> TypedArg<PlainArg<T>> for T {
    fn typed(self, param: &ParamType) -> Result<ArgValue> {
        let (given, bytes) = (ParamType::value::<T>(), bytemuck::bytes_of(&self));
        match (param.kind, given.kind) {
            (ParamKind::Value(_) | ParamKind::Length(_), _) if param.type_id == given.type_id => {
                Ok(ArgValue::plain(bytes))
            }
            (ParamKind::Length(length), ParamKind::Value(Some(integer))) => length_of(integer, bytes, length),
            _ => Err(wrong_type(param, given.type_name)),
        }
    }
}

// SAFETY: the types of the elements are compared; memory is aligned for them, by the promise of `Memory`.
unsafe impl<T: Element, M: Memory<T>> TypedArg<MemoryArg<T>> for &M {
    fn typed(self, param: &ParamType) -> Result<ArgValue> {
        let pointers = [ParamType::value::<Ptr<T>>().type_id, ParamType::value::<PtrMut<T>>().type_id];
        match param.kind {
            ParamKind::Pointer { .. } if pointers.contains(&param.type_id) => {
                Ok(ArgValue::Pointer(PointerValue::Region(self.region()?)))
            }
            _ => Err(wrong_type(param, &format!("memory of {}", std::any::type_name::<T>()))),
        }
    }
}

/// An integer as a length.
fn length_of(from: Integer, bytes: &[u8], to: Integer) -> Result<ArgValue> {
    let too_large = || {
        Error::new(
            ErrorKind::InvalidArgument,
            format!("the length does not fit a parameter of {} bytes", to.bytes),
        )
    };
    let value = from.read(bytes).ok_or_else(too_large)?;
    to.write(value).map(|bytes| ArgValue::plain(&bytes)).ok_or_else(too_large)
}

#[cold]
fn wrong_type(param: &ParamType, given: &str) -> Error {
    Error::new(
        ErrorKind::ParameterMismatch,
        format!("the parameter is declared as {}, {given} was given", param.type_name),
    )
}
