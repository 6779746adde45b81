//! The objects that all threads of a round share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use gridloom::prelude::*;
use parking_lot::Mutex;

use super::choices::Choices;
use super::token::{Ledger, Token};
use crate::support::{Bench, GraphKernels, is_cpu};

/// Handles of one kind that threads take from, put to and throw out of.
pub(crate) struct Pool<T> {
    pub(crate) name: &'static str,
    room: usize,
    items: Mutex<Option<Vec<T>>>,
}

impl<T> Pool<T> {
    fn new(name: &'static str, room: usize) -> Self {
        Pool { name, room, items: Mutex::new(Some(Vec::new())) }
    }

    /// Puts one in. Where there is no room another one goes, which is dropped without the lock.
    pub(crate) fn put(&self, choices: &mut Choices, item: T) {
        let place = choices.below(self.room);
        let _out = match &mut *self.items.lock() {
            None => Some(item),
            Some(items) if items.len() < self.room => {
                items.push(item);
                None
            }
            Some(items) => Some(std::mem::replace(&mut items[place], item)),
        };
    }

    /// Takes one out.
    pub(crate) fn take(&self, choices: &mut Choices) -> Option<T> {
        let place = choices.below(self.room);
        let mut items = self.items.lock();
        let items = items.as_mut().filter(|items| !items.is_empty())?;
        let place = place % items.len();
        Some(items.swap_remove(place))
    }

    /// Drops everything, now and later. A drop may panic as the attack means it to.
    fn close(&self) {
        let items = self.items.lock().take();
        for item in items.into_iter().flatten() {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(item)));
        }
    }
}

impl<T: Clone> Pool<T> {
    pub(crate) fn get(&self, choices: &mut Choices) -> Option<T> {
        let place = choices.below(self.room);
        let items = self.items.lock();
        let items = items.as_ref().filter(|items| !items.is_empty())?;
        Some(items[place % items.len()].clone())
    }
}

/// Kernels that only some devices run: they print, fail, or use variables of their module.
pub(crate) struct HostileKernels {
    pub(crate) hello: Kernel<()>,
    /// Traps.
    pub(crate) fail_trap: Kernel<()>,
    /// Adds 1 to the variable `attack_counter` of the module.
    pub(crate) count: Kernel<()>,
}

/// A kernel in Rust: `x[i] += by`.
#[gridloom::kernel]
pub(crate) fn rust_increase(x: gridloom::Out<i32>, by: i32) {
    if let Some((_, x)) = x.mine() {
        *x = x.wrapping_add(by);
    }
}

pub(crate) type Work = Callable<(Param<[i32]>, Param<i32>, Scalar<i32>, Shape)>;
pub(crate) type Adder = Callable<(Param<[i32]>, Scalar<i32>)>;

/// Everything that the threads of a round share.
pub(crate) struct World {
    pub(crate) device: Device,
    /// Another device, whose objects must be refused by those of the first.
    pub(crate) other: Option<Device>,
    pub(crate) kernels: GraphKernels,
    pub(crate) hostile: Option<HostileKernels>,
    pub(crate) ledger: Arc<Ledger>,
    /// Adds a number to an array: one callable for all threads, each with arrays of its own.
    pub(crate) adder: Adder,
    pub(crate) streams: Pool<Stream>,
    pub(crate) events: Pool<Event>,
    pub(crate) buffers: Pool<Buffer<i32>>,
    pub(crate) slices: Pool<BufferSlice<i32>>,
    pub(crate) modules: Pool<Module>,
    pub(crate) graphs: Pool<Graph>,
    pub(crate) nodes: Pool<Node>,
    pub(crate) allocs: Pool<AllocNode<i32>>,
    pub(crate) conditions: Pool<Condition>,
    pub(crate) executables: Pool<Arc<Executable>>,
    pub(crate) captures: Pool<Arc<Capture>>,
    pub(crate) callables: Pool<Work>,
    /// Calls of callbacks, all together.
    pub(crate) calls: AtomicUsize,
    /// Set when a thread found something, so that the others stop.
    pub(crate) failed: AtomicBool,
}

const HOSTILE: &str = include_str!("hostile.ptx");

impl World {
    /// `print` is where the print sink of the device finds the world.
    pub(crate) fn new(
        device: &Device,
        other: Option<Device>,
        print: &Mutex<Weak<World>>,
    ) -> Result<Arc<Self>> {
        let kernels = GraphKernels::new(device)?;
        let hostile = match is_cpu(device) {
            true => {
                let bench = Bench::new(device, HOSTILE)?;
                Some(HostileKernels {
                    hello: bench.kernel("hello")?,
                    fail_trap: bench.kernel("fail_trap")?,
                    count: bench.kernel("count")?,
                })
            }
            false => None,
        };
        let ledger: Arc<Ledger> = Arc::default();
        let increase = kernels.increase.clone();
        let world = Arc::new(World {
            device: device.clone(),
            other,
            adder: Callable::new(device, move |g, (x, by): (Param<[i32]>, Scalar<i32>)| {
                g.launch(&increase, per_element(&x), (&x, x.len(), &by))
            }),
            kernels,
            hostile,
            ledger,
            streams: Pool::new("stream", 4),
            events: Pool::new("event", 4),
            buffers: Pool::new("buffer", 8),
            slices: Pool::new("slice", 6),
            modules: Pool::new("module", 2),
            graphs: Pool::new("graph", 8),
            nodes: Pool::new("node", 24),
            allocs: Pool::new("alloc", 6),
            conditions: Pool::new("condition", 6),
            executables: Pool::new("executable", 5),
            captures: Pool::new("capture", 5),
            callables: Pool::new("callable", 3),
            calls: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        });
        *print.lock() = Arc::downgrade(&world);
        Ok(world)
    }

    /// Lets go of everything shared, and takes nothing any more.
    pub(crate) fn close(&self) {
        self.captures.close();
        self.callables.close();
        self.executables.close();
        self.nodes.close();
        self.allocs.close();
        self.conditions.close();
        self.graphs.close();
        self.slices.close();
        self.buffers.close();
        self.modules.close();
        self.events.close();
        self.streams.close();
        self.adder.reset().expect("this is no callback");
    }

    /// A callback that only counts.
    pub(crate) fn counter(self: &Arc<Self>, count: &Arc<AtomicUsize>) -> impl FnMut() + Send + 'static {
        let (token, count) = (Token::quiet(self), count.clone());
        move || {
            let _ = &token;
            count.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }
}
