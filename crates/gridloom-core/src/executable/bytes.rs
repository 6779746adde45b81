//! The bytes of arguments that change often.

use std::ops::{Deref, DerefMut};

/// Most kernels take no more.
const INLINE: usize = 48;

/// Bytes of arguments. Where they are few they lie in place, and are copied without asking how many there are.
pub(super) struct Bytes {
    inline: [u8; INLINE],
    len: usize,
    /// All of them, where they are too many. Else there are none.
    spilled: Box<[u8]>,
}

impl Bytes {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut inline = [0; INLINE];
        let spilled = match inline.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                Box::default()
            }
            None => bytes.into(),
        };
        Bytes { inline, len: bytes.len(), spilled }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.inline.get(..self.len).unwrap_or(&self.spilled)
    }
}

impl DerefMut for Bytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.inline.get_mut(..self.len).unwrap_or(&mut self.spilled)
    }
}

/// Bytes that are as they were again when this goes, whether by a refusal or a panic.
pub(super) struct Undo<'a> {
    now: &'a mut Bytes,
    inline: [u8; INLINE],
    spilled: Box<[u8]>,
    is_needed: bool,
}

impl<'a> Undo<'a> {
    #[inline]
    pub(super) fn new(now: &'a mut Bytes) -> Self {
        let spilled = if now.spilled.is_empty() { Box::default() } else { copied(&now.spilled) };
        Undo { inline: now.inline, spilled, is_needed: true, now }
    }

    /// They stay as they are now.
    #[inline]
    pub(super) fn keep(mut self) {
        self.is_needed = false;
    }
}

#[cold]
fn copied(bytes: &[u8]) -> Box<[u8]> {
    bytes.into()
}

impl Deref for Undo<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.now
    }
}

impl DerefMut for Undo<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.now
    }
}

impl Drop for Undo<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_needed {
            self.now.inline = self.inline;
            std::mem::swap(&mut self.now.spilled, &mut self.spilled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_bytes_are_as_they_were_unless_they_are_kept() {
        for count in [0, 1, INLINE - 1, INLINE, INLINE + 1, 4096] {
            let mut bytes = Bytes::new(&vec![1; count]);
            assert_eq!(*bytes, vec![1; count]);
            let mut undo = Undo::new(&mut bytes);
            undo.fill(2);
            assert_eq!(*undo, vec![2; count]);
            drop(undo);
            assert_eq!(*bytes, vec![1; count]);
            let mut undo = Undo::new(&mut bytes);
            undo.fill(3);
            undo.keep();
            assert_eq!(*bytes, vec![3; count]);
        }
    }
}
