//! Driver errors as errors of Gridloom.

use crate::driver::{CallError, DriverError};
use crate::nvrtc::NvrtcError;
use crate::sys::CUresult;
use gridloom_core::error::DriverFailure;
use gridloom_core::{Error, ErrorKind};

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Call(call) => from_call(*call),
            DriverError::Unavailable(_) => Error::new(ErrorKind::NotSupported, error.to_string()),
            DriverError::InCallback { .. } => Error::new(ErrorKind::InvalidState, error.to_string()),
            other => Error::new(ErrorKind::DriverUnavailable, other.to_string()),
        }
    }
}

fn from_call(call: CallError) -> Error {
    let kind = match call.code {
        _ if call.is_sticky() => ErrorKind::DeviceLost,
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        CUresult::CUDA_ERROR_NOT_SUPPORTED
        | CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT
        | CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => ErrorKind::NotSupported,
        CUresult::CUDA_ERROR_NOT_FOUND => ErrorKind::NotFound,
        CUresult::CUDA_ERROR_INVALID_IMAGE
        | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
        | CUresult::CUDA_ERROR_INVALID_PTX
        | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | CUresult::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
        | CUresult::CUDA_ERROR_JIT_COMPILATION_DISABLED
        | CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND => ErrorKind::InvalidModule,
        CUresult::CUDA_ERROR_NO_DEVICE | CUresult::CUDA_ERROR_STUB_LIBRARY => ErrorKind::DriverUnavailable,
        _ => ErrorKind::Driver,
    };
    let mut message = if call.description.is_empty() {
        "the CUDA driver refused a call".to_owned()
    } else {
        call.description.clone()
    };
    if kind == ErrorKind::DeviceLost {
        message.push_str(
            "; the CUDA context is lost: drop everything that uses the device, or restart the process",
        );
    }
    let failure = DriverFailure::new(call.call, call.name.clone(), call.code.0);
    Error::new(kind, message).with_driver(failure).with_log(call.log.unwrap_or_default())
}

impl From<NvrtcError> for Error {
    fn from(error: NvrtcError) -> Self {
        match error {
            NvrtcError::Missing { .. } => Error::new(ErrorKind::NotSupported, error.to_string()),
            NvrtcError::Compile { name, log } => {
                Error::new(ErrorKind::InvalidModule, format!("`{name}` does not compile")).with_log(log)
            }
            NvrtcError::Nul { .. } => Error::new(ErrorKind::InvalidArgument, error.to_string()),
            NvrtcError::Call { .. } => Error::new(ErrorKind::Driver, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::MissingDriver;

    fn call(code: CUresult) -> Error {
        DriverError::Call(Box::new(CallError {
            call: "cuMemAlloc_v2",
            code,
            name: "CUDA_ERROR_X".into(),
            description: "no good".into(),
            log: Some("because".into()),
        }))
        .into()
    }

    #[test]
    fn each_kind_of_driver_error_has_its_kind() {
        for (code, kind) in [
            (CUresult::CUDA_ERROR_OUT_OF_MEMORY, ErrorKind::OutOfMemory),
            (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, ErrorKind::DeviceLost),
            (CUresult::CUDA_ERROR_INVALID_PTX, ErrorKind::InvalidModule),
            (CUresult::CUDA_ERROR_NOT_SUPPORTED, ErrorKind::NotSupported),
            (CUresult(4242), ErrorKind::Driver),
        ] {
            assert_eq!(call(code).kind(), kind, "{code:?}");
        }
    }

    #[test]
    fn name_number_call_and_log_of_the_driver_survive() {
        let error = call(CUresult::CUDA_ERROR_INVALID_VALUE);
        let failure = error.driver().unwrap();
        assert_eq!(
            (failure.call.as_str(), failure.name.as_str(), failure.code),
            ("cuMemAlloc_v2", "CUDA_ERROR_X", 1)
        );
        assert_eq!(error.log(), Some("because"));
    }

    #[test]
    fn a_missing_driver_is_driver_unavailable() {
        let error: Error = DriverError::Missing(Box::new(MissingDriver { attempts: Vec::new() })).into();
        assert_eq!(error.kind(), ErrorKind::DriverUnavailable);
    }
}
