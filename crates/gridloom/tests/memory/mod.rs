//! Buffers, streams, events, copies and fills.

mod alignment;
mod buffers;
mod callbacks;
mod copies;
mod events;
mod fills;
mod graph_memory;
mod streams;
