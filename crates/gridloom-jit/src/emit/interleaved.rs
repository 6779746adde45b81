//! Loads and stores of several elements for each thread, `.v2` and `.v4`, which lie side by side in
//! memory.
//!
//! The elements of a thread are moved at once, and those of several threads are transposed between
//! that form and the vectors of registers. Elements that are narrower than 32 bits are moved as the
//! words that they make up.

use super::Emitter;
use super::memory::shared_flags;
use super::value::Val;
use crate::native::Class;
use cranelift_codegen::ir::types::{I8X16, I16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{InstBuilder, Value};
use gridloom_interp::code::{Extend, Load, Store};

/// Which halves of two vectors are interleaved.
#[derive(Clone, Copy)]
enum Half {
    Low,
    High,
}

/// Where the elements of each thread are: an address of the host that was checked, and what is
/// added to it.
pub(super) type HostAddress = (Value, i32);

impl Emitter<'_> {
    /// Returns whether several elements of each thread are loaded at once.
    pub(super) fn is_interleaved_load(&self, load: &Load) -> bool {
        let Extend { size, signed_to } = load.extend;
        let fits = signed_to.is_none_or(|bits| bits <= if size < 4 { 32 } else { 8 * size });
        fits && self.is_interleaved(size, load.destinations.len())
    }

    /// Returns whether several elements of each thread are stored at once.
    pub(super) fn is_interleaved_store(&self, store: &Store) -> bool {
        self.is_interleaved(store.size, store.sources.len())
    }

    fn is_interleaved(&self, size: u32, elements: usize) -> bool {
        self.lanes >= 4 && matches!((elements, size), (2 | 4, 1 | 2 | 4 | 8))
    }

    /// Elements of two vectors by turns: from their low or their high halves.
    fn interleave(&mut self, a: Value, b: Value, half: Half, bytes: u8) -> Value {
        let (a, b) = (self.vector_cast(a, I8X16), self.vector_cast(b, I8X16));
        let start = match half {
            Half::Low => 0,
            Half::High => 8,
        };
        let picked = std::array::from_fn(|i| {
            let (element, byte) = (i as u8 / bytes, i as u8 % bytes);
            start + element / 2 * bytes + byte + if element.is_multiple_of(2) { 0 } else { 16 }
        });
        self.shuffle(a, b, picked)
    }

    /// Rows of four words as columns, which is its own inverse.
    fn transpose_words(&mut self, rows: [Value; 4]) -> [Value; 4] {
        let [a, b, c, d] = rows;
        let [low, high] = [Half::Low, Half::High]
            .map(|half| [self.interleave(a, b, half, 4), self.interleave(c, d, half, 4)]);
        let mut columns = [a; 4];
        for (i, [x, y]) in [low, high].into_iter().enumerate() {
            for (j, half) in [Half::Low, Half::High].into_iter().enumerate() {
                let column = self.interleave(x, y, half, 8);
                columns[2 * i + j] = self.vector_cast(column, I32X4);
            }
        }
        columns
    }

    /// Rows of two elements of 64 bits as columns, which is its own inverse.
    fn transpose_pairs(&mut self, [a, b]: [Value; 2]) -> [Value; 2] {
        [Half::Low, Half::High].map(|half| {
            let column = self.interleave(a, b, half, 8);
            self.vector_cast(column, I64X2)
        })
    }

    /// Words of two vectors, each second from the first or from the one behind it.
    fn every_second(&mut self, a: Value, b: Value, first: u8) -> Value {
        let (a, b) = (self.vector_cast(a, I8X16), self.vector_cast(b, I8X16));
        let picked = std::array::from_fn(|i| {
            let (word, byte) = (i as u8 / 4, i as u8 % 4);
            4 * (2 * word + first) + byte
        });
        let picked = self.shuffle(a, b, picked);
        self.vector_cast(picked, I32X4)
    }

    /// Returns whether the places of threads follow each other.
    fn is_contiguous(places: &[HostAddress], bytes: u32) -> bool {
        let (host, at) = places[0];
        places.iter().zip(0..).all(|(&place, lane)| place == (host, at + lane * bytes as i32))
    }

    /// Returns the elements of all threads, by element, each as vectors of registers.
    pub(super) fn load_interleaved(
        &mut self,
        load: &Load,
        places: &[HostAddress],
    ) -> (Vec<Vec<Value>>, Class) {
        let (size, elements) = (load.extend.size, load.destinations.len());
        if size == 8 {
            return (self.load_pairs(places, elements), Class::B64);
        }
        let words = self.load_words(places, size * elements as u32);
        if size == 4 {
            return (words, Class::B32);
        }
        let signed = load.extend.signed_to.filter(|&bits| bits > 8 * size);
        let per_word = (4 / size as usize).min(elements);
        let columns = (0..elements).map(|element| {
            let start = 8 * size as usize * (element % per_word);
            let parts = words[element / per_word].clone();
            parts.into_iter().map(|part| self.field(part, start as i64, 8 * size, signed)).collect()
        });
        (columns.collect(), Class::B32)
    }

    /// Some bits of each word.
    fn field(&mut self, word: Value, start: i64, bits: u32, signed: Option<u32>) -> Value {
        let Some(to) = signed else {
            let count = self.b.ins().iconst(I32, start);
            let word = if start == 0 { word } else { self.b.ins().ushr(word, count) };
            let mask = self.vector_of((1 << bits) - 1, Class::B32);
            return self.b.ins().band(word, mask);
        };
        let up = self.b.ins().iconst(I32, 32 - i64::from(bits) - start);
        let down = self.b.ins().iconst(I32, 32 - i64::from(bits));
        let word = self.b.ins().ishl(word, up);
        let word = self.b.ins().sshr(word, down);
        if to >= 32 {
            return word;
        }
        let mask = self.vector_of((1 << to) - 1, Class::B32);
        self.b.ins().band(word, mask)
    }

    fn load_pairs(&mut self, places: &[HostAddress], elements: usize) -> Vec<Vec<Value>> {
        let mut columns = vec![Vec::new(); elements];
        for pair in places.chunks(2) {
            for chunk in 0..elements / 2 {
                let [a, b] = [pair[0], pair[1]]
                    .map(|(host, at)| self.b.ins().load(I64X2, shared_flags(), host, at + 16 * chunk as i32));
                for (i, column) in self.transpose_pairs([a, b]).into_iter().enumerate() {
                    columns[2 * chunk + i].push(column);
                }
            }
        }
        columns
    }

    /// The words of all threads, by word; the last of a thread may be half of one.
    fn load_words(&mut self, places: &[HostAddress], bytes: u32) -> Vec<Vec<Value>> {
        let is_contiguous = Self::is_contiguous(places, bytes);
        let (first, at) = places[0];
        let mut words = vec![Vec::new(); (bytes as usize).div_ceil(4)];
        for (number, four) in (0..).zip(places.chunks(4)) {
            let at = at + number * 4 * bytes as i32;
            match bytes {
                2 if is_contiguous => words[0].push(self.b.ins().uload16x4(shared_flags(), first, at)),
                4 if is_contiguous => words[0].push(self.b.ins().load(I32X4, shared_flags(), first, at)),
                2 | 4 => {
                    let ty = if bytes == 2 { I16 } else { I32 };
                    let class = if bytes == 2 { Class::B16 } else { Class::B32 };
                    let load = |&(host, at): &HostAddress| self.b.ins().load(ty, shared_flags(), host, at);
                    let values: Vec<Value> = four.iter().map(load).collect();
                    words[0].extend(self.gather(&values, class));
                }
                8 => {
                    let rows: Vec<Value> = if is_contiguous {
                        let load = |at| self.b.ins().load(I32X4, shared_flags(), first, at);
                        [at, at + 16].map(load).to_vec()
                    } else {
                        let load =
                            |&(host, at): &HostAddress| self.b.ins().load(I64, shared_flags(), host, at);
                        let values: Vec<Value> = four.iter().map(load).collect();
                        self.gather(&values, Class::B64)
                    };
                    for (i, column) in words.iter_mut().enumerate() {
                        column.push(self.every_second(rows[0], rows[1], i as u8));
                    }
                }
                _ => {
                    for chunk in 0..bytes as usize / 16 {
                        let rows = [0, 1, 2, 3].map(|i| {
                            let (host, at) = four[i];
                            self.b.ins().load(I32X4, shared_flags(), host, at + 16 * chunk as i32)
                        });
                        for (i, column) in self.transpose_words(rows).into_iter().enumerate() {
                            words[4 * chunk + i].push(column);
                        }
                    }
                }
            }
        }
        words
    }

    /// Stores the elements of all threads, those of a thread before those of the next.
    pub(super) fn store_interleaved(&mut self, store: &Store, places: &[HostAddress], values: &[Val]) {
        let (size, elements) = (store.size, values.len());
        let class = Class::of_bits(8 * size);
        let columns: Vec<Vec<Value>> = values
            .iter()
            .map(|value| match value {
                Val::One(value) if size < 4 => {
                    let value = self.convert(*value, class, Class::B32);
                    self.vectors(&Val::One(value), Class::B32)
                }
                value => self.vectors(value, class),
            })
            .collect();
        if size == 8 {
            return self.store_pairs(places, &columns);
        }
        if size == 4 {
            return self.store_words(places, &columns, size * elements as u32);
        }
        let per_word = (4 / size as usize).min(elements);
        let mut words = Vec::new();
        for fields in columns.chunks(per_word) {
            let parts = (0..fields[0].len()).map(|part| {
                let mut word = None;
                for (i, field) in fields.iter().enumerate() {
                    let start = 8 * size * i as u32;
                    let mut bits = field[part];
                    // The last one's upper bits go past the end of the word.
                    if start + 8 * size < 32 {
                        let mask = self.vector_of((1 << (8 * size)) - 1, Class::B32);
                        bits = self.b.ins().band(bits, mask);
                    }
                    let count = self.b.ins().iconst(I32, i64::from(start));
                    let bits = if start == 0 { bits } else { self.b.ins().ishl(bits, count) };
                    word = Some(word.map_or(bits, |word| self.b.ins().bor(word, bits)));
                }
                word.unwrap_or(fields[0][part])
            });
            words.push(parts.collect());
        }
        self.store_words(places, &words, size * elements as u32);
    }

    fn store_pairs(&mut self, places: &[HostAddress], columns: &[Vec<Value>]) {
        for (part, pair) in places.chunks(2).enumerate() {
            let mut rows = Vec::new();
            for two in columns.chunks(2) {
                rows.push(self.transpose_pairs([two[0][part], two[1][part]]));
            }
            for (lane, &(host, at)) in pair.iter().enumerate() {
                for (at, row) in (at..).step_by(16).zip(&rows) {
                    self.b.ins().store(shared_flags(), row[lane], host, at);
                }
            }
        }
    }

    fn store_words(&mut self, places: &[HostAddress], words: &[Vec<Value>], bytes: u32) {
        let is_contiguous = Self::is_contiguous(places, bytes);
        let (first, at) = places[0];
        for (part, four) in places.chunks(4).enumerate() {
            let at = at + 4 * (part as u32 * bytes) as i32;
            match bytes {
                4 if is_contiguous => {
                    self.b.ins().store(shared_flags(), words[0][part], first, at);
                }
                2 | 4 => {
                    for (lane, &(host, at)) in four.iter().enumerate() {
                        let word = self.b.ins().extractlane(words[0][part], lane as u8);
                        if bytes == 4 {
                            self.b.ins().store(shared_flags(), word, host, at);
                        } else {
                            self.b.ins().istore16(shared_flags(), word, host, at);
                        }
                    }
                }
                8 => {
                    let rows = [Half::Low, Half::High].map(|half| {
                        let row = self.interleave(words[0][part], words[1][part], half, 4);
                        self.vector_cast(row, I64X2)
                    });
                    if is_contiguous {
                        for (at, row) in (at..).step_by(16).zip(rows) {
                            self.b.ins().store(shared_flags(), row, first, at);
                        }
                        continue;
                    }
                    for (lane, &(host, at)) in four.iter().enumerate() {
                        let pair = self.b.ins().extractlane(rows[lane / 2], lane as u8 % 2);
                        self.b.ins().store(shared_flags(), pair, host, at);
                    }
                }
                _ => {
                    let mut chunks = Vec::new();
                    for four in words.chunks(4) {
                        let columns = [four[0][part], four[1][part], four[2][part], four[3][part]]
                            .map(|column| self.vector_cast(column, I32X4));
                        chunks.push(self.transpose_words(columns));
                    }
                    for (lane, &(host, at)) in four.iter().enumerate() {
                        for (at, rows) in (at..).step_by(16).zip(&chunks) {
                            self.b.ins().store(shared_flags(), rows[lane], host, at);
                        }
                    }
                }
            }
        }
    }
}
