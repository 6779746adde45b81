//! Finds the memory that an out-of-bounds access was probably meant for.

use std::ops::Range;

use crate::interp::{Fault, FaultKind, MemoryMap, Space};
use crate::memory::Ledger;

/// Addresses below this are a null pointer with an index or a field added.
const NULL_PAGE: u64 = 4096;

/// How far an access may be from memory to be taken as meant for it. A 32-bit index of 8-byte
/// elements stays within.
const FARTHEST: u64 = 1 << 36;

/// The memory that a launch can name.
pub(crate) struct Reach<'a> {
    /// The names of the parameters, and where their arguments are.
    pub(crate) params: Vec<(String, Range<u64>)>,
    /// The bytes of the arguments.
    pub(crate) bytes: &'a [u8],
    /// Names and addresses of the module's variables.
    pub(crate) variables: Vec<(&'a str, Range<u64>)>,
    /// Bytes of shared memory of a block.
    pub(crate) shared: u64,
    pub(crate) memory: &'a Ledger,
}

impl Reach<'_> {
    /// Says how far an illegal access is from the memory it was likely meant for. `None` if that
    /// cannot be told.
    pub(crate) fn explain(&self, fault: &Fault) -> Option<String> {
        let &FaultKind::IllegalAddress { address, space, size, .. } = &fault.kind else { return None };
        match space {
            Space::Shared => Some(format!("a block has {} bytes of shared memory", self.shared)),
            Space::Generic | Space::Global | Space::Const if address < NULL_PAGE => Some(match address {
                0 => "it is a null pointer".to_owned(),
                _ => format!("it is {address} bytes from a null pointer"),
            }),
            Space::Generic | Space::Global | Space::Const => self.nearest(address, size.into()),
            Space::Local | Space::Param => None,
        }
    }

    fn nearest(&self, address: u64, size: u64) -> Option<String> {
        let arguments = self.arguments().map(|(name, range)| (format!("the memory of {name}"), range));
        let variables =
            self.variables.iter().map(|(name, range)| (format!("the variable `{name}`"), range.clone()));
        // The first of several that are equally near: an argument, rather than memory that happens
        // to lie there.
        let others = self.memory.around(address).into_iter().map(|range| ("a buffer".to_owned(), range));
        let named = arguments.chain(variables).min_by_key(|(_, range)| distance(range, address));
        let named = named.filter(|(_, range)| distance(range, address) <= FARTHEST);
        let (name, range) = named.or_else(|| {
            others
                .min_by_key(|(_, range)| distance(range, address))
                .filter(|(_, range)| distance(range, address) <= FARTHEST)
        })?;
        let bytes = range.end - range.start;
        Some(if address < range.start {
            format!("it starts {} bytes before {name}, which has {bytes} bytes", range.start - address)
        } else {
            let beyond = address.saturating_add(size) - range.end;
            format!("it ends {beyond} bytes beyond {name}, which has {bytes} bytes")
        })
    }

    /// Returns the live memory that addresses among the arguments lead to, also those inside a
    /// structure.
    fn arguments(&self) -> impl Iterator<Item = (String, Range<u64>)> {
        self.params.iter().enumerate().flat_map(move |(index, (name, range))| {
            range.clone().step_by(8).filter_map(move |at| {
                let word = self.bytes.get(at as usize..at as usize + 8)?;
                let value = u64::from_le_bytes(word.try_into().ok()?);
                Some((format!("argument {index} (`{name}`)"), self.memory.allocation(value)?))
            })
        })
    }
}

/// Returns how far an address is from memory.
fn distance(range: &Range<u64>, address: u64) -> u64 {
    if address < range.start { range.start - address } else { address.saturating_sub(range.end) }
}
