//! `gridloom diff`: how two graphs differ.

use serde_json::json;

use crate::args::Diff;
use crate::output::say;
use crate::{Failure, Reported, show};

/// Runs the subcommand. Different graphs are reported by the status, like a failure.
pub(crate) fn run(options: &Diff) -> Result<(), Failure> {
    let (one, other) = (show::read(&options.one)?, show::read(&options.other)?);
    let found = one.diff(&other);
    if options.json {
        say!("{:#}", json!({ "equal": found.is_empty(), "differences": found }))?;
    } else {
        found.iter().try_for_each(|difference| say!("{difference}"))?;
        if found.is_empty() {
            say!("the graphs are equal")?;
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Box::new(Reported)) }
}
