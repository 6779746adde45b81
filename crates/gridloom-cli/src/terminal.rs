//! The abilities of the terminal.

use std::ffi::OsStr;
use std::io::IsTerminal;

/// The columns that are assumed where nobody says how wide the terminal is.
const USUAL_COLUMNS: usize = 80;
/// The rows that are assumed likewise.
const USUAL_ROWS: usize = 24;

/// The terminal that output goes to, if it goes to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// Its width.
    pub(crate) columns: usize,
    /// Its height.
    pub(crate) rows: usize,
    /// Whether it shows colours, and its user wants them.
    pub(crate) colour: bool,
    /// Whether lines that were written can be written again, as a progress bar does.
    pub(crate) rewrites: bool,
}

impl Terminal {
    /// Returns what standard output is.
    pub(crate) fn stdout() -> Self {
        Self::of(std::io::stdout().is_terminal(), &console::Term::stdout())
    }

    /// Returns what standard error is.
    pub(crate) fn stderr() -> Self {
        Self::of(std::io::stderr().is_terminal(), &console::Term::stderr())
    }

    fn of(is_terminal: bool, term: &console::Term) -> Self {
        let size = if is_terminal { term.size_checked() } else { None };
        Self::new(
            is_terminal,
            size.map(|(rows, columns)| (rows.into(), columns.into())),
            std::env::var_os("TERM").as_deref(),
            std::env::var_os("NO_COLOR").as_deref(),
        )
    }

    /// Describes a terminal. With `TERM=dumb` nothing is rewritten and there are no colours. There
    /// are none either if `NO_COLOR` is set and not empty.
    fn new(
        is_terminal: bool,
        size: Option<(usize, usize)>,
        term: Option<&OsStr>,
        no_color: Option<&OsStr>,
    ) -> Self {
        let rewrites = is_terminal && term.is_none_or(|term| term != "dumb");
        Terminal {
            columns: size.map(|(_, columns)| columns).filter(|&columns| columns > 0).unwrap_or(USUAL_COLUMNS),
            rows: size.map(|(rows, _)| rows).filter(|&rows| rows > 0).unwrap_or(USUAL_ROWS),
            colour: rewrites && no_color.is_none_or(OsStr::is_empty),
            rewrites,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(term: &str, no_color: Option<&str>) -> Terminal {
        Terminal::new(true, Some((30, 40)), Some(OsStr::new(term)), no_color.map(OsStr::new))
    }

    #[test]
    fn a_dumb_terminal_has_no_colours_and_rewrites_nothing() {
        let dumb = Terminal { columns: 40, rows: 30, colour: false, rewrites: false };
        assert_eq!(terminal("dumb", None), dumb);
    }

    #[test]
    fn no_color_switches_colours_off_unless_it_is_empty() {
        assert!(!terminal("xterm", Some("1")).colour);
        assert!(terminal("xterm", Some("1")).rewrites);
        assert!(terminal("xterm", Some("")).colour);
    }

    #[test]
    fn what_is_no_terminal_is_as_wide_as_usual() {
        let file = Terminal::new(false, None, Some(OsStr::new("xterm")), None);
        assert_eq!(file, Terminal { columns: 80, rows: 24, colour: false, rewrites: false });
        assert_eq!(Terminal::new(true, Some((0, 0)), None, None).columns, 80);
    }
}
