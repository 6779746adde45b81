//! The graphs that a callable has built, and the executables made of each.

use gridloom_core::executable::{Change, InstantiateOptions};
use gridloom_core::{Executable, Graph, Stream};
use smallvec::SmallVec;

use super::CallableStats;
use super::params::{Binding, Bindings, Offer, Seen};
use super::plan::{Given, Plan};
use super::sequence::Recipe;
use crate::Result;

/// What decides which graph a call uses: the values of its `Shape` parameters.
pub(super) type Key = SmallVec<[u64; 2]>;

pub(super) fn key(bindings: &[Binding]) -> Key {
    let shapes = bindings.iter().filter_map(|binding| match binding {
        Binding::Shape(value) => Some(*value),
        _ => None,
    });
    shapes.collect()
}

/// Calls after which an executable that none of them used goes, and the arrays of its latest call with it.
const IDLE_CALLS: u64 = 64;

/// One executable, with the arguments it has now.
pub(super) struct Instance {
    pub(super) executable: Executable,
    seen: SmallVec<[Seen; 6]>,
    /// Where it was launched last.
    stream: Option<Stream>,
    used: u64,
    /// Whether it was found that its arguments cannot be given in the short way.
    is_slow: bool,
}

/// One graph, with the executables made of it.
pub(super) struct Entry {
    pub(super) key: Key,
    recipes: Vec<Recipe>,
    plan: Plan,
    instances: Vec<Instance>,
    used: u64,
}

/// What a patch did.
#[derive(Default)]
pub(super) struct Patched {
    pub(super) nodes: u64,
    pub(super) bytes: u64,
    /// What it replaced, to be dropped outside of any lock.
    replaced: Vec<Change>,
    given: Given,
}

impl Entry {
    pub(super) fn new(
        key: Key,
        graph: &Graph,
        recipes: Vec<Recipe>,
        bindings: &Bindings,
        options: &InstantiateOptions,
    ) -> Result<Self> {
        let executable = graph.instantiate_with(options)?;
        let first = Instance::new(executable, bindings.iter().map(Seen::of).collect());
        let plan = Plan::new(bindings, &recipes);
        Ok(Entry { key, recipes, plan, instances: vec![first], used: 0 })
    }

    /// Calls the one executable again where it was launched last: `compare` says which arguments differ from those it has. `None` where it is not that simple,
    /// and nothing was done.
    pub(super) fn replay(
        &mut self,
        stream: &Stream,
        compare: impl FnOnce(&[Seen]) -> u64,
        offer: impl Fn(usize, &mut dyn FnMut(Offer<'_>) -> bool) -> Result<bool>,
        given: &mut Given,
        now: u64,
    ) -> Option<Result<(u64, u64)>> {
        let [instance] = &mut self.instances[..] else { return None };
        if instance.stream.as_ref() != Some(stream) {
            return None;
        }
        let changed = compare(&instance.seen);
        let mut patched = (0, 0);
        if changed != 0 {
            match instance.give(&self.plan, changed, offer, given) {
                Ok(true) => patched = self.plan.count(changed),
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        (self.used, instance.used) = (now, now);
        Some(instance.executable.launch_exclusively(stream).map(|()| patched))
    }

    /// The place of an executable for a call on `stream`: one that is free, with these arguments already where possible; else a new one; else, where there
    /// are enough, the one used longest ago, whose launches will run one after the other.
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
        // With one there is nothing to choose, and what differs is found out when it is patched.
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
            None if self.instances.len() < most.max(1) => {
                let first = &self.instances[0];
                let another = first.executable.instantiate_again(options)?;
                let seen = first.seen.clone();
                self.instances.push(Instance::new(another, seen));
                self.instances.len() - 1
            }
            None => (0..self.instances.len()).min_by_key(|&index| self.instances[index].used).unwrap_or(0),
        };
        self.instances[index].used = now;
        Ok(index)
    }

    /// Takes out the executables that are not needed any more, to be dropped outside of any lock. The one used last stays.
    pub(super) fn take_idle(&mut self, now: u64) -> Vec<Instance> {
        if self.instances.len() == 1 {
            return Vec::new();
        }
        let idle = |instance: &mut Instance| instance.used + IDLE_CALLS < now && instance.is_idle();
        self.instances.extract_if(.., idle).collect()
    }

    /// Gives an executable other arguments: to the nodes that follow what changed, all or none.
    pub(super) fn patch(
        instance: &mut Instance,
        (recipes, plan): (&[Recipe], &Plan),
        bindings: &Bindings,
    ) -> Result<Patched> {
        let changed = instance.changed(bindings);
        let mut patched = Patched::default();
        if changed == 0 {
            return Ok(patched);
        }
        let offer =
            |param: usize, take: &mut dyn FnMut(Offer<'_>) -> bool| Ok(take(Offer::of(&bindings[param])));
        if instance.give(plan, changed, offer, &mut patched.given)? {
            (patched.nodes, patched.bytes) = plan.count(changed);
            return Ok(patched);
        }
        let mut changes = Vec::with_capacity(recipes.iter().map(Recipe::most_changes).sum());
        for recipe in recipes.iter().filter(|recipe| recipe.follows & changed != 0) {
            recipe
                .changes((&instance.seen, bindings, changed), &mut changes)
                .map_err(|error| error.at_node(instance.executable.definition().label(recipe.node)))?;
            patched.nodes += 1;
            patched.bytes += recipe.bytes;
        }
        instance.executable.change(&mut changes)?;
        patched.replaced = changes;
        instance.seen = bindings.iter().map(Seen::of).collect();
        Ok(patched)
    }

    /// The recipes, and the executables they apply to.
    pub(super) fn parts(&mut self) -> ((&[Recipe], &Plan), &mut [Instance]) {
        ((&self.recipes, &self.plan), &mut self.instances)
    }

    /// How many executables there are.
    pub(super) fn instances(&self) -> usize {
        self.instances.len()
    }

    /// When it was used last.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The executable used last.
    pub(super) fn latest(&self) -> &Instance {
        self.instances
            .iter()
            .max_by_key(|instance| instance.used)
            .expect("an entry has an executable from the start")
    }
}

impl Instance {
    fn new(executable: Executable, seen: SmallVec<[Seen; 6]>) -> Self {
        Instance { executable, seen, stream: None, used: 0, is_slow: false }
    }

    /// Which arguments are not those it has: a bit for each.
    fn changed(&self, bindings: &[Binding]) -> u64 {
        let both = self.seen.iter().zip(bindings).enumerate();
        both.fold(0, |changed, (index, (old, new))| changed | u64::from(*old != Seen::of(new)) << index)
    }

    /// Gives it the arguments that differ in the short way. Whether that was all there was to do; else nothing was changed.
    fn give(
        &mut self,
        plan: &Plan,
        changed: u64,
        offer: impl Fn(usize, &mut dyn FnMut(Offer<'_>) -> bool) -> Result<bool>,
        given: &mut Given,
    ) -> Result<bool> {
        if self.is_slow || !plan.allows(changed) {
            return Ok(false);
        }
        if !self.executable.is_followed() && !plan.follow(&mut self.executable) {
            self.is_slow = true;
            return Ok(false);
        }
        plan.give(&mut self.executable, &mut self.seen, changed, offer, given)
    }

    /// Whether a launch on `stream` need not wait for one on another stream.
    fn is_free_for(&self, stream: &Stream) -> bool {
        self.stream.as_ref() == Some(stream) || self.is_idle()
    }

    /// Whether its launches have run. A stream that cannot say counts as busy.
    fn is_idle(&self) -> bool {
        self.stream.as_ref().is_none_or(|last| last.is_idle().unwrap_or(false))
    }

    pub(super) fn launch(&mut self, stream: &Stream) -> Result<()> {
        self.executable.launch(stream)?;
        if !stream.is_capturing() && self.stream.as_ref() != Some(stream) {
            self.stream = Some(stream.clone());
        }
        Ok(())
    }
}

/// A bounded number of entries; the one used longest ago goes first.
#[derive(Default)]
pub(super) struct Cache {
    pub(super) entries: Vec<Entry>,
    pub(super) stats: CallableStats,
    /// The place of the entry that was used last.
    latest: usize,
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

    /// The entry that was used last.
    pub(super) fn latest(&mut self) -> Option<&mut Entry> {
        self.entries.get_mut(self.latest)
    }

    /// Adds an entry and returns the one that had to go, to be dropped outside of any lock.
    pub(super) fn insert(&mut self, mut entry: Entry, most: usize) -> Option<Entry> {
        entry.used = self.tick();
        let evicted = if self.entries.len() >= most.max(1) {
            let oldest = (0..self.entries.len()).min_by_key(|&index| self.entries[index].used);
            oldest.map(|index| self.entries.swap_remove(index))
        } else {
            None
        };
        self.entries.push(entry);
        evicted
    }
}
