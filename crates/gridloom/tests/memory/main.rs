//! Buffers, streams, events, copies and fills.

#[path = "../support/mod.rs"]
mod support;

mod buffers;
mod callbacks;
mod copies;
mod events;
mod fills;
mod streams;
