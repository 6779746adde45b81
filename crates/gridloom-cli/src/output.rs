//! Reading files and writing to standard output, with errors for people.

use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use crate::Failure;

/// The most bytes that are read from a file.
const MOST_BYTES: u64 = 256 << 20;

/// Reads a text file, or standard input where the path is `-`.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let mut bytes = Vec::new();
    let outcome = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
    };
    outcome.map_err(|error| format!("{name}: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("{name}: larger than {} MiB", MOST_BYTES >> 20).into());
    }
    String::from_utf8(bytes).map_err(|_| format!("{name}: this is no text").into())
}

/// Writes to standard output. A reader that has gone away is no failure.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| format!("standard output: {error}").into()),
    }
}
