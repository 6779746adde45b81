//! The way in which conditionals run, as a program or the environment chooses it.

use std::sync::OnceLock;

use gridloom_core::executable::ConditionalMode;
use gridloom_core::{Error, ErrorKind, Result};

/// The environment variable that decides for [`ConditionalMode::Auto`].
const CONDITIONALS_VARIABLE: &str = "GRIDLOOM_CONDITIONALS";

/// Returns the mode that a program asked for. Where it asked for none in particular, the
/// environment decides, which is read once.
pub(crate) fn conditional_mode(wanted: ConditionalMode) -> Result<ConditionalMode> {
    static FOR_AUTO: OnceLock<Result<ConditionalMode>> = OnceLock::new();
    if wanted != ConditionalMode::Auto {
        return Ok(wanted);
    }
    let for_auto = FOR_AUTO.get_or_init(|| {
        let value = std::env::var_os(CONDITIONALS_VARIABLE).unwrap_or_default();
        match &*value.to_string_lossy() {
            "" | "auto" => Ok(ConditionalMode::Auto),
            "native" => Ok(ConditionalMode::Native),
            "hosted" => Ok(ConditionalMode::Hosted),
            other => {
                let message =
                    format!("{CONDITIONALS_VARIABLE} is {other:?}; set it to auto, native or hosted");
                Err(Error::new(ErrorKind::InvalidArgument, message))
            }
        }
    });
    for_auto.clone()
}
