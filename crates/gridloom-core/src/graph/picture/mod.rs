//! Pictures of a graph: DOT, Mermaid and JSON.
