//! Host code that callback nodes call.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::Owner;
use crate::error::{Error, ErrorKind, Result, bail};
use crate::memory::{Base, Region};
use crate::user_code::{self, Caller, UserValue};

/// Host code to call.
#[derive(Clone)]
pub enum CallbackOp {
    /// A closure.
    Closure(Arc<Closure>),
    /// A C function and its argument.
    Raw(RawCallback),
}

/// A host closure, and the host memory that it is given to read. It is called each time its node
/// runs.
pub struct Closure {
    function: Arc<Function>,
    reads: Box<[Region]>,
}

/// A function of the user's, called by one caller at a time.
struct Function {
    closure: Mutex<UserValue<BoxedClosure>>,
    /// The caller of the call in progress.
    caller: Mutex<Option<Caller>>,
}

type BoxedClosure = Box<dyn FnMut(&HostReads<'_>) -> Result<()> + Send>;

/// The longest wait for another call without a look at who makes it.
const TURN: Duration = Duration::from_millis(10);

impl Function {
    /// Calls the closure when other calls for the same device have ended. A call for another device
    /// fails instead of waiting, because the closure may be waiting for the device of this call.
    fn call(&self, caller: Caller, reads: &HostReads<'_>) -> Result<()> {
        let mut closure = loop {
            if let Some(closure) = self.closure.try_lock_for(TURN) {
                break closure;
            }
            if self.caller.lock().is_some_and(|other| other != caller) {
                bail!(InvalidState, "the closure is running for another device, which may wait for this one");
            }
        };
        *self.caller.lock() = Some(caller);
        // Declared after the guard and so dropped before it.
        let _ends = Ends(&self.caller);
        closure(reads)
    }
}

/// Ends a call when dropped.
struct Ends<'a>(&'a Mutex<Option<Caller>>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl Closure {
    /// Returns the host memory that the closure is given to read.
    pub fn reads(&self) -> &[Region] {
        &self.reads
    }

    /// Returns the same closure with other memory to read.
    pub(crate) fn with_reads(&self, reads: Box<[Region]>) -> Self {
        Closure { function: self.function.clone(), reads }
    }
}

/// The host memory that a closure is given to read, during one call.
///
/// The closure gets copies and never a reference, because nothing stops another stream from writing
/// the memory during the call.
pub struct HostReads<'a>(&'a [Region]);

impl HostReads<'_> {
    /// Copies one of the regions, which has as many bytes as `dst`. A byte that is written
    /// meanwhile has its old or its new value.
    pub fn copy_into(&self, index: usize, dst: &mut [u8]) -> Result<()> {
        match self.0.get(index) {
            Some(Region { base: Base::Allocation(memory), offset, bytes }) if *bytes == dst.len() as u64 => {
                memory.read_host(*offset, dst)
            }
            _ => bail!(InvalidArgument, "the callback was given no such memory to read"),
        }
    }
}

/// A C function and its argument. It is behind an `Arc`, which keeps every operation small.
#[derive(Clone)]
pub struct RawCallback(Arc<RawParts>);

#[derive(Clone)]
struct RawParts {
    function: unsafe extern "C" fn(*mut c_void),
    data: RawData,
    owner: Option<Owner>,
}

impl RawCallback {
    /// Creates a callback that calls `function` with `data`.
    ///
    /// # Safety
    /// For as long as a graph, executable or launch can reach the callback, any thread may call
    /// `function` with the pointer that `data` stands for. If `data` is [`RawData::Bytes`], the
    /// function only reads the bytes, and only during the call.
    pub unsafe fn new(function: unsafe extern "C" fn(*mut c_void), data: RawData) -> Self {
        RawCallback(Arc::new(RawParts { function, data, owner: None }))
    }

    /// Returns the callback with a further owner that it keeps alive.
    #[must_use]
    pub fn keeping(mut self, owner: impl Into<Owner>) -> Self {
        let parts = Arc::make_mut(&mut self.0);
        let owner = owner.into();
        parts.owner = Some(match parts.owner.take() {
            Some(other) => Arc::new((other, owner)).into(),
            None => owner,
        });
        self
    }

    /// Returns the owner that the callback keeps alive.
    pub fn owner(&self) -> Option<&Owner> {
        self.0.owner.as_ref()
    }

    /// Returns the function.
    pub fn function(&self) -> unsafe extern "C" fn(*mut c_void) {
        self.0.function
    }

    /// Returns the argument.
    pub fn data(&self) -> &RawData {
        &self.0.data
    }
}

/// The argument of a raw callback.
#[derive(Clone)]
pub enum RawData {
    /// A copy of the caller's bytes, owned by the node. The function gets a pointer to them.
    Bytes(Arc<[u8]>),
    /// A pointer that the caller keeps valid.
    Pointer(SendPointer),
}

/// A pointer whose owner promised that it may be used from any thread.
#[derive(Clone, Copy)]
pub struct SendPointer(*mut c_void);

// SAFETY: `SendPointer::new` is unsafe and asks for exactly this promise.
unsafe impl Send for SendPointer {}
// SAFETY: as above; the pointer itself is only read.
unsafe impl Sync for SendPointer {}

impl SendPointer {
    /// Wraps a pointer for use from any thread.
    ///
    /// # Safety
    /// The memory behind the pointer may be used from any thread for as long as a callback can run
    /// with it.
    pub unsafe fn new(pointer: *mut c_void) -> Self {
        SendPointer(pointer)
    }

    /// Returns the pointer.
    pub fn get(self) -> *mut c_void {
        self.0
    }
}

impl CallbackOp {
    /// Creates a callback from a closure.
    pub fn closure(mut closure: impl FnMut() + Send + 'static) -> Self {
        CallbackOp::reading([], move |_| {
            closure();
            Ok(())
        })
    }

    /// Creates a callback from a closure that reads host memory.
    pub fn reading(
        reads: impl Into<Box<[Region]>>,
        closure: impl FnMut(&HostReads<'_>) -> Result<()> + Send + 'static,
    ) -> Self {
        let closure = Mutex::new(UserValue::new(Box::new(closure) as BoxedClosure));
        let function = Arc::new(Function { closure, caller: Mutex::default() });
        CallbackOp::Closure(Arc::new(Closure { function, reads: reads.into() }))
    }

    /// Returns the host memory that the callback is given to read.
    pub fn reads(&self) -> &[Region] {
        match self {
            CallbackOp::Closure(closure) => closure.reads(),
            CallbackOp::Raw(_) => &[],
        }
    }

    /// Calls the host code. A panic becomes an error. During the call this thread may not use the
    /// device ([`user_code::may_use`]).
    pub fn call(&self, caller: Caller) -> Result<()> {
        let called = user_code::call(caller, || match self {
            CallbackOp::Closure(closure) => closure.function.call(caller, &HostReads(&closure.reads)),
            CallbackOp::Raw(raw) => {
                let argument = match raw.data() {
                    RawData::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
                    RawData::Pointer(pointer) => pointer.get(),
                };
                // SAFETY: the caller of `RawCallback::new` promised that the function accepts this
                // argument on any thread.
                unsafe { (raw.function())(argument) }
                Ok(())
            }
        });
        called.unwrap_or_else(|said| {
            Err(Error::new(ErrorKind::CallbackPanicked, format!("the callback panicked: {said}")))
        })
    }

    /// Returns whether both are the same closure with the same memory, or the same function with
    /// equal data.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (CallbackOp::Closure(a), CallbackOp::Closure(b)) => {
                Arc::ptr_eq(&a.function, &b.function) && a.reads == b.reads
            }
            (CallbackOp::Raw(a), CallbackOp::Raw(b)) => {
                std::ptr::fn_addr_eq(a.function(), b.function())
                    && match (a.data(), b.data()) {
                        (RawData::Bytes(a), RawData::Bytes(b)) => a == b,
                        (RawData::Pointer(a), RawData::Pointer(b)) => a.0 == b.0,
                        _ => false,
                    }
            }
            _ => false,
        }
    }
}

impl fmt::Debug for CallbackOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallbackOp::Closure(_) => f.write_str("closure"),
            CallbackOp::Raw(raw) => match raw.data() {
                RawData::Bytes(bytes) => {
                    write!(f, "{:p}({} bytes)", raw.function() as *const (), bytes.len())
                }
                RawData::Pointer(pointer) => write!(f, "{:p}({:p})", raw.function() as *const (), pointer.0),
            },
        }
    }
}
