//! Capture, on every device: what is captured gives the graph and the results of the same program run or built otherwise.

mod allocations;
mod callbacks;
mod conditionals;
mod foreign;
mod programs;
mod random_programs;
mod shape;
mod straight;
