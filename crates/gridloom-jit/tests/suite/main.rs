//! All tests of this crate in one program, because linking takes most of the build time.

mod case;

/// Random numbers, as the tests of `gridloom` have them: its generator of programs is used here
/// too.
mod support {
    pub(crate) use super::random_numbers::Random;
}

#[path = "../../../gridloom/tests/support/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use more of it")]
mod random_numbers;

mod both;
mod corpus;
mod divergence;
mod elementary;
mod granted;
mod hostile;
mod idle_threads;
mod integers;
mod lane_offsets;
mod nans;
mod narrow;
mod random;
mod ranges;
mod records;
mod scattered;
mod shared_init;
mod short_floats;
mod unrolled;
mod windows;
