//! Selection of the optimiser for an instantiation.

use std::sync::{Arc, LazyLock, OnceLock};

use gridloom_core::executable::Optimizer;
use gridloom_core::{Error, ErrorKind, Result};
use gridloom_opt::{GraphOptimizer, Optimizations, Optimize};

/// The environment variable that overrides
/// [`InstantiateOptions::optimize`](crate::InstantiateOptions::optimize).
const OPTIMIZE_VARIABLE: &str = "GRIDLOOM_OPTIMIZE";

/// What the environment asks for.
enum Override {
    Some(Optimize),
    /// These optimisations wherever they are possible, worthwhile or not, for tests on devices
    /// where few are: `everything`, or `everything:chains,loops`.
    Everything(Optimizations),
    Wrong(String),
}

/// Returns the optimiser that the environment asks for or, if it says nothing, the caller. The
/// environment is read once.
pub(crate) fn optimizer(wanted: Optimize) -> Result<Option<Arc<dyn Optimizer>>> {
    static OVERRIDE: OnceLock<Option<Override>> = OnceLock::new();
    static AUTOMATIC: LazyLock<Arc<dyn Optimizer>> =
        LazyLock::new(|| Arc::new(GraphOptimizer::automatic(Optimizations::ALL)));
    let given = OVERRIDE.get_or_init(|| {
        let value = std::env::var(OPTIMIZE_VARIABLE).ok().filter(|value| !value.trim().is_empty());
        value.map(|value| match value.trim() {
            "everything" => Override::Everything(Optimizations::ALL),
            other => match other.strip_prefix("everything:").map(str::parse) {
                Some(Ok(Optimize::Now(wanted))) => Override::Everything(wanted),
                Some(Ok(_)) => Override::Wrong(format!(
                    "{other:?} names no passes; write \"everything:\" and the names of passes"
                )),
                Some(Err(message)) => Override::Wrong(message),
                None => other.parse().map_or_else(Override::Wrong, Override::Some),
            },
        })
    });
    let wanted = match given {
        None => wanted,
        Some(Override::Some(wanted)) => *wanted,
        Some(Override::Everything(wanted)) => {
            return Ok(Some(Arc::new(GraphOptimizer::new(*wanted).everything())));
        }
        Some(Override::Wrong(message)) => {
            let message = format!("{OPTIMIZE_VARIABLE}: {message}");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
    };
    Ok(match wanted {
        Optimize::Now(wanted) if wanted.is_empty() => None,
        Optimize::Now(wanted) => Some(Arc::new(GraphOptimizer::new(wanted))),
        _ => Some(AUTOMATIC.clone()),
    })
}
