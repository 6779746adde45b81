//! `cvt`: between every two types that PTX converts between.
//!
//! | file | conversions |
//! |---|---|
//! | `integer` | integer to integer, and `cvt.pack` |
//! | `float` | integers to and from floating point, one floating-point format to another, rounding to an integral value, `tf32` |
//! | `narrow` | the formats of 8, 6 and 4 bits |

mod float;
mod integer;
mod narrow;

pub use float::{
    Finish, float_to_float, float_to_integer, integer_to_float, pair_to_packed, round_to_integral, to_tf32,
};
pub use integer::{PackType, integer_to_integer, pack_sat};
pub use narrow::{
    Narrow, bf16_to_ue8m0, f32_to_ue8m0, narrow_from, narrow_packed_f16, narrow_pair, narrow_to_f16,
    ue8m0_to_bf16, widen_packed,
};

#[cfg(test)]
mod tests;
