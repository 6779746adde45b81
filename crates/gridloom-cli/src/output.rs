//! Output to standard output and standard error. Nothing here panics if a stream is closed or full.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Failure;

/// Prints a line to standard output.
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::output::write(&format!("{}\n", format_args!($($arg)*)))
    };
}
pub(crate) use say;

/// The failure that the reader of standard output has gone away, as in `gridloom … | head -1`. The
/// command ends quietly.
#[derive(Debug)]
pub(crate) struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for Closed {}

/// The failure that standard output cannot be written, for example because the disk is full. The
/// command ends.
#[derive(Debug)]
pub(crate) struct Unwritable(io::Error);

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard output: {}", self.0)
    }
}

impl std::error::Error for Unwritable {}

/// Whether the command goes on when nobody reads standard output any more.
static OUTLIVES_READER: AtomicBool = AtomicBool::new(false);

/// Makes the command continue, without printing, when nobody reads standard output any more.
/// Commands that write files after they have printed call it.
pub(crate) fn outlive_reader() {
    OUTLIVES_READER.store(true, Ordering::Relaxed);
}

/// Writes to standard output.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    match write_bytes(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe && OUTLIVES_READER.load(Ordering::Relaxed) => {
            Ok(())
        }
        outcome => outcome.map_err(failed),
    }
}

fn write_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

/// Decides what to do about a failed write to standard output.
pub(crate) fn failed(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Box::new(Closed),
        _ => Box::new(Unwritable(error)),
    }
}

/// The first failure to write what kernels printed.
static PRINT_FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Writes what a kernel printed. A failure is reported by [`finish`], since a kernel cannot be
/// told.
pub(crate) fn write_printed(bytes: &[u8]) {
    if let Err(error) = write_bytes(bytes) {
        PRINT_FAILURE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
    }
}

/// Fails where something that a kernel printed could not be written.
pub(crate) fn finish() -> Result<(), Failure> {
    match PRINT_FAILURE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take() {
        Some(error) => Err(failed(error)),
        None => Ok(()),
    }
}

/// Writes an error to standard error.
pub(crate) fn complain(message: &str) {
    note(&format!("error: {message}"));
}

/// Writes a line to standard error. Where that is closed or full, nobody can be told.
pub(crate) fn note(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain(message));
}

/// Returns the text without characters that could drive a terminal: file names and files may hold
/// any.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_told_from_other_failures() {
        assert!(failed(ErrorKind::BrokenPipe.into()).is::<Closed>());
        assert!(failed(ErrorKind::StorageFull.into()).to_string().starts_with("standard output: "));
    }

    #[test]
    fn messages_cannot_drive_a_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\n\tc\r"), "a\u{fffd}[31mb\n\tc\u{fffd}");
    }
}
