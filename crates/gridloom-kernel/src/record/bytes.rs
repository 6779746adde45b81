//! Recording of the bytes of numbers.

use crate::record::arithmetic::bit_or;
use crate::record::convert::cast;
use crate::record::memory::array;
use crate::record::value::{V, get, lit};

macro_rules! integers {
    ($($t:ty, $unsigned:ty, $size:literal;)*) => {$(
        impl V<$t> {
            /// Does what the method of the standard library does.
            pub fn to_le_bytes(self) -> V<[u8; $size]> {
                let bits: V<$unsigned> = cast(self);
                let byte = |index: usize| cast::<u8, $unsigned>(bits.wrapping_shr(lit(8 * index as u32)));
                array(std::array::from_fn::<_, $size, _>(byte))
            }

            /// Does what the method of the standard library does.
            pub fn to_be_bytes(self) -> V<[u8; $size]> {
                self.swap_bytes().to_le_bytes()
            }

            /// Does what the method of the standard library does. Every device is little-endian.
            pub fn to_ne_bytes(self) -> V<[u8; $size]> {
                self.to_le_bytes()
            }

            /// Does what the function of the standard library does.
            pub fn from_le_bytes(bytes: V<[u8; $size]>) -> Self {
                let byte = |index: usize| {
                    let byte: V<$unsigned> = cast::<$unsigned, u8>(get(&bytes.__element(index)));
                    byte.wrapping_shl(lit(8 * index as u32))
                };
                let all = (1..$size).fold(byte(0), |all, index| bit_or(all, byte(index), 0));
                cast(all)
            }

            /// Does what the function of the standard library does.
            pub fn from_be_bytes(bytes: V<[u8; $size]>) -> Self {
                Self::from_le_bytes(bytes).swap_bytes()
            }

            /// Does what the function of the standard library does. Every device is little-endian.
            pub fn from_ne_bytes(bytes: V<[u8; $size]>) -> Self {
                Self::from_le_bytes(bytes)
            }
        }
    )*};
}
integers! {
    u8, u8, 1;
    i8, u8, 1;
    u16, u16, 2;
    i16, u16, 2;
    u32, u32, 4;
    i32, u32, 4;
    u64, u64, 8;
    i64, u64, 8;
    usize, u64, 8;
    isize, u64, 8;
}
