//! Steps of lowering that every backend needs, written once.
//!
//! A backend turns a checked [`Definition`](crate::Definition) into something that it can launch.
//! What that is differs. These parts do not:
//!
//! | module | subject |
//! |---|---|
//! | `flatten` | a graph with its embedded children as one list of steps, without nodes that only order others |
//! | `locate` | the addresses of regions, and kernel arguments with addresses filled in |
//! | `conditional` | which body of a conditional runs next, decided on the host |
//! | `survey` | the conditionals of a definition, and its allocations |

mod conditional;
mod flatten;
mod locate;
mod survey;

pub use conditional::{Bodies, ConditionalRule};
pub use flatten::{FlatEdge, FlatGraph, FlatStep, Flattener};
pub use locate::{Locate, Location, OnStream, fill_in_addresses, has_all_addresses};
pub use survey::{Allocations, conditionals};
