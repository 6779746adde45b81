//! Gathers of words or bytes that lie in a few vectors of memory. Those vectors are loaded, and the
//! elements are looked up in registers, which takes a fraction of the time of a gather.
//!
//! A *table* is known from the greatest value of an index: 64 words, or 256 bytes. Threads that
//! compute their addresses from their own index, such as `in[x / 2]` or `a[i & ~3]`, often access
//! neighbours: whether all are in two lines of memory is tested when the code runs.
//!
//! Bytes that no thread accesses are loaded too, but only from pages, or lines, that some thread
//! accesses.

use super::Emitter;
use super::memory::shared_flags;
use super::scattered::Scattered;
use super::value::Val;
use crate::native::Class;
use crate::wide::{self, Intrinsic};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};

/// The least size of a page of memory.
const PAGE: i64 = 4096;

/// The most vectors of a table.
const MOST: i64 = 4;

/// A table that fits registers.
struct Table {
    /// Its address.
    start: Value,
    /// The number of vectors that it fills, one, two or four.
    vectors: i64,
}

impl Emitter<'_> {
    /// Loads words, from registers if they lie close to each other. `computed` says whether the
    /// addresses were computed from the index of the thread.
    pub(super) fn gather_words(
        &mut self,
        places: &Scattered,
        guard: Option<&Val>,
        computed: bool,
    ) -> Vec<Value> {
        let ty = self.length.by(I32);
        match places {
            Scattered::Near { words, log: 2, .. } if let Some(table) = self.table(places, 4) => {
                let fits = self.is_in_page(&table, guard);
                self.one_way_or_other(
                    fits,
                    |emitter| emitter.look_up(&table, words, Intrinsic::LookUp),
                    |emitter| emitter.gather_elements(places, Class::B32, guard),
                )
            }
            _ if computed && guard.is_none() => {
                let Some((windows, indices, inside)) = self.windows(places) else {
                    return self.gather_elements(places, Class::B32, guard);
                };
                self.one_way_or_other(
                    inside,
                    |emitter| {
                        let mut found = Vec::new();
                        for (&line, &bytes) in windows.iter().zip(&indices) {
                            found.push(emitter.look_up_in_lines(line, bytes, ty));
                        }
                        found
                    },
                    |emitter| emitter.gather_elements(places, Class::B32, guard),
                )
            }
            _ => self.gather_elements(places, Class::B32, guard),
        }
    }

    /// Loads bytes of a table that fits registers. `otherwise` loads them if that is not possible.
    pub(super) fn gather_bytes_of_table(
        &mut self,
        places: &Scattered,
        guard: Option<&Val>,
        otherwise: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        match places {
            Scattered::Near { words, log: 0, .. }
                if wide::looks_up_bytes()
                    && let Some(table) = self.table(places, 1) =>
            {
                let fits = self.is_in_page(&table, guard);
                let look_up = |emitter: &mut Self| {
                    let found = emitter.look_up(&table, words, Intrinsic::LookUpBytes);
                    let byte = emitter.vector_of(0xff, Class::B32);
                    found.into_iter().map(|part| emitter.b.ins().band(part, byte)).collect()
                };
                self.one_way_or_other(fits, look_up, otherwise)
            }
            _ => otherwise(self),
        }
    }

    /// Returns the table of elements of some size that words are indices of, if it is small.
    fn table(&mut self, places: &Scattered, size: i64) -> Option<Table> {
        let &Scattered::Near { start, log, offset, most: Some(most), .. } = places else { return None };
        let bytes = (i64::from(most) << log) + size;
        let length = self.length.0 as i64;
        if bytes > MOST * length {
            return None;
        }
        let vectors = ((bytes + length - 1) / length) as u64;
        let start = self.sum_with(start, offset.into());
        Some(Table { start, vectors: vectors.next_power_of_two() as i64 })
    }

    /// Returns the truth of all of a table being in one page that a thread accesses.
    fn is_in_page(&mut self, table: &Table, guard: Option<&Val>) -> Value {
        let within = self.b.ins().band_imm_u(table.start, PAGE - 1);
        let last = PAGE - table.vectors * self.length.0 as i64;
        let fits = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, within, last);
        let Some(guard) = guard else { return fits };
        let masks = self.vectors(guard, Class::Pred);
        let any = self.any_true(&masks);
        self.b.ins().band(fits, any)
    }

    /// Looks up each word, or the lowest byte of it, in a table.
    fn look_up(&mut self, table: &Table, words: &[Value], how: Intrinsic) -> Vec<Value> {
        let ty = self.length.by(I32);
        let parts: Vec<Value> = (0..table.vectors as usize)
            .map(|part| self.b.ins().load(ty, shared_flags(), table.start, self.length.offset(part)))
            .collect();
        let elements = if how == Intrinsic::LookUp { 4 } else { 1 };
        let first_half = 2 * self.length.0 as u64 / elements;
        let mut found = Vec::new();
        for &word in words {
            let pairs: Vec<Value> = parts
                .chunks(2)
                .map(|pair| self.operation(how, &[pair[0], pair[pair.len() - 1], word], ty))
                .collect();
            found.push(match pairs[..] {
                [low, high] => {
                    let limit = self.vector_of(first_half, Class::B32);
                    let is_low = self.b.ins().icmp(IntCC::UnsignedLessThan, word, limit);
                    self.b.ins().bitselect(is_low, low, high)
                }
                _ => pairs[0],
            });
        }
        found
    }

    /// Returns for each vector of addresses the line of the first element, the distances of all
    /// from its start in bytes, and the truth of all being in that line or the next.
    fn windows(&mut self, places: &Scattered) -> Option<(Vec<Value>, Vec<Value>, Value)> {
        let (mut lines, mut distances, mut inside) = (Vec::new(), Vec::new(), Vec::new());
        let length = self.length.0 as i64;
        let mut fits: Option<Value> = None;
        match places {
            &Scattered::Near { start, ref words, log, offset, .. } if log <= 2 => {
                for &word in words {
                    let first = self.lane_of(word, 0);
                    let first = self.b.ins().sextend(I64, first);
                    let at = if log == 0 { first } else { self.b.ins().ishl_imm_u(first, i64::from(log)) };
                    let at = self.b.ins().iadd(start, at);
                    let at = self.sum_with(at, offset.into());
                    let line = self.b.ins().band_imm_s(at, -length);
                    let back = self.b.ins().isub(at, line);
                    // Elements are aligned to their size.
                    let back = if log == 0 { back } else { self.b.ins().ushr_imm_u(back, i64::from(log)) };
                    let least = self.b.ins().isub(first, back);
                    // The window must not wrap around among the words.
                    let from = self.b.ins().iadd_imm_s(least, 1 << 31);
                    let last = (1 << 32) - 2 * length;
                    let whole = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, from, last);
                    fits = Some(fits.map_or(whole, |fits| self.b.ins().band(fits, whole)));
                    let least = self.b.ins().ireduce(I32, least);
                    let least = self.b.ins().splat(self.length.by(I32), least);
                    let distance = self.b.ins().isub(word, least);
                    let limit = self.vector_of((2 * length as u64) >> log, Class::B32);
                    inside.push(self.b.ins().icmp(IntCC::UnsignedLessThan, distance, limit));
                    lines.push(line);
                    let up = |emitter: &mut Self| emitter.b.ins().ishl_imm_u(distance, i64::from(log));
                    distances.push(if log == 0 { distance } else { up(self) });
                }
            }
            Scattered::Far { hosts, offset } => {
                for pair in hosts.chunks(2) {
                    let first = self.lane_of(pair[0], 0);
                    let at = self.sum_with(first, (*offset).into());
                    let line = self.b.ins().band_imm_s(at, -length);
                    let least = self.sum_with(line, -i64::from(*offset));
                    let least = self.b.ins().splat(self.length.by(I64), least);
                    let limit = self.vector_of(2 * length as u64, Class::B64);
                    let mut halves = Vec::new();
                    for &half in pair {
                        let distance = self.b.ins().isub(half, least);
                        inside.push(self.b.ins().icmp(IntCC::UnsignedLessThan, distance, limit));
                        halves.push(distance);
                    }
                    let &[low, high] = &halves[..] else { return None };
                    distances.push(self.narrow(low, high));
                    lines.push(line);
                }
            }
            _ => return None,
        }
        let all = self.all_true(&inside);
        let all = fits.map_or(all, |fits| self.b.ins().band(all, fits));
        Some((lines, distances, all))
    }

    /// Looks up words at distances in bytes from the start of a line, in it and the next one. The
    /// next one is only loaded if a word lies there.
    fn look_up_in_lines(&mut self, line: Value, distances: Value, ty: cranelift_codegen::ir::Type) -> Value {
        let length = self.length.0 as u64;
        let limit = self.vector_of(length, Class::B32);
        let behind = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, distances, limit);
        let any = self.b.ins().vany_true(behind);
        let more = self.b.ins().uextend(I64, any);
        let more = self.b.ins().ishl_imm_u(more, i64::from(length.trailing_zeros()));
        let next = self.b.ins().iadd(line, more);
        let [low, high] = [line, next].map(|line| self.b.ins().load(ty, shared_flags(), line, 0));
        let indices = self.b.ins().ushr_imm_u(distances, 2);
        self.operation(Intrinsic::LookUp, &[low, high, indices], ty)
    }

    /// Makes vectors of words in one way where a truth value holds, or in another.
    fn one_way_or_other(
        &mut self,
        condition: Value,
        one: impl FnOnce(&mut Self) -> Vec<Value>,
        other: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        let (then, otherwise, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.ins().brif(condition, then, &[], otherwise, &[]);
        let before = self.mark();
        self.go_on_in(then);
        let found = one(self);
        let ty = self.length.by(I32);
        let parts = found.iter().map(|_| self.b.append_block_param(done, ty)).collect();
        let arguments: Vec<BlockArg> = found.into_iter().map(BlockArg::from).collect();
        self.b.ins().jump(done, &arguments);
        self.go_on_in(otherwise);
        self.forget(before);
        let found: Vec<BlockArg> = other(self).into_iter().map(BlockArg::from).collect();
        self.b.ins().jump(done, &found);
        self.go_on_in(done);
        self.forget(before);
        parts
    }
}
