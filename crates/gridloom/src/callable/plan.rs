//! What of a callable's graph follows its arguments in the short way: values that go straight to the arguments of kernels.

use gridloom_core::Executable;
use gridloom_core::executable::{Follower, RegionId, Value};
use gridloom_core::memory::Region;
use smallvec::SmallVec;

use super::operands::Slot;
use super::params::{Binding, Length, Offer, Seen};
use super::sequence::Recipe;
use crate::Result;

/// The values that come from a parameter, each with its number.
#[derive(Default)]
struct Values {
    /// Its memory, or its bytes.
    itself: Option<u32>,
    /// Its length, in as many bytes, signed or not.
    lengths: SmallVec<[(u32, Length, usize, bool); 1]>,
}

/// The values that kernels follow, and what else follows the parameters.
pub(super) struct Plan {
    /// By parameter.
    values: Vec<Values>,
    followers: Vec<Follower>,
    /// How many values there are.
    count: u32,
    /// The parameters that more than arguments of kernels follow, or that decide which graph is called.
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
    unused: Vec<Region>,
}

impl Plan {
    /// What follows the parameters that these bindings are for.
    pub(super) fn new(bindings: &[Binding], recipes: &[Recipe]) -> Self {
        let shapes = bindings.iter().enumerate().filter(|(_, binding)| matches!(binding, Binding::Shape(_)));
        let mut plan = Plan {
            values: bindings.iter().map(|_| Values::default()).collect(),
            followers: Vec::new(),
            count: 0,
            elsewhere: shapes.fold(0, |set, (param, _)| set | 1 << param),
            shapes: 0,
            nodes: Vec::new(),
        };
        for recipe in recipes {
            plan.nodes.push((recipe.follows, recipe.bytes));
            let Some((shape, slots)) = recipe.launch() else {
                plan.elsewhere |= recipe.follows;
                continue;
            };
            plan.shapes |= shape;
            for (index, slot) in slots.iter().enumerate() {
                if let Some(value) = plan.value(slot) {
                    plan.followers.push(Follower { node: recipe.node, index: index as u32, value });
                }
            }
        }
        plan
    }

    /// The number of the value that an argument follows.
    fn value(&mut self, slot: &Slot) -> Option<u32> {
        let values = &mut self.values[slot.param()?.index];
        let count = &mut self.count;
        let mut next = || {
            *count += 1;
            *count - 1
        };
        let Slot::Length(length, bytes, signed) = slot else {
            return Some(*values.itself.get_or_insert_with(next));
        };
        let known = values.lengths.iter().find(|(_, known, known_bytes, known_signed)| {
            length.is_same(known) && (bytes, signed) == (known_bytes, known_signed)
        });
        Some(match known {
            Some((number, ..)) => *number,
            None => {
                let number = next();
                values.lengths.push((number, *length, *bytes, *signed));
                number
            }
        })
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

    /// Gives an executable the arguments of a call that differ from those in `seen`, which `offer` hands on. Whether that was all there was to do; else nothing was
    /// changed, and what was to be given counts as not seen.
    pub(super) fn give(
        &self,
        executable: &mut Executable,
        seen: &mut [Seen],
        changed: u64,
        offer: impl Fn(usize, &mut dyn FnMut(Offer<'_>) -> bool) -> Result<bool>,
        given: &mut Given,
    ) -> Result<bool> {
        let mut left = changed;
        let mut outcome = Ok(true);
        while left != 0 && matches!(outcome, Ok(true)) {
            let param = left.trailing_zeros() as usize;
            left &= left - 1;
            outcome = offer(param, &mut |offered| self.push(param, offered, &mut seen[param], given));
        }
        // SAFETY: they are of the types that the kernels of the nodes were looked up with (`CallArguments`), and whoever looked them up promised that
        // they stay within what such arguments lead to where their contracts are kept (`Module::kernel`), which is checked there.
        if matches!(outcome, Ok(true)) && unsafe { executable.set_followed(&mut given.values) } {
            return Ok(true);
        }
        for (_, seen) in seen.iter_mut().enumerate().filter(|(param, _)| changed & 1 << param != 0) {
            *seen = Seen::Nothing;
        }
        outcome.map(|_| false)
    }

    /// Adds the values that come from a parameter, and notes what it is. Whether that is all there is to it, and each fits where it is given.
    #[inline]
    fn push(&self, param: usize, offered: Offer<'_>, seen: &mut Seen, given: &mut Given) -> bool {
        let values = &self.values[param];
        match offered {
            Offer::Value(bytes) => {
                match seen {
                    Seen::Value(there) if there.len() == bytes.len() => there.copy_from_slice(bytes),
                    seen => *seen = Seen::Value(SmallVec::from_slice(bytes)),
                }
                if let Some(number) = values.itself {
                    given.values.push((number, Value::plain(bytes)));
                }
                true
            }
            Offer::Memory(region) => {
                let mut fits = self.shapes & 1 << param == 0 || seen.memory_bytes() == Some(region.bytes);
                for (number, length, bytes, signed) in &values.lengths {
                    let elements = length.elements_of(&region);
                    let bits = 8 * *bytes as u32 - u32::from(*signed);
                    fits &= bits == 64 || elements >> bits == 0;
                    given.values.push((*number, Value::plain(&elements.to_le_bytes()[..*bytes])));
                }
                *seen = RegionId::of(&region).map_or(Seen::Nothing, Seen::Memory);
                match values.itself {
                    Some(number) => given.values.push((number, Value::Memory(region))),
                    None => given.unused.push(region),
                }
                fits
            }
            Offer::Shape => false,
        }
    }

    /// Has an executable follow values, whose arguments are as the plan says. Whether it can.
    pub(super) fn follow(&self, executable: &mut Executable) -> bool {
        !self.followers.is_empty() && executable.follow(&self.followers)
    }
}
