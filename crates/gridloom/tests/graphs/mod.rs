//! Graphs: nodes, edges, conditions, allocations, launches, lifetimes and size.

mod allocations;
mod conditions;
mod edges;
mod embedding;
mod foreign;
mod handles;
mod hazards;
mod large;
mod launches;
mod lifetimes;
mod nodes;
mod raw_handles;
mod ready_made;
mod typed_handles;
