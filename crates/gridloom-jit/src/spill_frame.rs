//! The spill frame: registers of groups, stored in the form they are held in. A uniform or affine
//! register is one word, others are vectors.
//!
//! When all threads of a block reach a barrier, their groups continue after it in the same code,
//! and the live registers stay in the frame of the group. Only if the interpreter must continue a
//! thread are they moved to its slots ([`FrameLayout::expand`]). A group that leaves through a side
//! exit does so at once ([`GroupExit`]). There are many side exits, so the size of their code
//! matters more than its speed.

use crate::analysis::flow::{Flow, Role, SlotSet};
use crate::analysis::rematerialization::Rematerialization;
use crate::analysis::uniformity::{Shape, Uniformity};
use crate::native::Class;
use gridloom_interp::code::Pc;
use gridloom_interp::lanes::Slot;

/// The place and form of a register in the frame of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) slot: Slot,
    pub(crate) offset: u32,
    shape: Shape,
    class: Class,
    /// Whether it may hold a NaN that is not canonical.
    lazy: bool,
}

/// A frame that is filled from the slots of threads where a group is entered, so that it continues
/// as after a barrier.
#[derive(Debug)]
pub(crate) struct FrameEntry {
    /// The size of a frame in bytes.
    bytes: u32,
    shapes: EntryShapes,
    kept: Vec<Kept>,
    /// Where the threads are if registers do not have the shapes that the code relies on.
    otherwise: u32,
}

impl FrameEntry {
    /// Fills the frame of a group. Returns whether its registers have their shapes; if not, records
    /// where the threads continue instead.
    ///
    /// # Safety
    /// `frames` has the frames of the block's groups, and `thread` is the first of one of them.
    /// `registers` is the first slot in its first lane, and `places` the entry of its first thread.
    pub(crate) unsafe fn enter(
        &self,
        frames: *mut u8,
        thread: u32,
        registers: *const u64,
        places: *mut u32,
    ) -> bool {
        let lanes = self.shapes.lanes;
        // SAFETY: the caller's promise, and that a layout has room for what is kept.
        unsafe {
            if !self.shapes.holds(registers) {
                (0..lanes as usize).for_each(|lane| *places.add(lane) = self.otherwise);
                return false;
            }
            let frame = frames.add((thread / lanes * self.bytes) as usize);
            self.kept.iter().for_each(|kept| kept.fill(frame, lanes as usize, registers));
        }
        true
    }
}

/// The frames of a function's groups.
pub(crate) struct FrameLayout {
    /// The size of a frame in bytes, a multiple of 16.
    pub(crate) bytes: u32,
    lanes: u32,
    /// For each barrier that groups pass together, in ascending order, the registers kept there.
    barriers: Vec<(Pc, Vec<Kept>)>,
}

/// Returns whether all threads of a block can pass a barrier inside compiled code.
pub(crate) fn is_passed(flow: &Flow<'_>, pc: Pc) -> bool {
    flow.is_kernel
        && flow.instruction(pc).is_plain_barrier(flow.code)
        && pc + 1 < flow.range.end
        && flow.role(pc + 1) != Role::Interpreted
}

impl FrameLayout {
    /// Returns the layout of a function whose barriers are not passed inside compiled code.
    pub(crate) fn none() -> Self {
        Self { bytes: 0, lanes: 1, barriers: Vec::new() }
    }

    pub(crate) fn of(
        flow: &Flow<'_>,
        (shapes, invariants): (&Uniformity, &Rematerialization),
        (storage, lazy): (&[Class], &[bool]),
        lanes: u32,
    ) -> Self {
        let mut offsets: Vec<Option<u32>> = vec![None; storage.len()];
        let mut bytes = 0;
        let mut barriers = Vec::new();
        for block in &flow.blocks {
            let pc = block.range.end - 1;
            if !is_passed(flow, pc) {
                continue;
            }
            let mut kept = Vec::new();
            for slot in passed_by(flow, invariants, pc).iter() {
                let index = slot.0 as usize;
                let (shape, class) = (shapes.get(slot), storage[index]);
                let offset = *offsets[index].get_or_insert_with(|| {
                    let offset = bytes;
                    bytes += Kept::bytes(shape, class, lanes);
                    offset
                });
                kept.push(Kept { slot, offset, shape, class, lazy: lazy[index] });
            }
            barriers.push((pc, kept));
        }
        Self { bytes, lanes, barriers }
    }

    /// Returns the barriers that groups pass together.
    pub(crate) fn barriers(&self) -> impl Iterator<Item = Pc> + '_ {
        self.barriers.iter().map(|&(pc, _)| pc)
    }

    /// Returns the number of a barrier among them, and the registers kept at it.
    pub(crate) fn at(&self, pc: Pc) -> Option<(usize, &[Kept])> {
        let index = self.barriers.binary_search_by_key(&pc, |&(pc, _)| pc).ok()?;
        Some((index, &self.barriers[index].1))
    }

    /// Returns how a group is entered behind a barrier with registers in the slots of its threads.
    /// If they do not have the shapes that the code relies on, the threads continue at `otherwise`.
    pub(crate) fn entry(&self, pc: Pc, otherwise: u32) -> Option<FrameEntry> {
        let (_, kept) = self.at(pc)?;
        let mut shapes = EntryShapes::new(self.lanes);
        for kept in kept.iter().filter(|kept| kept.shape != Shape::Varying) {
            shapes.expect(kept.slot, kept.shape, kept.class);
        }
        Some(FrameEntry { bytes: self.bytes, shapes, kept: kept.to_vec(), otherwise })
    }

    /// Moves the registers that a group keeps at a barrier to the slots of its threads.
    ///
    /// # Safety
    /// `frame` is the frame of a group that has reached the barrier. `registers` is the first slot
    /// in its first lane.
    pub(crate) unsafe fn expand(&self, pc: Pc, frame: *const u8, registers: *mut u64) {
        let Some((_, kept)) = self.at(pc) else { return };
        for kept in kept {
            // SAFETY: the layout has room for all lanes of the register. The rest is the caller's
            // promise.
            unsafe { kept.expand(frame, self.lanes as usize, registers) };
        }
    }
}

impl Kept {
    /// Returns the size of a register in a frame, in bytes.
    pub(crate) fn bytes(shape: Shape, class: Class, lanes: u32) -> u32 {
        match shape {
            Shape::Varying => lanes * class.bits().max(32) / 8,
            _ => 16,
        }
    }

    /// Moves the register to the slots of `lanes` threads.
    ///
    /// # Safety
    /// `frame` is where the group has stored it. `registers` is the first slot in its first lane.
    unsafe fn expand(&self, frame: *const u8, lanes: usize, registers: *mut u64) {
        // SAFETY: slots have 32 lanes each, and the frame has one element per thread. Only the
        // stored bits of an element narrower than 64 bits are read.
        unsafe {
            let at = frame.add(self.offset as usize);
            let slot = registers.add(self.slot.0 as usize * 32);
            match self.shape {
                Shape::Varying if self.class.bits() == 64 => {
                    at.cast::<u64>().copy_to_nonoverlapping(slot, lanes);
                }
                Shape::Varying => {
                    for lane in 0..lanes {
                        *slot.add(lane) = self.held(u64::from(*at.cast::<u32>().add(lane)));
                    }
                }
                Shape::Uniform => {
                    let value = self.held(*at.cast::<u64>());
                    (0..lanes).for_each(|lane| *slot.add(lane) = value);
                }
                Shape::Offsets(offsets) => {
                    let value = *at.cast::<u64>();
                    for (lane, &offset) in offsets.iter().enumerate().take(lanes) {
                        *slot.add(lane) = self.held(value.wrapping_add_signed(offset.into()));
                    }
                }
                Shape::Affine(step) => {
                    let mut value = *at.cast::<u64>();
                    for lane in 0..lanes {
                        *slot.add(lane) = self.held(value);
                        value = value.wrapping_add_signed(step);
                    }
                }
            }
        }
    }

    /// Moves the register from the slots of `lanes` threads, in which it has its shape, to the
    /// frame of their group.
    ///
    /// # Safety
    /// As for [`expand`](Self::expand).
    unsafe fn fill(&self, frame: *mut u8, lanes: usize, registers: *const u64) {
        // SAFETY: slots have 32 lanes each, and the frame has one element per thread.
        unsafe {
            let at = frame.add(self.offset as usize);
            let slot = registers.add(self.slot.0 as usize * 32);
            match (self.shape, self.class) {
                (Shape::Varying, Class::Pred) => {
                    for lane in 0..lanes {
                        *at.cast::<u32>().add(lane) = if *slot.add(lane) == 0 { 0 } else { u32::MAX };
                    }
                }
                (Shape::Varying, class) if class.bits() == 64 => {
                    slot.copy_to_nonoverlapping(at.cast::<u64>(), lanes);
                }
                (Shape::Varying, _) => {
                    (0..lanes).for_each(|lane| *at.cast::<u32>().add(lane) = *slot.add(lane) as u32);
                }
                _ => *at.cast::<u64>() = *slot,
            }
        }
    }

    /// Converts the bits that compiled code holds to those of a slot.
    fn held(&self, bits: u64) -> u64 {
        match self.class {
            Class::Pred => u64::from(bits as u32 != 0),
            class if class.bits() == 64 => bits,
            _ => {
                let bits = bits as u32;
                let nan = bits & 0x7fff_ffff > 0x7f80_0000;
                u64::from(if self.lazy && nan { 0x7fff_ffff } else { bits })
            }
        }
    }
}

/// Registers that must have their shape in memory where a group is entered.
#[derive(Debug)]
pub(crate) struct EntryShapes {
    lanes: u32,
    /// Each register, its shape, and whether it has 64 bits.
    registers: Vec<(Slot, Shape, bool)>,
}

impl EntryShapes {
    pub(crate) fn new(lanes: u32) -> Self {
        Self { lanes, registers: Vec::new() }
    }

    /// Requires a register to have its shape, unless that is arbitrary.
    pub(crate) fn expect(&mut self, slot: Slot, shape: Shape, class: Class) {
        self.registers.push((slot, shape, class.bits() == 64));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }

    /// Returns whether all of them have their shape.
    ///
    /// # Safety
    /// `registers` is the first slot in the first lane of a group.
    pub(crate) unsafe fn holds(&self, registers: *const u64) -> bool {
        self.registers.iter().all(|&(slot, shape, wide)| {
            // SAFETY: slots have 32 lanes each. The rest is the caller's promise.
            let lanes = unsafe {
                std::slice::from_raw_parts(registers.add(slot.0 as usize * 32), self.lanes as usize)
            };
            let expected = |lane: usize| {
                let more = match shape {
                    Shape::Affine(step) => step.wrapping_mul(lane as i64),
                    Shape::Offsets(offsets) => i64::from(offsets[lane]),
                    Shape::Uniform | Shape::Varying => 0,
                };
                let value = lanes[0].wrapping_add_signed(more);
                if wide { value } else { u64::from(value as u32) }
            };
            // Comparing all lanes is faster than a branch after each.
            lanes.iter().enumerate().fold(true, |all, (lane, &value)| all & (value == expected(lane)))
        })
    }
}

/// Threads that wait at a place, as bits in one of several words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingLanes {
    pub(crate) word: u32,
    pub(crate) place: u32,
}

/// Where the threads of a group are that is left.
#[derive(Clone, Debug)]
pub(crate) enum LanePlaces {
    Same(u32),
    /// At the first place where a mask is not zero, else at the second. The frame has the masks at
    /// an offset, 32 bits for each thread.
    Parted {
        places: [u32; 2],
        masks: u32,
    },
    /// At a place where a bit is set; other threads wait elsewhere. At an offset the frame has the
    /// address of their words, and then those bits.
    Scattered {
        place: u32,
        waiting: Vec<WaitingLanes>,
        words: u32,
    },
}

/// How a group leaves through a side exit: what it has stored, and where its threads are.
#[derive(Debug)]
pub(crate) struct GroupExit {
    lanes: u32,
    kept: Vec<Kept>,
    /// Registers that are still in the spill frame as they were after the last barrier.
    in_frame: Vec<Kept>,
    /// The size of the spill frame of a group.
    frame_bytes: u32,
    places: LanePlaces,
    bytes: u32,
}

impl GroupExit {
    pub(crate) fn new(lanes: u32) -> Self {
        Self {
            lanes,
            kept: Vec::new(),
            in_frame: Vec::new(),
            frame_bytes: 0,
            places: LanePlaces::Same(0),
            bytes: 0,
        }
    }

    /// Returns the size of the frame in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Reserves room for a register. Returns its offset.
    pub(crate) fn keep(&mut self, slot: Slot, shape: Shape, class: Class, lazy: bool) -> u32 {
        let offset = self.bytes;
        self.bytes += Kept::bytes(shape, class, self.lanes).next_multiple_of(16);
        self.kept.push(Kept { slot, offset, shape, class, lazy });
        offset
    }

    /// Takes a register from the spill frame of the group, of so many bytes, where it is at an
    /// offset.
    pub(crate) fn take_from_frame(&mut self, slot: Slot, frame_bytes: u32, offset: u32) {
        if let Some(index) = self.kept.iter().position(|kept| kept.slot == slot) {
            self.in_frame.push(Kept { offset, ..self.kept.swap_remove(index) });
            self.frame_bytes = frame_bytes;
        }
    }

    /// Reserves room for the masks of threads at the first of two places; the others are at the
    /// second. Returns the offset.
    pub(crate) fn part(&mut self, places: [u32; 2]) -> u32 {
        let masks = self.bytes;
        self.bytes += (4 * self.lanes).next_multiple_of(16);
        self.places = LanePlaces::Parted { places, masks };
        masks
    }

    /// Reserves room for the address of the waiting threads' words and for the bits of the threads
    /// at a place. Returns the offset.
    pub(crate) fn scatter(&mut self, place: u32, waiting: Vec<WaitingLanes>) -> u32 {
        let words = self.bytes;
        self.bytes += 16;
        self.places = LanePlaces::Scattered { place, waiting, words };
        words
    }

    /// Puts all threads at one place.
    pub(crate) fn stay(&mut self, place: u32) {
        self.places = LanePlaces::Same(place);
    }

    /// Moves registers to where the interpreter reads them, and records where the threads are.
    ///
    /// # Safety
    /// `frame` is what the group has stored, with the words of waiting threads. `spilled` has the
    /// spill frames of the block's groups, and `thread` is the first of the group. `registers` is
    /// the first slot in its first lane, and `places` the entry of its first thread.
    pub(crate) unsafe fn settle(
        &self,
        frame: *const u8,
        (spilled, thread): (*const u8, u32),
        registers: *mut u64,
        places: *mut u32,
    ) {
        let lanes = self.lanes as usize;
        let spilled = spilled.wrapping_add((thread / self.lanes * self.frame_bytes) as usize);
        // SAFETY: room was reserved for everything in the frame. The spill frame has what the group
        // kept at the last barrier. The rest is the caller's promise.
        unsafe {
            self.kept.iter().for_each(|kept| kept.expand(frame, lanes, registers));
            self.in_frame.iter().for_each(|kept| kept.expand(spilled, lanes, registers));
            match &self.places {
                LanePlaces::Same(place) => (0..lanes).for_each(|lane| *places.add(lane) = *place),
                LanePlaces::Parted { places: [there, others], masks } => {
                    for lane in 0..lanes {
                        let mask = *frame.add(*masks as usize).cast::<u32>().add(lane);
                        *places.add(lane) = if mask == 0 { *others } else { *there };
                    }
                }
                LanePlaces::Scattered { place, waiting, words } => {
                    let at = frame.add(*words as usize);
                    let (words, bits) = (*at.cast::<*mut u32>(), *at.add(8).cast::<u32>());
                    let note = |bits: u32, place: u32| {
                        (0..lanes)
                            .filter(|lane| bits >> lane & 1 == 1)
                            .for_each(|lane| *places.add(lane) = place);
                    };
                    note(bits, *place);
                    for waiting in waiting {
                        // No thread waits there any more.
                        let word = words.add(waiting.word as usize);
                        note(*word, waiting.place);
                        *word = 0;
                    }
                }
            }
        }
    }
}

/// Returns the registers to keep at a barrier that groups pass.
fn passed_by(flow: &Flow<'_>, invariants: &Rematerialization, pc: Pc) -> SlotSet {
    let block = flow.blocks.partition_point(|block| block.range.end <= pc);
    invariants.kept(flow, pc, &flow.blocks[block].live_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of 32 lanes each.
    fn slots(count: usize) -> Vec<u64> {
        vec![0; 32 * count]
    }

    #[test]
    fn what_a_group_has_stored_is_put_into_the_slots_of_its_threads() {
        let mut left = GroupExit::new(4);
        left.stay(7);
        let shapes = [
            (Shape::Uniform, Class::B64, false),
            (Shape::Affine(-1), Class::B32, false),
            (Shape::Varying, Class::F32, true),
            (Shape::Varying, Class::Pred, false),
        ];
        let offsets: Vec<u32> = (0..)
            .zip(shapes)
            .map(|(slot, (shape, class, lazy))| left.keep(Slot(slot), shape, class, lazy))
            .collect();
        assert_eq!((offsets, left.bytes()), (vec![0, 16, 32, 48], 64));
        // A word, a word whose upper half is anything, a NaN that is not the canonical one, and
        // masks.
        let frame = [
            5u64,
            0,
            0xdead_beef_0000_0001,
            0,
            0xffc0_0001_3f80_0000,
            1 << 32,
            0xffff_ffff,
            0xffff_ffff << 32,
        ];
        let (mut registers, mut places) = (slots(4), [0; 4]);
        // SAFETY: the frame is as long as said, and there are as many slots.
        unsafe {
            left.settle(
                frame.as_ptr().cast(),
                (std::ptr::null(), 0),
                registers.as_mut_ptr(),
                places.as_mut_ptr(),
            );
        }
        let slot = |i: usize| &registers[32 * i..32 * i + 4];
        assert_eq!(slot(0), [5; 4]);
        assert_eq!(slot(1), [1, 0, 0xffff_ffff, 0xffff_fffe]);
        assert_eq!(slot(2), [0x3f80_0000, 0x7fff_ffff, 0, 1]);
        assert_eq!(slot(3), [1, 0, 0, 1]);
        assert_eq!((registers[4], places), (0, [7; 4]));
    }

    /// A layout of one barrier that keeps registers of all kinds in groups of four.
    fn layout() -> FrameLayout {
        let shapes = [
            (Shape::Uniform, Class::B32),
            (Shape::Affine(4), Class::B64),
            (Shape::Varying, Class::F32),
            (Shape::Varying, Class::Pred),
            (Shape::Uniform, Class::Pred),
            (Shape::Varying, Class::F64),
        ];
        let mut bytes = 0;
        let kept = (0..)
            .zip(shapes)
            .map(|(slot, (shape, class))| {
                let offset = bytes;
                bytes += Kept::bytes(shape, class, 4);
                Kept { slot: Slot(slot), offset, shape, class, lazy: false }
            })
            .collect();
        FrameLayout { bytes, lanes: 4, barriers: vec![(9, kept)] }
    }

    /// Slots of registers that have the shapes of [`layout`].
    fn registers() -> Vec<u64> {
        let mut registers = slots(6);
        for lane in 0..4 {
            registers[lane] = 7;
            registers[32 + lane] = 1000 + 4 * lane as u64;
            registers[64 + lane] = 0x3f80_0000 + lane as u64;
            registers[96 + lane] = lane as u64 & 1;
            registers[128 + lane] = 1;
            registers[160 + lane] = u64::MAX - lane as u64;
        }
        registers
    }

    #[test]
    fn a_frame_filled_from_slots_expands_to_the_same_slots() {
        let (layout, before) = (layout(), registers());
        let entry = layout.entry(9, 77).expect("the barrier keeps registers");
        let mut frames = vec![0u64; 2 * layout.bytes as usize / 8];
        let (mut places, mut after) = ([0; 4], slots(6));
        // SAFETY: there are two frames, and all slots and places of the group.
        unsafe {
            assert!(entry.enter(frames.as_mut_ptr().cast(), 4, before.as_ptr(), places.as_mut_ptr()));
            assert_eq!(frames[..layout.bytes as usize / 8], vec![0; layout.bytes as usize / 8]);
            let frame = frames.as_ptr().cast::<u8>().add(layout.bytes as usize);
            layout.expand(9, frame, after.as_mut_ptr());
        }
        assert_eq!((after, places), (before, [0; 4]));
    }

    #[test]
    fn a_frame_is_not_filled_from_registers_of_other_shapes() {
        let (layout, mut registers) = (layout(), registers());
        let entry = layout.entry(9, 77).expect("the barrier keeps registers");
        registers[32 + 3] += 1;
        let mut frames = vec![0u64; layout.bytes as usize / 8];
        let mut places = [0; 4];
        // SAFETY: there is a frame, and all slots and places of the group.
        let entered =
            unsafe { entry.enter(frames.as_mut_ptr().cast(), 0, registers.as_ptr(), places.as_mut_ptr()) };
        assert!(!entered);
        assert_eq!((places, frames.iter().all(|&word| word == 0)), ([77; 4], true));
    }

    #[test]
    fn an_exit_takes_registers_from_the_spill_frame() {
        let (layout, before) = (layout(), registers());
        let entry = layout.entry(9, 77).expect("the barrier keeps registers");
        let mut frames = vec![0u64; 2 * layout.bytes as usize / 8];
        let (mut places, mut after) = ([0; 4], slots(6));
        let mut left = GroupExit::new(4);
        left.stay(5);
        for kept in &layout.barriers[0].1 {
            left.keep(kept.slot, kept.shape, kept.class, kept.lazy);
        }
        let stored = vec![0u64; left.bytes() as usize / 8];
        for kept in &layout.barriers[0].1 {
            left.take_from_frame(kept.slot, layout.bytes, kept.offset);
        }
        // SAFETY: there are two frames, and all slots and places of the group.
        unsafe {
            entry.enter(frames.as_mut_ptr().cast(), 4, before.as_ptr(), places.as_mut_ptr());
            left.settle(
                stored.as_ptr().cast(),
                (frames.as_ptr().cast(), 4),
                after.as_mut_ptr(),
                places.as_mut_ptr(),
            );
        }
        assert_eq!((after, places), (before, [5; 4]));
    }

    #[test]
    fn threads_that_part_are_where_their_masks_say() {
        let mut left = GroupExit::new(4);
        assert_eq!(left.part([3, 9]), 0);
        let (masks, mut places) = ([u32::MAX, 0, 0, u32::MAX], [0; 4]);
        // SAFETY: the frame has the masks, and nothing else is kept.
        unsafe {
            left.settle(
                masks.as_ptr().cast(),
                (std::ptr::null(), 0),
                slots(1).as_mut_ptr(),
                places.as_mut_ptr(),
            );
        }
        assert_eq!(places, [3, 9, 9, 3]);
    }

    #[test]
    fn a_register_has_its_shape_in_all_threads_or_not() {
        let mut entered = EntryShapes::new(8);
        assert!(entered.is_empty());
        entered.expect(Slot(0), Shape::Uniform, Class::B32);
        entered.expect(Slot(1), Shape::Affine(4), Class::B32);
        let mut registers = slots(2);
        for lane in 0..8u64 {
            // It wraps in 32 bits.
            registers[32 + lane as usize] = u64::from(0xffff_fff8u32.wrapping_add(4 * lane as u32));
        }
        // SAFETY: there are as many slots.
        let holds = |registers: &[u64]| unsafe { entered.holds(registers.as_ptr()) };
        assert!(holds(&registers));
        for wrong in [7, 32 + 7] {
            let mut registers = registers.clone();
            registers[wrong] += 1;
            assert!(!holds(&registers), "{wrong}");
        }
        // What is behind the group is not looked at.
        registers[8] = 1;
        assert!(holds(&registers));
    }
}
