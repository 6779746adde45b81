//! The kernels of the examples and demonstrations, as PTX. Their `.cu` sources are small and
//! commented.

/// Heat in a rod: `heat_step`, `set_ends`, `countdown`.
pub const HEAT: &str = include_str!("../kernels/heat.ptx");
/// A square root by bisection: `set_bracket`, `evaluate`, `raise_low`, `lower_high`, `countdown`,
/// `check`, `newton`.
pub const BISECT: &str = include_str!("../kernels/bisect.ptx");
/// Operations on one integer: `negate`, `double_it`, `square`, `choose`.
pub const SWITCH: &str = include_str!("../kernels/switch.ptx");
/// Conjugate gradients for Poisson's equation: `laplacian`, `dot`, `begin`, `curvature`, `advance`,
/// `judge`, `redirect`.
pub const POISSON: &str = include_str!("../kernels/poisson.ptx");
