//! Argument buffers that change frequently.

use std::ops::{Deref, DerefMut};

/// The size of a short buffer. Most kernels take no more bytes of arguments.
pub(crate) const FEW_BYTES: usize = 48;

/// An argument buffer. A short one is stored in place and copied without checking its length.
pub(crate) struct ArgBytes {
    inline: [u8; FEW_BYTES],
    len: usize,
    /// All bytes if they do not fit in place, else empty.
    spilled: Box<[u8]>,
}

impl ArgBytes {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut inline = [0; FEW_BYTES];
        let spilled = match inline.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                Box::default()
            }
            None => bytes.into(),
        };
        ArgBytes { inline, len: bytes.len(), spilled }
    }

    /// Returns the bytes in place, or `None` if they do not fit.
    #[inline]
    pub(crate) fn short(&self) -> Option<&[u8; FEW_BYTES]> {
        (self.len <= FEW_BYTES).then_some(&self.inline)
    }
}

impl Deref for ArgBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.inline.get(..self.len).unwrap_or(&self.spilled)
    }
}

impl DerefMut for ArgBytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.inline.get_mut(..self.len).unwrap_or(&mut self.spilled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_bytes_read_back_and_are_written() {
        for count in [0, 1, FEW_BYTES - 1, FEW_BYTES, FEW_BYTES + 1, 4096] {
            let mut bytes = ArgBytes::new(&vec![1; count]);
            assert_eq!(*bytes, vec![1; count]);
            bytes.fill(2);
            assert_eq!(*bytes, vec![2; count]);
            assert_eq!(bytes.short().is_some(), count <= FEW_BYTES);
        }
    }
}
