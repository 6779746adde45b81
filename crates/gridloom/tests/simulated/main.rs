//! The tests of graphs, updates and memory once more, on CUDA as a simulated driver has it: late,
//! strict, and on any machine.
//!
//! What a driver leaves undefined is a failure here: work that uses what was freed, unloaded or
//! destroyed, or two threads in calls on one graph. The kernels are those of `support/graph.ptx`,
//! simulated by name. Kernels that the optimiser makes from them are interpreted.

mod interpreter;
#[path = "../../../gridloom-cuda/tests/simulator/mod.rs"]
mod simulator;
mod support;
mod timed;

#[path = "../attack/mod.rs"]
mod attack;
#[path = "../callables/mod.rs"]
mod callables;
#[path = "../graphs/mod.rs"]
mod graphs;
#[path = "../limits/mod.rs"]
mod limits;
#[path = "../memory/mod.rs"]
mod memory;
#[path = "../optimizing.rs"]
mod optimizing;
#[path = "../profiles/mod.rs"]
mod profiles;
#[path = "../safety/mod.rs"]
mod safety;
#[path = "../updates/mod.rs"]
mod updates;
