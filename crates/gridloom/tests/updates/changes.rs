//! A table of changes: a node, what it does, and what it does once a setter has been called.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use gridloom::prelude::*;

use crate::support::GraphKernels;

/// Integers in each buffer.
pub(crate) const LEN: usize = 4;

/// Buffers for a node to work on, and a number for callbacks to add to.
pub(crate) struct Lab {
    pub(crate) kernels: GraphKernels,
    pub(crate) x: Buffer<i32>,
    pub(crate) y: Buffer<i32>,
    called: Arc<AtomicI32>,
}

/// What is in the buffers after a launch, and what callbacks added up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) x: [i32; LEN],
    pub(crate) y: [i32; LEN],
    pub(crate) called: i32,
}

/// What the buffers hold before each launch.
const X: [i32; LEN] = [1, 2, 3, 4];
const Y: [i32; LEN] = [10, 20, 30, 40];

fn outcome(x: [i32; LEN], y: [i32; LEN], called: i32) -> Outcome {
    Outcome { x, y, called }
}

/// Adds its four bytes to the integer whose address comes after them.
unsafe extern "C" fn add_raw(data: *mut c_void) {
    // SAFETY: the data are the 4 bytes and 8 bytes that `raw` made.
    let (amount, address) = unsafe {
        (data.cast::<i32>().read_unaligned(), data.cast::<u8>().add(4).cast::<usize>().read_unaligned())
    };
    let called: *const AtomicI32 = std::ptr::with_exposed_provenance(address);
    // SAFETY: it is the lab's number, which lives until its launches are done.
    unsafe { &*called }.fetch_add(amount, Ordering::SeqCst);
}

impl Lab {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let kernels = GraphKernels::new(device)?;
        let (x, y) = (kernels.buffer(&X)?, kernels.buffer(&Y)?);
        Ok(Lab { kernels, x, y, called: Arc::default() })
    }

    /// Launches once from fresh buffers.
    pub(crate) fn run(&self, executable: &Executable) -> Result<Outcome> {
        self.x.write(&X)?;
        self.y.write(&Y)?;
        self.called.store(0, Ordering::SeqCst);
        executable.launch(&self.kernels.stream)?;
        self.kernels.stream.synchronize()?;
        let four = |buffer: &Buffer<i32>| Ok::<_, Error>(buffer.to_vec()?.try_into().expect("four"));
        Ok(outcome(four(&self.x)?, four(&self.y)?, self.called.load(Ordering::SeqCst)))
    }

    fn adder(&self, amount: i32) -> impl FnMut() + Send + 'static {
        let called = self.called.clone();
        move || {
            called.fetch_add(amount, Ordering::SeqCst);
        }
    }

    fn raw(&self, amount: i32) -> Vec<u8> {
        let address = Arc::as_ptr(&self.called).expose_provenance();
        [&amount.to_ne_bytes()[..], &address.to_ne_bytes()].concat()
    }
}

/// One way to change a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Arguments,
    OneArgument,
    ArgumentBuffer,
    Configuration,
    Function,
    FillValue,
    FillElementSize,
    FillDestination,
    CopySize,
    CopySourceBuffer,
    CopyDestination,
    CopyFromHostToDevice,
    CopyFromDeviceToHost,
    Closure,
    RawFunction,
    ClosureToRaw,
}

pub(crate) const ALL: [Change; 16] = [
    Change::Arguments,
    Change::OneArgument,
    Change::ArgumentBuffer,
    Change::Configuration,
    Change::Function,
    Change::FillValue,
    Change::FillElementSize,
    Change::FillDestination,
    Change::CopySize,
    Change::CopySourceBuffer,
    Change::CopyDestination,
    Change::CopyFromHostToDevice,
    Change::CopyFromDeviceToHost,
    Change::Closure,
    Change::RawFunction,
    Change::ClosureToRaw,
];

/// A node that can be changed: of a definition, or of an executable.
pub(crate) trait Changed {
    fn change(&self, change: Change, lab: &Lab) -> Result<()>;
}

macro_rules! changed {
    ($node:ty) => {
        impl Changed for $node {
            fn change(&self, change: Change, lab: &Lab) -> Result<()> {
                let Lab { kernels, x, y, .. } = lab;
                let copy = |dst: &BufferSlice<i32>, src: &BufferSlice<i32>| self.set_memcpy(dst, src);
                match change {
                    Change::Arguments => self.set_args(&kernels.increase, (x, 1, 100)),
                    Change::OneArgument => self.set_arg(2, 100i32),
                    Change::ArgumentBuffer => self.set_args(&kernels.increase, (y, LEN as u32, 5)),
                    Change::Configuration => self.set_config(LaunchConfig::new(2, 2)),
                    Change::Function => self.set_kernel(&kernels.affine, (x, y, 2, 2, 1)),
                    Change::FillValue => self.set_memset(&x.slice(..2)?, 8i32),
                    Change::FillElementSize => self.set_memset(&x.slice(..2)?, 1u8),
                    Change::FillDestination => self.set_memset(&y.slice(1..)?, 7i32),
                    Change::CopySize => copy(&x.slice(..3)?, &y.slice(..3)?),
                    Change::CopySourceBuffer => copy(&x.slice(..2)?, &x.slice(2..)?),
                    Change::CopyDestination => copy(&x.slice(2..)?, &y.slice(..2)?),
                    Change::CopyFromHostToDevice => copy(&x.slice(..2)?, &y.slice(..2)?),
                    Change::CopyFromDeviceToHost => self.set_memcpy(&x.slice(..2)?, &[-1, -2]),
                    Change::Closure => self.set_callback(lab.adder(100)),
                    // SAFETY: the function takes these bytes, on any thread.
                    Change::RawFunction | Change::ClosureToRaw => unsafe {
                        self.set_callback_raw(add_raw, &lab.raw(100))
                    },
                }
            }
        }
    };
}
changed!(Node);
changed!(ExecutableNode<'_>);

impl Change {
    /// Adds the node as it is at first.
    pub(crate) fn add(self, lab: &Lab, place: &impl GraphOps) -> Result<Node> {
        let Lab { kernels, x, y, .. } = lab;
        let two = LaunchConfig::new(1, 2);
        let copy = |dst: &BufferSlice<i32>, src: &BufferSlice<i32>| place.memcpy(dst, src);
        match self {
            Change::Arguments | Change::OneArgument | Change::ArgumentBuffer | Change::Configuration => {
                place.launch(&kernels.increase, two, (x, LEN as u32, 5))
            }
            Change::Function => place.launch(&kernels.increase, two, (x, 2, 5)),
            Change::FillValue | Change::FillElementSize | Change::FillDestination => {
                place.memset(&x.slice(..2)?, 7i32)
            }
            Change::CopySize | Change::CopySourceBuffer | Change::CopyDestination => {
                copy(&x.slice(..2)?, &y.slice(..2)?)
            }
            Change::CopyFromHostToDevice => place.memcpy(&x.slice(..2)?, &[-1, -2]),
            Change::CopyFromDeviceToHost => copy(&x.slice(..2)?, &y.slice(2..)?),
            Change::Closure | Change::ClosureToRaw => place.callback(lab.adder(1)),
            // SAFETY: the function takes these bytes, on any thread.
            Change::RawFunction => unsafe { place.callback_raw(add_raw, &lab.raw(1)) },
        }
    }

    /// Changes it, in a definition or an executable.
    pub(crate) fn make(self, lab: &Lab, node: &impl Changed) -> Result<()> {
        node.change(self, lab)
    }

    /// Returns what a launch leaves behind before and after the change.
    pub(crate) fn outcomes(self) -> [Outcome; 2] {
        // Two threads increase two integers, whatever `n` says.
        let increased = outcome([6, 7, 3, 4], Y, 0);
        let copied = outcome([10, 20, 3, 4], Y, 0);
        let filled = outcome([7, 7, 3, 4], Y, 0);
        let called = [outcome(X, Y, 1), outcome(X, Y, 100)];
        match self {
            Change::Arguments => [increased, outcome([101, 2, 3, 4], Y, 0)],
            Change::OneArgument => [increased, outcome([101, 102, 3, 4], Y, 0)],
            Change::ArgumentBuffer => [increased, outcome(X, [15, 25, 30, 40], 0)],
            Change::Configuration => [increased, outcome([6, 7, 8, 9], Y, 0)],
            Change::Function => [increased, outcome([21, 41, 3, 4], Y, 0)],
            Change::FillValue => [filled, outcome([8, 8, 3, 4], Y, 0)],
            Change::FillElementSize => [filled, outcome([0x0101_0101, 0x0101_0101, 3, 4], Y, 0)],
            Change::FillDestination => [filled, outcome(X, [10, 7, 7, 7], 0)],
            Change::CopySize => [copied, outcome([10, 20, 30, 4], Y, 0)],
            Change::CopySourceBuffer => [copied, outcome([3, 4, 3, 4], Y, 0)],
            Change::CopyDestination => [copied, outcome([1, 2, 10, 20], Y, 0)],
            Change::CopyFromHostToDevice => [outcome([-1, -2, 3, 4], Y, 0), copied],
            Change::CopyFromDeviceToHost => [outcome([30, 40, 3, 4], Y, 0), outcome([-1, -2, 3, 4], Y, 0)],
            Change::Closure | Change::RawFunction | Change::ClosureToRaw => called,
        }
    }
}
