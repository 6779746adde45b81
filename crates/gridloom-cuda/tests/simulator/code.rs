//! Modules and kernels: those of the tests, and Gridloom's own, as Rust functions found by name.
//! Kernels that the optimiser made are [interpreted](super::interpreted) by whom the test program
//! names.

use super::clock::nanoseconds;
use super::graphs::{Node, Work};
use super::memory::touch;
use super::{INVALID, OK, World, capture, exports, handle, interpreted, streams, world};
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
    module: usize,
    name: String,
    c_name: CString,
    /// The offset and size of each parameter, if it can run.
    params: Option<Vec<(usize, usize)>>,
    /// Whether its PTX is interpreted.
    is_interpreted: bool,
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
        "trigger_and_add" | "wait_and_add" | "only_add" | "append" | "late" | "sum_shared"
        | "set_condition" => &[8, 4],
        "increase" => &[8, 4, 4],
        "affine" => &[8, 8, 4, 4, 4],
        "mix" | "below" | "grid_barrier" => &[8, 8, 4],
        "countdown" | "set_condition_to_value_at" => &[8, 8],
        "move_words" => &[24],
        "wait_for" | "read_variable" | "fault" | "gridloom_count" | "gridloom_timer_start" => &[8],
        "gridloom_timer_end" => &[8, 8],
        "gridloom_loop_begin" | "gridloom_loop_next" => &[8, 8, 8, 8, 4],
        "gridloom_choose" => &[8, 8, 8, 4, 4],
        "demands_32_threads" => &[],
        _ => return None,
    })
}

/// The offset and size of each parameter of a kernel that is found by name.
fn params(name: &str) -> Option<Vec<(usize, usize)>> {
    let mut end = 0usize;
    let place = |&size: &usize| {
        let start = end.next_multiple_of(size);
        end = start + size;
        (start, size)
    };
    sizes(name).map(|sizes| sizes.iter().map(place).collect())
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
        let mut arguments = Vec::new();
        for (index, &(start, size)) in function.params.as_ref()?.iter().enumerate() {
            let from = if extra.is_null() {
                unsafe { (*pointers.add(index)).cast::<u8>() }
            } else {
                let (buffer, length) = unsafe { (*extra.add(1), *(*extra.add(3)).cast::<usize>()) };
                assert!(start + size <= length, "the buffer holds every parameter");
                unsafe { buffer.cast::<u8>().add(start) }
            };
            arguments.push(unsafe { std::slice::from_raw_parts(from, size) }.to_vec());
        }
        Some(Self { handle, function, shape, arguments, packed: !extra.is_null() })
    }

    /// Where a kernel of Gridloom's own counts passes, if it is one.
    pub fn counter(&self) -> Option<u64> {
        match self.function.name.as_str() {
            "gridloom_loop_begin" | "gridloom_loop_next" | "gridloom_choose" => Some(self.long(2)),
            "gridloom_count" => Some(self.long(0)),
            _ => None,
        }
    }

    /// Whether the kernel has a place where it waits for those it depends on.
    pub fn waits(&self, world: &World) -> bool {
        let Some(module) = world.modules.get(&self.function.module) else { return false };
        let mut entries = module.text.split(".entry ").skip(1);
        let name = self.function.name.as_str();
        let text = entries
            .find(|text| text.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('(')));
        text.is_some_and(|text| text.contains("griddepcontrol.wait"))
    }

    /// How many rounds a kernel makes that makes some, which take a nanosecond each.
    pub fn rounds(&self) -> u64 {
        if self.function.name == "late" { u64::from(self.word(1)) } else { 0 }
    }

    /// The arguments as one buffer.
    pub fn buffer(&self) -> Vec<u8> {
        let mut buffer = Vec::new();
        let params = self.function.params.as_deref().unwrap_or_default();
        for (&(start, _), value) in params.iter().zip(&self.arguments) {
            buffer.resize(start, 0);
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
            *self.at::<u32>(condition) = value;
        } else {
            world(|world| {
                let known = world.conditions.insert(condition, value);
                assert!(known.is_some(), "the handle of a condition");
            });
        }
    }

    /// One element of memory that the kernel uses.
    #[allow(clippy::mut_from_ref, reason = "memory of the device, which other kernels use as well")]
    fn at<T>(&self, address: u64) -> &mut T {
        touch(&self.function.name, address, size_of::<T>());
        unsafe { &mut *(address as *mut T) }
    }

    /// The first elements of an array, one for each thread, and no more than `n`.
    fn elements<T>(&self, address: u64, n: u32) -> (*mut T, usize) {
        let count = n.min(self.shape.threads()) as usize;
        touch(&self.function.name, address, count * size_of::<T>());
        (address as *mut T, count)
    }

    /// What the kernel does.
    pub fn run(&self) {
        world(|world| {
            if !world.modules.contains_key(&self.function.module) {
                world.violation(format!("{} runs after its module was unloaded", self.function.name));
            }
        });
        if self.function.is_interpreted {
            self.interpret();
            return;
        }
        match self.function.name.as_str() {
            "add" | "add_overlapped" => {
                let (data, n) = self.elements::<i32>(self.long(0), self.word(2));
                for index in 0..n {
                    unsafe { *data.add(index) += self.word(1) as i32 };
                }
            }
            "trigger_and_add" | "wait_and_add" | "only_add" => *self.at::<i32>(self.long(0)) += 1,
            "move_words" => {
                let part = |at: usize| u64::from_ne_bytes(self.arguments[0][at..at + 8].try_into().unwrap());
                let (to, n) = self.elements::<u32>(part(0), part(16) as u32);
                let (from, _) = self.elements::<u32>(part(8), part(16) as u32);
                for index in 0..n {
                    unsafe { *to.add(index) = *from.add(index) };
                }
            }
            "increase" => {
                let (x, n) = self.elements::<i32>(self.long(0), self.word(1));
                for index in 0..n {
                    unsafe { *x.add(index) = (*x.add(index)).wrapping_add(self.word(2) as i32) };
                }
            }
            "affine" => {
                let (out, n) = self.elements::<i32>(self.long(0), self.word(2));
                let (x, _) = self.elements::<i32>(self.long(1), self.word(2));
                let (a, b) = (self.word(3) as i32, self.word(4) as i32);
                for index in 0..n {
                    unsafe { *out.add(index) = (*x.add(index)).wrapping_mul(a).wrapping_add(b) };
                }
            }
            "mix" => {
                let (out, n) = self.elements::<i32>(self.long(0), self.word(2));
                let (x, _) = self.elements::<i32>(self.long(1), self.word(2));
                for index in 0..n {
                    unsafe {
                        *out.add(index) = (*out.add(index)).wrapping_mul(31).wrapping_add(*x.add(index))
                    };
                }
            }
            "below" => {
                *self.at::<i32>(self.long(0)) = (*self.at::<i32>(self.long(1)) < self.word(2) as i32).into()
            }
            "late" => {
                let next = |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *self.at::<u32>(self.long(0)) = (0..self.word(1)).fold(1, next);
            }
            "grid_barrier" => {
                let (data, n) = self.elements::<u32>(self.long(0), u32::MAX);
                for _ in 0..self.word(2) {
                    let ring: Vec<u32> = (0..n).map(|index| unsafe { *data.add(index) }).collect();
                    for index in 0..n {
                        unsafe { *data.add(index) = ring[index].wrapping_add(ring[(index + 1) % n]) };
                    }
                }
            }
            "append" => {
                let log = self.at::<u32>(self.long(0));
                *log += 1;
                *self.at::<u32>(self.long(0) + 4 * u64::from(*log)) = self.word(1);
            }
            "countdown" => {
                let left = self.at::<i32>(self.long(1));
                *left -= 1;
                self.set_condition(self.long(0), u32::from(*left > 0));
            }
            "set_condition" => self.set_condition(self.long(0), self.word(1)),
            "set_condition_to_value_at" => self.set_condition(self.long(0), *self.at::<u32>(self.long(1))),
            "gridloom_loop_begin" => {
                *self.at::<u64>(self.long(2)) = 0;
                self.decide(0);
            }
            "gridloom_loop_next" => {
                let state = self.at::<u64>(self.long(2));
                *state += 1;
                self.decide(*state);
            }
            "gridloom_choose" => {
                let value = *self.at::<u32>(self.long(1));
                let runs = (self.word(3)..=self.word(4)).contains(&value);
                *self.at::<u64>(self.long(2)) = u64::from(runs);
                self.set_condition(self.long(0), value);
            }
            "demands_32_threads" => assert_eq!(self.shape.threads(), 32),
            "gridloom_count" => *self.at::<u64>(self.long(0)) += 1,
            "gridloom_timer_start" => *self.at::<u64>(self.long(0) + 8) = nanoseconds(),
            "gridloom_timer_end" => self.stop_timer(nanoseconds()),
            name => panic!("{name} is not simulated"),
        }
    }

    fn interpret(&self) {
        let name = &self.function.name;
        let module = world(|world| world.modules.get(&self.function.module).cloned());
        let Some(Module { text }) = module else { return };
        let bytes = self.buffer();
        // Whatever could be an address may be used.
        for word in bytes.chunks_exact(8) {
            touch(name, u64::from_ne_bytes(word.try_into().unwrap()), 1);
        }
        for (condition, value) in interpreted::run(&text, name, self.shape, &bytes) {
            self.set_condition(condition, value);
        }
    }

    fn stop_timer(&self, end: u64) {
        let word = |index: u64| self.at::<u64>(self.long(0) + 8 * index);
        let (run, start) = (*word(0), *word(1));
        let time = end - start;
        *word(2) += time;
        *word(3) = (*word(3)).max(!time);
        *word(4) = (*word(4)).max(time);
        *word(0) += 1;
        if run < self.long(1) {
            (*word(5 + 2 * run), *word(6 + 2 * run)) = (start, end);
        }
    }

    fn decide(&self, passes: u64) {
        let (value, limit, mode) = (self.long(1), self.long(3), self.word(4));
        if passes >= limit {
            self.set_condition(self.long(0), 0);
        } else if mode != 2 {
            let again = mode == 1 || value == 0 || *self.at::<u32>(value) != 0;
            self.set_condition(self.long(0), u32::from(again));
        }
    }
}

fn load(
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

fn unload(module: CUmodule) -> CUresult {
    world(|world| {
        world.functions.retain(|_, function| function.module != module.addr());
        if world.modules.remove(&module.addr()).is_some() { OK } else { INVALID }
    })
}

fn find(out: *mut CUfunction, module: CUmodule, name: *const c_char) -> CUresult {
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
        // Two kernels of the tests have one name.
        let by_address = text.contains("set_condition(.param .u64 handle, .param .u64 value)");
        let name =
            if name == "set_condition" && by_address { "set_condition_to_value_at".into() } else { name };
        let by_name = params(&name);
        let is_interpreted = by_name.is_none() || interpreted::is_rewritten(&text);
        let params =
            if is_interpreted { interpreted::params(&text, c_name.to_str().unwrap()) } else { by_name };
        let module = module.addr();
        world.functions.insert(number, Function { module, name, c_name, params, is_interpreted, stores });
        unsafe { *out = handle(number) };
        OK
    })
}

fn function_attribute(out: *mut c_int, attribute: CUfunction_attribute, _: CUfunction) -> CUresult {
    let threads = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    unsafe { *out = if attribute == threads { 1024 } else { 0 } };
    OK
}

fn function_name(out: *mut *const c_char, function: CUfunction) -> CUresult {
    world(|world| match world.functions.get(&function.addr()) {
        Some(function) => {
            unsafe { *out = function.c_name.as_ptr() };
            OK
        }
        None => INVALID,
    })
}

fn set_function_attribute(_: CUfunction, _: CUfunction_attribute, _: c_int) -> CUresult {
    OK
}

fn parameter(function: CUfunction, index: usize, out_offset: *mut usize, out_size: *mut usize) -> CUresult {
    let param = world(|world| world.functions.get(&function.addr())?.params.as_ref()?.get(index).copied());
    let Some((offset, size)) = param else { return INVALID };
    unsafe {
        *out_offset = offset;
        *out_size = size;
    }
    OK
}

#[allow(clippy::too_many_arguments, reason = "the driver's signature")]
fn launch(
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
        Some(call) => enqueue(stream, call, &[]),
        None => INVALID,
    }
}

fn launch_with_attributes(
    config: *const CUlaunchConfig,
    function: CUfunction,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let c = unsafe { &*config };
    let grid = [c.gridDimX, c.gridDimY, c.gridDimZ];
    let shape = Shape { grid, block: [c.blockDimX, c.blockDimY, c.blockDimZ], shared: c.sharedMemBytes };
    let attributes = unsafe { std::slice::from_raw_parts(c.attrs, c.numAttrs as usize) };
    world(|world| world.launch_attributes = attributes.iter().map(|attribute| attribute.id).collect());
    match unsafe { Call::new(function.addr(), shape, pointers, extra) } {
        Some(call) => enqueue(c.hStream, call, attributes),
        None => INVALID,
    }
}

/// Has a stream run a kernel, or records it where the stream is captured.
fn enqueue(stream: CUstream, call: Call, attributes: &[CUlaunchAttribute]) -> CUresult {
    let programmatic = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    let early = attributes.iter().any(|attribute| attribute.id == programmatic);
    if !capture::captures(stream) {
        world(|world| {
            if early && !call.waits(world) {
                world.violation(format!("{} starts early on a stream and never waits", call.function.name));
            }
        });
        streams::enqueue(stream, move || call.run());
        return OK;
    }
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
