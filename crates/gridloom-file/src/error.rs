//! The error of reading and writing files.

use std::fmt;

/// A reason why a file cannot be read or written, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

/// The result of reading or writing.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Error(message.into())
    }

    /// Returns the error with the place it comes from in front.
    #[must_use]
    pub fn at(self, place: impl fmt::Display) -> Self {
        Error(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Returns an [`Error`] with a formatted message.
macro_rules! bail {
    ($($message:tt)*) => {
        return Err($crate::Error::new(format!($($message)*)))
    };
}
pub(crate) use bail;
