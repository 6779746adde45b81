//! The types of parameters and elements, and their names in files.

use std::any::TypeId;

use gridloom_core::op::contract::{
    Axis, Bound, Contract, Expr, ParamKind, ParamType, Relation, Signature, Terms,
};
use gridloom_file::DType;
use gridloom_file::document as file;
use half::{bf16, f16};

use crate::kernel::{ConditionHandle, Ptr, PtrMut};
use crate::{Error, ErrorKind, Result};

/// The name of every type without a name of its own.
const OPAQUE: &str = "opaque";

/// The type of values whose Rust type the file does not know. No user has a value of it.
struct Opaque;

/// A type that has a name in files.
struct Scalar {
    name: &'static str,
    /// The kind of element in an npy file.
    code: char,
    size: u32,
    ids: [TypeId; 3],
    value: fn() -> ParamType,
    length: fn(ParamKind) -> ParamType,
    pointer: fn(ParamKind) -> ParamType,
    pointer_mut: fn(ParamKind) -> ParamType,
}

macro_rules! scalars {
    ($($type:ty, $name:literal, $code:literal;)*) => {
        /// Returns all types with names.
        fn scalars() -> impl Iterator<Item = Scalar> {
            [$(Scalar {
                name: $name,
                code: $code,
                size: size_of::<$type>() as u32,
                ids: [TypeId::of::<$type>(), TypeId::of::<Ptr<$type>>(), TypeId::of::<PtrMut<$type>>()],
                value: ParamType::value::<$type>,
                length: ParamType::of::<$type>,
                pointer: ParamType::of::<Ptr<$type>>,
                pointer_mut: ParamType::of::<PtrMut<$type>>,
            }),*].into_iter()
        }
    };
}
scalars! {
    u8, "u8", 'u';
    u16, "u16", 'u';
    u32, "u32", 'u';
    u64, "u64", 'u';
    i8, "i8", 'i';
    i16, "i16", 'i';
    i32, "i32", 'i';
    i64, "i64", 'i';
    usize, "usize", 'u';
    isize, "isize", 'i';
    f32, "f32", 'f';
    f64, "f64", 'f';
    f16, "f16", 'f';
    bf16, "bf16", 'V';
}

fn scalar_of(id: TypeId) -> Option<Scalar> {
    scalars().find(|scalar| scalar.ids.contains(&id))
}

fn scalar_named(name: &str) -> Option<Scalar> {
    scalars().find(|scalar| scalar.name == name)
}

/// Returns the element type of an npy file for a Rust type.
pub(super) fn dtype<T: 'static>() -> DType {
    let size = size_of::<T>() as u32;
    match scalar_of(TypeId::of::<T>()) {
        Some(scalar) => DType { code: scalar.code, size: scalar.size },
        None => DType { code: 'V', size },
    }
}

/// Returns the name of the type of plain values, for the form in which an argument is written.
pub(super) fn value_name(param: &ParamType) -> Option<&'static str> {
    scalar_of(param.type_id).map(|scalar| scalar.name)
}

/// Returns a signature as a file holds it.
pub(super) fn to_file(signature: &Signature) -> Result<file::Signature> {
    let contract = signature.contract();
    let held = contract.held().map(|(index, elements)| Ok((index, expr_to_file(elements)?)));
    Ok(file::Signature {
        params: signature.params().iter().map(param_to_file).collect::<Result<_>>()?,
        holds: held.collect::<Result<_>>()?,
        bounds: contract.bounds().iter().map(bound_to_file).collect::<Result<_>>()?,
        disjoint: contract.disjoint_pairs().to_vec(),
    })
}

fn param_to_file(param: &ParamType) -> Result<file::Param> {
    let name = value_name(param).unwrap_or(OPAQUE).to_owned();
    Ok(match param.kind {
        ParamKind::Value(_) => file::Param::Value(name),
        ParamKind::Length(_) => file::Param::Length(name),
        ParamKind::Pointer { element_size, nullable, written } => {
            let element = file::Element { name, size: element_size, nullable };
            if written { file::Param::PointerMut(element) } else { file::Param::Pointer(element) }
        }
        ParamKind::Condition => file::Param::Condition,
        _ => return Err(no_form("a kind of parameter")),
    })
}

fn bound_to_file(bound: &Bound) -> Result<file::Bound> {
    let (one, other) = (expr_to_file(&bound.number)?, expr_to_file(&bound.other)?);
    match bound.relation {
        Relation::AtMost => Ok(file::Bound::AtMost(one, other)),
        Relation::MultipleOf => Ok(file::Bound::MultipleOf(one, other)),
        _ => Err(no_form("a relation of the contract")),
    }
}

fn expr_to_file(expr: &Expr) -> Result<file::Expr> {
    let two = |two: &Terms| Ok::<_, Error>(Box::new((expr_to_file(&two.0)?, expr_to_file(&two.1)?)));
    let axis = |axis: &Axis| match axis {
        Axis::X => file::Axis::X,
        Axis::Y => file::Axis::Y,
        Axis::Z => file::Axis::Z,
    };
    Ok(match expr {
        Expr::Constant(value) => file::Expr::Constant(*value),
        Expr::Argument(index) => file::Expr::Argument(*index),
        Expr::Length(index) => file::Expr::Length(*index),
        Expr::Grid(along) => file::Expr::Grid(axis(along)),
        Expr::Block(along) => file::Expr::Block(axis(along)),
        Expr::Sum(terms) => file::Expr::Sum(two(terms)?),
        Expr::Difference(terms) => file::Expr::Difference(two(terms)?),
        Expr::Product(terms) => file::Expr::Product(two(terms)?),
        Expr::Max(terms) => file::Expr::Max(two(terms)?),
        _ => return Err(no_form("a number of the contract")),
    })
}

fn no_form(what: &str) -> Error {
    Error::new(ErrorKind::NotSupported, format!("{what} has no form in files"))
}

/// Builds a signature from a file.
pub(super) fn from_file(signature: &file::Signature) -> Result<Signature> {
    let params = signature.params.iter().map(param_from_file).collect::<Result<Vec<_>>>()?;
    let mut contract = Contract::new();
    for (index, elements) in &signature.holds {
        contract = contract.holds(*index, expr_from_file(elements));
    }
    for bound in &signature.bounds {
        contract = match bound {
            file::Bound::AtMost(one, other) => contract.at_most(expr_from_file(one), expr_from_file(other)),
            file::Bound::MultipleOf(one, other) => {
                contract.multiple_of(expr_from_file(one), expr_from_file(other))
            }
        };
    }
    for &(one, other) in &signature.disjoint {
        contract = contract.disjoint(one, other);
    }
    Signature::new(params, contract)
}

fn param_from_file(param: &file::Param) -> Result<ParamType> {
    Ok(match param {
        file::Param::Value(name) if name == OPAQUE => ParamType::value::<Opaque>(),
        file::Param::Value(name) => (scalar_named(name).ok_or_else(|| unknown(name))?.value)(),
        file::Param::Length(name) => {
            let scalar = scalar_named(name).ok_or_else(|| unknown(name))?;
            match (scalar.value)().kind {
                ParamKind::Value(Some(integer)) => (scalar.length)(ParamKind::Length(integer)),
                _ => return Err(unknown(name)),
            }
        }
        file::Param::Pointer(element) => pointer_from_file(element, false)?,
        file::Param::PointerMut(element) => pointer_from_file(element, true)?,
        file::Param::Condition => ParamType::of::<ConditionHandle>(ParamKind::Condition),
    })
}

fn pointer_from_file(element: &file::Element, written: bool) -> Result<ParamType> {
    let &file::Element { ref name, size, nullable } = element;
    let kind = ParamKind::Pointer { element_size: size, nullable, written };
    if size == 0 {
        return Err(Error::new(ErrorKind::InvalidFile, "a pointer to elements of 0 bytes"));
    }
    if name == OPAQUE {
        return Ok(if written {
            ParamType::of::<PtrMut<Opaque>>(kind)
        } else {
            ParamType::of::<Ptr<Opaque>>(kind)
        });
    }
    let scalar = scalar_named(name).filter(|scalar| scalar.size == size).ok_or_else(|| unknown(name))?;
    Ok(if written { (scalar.pointer_mut)(kind) } else { (scalar.pointer)(kind) })
}

fn unknown(name: &str) -> Error {
    let name: String = name.chars().take(40).collect();
    Error::new(
        ErrorKind::InvalidFile,
        format!("the type {name:?} does not exist, or not in this place or size"),
    )
}

fn expr_from_file(expr: &file::Expr) -> Expr {
    let from = expr_from_file;
    let axis = |axis: &file::Axis| match axis {
        file::Axis::X => Axis::X,
        file::Axis::Y => Axis::Y,
        file::Axis::Z => Axis::Z,
    };
    match expr {
        file::Expr::Constant(value) => Expr::Constant(*value),
        file::Expr::Argument(index) => Expr::Argument(*index),
        file::Expr::Length(index) => Expr::Length(*index),
        file::Expr::Grid(along) => Expr::Grid(axis(along)),
        file::Expr::Block(along) => Expr::Block(axis(along)),
        file::Expr::Sum(terms) => from(&terms.0) + from(&terms.1),
        file::Expr::Difference(terms) => from(&terms.0) - from(&terms.1),
        file::Expr::Product(terms) => from(&terms.0) * from(&terms.1),
        file::Expr::Max(terms) => from(&terms.0).max(from(&terms.1)),
    }
}
