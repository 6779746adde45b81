//! Single arguments whose types are checked at run time.

use std::marker::PhantomData;

use bytemuck::Pod;
use gridloom_core::op::contract::{Integer, ParamKind, ParamType};
use gridloom_core::op::{ArgValue, PointerValue};

use super::parameters::{Ptr, PtrMut};
use crate::buffer::{Element, Memory};
use crate::{Error, ErrorKind, Result};

/// Marks an argument that is a plain value of type `T`.
pub struct PlainArg<T>(PhantomData<fn() -> T>);

/// Marks an argument that is memory of elements `T`.
pub struct MemoryArg<T>(PhantomData<fn() -> T>);

/// A value for one parameter of a kernel whose types are known at run time. The compiler infers
/// `K`, the kind of value: `node.set_arg(3, 0.5f32)`, `node.set_arg(0, &buffer)`.
///
/// # Safety
/// [`typed`](TypedArg::typed) returns a value that [`IntoArg`](super::IntoArg) requires for the
/// parameter's type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel parameter",
    note = "pass a plain value of exactly the declared type, an integer for a `Len`, or `&buffer`, `&slice` or `&alloc` for a pointer"
)]
pub unsafe trait TypedArg<K> {
    /// Returns the argument, or an error if the parameter does not accept it.
    fn typed(self, param: &ParamType) -> Result<ArgValue>;
}

// SAFETY: the types are compared. A length is an integer of the parameter's size.
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

// SAFETY: the element types are compared. Memory is aligned for its elements (`Memory`).
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

/// Converts an integer to the integer type of a length.
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
