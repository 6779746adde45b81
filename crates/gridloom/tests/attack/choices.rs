//! The source of the attack's choices: a seed, or the bytes of a fuzzer.

use crate::support::Random;

/// Makes choices. The same seed or bytes give the same ones.
pub(crate) enum Choices {
    Seeded(Random),
    Bytes { bytes: Vec<u8>, at: usize },
}

impl Choices {
    /// The choices of one step of one thread. They depend on no other step, so that steps can be
    /// left out.
    pub(crate) fn of_step(seed: u64, thread: usize, step: usize) -> Self {
        let mut random = Random::new(seed ^ ((thread as u64) << 48) ^ ((step as u64) << 20));
        random.u64();
        Choices::Seeded(random)
    }

    pub(crate) fn seeded(seed: u64) -> Self {
        Choices::Seeded(Random::new(seed))
    }

    pub(crate) fn bytes(bytes: &[u8]) -> Self {
        Choices::Bytes { bytes: bytes.to_vec(), at: 0 }
    }

    /// Returns whether there is nothing left to choose by; a seed never runs out.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Choices::Seeded(_) => false,
            Choices::Bytes { bytes, at } => *at >= bytes.len(),
        }
    }

    pub(crate) fn u64(&mut self) -> u64 {
        match self {
            Choices::Seeded(random) => random.u64(),
            Choices::Bytes { .. } => (0..8).fold(0, |value, _| value << 8 | self.byte()),
        }
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        match self {
            Choices::Seeded(random) => random.below(bound),
            Choices::Bytes { .. } if bound <= 256 => self.byte() as usize % bound,
            Choices::Bytes { .. } => (self.byte() << 8 | self.byte()) as usize % bound,
        }
    }

    /// `true` once in `times`, on average.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        // Not 0: bytes that ran out must not choose what is rare for ever.
        self.below(times) == times - 1
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A small number, now and then any.
    pub(crate) fn i32(&mut self) -> i32 {
        if self.one_in(8) { self.u64() as i32 } else { self.below(9) as i32 - 2 }
    }

    fn byte(&mut self) -> u64 {
        match self {
            Choices::Seeded(random) => random.u64() & 0xff,
            Choices::Bytes { bytes, at } => {
                *at += 1;
                bytes.get(*at - 1).map_or(0, |byte| u64::from(*byte))
            }
        }
    }
}
