//! A barrier of blocks in memory that also says whether a condition was set.
//!
//! The word that blocks arrive at has 64 bits. The lower half counts arrivals, as in
//! [`grid_barrier`](super::writer). To the upper half, each block adds what its threads did to the
//! condition since the last barrier: 0 if they did not set it, 1 if they set it to 0, 65537 for any
//! other value. So who sees that all have arrived also sees, with the same load, how many blocks
//! set the condition and how many of them to something else than 0. Only if these differ and are
//! not 0, the condition has to be read in memory.
//!
//! Two words are used by turns. A block that is ahead arrives at the other one, and can come back
//! to the first only after all have passed the other one. So the upper half stays as it is until
//! all have seen it. A block finds out what was added by comparing it with what it was at the last
//! turn of the word. At its start, it reads that from memory that only the end of a launch changes.

use gridloom_ptx::op::{Compare, ConvertOp, IntArith, Order};
use gridloom_ptx::{
    Address, AddressBase, Dim, DimSpecial, Guard, RegId, ScalarType, Space, SymbolId, VarRef,
};
use smallvec::smallvec;

use super::super::assembly::{Assembly, at, int, special};
use super::State;
use super::writer::TURN;

/// What a block adds for a condition that it set to something else than 0, and the same for 0.
pub(crate) const SET_TO_NONZERO: i64 = (1 << 16) + 1;
pub(crate) const SET_TO_ZERO: i64 = 1;

/// The registers of the barrier. Those of the word that is not used next are in `others`.
#[derive(Clone, Copy)]
pub(super) struct Announced {
    /// A predicate that is true in the first thread of each block.
    leader: RegId,
    /// What a block adds to the lower half when it arrives.
    arrival: RegId,
    word: Word,
    other: Word,
    /// The address of the entries of the condition.
    entries: RegId,
}

/// The registers of a word.
#[derive(Clone, Copy)]
struct Word {
    /// Its address. What the upper half was is in the 8 bytes after it.
    address: RegId,
    /// The highest bit of its lower half, which changes when all blocks have arrived.
    turn: RegId,
    /// What the upper half was.
    upper: RegId,
}

impl Announced {
    /// Emits the start: what each block knows of the words.
    pub(super) fn new(asm: &mut Assembly, state: RegId, leader: RegId, blocks: u32) -> Self {
        let (u32s, u64s) = (ScalarType::U32, ScalarType::U64);
        let words = State::ANNOUNCED.map(|offset| {
            let address = asm.arith(IntArith::Add, u64s, state.into(), int(offset));
            let now = asm.load_acquire(at(address, 0));
            let turn = asm.and(now.into(), TURN);
            let upper = asm.load(Space::Global, Order::Weak, u32s, at(address, 8));
            Word { address, turn, upper }
        });
        let block = asm.mov(u32s, special(DimSpecial::CtaId, Dim::X));
        let is_first = asm.compare(Compare::Eq, u32s, block.into(), int(0));
        let arrival = asm.mov(u64s, int(1));
        asm.set_if(is_first, u64s, arrival, int(TURN - i64::from(blocks - 1)));
        let first = i64::from(State::condition(0));
        let entries = asm.arith(IntArith::Add, u64s, state.into(), int(first));
        let [word, other] = words;
        Announced { leader, arrival, word, other, entries }
    }

    /// Emits the value of the condition at the start.
    pub(super) fn begin(&self, asm: &mut Assembly, initial: RegId) {
        let (announcement, value) = (asm.announcement(), asm.announced_value());
        let not_first = asm.label();
        asm.branch_if(self.leader, true, not_first);
        asm.store_volatile(Space::Shared, ScalarType::U32, address(announcement), int(0));
        asm.store_volatile(Space::Shared, ScalarType::U32, address(value), initial.into());
        asm.place(not_first);
        asm.barrier();
    }

    /// Emits the barrier. `phase` is the number of the phase.
    pub(super) fn wait(&self, asm: &mut Assembly, phase: RegId) {
        let (u32s, u64s) = (ScalarType::U32, ScalarType::U64);
        let (announcement, value) = (asm.announcement(), asm.announced_value());
        let Announced { leader, arrival, word, other, entries } = *self;
        asm.barrier();
        let (again, store, done) = (asm.label(), asm.label(), asm.label());
        asm.branch_if(leader, true, done);
        let added = asm.load(Space::Shared, Order::Volatile, u32s, address(announcement));
        asm.store_volatile(Space::Shared, u32s, address(announcement), int(0));
        let wide = asm.register(ScalarType::B64);
        asm.emit(ConvertOp::Pack { ty: ScalarType::B64, dst: wide, srcs: smallvec![int(0), added.into()] });
        let by = asm.arith(IntArith::Add, u64s, wide.into(), arrival.into());
        asm.arrive_wide(at(word.address, 0), by.into());
        asm.place(again);
        let seen = asm.load_acquire_wide(at(word.address, 0));
        let [lower, upper] = [(); 2].map(|()| asm.register(ScalarType::B32));
        let dsts = smallvec![Some(lower), Some(upper)];
        asm.emit(ConvertOp::Unpack { ty: ScalarType::B64, dsts, src: seen.into() });
        let changed = asm.xor(lower.into(), word.turn.into());
        let bit = asm.and(changed.into(), TURN);
        let same = asm.compare(Compare::Eq, u32s, bit.into(), int(0));
        asm.branch_if(same, false, again);
        // A turn that ends with the bit at 0 has carried 1 into the upper half.
        let difference = asm.arith(IntArith::Sub, u32s, upper.into(), word.upper.into());
        let carry = asm.shr(word.turn.into(), 31);
        let difference = asm.arith(IntArith::Sub, u32s, difference.into(), carry.into());
        asm.set(u32s, word.upper, upper.into());
        let setters = asm.and(difference.into(), 0xffff);
        let nonzero = asm.shr(difference.into(), 16);
        // Few instructions: the blocks wait for them in every pass.
        let is_set = asm.compare(Compare::Ne, u32s, setters.into(), int(0));
        let is_nonzero = asm.compare(Compare::Ne, u32s, nonzero.into(), int(0));
        let now = asm.select(is_nonzero, int(1), int(0));
        let agreeing = asm.select(is_nonzero, setters.into(), int(0));
        let agree = asm.compare(Compare::Eq, u32s, nonzero.into(), agreeing.into());
        asm.branch_if(agree, false, store);
        let half = asm.and_wide(phase.into(), 1);
        let entry = asm.mul_add(half, 16, entries);
        let latest = asm.load(Space::Global, Order::Weak, u32s, at(entry, 0));
        asm.set(u32s, now, latest.into());
        asm.place(store);
        asm.store_volatile_if(is_set, Space::Shared, u32s, address(value), now.into());
        asm.place(done);
        asm.xor_to(word.turn, word.turn.into(), int(TURN));
        for (one, two, ty) in [
            (word.address, other.address, u64s),
            (word.turn, other.turn, ScalarType::B32),
            (word.upper, other.upper, u32s),
        ] {
            let kept = asm.mov(ty, one.into());
            asm.set(ty, one, two.into());
            asm.set(ty, two, kept.into());
        }
        asm.barrier();
    }

    /// Emits reading whether the condition is 0, after the barrier of the last step. The register
    /// is not the value of the condition, but is 0 if that is.
    pub(super) fn value(&self, asm: &mut Assembly) -> RegId {
        let value = asm.announced_value();
        asm.load(Space::Shared, Order::Volatile, ScalarType::U32, address(value))
    }

    /// Emits the end, where the first block says what the upper halves are.
    pub(super) fn end(&self, asm: &mut Assembly, first: Option<Guard>) {
        for word in [self.word, self.other] {
            asm.store(first, Space::Global, ScalarType::U32, at(word.address, 8), word.upper.into());
        }
    }
}

fn address(word: SymbolId) -> Address {
    Address { base: AddressBase::Var(VarRef::Symbol(word)), offset: 0 }
}
