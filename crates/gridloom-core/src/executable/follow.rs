//! Kernel arguments that follow a few values.
//!
//! A callable gives the same arrays and numbers to many nodes. While its nodes follow values, a call with others writes them to the
//! [ready](super::ready) arguments of those nodes, and the memory among the values is kept alive here, once, rather than by every node that is given it. The definition
//! has gaps meanwhile, which are filled when somebody looks at it.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::ready::{Ready, Refusal, RegionId, write_at};
use crate::backend::{self, Allocation};
use crate::graph::{self, Definition, NodeKey};
use crate::memory::{Base, Region};
use crate::op::{ArgValue, Operation, PointerValue};

/// An argument of a kernel node that follows a value.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    /// The node.
    pub node: NodeKey,
    /// Which argument.
    pub index: u32,
    /// Which value.
    pub value: u32,
}

/// A value that arguments follow.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A plain value.
    Plain(SmallVec<[u8; 16]>),
    /// The address of memory that is there independently of graphs.
    Memory(Region),
}

impl Value {
    /// A plain value.
    #[inline]
    pub fn plain(bytes: &[u8]) -> Self {
        match ArgValue::plain(bytes) {
            ArgValue::Bytes(bytes) => Value::Plain(bytes),
            ArgValue::Pointer(_) => unreachable!("it is plain"),
        }
    }

    fn allocation(&self) -> Option<&Arc<dyn Allocation>> {
        match self {
            Value::Memory(Region { base: Base::Allocation(allocation), .. }) => Some(allocation),
            _ => None,
        }
    }

    /// Whether it can take the place of another one.
    fn is_like(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Plain(bytes), Value::Plain(others)) => bytes.len() == others.len(),
            (Value::Memory(_), Value::Memory(_)) => true,
            _ => false,
        }
    }
}

/// As many as there are bits to tell them apart.
const MOST_VALUES: usize = 64;

/// The most bytes of a plain value.
const MOST_BYTES: usize = 16;

/// A node, and which of its arguments follow what.
struct Following {
    /// Its number among the ready nodes.
    number: usize,
    /// A bit for each value.
    follows: u64,
    /// Its part of the places.
    places: Range<usize>,
}

/// An argument that follows a value.
struct Place {
    index: u32,
    value: u32,
    /// Where it lies among the bytes of its node.
    offset: u32,
}

/// A value, and its bytes among arguments.
struct Known {
    value: Value,
    bytes: [u8; MOST_BYTES],
    size: usize,
}

impl Known {
    fn new(value: Value) -> Option<Self> {
        let size = match &value {
            Value::Plain(bytes) => bytes.len(),
            Value::Memory(_) => 8,
        };
        let mut known = Known { value, bytes: [0; MOST_BYTES], size };
        known.look_up();
        (size <= MOST_BYTES).then_some(known)
    }

    /// Finds out the bytes.
    #[inline]
    fn look_up(&mut self) {
        match &self.value {
            Value::Plain(bytes) => {
                let bytes = &bytes[..self.size.min(MOST_BYTES)];
                write_at(&mut self.bytes, 0, bytes);
            }
            Value::Memory(Region { base: Base::Allocation(allocation), offset, .. }) => {
                let address = allocation.address().wrapping_add(*offset);
                write_at(&mut self.bytes, 0, &address.to_ne_bytes());
            }
            Value::Memory(_) => {}
        }
    }
}

/// Values, and the nodes that follow them.
pub(super) struct Followed {
    values: Vec<Known>,
    nodes: Vec<Following>,
    places: Vec<Place>,
    /// The values, of those that are memory, in whose places the definition has gaps.
    gaps: u64,
}

impl Followed {
    /// Has arguments follow values, which are those that they have now. The definition does not lag behind.
    pub(super) fn new(
        definition: &Definition,
        ready: &mut Ready,
        backend: &mut dyn backend::Executable,
        followers: &[Follower],
    ) -> Option<Self> {
        let count = followers.iter().map(|follower| follower.value as usize + 1).max()?;
        if count > MOST_VALUES {
            return None;
        }
        let mut values: Vec<Option<Value>> = vec![None; count];
        let (mut nodes, mut places): (Vec<Following>, Vec<Place>) = (Vec::new(), Vec::new());
        for follower in followers {
            let number = match ready.find(follower.node) {
                Some(number) => number,
                None if ready.may_add(follower.node) => ready.add(definition, follower.node, backend)?,
                None => return None,
            };
            let value = current(definition, follower)?;
            let known = values[follower.value as usize].get_or_insert_with(|| value.clone());
            if *known != value {
                return None;
            }
            if nodes.last().is_none_or(|node| node.number != number) {
                nodes.push(Following { number, follows: 0, places: places.len()..places.len() });
            }
            let offset = ready.offset(number, follower.index)?;
            places.push(Place { index: follower.index, value: follower.value, offset });
            let node = nodes.last_mut()?;
            node.follows |= 1 << follower.value;
            node.places.end = places.len();
        }
        let values = values.into_iter().map(|value| value.and_then(Known::new)).collect::<Option<_>>()?;
        Some(Followed { values, nodes, places, gaps: 0 })
    }

    pub(super) fn has_gaps(&self) -> bool {
        self.gaps != 0
    }

    /// Gives other values, each with its number, all or none. What they replace is in their places then. Else everything is as it was,
    /// but for the nodes in the list where the backend failed.
    pub(super) fn set(
        &mut self,
        ready: &mut Ready,
        backend: &mut dyn backend::Executable,
        device: graph::Checker<'_>,
        given: &mut [(u32, Value)],
    ) -> Result<(), (Refusal, Vec<NodeKey>)> {
        let mut changed = 0u64;
        for (number, value) in &*given {
            let is_like = self.values.get(*number as usize).is_some_and(|known| known.value.is_like(value));
            let is_allowed = match value {
                Value::Plain(_) => true,
                Value::Memory(region) => {
                    value.allocation().is_some_and(|memory| !memory.may_be_released())
                        && device.check_memory(region).is_ok()
                }
            };
            if !is_like || !is_allowed {
                return Err((Refusal::Other, Vec::new()));
            }
            changed |= 1 << number;
        }
        given.iter_mut().for_each(|given| self.exchange(given));
        self.write(ready, changed);
        let told = if self.following(changed).all(|node| ready.keeps_contract(node.number)) {
            ready.tell(backend, self.following(changed).map(|node| node.number))
        } else {
            Err(Refusal::Other)
        };
        if let Err(refusal) = told {
            // Backwards, since a value may have been given twice.
            given.iter_mut().rev().for_each(|given| self.exchange(given));
            self.write(ready, changed);
            return Err((refusal, self.following(changed).map(|node| ready.node(node.number)).collect()));
        }
        let mut unused: SmallVec<[&Arc<dyn Allocation>; 4]> = SmallVec::new();
        for (_, old) in &*given {
            if let Some(memory) = old.allocation()
                && !self.uses(memory)
            {
                unused.push(memory);
            }
        }
        if !unused.is_empty() {
            backend.keep(&unused);
        }
        Ok(())
    }

    /// The nodes that follow one of these values.
    #[inline]
    fn following(&self, changed: u64) -> impl Iterator<Item = &Following> {
        self.nodes.iter().filter(move |node| node.follows & changed != 0)
    }

    /// The nodes, which are to be got ready anew, by their numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().map(|node| node.number)
    }

    /// Whether memory is among the values.
    fn uses(&self, memory: &Arc<dyn Allocation>) -> bool {
        self.values
            .iter()
            .filter_map(|known| known.value.allocation())
            .any(|known| Arc::ptr_eq(known, memory))
    }

    fn exchange(&mut self, (number, value): &mut (u32, Value)) {
        let known = &mut self.values[*number as usize];
        std::mem::swap(&mut known.value, value);
        known.look_up();
    }

    /// Writes the values in `changed` to the arguments that follow them.
    fn write(&self, ready: &mut Ready, changed: u64) {
        for node in self.following(changed) {
            let bytes = ready.bytes_mut(node.number);
            for place in &self.places[node.places.clone()] {
                if changed & 1 << place.value != 0 {
                    let known = &self.values[place.value as usize];
                    match known.size {
                        // Known to the compiler, these are written in one piece.
                        8 => write_at(bytes, place.offset as usize, &known.bytes[..8]),
                        4 => write_at(bytes, place.offset as usize, &known.bytes[..4]),
                        size => write_at(bytes, place.offset as usize, &known.bytes[..size]),
                    }
                }
            }
            for place in &self.places[node.places.clone()] {
                if changed & 1 << place.value != 0
                    && let Value::Memory(region) = &self.values[place.value as usize].value
                {
                    ready.set_memory(node.number, place.index, RegionId::of(region));
                }
            }
        }
    }

    /// Has the nodes of a definition let go of the memory among these values, which is kept here.
    pub(super) fn open_gaps(&mut self, definition: &mut Definition, ready: &Ready, given: &[(u32, Value)]) {
        let memory = given.iter().filter(|(_, value)| matches!(value, Value::Memory(_)));
        let memory = memory.fold(0u64, |set, (number, _)| set | 1 << number);
        if memory & !self.gaps == 0 {
            return;
        }
        let gap = Region { base: Base::AllocNode(definition.nodes.nowhere()), offset: 0, bytes: 0 };
        self.fill(definition, ready, memory & !self.gaps, |_| gap.clone());
        self.gaps |= memory;
    }

    /// Has the nodes of a definition keep again what they are given.
    pub(super) fn fill_gaps(&mut self, definition: &mut Definition, ready: &Ready) {
        let gaps = std::mem::take(&mut self.gaps);
        self.fill(definition, ready, gaps, |region| region.clone());
    }

    fn fill(&self, definition: &mut Definition, ready: &Ready, which: u64, with: impl Fn(&Region) -> Region) {
        for node in self.following(which) {
            let data = definition.nodes.get_mut(ready.node(node.number));
            let Some(Operation::Kernel(kernel)) = data.map(|data| &mut data.operation) else { continue };
            let pointers = &mut kernel.make_mut().args.pointers;
            let places = self.places[node.places.clone()].iter();
            for place in places.filter(|place| which & 1 << place.value != 0) {
                let pointer = pointers.iter_mut().find(|pointer| pointer.index == place.index);
                let value = &self.values[place.value as usize].value;
                if let (Some(pointer), Value::Memory(region)) = (pointer, value) {
                    pointer.value = PointerValue::Region(with(region));
                }
            }
        }
    }
}

/// The value that an argument has.
fn current(definition: &Definition, follower: &Follower) -> Option<Value> {
    let Operation::Kernel(launch) = definition.get_node(follower.node)?.operation() else { return None };
    let index = follower.index as usize;
    match launch.args.pointers_in(index).next().map(|pointer| &pointer.value) {
        None => launch.args.value(index).map(Value::plain),
        Some(PointerValue::Region(region)) => Some(Value::Memory(region.clone())),
        Some(PointerValue::Condition(_)) => None,
    }
}
