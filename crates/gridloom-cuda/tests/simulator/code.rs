//! Modules and kernels: those of the tests, and Gridloom's own, as Rust functions found by name.

use super::graphs::{Node, Work};
use super::{INVALID, OK, capture, exports, handle, world};
use gridloom_cuda::sys::*;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

pub fn export(table: &mut HashMap<&'static str, usize>) {
    exports! { table,
        "cuModuleLoadDataEx" => load,
        "cuModuleUnload" => unload,
        "cuModuleGetFunction" => find,
        "cuFuncGetAttribute" => function_attribute,
        "cuFuncSetAttribute" => set_function_attribute,
        "cuFuncGetParamInfo" => parameter,
        "cuFuncGetName" => function_name,
        "cuLaunchKernel" => launch,
        "cuLaunchKernelEx" => launch_with_attributes,
    }
}

#[derive(Clone)]
pub struct Module {
    text: String,
}

#[derive(Clone)]
pub struct Function {
    name: String,
    c_name: CString,
    /// Whether conditions are words in memory.
    stores: bool,
}

/// A kernel with its arguments, copied.
#[derive(Clone)]
pub struct Call {
    /// The driver's handle of the function.
    pub handle: usize,
    function: Function,
    pub shape: Shape,
    pub arguments: Vec<Vec<u8>>,
    /// Whether the arguments were given as one buffer.
    pub packed: bool,
}

/// The shape of a launch.
#[derive(Clone, Copy)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
}

impl Shape {
    fn threads(&self) -> u32 {
        self.grid[0] * self.block[0]
    }
}

/// The sizes of a kernel's parameters.
fn sizes(name: &str) -> Option<&'static [usize]> {
    Some(match name {
        "add" | "add_overlapped" => &[8, 4, 4],
        "append" | "sum_shared" | "set_condition" => &[8, 4],
        "countdown" => &[8, 8],
        "move_words" => &[24],
        "wait_for" | "read_variable" | "fault" | "gridloom_count" => &[8],
        "gridloom_loop_begin" | "gridloom_loop_next" => &[8, 8, 8, 8, 4],
        "gridloom_choose" => &[8, 8, 8, 4, 4],
        _ => return None,
    })
}

fn offset(sizes: &[usize], index: usize) -> usize {
    let mut end = 0usize;
    for (position, &size) in sizes.iter().enumerate() {
        let start = end.next_multiple_of(size);
        if position == index {
            return start;
        }
        end = start + size;
    }
    end
}

impl Call {
    /// Copies the arguments of a launch, given as pointers or as one buffer.
    pub unsafe fn new(
        handle: usize,
        shape: Shape,
        pointers: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Option<Self> {
        let function = world(|world| world.functions.get(&handle).cloned())?;
        let sizes = sizes(&function.name)?;
        let mut arguments = Vec::new();
        for (index, &size) in sizes.iter().enumerate() {
            let from = if extra.is_null() {
                unsafe { (*pointers.add(index)).cast::<u8>() }
            } else {
                let (buffer, length) = unsafe { (*extra.add(1), *(*extra.add(3)).cast::<usize>()) };
                let start = offset(sizes, index);
                assert!(start + size <= length, "the buffer holds every parameter");
                unsafe { buffer.cast::<u8>().add(start) }
            };
            arguments.push(unsafe { std::slice::from_raw_parts(from, size) }.to_vec());
        }
        Some(Self { handle, function, shape, arguments, packed: !extra.is_null() })
    }

    /// The arguments as one buffer.
    pub fn buffer(&self) -> Vec<u8> {
        let sizes = sizes(&self.function.name).unwrap_or_default();
        let mut buffer = Vec::new();
        for (index, value) in self.arguments.iter().enumerate() {
            buffer.resize(offset(sizes, index), 0);
            buffer.extend(value);
        }
        buffer
    }

    fn word(&self, index: usize) -> u32 {
        u32::from_ne_bytes(self.arguments[index].as_slice().try_into().unwrap())
    }

    fn long(&self, index: usize) -> u64 {
        u64::from_ne_bytes(self.arguments[index].as_slice().try_into().unwrap())
    }

    fn set_condition(&self, condition: u64, value: u32) {
        if self.function.stores {
            unsafe { (condition as *mut u32).write(value) };
        } else {
            world(|world| {
                let known = world.conditions.insert(condition, value);
                assert!(known.is_some(), "the handle of a condition");
            });
        }
    }

    /// What the kernel does.
    pub unsafe fn run(&self) {
        match self.function.name.as_str() {
            "add" | "add_overlapped" => {
                let (data, value, n) = (self.long(0) as *mut i32, self.word(1) as i32, self.word(2));
                for index in 0..n.min(self.shape.threads()) as usize {
                    unsafe { *data.add(index) += value };
                }
            }
            "move_words" => {
                let part = |at: usize| u64::from_ne_bytes(self.arguments[0][at..at + 8].try_into().unwrap());
                let (to, from, n) = (part(0) as *mut u32, part(8) as *const u32, part(16) as u32);
                for index in 0..n.min(self.shape.threads()) as usize {
                    unsafe { *to.add(index) = *from.add(index) };
                }
            }
            "append" => {
                let log = self.long(0) as *mut u32;
                unsafe {
                    *log += 1;
                    *log.add(*log as usize) = self.word(1);
                }
            }
            "countdown" => {
                let left = self.long(1) as *mut i32;
                unsafe { *left -= 1 };
                self.set_condition(self.long(0), u32::from(unsafe { *left } > 0));
            }
            "set_condition" => self.set_condition(self.long(0), self.word(1)),
            "gridloom_loop_begin" => {
                unsafe { *(self.long(2) as *mut u64) = 0 };
                self.decide(0);
            }
            "gridloom_loop_next" => {
                let state = self.long(2) as *mut u64;
                unsafe { *state += 1 };
                self.decide(unsafe { *state });
            }
            "gridloom_choose" => {
                let value = unsafe { *(self.long(1) as *const u32) };
                let runs = (self.word(3)..=self.word(4)).contains(&value);
                unsafe { *(self.long(2) as *mut u64) = u64::from(runs) };
                self.set_condition(self.long(0), value);
            }
            "gridloom_count" => unsafe { *(self.long(0) as *mut u64) += 1 },
            name => panic!("{name} is not simulated"),
        }
    }

    fn decide(&self, passes: u64) {
        let (value, limit, mode) = (self.long(1), self.long(3), self.word(4));
        if passes >= limit {
            self.set_condition(self.long(0), 0);
        } else if mode != 2 {
            let again = mode == 1 || value == 0 || unsafe { *(value as *const u32) } != 0;
            self.set_condition(self.long(0), u32::from(again));
        }
    }
}

unsafe extern "C" fn load(
    out: *mut CUmodule,
    image: *const c_void,
    _: c_uint,
    _: *mut CUjit_option,
    _: *mut *mut c_void,
) -> CUresult {
    let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy().into_owned();
    world(|world| {
        let number = world.fresh();
        world.modules.insert(number, Module { text });
        unsafe { *out = handle(number) };
    });
    OK
}

unsafe extern "C" fn unload(module: CUmodule) -> CUresult {
    if world(|world| world.modules.remove(&module.addr()).is_some()) { OK } else { INVALID }
}

unsafe extern "C" fn find(out: *mut CUfunction, module: CUmodule, name: *const c_char) -> CUresult {
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    world(|world| {
        let Some(text) = world.modules.get(&module.addr()).map(|module| module.text.clone()) else {
            return INVALID;
        };
        if !text.contains(&format!(".entry {name}(")) {
            return CUresult::CUDA_ERROR_NOT_FOUND;
        }
        let stores = text.contains(".func gridloom_store_condition");
        let number = world.fresh();
        let c_name = CString::new(name.as_str()).unwrap();
        world.functions.insert(number, Function { name, c_name, stores });
        unsafe { *out = handle(number) };
        OK
    })
}

unsafe extern "C" fn function_attribute(
    out: *mut c_int,
    attribute: CUfunction_attribute,
    _: CUfunction,
) -> CUresult {
    let threads = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    unsafe { *out = if attribute == threads { 1024 } else { 0 } };
    OK
}

unsafe extern "C" fn function_name(out: *mut *const c_char, function: CUfunction) -> CUresult {
    world(|world| match world.functions.get(&function.addr()) {
        Some(function) => {
            unsafe { *out = function.c_name.as_ptr() };
            OK
        }
        None => INVALID,
    })
}

unsafe extern "C" fn set_function_attribute(_: CUfunction, _: CUfunction_attribute, _: c_int) -> CUresult {
    OK
}

unsafe extern "C" fn parameter(
    function: CUfunction,
    index: usize,
    out_offset: *mut usize,
    out_size: *mut usize,
) -> CUresult {
    let name = world(|world| world.functions.get(&function.addr()).map(|function| function.name.clone()));
    let Some(sizes) = name.as_deref().and_then(sizes) else { return INVALID };
    let Some(&size) = sizes.get(index) else { return INVALID };
    unsafe {
        *out_offset = offset(sizes, index);
        *out_size = size;
    }
    OK
}

#[allow(clippy::too_many_arguments, reason = "the driver's signature")]
unsafe extern "C" fn launch(
    function: CUfunction,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: CUstream,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let shape = Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared };
    match unsafe { Call::new(function.addr(), shape, pointers, extra) } {
        Some(call) => unsafe { enqueue(stream, call, &[]) },
        None => INVALID,
    }
}

unsafe extern "C" fn launch_with_attributes(
    config: *const CUlaunchConfig,
    function: CUfunction,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let c = unsafe { &*config };
    let grid = [c.gridDimX, c.gridDimY, c.gridDimZ];
    let shape = Shape { grid, block: [c.blockDimX, c.blockDimY, c.blockDimZ], shared: c.sharedMemBytes };
    let attributes = unsafe { std::slice::from_raw_parts(c.attrs, c.numAttrs as usize) };
    match unsafe { Call::new(function.addr(), shape, pointers, extra) } {
        Some(call) => unsafe { enqueue(c.hStream, call, attributes) },
        None => INVALID,
    }
}

/// Runs a kernel, or records it where the stream is captured.
unsafe fn enqueue(stream: CUstream, call: Call, attributes: &[CUlaunchAttribute]) -> CUresult {
    if !capture::captures(stream) {
        unsafe { call.run() };
        return OK;
    }
    let programmatic = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    let early = attributes.iter().any(|attribute| attribute.id == programmatic);
    let added = capture::add_node(stream, |after| {
        let mut node = Node::new(0, after, Work::Kernel(call));
        node.attributes = attributes.to_vec();
        if early {
            node.early = node.after.clone();
        }
        node
    });
    added.and_then(Result::err).unwrap_or(OK)
}
