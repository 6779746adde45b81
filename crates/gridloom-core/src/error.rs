//! The one error type: a stable kind to match on, and a message for a person.

use std::fmt;
use std::sync::Arc;

/// The result of every fallible operation in Gridloom.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in a form that programs can match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value that the operation cannot accept: a zero length, a range past the end, a dimension of 0.
    InvalidArgument,
    /// Arguments that do not fit the kernel's parameters in number, size or type.
    ParameterMismatch,
    /// Arguments or a launch shape that break the contract which a kernel was looked up with: memory
    /// shorter than a length says, null where memory is needed, a number past its bound.
    ContractViolation,
    /// A handle to something that was deleted or closed.
    InvalidHandle,
    /// A node, condition or allocation that belongs to another graph, or is not visible from this one.
    WrongGraph,
    /// An object of another device.
    WrongDevice,
    /// An edge that would close a cycle.
    Cycle,
    /// A use that is not ordered after what it needs (an allocation), or a free not ordered after a use.
    Unordered,
    /// An operation that the present state forbids: launching with outstanding allocations, using a condition twice.
    InvalidState,
    /// Two graphs that had to have the same topology differ.
    TopologyMismatch,
    /// A name that is not there: a kernel, a module variable, a device.
    NotFound,
    /// Text or binary code that could not be loaded.
    InvalidModule,
    /// Something this device, driver or build cannot do.
    NotSupported,
    /// Memory, or another countable resource of the device, ran out.
    OutOfMemory,
    /// A kernel trapped, failed an assertion, touched memory it must not or ran past its step limit.
    KernelFault,
    /// A launch was cancelled before it had come to its end.
    Cancelled,
    /// A launch ran more nodes than the device allows.
    LimitExceeded,
    /// A wait was given up after the time it was given. What was waited for goes on.
    Timeout,
    /// A host callback panicked.
    CallbackPanicked,
    /// No driver, or one that is too old.
    DriverUnavailable,
    /// The driver refused a call for a reason not covered by another kind.
    Driver,
    /// The device context is lost; every later call on it fails.
    DeviceLost,
    /// Reading or writing a file failed.
    Io,
}

/// A call into a driver that failed, as the driver named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFailure {
    /// The entry point, for example `cuGraphInstantiateWithParams`.
    pub call: String,
    /// The driver's name of the code, for example `CUDA_ERROR_INVALID_VALUE`.
    pub name: String,
    /// The number.
    pub code: u32,
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
/// `Display` says what is wrong, at which node, and what to do; [`kind`](Error::kind) is for programs.
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
    /// An error of this kind with a message for a person.
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

    /// The same error, said to come from this node. The innermost node wins.
    #[must_use]
    pub fn at_node(mut self, name: impl Into<String>) -> Self {
        self.0.node.get_or_insert_with(|| name.into());
        self
    }

    /// The same error, with the driver call behind it.
    #[must_use]
    pub fn with_driver(mut self, failure: DriverFailure) -> Self {
        self.0.driver = Some(failure);
        self
    }

    /// The same error, with the log of a compiler or driver. An empty log changes nothing.
    #[must_use]
    pub fn with_log(mut self, log: impl Into<String>) -> Self {
        let log = log.into();
        if !log.trim().is_empty() {
            self.0.log = Some(log);
        }
        self
    }

    /// The same error, with the error that caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The same error, its message preceded by where it happened.
    #[must_use]
    pub fn context(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without node, driver call and log.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The name of the node concerned, where there is one.
    pub fn node(&self) -> Option<&str> {
        self.0.node.as_deref()
    }

    /// The driver call that failed, where one did.
    pub fn driver(&self) -> Option<&DriverFailure> {
        self.0.driver.as_ref()
    }

    /// The log of the compiler or driver, where there is one.
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

/// `Err` of this kind with a formatted message: the one-line form used by every check.
macro_rules! bail {
    ($kind:ident, $($message:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($message)+)))
    };
}
pub(crate) use bail;
