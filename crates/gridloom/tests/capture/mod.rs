//! Capture, on every device: a captured graph has the structure and the results of the same program
//! run or built in other ways.

mod allocations;
mod callbacks;
mod conditionals;
mod foreign;
mod programs;
mod random_programs;
mod shape;
mod straight;
