//! Progress bars on standard error.

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::Terminal;

/// Columns that a bar takes, with room for large numbers.
const BAR_COLUMNS: usize = 62;

/// Returns a bar that counts to `total`, where standard error is a terminal that can rewrite its
/// lines and has room for one. Elsewhere the bar shows nothing.
pub(crate) fn bar(total: u64, what: &str) -> ProgressBar {
    let terminal = Terminal::stderr();
    if !terminal.rewrites || terminal.columns < BAR_COLUMNS {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total).with_style(
        ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {what}"))
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    crate::interrupt::remember_bar(&bar);
    bar
}
