//! The rewritten kernels of a device, kept for graphs that are built later.
//!
//! A device owns one [`Cache`]. It maps the content of PTX text to the parsed module, and a
//! [`Recipe`] to the kernel that was made from it. A graph that is built again therefore parses,
//! rewrites and compiles nothing. Both maps are bounded; what was used longest ago goes first. A
//! kernel that leaves the cache lives on in the executables that use it.
//!
//! Kernels do not keep their device alive, so the cache goes when the last handle of the device
//! goes.

use std::hash::Hash;
use std::sync::Arc;

use gridloom_core::backend::{Device, Kernel};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::rewrite::{
    BatchGroup, Case, KernelSource, Part, Predicate, Prefix, ProgramStep, Rewritten, Sections, SourceId,
    State, Team, TeamBarrier,
};
use crate::rewrite::{batch, choice, prefixed, team_program};

/// The most rewritten kernels of one device.
const MAX_KERNELS: usize = 512;
/// The most bytes of their text and recipes together.
const MAX_KERNEL_BYTES: usize = 32 << 20;
/// The most parsed modules of one device.
const MAX_MODULES: usize = 256;
/// The most bytes of their text together.
const MAX_MODULE_BYTES: usize = 8 << 20;

/// What a rewritten kernel is made from.
#[derive(Debug)]
pub(crate) enum Recipe {
    /// Steps of one kernel.
    Program { steps: Vec<ProgramStep>, parts: Vec<Part>, team: Team, limit: u32 },
    /// Parts of one grid.
    Batch { groups: Vec<BatchGroup>, block: [u32; 3], limit: u32 },
    /// Kernels of which at most one runs.
    Choice { cases: Vec<Case>, block: [u32; 3], limit: u32 },
    /// A kernel with instructions before its own.
    Prefixed { source: KernelSource, prefix: Prefix },
    /// A kernel of the optimiser's own.
    Builtin { text: &'static str, name: &'static str },
}

/// A recipe without the modules themselves. Equal keys make equal kernels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Program { steps: Vec<(SourceId, [u32; 3], [u32; 3])>, parts: Vec<Part>, team: Team, limit: u32 },
    Batch { groups: Vec<(SourceId, Vec<[u32; 3]>)>, block: [u32; 3], limit: u32 },
    Choice { cases: Vec<(Predicate, SourceId, [u32; 3])>, block: [u32; 3], limit: u32 },
    Prefixed { source: SourceId, prefix: Prefix },
    Builtin { name: &'static str },
}

/// A kernel that the device compiled, with the layout of its parameters.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) kernel: Arc<dyn Kernel>,
    /// Its parameters, with the header filled in and zeros elsewhere. Empty for kernels with the
    /// parameters of the original.
    pub(crate) header: Vec<u8>,
    /// The offset of the parameters of each step or node.
    pub(crate) slices: Vec<u32>,
    pub(crate) block: [u32; 3],
    pub(crate) blocks: u32,
    /// The memory that it needs between launches.
    pub(crate) state: Option<State>,
    /// Where its instructions come from.
    pub(crate) sections: Arc<Sections>,
    /// The number of instructions before those of the original, if it has a prefix.
    pub(crate) shift: u32,
}

/// The reason why a recipe makes no kernel.
pub(crate) type Refusal = String;

/// Parsed modules and rewritten kernels of one device.
#[derive(Debug)]
pub(crate) struct Cache {
    kernels: Mutex<Bounded<Key, Result<Arc<Made>, Refusal>>>,
    /// The recipes that the device rejected when they were last tried.
    rejected: Mutex<Bounded<Key, Refusal>>,
    modules: Mutex<Bounded<Arc<str>, Arc<ParsedModule>>>,
}

/// A module and the kernels of it that were looked up.
#[derive(Debug)]
struct ParsedModule {
    /// `None` if the text is no PTX that this library can parse.
    module: Option<Arc<gridloom_ptx::Module>>,
    kernels: Mutex<FxHashMap<String, Option<KernelSource>>>,
}

impl Default for Cache {
    fn default() -> Self {
        Cache {
            kernels: Mutex::new(Bounded::new(MAX_KERNELS, MAX_KERNEL_BYTES)),
            rejected: Mutex::new(Bounded::new(MAX_KERNELS, MAX_KERNEL_BYTES)),
            modules: Mutex::new(Bounded::new(MAX_MODULES, MAX_MODULE_BYTES)),
        }
    }
}

impl Cache {
    /// Returns the cache of a device, or a new one if the device keeps none.
    pub(crate) fn of(device: &dyn Device) -> Arc<Cache> {
        match device.attachment() {
            Some(attachment) => attachment.get_or_attach(Arc::<Cache>::default).unwrap_or_default(),
            None => Arc::default(),
        }
    }

    /// Returns a kernel of a module as PTX, or `None` if the text cannot be parsed.
    pub(crate) fn source(&self, text: &str, name: &str) -> Option<KernelSource> {
        let known = self.modules.lock().get(text);
        let module = known.unwrap_or_else(|| {
            // Parsed without the lock. Another thread may have been faster: then its module counts,
            // because recipes compare modules by identity.
            let module = gridloom_ptx::parse(text).ok().map(Arc::new);
            let parsed = Arc::new(ParsedModule { module, kernels: Mutex::default() });
            let (kept, removed) = self.modules.lock().insert(text.into(), parsed, text.len());
            drop(removed);
            kept
        });
        let mut kernels = module.kernels.lock();
        if let Some(source) = kernels.get(name) {
            return source.clone();
        }
        let source = module.module.clone().and_then(|module| KernelSource::new(module, name));
        kernels.insert(name.to_owned(), source.clone());
        source
    }

    /// Returns the kernel of a recipe, or the reason why there is none, if the recipe was tried
    /// before.
    pub(crate) fn known(&self, recipe: &Recipe) -> Option<Result<Arc<Made>, Refusal>> {
        let key = recipe.key();
        let known = self.kernels.lock().get(&key);
        known.or_else(|| self.rejected.lock().get(&key).map(Err))
    }

    /// Returns the kernel of a recipe. The device compiles it if it is not known.
    pub(crate) fn kernel(&self, device: &dyn Device, recipe: &Recipe) -> Result<Arc<Made>, Refusal> {
        let key = recipe.key();
        let known = self.kernels.lock().get(&key);
        if let Some(known) = known {
            return known;
        }
        let (rewritten, text, shift) = match recipe.rewrite() {
            Ok(rewritten) => rewritten,
            Err(reason) => {
                let bytes = key.bytes() + reason.len();
                return self.keep(key, Err(reason), bytes);
            }
        };
        let name = rewritten.as_ref().map_or_else(|| recipe.entry(), |rewritten| rewritten.name.as_str());
        let loaded = device.load_ptx(&text).and_then(|module| module.kernel(name));
        let kernel = match loaded {
            Ok(kernel) => kernel,
            Err(error) => {
                // It is tried again when it is needed again: the device may have memory for it
                // then.
                let reason = format!("the device does not take the rewritten kernel: {error}");
                let bytes = key.bytes() + reason.len();
                let (_, removed) = self.rejected.lock().insert(key, reason.clone(), bytes);
                drop(removed);
                return Err(reason);
            }
        };
        let made = match rewritten {
            Some(Rewritten { header, slices, block, blocks, state, sections, .. }) => {
                let sections = Arc::new(sections);
                Made { kernel, header, slices, block, blocks, state, sections, shift }
            }
            None => {
                let (header, slices, sections) = Default::default();
                Made { kernel, header, slices, block: [1; 3], blocks: 1, state: None, sections, shift }
            }
        };
        let bytes = key.bytes() + text.len() + made.header.len() + 4 * made.slices.len();
        self.keep(key, Ok(Arc::new(made)), bytes)
    }

    fn keep(&self, key: Key, made: Result<Arc<Made>, Refusal>, bytes: usize) -> Result<Arc<Made>, Refusal> {
        let (kept, removed) = self.kernels.lock().insert(key, made, bytes);
        // Kernels are unloaded without the lock.
        drop(removed);
        kept
    }
}

impl Recipe {
    /// Returns the new kernel with its layout, its text, and the number of instructions that it has
    /// before those of the original.
    fn rewrite(&self) -> Result<(Option<Rewritten>, String, u32), Refusal> {
        let rewritten = match self {
            Recipe::Program { steps, parts, team, limit } => team_program(steps, parts, *team, *limit)?,
            Recipe::Batch { groups, block, limit } => batch(groups, *block, *limit)?,
            Recipe::Choice { cases, block, limit } => choice(cases, *block, *limit)?,
            Recipe::Prefixed { source, prefix } => {
                let module = prefixed(source, prefix)?;
                let entry = module.entry(source.name()).and_then(|(_, entry)| entry.body.as_ref());
                let all = entry.map_or(0, |body| body.instructions.len());
                let shift = all.saturating_sub(source.body().instructions.len()) as u32;
                return Ok((None, module.to_string(), shift));
            }
            Recipe::Builtin { text, .. } => return Ok((None, (*text).to_owned(), 0)),
        };
        let text = rewritten.text();
        Ok((Some(rewritten), text, 0))
    }

    /// Returns what the blocks of its kernel wait at for each other.
    pub(crate) fn barrier(&self) -> TeamBarrier {
        match self {
            Recipe::Program { team, .. } => team.barrier,
            _ => TeamBarrier::Block,
        }
    }

    /// Returns the different kernels that it combines.
    pub(crate) fn sources(&self) -> Vec<KernelSource> {
        let mut found: Vec<KernelSource> = Vec::new();
        let mut add = |source: &KernelSource| {
            if !found.iter().any(|known| known.same(source)) {
                found.push(source.clone());
            }
        };
        match self {
            Recipe::Program { steps, .. } => steps.iter().for_each(|step| add(&step.kernel)),
            Recipe::Batch { groups, .. } => groups.iter().for_each(|group| add(&group.kernel)),
            Recipe::Choice { cases, .. } => cases.iter().for_each(|case| add(&case.kernel)),
            Recipe::Prefixed { source, .. } => add(source),
            Recipe::Builtin { .. } => {}
        }
        found
    }

    /// Returns the name of its kernel, if that is not made of others.
    fn entry(&self) -> &str {
        match self {
            Recipe::Program { .. } | Recipe::Batch { .. } | Recipe::Choice { .. } => "",
            Recipe::Prefixed { source, .. } => source.name(),
            Recipe::Builtin { name, .. } => name,
        }
    }

    fn key(&self) -> Key {
        match self {
            Recipe::Program { steps, parts, team, limit } => Key::Program {
                steps: steps.iter().map(|step| (step.kernel.id(), step.grid, step.block)).collect(),
                parts: parts.clone(),
                team: *team,
                limit: *limit,
            },
            Recipe::Batch { groups, block, limit } => Key::Batch {
                groups: groups.iter().map(|group| (group.kernel.id(), group.grids.clone())).collect(),
                block: *block,
                limit: *limit,
            },
            Recipe::Choice { cases, block, limit } => Key::Choice {
                cases: cases.iter().map(|case| (case.predicate, case.kernel.id(), case.grid)).collect(),
                block: *block,
                limit: *limit,
            },
            Recipe::Prefixed { source, prefix } => {
                Key::Prefixed { source: source.id(), prefix: prefix.clone() }
            }
            Recipe::Builtin { name, .. } => Key::Builtin { name },
        }
    }
}

impl Key {
    /// Returns about how many bytes it takes itself.
    fn bytes(&self) -> usize {
        match self {
            Key::Program { steps, .. } => 64 * steps.len(),
            Key::Choice { cases, .. } => 64 * cases.len(),
            Key::Batch { groups, .. } => {
                groups.iter().map(|(_, grids)| 64 + size_of_val(grids.as_slice())).sum()
            }
            Key::Prefixed { .. } | Key::Builtin { .. } => 64,
        }
    }
}

/// A map that forgets what was used longest ago.
#[derive(Debug)]
struct Bounded<K, V> {
    entries: FxHashMap<K, Entry<V>>,
    max_entries: usize,
    max_bytes: usize,
    bytes: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
    last_use: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Bounded<K, V> {
    fn new(max_entries: usize, max_bytes: usize) -> Self {
        Bounded { entries: FxHashMap::default(), max_entries, max_bytes, bytes: 0, clock: 0 }
    }

    fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.clock += 1;
        let entry = self.entries.get_mut(key)?;
        entry.last_use = self.clock;
        Some(entry.value.clone())
    }

    /// Adds a value unless there is one already. Returns the value that counts, and what has to go
    /// for it. A value that is too large for the map is not kept.
    fn insert(&mut self, key: K, value: V, bytes: usize) -> (V, Vec<V>) {
        if let Some(known) = self.get(&key) {
            return (known, vec![value]);
        }
        if bytes > self.max_bytes {
            return (value, Vec::new());
        }
        let mut removed = Vec::new();
        while self.entries.len() >= self.max_entries || self.bytes + bytes > self.max_bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.bytes -= entry.bytes;
                removed.push(entry.value);
            }
        }
        self.bytes += bytes;
        self.entries.insert(key, Entry { value: value.clone(), bytes, last_use: self.clock });
        (value, removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut map: Bounded<u32, u32> = Bounded::new(2, 100);
        map.insert(1, 10, 1);
        map.insert(2, 20, 1);
        assert_eq!(map.get(&1), Some(10));
        assert_eq!(map.insert(3, 30, 1), (30, vec![20]));
        assert_eq!((map.get(&1), map.get(&2), map.get(&3)), (Some(10), None, Some(30)));
    }

    #[test]
    fn bytes_are_bounded_and_counted_down_again() {
        let mut map: Bounded<u32, u32> = Bounded::new(10, 100);
        map.insert(1, 10, 60);
        assert_eq!(map.insert(2, 20, 60), (20, vec![10]));
        assert_eq!(map.insert(3, 30, 40), (30, vec![]));
        // It would displace everything and still not fit.
        assert_eq!(map.insert(4, 40, 101), (40, vec![]));
        assert_eq!((map.get(&2), map.get(&3), map.get(&4)), (Some(20), Some(30), None));
        assert_eq!(map.bytes, 100);
    }

    #[test]
    fn the_first_of_two_equal_keys_counts() {
        let mut map: Bounded<u32, u32> = Bounded::new(10, 100);
        map.insert(1, 10, 1);
        assert_eq!(map.insert(1, 11, 1), (10, vec![11]));
        assert_eq!(map.bytes, 1);
    }
}
