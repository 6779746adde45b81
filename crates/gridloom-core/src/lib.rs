//! The graph of device work: nodes, edges, conditions, checks, and the traits a device implements.
