//! Graphs: what nodes hold and how they are ordered, conditions, allocations, launches, lifetimes and size.

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
mod ready_made;
mod typed_handles;
