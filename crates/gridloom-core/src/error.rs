//! The one error type: a stable kind for programs and a message for people.

use std::fmt;
use std::sync::Arc;

/// The result of every fallible operation in Gridloom.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error, for programs to match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value that the operation cannot accept: a zero length, a range past the end, a dimension
    /// of 0.
    InvalidArgument,
    /// Arguments that do not fit the kernel's parameters in number, size or type.
    ParameterMismatch,
    /// Arguments or a launch shape that break the contract of a kernel: memory shorter than a
    /// length says, null where memory is needed, a number past its bound.
    ContractViolation,
    /// A handle to something that was deleted or closed.
    InvalidHandle,
    /// A node, condition or allocation that belongs to another graph, or is not visible from this
    /// one.
    WrongGraph,
    /// An object of another device.
    WrongDevice,
    /// An edge that would close a cycle.
    Cycle,
    /// A use that is not ordered after its allocation, or a free that is not ordered after a use.
    Unordered,
    /// An operation that the current state forbids, such as a launch with outstanding allocations.
    InvalidState,
    /// Two graphs that must have the same topology but differ.
    TopologyMismatch,
    /// A name that does not exist: a kernel, a module variable, a device.
    NotFound,
    /// Text or binary code that could not be loaded.
    InvalidModule,
    /// Something that this device, driver or build cannot do.
    NotSupported,
    /// Memory or another countable resource of the device ran out.
    OutOfMemory,
    /// A kernel trapped, failed an assertion, accessed memory it must not or exceeded its step
    /// limit.
    KernelFault,
    /// A launch was cancelled before it ended.
    Cancelled,
    /// A launch ran more nodes than the device allows.
    LimitExceeded,
    /// A wait ended before its goal was reached. The awaited work continues.
    Timeout,
    /// A host callback panicked.
    CallbackPanicked,
    /// No driver, or one that is too old.
    DriverUnavailable,
    /// The driver refused a call for a reason without a kind of its own.
    Driver,
    /// The device context is lost. Every later call on it fails.
    DeviceLost,
    /// Reading or writing a file failed.
    Io,
    /// A saved graph that is damaged, inconsistent, too large or of another version.
    InvalidFile,
}

/// A failed driver call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverFailure {
    /// The entry point, for example `cuGraphInstantiateWithParams`.
    pub call: String,
    /// The driver's name of the error code, for example `CUDA_ERROR_INVALID_VALUE`.
    pub name: String,
    /// The error code.
    pub code: u32,
}

impl DriverFailure {
    /// Describes a call that failed with this code, whose name is `name`.
    pub fn new(call: impl Into<String>, name: impl Into<String>, code: u32) -> Self {
        DriverFailure { call: call.into(), name: name.into(), code }
    }
}

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    node: Option<String>,
    driver: Option<DriverFailure>,
    log: Option<String>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Any failure of Gridloom.
///
/// `Display` says what is wrong, at which node, and what to do. [`kind`](Error::kind) is for
/// programs.
///
/// ```
/// use gridloom_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::InvalidArgument, "the length is 0").at_node("alloc#0");
/// assert_eq!(error.to_string(), "alloc#0: the length is 0");
/// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

impl Error {
    /// Creates an error of this kind with a message for people.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            node: None,
            driver: None,
            log: None,
            source: None,
        }))
    }

    /// Names the node that the error comes from. If a node is already named, that name stays.
    #[must_use]
    pub fn at_node(mut self, name: impl Into<String>) -> Self {
        self.0.node.get_or_insert_with(|| name.into());
        self
    }

    /// Adds the driver call that failed.
    #[must_use]
    pub fn with_driver(mut self, failure: DriverFailure) -> Self {
        self.0.driver = Some(failure);
        self
    }

    /// Adds the log of a compiler or driver. An empty log changes nothing.
    #[must_use]
    pub fn with_log(mut self, log: impl Into<String>) -> Self {
        let log = log.into();
        if !log.trim().is_empty() {
            self.0.log = Some(log);
        }
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Puts the place of the error in front of the message.
    #[must_use]
    pub fn context(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message alone, without node, driver call and log.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the name of the node, if there is one.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// Returns the driver call that failed, if there is one.
    pub fn driver(&self) -> Option<&DriverFailure> {
        self.0.driver.as_ref()
    }

    /// Returns the log of the compiler or driver, if there is one.
    pub fn log(&self) -> Option<&str> {
        self.0.log.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(node) = &self.0.node {
            write!(f, "{node}: ")?;
        }
        f.write_str(&self.0.message)?;
        if let Some(driver) = &self.0.driver {
            write!(f, " ({} returned {} {})", driver.call, driver.name, driver.code)?;
        }
        if let Some(log) = &self.0.log {
            write!(f, "\n{}", log.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Returns an error of this kind with a formatted message from the current function.
macro_rules! bail {
    ($kind:ident, $($message:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($message)+)))
    };
}
pub(crate) use bail;
