//! Counters of a callable. They are read without the lock of its cache, because a call may hold
//! that lock while it waits for the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::cache::{Cache, Patched};

/// Counters of a callable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallableStats {
    /// How often the closure ran to build a graph.
    pub builds: u64,
    /// How many calls succeeded.
    pub calls: u64,
    /// How many calls replayed an existing graph.
    pub replays: u64,
    /// How many nodes got other arguments, in all calls together.
    pub patched_nodes: u64,
    /// How many bytes of kernel arguments those nodes have.
    pub bytes_uploaded: u64,
    /// How many graphs are in the cache.
    pub graphs: usize,
    /// How many executables are in the cache.
    pub instances: usize,
    /// Whether the latest call replayed an existing graph.
    pub last_replayed: bool,
    /// Why the host ran conditionals of the latest call, if it did.
    pub hosted: Option<String>,
}

/// The counters as they are kept. Only a thread that has locked the cache writes them, so that a
/// load and a store are enough to add.
#[derive(Debug, Default)]
pub(super) struct Counters {
    builds: AtomicU64,
    calls: AtomicU64,
    replays: AtomicU64,
    patched_nodes: AtomicU64,
    bytes_uploaded: AtomicU64,
    graphs: AtomicUsize,
    instances: AtomicUsize,
    last_replayed: AtomicBool,
    /// Locked only to be read or replaced.
    hosted: Mutex<Option<Arc<str>>>,
}

#[inline]
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
}

impl Counters {
    /// Counts a build.
    pub(super) fn count_build(&self) {
        add(&self.builds, 1);
    }

    /// Counts a call that succeeded.
    #[inline]
    pub(super) fn count_call(&self, built: bool, patched: Patched) {
        add(&self.calls, 1);
        add(&self.replays, u64::from(!built));
        self.last_replayed.store(!built, Ordering::Relaxed);
        add(&self.patched_nodes, patched.nodes);
        add(&self.bytes_uploaded, patched.bytes);
    }

    /// Counts a call that built no executable.
    pub(super) fn count_eager_call(&self) {
        self.count_build();
        self.count_call(true, Patched::default());
        *self.hosted.lock() = Some(Arc::from("graphs are turned off for this callable"));
    }

    /// Takes over what the cache holds.
    pub(super) fn describe(&self, cache: &Cache) {
        self.graphs.store(cache.entries.len(), Ordering::Relaxed);
        let instances = cache.entries.iter().map(|entry| entry.instances()).sum();
        self.instances.store(instances, Ordering::Relaxed);
        *self.hosted.lock() = cache.entries.get(cache.latest).and_then(|entry| entry.hosted.clone());
    }

    /// Sets everything to 0.
    pub(super) fn reset(&self) {
        for counter in [&self.builds, &self.calls, &self.replays, &self.patched_nodes, &self.bytes_uploaded] {
            counter.store(0, Ordering::Relaxed);
        }
        self.last_replayed.store(false, Ordering::Relaxed);
        self.describe(&Cache::default());
    }

    /// Returns the present numbers.
    pub(super) fn read(&self) -> CallableStats {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CallableStats {
            builds: number(&self.builds),
            calls: number(&self.calls),
            replays: number(&self.replays),
            patched_nodes: number(&self.patched_nodes),
            bytes_uploaded: number(&self.bytes_uploaded),
            graphs: self.graphs.load(Ordering::Relaxed),
            instances: self.instances.load(Ordering::Relaxed),
            last_replayed: self.last_replayed.load(Ordering::Relaxed),
            hosted: self.hosted.lock().as_deref().map(str::to_owned),
        }
    }
}
