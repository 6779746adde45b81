//! Random numbers that a seed determines (SplitMix64), the same on every machine.

/// A generator. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }

    pub fn i32(&mut self) -> i32 {
        self.u32() as i32
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.u64() % bound as u64) as usize
    }

    /// A number of `range`, ends included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.u64() % (high - low + 1) as u64) as i64
    }

    /// `true` once in `times`, on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several values.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A float between `low` and `high`.
    pub fn f32(&mut self, low: f32, high: f32) -> f32 {
        self.f64(f64::from(low), f64::from(high)) as f32
    }

    pub fn f64(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.u64() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// `len` values, each made by `make`.
    pub fn vec<T>(&mut self, len: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..len).map(|_| make(self)).collect()
    }

    pub fn i32s(&mut self, len: usize) -> Vec<i32> {
        self.vec(len, Random::i32)
    }

    pub fn u32s(&mut self, len: usize) -> Vec<u32> {
        self.vec(len, Random::u32)
    }

    pub fn f32s(&mut self, len: usize, low: f32, high: f32) -> Vec<f32> {
        self.vec(len, |random| random.f32(low, high))
    }
}
