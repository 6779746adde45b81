//! What of a callable's graph follows its arguments in the short way: values that go straight to the arguments of kernels.

use gridloom_core::executable::{Follower, Value};
use smallvec::SmallVec;

use super::operands::{MemorySlot, Slot};
use super::params::{Binding, Length, Seen};
use super::sequence::Recipe;
use crate::{Executable, Result};

/// Where a value that kernels are given comes from.
enum Source {
    /// The memory of a parameter.
    Memory(usize),
    /// The value of a parameter.
    Scalar(usize),
    /// The length of a parameter, as an argument gives it.
    Length(Length, usize, bool),
}

impl Source {
    fn of(slot: &Slot) -> Option<Self> {
        match slot {
            Slot::Fixed(_) | Slot::Memory(MemorySlot::Fixed(_)) => None,
            Slot::Memory(MemorySlot::Param(param)) => Some(Source::Memory(param.index)),
            Slot::Scalar(param) => Some(Source::Scalar(param.index)),
            Slot::Length(length, bytes, signed) => Some(Source::Length(*length, *bytes, *signed)),
        }
    }

    fn param(&self) -> usize {
        match self {
            Source::Memory(param) | Source::Scalar(param) => *param,
            Source::Length(length, ..) => length.param.index,
        }
    }

    fn is_same(&self, other: &Source) -> bool {
        match (self, other) {
            (Source::Memory(one), Source::Memory(other)) | (Source::Scalar(one), Source::Scalar(other)) => {
                one == other
            }
            (Source::Length(one, bytes, signed), Source::Length(other, other_bytes, other_signed)) => {
                one.is_same(other) && (bytes, signed) == (other_bytes, other_signed)
            }
            _ => false,
        }
    }
}

/// The values that kernels follow, and what else follows the parameters.
pub(super) struct Plan {
    sources: Vec<Source>,
    followers: Vec<Follower>,
    /// The parameters that more than arguments of kernels follow.
    elsewhere: u64,
    /// The parameters whose lengths decide the shapes of launches.
    shapes: u64,
    /// Of each node that follows: which parameters, and the bytes of its arguments.
    nodes: Vec<(u64, u64)>,
}

/// What a call gave and replaced, to be dropped outside of any lock.
#[derive(Default)]
pub(super) struct Given {
    values: SmallVec<[(u32, Value); 4]>,
    unused: Vec<Binding>,
}

impl Plan {
    pub(super) fn new(recipes: &[Recipe]) -> Self {
        let mut plan =
            Plan { sources: Vec::new(), followers: Vec::new(), elsewhere: 0, shapes: 0, nodes: Vec::new() };
        for recipe in recipes {
            plan.nodes.push((recipe.follows, recipe.bytes));
            let Some((shape, slots)) = recipe.launch() else {
                plan.elsewhere |= recipe.follows;
                continue;
            };
            plan.shapes |= shape;
            for (index, slot) in slots.iter().enumerate() {
                if let Some(source) = Source::of(slot) {
                    let value = plan.number(source);
                    plan.followers.push(Follower { node: recipe.node, index: index as u32, value });
                }
            }
        }
        plan
    }

    /// The number of the value from a source.
    fn number(&mut self, source: Source) -> u32 {
        let known = self.sources.iter().position(|known| known.is_same(&source));
        known.unwrap_or_else(|| {
            self.sources.push(source);
            self.sources.len() - 1
        }) as u32
    }

    /// How many nodes follow these parameters, and the bytes of their arguments.
    pub(super) fn count(&self, changed: u64) -> (u64, u64) {
        let following = self.nodes.iter().filter(|(follows, _)| follows & changed != 0);
        following.fold((0, 0), |(nodes, sum), (_, bytes)| (nodes + 1, sum + bytes))
    }

    /// Whether a change of these parameters concerns arguments of kernels alone, as long as no shape changes.
    #[inline]
    pub(super) fn allows(&self, changed: u64) -> bool {
        changed & self.elsewhere == 0
    }

    /// Gives an executable the arguments of a call that differ from those in `seen`. Whether that was all there was to do; else nothing was changed.
    pub(super) fn give(
        &self,
        executable: &mut Executable,
        seen: &mut [Seen],
        changed: u64,
        bind: impl Fn(usize) -> Result<Binding>,
        given: &mut Given,
    ) -> Result<bool> {
        let mut now: SmallVec<[(usize, Seen); 4]> = SmallVec::new();
        for (param, seen) in seen.iter().enumerate().filter(|(param, _)| changed & 1 << param != 0) {
            let binding = bind(param)?;
            let new = Seen::of(&binding);
            let is_same_shape = self.shapes & 1 << param == 0 || new.memory_bytes() == seen.memory_bytes();
            let can = is_same_shape && self.push(param, binding, &mut given.values, &mut given.unused);
            if !can {
                return Ok(false);
            }
            now.push((param, new));
        }
        // SAFETY: they are of the types that the kernels of the nodes were looked up with (`CallArguments`), and whoever looked them up promised that
        // they stay within what such arguments lead to (`Module::kernel`).
        if !unsafe { executable.set_followed(&mut given.values) } {
            return Ok(false);
        }
        for (param, new) in now {
            seen[param] = new;
        }
        Ok(true)
    }

    /// Adds the values that come from a parameter. Whether that is all, and each fits where it is given.
    fn push(
        &self,
        param: usize,
        binding: Binding,
        values: &mut SmallVec<[(u32, Value); 4]>,
        unused: &mut Vec<Binding>,
    ) -> bool {
        let mut memory = None;
        for (number, source) in self.sources.iter().enumerate().filter(|(_, source)| source.param() == param)
        {
            match source {
                Source::Memory(_) => memory = Some(number as u32),
                Source::Scalar(_) => values.push((number as u32, Value::plain(binding.value()))),
                Source::Length(length, bytes, signed) => {
                    let elements = length.elements_of(binding.region());
                    let bits = 8 * *bytes as u32 - u32::from(*signed);
                    if bits < 64 && elements >> bits != 0 {
                        unused.push(binding);
                        return false;
                    }
                    values.push((number as u32, Value::plain(&elements.to_le_bytes()[..*bytes])));
                }
            }
        }
        match (memory, binding) {
            (Some(number), Binding::Memory(region)) => values.push((number, Value::Memory(region))),
            (_, binding @ Binding::Memory(_)) => unused.push(binding),
            // Another graph is to be called.
            (_, Binding::Shape(_)) => return false,
            _ => {}
        }
        true
    }

    /// Has an executable follow values, whose arguments are as the plan says. Whether it can.
    pub(super) fn follow(&self, executable: &mut Executable) -> bool {
        !self.followers.is_empty() && executable.follow(&self.followers)
    }
}
