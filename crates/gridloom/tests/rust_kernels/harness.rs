//! Running one program in every way.

use std::fmt::Debug;

use gridloom::__kernel::as_for_gpus;
use gridloom::kernel::{Read, RustParams, Write};
use gridloom::prelude::*;
use gridloom::{Out, host};

use crate::support::{for_each_device, is_cpu};

/// What `load` of a program gives.
pub(crate) type Program<I, O> = Kernel<RustParams<(Read<I>, Write<O>)>>;

const BLOCK: u32 = 16;

/// Runs a program on the host and on every device, and compares what it writes. CPUs run it in the
/// form that is for GPUs too. Numbers are compared as they print: NaN is NaN, and the two zeros
/// differ.
#[track_caller]
pub(crate) fn same<I: Element, O: Element + Debug>(
    name: &str,
    on_host: impl Fn(&[I], Out<O>),
    load: impl Fn(&Device) -> Result<Program<I, O>>,
    input: &[I],
) {
    let mut expected = vec![O::zeroed(); input.len()];
    let blocks = (input.len() as u32).div_ceil(BLOCK);
    host::run(blocks, BLOCK, || on_host(input, Out::new(&mut expected)));
    let compare = |device: &Device, kernel: &Program<I, O>| {
        let (x, out) = (device.buffer_from(input)?, device.buffer_from(&vec![O::zeroed(); input.len()])?);
        let stream = device.stream()?;
        stream.launch(kernel, LaunchConfig::new(blocks, BLOCK), (&x, &out))?;
        stream.synchronize()?;
        let found = out.to_vec()?;
        for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert_eq!(
                format!("{found:?}"),
                format!("{expected:?}"),
                "{name}, element {index} of {}",
                input.len()
            );
        }
        Ok(())
    };
    for_each_device(|device| {
        compare(device, &load(device)?)?;
        if is_cpu(device) { compare(device, &as_for_gpus(|| load(device))?) } else { Ok(()) }
    });
}

/// Defines programs that compute an element from another one, and tests each.
macro_rules! programs {
    ($($name:ident($x:ident: $in:ty) -> $out:ty, $input:expr, { $($body:tt)* })*) => {$(
        #[test]
        fn $name() {
            #[gridloom::kernel]
            fn program(x: &[$in], out: gridloom::Out<$out>) {
                if let Some((i, out)) = out.mine() {
                    let $x = x[i];
                    *out = { $($body)* };
                }
            }
            $crate::harness::same(stringify!($name), |x, out| program(x, out), program::load, &$input);
        }
    )*};
}
pub(crate) use programs;

pub(crate) const I8S: [i8; 9] = [0, 1, -1, 2, 7, -8, 100, i8::MAX, i8::MIN];
pub(crate) const U8S: [u8; 8] = [0, 1, 2, 7, 100, 127, 128, u8::MAX];
pub(crate) const I16S: [i16; 8] = [0, 1, -1, 300, -301, 12345, i16::MAX, i16::MIN];
pub(crate) const U16S: [u16; 6] = [0, 1, 255, 256, 40000, u16::MAX];
pub(crate) const I32S: [i32; 12] = [0, 1, -1, 2, 7, -8, 1000, -1001, 65536, 0x1234_5678, i32::MAX, i32::MIN];
pub(crate) const U32S: [u32; 10] = [0, 1, 2, 31, 32, 255, 65536, 0x1234_5678, 0x8000_0000, u32::MAX];
pub(crate) const I64S: [i64; 9] = [0, 1, -1, 12, -13, 1 << 40, -(1 << 41), i64::MAX, i64::MIN];
pub(crate) const U64S: [u64; 8] = [0, 1, 63, 64, 1 << 33, 0x0123_4567_89ab_cdef, 1 << 63, u64::MAX];
pub(crate) const F32S: [f32; 26] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.499_999_97,
    3.999_999_8,
    127.5,
    -129.0,
    255.5,
    65_535.6,
    8_388_609.0,
    3.0e9,
    -3.0e9,
    1.0e19,
    1.0e38,
    f32::MIN_POSITIVE,
    1.0e-42,
    f32::MAX,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];
pub(crate) const F64S: [f64; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    0.499_999_999_999_999_94,
    1.0e9,
    -3.0e9,
    1.0e19,
    -1.0e19,
    1.0e300,
    5.0e-324,
    f64::MAX,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];
/// Numbers with which nothing overflows.
pub(crate) const SMALL: [i32; 10] = [0, 1, 2, 3, 5, 8, 13, 21, -1, -7];
pub(crate) const COUNTS: [u32; 9] = [0, 1, 2, 3, 4, 7, 8, 15, 31];
