//! Selection of the optimiser for an instantiation.

use std::sync::{Arc, OnceLock};

use gridloom_core::executable::Optimizer;
use gridloom_core::{Error, ErrorKind, Result};
use gridloom_opt::{GraphOptimizer, Optimizations};

/// The environment variable that overrides
/// [`InstantiateOptions::optimize`](crate::InstantiateOptions::optimize).
const OPTIMIZE_VARIABLE: &str = "GRIDLOOM_OPTIMIZE";

/// Returns the optimiser that the environment asks for or, if it says nothing, the caller. The
/// environment is read once.
pub(crate) fn optimizer(wanted: Optimizations) -> Result<Option<Arc<dyn Optimizer>>> {
    static OVERRIDE: OnceLock<Option<std::result::Result<Optimizations, String>>> = OnceLock::new();
    let given = OVERRIDE.get_or_init(|| {
        let value = std::env::var(OPTIMIZE_VARIABLE).ok().filter(|value| !value.trim().is_empty());
        value.map(|value| value.parse())
    });
    let wanted = match given {
        None => wanted,
        Some(Ok(wanted)) => *wanted,
        Some(Err(message)) => {
            let message = format!("{OPTIMIZE_VARIABLE}: {message}");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
    };
    Ok((!wanted.is_empty()).then(|| -> Arc<dyn Optimizer> { Arc::new(GraphOptimizer::new(wanted)) }))
}
