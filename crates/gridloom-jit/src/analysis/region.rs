//! The regions of a function: the code that a group can run between one barrier and the next.
//!
//! Each region has its own loop over the groups. So the values that one region needs do not occupy
//! registers in others, and the exits of each are known. Entries that reach the same code share a
//! region.

use crate::analysis::flow::{Flow, Role};
use crate::spill_frame::{FrameLayout, is_passed};
use gridloom_interp::code::{Op, Pc};
use gridloom_interp::compiled::EXITED;

/// A region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// The numbers of its entries: first those of the code, then one after each barrier that groups
    /// pass.
    pub(crate) entries: Vec<u32>,
    /// The points that its groups can reach and continue from together: numbers of entries after
    /// barriers, or [`EXITED`].
    pub(crate) arrivals: Vec<u32>,
}

/// The regions of a function.
pub(crate) struct Regions {
    pub(crate) list: Vec<Region>,
    /// The region of each block. Unreachable blocks are in the first.
    of_block: Vec<usize>,
}

impl Regions {
    /// Returns the one region of code for single threads, which passes no barriers.
    pub(crate) fn one(flow: &Flow<'_>, entries: &[Pc]) -> Self {
        let entries = (0..entries.len() as u32).collect();
        let all = Region { entries, arrivals: Vec::new() };
        Self { list: vec![all], of_block: vec![0; flow.blocks.len()] }
    }

    pub(crate) fn of(flow: &Flow<'_>, entries: &[Pc], layout: &FrameLayout) -> Self {
        let starts: Vec<Pc> =
            entries.iter().copied().chain(layout.barriers().map(|barrier| barrier + 1)).collect();
        // The region of each entry and block. Each starts in a region of its own.
        let mut of_entry: Vec<usize> = (0..starts.len()).collect();
        let mut of_block: Vec<Option<usize>> = vec![None; flow.blocks.len()];
        for (entry, &start) in starts.iter().enumerate() {
            let mut work: Vec<usize> = flow.block_at(start).into_iter().collect();
            while let Some(index) = work.pop() {
                let mine = of_entry[entry];
                match of_block[index] {
                    Some(region) if region == mine => continue,
                    Some(other) => {
                        // Merges the two regions.
                        of_entry
                            .iter_mut()
                            .filter(|region| **region == mine)
                            .for_each(|region| *region = other);
                        of_block.iter_mut().filter(|region| **region == Some(mine)).for_each(|region| {
                            *region = Some(other);
                        });
                        continue;
                    }
                    None => of_block[index] = Some(mine),
                }
                let block = &flow.blocks[index];
                if flow.role(block.range.end - 1) != Role::Interpreted {
                    work.extend(block.successors.iter().filter_map(|&successor| flow.block_at(successor)));
                }
            }
        }
        let mut numbers: Vec<usize> = of_entry.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let number = |region: usize| numbers.binary_search(&region).unwrap_or(0);
        let mut list: Vec<Region> = numbers
            .iter()
            .map(|&region| Region {
                entries: (0..)
                    .zip(&of_entry)
                    .filter(|&(_, &of)| of == region)
                    .map(|(entry, _)| entry)
                    .collect(),
                arrivals: Vec::new(),
            })
            .collect();
        for (block, region) in flow.blocks.iter().zip(&of_block) {
            let Some(region) = *region else { continue };
            let last = block.range.end - 1;
            let place = match &flow.instruction(last).op {
                Op::Exit | Op::Return if flow.role(last) == Role::Terminator => EXITED,
                _ if is_passed(flow, last) => match layout.at(last) {
                    Some((barrier, _)) => (entries.len() + barrier) as u32,
                    None => continue,
                },
                _ => continue,
            };
            let arrivals = &mut list[number(region)].arrivals;
            if !arrivals.contains(&place) {
                arrivals.push(place);
            }
        }
        let of_block = of_block.into_iter().map(|region| region.map_or(0, number)).collect();
        Self { list, of_block }
    }

    /// Returns the region that a block is in.
    pub(crate) fn of_block(&self, block: usize) -> usize {
        self.of_block[block]
    }
}
