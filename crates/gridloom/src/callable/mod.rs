//! Callables: functions of device arrays that build a graph at the first call and replay it at
//! every later one.

mod cache;
mod counters;
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
use gridloom_core::user_code;
use parking_lot::{Mutex, MutexGuard};

use cache::{Cache, Entry, Given, key};
pub use counters::CallableStats;
use counters::Counters;
pub use operands::{CallArg, CallArguments, CallMemory, LaunchShape, per_element, shape_of};
use plan::{ComputedShapes, Plan};
// Types in the signatures of the traits above. Users neither create nor inspect them.
#[doc(hidden)]
pub use operands::{MemorySlot, Slot};
pub use params::{Bind, BindAll, Length, Param, Scalar, Shape, Spec, Specs};
#[doc(hidden)]
pub use params::{Binding, Bindings, Origin, ParamId};
pub use sequence::{Loop, Sections, Sequence};

use crate::{ConditionalMode, Device, Error, ErrorKind, Graph, Optimize, Result, Stream};

/// The greatest depth to which callables may call each other.
pub(crate) const MAX_INLINE_DEPTH: usize = 32;

/// Options of a callable.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallableOptions {
    /// The most graphs kept at once. There is more than one only if `Shape` parameters take several
    /// values.
    pub max_graphs: usize,
    /// The most executables of one graph, for calls in flight on several streams at once.
    pub max_instances: usize,
    /// Whether to use graphs at all. Without graphs, every operation is enqueued on its own and the
    /// host drives loops. That is slow and easy to debug.
    pub graphs: bool,
    /// How conditionals are run.
    pub conditional_mode: ConditionalMode,
}

impl CallableOptions {
    /// Returns the default options. The methods below change them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most graphs kept at once.
    #[must_use]
    pub fn max_graphs(mut self, max_graphs: usize) -> Self {
        self.max_graphs = max_graphs;
        self
    }

    /// Sets the most executables of one graph.
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
    /// Returns options for 16 graphs with 4 executables each. The environment variable
    /// `GRIDLOOM_CALLABLE_GRAPHS=0` turns graphs off.
    fn default() -> Self {
        let graphs = std::env::var_os("GRIDLOOM_CALLABLE_GRAPHS").is_none_or(|value| value != "0");
        CallableOptions { max_graphs: 16, max_instances: 4, graphs, conditional_mode: ConditionalMode::Auto }
    }
}

type Build<S> = dyn Fn(&Sequence, S) -> Result<()> + Send + Sync;

struct Inner<S> {
    device: Arc<dyn backend::Device>,
    device_id: backend::DeviceId,
    options: CallableOptions,
    build: Box<Build<S>>,
    /// Locked while the closure runs, so that two concurrent first calls build one graph.
    /// [`BuildGuard`] refuses calls from the closure, so the lock is never taken twice by one
    /// thread.
    building: Mutex<()>,
    cache: Mutex<Cache>,
    counters: Counters,
}

/// A function of device arrays that turns itself into a graph.
///
/// It is made from a closure over typed parameters: [`Param<[T]>`](Param) for arrays,
/// [`Param<T>`](Param) for one value in device memory, [`Scalar<T>`](Scalar) for plain values,
/// [`Shape`] for values that decide the topology. The first call builds the graph. Later calls
/// change the arguments of the nodes that depend on them, also inside loops and branches, and
/// launch the graph.
///
/// Calls may come from any thread and go to any stream of the device. If the graph is still running
/// on another stream, a call uses a further executable of it, up to
/// [`CallableOptions::max_instances`]; after that it waits its turn on the device. An executable
/// keeps the arrays of its latest call alive until a call with other arrays,
/// [`reset`](Callable::reset), or many calls that did not use it.
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
    /// Creates a callable for a device. Nothing is built until the first call.
    pub fn new<R>(
        device: &Device,
        closure: impl Fn(&Sequence, S) -> Result<R> + Send + Sync + 'static,
    ) -> Self {
        Callable::with_options(device, CallableOptions::default(), closure)
    }

    /// Creates a callable with these options.
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
                counters: Counters::default(),
            }),
        }
    }

    /// Enqueues its work on the stream with these arguments.
    pub fn call(&self, stream: &Stream, args: impl BindAll<S>) -> Result<()> {
        BuildGuard::refuse_call()?;
        let (inner, stream) = (&*self.inner, &stream.0);
        // Before the cache is locked: a call may hold that lock while it waits for the device.
        user_code::may_use(inner.device_id, "call of a callable")?;
        if inner.options.graphs && stream.device_id() == inner.device_id {
            // Declared before the lock is taken, and therefore dropped after it is released.
            let mut given = Given::default();
            let replayed = args
                .compare(|compare| inner.replay(stream, compare, |param| args.bind_one(param), &mut given));
            if let Some(Some(outcome)) = replayed {
                return outcome;
            }
        }
        inner.call(stream, args.bind_all()?)
    }

    /// Returns its counters. It never waits, so a call that another thread makes meanwhile may be
    /// counted in part.
    pub fn stats(&self) -> CallableStats {
        self.inner.counters.read()
    }

    /// Drops every graph and resets all counters. Launches in flight continue. Fails inside
    /// callbacks of the device: a call may wait for the device, and the device for the callback.
    pub fn reset(&self) -> Result<()> {
        let mut cache = self.inner.lock("reset of a callable")?;
        let forgotten = std::mem::take(&mut *cache);
        self.inner.counters.reset();
        drop(cache);
        drop(forgotten);
        Ok(())
    }

    /// Returns the graph used last, with the arguments of that call, for inspection. Returns `None`
    /// before the first call and if graphs are turned off. Fails inside callbacks of the device, as
    /// [`reset`](Callable::reset) does.
    pub fn graph(&self) -> Result<Option<Graph>> {
        let cache = self.inner.lock("graph of a callable")?;
        let latest = cache.entries.get(cache.latest);
        latest.map(|entry| entry.latest().executable.graph().map(Graph)).transpose()
    }

    /// Adds its operations to another callable's sequence.
    pub(crate) fn inline(&self, sequence: &Sequence, params: S) -> Result<()> {
        if sequence.device_id() != self.inner.device.id() {
            return Err(Error::new(ErrorKind::WrongDevice, "the callable to call is for another device"));
        }
        (self.inner.build)(sequence, params)
    }
}

impl<S> Inner<S> {
    /// Locks the cache for an operation. A call may hold the lock while it waits for the device, so
    /// callbacks of the device are refused.
    fn lock(&self, operation: &str) -> Result<MutexGuard<'_, Cache>> {
        user_code::may_use(self.device_id, operation)?;
        Ok(self.cache.lock())
    }
}

impl<S: Specs> Inner<S> {
    /// Repeats the latest call's graph on the same stream and compares only the arguments. Returns
    /// `None`, having done nothing, if the call needs another graph or executable, or launch shapes
    /// that functions of the user compute.
    fn replay(
        &self,
        stream: &core::Stream,
        compare: &dyn Fn(&[Binding]) -> u64,
        bind: impl Fn(usize) -> Result<Binding>,
        given: &mut Given,
    ) -> Option<Result<()>> {
        let mut cache = self.cache.lock();
        let now = cache.tick();
        let Cache { entries, latest, .. } = &mut *cache;
        let (plan, instance) = entries.get_mut(*latest)?.only_instance_on(stream, now)?;
        let changed = compare(instance.bindings());
        if !plan.serves(changed) {
            return None;
        }
        let patched = instance.call((plan, None), stream, changed, bind, given).transpose()?;
        Some(patched.map(|patched| self.counters.count_call(false, patched)))
    }

    fn call(&self, stream: &core::Stream, bindings: Bindings) -> Result<()> {
        self.check(stream, &bindings)?;
        if !self.options.graphs {
            return self.call_eagerly(stream, &bindings);
        }
        let key = key(&bindings);
        let options = self.instantiate_options()?;
        let mut is_built = false;
        // The launch shapes of this call for the graph with this plan, once they are known.
        let mut known: Option<(Arc<Plan>, ComputedShapes)> = None;
        loop {
            // Declared before the lock is taken, and therefore dropped after it is released.
            let mut given = Given::default();
            let (mut cache, built, evicted) = self.ensure_built(&key, &bindings)?;
            is_built |= built;
            let now = cache.tick();
            let entry = cache.find(&key).expect("the cache has been locked since it was found there");
            let chosen = entry.choose(stream, &bindings, self.options.max_instances, &options, now)?;
            let (plan, instance) = entry.instance(chosen);
            let plan = plan.clone();
            let shapes = known.as_ref().filter(|(of, _)| Arc::ptr_eq(of, &plan)).map(|(_, shapes)| shapes);
            let changed = instance.changed(&bindings);
            let bind = |param: usize| Ok(bindings[param].clone());
            let Some(patched) = instance.call((&plan, shapes), stream, changed, bind, &mut given)? else {
                drop(cache);
                drop(evicted);
                let _guard = BuildGuard::start();
                let shapes = plan.computed_shapes(&bindings)?;
                known = Some((plan, shapes));
                continue;
            };
            let idle = entry.take_idle(now);
            self.counters.count_call(is_built, patched);
            self.counters.describe(&cache);
            drop(cache);
            drop((evicted, idle));
            return Ok(());
        }
    }

    fn instantiate_options(&self) -> Result<InstantiateOptions> {
        Ok(InstantiateOptions {
            conditional_mode: crate::conditional_mode::conditional_mode(self.options.conditional_mode)?,
            optimizer: crate::optimize::optimizer(Optimize::Automatic)?,
            ..InstantiateOptions::default()
        })
    }

    fn check(&self, stream: &core::Stream, bindings: &[Binding]) -> Result<()> {
        if stream.device().id() != self.device.id() {
            return Err(Error::new(
                ErrorKind::WrongDevice,
                format!("the stream belongs to another device than the callable ({})", self.device.name()),
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

    /// Makes sure that the cache has a graph for this key. Returns the locked cache, whether the
    /// graph was built now, and the entry it displaced, to be dropped after the lock is released.
    fn ensure_built(&self, key: &cache::Key, bindings: &Bindings) -> Result<BuiltEntry<'_>> {
        let cache = self.cache.lock();
        if cache.contains(key) {
            return Ok((cache, false, None));
        }
        drop(cache);
        let guard = BuildGuard::start();
        let _building = self.building.lock();
        // Another thread may have built the graph while this one waited for the lock.
        let cache = self.cache.lock();
        if cache.contains(key) {
            return Ok((cache, false, None));
        }
        drop(cache);
        let built = self.describe(bindings)?;
        drop(guard);
        let entry = Entry::new(key.clone(), built, bindings, &self.instantiate_options()?)?;
        let mut cache = self.cache.lock();
        self.counters.count_build();
        let evicted = cache.insert(entry, self.options.max_graphs);
        self.counters.describe(&cache);
        Ok((cache, true, evicted))
    }

    /// Runs the closure.
    fn describe(&self, bindings: &Bindings) -> Result<sequence::Built> {
        sequence::build(&self.device, bindings, |sequence, origin| {
            (self.build)(sequence, S::of(origin, bindings))
        })
    }

    fn call_eagerly(&self, stream: &core::Stream, bindings: &Bindings) -> Result<()> {
        let guard = BuildGuard::start();
        let graph = self.describe(bindings)?.graph;
        drop(guard);
        if stream.is_capturing() {
            // A capture records the graph as one node, so the launch keeps its loops.
            graph.instantiate_with(&self.instantiate_options()?)?.launch(stream)?;
        } else {
            eager::run(&graph, stream)?;
        }
        let _cache = self.cache.lock();
        self.counters.count_eager_call();
        Ok(())
    }
}

/// The locked cache, whether a graph was built, and the entry it displaced.
type BuiltEntry<'a> = (MutexGuard<'a, Cache>, bool, Option<Entry>);

thread_local! {
    static BUILDING: Cell<bool> = const { Cell::new(false) };
}

/// Marks that this thread runs the closure of a callable, or a function that computes a launch
/// shape. Calls are refused meanwhile: they would run only once, when the graph is built, and a
/// callable that calls itself would never end.
struct BuildGuard;

impl BuildGuard {
    /// Starts a build. [`refuse_call`](BuildGuard::refuse_call) must have succeeded on this thread.
    fn start() -> Self {
        BUILDING.set(true);
        BuildGuard
    }

    fn refuse_call() -> Result<()> {
        if BUILDING.get() {
            return Err(Error::new(
                ErrorKind::InvalidState,
                "the closure of a callable called another callable on a stream; the closure only describes work, so use Sequence::call in it",
            ));
        }
        Ok(())
    }
}

impl Drop for BuildGuard {
    fn drop(&mut self) {
        BUILDING.set(false);
    }
}

impl<S> Clone for Callable<S> {
    fn clone(&self) -> Self {
        Callable { inner: self.inner.clone() }
    }
}

impl<S> fmt::Debug for Callable<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Callable({:?})", self.inner.counters.read())
    }
}
