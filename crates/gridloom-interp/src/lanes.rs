//! The register file of a warp, and instructions that only compute on registers.
//!
//! Registers are stored as a structure of arrays: one *slot* holds one register of all 32 lanes. An
//! instruction that only computes is a Rust closure over the values of one lane. `map` lifts it
//! to the active lanes of a warp. The loop over the lanes is compiled once per closure, so an
//! instruction's type and modifiers are resolved when it is decoded and not when it runs.

/// The number of lanes of a warp.
pub const LANES: usize = 32;

/// One register in every lane of a warp. Values narrower than 64 bits are zero-extended.
pub type Lanes = [u64; LANES];

/// A register of a frame, counted from the frame's first slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

/// The source of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A register.
    Slot(Slot),
    /// A constant of the kernel. It is stored once per lane so that it can be read like a register.
    Constant(u32),
}

/// The registers of the function that a group of lanes executes.
pub struct Frame<'a> {
    pub slots: &'a mut [Lanes],
    pub constants: &'a [Lanes],
}

impl Frame<'_> {
    #[inline]
    pub fn lanes(&self, source: Source) -> &Lanes {
        match source {
            Source::Slot(Slot(slot)) => &self.slots[slot as usize],
            Source::Constant(index) => &self.constants[index as usize],
        }
    }

    #[inline]
    pub fn get(&self, source: Source, lane: u32) -> u64 {
        self.lanes(source)[lane as usize]
    }

    #[inline]
    pub fn set(&mut self, slot: Slot, lane: u32, value: u64) {
        self.slots[slot.0 as usize][lane as usize] = value;
    }
}

/// Returns the lanes of a mask, lowest first.
#[inline]
pub fn lanes_of(mask: u32) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            lane
        })
    })
}

/// An instruction that maps registers to registers, lane by lane.
pub trait Lanewise: Send + Sync {
    /// Executes it in the lanes of `mask`.
    fn run(&self, frame: &mut Frame<'_>, mask: u32);

    /// Executes it on the values of one lane. The slices are as long as [`sources`](Self::sources)
    /// and [`destinations`](Self::destinations). Missing values count as zero, and results past the
    /// end are dropped.
    fn call(&self, values: &[u64], results: &mut [u64]);

    /// Returns the operands it reads.
    fn sources(&self) -> &[Source];

    /// Returns the slots it writes.
    fn destinations(&self) -> &[Slot];
}

struct Map<F, const N: usize, const M: usize> {
    function: F,
    sources: [Source; N],
    destinations: [Slot; M],
}

impl<F, const N: usize, const M: usize> Lanewise for Map<F, N, M>
where
    F: Fn([u64; N]) -> [u64; M] + Send + Sync,
{
    fn run(&self, frame: &mut Frame<'_>, mask: u32) {
        // Results are written after every operand is read, because a destination may also be an
        // operand.
        let mut results = [[0; LANES]; M];
        let sources = self.sources.map(|source| frame.lanes(source));
        let mut step = |lane: usize| {
            let values = (self.function)(std::array::from_fn(|i| sources[i][lane]));
            for (result, value) in results.iter_mut().zip(values) {
                result[lane] = value;
            }
        };
        if mask == u32::MAX {
            for lane in 0..LANES {
                step(lane);
            }
            for (slot, result) in self.destinations.iter().zip(results) {
                frame.slots[slot.0 as usize] = result;
            }
        } else {
            lanes_of(mask).for_each(|lane| step(lane as usize));
            for (slot, result) in self.destinations.iter().zip(results) {
                let destination = &mut frame.slots[slot.0 as usize];
                for lane in lanes_of(mask) {
                    destination[lane as usize] = result[lane as usize];
                }
            }
        }
    }

    fn call(&self, values: &[u64], results: &mut [u64]) {
        let value = |i: usize| values.get(i).copied().unwrap_or(0);
        for (result, value) in results.iter_mut().zip((self.function)(std::array::from_fn(value))) {
            *result = value;
        }
    }

    fn sources(&self) -> &[Source] {
        &self.sources
    }

    fn destinations(&self) -> &[Slot] {
        &self.destinations
    }
}

/// Lifts a function of one lane to a warp.
pub(crate) fn map<F, const N: usize, const M: usize>(
    destinations: [Slot; M],
    sources: [Source; N],
    function: F,
) -> Box<dyn Lanewise>
where
    F: Fn([u64; N]) -> [u64; M] + Send + Sync + 'static,
{
    Box::new(Map { function, sources, destinations })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inactive_lanes_keep_their_values() {
        let mut slots = [[1; LANES], [7; LANES]];
        let mut frame = Frame { slots: &mut slots, constants: &[[10; LANES]] };
        let add = map([Slot(1)], [Source::Slot(Slot(0)), Source::Constant(0)], |[a, b]| [a + b]);
        add.run(&mut frame, 0b101);
        assert_eq!(slots[1][..4], [11, 7, 11, 7]);
    }

    #[test]
    fn a_destination_may_be_an_operand() {
        let mut slots = [[1; LANES], [2; LANES]];
        let mut frame = Frame { slots: &mut slots, constants: &[] };
        let (a, b) = (Slot(0), Slot(1));
        map([a, b], [Source::Slot(a), Source::Slot(b)], |[a, b]| [b, a]).run(&mut frame, u32::MAX);
        assert_eq!(slots, [[2; LANES], [1; LANES]]);
    }
}
