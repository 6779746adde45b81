//! cuBLAS, found and called at run time: a library that knows nothing of Gridloom.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gridloom::prelude::*;
use libloading::Library;

type Status = c_int;
type Handle = *mut c_void;

/// The functions that the tests use.
struct Functions {
    create: unsafe extern "C" fn(*mut Handle) -> Status,
    destroy: unsafe extern "C" fn(Handle) -> Status,
    set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    set_workspace: unsafe extern "C" fn(Handle, *mut c_void, usize) -> Status,
    multiply: Multiply,
}

/// `cublasSgemm`: handle, two transpositions, m, n, k, alpha, A and its pitch, B and its pitch,
/// beta, C and its pitch.
type Multiply = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    *const f32,
    *mut f32,
    c_int,
) -> Status;

/// A handle of the library.
pub(super) struct Cublas {
    functions: &'static Functions,
    handle: Handle,
}

// SAFETY: a handle may be used by any thread, one at a time, which the tests see to.
unsafe impl Send for Cublas {}
// SAFETY: as above.
unsafe impl Sync for Cublas {}

impl Cublas {
    /// A handle, which has made one product already: the library loads its kernels with the first.
    /// `None`, with a line, where there is no cuBLAS; `GRIDLOOM_REQUIRE_CUBLAS=1` makes that a
    /// failure.
    pub(super) fn open(device: &Device) -> Option<Arc<Self>> {
        static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
        let functions = match FUNCTIONS.get_or_init(load) {
            Ok(functions) => functions,
            Err(reason) => {
                let required = std::env::var("GRIDLOOM_REQUIRE_CUBLAS").is_ok_and(|value| value == "1");
                assert!(!required, "cuBLAS is required: {reason}");
                eprintln!("skipped: {reason}");
                return None;
            }
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: one handle is written.
        check("cublasCreate", unsafe { (functions.create)(&mut handle) }).unwrap();
        let cublas = Cublas { functions, handle };
        let stream = device.stream().unwrap();
        let raw = gridloom::interop::stream_to_raw(&stream).unwrap();
        let [a, b, c] = [(); 3].map(|()| device.buffer_from(&vec![0.0f32; 96 * 96]).unwrap());
        let workspace = device.alloc::<u8>(32 << 20).unwrap();
        cublas.multiply(raw.cast(), 96, &a, &b, &c, &workspace).unwrap();
        stream.synchronize().unwrap();
        cublas.leave_stream().unwrap();
        Some(Arc::new(cublas))
    }

    /// Enqueues `c += a · b` for square matrices of `n` columns.
    pub(super) fn multiply(
        &self,
        stream: *mut c_void,
        n: usize,
        a: &Buffer<f32>,
        b: &Buffer<f32>,
        c: &Buffer<f32>,
        workspace: &Buffer<u8>,
    ) -> Result<()> {
        let (functions, handle, one, n) = (self.functions, self.handle, 1.0f32, n as c_int);
        let (a, b, c) = (a.address()?, b.address()?, c.address()?);
        // SAFETY: the stream exists; the matrices have n by n elements; the scalars are read by the
        // call.
        unsafe {
            check("cublasSetStream", (functions.set_stream)(handle, stream))?;
            let (scratch, bytes) = (workspace.address()? as *mut c_void, workspace.len());
            check("cublasSetWorkspace", (functions.set_workspace)(handle, scratch, bytes))?;
            // The library has columns one after the other, so the rows of a · b are its columns of
            // b · a.
            let made = (functions.multiply)(
                handle,
                0,
                0,
                n,
                n,
                n,
                &one,
                b as *const f32,
                n,
                a as *const f32,
                n,
                &one,
                c as *mut f32,
                n,
            );
            check("cublasSgemm", made)
        }
    }

    /// Has the library forget the stream it worked on, which may be about to go.
    pub(super) fn leave_stream(&self) -> Result<()> {
        // SAFETY: null is the default stream.
        check("cublasSetStream", unsafe { (self.functions.set_stream)(self.handle, std::ptr::null_mut()) })
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: made once, and destroyed once. A thread without a context gets that of the first
        // GPU.
        unsafe { (self.functions.destroy)(self.handle) };
    }
}

fn check(call: &str, status: Status) -> Result<()> {
    match status {
        0 => Ok(()),
        code => Err(Error::new(ErrorKind::Driver, format!("{call} returned {code}"))),
    }
}

/// `start + a · b`, row by row.
pub(super) fn product(n: usize, a: &[f32], b: &[f32], start: f32) -> Vec<f32> {
    let mut c = vec![start; n * n];
    for row in 0..n {
        for inner in 0..n {
            for column in 0..n {
                c[row * n + column] += a[row * n + inner] * b[inner * n + column];
            }
        }
    }
    c
}

/// Opens the library, which then stays open to the end.
fn load() -> Result<Functions, String> {
    let mut tried = Vec::new();
    for version in [13, 12] {
        for folder in folders() {
            let at = |name: &str| folder.join(format!("{name}.so.{version}"));
            // SAFETY: the libraries of NVIDIA's own toolkit; the first is one that the second needs
            // beside it.
            let opened = unsafe {
                let needed = Library::new(at("libcublasLt"));
                Library::new(at("libcublas")).map(|library| (needed, library))
            };
            match opened {
                Ok((needed, library)) => {
                    std::mem::forget(needed);
                    let library: &'static Library = Box::leak(Box::new(library));
                    return functions(library).map_err(|error| format!("cuBLAS is not complete: {error}"));
                }
                Err(_) => tried.push(at("libcublas").display().to_string()),
            }
        }
    }
    Err(format!("no cuBLAS was found; tried {}", tried.join(", ")))
}

fn functions(library: &'static Library) -> Result<Functions, libloading::Error> {
    // SAFETY: the signatures are those of cublas_v2.h.
    unsafe {
        Ok(Functions {
            create: *library.get(b"cublasCreate_v2\0")?,
            destroy: *library.get(b"cublasDestroy_v2\0")?,
            set_stream: *library.get(b"cublasSetStream_v2\0")?,
            set_workspace: *library.get(b"cublasSetWorkspace_v2\0")?,
            multiply: *library.get(b"cublasSgemm_v2\0")?,
        })
    }
}

/// Returns where the library may be: where `GRIDLOOM_CUBLAS` says, where the loader looks, in
/// toolkits, and in packages of Python.
fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os("GRIDLOOM_CUBLAS") {
        return vec![folder.into()];
    }
    let mut folders = vec![PathBuf::new()];
    let variables = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    for toolkit in variables.chain(matching(Path::new("/usr/local"), "cuda")) {
        folders.extend(["lib64", "lib", "targets/x86_64-linux/lib"].map(|folder| toolkit.join(folder)));
    }
    folders.extend(["/usr/lib/x86_64-linux-gnu", "/usr/lib64"].map(PathBuf::from));
    for root in ["/usr/local/lib", "/usr/lib", "/opt/conda/lib", "/opt/venv/lib"] {
        for python in matching(Path::new(root), "python3") {
            for packages in ["dist-packages", "site-packages"] {
                let nvidia = python.join(packages).join("nvidia");
                folders.extend(["cu13/lib", "cublas/lib"].map(|folder| nvidia.join(folder)));
            }
        }
    }
    folders
}

/// Returns the folders in another one whose names begin so.
fn matching(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.map(|entry| entry.path()).collect()
}
