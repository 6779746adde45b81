//! Callable graphs: a function of device arrays that builds its graph at the first call and replays it at every later one.

mod cache;
mod eager;
mod params;
mod sequence;

use std::fmt;
use std::sync::Arc;

use gridloom_core::backend::{self, AsDevice};
use gridloom_core::memory::Base;
use parking_lot::{Mutex, ReentrantMutex};

use cache::{Cache, Entry, key};
pub use params::{Bind, BindAll, Binding, Bindings, Length, Param, Scalar, Shape, Spec, Specs};
pub use sequence::{
    CallArg, CallArguments, CallMemory, LaunchShape, Loop, MemorySlot, Sections, Sequence, Slot, per_element,
    shape_of,
};

use crate::{ConditionalMode, Error, ErrorKind, Graph, InstantiateOptions, Result, Stream};

/// How deep callables may call each other.
pub(crate) const MAX_INLINE_DEPTH: usize = 32;

/// How a callable works.
#[derive(Clone, Debug)]
pub struct CallableOptions {
    /// Most graphs kept at once; there is more than one only where `Shape` parameters take several values.
    pub max_graphs: usize,
    /// Most executables of one graph, for calls in flight on several streams at once.
    pub max_instances: usize,
    /// Whether to use graphs at all. Without, every operation is enqueued on its own and the host drives loops: slow, and easy to debug.
    pub graphs: bool,
    /// How conditionals are run.
    pub conditional_mode: ConditionalMode,
}

impl Default for CallableOptions {
    /// 16 graphs, 4 executables each. The environment variable `GRIDLOOM_CALLABLE_GRAPHS=0` turns graphs off.
    fn default() -> Self {
        let graphs = std::env::var_os("GRIDLOOM_CALLABLE_GRAPHS").is_none_or(|value| value != "0");
        CallableOptions { max_graphs: 16, max_instances: 4, graphs, conditional_mode: ConditionalMode::Auto }
    }
}

/// What a callable has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallableStats {
    /// Times the closure was run to build a graph.
    pub builds: u64,
    /// Calls that succeeded.
    pub calls: u64,
    /// Calls that replayed a graph built before.
    pub replays: u64,
    /// Nodes that were given other arguments, in all calls together.
    pub patched_nodes: u64,
    /// Bytes of kernel arguments in those nodes.
    pub bytes_uploaded: u64,
    /// Graphs in the cache now.
    pub graphs: usize,
    /// Executables in the cache now.
    pub instances: usize,
    /// Whether the latest call replayed.
    pub last_replayed: bool,
    /// Why conditionals of the latest call were run by the host, where they were.
    pub hosted: Option<String>,
}

type Build<S> = dyn Fn(&Sequence, S) -> Result<()> + Send + Sync;

struct Inner<S> {
    device: Arc<dyn backend::Device>,
    options: CallableOptions,
    build: Box<Build<S>>,
    /// Held while the closure runs, so that two first calls build once. Reentrant, so that a closure that calls its own callable is an error and
    /// not a deadlock.
    building: ReentrantMutex<std::cell::Cell<bool>>,
    cache: Mutex<Cache>,
    stats: Mutex<CallableStats>,
}

/// A function of device arrays that turns itself into a graph.
///
/// It is made from a closure over typed parameters: [`Param<[T]>`](Param) for arrays, [`Param<T>`](Param) for one value in device memory, [`Scalar<T>`](Scalar) for
/// values, [`Shape`] for what decides the topology. The first call builds the graph; later calls give other arguments to the nodes that need them,
/// also inside loops and branches, and launch it.
///
/// ```
/// use gridloom::prelude::*;
/// use gridloom::{Module, demo_kernels};
///
/// # fn main() -> Result<()> {
/// let device = Device::cpu()?;
/// let module = device.load_ptx(demo_kernels::HEAT)?;
/// // SAFETY: heat_step reads `n` floats from its second argument and writes `n` to its first.
/// let step = unsafe { module.kernel::<(PtrMut<f32>, Ptr<f32>, u32, f32)>("heat_step")? };
///
/// let relax = Callable::new(&device, move |g, (x, y, alpha): (Param<[f32]>, Param<[f32]>, Scalar<f32>)| {
///     g.repeat(10, |body| {
///         body.launch(&step, per_element(&x), (&y, &x, x.len(), &alpha))?;
///         body.memcpy(&x, &y)
///     })
/// });
///
/// let stream = device.stream()?;
/// for len in [8, 1000] {
///     let (x, y) = (device.buffer_from(&vec![1.0; len])?, device.alloc(len)?);
///     relax.call(&stream, (&x, &y, 0.4))?;
///     assert_eq!(x.to_vec()?, vec![1.0; len]);
/// }
/// assert_eq!(relax.stats().builds, 1);
/// # Ok(())
/// # }
/// ```
pub struct Callable<S> {
    inner: Arc<Inner<S>>,
}

impl<S: Specs> Callable<S> {
    /// A callable for a device. Nothing is built until the first call.
    pub fn new<R>(
        device: &impl AsDevice,
        closure: impl Fn(&Sequence, S) -> Result<R> + Send + Sync + 'static,
    ) -> Self {
        Callable::with_options(device, CallableOptions::default(), closure)
    }

    /// A callable with these options.
    pub fn with_options<R>(
        device: &impl AsDevice,
        options: CallableOptions,
        closure: impl Fn(&Sequence, S) -> Result<R> + Send + Sync + 'static,
    ) -> Self {
        Callable {
            inner: Arc::new(Inner {
                device: device.as_device().clone(),
                options,
                build: Box::new(move |sequence, params| closure(sequence, params).map(drop)),
                building: ReentrantMutex::default(),
                cache: Mutex::default(),
                stats: Mutex::default(),
            }),
        }
    }

    /// Calls it: enqueues its work, with these arguments, on the stream.
    pub fn call(&self, stream: &Stream, args: impl BindAll<S>) -> Result<()> {
        let inner = &*self.inner;
        let bindings = args.bind_all()?;
        inner.check(stream, &bindings)?;
        if !inner.options.graphs {
            return inner.call_eagerly(stream, &bindings);
        }
        let key = key(&bindings);
        let built = inner.ensure_built(&key, &bindings)?;
        let mut cache = inner.cache.lock();
        let now = cache.tick();
        let Some(entry) = cache.find(&key) else {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "the callable was reset by another thread during the call; call it again",
            ));
        };
        let options = inner.instantiate_options();
        let chosen =
            entry.choose(&inner.device, stream, &bindings, inner.options.max_instances, &options, now)?;
        let (recipes, instances) = entry.parts();
        let instance = &mut instances[chosen];
        let patched = Entry::patch(instance, recipes, &bindings)?;
        instance.launch(stream)?;
        drop(cache);

        let mut stats = inner.stats.lock();
        stats.calls += 1;
        stats.replays += u64::from(!built);
        stats.last_replayed = !built;
        stats.patched_nodes += patched.nodes;
        stats.bytes_uploaded += patched.bytes;
        Ok(())
    }

    /// What it has done so far.
    pub fn stats(&self) -> CallableStats {
        let mut stats = self.inner.stats.lock().clone();
        let cache = self.inner.cache.lock();
        stats.graphs = cache.entries.len();
        stats.instances = cache.entries.iter().map(Entry::instances).sum();
        let latest = cache.entries.iter().max_by_key(|entry| entry.used());
        if let Some(latest) = latest {
            let report = latest.first().executable.report();
            stats.hosted = report
                .conditionals
                .into_iter()
                .find(|conditional| !conditional.native)
                .map(|conditional| conditional.reason);
        }
        stats
    }

    /// Forgets every graph and all counts. Launches in flight go on.
    pub fn reset(&self) {
        let forgotten = std::mem::take(&mut *self.inner.cache.lock());
        *self.inner.stats.lock() = CallableStats::default();
        drop(forgotten);
    }

    /// The graph used last, with the arguments it has now, for pictures and inspection. `None` before the first call.
    pub fn graph(&self) -> Option<Graph> {
        let cache = self.inner.cache.lock();
        let latest = cache.entries.iter().max_by_key(|entry| entry.used())?;
        Some(Graph::from_definition(&self.inner.device, latest.first().executable.definition()))
    }

    /// Writes what it does into another callable's sequence.
    pub(crate) fn inline(&self, sequence: &Sequence, params: S) -> Result<()> {
        if sequence.device_id() != self.inner.device.id() {
            return Err(Error::new(ErrorKind::WrongDevice, "the callable to call is for another device"));
        }
        (self.inner.build)(sequence, params)
    }
}

impl<S: Specs> Inner<S> {
    fn instantiate_options(&self) -> InstantiateOptions {
        InstantiateOptions {
            conditional_mode: self.options.conditional_mode,
            ..InstantiateOptions::default()
        }
    }

    fn check(&self, stream: &Stream, bindings: &[Binding]) -> Result<()> {
        if stream.device().id() != self.device.id() {
            return Err(Error::new(
                ErrorKind::WrongDevice,
                "the stream belongs to another device than the callable",
            ));
        }
        for (index, binding) in bindings.iter().enumerate() {
            if let Binding::Memory(region) = binding
                && let Base::Allocation(allocation) = &region.base
                && allocation.device() != self.device.id()
            {
                return Err(Error::new(
                    ErrorKind::WrongDevice,
                    format!(
                        "argument {index} is memory of another device than the callable ({})",
                        self.device.name()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Builds the graph for this key where there is none, and says whether it did.
    fn ensure_built(&self, key: &cache::Key, bindings: &Bindings) -> Result<bool> {
        if self.cache.lock().find(key).is_some() {
            return Ok(false);
        }
        let building = self.building.lock();
        if building.get() {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "the closure of a callable calls that very callable; use Sequence::call for another one",
            ));
        }
        // Another thread may have built it while this one waited.
        if self.cache.lock().find(key).is_some() {
            return Ok(false);
        }
        building.set(true);
        let built =
            sequence::build(&self.device, bindings, |sequence| (self.build)(sequence, S::of(bindings)));
        building.set(false);
        let (graph, recipes) = built?;
        let entry = Entry::new(key.clone(), &graph, recipes, bindings.clone(), &self.instantiate_options())?;
        let evicted = self.cache.lock().insert(entry, self.options.max_graphs);
        self.stats.lock().builds += 1;
        drop(evicted);
        Ok(true)
    }

    fn call_eagerly(&self, stream: &Stream, bindings: &Bindings) -> Result<()> {
        let (graph, _) =
            sequence::build(&self.device, bindings, |sequence| (self.build)(sequence, S::of(bindings)))?;
        eager::run(&graph, stream)?;
        let mut stats = self.stats.lock();
        stats.calls += 1;
        stats.builds += 1;
        stats.last_replayed = false;
        stats.hosted = Some("graphs are turned off for this callable".into());
        Ok(())
    }
}

impl<S> Clone for Callable<S> {
    fn clone(&self) -> Self {
        Callable { inner: self.inner.clone() }
    }
}

impl<S> fmt::Debug for Callable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Callable({:?})", self.inner.stats.lock())
    }
}
