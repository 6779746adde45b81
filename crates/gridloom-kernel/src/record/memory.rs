//! Recording of slices and arrays.

use std::marker::PhantomData;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::ir::{Base, Mem, Operand, Space, Ty};
use crate::record::arithmetic::{Op, compare, wrapping};
use crate::record::recorder::{Recorder, with};
use crate::record::value::{KernelType, Opt, R, Scalar, Twin, Typed, V, Var};

/// A type that slices of device code can have: a plain type.
pub trait SliceElement: 'static {
    /// What stands for an element.
    #[doc(hidden)]
    type Element: Copy;
    #[doc(hidden)]
    fn element(mem: Mem) -> Self::Element;
}

impl<T: KernelType> SliceElement for T {
    type Element = V<T>;

    fn element(mem: Mem) -> V<T> {
        V::new(T::place(mem))
    }
}

/// A slice of memory.
pub struct Slice<T: ?Sized> {
    space: Space,
    base: V<u64>,
    len: V<usize>,
    element: PhantomData<fn() -> Box<T>>,
}

impl<T: ?Sized> Clone for Slice<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for Slice<T> {}

impl<T: SliceElement> Typed for &[T] {
    type Twin = Slice<T>;
}
impl<T: SliceElement> Typed for &mut [T] {
    type Twin = Slice<T>;
}

impl<T> Twin for Slice<T> {
    fn get(&self) -> Self {
        Slice { base: self.base.get(), len: self.len.get(), ..*self }
    }
}

impl<T> Var for Slice<T> {
    fn declare() -> Self {
        // Which memory it will be in is not known.
        Slice { space: Space::Generic, base: V::declare(), len: V::declare(), element: PhantomData }
    }

    fn assign(&self, from: Self) {
        let base = match from.space {
            space if space == self.space => from.base,
            space => with(|r| {
                if self.space != Space::Generic {
                    r.refuse(
                        "a variable that is a slice stays in one kind of memory (an argument, an array of the thread, memory of the block); use a variable for each",
                    );
                }
                let base = from.base.operand(r);
                let op = match space {
                    Space::Shared | Space::SharedRead => "cvta.shared",
                    Space::Local => "cvta.local",
                    _ => "cvta.global",
                };
                V::of(r.compute(op, "u64", Ty::U64, &[base]))
            }),
        };
        self.base.assign(base);
        self.len.assign(from.len);
    }

    fn own(self) -> Self {
        Slice { base: self.base.own(), len: self.len.own(), ..self }
    }
}

/// Returns the bytes before the element at an index that is known, if they fit into an instruction.
fn known_offset(index: Operand, size: usize) -> Option<i64> {
    let Operand::Imm(_, index) = index else { return None };
    let offset = index.checked_mul(size as u64)?;
    i32::try_from(offset).ok().map(i64::from)
}

/// Returns the place of the element at an index that was checked.
fn element_at(r: &mut Recorder, space: Space, base: Operand, index: Operand, size: usize) -> Mem {
    if let Space::Shared | Space::SharedRead = space {
        // The memory of a block is small: addresses in it have 32 bits.
        let base = r.compute("cvt", "u32.u64", Ty::U32, &[base]);
        let (address, offset) = match (index, known_offset(index, size)) {
            (_, Some(offset)) => (base, offset),
            (index, None) => {
                let index = r.compute("cvt", "u32.u64", Ty::U32, &[index]);
                let size = Operand::Imm(Ty::U32, size as u64);
                (r.compute("mad.lo", "u32", Ty::U32, &[index, size, base]), 0)
            }
        };
        let Operand::Reg(address) = address else { unreachable!("a result is in a register") };
        return Mem { space, base: Base::Reg(address), index: None, offset };
    }
    match (base, known_offset(index, size)) {
        (Operand::Reg(reg), Some(offset)) => Mem { space, base: Base::Reg(reg), index: None, offset },
        (base, _) => {
            let size = Operand::Imm(Ty::U64, size as u64);
            let Operand::Reg(address) = r.compute("mad.lo", "u64", Ty::U64, &[index, size, base]) else {
                unreachable!("a result is in a register")
            };
            Mem { space, base: Base::Reg(address), index: None, offset: 0 }
        }
    }
}

impl<T> Slice<T> {
    /// Returns whether it is the same memory, whatever its phase.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        with(|r| self.base.operand(r) == other.base.operand(r) && self.len.operand(r) == other.len.operand(r))
    }

    /// Returns the same memory as atomic numbers.
    pub(crate) fn of_atomics(self) -> Slice<crate::Atomic<T>> {
        Slice { space: self.space, base: self.base, len: self.len, element: PhantomData }
    }
}

impl<T: SliceElement> Slice<T> {
    pub(crate) fn new(space: Space, base: V<u64>, len: V<usize>) -> Self {
        Slice { space, base, len, element: PhantomData }
    }

    /// Returns the slice as it is now.
    pub(crate) fn get_twin(&self) -> Self {
        Slice { base: self.base.get(), len: self.len.get(), ..*self }
    }

    /// Returns the same memory of a block, while it is read or written.
    pub(crate) fn in_phase(self, is_read: bool) -> Self {
        let space = match (self.space, is_read) {
            (Space::Shared | Space::SharedRead, true) => Space::SharedRead,
            (Space::Shared | Space::SharedRead, false) => Space::Shared,
            (_, true) => Space::BlockRead,
            (_, false) => Space::Global,
        };
        Slice { space, ..self }
    }

    /// Returns the place of an element whose index is known to be in range.
    pub(crate) fn unchecked(&self, index: V<usize>) -> T::Element {
        with(|r| {
            let (base, index) = (self.base.operand(r), index.operand(r));
            T::element(element_at(r, self.space, base, index, size_of::<T>()))
        })
    }

    fn check(&self, index: V<usize>, what: &str) {
        with(|r| {
            let (index, len) = (index.operand(r), self.len.operand(r));
            let is_inside = compare(r, "setp.lt", Ty::U64, index, len);
            r.check_index(is_inside, what);
        });
    }

    /// `slice[index]`.
    pub fn __at<I: SliceIndex<T>>(self, index: I, line: u32, what: &str) -> I::Part {
        with(|r| r.at(line));
        index.part(self, what)
    }

    /// Does what the method of the standard library does.
    pub fn len(self) -> V<usize> {
        self.len.get()
    }

    /// Does what the method of the standard library does.
    pub fn is_empty(self) -> V<bool> {
        super::arithmetic::eq(self.len(), super::value::lit(0))
    }

    /// Does what the method of the standard library does.
    pub fn get(self, index: V<usize>) -> Opt<R<T::Element>> {
        let is_inside = super::arithmetic::lt(index, self.len());
        // Nothing is accessed until the option is looked at.
        Opt { __some: is_inside, __value: R { __place: self.unchecked(index) } }
    }

    /// Does what the method of the standard library does. The caller promises that the index is in
    /// range.
    pub fn get_unchecked(self, index: V<usize>) -> R<T::Element> {
        R { __place: self.unchecked(index) }
    }

    /// Does what the method of the standard library does. The caller promises that the index is in
    /// range.
    pub fn get_unchecked_mut(self, index: V<usize>) -> R<T::Element> {
        self.get_unchecked(index)
    }

    /// Does what the method of the standard library does.
    pub fn first(self) -> Opt<R<T::Element>> {
        self.get(super::value::lit(0))
    }

    /// Does what the method of the standard library does.
    pub fn last(self) -> Opt<R<T::Element>> {
        // An empty slice has no index that is below its length.
        self.get(self.len().wrapping_sub(super::value::lit(1)))
    }

    /// Returns a part that was checked to be inside.
    fn part(self, start: V<usize>, end: V<usize>) -> Slice<T> {
        with(|r| {
            let (start, end) = (start.operand(r), end.operand(r));
            let base = self.base.operand(r);
            let size = Operand::Imm(Ty::U64, size_of::<T>() as u64);
            let base = r.compute("mad.lo", "u64", Ty::U64, &[start, size, base]);
            let len = wrapping(r, Op::Sub, Ty::U64, end, start);
            Slice::new(self.space, V::of(base), V::of(len))
        })
    }

    /// Returns `count` elements from index `start` on, which were checked to be inside.
    pub(crate) fn part_of(self, start: V<usize>, count: V<usize>) -> Slice<T> {
        with(|r| {
            let (start, base) = (start.operand(r), self.base.operand(r));
            let size = Operand::Imm(Ty::U64, size_of::<T>() as u64);
            Slice::new(self.space, V::of(r.compute("mad.lo", "u64", Ty::U64, &[start, size, base])), count)
        })
    }

    fn checked_part(self, start: V<usize>, end: V<usize>, what: &str) -> Slice<T> {
        with(|r| {
            let (start, end, len) = (start.operand(r), end.operand(r), self.len.operand(r));
            let is_ordered = compare(r, "setp.le", Ty::U64, start, end);
            r.check_index(is_ordered, what);
            let is_inside = compare(r, "setp.le", Ty::U64, end, len);
            r.check_index(is_inside, what);
        });
        self.part(start, end)
    }
}

/// What a slice can be indexed with.
#[diagnostic::on_unimplemented(message = "device code cannot index a slice with `{Self}`")]
pub trait SliceIndex<T: SliceElement> {
    #[doc(hidden)]
    type Part;
    #[doc(hidden)]
    fn part(self, slice: Slice<T>, what: &str) -> Self::Part;
}

impl<T: SliceElement> SliceIndex<T> for V<usize> {
    type Part = T::Element;

    fn part(self, slice: Slice<T>, what: &str) -> T::Element {
        slice.check(self, what);
        slice.unchecked(self)
    }
}
impl<T: SliceElement> SliceIndex<T> for Range<V<usize>> {
    type Part = Slice<T>;

    fn part(self, slice: Slice<T>, what: &str) -> Slice<T> {
        slice.checked_part(self.start, self.end, what)
    }
}
impl<T: SliceElement> SliceIndex<T> for RangeFrom<V<usize>> {
    type Part = Slice<T>;

    fn part(self, slice: Slice<T>, what: &str) -> Slice<T> {
        slice.checked_part(self.start, slice.len(), what)
    }
}
impl<T: SliceElement> SliceIndex<T> for RangeTo<V<usize>> {
    type Part = Slice<T>;

    fn part(self, slice: Slice<T>, what: &str) -> Slice<T> {
        slice.checked_part(super::value::lit(0), self.end, what)
    }
}
impl<T: SliceElement> SliceIndex<T> for RangeInclusive<V<usize>> {
    type Part = Slice<T>;

    fn part(self, slice: Slice<T>, what: &str) -> Slice<T> {
        let (start, end) = self.into_inner();
        // The last index is below the length, so the one behind it is an index.
        slice.check(end, what);
        let behind = V::wrapping_add(end, super::value::lit(1));
        slice.checked_part(start, behind, what)
    }
}
impl<T: SliceElement> SliceIndex<T> for RangeToInclusive<V<usize>> {
    type Part = Slice<T>;

    fn part(self, slice: Slice<T>, what: &str) -> Slice<T> {
        SliceIndex::part(super::value::lit(0)..=self.end, slice, what)
    }
}
impl<T: SliceElement> SliceIndex<T> for RangeFull {
    type Part = Slice<T>;

    fn part(self, slice: Slice<T>, _: &str) -> Slice<T> {
        slice
    }
}

/// Where an array is.
#[derive(Clone, Copy, Debug)]
pub struct ArrayHandle {
    mem: Mem,
    /// Whether nothing else names it.
    is_temporary: bool,
}

/// Arrays with more elements are copied by a loop.
const MOST_UNROLLED: usize = 16;

impl<T: KernelType, const N: usize> Typed for [T; N] {
    type Twin = V<[T; N]>;
}

// SAFETY: the places of elements are made by `place_of`, whose index was checked or promised.
unsafe impl<T: KernelType, const N: usize> KernelType for [T; N] {
    type Handle = ArrayHandle;

    fn declare() -> ArrayHandle {
        let mem = with(|r| r.local(size_of::<[T; N]>(), align_of::<T>()));
        ArrayHandle { mem, is_temporary: false }
    }

    fn get(handle: &ArrayHandle) -> ArrayHandle {
        // A name can have a temporary value, so that this one is not shared.
        let copy = Self::declare();
        Self::assign(&copy, handle);
        ArrayHandle { is_temporary: true, ..copy }
    }

    fn assign(to: &ArrayHandle, from: &ArrayHandle) {
        let (to, from) = (V::<[T; N]>::new(*to), V::<[T; N]>::new(*from));
        each_index(N, |index| Var::assign(&to.place_of(index), from.place_of(index).get()));
    }

    fn own(value: &ArrayHandle) -> ArrayHandle {
        if value.is_temporary {
            return ArrayHandle { is_temporary: false, ..*value };
        }
        let variable = Self::declare();
        Self::assign(&variable, value);
        variable
    }

    fn stamp(handle: &ArrayHandle) -> u64 {
        with(|r| r.stores_to(&handle.mem))
    }

    fn receiver(handle: &ArrayHandle) -> ArrayHandle {
        *handle
    }

    fn place(mem: Mem) -> ArrayHandle {
        ArrayHandle { mem, is_temporary: false }
    }

    fn lift(self) -> ArrayHandle {
        let mut bytes = vec![0; size_of::<[T; N]>()];
        self.bytes(&mut bytes);
        let mem = with(|r| r.constant(align_of::<T>(), bytes));
        ArrayHandle { mem, is_temporary: false }
    }

    fn bytes(self, out: &mut [u8]) {
        for (value, out) in self.into_iter().zip(out.chunks_mut(size_of::<T>().max(1))) {
            value.bytes(out);
        }
    }
}

/// Records `act` for every index: unrolled if they are few, otherwise in a loop.
fn each_index(count: usize, act: impl Fn(V<usize>)) {
    use super::control::{leave_unless, loop_begin, loop_end, loop_step};
    use super::value::lit;
    if count <= MOST_UNROLLED {
        (0..count).for_each(|index| act(lit(index)));
        return;
    }
    let index: V<usize> = super::value::var(lit(0));
    let around = loop_begin();
    leave_unless(around, super::arithmetic::lt(index.get(), lit(count)));
    act(index.get());
    loop_step();
    index.assign(index.get().wrapping_add(lit(1)));
    loop_end(around);
}

/// What an array of a thread can be indexed with.
#[diagnostic::on_unimplemented(
    message = "device code cannot index an array of a thread with `{Self}`",
    note = "index one element with a `usize`, or take a part with a range of `usize`"
)]
pub trait ArrayIndex<T: KernelType> {
    #[doc(hidden)]
    type Part;
    #[doc(hidden)]
    fn part<const N: usize>(self, array: V<[T; N]>, what: &str) -> Self::Part;
}

impl<T: KernelType> ArrayIndex<T> for V<usize> {
    type Part = V<T>;

    fn part<const N: usize>(self, array: V<[T; N]>, what: &str) -> V<T> {
        array.checked_place(self, what)
    }
}

macro_rules! parts_of_arrays {
    ($($range:ty),*) => {$(
        impl<T: KernelType> ArrayIndex<T> for $range {
            type Part = Slice<T>;

            fn part<const N: usize>(self, array: V<[T; N]>, what: &str) -> Slice<T> {
                SliceIndex::part(self, array.as_slice(), what)
            }
        }
    )*};
}
parts_of_arrays!(
    Range<V<usize>>,
    RangeFrom<V<usize>>,
    RangeTo<V<usize>>,
    RangeInclusive<V<usize>>,
    RangeToInclusive<V<usize>>,
    RangeFull
);

/// What a reference becomes where a function takes it: a reference to an array becomes a slice
/// where a slice is asked for.
#[diagnostic::on_unimplemented(message = "`{Self}` cannot be passed as `{To}` in device code")]
pub trait PassedAs<To> {
    #[doc(hidden)]
    fn passed(self) -> To;
}
impl<X> PassedAs<R<X>> for R<X> {
    fn passed(self) -> R<X> {
        self
    }
}
impl<T: KernelType, const N: usize> PassedAs<Slice<T>> for R<V<[T; N]>> {
    fn passed(self) -> Slice<T> {
        self.__place.as_slice()
    }
}

/// Returns a reference as a function takes it.
pub fn passed<X: PassedAs<To>, To>(reference: X) -> To {
    reference.passed()
}

impl<T: KernelType, const N: usize> V<[T; N]> {
    pub(crate) fn place_of(self, index: V<usize>) -> V<T> {
        with(|r| {
            let mem = self.__handle.mem;
            let size = size_of::<T>();
            let mem = match index.operand(r) {
                // An index out of range has failed its check, or was promised not to be.
                Operand::Imm(_, index) => mem.plus((index as usize).min(N) * size),
                index => {
                    let offset = match mem.index {
                        None => {
                            r.compute("mul.lo", "u64", Ty::U64, &[index, Operand::Imm(Ty::U64, size as u64)])
                        }
                        Some(before) => r.compute(
                            "mad.lo",
                            "u64",
                            Ty::U64,
                            &[index, Operand::Imm(Ty::U64, size as u64), Operand::Reg(before)],
                        ),
                    };
                    let Operand::Reg(offset) = offset else { unreachable!("a result is in a register") };
                    Mem { index: Some(offset), ..mem }
                }
            };
            V::new(T::place(mem))
        })
    }

    /// Returns the memory of the array.
    pub fn as_slice(self) -> Slice<T> {
        let mut mem = self.__handle.mem;
        if mem.space == Space::Param {
            mem = <[T; N]>::get(&self.__handle).mem;
        }
        with(|r| {
            r.note_address(mem.base);
            let start = match mem.base {
                // Addresses in the memory of a block have 32 bits.
                Base::Reg(reg) if r.program.regs[reg.0 as usize].bits() == 32 => {
                    r.compute("cvt", "u64.u32", Ty::U64, &[Operand::Reg(reg)])
                }
                Base::Reg(reg) => Operand::Reg(reg),
                base => r.compute("mov", "u64", Ty::U64, &[Operand::Address(base)]),
            };
            let start = match mem.index {
                Some(index) => wrapping(r, Op::Add, Ty::U64, start, Operand::Reg(index)),
                None => start,
            };
            let start = match mem.offset {
                0 => start,
                offset => wrapping(r, Op::Add, Ty::U64, start, Operand::Imm(Ty::U64, offset as u64)),
            };
            Slice::new(mem.space, V::of(start), super::value::lit(N))
        })
    }

    /// Returns whether a pattern has the length of the array, which the compiler has checked.
    pub fn __fits(self, _: usize, _: bool) -> V<bool> {
        super::value::lit(true)
    }

    /// Returns the element of a pattern, whose index is in range.
    pub fn __element(self, index: usize) -> V<T> {
        self.place_of(super::value::lit(index))
    }

    /// Returns the element of a pattern with `..` before it: the last one is the first from the
    /// end.
    pub fn __element_from_end(self, count: usize) -> V<T> {
        self.place_of(super::value::lit(N - count))
    }

    /// `array[index]`.
    pub fn __at<I: ArrayIndex<T>>(self, index: I, line: u32, what: &str) -> I::Part {
        with(|r| r.at(line));
        index.part(self, what)
    }

    fn checked_place(self, index: V<usize>, what: &str) -> V<T> {
        with(|r| {
            let index = index.operand(r);
            let is_inside = compare(r, "setp.lt", Ty::U64, index, Operand::Imm(Ty::U64, N as u64));
            r.check_index(is_inside, what);
        });
        self.place_of(index)
    }

    /// Does what the method of the standard library does.
    pub fn swap(self, a: V<usize>, b: V<usize>) {
        const OUTSIDE: &str = "index out of bounds of an array";
        let (a, b) = (self.checked_place(a, OUTSIDE), self.checked_place(b, OUTSIDE));
        let (of_a, of_b) = (a.get(), b.get());
        a.assign(of_b);
        b.assign(of_a);
    }

    /// Does what the method of the standard library does. The caller promises that the index is in
    /// range.
    pub fn get_unchecked(self, index: V<usize>) -> R<V<T>> {
        R { __place: self.place_of(index) }
    }

    /// Does what the method of the standard library does.
    pub fn len(self) -> V<usize> {
        super::value::lit(N)
    }

    /// Does what the method of the standard library does.
    pub fn is_empty(self) -> V<bool> {
        super::value::lit(N == 0)
    }

    /// Does what the method of the standard library does.
    pub fn get(self, index: V<usize>) -> Opt<R<V<T>>> {
        let is_inside = super::arithmetic::lt(index, self.len());
        // Nothing is accessed until the option is looked at.
        Opt { __some: is_inside, __value: R { __place: self.place_of(index) } }
    }

    /// Does what the method of the standard library does.
    pub fn get_mut(self, index: V<usize>) -> Opt<R<V<T>>> {
        self.get(index)
    }

    /// Does what the method of the standard library does.
    pub fn first(self) -> Opt<R<V<T>>> {
        self.get(super::value::lit(0))
    }

    /// Does what the method of the standard library does.
    pub fn last(self) -> Opt<R<V<T>>> {
        self.get(super::value::lit(N.wrapping_sub(1)))
    }

    /// Does what the method of the standard library does.
    pub fn fill(self, value: V<T>) {
        let value = value.get();
        each_index(N, |index| self.place_of(index).assign(value));
    }

    /// Does what the method of the standard library does.
    pub fn map<U: KernelType>(self, to: impl Fn(V<T>) -> V<U>) -> V<[U; N]> {
        let from = self.get_value();
        let mapped: V<[U; N]> = V::new(ArrayHandle { is_temporary: true, ..<[U; N]>::declare() });
        each_index(N, |index| mapped.place_of(index).assign(to(from.place_of(index).get())));
        mapped
    }

    fn get_value(&self) -> Self {
        V::new(<[T; N]>::get(&self.__handle))
    }
}

/// Methods that an array has from slices.
macro_rules! methods_of_slices {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        impl<T: KernelType, const N: usize> V<[T; N]> {
            $(
                /// Does what the method of the standard library does.
                pub fn $name(self $(, $arg: $ty)*) -> $result {
                    self.as_slice().$name($($arg),*)
                }
            )*
        }
    };
}
methods_of_slices! {
    reverse() -> ();
    copy_from_slice(from: Slice<T>) -> ();
    split_at(middle: V<usize>) -> (Slice<T>, Slice<T>);
    split_at_mut(middle: V<usize>) -> (Slice<T>, Slice<T>);
    windows(size: V<usize>) -> super::iterate::Parts<T>;
    chunks_exact(size: V<usize>) -> super::iterate::Parts<T>;
    chunks_exact_mut(size: V<usize>) -> super::iterate::Parts<T>;
}

impl<T: KernelType + super::arithmetic::OpEq, const N: usize> V<[T; N]> {
    /// Does what the method of the standard library does.
    pub fn contains(self, value: R<V<T>>) -> V<bool> {
        self.as_slice().contains(value)
    }
}

impl<T: super::arithmetic::OpEq, const N: usize> super::arithmetic::OpEq for [T; N] {
    fn equal(a: V<Self>, b: V<Self>) -> V<bool> {
        use super::control::{if_begin, if_end};
        let (a, b) = (a.get_value(), b.get_value());
        let is_equal: V<bool> = super::value::var(super::value::lit(true));
        each_index(N, |index| {
            let still = if_begin(is_equal.get());
            is_equal.assign(T::equal(a.place_of(index).get(), b.place_of(index).get()));
            if_end(still);
        });
        is_equal.get()
    }
}

/// What an array can be made of.
#[diagnostic::on_unimplemented(
    message = "device code has no arrays of `{Self}`",
    note = "elements are scalars, arrays, and structs and enums with `#[derive(KernelType)]`; use a struct instead of a tuple or an option, and values instead of references"
)]
pub trait ArrayElement {
    /// The type of the element.
    type Of: KernelType;
    #[doc(hidden)]
    fn value(self) -> V<Self::Of>;
}
impl<T: KernelType> ArrayElement for V<T> {
    type Of = T;

    fn value(self) -> V<T> {
        self
    }
}

/// `[a, b, c]`.
pub fn array<X: ArrayElement, const N: usize>(values: [X; N]) -> V<[X::Of; N]> {
    let handle = <[X::Of; N]>::declare();
    let array: V<[X::Of; N]> = V::new(ArrayHandle { is_temporary: true, ..handle });
    for (index, value) in values.into_iter().enumerate() {
        array.place_of(super::value::lit(index)).assign(value.value());
    }
    array
}

/// `[value; N]`.
pub fn repeat<X: ArrayElement, const N: usize>(value: X) -> V<[X::Of; N]> {
    let value = value.value();
    let handle = <[X::Of; N]>::declare();
    let array: V<[X::Of; N]> = V::new(ArrayHandle { is_temporary: true, ..handle });
    each_index(N, |index| array.place_of(index).assign(value));
    array
}

/// Returns the scalar at a place of the parameters.
pub(crate) fn param_scalar<T: Scalar>(param: u32, offset: usize) -> V<T> {
    V::<T>::new(T::place(Mem {
        space: Space::Param,
        base: Base::Param(param),
        index: None,
        offset: offset as i64,
    }))
    .get()
}
