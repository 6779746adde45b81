//! Callable graphs: a function of device arrays that builds its graph at the first call and replays it at every later one.

mod cache;
mod eager;
mod operands;
mod params;
mod plan;
mod recipe;
mod sequence;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use gridloom_core as core;
use gridloom_core::backend::{self, AsDevice};
use gridloom_core::executable::InstantiateOptions;
use gridloom_core::memory::Base;
use parking_lot::{Mutex, MutexGuard};

use cache::{Cache, Entry, Given, Patched, key};
pub use operands::{CallArg, CallArguments, CallMemory, LaunchShape, per_element, shape_of};
// What the traits hand on. Users neither make nor take apart any of it.
#[doc(hidden)]
pub use operands::{MemorySlot, Slot};
pub use params::{Bind, BindAll, Length, Param, Scalar, Shape, Spec, Specs};
#[doc(hidden)]
pub use params::{Binding, Bindings, Origin, ParamId};
pub use sequence::{Loop, Sections, Sequence};

use crate::{ConditionalMode, Device, Error, ErrorKind, Graph, Optimizations, Result, Stream};

/// How deep callables may call each other.
pub(crate) const MAX_INLINE_DEPTH: usize = 32;

/// How a callable works.
#[derive(Clone, Debug)]
#[non_exhaustive]
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

impl CallableOptions {
    /// The default options, to be changed with the methods below.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many graphs are kept at most.
    #[must_use]
    pub fn max_graphs(mut self, max_graphs: usize) -> Self {
        self.max_graphs = max_graphs;
        self
    }

    /// Sets how many executables of one graph there are at most.
    #[must_use]
    pub fn max_instances(mut self, max_instances: usize) -> Self {
        self.max_instances = max_instances;
        self
    }

    /// Sets whether to use graphs at all.
    #[must_use]
    pub fn graphs(mut self, graphs: bool) -> Self {
        self.graphs = graphs;
        self
    }

    /// Sets how conditionals are run.
    #[must_use]
    pub fn conditional_mode(mut self, conditional_mode: ConditionalMode) -> Self {
        self.conditional_mode = conditional_mode;
        self
    }
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
#[non_exhaustive]
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

impl CallableStats {
    /// Counts a call that succeeded.
    #[inline]
    fn count_call(&mut self, built: bool, patched: Patched) {
        self.calls += 1;
        self.replays += u64::from(!built);
        self.last_replayed = !built;
        self.patched_nodes += patched.nodes;
        self.bytes_uploaded += patched.bytes;
    }
}

type Build<S> = dyn Fn(&Sequence, S) -> Result<()> + Send + Sync;

struct Inner<S> {
    device: Arc<dyn backend::Device>,
    device_id: backend::DeviceId,
    options: CallableOptions,
    build: Box<Build<S>>,
    /// Held while the closure runs, so that two first calls build once. No call is made while it is held: `Describing` refuses those.
    building: Mutex<()>,
    cache: Mutex<Cache>,
}

/// A function of device arrays that turns itself into a graph.
///
/// It is made from a closure over typed parameters: [`Param<[T]>`](Param) for arrays, [`Param<T>`](Param) for one value in device memory, [`Scalar<T>`](Scalar) for
/// values, [`Shape`] for what decides the topology. The first call builds the graph; later calls give other arguments to the nodes that need them,
/// also inside loops and branches, and launch it.
///
/// Calls may come from any thread and go to any stream of the device. A call whose graph is still running on another stream uses a further executable of
/// it, up to [`CallableOptions::max_instances`]; then it waits its turn on the device. An executable keeps the arrays of its latest call, until a call with
/// others, [`reset`](Callable::reset), or many calls that did not need it.
///
/// ```
/// use gridloom::prelude::*;
/// use gridloom::{Module, demo_kernels};
///
/// # fn main() -> Result<()> {
/// let device = Device::cpu()?;
/// let module = device.load_ptx(demo_kernels::HEAT)?;
/// // SAFETY: heat_step reads `n` floats from its second argument and writes `n` to its first.
/// let step = unsafe { module.kernel::<(PtrMut<f32>, Ptr<f32>, Len<u32>, f32)>("heat_step")? };
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
        device: &Device,
        closure: impl Fn(&Sequence, S) -> Result<R> + Send + Sync + 'static,
    ) -> Self {
        Callable::with_options(device, CallableOptions::default(), closure)
    }

    /// A callable with these options.
    pub fn with_options<R>(
        device: &Device,
        options: CallableOptions,
        closure: impl Fn(&Sequence, S) -> Result<R> + Send + Sync + 'static,
    ) -> Self {
        Callable {
            inner: Arc::new(Inner {
                device: device.as_device().clone(),
                device_id: device.as_device().id(),
                options,
                build: Box::new(move |sequence, params| closure(sequence, params).map(drop)),
                building: Mutex::default(),
                cache: Mutex::default(),
            }),
        }
    }

    /// Calls it: enqueues its work, with these arguments, on the stream.
    pub fn call(&self, stream: &Stream, args: impl BindAll<S>) -> Result<()> {
        Describing::refuse_call()?;
        let (inner, stream) = (&*self.inner, &stream.0);
        if inner.options.graphs && stream.device_id() == inner.device_id {
            // Declared before the lock is taken, and so dropped after it is released.
            let mut given = Given::default();
            let replayed = args
                .compare(|compare| inner.replay(stream, compare, |param| args.bind_one(param), &mut given));
            if let Some(Some(outcome)) = replayed {
                return outcome;
            }
        }
        inner.call(stream, args.bind_all()?)
    }

    /// What it has done so far.
    pub fn stats(&self) -> CallableStats {
        let cache = self.inner.cache.lock();
        let mut stats = cache.stats.clone();
        stats.graphs = cache.entries.len();
        stats.instances = cache.entries.iter().map(Entry::instances).sum();
        let latest = cache.entries.iter().max_by_key(|entry| entry.used());
        if let Some(latest) = latest {
            let report = latest.latest().executable.report();
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
        drop(forgotten);
    }

    /// The graph used last, with the arguments of that call, for pictures and inspection. `None` before the first call, and where graphs are turned off.
    pub fn graph(&self) -> Option<Graph> {
        let cache = self.inner.cache.lock();
        let latest = cache.entries.iter().max_by_key(|entry| entry.used())?;
        Some(Graph(latest.latest().executable.graph()))
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
    /// A call of the graph that was called last, on the same stream: only what differs is looked at. `None` where it is another one, and nothing was done.
    fn replay(
        &self,
        stream: &core::Stream,
        compare: &dyn Fn(&[Binding]) -> u64,
        bind: impl Fn(usize) -> Result<Binding>,
        given: &mut Given,
    ) -> Option<Result<()>> {
        let mut cache = self.cache.lock();
        let now = cache.tick();
        let Cache { entries, stats, latest, .. } = &mut *cache;
        let (plan, instance) = entries.get_mut(*latest)?.again(stream, now)?;
        let changed = compare(instance.bindings());
        if !plan.serves(changed) {
            return None;
        }
        Some(instance.call(plan, stream, changed, bind, given).map(|patched| {
            stats.count_call(false, patched);
        }))
    }

    fn call(&self, stream: &core::Stream, bindings: Bindings) -> Result<()> {
        self.check(stream, &bindings)?;
        if !self.options.graphs {
            return self.call_eagerly(stream, &bindings);
        }
        let key = key(&bindings);
        // Declared before the lock is taken, and so dropped after it is released.
        let mut given = Given::default();
        let (mut cache, built, evicted) = self.ensure_built(&key, &bindings)?;
        let now = cache.tick();
        let entry = cache.find(&key).expect("the cache has been locked since it was found there");
        let options = self.instantiate_options()?;
        let chosen = entry.choose(stream, &bindings, self.options.max_instances, &options, now)?;
        let (plan, instance) = entry.instance(chosen);
        let changed = instance.changed(&bindings);
        let patched =
            instance.call(plan, stream, changed, |param| Ok(bindings[param].clone()), &mut given)?;
        let idle = entry.take_idle(now);
        cache.stats.count_call(built, patched);
        drop(cache);
        drop((evicted, idle));
        Ok(())
    }

    fn instantiate_options(&self) -> Result<InstantiateOptions> {
        Ok(InstantiateOptions {
            conditional_mode: self.options.conditional_mode,
            optimizer: crate::optimize::optimizer(Optimizations::NONE)?,
            ..InstantiateOptions::default()
        })
    }

    fn check(&self, stream: &core::Stream, bindings: &[Binding]) -> Result<()> {
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

    /// The cache, locked, with a graph for this key in it; whether that was built now; and the graph that had to go for it, to be dropped
    /// when the lock is released.
    fn ensure_built(&self, key: &cache::Key, bindings: &Bindings) -> Result<Found<'_>> {
        let cache = self.cache.lock();
        if cache.contains(key) {
            return Ok((cache, false, None));
        }
        drop(cache);
        let describing = Describing::start();
        let _building = self.building.lock();
        // Another thread may have built it while this one waited.
        let cache = self.cache.lock();
        if cache.contains(key) {
            return Ok((cache, false, None));
        }
        drop(cache);
        let (graph, recipes) = self.describe(bindings)?;
        drop(describing);
        let entry = Entry::new(key.clone(), &graph, recipes, bindings, &self.instantiate_options()?)?;
        let mut cache = self.cache.lock();
        cache.stats.builds += 1;
        let evicted = cache.insert(entry, self.options.max_graphs);
        Ok((cache, true, evicted))
    }

    /// Runs the closure.
    fn describe(&self, bindings: &Bindings) -> Result<(core::Graph, Vec<recipe::Recipe>)> {
        sequence::build(&self.device, bindings, |sequence, origin| {
            (self.build)(sequence, S::of(origin, bindings))
        })
    }

    fn call_eagerly(&self, stream: &core::Stream, bindings: &Bindings) -> Result<()> {
        let describing = Describing::start();
        let (graph, _) = self.describe(bindings)?;
        drop(describing);
        if stream.is_capturing() {
            // What is recorded is run later, and its loops with it.
            graph.instantiate_with(&self.instantiate_options()?)?.launch(stream)?;
        } else {
            eager::run(&graph, stream)?;
        }
        let stats = &mut self.cache.lock().stats;
        stats.calls += 1;
        stats.builds += 1;
        stats.last_replayed = false;
        stats.hosted = Some("graphs are turned off for this callable".into());
        Ok(())
    }
}

/// The locked cache, whether a graph was built, and the graph that had to go.
type Found<'a> = (MutexGuard<'a, Cache>, bool, Option<Entry>);

thread_local! {
    static DESCRIBING: Cell<bool> = const { Cell::new(false) };
}

/// While it exists, a closure describes work on this thread, and calls are refused: they would run once, at some first call, which nobody means, and a callable
/// that calls itself would not end.
struct Describing;

impl Describing {
    /// Only where calls are not refused.
    fn start() -> Self {
        DESCRIBING.set(true);
        Describing
    }

    fn refuse_call() -> Result<()> {
        if DESCRIBING.get() {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "a callable is called on a stream by the closure of a callable, which only describes work; use Sequence::call there",
            ));
        }
        Ok(())
    }
}

impl Drop for Describing {
    fn drop(&mut self) {
        DESCRIBING.set(false);
    }
}

impl<S> Clone for Callable<S> {
    fn clone(&self) -> Self {
        Callable { inner: self.inner.clone() }
    }
}

impl<S> fmt::Debug for Callable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Callable({:?})", self.inner.cache.lock().stats)
    }
}
