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
use cranelift_codegen::ir::types::{I16, I32, I32X4, I64, I64X2};
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

    /// Interleaves the elements of two vectors, from the low or the high halves of each 16 bytes.
    fn interleave(&mut self, a: Value, b: Value, half: Half, bytes: usize) -> Value {
        let (size, start) = (bytes / 4, if let Half::Low = half { 0 } else { 2 });
        let count = self.b.func.dfg.value_type(a).bytes() as usize / 4;
        self.pick_words(a, b, |word| {
            let (lane, word) = (word / 4, word % 4);
            let element = word / size;
            4 * lane + start + element / 2 * size + word % size + count * (element % 2)
        })
    }

    /// Transposes rows of four words, which is its own inverse.
    fn transpose_words(&mut self, rows: [Value; 4]) -> [Value; 4] {
        let [a, b, c, d] = rows;
        let [low, high] = [Half::Low, Half::High]
            .map(|half| [self.interleave(a, b, half, 4), self.interleave(c, d, half, 4)]);
        let mut columns = [a; 4];
        for (i, [x, y]) in [low, high].into_iter().enumerate() {
            for (j, half) in [Half::Low, Half::High].into_iter().enumerate() {
                let column = self.interleave(x, y, half, 8);
                columns[2 * i + j] = column;
            }
        }
        columns
    }

    /// Transposes rows of two elements of 64 bits, which is its own inverse.
    fn transpose_pairs(&mut self, [a, b]: [Value; 2]) -> [Value; 2] {
        [Half::Low, Half::High].map(|half| {
            let column = self.interleave(a, b, half, 8);
            let pairs = I64.by(self.b.func.dfg.value_type(column).bytes() / 8).unwrap_or(I64X2);
            self.vector_cast(column, pairs)
        })
    }

    /// Returns every second word of two vectors, from word `first` on.
    fn every_second(&mut self, a: Value, b: Value, first: usize) -> Value {
        self.pick_words(a, b, |word| 2 * word + first)
    }

    /// Returns whether the places of threads follow each other.
    fn is_contiguous(places: &[HostAddress], bytes: u32) -> bool {
        let (host, at) = places[0];
        places.iter().zip(0..).all(|(&place, lane)| place == (host, at + lane * bytes as i32))
    }

    /// Loads elements of all threads, of which each has a multiple of 16 bytes, in vectors that are
    /// longer than that: `per` of them in 16 bytes. Returns them by element. Every `per`-th thread
    /// is in one vector, so that elements move within 16 bytes only.
    pub(super) fn load_chunks(
        &mut self,
        places: &[HostAddress],
        elements: usize,
        per: usize,
    ) -> Vec<Vec<Value>> {
        self.prefetch_next_group(places, false);
        let ty = if per == 4 { I32X4 } else { I64X2 };
        let count = self.length.0 / 16 * per;
        let mut columns = vec![Vec::new(); elements];
        for some in places.chunks(count) {
            for chunk in 0..elements / per {
                let mut rows = Vec::new();
                for row in 0..per {
                    let places = some.iter().skip(row).step_by(per);
                    let load = |&(host, at): &HostAddress| {
                        self.b.ins().load(ty, shared_flags(), host, at + 16 * chunk as i32)
                    };
                    let parts: Vec<Value> = places.map(load).collect();
                    rows.extend(self.joined(parts));
                }
                let found = match rows[..] {
                    [a, b, c, d] => self.transpose_words([a, b, c, d]).to_vec(),
                    [a, b] => self.transpose_pairs([a, b]).to_vec(),
                    _ => rows,
                };
                for (i, column) in found.into_iter().enumerate() {
                    columns[per * chunk + i].push(column);
                }
            }
        }
        columns
    }

    /// Stores elements of all threads, as [`load_chunks`](Self::load_chunks) loads them.
    fn store_chunks(&mut self, places: &[HostAddress], columns: &[Vec<Value>], per: usize) {
        self.prefetch_next_group(places, true);
        let count = self.length.0 / 16 * per;
        for (part, some) in places.chunks(count).enumerate() {
            let mut chunks = Vec::new();
            for four in columns.chunks(per) {
                chunks.push(match *four {
                    [ref a, ref b, ref c, ref d] => {
                        let words = self.length.by(I32);
                        let rows = [a[part], b[part], c[part], d[part]];
                        let rows = rows.map(|column| self.vector_cast(column, words));
                        self.transpose_words(rows).to_vec()
                    }
                    [ref a, ref b] => self.transpose_pairs([a[part], b[part]]).to_vec(),
                    _ => return self.defect("elements that do not fill 16 bytes"),
                });
            }
            for (lane, &(host, at)) in some.iter().enumerate() {
                for (at, rows) in (at..).step_by(16).zip(&chunks) {
                    let row = self.quarter(rows[lane % per], lane / per);
                    self.b.ins().store(shared_flags(), row, host, at);
                }
            }
        }
    }

    /// Loads the words of all threads, two or four each, that lie one behind the other, in vectors
    /// that are longer than 16 bytes. Returns them by word.
    fn load_rows(&mut self, places: &[HostAddress], bytes: u32) -> Option<Vec<Vec<Value>>> {
        if !self.is_wide() || !matches!(bytes, 8 | 16) || !Self::is_contiguous(places, bytes) {
            return None;
        }
        let (host, at) = places[0];
        let (ty, per, count) = (self.length.by(I32), self.per_vector(Class::B32), bytes as usize / 4);
        let mut columns = vec![Vec::new(); count];
        for part in 0..places.len() / per {
            let rows: Vec<Value> = (0..count)
                .map(|row| {
                    let at = at + self.length.offset(part * count + row);
                    self.b.ins().load(ty, shared_flags(), host, at)
                })
                .collect();
            // Every second word of two rows.
            let every_second = |emitter: &mut Self, a: Value, b: Value| {
                [0, 1].map(|first| emitter.pick_words(a, b, |word| 2 * word + first))
            };
            let [even, odd] = every_second(self, rows[0], rows[1]);
            if count == 2 {
                columns[0].push(even);
                columns[1].push(odd);
                continue;
            }
            let [more_even, more_odd] = every_second(self, rows[2], rows[3]);
            for (first, a, b) in [(0, even, more_even), (1, odd, more_odd)] {
                let [low, high] = every_second(self, a, b);
                columns[first].push(low);
                columns[first + 2].push(high);
            }
        }
        Some(columns)
    }

    /// Stores the words of all threads, as [`load_rows`](Self::load_rows) loads them. Returns
    /// whether it did.
    fn store_rows(&mut self, places: &[HostAddress], columns: &[Vec<Value>], bytes: u32) -> bool {
        if !self.is_wide() || !matches!(bytes, 8 | 16) || !Self::is_contiguous(places, bytes) {
            return false;
        }
        let (host, at) = places[0];
        let (per, count) = (self.per_vector(Class::B32), bytes as usize / 4);
        for part in 0..places.len() / per {
            // The words of two columns, interleaved.
            let by_turns = |emitter: &mut Self, a: Value, b: Value| {
                [0, per / 2].map(|first| emitter.pick_words(a, b, |word| first + word / 2 + per * (word % 2)))
            };
            let rows = match *columns {
                [ref a, ref b] => by_turns(self, a[part], b[part]).to_vec(),
                [ref a, ref b, ref c, ref d] => {
                    let even = by_turns(self, a[part], c[part]);
                    let odd = by_turns(self, b[part], d[part]);
                    let [first, second] = [0, 1].map(|half| by_turns(self, even[half], odd[half]));
                    [first, second].concat()
                }
                _ => return false,
            };
            for (row, value) in rows.into_iter().enumerate() {
                let at = at + self.length.offset(part * count + row);
                self.b.ins().store(shared_flags(), value, host, at);
            }
        }
        true
    }

    /// Returns the elements of all threads, by element, each as vectors of registers.
    pub(super) fn load_interleaved(
        &mut self,
        load: &Load,
        places: &[HostAddress],
    ) -> (Vec<Vec<Value>>, Class) {
        let (size, elements) = (load.extend.size, load.destinations.len());
        if size == 8 && self.is_wide() {
            return (self.load_chunks(places, elements, 2), Class::B64);
        }
        if size == 8 {
            return (self.load_pairs(places, elements), Class::B64);
        }
        let words = match self.load_rows(places, size * elements as u32) {
            Some(words) => words,
            None if self.is_wide() && (size as usize * elements).is_multiple_of(16) => {
                self.load_chunks(places, size as usize * elements / 4, 4)
            }
            None => {
                let words = self.load_words(places, size * elements as u32);
                words.into_iter().map(|column| self.joined(column)).collect()
            }
        };
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

    /// Returns some bits of each word.
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

    /// Returns the words of all threads, by word. The last of a thread may be half a word.
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
                    words[0].extend(self.gather_narrow(&values, class));
                }
                8 => {
                    let rows: Vec<Value> = if is_contiguous {
                        let load = |at| self.b.ins().load(I32X4, shared_flags(), first, at);
                        [at, at + 16].map(load).to_vec()
                    } else {
                        let load =
                            |&(host, at): &HostAddress| self.b.ins().load(I64, shared_flags(), host, at);
                        let values: Vec<Value> = four.iter().map(load).collect();
                        self.gather_narrow(&values, Class::B64)
                    };
                    for (i, column) in words.iter_mut().enumerate() {
                        column.push(self.every_second(rows[0], rows[1], i));
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
        if self.is_wide() {
            return self.store_chunks(places, columns, 2);
        }
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
        if self.store_rows(places, words, bytes) {
            return;
        }
        if self.is_wide() && bytes.is_multiple_of(16) {
            return self.store_chunks(places, words, 4);
        }
        let words: Vec<Vec<Value>> = words.iter().map(|column| self.split_up(column)).collect();
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
