//! The CPU device of Gridloom: memory, streams, a PTX interpreter and a replay plan for graphs.

pub mod interp;
#[doc(hidden)]
pub mod numeric;
