//! Reading and writing files: input has a size limit, and output is complete or absent.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::Failure;

/// The most bytes that are read from a text.
pub(crate) const MOST_TEXT: u64 = 256 << 20;

/// Puts the file's name before an error about it.
pub(crate) fn about(path: &Path, error: impl std::fmt::Display) -> Failure {
    format!("{}: {error}", path.display()).into()
}

/// Reads a file, or standard input where the path is `-`. Devices and pipes may have no end, hence
/// `most`.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let outcome = if path.as_os_str() == "-" {
        io::stdin().lock().take(most + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| {
            // A file tells its size; devices and pipes do not.
            if file.metadata()?.len() > most {
                return Err(too_large(most));
            }
            file.take(most + 1).read_to_end(&mut bytes)
        })
    };
    outcome.map_err(|error| about(path, error))?;
    if bytes.len() as u64 > most {
        return Err(about(path, too_large(most)));
    }
    Ok(bytes)
}

fn too_large(most: u64) -> io::Error {
    io::Error::other(format!("larger than {} MiB", most >> 20))
}

/// Reads a text file, or standard input where the path is `-`.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path, MOST_TEXT)?).map_err(|_| about(path, "not a text file (UTF-8)"))
}

/// A file that will be written as a whole: where that fails, what was there before is still there.
/// Opening it finds out whether that is possible, before the work is done that is to be written.
pub(crate) struct Destination {
    path: PathBuf,
    file: File,
    /// The file that takes the place of the one at `path` once it is written. Devices and pipes are
    /// written directly.
    temporary: Option<Temporary>,
}

impl Destination {
    /// Prepares to write a file. Nothing at `path` changes yet.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let fail = |error: io::Error| about(path, error);
        let existing = match OpenOptions::new().write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let (temporary, file) = Temporary::beside(path).map_err(fail)?;
                return Ok(Destination { path: path.to_owned(), file, temporary: Some(temporary) });
            }
            Err(error) => return Err(fail(error)),
        };
        let metadata = existing.metadata().map_err(fail)?;
        // What is not a file of the disk, or only the name of an open file (`/dev/stdout`), cannot
        // be replaced.
        if !metadata.is_file() || path.starts_with("/dev") || path.starts_with("/proc") {
            return Ok(Destination { path: path.to_owned(), file: existing, temporary: None });
        }
        // Links stay links: what they lead to is replaced.
        let target = std::fs::canonicalize(path).map_err(fail)?;
        let (temporary, file) = Temporary::beside(&target).map_err(fail)?;
        file.set_permissions(metadata.permissions()).map_err(fail)?;
        Ok(Destination { path: path.to_owned(), file, temporary: Some(temporary) })
    }

    /// Writes the file as a whole.
    pub(crate) fn write(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.flush());
        written
            .and_then(|()| self.temporary.map_or(Ok(()), Temporary::commit))
            .map_err(|error| about(&self.path, error))
    }

    /// Writes the file as a whole and says so on standard error.
    pub(crate) fn write_and_tell(self, bytes: &[u8]) -> Result<(), Failure> {
        let name = self.path.display().to_string();
        self.write(bytes)?;
        crate::output::note(&format!("wrote {name}"));
        Ok(())
    }

    /// Returns the file as the user named it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file that is replaced in the end, to tell whether two destinations are one.
    fn target(&self) -> Option<&Path> {
        self.temporary.as_ref().map(|temporary| temporary.target.as_path())
    }
}

/// Prepares to write a file if one is asked for.
pub(crate) fn open(path: Option<&Path>) -> Result<Option<Destination>, Failure> {
    path.map(Destination::open).transpose()
}

/// Fails if two files are one: what is written first would be lost.
pub(crate) fn refuse_two_writers<'a>(
    destinations: impl IntoIterator<Item = &'a Destination>,
) -> Result<(), Failure> {
    let mut targets: Vec<&Path> = destinations.into_iter().filter_map(Destination::target).collect();
    targets.sort_unstable();
    match targets.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            Err(about(pair[0], "two results are to be written to this file; give each a file of its own"))
        }
        None => Ok(()),
    }
}

/// A new file in the folder of another. It is removed unless it replaces the other.
struct Temporary {
    path: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl Temporary {
    fn beside(target: &Path) -> io::Result<(Self, File)> {
        let name = target.file_name().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = std::fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
        for attempt in 0..100 {
            let path = folder.join(format!(".gridloom-{}-{attempt}", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    crate::interrupt::remember_file(&path);
                    return Ok((Temporary { path, target: folder.join(name), committed: false }, file));
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn commit(mut self) -> io::Result<()> {
        std::fs::rename(&self.path, &self.target)?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.committed {
            let _ = std::fs::remove_file(&self.path);
        }
        crate::interrupt::forget_file(&self.path);
    }
}
