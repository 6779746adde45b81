//! Kernels written in Rust: their types, the form in which they are recorded, and its printing as
//! PTX.
//!
//! Programs use this crate through the `gridloom` crate, whose attribute macros expand to calls of
//! [`record`].
//!
//! A kernel exists twice. On the host it is the function that the user wrote, and the types of this
//! crate are ordinary types. For a device, a second version of the function runs once, when the
//! kernel is loaded. Its values stand for registers and record what is done with them as statements
//! ([`ir`]). The statements are checked, optimised and printed as PTX. The README of this crate
//! argues why a kernel without `unsafe` accesses only its own memory and has no races.
//!
//! | module | subject |
//! |---|---|
//! | [`thread`], [`block`], [`grid`], [`warp`] | the position of a thread, and work that threads do together |
//! | [`math`] | elementary functions, with the same bits on every device |
//! | [`host`] | running kernels as host functions |
//! | [`ir`] | the recorded form: its checks, its optimiser, its printer |
//! | [`record`] | the recorded values that the macros' code computes with |

// Device code of this crate names it as that of programs does.
extern crate self as gridloom;

mod atomic;
pub mod block;
mod condition;
pub mod grid;
pub mod host;
pub mod ir;
#[allow(
    clippy::excessive_precision,
    clippy::manual_clamp,
    reason = "coefficients are written to the digit that rounds right, and `max` and `min` replace a NaN that is put back at the end"
)]
pub mod math;
mod out;
mod own;
mod pairs;
mod parallel;
#[doc(hidden)]
pub mod record;
mod shared;
pub mod thread;
mod view;
pub mod warp;

pub use atomic::{Atomic, AtomicInteger, AtomicNumber, AtomicTwin, Scoped, SharedAtomics, SharedAtomicsTwin};
pub use condition::{SetCondition, SetConditionTwin};
pub use out::{EachMine2d, Out, OutTwin};
pub use own::{Own, OwnTwin};
pub use pairs::{Pairs, PairsTwin};
pub use parallel::{ParallelRange, par};
pub use record::{KernelParam, KernelType};
pub use shared::{EachMine, Phase, PhaseTwin, Shared, SharedTwin, SharedView, SharedViewTwin, Synced};
pub use view::{View2, View2Twin, View3, View3Twin};

/// What the attribute macros expand to, for the device code of this crate.
#[doc(hidden)]
pub mod __kernel {
    pub use crate::record::*;
}
