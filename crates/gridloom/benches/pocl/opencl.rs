//! The few functions of OpenCL that the comparison needs, loaded at run time.

use std::error::Error;
use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut};

use libloading::Library;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Handle = *mut c_void;

const SUCCESS: i32 = 0;
const DEVICE_TYPE_CPU: u64 = 2;
const MEM_READ_WRITE: u64 = 1;
const PLATFORM_NAME: u32 = 0x0902;
const PLATFORM_VERSION: u32 = 0x0901;
const PROGRAM_BUILD_LOG: u32 = 0x1183;
const TRUE: u32 = 1;

macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// Entry points, by their names in `CL/cl.h`.
        struct Functions { $($field: unsafe extern "C" fn($($argument),*) -> $result,)* }

        impl Functions {
            /// # Safety
            /// The library is an OpenCL loader, and stays loaded while the functions are used.
            unsafe fn load(library: &Library) -> Result<Self> {
                // SAFETY: the signatures are those of `CL/cl.h`; the caller vouches for the
                // library.
                unsafe { Ok(Self { $($field: *library.get($name)?,)* }) }
            }
        }
    };
}
functions! {
    platforms b"clGetPlatformIDs\0" (u32, *mut Handle, *mut u32) -> i32;
    platform_info b"clGetPlatformInfo\0" (Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    devices b"clGetDeviceIDs\0" (Handle, u64, u32, *mut Handle, *mut u32) -> i32;
    context b"clCreateContext\0" (*const isize, u32, *const Handle, *const c_void, *const c_void, *mut i32) -> Handle;
    queue b"clCreateCommandQueue\0" (Handle, Handle, u64, *mut i32) -> Handle;
    program b"clCreateProgramWithSource\0" (Handle, u32, *const *const c_char, *const usize, *mut i32) -> Handle;
    build b"clBuildProgram\0" (Handle, u32, *const Handle, *const c_char, *const c_void, *const c_void) -> i32;
    build_info b"clGetProgramBuildInfo\0" (Handle, Handle, u32, usize, *mut c_void, *mut usize) -> i32;
    kernel b"clCreateKernel\0" (Handle, *const c_char, *mut i32) -> Handle;
    buffer b"clCreateBuffer\0" (Handle, u64, usize, *const c_void, *mut i32) -> Handle;
    release_buffer b"clReleaseMemObject\0" (Handle) -> i32;
    set_argument b"clSetKernelArg\0" (Handle, u32, usize, *const c_void) -> i32;
    enqueue b"clEnqueueNDRangeKernel\0" (Handle, Handle, u32, *const usize, *const usize, *const usize, u32, *const Handle, *mut Handle) -> i32;
    write b"clEnqueueWriteBuffer\0" (Handle, Handle, u32, usize, usize, *const c_void, u32, *const Handle, *mut Handle) -> i32;
    read b"clEnqueueReadBuffer\0" (Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle) -> i32;
    finish b"clFinish\0" (Handle) -> i32;
}

fn checked(what: &str, status: i32) -> Result<()> {
    if status == SUCCESS { Ok(()) } else { Err(format!("{what} failed with OpenCL error {status}").into()) }
}

/// PoCL's CPU device with a queue and a compiled program.
pub(crate) struct OpenCl {
    functions: Functions,
    context: Handle,
    queue: Handle,
    program: Handle,
    /// What the platform says of itself.
    pub(crate) version: String,
    _library: Library,
}

/// Memory of the OpenCL device. It is released with the process.
pub(crate) struct ClBuffer(Handle, usize);

/// A kernel with its arguments set.
pub(crate) struct ClKernel {
    kernel: Handle,
    global: [usize; 3],
    local: [usize; 3],
}

impl OpenCl {
    /// Opens the CPU device of PoCL and compiles `source`.
    pub(crate) fn open(source: &str) -> Result<Self> {
        // SAFETY: loading the system's OpenCL loader runs its initialisers, as any program linked
        // to it does.
        let library = unsafe { Library::new("libOpenCL.so.1") }
            .map_err(|error| format!("no OpenCL loader ({error}); see scripts/compare-pocl"))?;
        // SAFETY: `libOpenCL.so.1` is the OpenCL loader, and `_library` keeps it.
        let functions = unsafe { Functions::load(&library)? };
        // SAFETY: each call follows the OpenCL manual: arrays have the lengths given, handles come
        // from the same context, and memory that a call reads or writes outlives it because
        // transfers block.
        unsafe {
            let mut platforms = [null_mut(); 16];
            let mut count = 0;
            checked("clGetPlatformIDs", (functions.platforms)(16, platforms.as_mut_ptr(), &raw mut count))?;
            let text = |platform, what| {
                let mut bytes = [0u8; 512];
                let mut length = 0;
                (functions.platform_info)(
                    platform,
                    what,
                    bytes.len(),
                    bytes.as_mut_ptr().cast(),
                    &raw mut length,
                );
                String::from_utf8_lossy(&bytes[..length.saturating_sub(1).min(bytes.len())]).into_owned()
            };
            let platform = platforms[..count.min(16) as usize]
                .iter()
                .copied()
                .find(|platform| text(*platform, PLATFORM_NAME).contains("Portable Computing Language"))
                .ok_or("PoCL is not installed; see scripts/compare-pocl")?;
            let mut device = null_mut();
            checked(
                "clGetDeviceIDs",
                (functions.devices)(platform, DEVICE_TYPE_CPU, 1, &raw mut device, null_mut()),
            )?;
            let mut status = 0;
            let context = (functions.context)(null(), 1, &raw const device, null(), null(), &raw mut status);
            checked("clCreateContext", status)?;
            let queue = (functions.queue)(context, device, 0, &raw mut status);
            checked("clCreateCommandQueue", status)?;
            let (text_pointer, length) = (source.as_ptr().cast::<c_char>(), source.len());
            let program =
                (functions.program)(context, 1, &raw const text_pointer, &raw const length, &raw mut status);
            checked("clCreateProgramWithSource", status)?;
            let options = c"-cl-mad-enable";
            let built = (functions.build)(program, 1, &raw const device, options.as_ptr(), null(), null());
            if built != SUCCESS {
                let mut log = vec![0u8; 1 << 16];
                (functions.build_info)(
                    program,
                    device,
                    PROGRAM_BUILD_LOG,
                    log.len(),
                    log.as_mut_ptr().cast(),
                    null_mut(),
                );
                return Err(format!(
                    "PoCL did not compile the kernels: {}",
                    String::from_utf8_lossy(&log).trim_end_matches(char::from(0))
                )
                .into());
            }
            let version = text(platform, PLATFORM_VERSION);
            Ok(Self { functions, context, queue, program, version, _library: library })
        }
    }

    /// Memory that holds `bytes`.
    pub(crate) fn buffer(&self, bytes: &[u8]) -> Result<ClBuffer> {
        let mut status = 0;
        // SAFETY: a plain allocation; no host pointer is given.
        let handle = unsafe {
            (self.functions.buffer)(self.context, MEM_READ_WRITE, bytes.len(), null(), &raw mut status)
        };
        checked("clCreateBuffer", status)?;
        let buffer = ClBuffer(handle, bytes.len());
        self.write(&buffer, bytes)?;
        Ok(buffer)
    }

    /// Overwrites the memory.
    pub(crate) fn write(&self, buffer: &ClBuffer, bytes: &[u8]) -> Result<()> {
        assert_eq!(bytes.len(), buffer.1);
        // SAFETY: the buffer has `bytes.len()` bytes, and the call blocks.
        let status = unsafe {
            (self.functions.write)(
                self.queue,
                buffer.0,
                TRUE,
                0,
                bytes.len(),
                bytes.as_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        checked("clEnqueueWriteBuffer", status)
    }

    /// Copies the memory out.
    pub(crate) fn read(&self, buffer: &ClBuffer) -> Result<Vec<u8>> {
        let mut bytes = vec![0; buffer.1];
        // SAFETY: the buffer has `bytes.len()` bytes, and the call blocks.
        let status = unsafe {
            (self.functions.read)(
                self.queue,
                buffer.0,
                TRUE,
                0,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                0,
                null(),
                null_mut(),
            )
        };
        checked("clEnqueueReadBuffer", status)?;
        Ok(bytes)
    }

    /// Releases memory.
    pub(crate) fn release(&self, buffer: ClBuffer) {
        // SAFETY: the handle is not used again, and nothing that uses it is in flight after `run`.
        unsafe { (self.functions.release_buffer)(buffer.0) };
    }

    /// A kernel for a grid of blocks.
    pub(crate) fn kernel(&self, name: &str, grid: [u32; 3], block: [u32; 3]) -> Result<ClKernel> {
        let name = CString::new(name)?;
        let mut status = 0;
        // SAFETY: the program is built, and the name ends in a zero.
        let kernel = unsafe { (self.functions.kernel)(self.program, name.as_ptr(), &raw mut status) };
        checked("clCreateKernel", status)?;
        let local = block.map(|n| n as usize);
        let global = [0, 1, 2].map(|axis| grid[axis] as usize * local[axis]);
        Ok(ClKernel { kernel, global, local })
    }

    /// Sets an argument to plain bytes.
    pub(crate) fn set_bytes(&self, kernel: &ClKernel, index: u32, bytes: &[u8]) -> Result<()> {
        // SAFETY: OpenCL copies the bytes and refuses a wrong size.
        let status = unsafe {
            (self.functions.set_argument)(kernel.kernel, index, bytes.len(), bytes.as_ptr().cast())
        };
        checked("clSetKernelArg", status)
    }

    /// Sets an argument to memory.
    pub(crate) fn set_buffer(&self, kernel: &ClKernel, index: u32, buffer: &ClBuffer) -> Result<()> {
        self.set_bytes(kernel, index, &(buffer.0 as usize).to_ne_bytes())
    }

    /// Runs the kernel and waits for its end.
    pub(crate) fn run(&self, kernel: &ClKernel) -> Result<()> {
        // SAFETY: all arguments are set, and the sizes have three dimensions.
        let status = unsafe {
            (self.functions.enqueue)(
                self.queue,
                kernel.kernel,
                3,
                null(),
                kernel.global.as_ptr(),
                kernel.local.as_ptr(),
                0,
                null(),
                null_mut(),
            )
        };
        checked("clEnqueueNDRangeKernel", status)?;
        // SAFETY: the queue is valid.
        checked("clFinish", unsafe { (self.functions.finish)(self.queue) })
    }
}
