//! Instructions that access memory, for the active lanes of a group.

use super::budget::{grow, growth};
use super::code::{
    Alloca, Atomic, AtomicKind, Base, Code, CopyAsync, Extend, Load, Mbarrier, MbarrierAction, MemoryOperand,
    Store,
};
use super::fault::{AccessKind, FaultKind, Raised, Space};
use super::lanes::{Frame, Lanes, Slot, Source, lanes_of};
use super::memory::{self, Access};
use super::warp::{Context, Flow, Group, Warp};
use std::sync::atomic::{Ordering, fence};

impl Extend {
    fn apply(self, value: u64) -> u64 {
        let Some(bits) = self.signed_to else { return value };
        let unused = 64 - 8 * self.size;
        let extended = ((value << unused) as i64 >> unused) as u64;
        extended & (u64::MAX >> (64 - bits))
    }
}

impl Warp {
    /// Returns the address that a memory operand has in each lane.
    #[inline]
    fn addresses(&self, code: &Code, operand: &MemoryOperand, base: u32) -> Lanes {
        let mask = if operand.narrow { 0xffff_ffff } else { u64::MAX };
        let add = |start: u64| start.wrapping_add_signed(operand.offset) & mask;
        match operand.base {
            Base::Frame => self.frame.map(|frame| add(frame.into())),
            Base::Source(Source::Slot(Slot(slot))) => self.registers[(base + slot) as usize].map(add),
            Base::Source(Source::Constant(index)) => code.constants[index as usize].map(add),
        }
    }

    pub(crate) fn load(
        &mut self,
        cx: &mut Context<'_>,
        load: &Load,
        base: u32,
        active: u32,
    ) -> Result<(), Raised> {
        let size = load.extend.size;
        let total = size * load.destinations.len() as u32;
        let addresses = self.addresses(cx.code, &load.operand, base);
        let (space, align) = (load.operand.space, load.align);
        for lane in lanes_of(active) {
            let access = Access {
                kind: AccessKind::Read,
                space,
                address: addresses[lane as usize],
                size: total,
                align,
                lane,
            };
            let location = cx.memory.location(access)?;
            for (i, slot) in load.destinations.iter().enumerate() {
                let value = load.extend.apply(memory::read(&location, i * size as usize, size));
                self.registers[(base + slot.0) as usize][lane as usize] = value;
            }
        }
        if load.acquire {
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    pub(crate) fn store(
        &mut self,
        cx: &mut Context<'_>,
        store: &Store,
        base: u32,
        active: u32,
    ) -> Result<(), Raised> {
        if store.release {
            fence(Ordering::SeqCst);
        }
        let total = store.size * store.sources.len() as u32;
        let addresses = self.addresses(cx.code, &store.operand, base);
        let (space, align) = (store.operand.space, store.align);
        for lane in lanes_of(active) {
            let access = Access {
                kind: AccessKind::Write,
                space,
                address: addresses[lane as usize],
                size: total,
                align,
                lane,
            };
            let frame = Frame { slots: &mut self.registers[base as usize..], constants: &cx.code.constants };
            let mut location = cx.memory.location(access)?;
            for (i, &source) in store.sources.iter().enumerate() {
                let offset = i * store.size as usize;
                if !memory::write(&mut location, offset, store.size, frame.get(source, lane)) {
                    return Err(read_only(access));
                }
            }
        }
        Ok(())
    }

    /// Executes an atomic operation. Lanes take turns in ascending order, which PTX allows.
    pub(crate) fn atomic(
        &mut self,
        cx: &mut Context<'_>,
        atomic: &Atomic,
        base: u32,
        active: u32,
    ) -> Result<(), Raised> {
        let addresses = self.addresses(cx.code, &atomic.operand, base);
        let access_of = |lane: u32, element: usize, size: u32| Access {
            kind: AccessKind::Atomic,
            space: atomic.operand.space,
            address: addresses[lane as usize].wrapping_add(element as u64 * u64::from(size)),
            size,
            align: size,
            lane,
        };
        for lane in lanes_of(active) {
            match &atomic.kind {
                AtomicKind::Update { size, function, operands } => {
                    for (i, &[b, c]) in operands.iter().enumerate() {
                        let access = access_of(lane, i, *size);
                        let mut registers = self.registers(base, cx.code);
                        let (b, c) = (registers.get(b, lane), registers.get(c, lane));
                        let mut location = cx.memory.location(access)?;
                        let old = memory::update(&mut location, *size, |old| function(old, b, c));
                        let old = old.ok_or_else(|| read_only(access))?;
                        if let Some(&slot) = atomic.destinations.get(i) {
                            registers.set(slot, lane, old);
                        }
                    }
                }
                AtomicKind::Wide { compare, value } => {
                    let access = access_of(lane, 0, 16);
                    let mut registers = self.registers(base, cx.code);
                    let wide = |registers: &Frame<'_>, [low, high]: [Source; 2]| {
                        u128::from(registers.get(low, lane)) | u128::from(registers.get(high, lane)) << 64
                    };
                    let value = wide(&registers, *value);
                    let compare = compare.map(|compare| wide(&registers, compare));
                    let mut location = cx.memory.location(access)?;
                    let old = memory::update_wide(&mut location, |old| {
                        if compare.is_none_or(|compare| compare == old) { value } else { old }
                    });
                    let old = old.ok_or_else(|| read_only(access))?;
                    if let &[low, high] = &atomic.destinations[..] {
                        registers.set(low, lane, old as u64);
                        registers.set(high, lane, (old >> 64) as u64);
                    }
                }
            }
        }
        Ok(())
    }

    /// Copies immediately, which PTX allows: nothing may read the destination before it waits for
    /// the copy.
    pub(crate) fn copy_async(
        &mut self,
        cx: &mut Context<'_>,
        copy: &CopyAsync,
        base: u32,
        active: u32,
    ) -> Result<(), Raised> {
        let (to, from) = (self.addresses(cx.code, &copy.to, base), self.addresses(cx.code, &copy.from, base));
        for lane in lanes_of(active) {
            let i = lane as usize;
            let registers = self.registers(base, cx.code);
            let given = copy.source_size.map_or(copy.size, |size| registers.get(size, lane) as u32);
            let ignored = copy.ignore.is_some_and(|ignore| registers.get(ignore, lane) != 0);
            let size = if ignored { 0 } else { given.min(copy.size) };
            let align = copy.size;
            cx.memory.copy(
                Access {
                    kind: AccessKind::Write,
                    space: copy.to.space,
                    address: to[i],
                    size: copy.size,
                    align,
                    lane,
                },
                Access {
                    kind: AccessKind::Read,
                    space: copy.from.space,
                    address: from[i],
                    size,
                    align,
                    lane,
                },
            )?;
        }
        Ok(())
    }

    pub(crate) fn alloca(
        &mut self,
        cx: &mut Context<'_>,
        alloca: &Alloca,
        base: u32,
        active: u32,
    ) -> Result<(), Raised> {
        for lane in lanes_of(active) {
            let size = self.registers(base, cx.code).get(alloca.size, lane);
            let start = u64::from(self.stack[lane as usize]).next_multiple_of(u64::from(alloca.align));
            let end = start.saturating_add(size);
            self.grow_stack(cx, lane, end)?;
            self.registers(base, cx.code).set(alloca.destination, lane, start);
        }
        Ok(())
    }

    /// Moves the end of a lane's stack to `end`. New bytes are zero.
    pub(crate) fn grow_stack(&mut self, cx: &mut Context<'_>, lane: u32, end: u64) -> Result<(), Raised> {
        let limit = cx.launch.stack_bytes();
        if end > limit {
            return Err(FaultKind::StackOverflow { limit }.in_lane(lane));
        }
        let more = growth(&cx.memory.local[lane as usize], end as usize);
        cx.take(more, lane)?;
        self.stack[lane as usize] = end as u32;
        let memory = &mut cx.memory.local[lane as usize];
        grow(memory, end as usize);
        memory.resize(end as usize, 0);
        Ok(())
    }

    pub(crate) fn stack_restore(
        &mut self,
        cx: &mut Context<'_>,
        source: Source,
        base: u32,
        active: u32,
    ) -> Result<(), Raised> {
        for lane in lanes_of(active) {
            let end = self.registers(base, cx.code).get(source, lane);
            if end > u64::from(self.stack[lane as usize]) || end < u64::from(self.frame[lane as usize]) {
                let reason = format!("stackrestore of {end:#x}, which stacksave did not return in this call");
                return Err(FaultKind::IllegalInstruction { reason }.in_lane(lane));
            }
            self.stack[lane as usize] = end as u32;
            cx.memory.local[lane as usize].truncate(end as usize);
        }
        Ok(())
    }

    /// Executes an `mbarrier` instruction on one word of shared memory, laid out as in
    /// [`PhaseWord`].
    pub(crate) fn mbarrier(
        &mut self,
        cx: &mut Context<'_>,
        mbarrier: &Mbarrier,
        group: Group,
        active: u32,
    ) -> Result<Flow, Raised> {
        let base = group.base;
        let mut retry = false;
        let addresses = self.addresses(cx.code, &mbarrier.operand, base);
        let space = mbarrier.operand.space;
        for lane in lanes_of(active) {
            let access = Access {
                kind: AccessKind::Atomic,
                space,
                address: addresses[lane as usize],
                size: 8,
                align: 8,
                lane,
            };
            let mut registers = self.registers(base, cx.code);
            let word = PhaseWord(cx.memory.load(access)?);
            let after = match mbarrier.action {
                MbarrierAction::Init { count } => PhaseWord::new(registers.get(count, lane)),
                MbarrierAction::Invalidate => PhaseWord(0),
                MbarrierAction::Arrive { count, drop, state, expect_tx } => {
                    if let Some(state) = state {
                        registers.set(state, lane, word.0);
                    }
                    let count = registers.get(count, lane) & 0xffff_ffff;
                    let (arrivals, transactions) = if expect_tx { (1, count as i64) } else { (count, 0) };
                    word.arrive(arrivals, transactions, drop)
                }
                MbarrierAction::Transactions { count, complete } => {
                    let count = (registers.get(count, lane) & 0xffff_ffff) as i64;
                    word.arrive(0, if complete { -count } else { count }, false)
                }
                MbarrierAction::Wait { state, parity, suspend, destination } => {
                    let state = registers.get(state, lane);
                    let phase = if parity { state & 1 } else { PhaseWord(state).phase() };
                    let done = phase != word.phase();
                    retry |= suspend && !done;
                    registers.set(destination, lane, done.into());
                    word
                }
            };
            let mut location = cx.memory.location(access)?;
            if !memory::write(&mut location, 0, 8, after.0) {
                return Err(read_only(access));
            }
        }
        if retry { self.pause(cx, group) } else { Ok(Flow::Next) }
    }
}

fn read_only(access: Access) -> Raised {
    let Access { kind, address, size, lane, .. } = access;
    FaultKind::IllegalAddress { access: kind, address, space: Space::Param, size }.in_lane(lane)
}

/// The word of an mbarrier. Bits 0 to 19 are pending arrivals, 20 to 39 expected arrivals, 40 to 62
/// pending transactions (signed), and bit 63 is the parity of the phase.
#[derive(Clone, Copy)]
struct PhaseWord(u64);

impl PhaseWord {
    const COUNT: u64 = (1 << 20) - 1;
    const TRANSACTIONS: u64 = (1 << 23) - 1;

    fn new(count: u64) -> Self {
        let count = count & Self::COUNT;
        Self(count | count << 20)
    }

    fn phase(self) -> u64 {
        self.0 >> 63
    }

    fn arrive(self, arrivals: u64, transactions: i64, drop: bool) -> Self {
        let mut expected = self.0 >> 20 & Self::COUNT;
        if drop {
            expected = expected.saturating_sub(arrivals);
        }
        let pending = (self.0 & Self::COUNT).saturating_sub(arrivals);
        let open = ((self.0 << 1) as i64 >> 41) + transactions;
        if pending == 0 && open == 0 {
            Self(expected | expected << 20 | (self.phase() ^ 1) << 63)
        } else {
            Self(pending | expected << 20 | (open as u64 & Self::TRANSACTIONS) << 40 | self.phase() << 63)
        }
    }
}

/// Implements `mbarrier.pending_count`: returns how many arrivals the phase of a state still waited
/// for.
pub(crate) fn pending_count(state: u64) -> u64 {
    state & PhaseWord::COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mbarrier_changes_phase_when_arrivals_and_transactions_are_in() {
        let start = PhaseWord::new(2);
        let one = start.arrive(1, 64, false);
        assert_eq!((one.phase(), pending_count(one.0)), (0, 1));
        let two = one.arrive(1, 0, false);
        assert_eq!(two.phase(), 0, "transactions are open");
        let three = two.arrive(0, -64, false);
        assert_eq!((three.phase(), pending_count(three.0)), (1, 2));
        assert_eq!(three.arrive(2, 0, false).phase(), 0);
    }

    #[test]
    fn loads_extend_to_the_width_of_the_register() {
        assert_eq!(Extend { size: 1, signed_to: Some(32) }.apply(0x80), 0xffff_ff80);
        assert_eq!(Extend { size: 2, signed_to: Some(64) }.apply(0x8000), 0xffff_ffff_ffff_8000);
        assert_eq!(Extend { size: 1, signed_to: None }.apply(0x80), 0x80);
    }
}
