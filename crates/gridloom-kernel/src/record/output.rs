//! Recording of output: `println!` as a call of `vprintf`.

use crate::ir::{Effect, Operand, Stmt, Ty};
use crate::record::convert::convert;
use crate::record::recorder::with;
use crate::record::value::{Scalar, V};

/// A value to print.
pub struct Printed {
    ty: Ty,
    value: Operand,
}

/// Takes a value to print.
pub fn printed<T: Scalar>(value: V<T>) -> Printed {
    with(|r| Printed { ty: T::TY, value: value.operand(r) })
}

/// Prints texts with a value between each two of them.
///
/// Floating-point numbers are printed with as many digits as tell them apart. Boolean values are 0
/// and 1.
pub fn print(texts: &[&str], values: Vec<Printed>) {
    with(|r| {
        let (mut format, mut fields, mut size) = (String::new(), Vec::new(), 0usize);
        let mut values = values.into_iter();
        for text in texts {
            format.push_str(&text.replace('%', "%%"));
            let Some(Printed { ty, value }) = values.next() else { continue };
            let (conversion, wide) = match ty {
                Ty::F16 | Ty::Bf16 | Ty::F32 => ("%.9g", Ty::F64),
                Ty::F64 => ("%.17g", Ty::F64),
                Ty::U64 => ("%llu", Ty::U64),
                Ty::I64 => ("%lld", Ty::I64),
                ty if ty.is_signed() => ("%d", Ty::I32),
                _ => ("%u", Ty::U32),
            };
            format.push_str(conversion);
            let value = convert(r, ty, wide, value);
            let bytes = wide.bytes() as usize;
            size = size.next_multiple_of(bytes);
            fields.push((size, wide, value));
            size += bytes;
        }
        let arguments = r.local(size.max(8), 8);
        for (offset, ty, value) in fields {
            let place = Operand::Mem(arguments.plus(offset));
            r.act("st.local", ty.memory_suffix(), None, &[place, value], Effect::Store);
        }
        let text = r.constant(1, format.into_bytes().into_iter().chain([0]).collect());
        r.push(Stmt::Print { text, arguments });
    });
}
