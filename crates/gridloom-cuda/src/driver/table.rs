//! The macro behind [`functions`](super::functions), and the slot that caches one resolved entry
//! point.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One function of the driver: its possible names, and the version that introduced each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    /// The newest name, which error messages use.
    pub(super) name: &'static str,
    /// The exported names with this signature, newest first, each with the CUDA version that
    /// introduced it.
    pub(super) symbols: &'static [(&'static str, u32)],
}

/// The address of one entry point: not yet asked for, or found.
///
/// A function that is missing is looked up again at every call; that path ends in an error anyway.
#[derive(Debug, Default)]
pub(super) struct Slot(AtomicPtr<c_void>);

impl Slot {
    /// Returns the cached address.
    #[inline]
    pub(super) fn get(&self) -> Option<NonNull<c_void>> {
        // Acquire pairs with `set`; the address is all that is published, and the library it points
        // into stays open for as long as the table that holds this slot.
        NonNull::new(self.0.load(Ordering::Acquire))
    }

    /// Caches an address. Two threads that race store the same one.
    pub(super) fn set(&self, address: NonNull<c_void>) {
        self.0.store(address.as_ptr(), Ordering::Release);
    }

    #[cfg(test)]
    pub(super) fn is_resolved(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_null()
    }
}

/// Declares the entry points: the table of slots, and one method of [`Driver`](super::Driver) for
/// each.
///
/// A driver allows no call from inside one of its callbacks. There every method returns an error.
///
/// A plain `fn` turns the result code into `Result<(), DriverError>`; one with `-> CUresult` hands
/// the code back, for calls whose other codes are answers, not failures.
macro_rules! driver_functions {
    ($(
        $page:literal {
            $(
                fn $name:ident($($arg:ident: $ty:ty),*) $(-> $code:ident)?
                    as $header:ident = [$newest:literal since $newest_since:literal $(, $older:literal since $older_since:literal)*];
            )*
        }
    )*) => {
        /// The cached addresses, one for each function.
        #[derive(Debug, Default)]
        pub(super) struct Slots {
            $($(pub(super) $name: $crate::driver::table::Slot,)*)*
        }

        /// Every function in the table, for tests that go through all of them.
        #[cfg(test)]
        pub(super) const ALL: &[$crate::driver::table::Function] = &[$($(
            $crate::driver::table::Function {
                name: $newest,
                symbols: &[($newest, $newest_since) $(, ($older, $older_since))*],
            },
        )*)*];

        $($(
            // The signature written in the table is the header's.
            const _: $crate::sys::$header = {
                unsafe extern "C" fn declared($(_: $ty),*) -> $crate::sys::CUresult {
                    $crate::sys::CUresult::CUDA_ERROR_NOT_FOUND
                }
                Some(declared)
            };
        )*)*

        /// The driver's functions, one method each.
        ///
        /// All are `unsafe`: the caller upholds what the CUDA manual requires of the arguments and
        /// of the current context.
        #[allow(
            clippy::too_many_arguments,
            clippy::missing_safety_doc,
            reason = "the signatures are the driver's, and so is the contract, stated once above"
        )]
        impl $crate::driver::Driver {
            $($(
                #[doc = concat!(
                    "[`", $newest, "`](https://docs.nvidia.com/cuda/cuda-driver-api/", $page, ".html)"
                )]
                #[inline]
                pub unsafe fn $name(&self, $($arg: $ty),*)
                    -> $crate::driver::DriverResult<$crate::driver::table::outcome!($($code)?)>
                {
                    const FUNCTION: $crate::driver::table::Function = $crate::driver::table::Function {
                        name: $newest,
                        symbols: &[($newest, $newest_since) $(, ($older, $older_since))*],
                    };
                    if gridloom_core::user_code::in_driver_callback() {
                        return Err($crate::driver::DriverError::InCallback { function: FUNCTION.name });
                    }
                    let address = match self.slots.$name.get() {
                        Some(address) => address,
                        None => self.resolve(&self.slots.$name, &FUNCTION)?,
                    };
                    type Entry = unsafe extern "C" fn($($ty),*) -> $crate::sys::CUresult;
                    // SAFETY: the address was found under a name that carries this signature, which
                    // the constant above has checked against the header, and the library stays open
                    // while `self` lives.
                    let entry = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Entry>(address.as_ptr()) };
                    // SAFETY: passed on to the caller of this function.
                    let code = unsafe { entry($($arg),*) };
                    $crate::driver::table::outcome!(self, FUNCTION, code $(, $code)?)
                }
            )*)*
        }
    };
}

/// What a method makes of the driver's result code.
macro_rules! outcome {
    () => {
        ()
    };
    (CUresult) => {
        $crate::sys::CUresult
    };
    ($self:ident, $function:ident, $code:ident) => {
        $self.check($function.name, $code)
    };
    ($self:ident, $function:ident, $result:ident, CUresult) => {
        Ok($result)
    };
}

pub(super) use {driver_functions, outcome};
