//! The graphs that a callable has built, and the executables made of each.

use std::sync::Arc;

use gridloom_core::executable::{InstantiateOptions, Replaced};
use gridloom_core::{Executable, Stream};
use smallvec::SmallVec;

use super::params::{Binding, Bindings};
use super::plan::{Changed, ComputedShapes, Plan};
use super::sequence::Built;
use crate::Result;

/// The key of a graph: the values of the call's `Shape` parameters.
pub(super) type Key = SmallVec<[u64; 2]>;

pub(super) fn key(bindings: &[Binding]) -> Key {
    let shapes = bindings.iter().filter_map(|binding| match binding {
        Binding::Shape(value) => Some(*value),
        _ => None,
    });
    shapes.collect()
}

/// An executable that was not used in this many calls is dropped, together with the arrays of its
/// latest call.
const IDLE_CALLS: u64 = 64;

/// One executable, with its current arguments.
pub(super) struct Instance {
    pub(super) executable: Executable,
    bindings: Bindings,
    /// The stream of its latest launch.
    stream: Option<Stream>,
    used: u64,
}

/// One graph, with the executables made of it.
pub(super) struct Entry {
    pub(super) key: Key,
    plan: Arc<Plan>,
    instances: Vec<Instance>,
    /// Whether it stays at one executable.
    is_exclusive: bool,
    /// Why the host runs conditionals of the graph, if it does.
    pub(super) hosted: Option<Arc<str>>,
    used: u64,
}

/// The arguments of a call and the values they replaced. Both are dropped after every lock is
/// released.
#[derive(Default)]
pub(super) struct Given {
    /// The new arguments, each with the index of its parameter. After [`Instance::exchange`], the
    /// old ones.
    bindings: SmallVec<[(u32, Binding); 4]>,
    replaced: Replaced,
}

/// How many nodes got other arguments, and how many bytes of arguments those nodes have.
#[derive(Clone, Copy, Default)]
pub(super) struct Patched {
    pub(super) nodes: u64,
    pub(super) bytes: u64,
}

impl Entry {
    pub(super) fn new(
        key: Key,
        built: Built,
        bindings: &Bindings,
        options: &InstantiateOptions,
    ) -> Result<Self> {
        let Built { graph, recipes, is_exclusive } = built;
        crate::graph::check_hazards(&graph, crate::HazardCheck::default())?;
        let first = Instance::new(graph.instantiate_with(options)?, bindings.clone());
        let plan = Arc::new(Plan::new(bindings, recipes));
        let mut conditionals = first.executable.report().conditionals.into_iter();
        let hosted = conditionals.find(|conditional| !conditional.native);
        let hosted = hosted.map(|conditional| Arc::from(conditional.reason));
        Ok(Entry { key, plan, instances: vec![first], is_exclusive, hosted, used: 0 })
    }

    /// Returns the executable if there is only one and its latest launch was on `stream`.
    pub(super) fn only_instance_on(&mut self, stream: &Stream, now: u64) -> Option<(&Plan, &mut Instance)> {
        let [instance] = &mut self.instances[..] else { return None };
        if instance.stream.as_ref() != Some(stream) {
            return None;
        }
        (self.used, instance.used) = (now, now);
        Some((&self.plan, instance))
    }

    /// Returns an executable and the plan that says which nodes depend on its arguments.
    pub(super) fn instance(&mut self, index: usize) -> (&Arc<Plan>, &mut Instance) {
        (&self.plan, &mut self.instances[index])
    }

    /// Returns the index of an executable for a call on `stream`. The first choice is a free one,
    /// preferably one that already has these arguments. The second is a new one. If there are
    /// `most` already, it is the one used longest ago, and its launches run one after the other.
    pub(super) fn choose(
        &mut self,
        stream: &Stream,
        bindings: &[Binding],
        most: usize,
        options: &InstantiateOptions,
        now: u64,
    ) -> Result<usize> {
        self.used = now;
        let mut free = None;
        // With only one executable the arguments need not be compared here: `patch` compares them.
        let is_one = self.instances.len() == 1;
        for (index, instance) in self.instances.iter().enumerate() {
            if instance.is_free_for(stream) {
                free.get_or_insert(index);
                if is_one || instance.changed(bindings) == 0 {
                    free = Some(index);
                    break;
                }
            }
        }
        let index = match free {
            Some(index) => index,
            None if self.instances.len() < most.max(1) && !self.is_exclusive => {
                let first = &self.instances[0];
                let another = first.executable.instantiate_again(options)?;
                let bindings = first.bindings.clone();
                self.instances.push(Instance::new(another, bindings));
                self.instances.len() - 1
            }
            None => (0..self.instances.len()).min_by_key(|&index| self.instances[index].used).unwrap_or(0),
        };
        self.instances[index].used = now;
        Ok(index)
    }

    /// Removes the executables that are no longer needed and returns them, to be dropped outside of
    /// any lock. The one used last stays.
    pub(super) fn take_idle(&mut self, now: u64) -> Vec<Instance> {
        if self.instances.len() == 1 {
            return Vec::new();
        }
        let idle = |instance: &mut Instance| instance.used + IDLE_CALLS < now && instance.is_idle();
        self.instances.extract_if(.., idle).collect()
    }

    /// Returns the number of executables.
    pub(super) fn instances(&self) -> usize {
        self.instances.len()
    }

    /// Returns the executable used last.
    pub(super) fn latest(&self) -> &Instance {
        self.instances
            .iter()
            .max_by_key(|instance| instance.used)
            .expect("an entry has an executable from the start")
    }
}

impl Instance {
    fn new(executable: Executable, bindings: Bindings) -> Self {
        Instance { executable, bindings, stream: None, used: 0 }
    }

    /// Returns its current arguments.
    pub(super) fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Returns a bit for each argument that differs from the current one.
    pub(super) fn changed(&self, bindings: &[Binding]) -> u64 {
        let both = self.bindings.iter().zip(bindings).enumerate();
        both.fold(0, |changed, (index, (old, new))| changed | u64::from(old != new) << index)
    }

    /// Binds the changed arguments with `bind`, gives them to the executable, and launches it.
    /// Returns `None`, having done nothing, if that takes launch shapes and there are none.
    #[inline]
    pub(super) fn call(
        &mut self,
        (plan, shapes): (&Plan, Option<&ComputedShapes>),
        stream: &Stream,
        mut changed: u64,
        bind: impl Fn(usize) -> Result<Binding>,
        given: &mut Given,
    ) -> Result<Option<Patched>> {
        let mut patched = Patched::default();
        if changed != 0 {
            while changed != 0 {
                let param = changed.trailing_zeros();
                changed &= changed - 1;
                given.bindings.push((param, bind(param as usize)?));
            }
            let changed = self.changes(given);
            if shapes.is_none() && plan.needs_shapes(changed) {
                return Ok(None);
            }
            patched = self.patch(plan, shapes, changed, given)?;
        }
        self.launch(stream)?;
        Ok(Some(patched))
    }

    /// Gives the executable other arguments, all or none.
    fn patch(
        &mut self,
        plan: &Plan,
        shapes: Option<&ComputedShapes>,
        changed: Changed,
        given: &mut Given,
    ) -> Result<Patched> {
        self.exchange(given);
        let (executable, bindings) = (&mut self.executable, &self.bindings);
        let written = executable.change_exclusively(&mut given.replaced, |changes| {
            plan.write(changes, bindings, changed, shapes)
        });
        if let Err(error) = written {
            self.exchange(given);
            let definition = self.executable.definition();
            return Err(plan.explain(error, |node| definition.label(node)));
        }
        let (nodes, bytes) = plan.count(changed);
        Ok(Patched { nodes, bytes })
    }

    /// Returns which parameters the new arguments change.
    #[inline]
    fn changes(&self, given: &Given) -> Changed {
        let mut changed = Changed { params: 0, lengths: 0 };
        for (param, binding) in &given.bindings {
            changed.params |= 1 << *param;
            if let (Binding::Memory(old), Binding::Memory(new)) = (&self.bindings[*param as usize], binding) {
                changed.lengths |= u64::from(old.bytes != new.bytes) << *param;
            }
        }
        changed
    }

    /// Swaps the new and the current arguments.
    fn exchange(&mut self, given: &mut Given) {
        for (param, binding) in &mut given.bindings {
            std::mem::swap(&mut self.bindings[*param as usize], binding);
        }
    }

    /// Returns whether a launch on `stream` would not wait for a launch on another stream.
    fn is_free_for(&self, stream: &Stream) -> bool {
        self.stream.as_ref() == Some(stream) || self.is_idle()
    }

    /// Returns whether all its launches have ended. A stream that cannot tell counts as busy.
    fn is_idle(&self) -> bool {
        self.stream.as_ref().is_none_or(|last| last.is_idle().unwrap_or(false))
    }

    fn launch(&mut self, stream: &Stream) -> Result<()> {
        self.executable.launch_exclusively(stream)?;
        if !stream.is_capturing() && self.stream.as_ref() != Some(stream) {
            self.stream = Some(stream.clone());
        }
        Ok(())
    }
}

/// A bounded number of entries. The one used longest ago is removed first.
#[derive(Default)]
pub(super) struct Cache {
    pub(super) entries: Vec<Entry>,
    /// The index of the entry that was used last.
    pub(super) latest: usize,
    clock: u64,
}

impl Cache {
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(super) fn contains(&self, key: &Key) -> bool {
        self.entries.iter().any(|entry| entry.key == *key)
    }

    pub(super) fn find(&mut self, key: &Key) -> Option<&mut Entry> {
        let place = self.entries.iter().position(|entry| entry.key == *key)?;
        self.latest = place;
        self.entries.get_mut(place)
    }

    /// Adds an entry. Returns the one it displaced, to be dropped outside of any lock.
    pub(super) fn insert(&mut self, mut entry: Entry, most: usize) -> Option<Entry> {
        entry.used = self.tick();
        let evicted = if self.entries.len() >= most.max(1) {
            let oldest = (0..self.entries.len()).min_by_key(|&index| self.entries[index].used);
            oldest.map(|index| self.entries.swap_remove(index))
        } else {
            None
        };
        self.latest = self.entries.len();
        self.entries.push(entry);
        evicted
    }
}
