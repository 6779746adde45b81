//! Changing parts of kernel arguments, and replacing the memory that operations use.

use super::kernel::known_address;
use super::{ArgValue, KernelArgs, Launch, Operation, PointerArg, PointerValue, Reference};
use crate::error::{Error, ErrorKind, Result, bail};
use crate::memory::{Base, Region};

impl KernelArgs {
    /// Returns the pointers in argument `index`, at any of its bytes.
    pub fn pointers_in(&self, index: usize) -> impl Iterator<Item = &PointerArg> {
        self.pointers.iter().filter(move |pointer| pointer.index as usize == index)
    }

    /// Returns every aligned 8-byte word of the arguments, where an address can be: argument index,
    /// byte offset in the argument, value. Addresses are aligned inside structures too.
    pub fn words(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.layout.iter().enumerate().flat_map(move |(index, place)| {
            let first = place.offset.next_multiple_of(8) - place.offset;
            let bytes = self.value(index).unwrap_or_default();
            (first as usize..bytes.len().saturating_sub(7)).step_by(8).map(move |offset| {
                let word = bytes[offset..offset + 8].try_into().expect("eight bytes");
                (index as u32, offset as u32, u64::from_ne_bytes(word))
            })
        })
    }

    /// Replaces argument `index` by a value of the same size.
    pub fn set_whole(&mut self, kernel: &str, index: usize, value: ArgValue) -> Result<()> {
        if let Some(place) = self.layout.get(index)
            && place.size as usize != value.size()
        {
            bail!(
                ParameterMismatch,
                "parameter {index} of kernel {kernel} has {} bytes, the argument has {}",
                place.size,
                value.size()
            );
        }
        self.set(kernel, index, 0, value)
    }

    /// Writes a value at byte `offset` of argument `index`.
    pub fn set(&mut self, kernel: &str, index: usize, offset: usize, value: ArgValue) -> Result<()> {
        let Some(place) = self.layout.get(index).copied() else {
            bail!(
                ParameterMismatch,
                "kernel {kernel} takes {} parameters; there is no parameter {index}",
                self.layout.len()
            );
        };
        let size = value.size();
        if offset.checked_add(size).is_none_or(|end| end > place.size as usize) {
            bail!(
                ParameterMismatch,
                "parameter {index} of kernel {kernel} has {} bytes, the value has {size} at byte {offset}",
                place.size
            );
        }
        let start = place.offset as usize + offset;
        let Some(slot) = self.bytes.get_mut(start..start + size) else {
            bail!(
                ParameterMismatch,
                "the arguments of {kernel} end before byte {offset} of parameter {index}"
            );
        };
        let overlaps = |pointer: &PointerArg| {
            let at = pointer.offset as usize;
            pointer.index as usize == index && at < offset + size && offset < at + 8
        };
        self.pointers.retain(|pointer| !overlaps(pointer));
        match value {
            ArgValue::Bytes(bytes) => slot.copy_from_slice(&bytes),
            ArgValue::Pointer(pointer) => {
                slot.copy_from_slice(&known_address(&pointer).unwrap_or(0).to_ne_bytes());
                self.pointers.push(PointerArg { index: index as u32, offset: offset as u32, value: pointer });
            }
        }
        Ok(())
    }

    /// Replaces every address in `old` by the same byte of `new`. Returns the number of
    /// replacements. An address that was given as a plain value is recognized by its value.
    pub fn replace_memory(&mut self, kernel: &str, old: &Region, new: &Region) -> Result<usize> {
        let mut changes = Vec::new();
        for (index, offset, word) in self.words() {
            let known = self.pointers_in(index as usize).find(|pointer| pointer.offset == offset);
            let used = match (known.map(|pointer| &pointer.value), &old.base) {
                (Some(PointerValue::Region(region)), _) => region.clone(),
                (Some(PointerValue::Condition(_)), _) => continue,
                (None, Base::Allocation(allocation)) => {
                    let start = allocation.address();
                    let Some(from) = word.checked_sub(start).filter(|from| *from < allocation.bytes()) else {
                        continue;
                    };
                    Region { base: old.base.clone(), offset: from, bytes: allocation.bytes() - from }
                }
                (None, _) => continue,
            };
            if let Some(region) = used.moved(old, new) {
                changes.push((index, offset, region?));
            }
        }
        let count = changes.len();
        for (index, offset, region) in changes {
            let value = ArgValue::Pointer(PointerValue::Region(region));
            self.set(kernel, index as usize, offset as usize, value)?;
        }
        Ok(count)
    }
}

impl Operation {
    /// Returns the operation with every use of memory in `old` moved to the same byte of `new`, and
    /// the number of uses. Returns `None` if there are no uses.
    ///
    /// # Safety
    /// As for [`Graph::replace_region`](crate::graph::Graph::replace_region).
    pub unsafe fn with_memory_replaced(
        &self,
        old: &Region,
        new: &Region,
    ) -> Result<Option<(Operation, usize)>> {
        if let Operation::Kernel(kernel) = self {
            let mut args = kernel.args().clone();
            let count = args.replace_memory(kernel.kernel().name(), old, new)?;
            // SAFETY: the caller promises it for the replaced addresses. The others are those of
            // the existing launch, whose author made the promise.
            let launch = || Launch::new(unsafe { kernel.with_args(args) });
            return Ok((count > 0).then(|| (Operation::Kernel(launch()), count)));
        }
        let mut is_used = false;
        self.for_each_region(|region| is_used |= region.moved(old, new).is_some());
        if !is_used {
            return Ok(None);
        }
        let has_extents = matches!(self, Operation::Callback(_));
        let (mut count, mut failure) = (0, None);
        let operation = self.with_references(&mut |reference| {
            let Reference::Region(region) = reference else { return };
            match region.moved(old, new) {
                // A callback reads exactly what it was given.
                Some(Ok(moved)) if has_extents && moved.bytes != region.bytes => {
                    let message = format!(
                        "the callback reads {} bytes, and the memory in their place has {}",
                        region.bytes, moved.bytes
                    );
                    failure.get_or_insert(Error::new(ErrorKind::InvalidArgument, message));
                }
                Some(Ok(moved)) => {
                    *region = moved;
                    count += 1;
                }
                Some(Err(error)) => drop(failure.get_or_insert(error)),
                None => {}
            }
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(Some((operation, count))),
        }
    }
}
