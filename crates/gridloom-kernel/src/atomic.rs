//! Memory that threads share through atomic operations.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::host;
use crate::ir::{Effect, Mem, Operand, Space, Ty};
use crate::record::memory::{Slice, SliceElement};
use crate::record::recorder::{Recorder, with};
use crate::record::value::{Constant, Scalar, Twin, Typed, V};
use crate::shared::{SharedTwin, barrier_twin};

/// A number in memory that all threads of a launch, and of others, may change at the same time.
///
/// A kernel takes `&[Atomic<T>]`, and a launch gives a buffer of `T` for it. The operations are
/// those of the atomic types of the standard library, with the same [`Ordering`]s. They hold for
/// all threads of the device; [`block`](Atomic::block) and [`system`](Atomic::system) choose
/// another scope.
///
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
///
/// use gridloom_kernel::{Atomic, host, thread};
///
/// fn count(x: &[u8], counts: &[Atomic<u32>]) {
///     if let Some(&x) = x.get(thread::index()) {
///         counts[x as usize % 4].fetch_add(1, Relaxed);
///     }
/// }
///
/// let mut counts = [0; 4];
/// host::run(1, 8, || count(&[0, 1, 2, 3, 3, 3], Atomic::of(&mut counts)));
/// assert_eq!(counts, [1, 1, 1, 3]);
/// ```
#[repr(transparent)]
pub struct Atomic<T>(UnsafeCell<T>);

// SAFETY: the value is accessed by atomic operations alone.
unsafe impl<T: Send> Sync for Atomic<T> {}

/// An [`Atomic`] with the scope of its operations. The host has one scope.
pub struct Scoped<'a, T>(&'a Atomic<T>);

impl<T> Atomic<T> {
    /// Makes a number atomic.
    pub fn new(value: T) -> Self {
        Atomic(UnsafeCell::new(value))
    }

    /// Makes host memory what a kernel takes. Memory for several host threads is made atomic once,
    /// before they start.
    pub fn of(elements: &mut [T]) -> &[Atomic<T>] {
        // SAFETY: the types have the same layout, and the borrow is exclusive for as long as the
        // result lives.
        unsafe { &*(std::ptr::from_mut(elements) as *const [Atomic<T>]) }
    }

    /// Returns the number with operations of block scope, which are faster on some devices. This
    /// applies to memory of the block. In memory of the device, which other blocks may use, the
    /// operations keep the scope of the device.
    pub fn block(&self) -> Scoped<'_, T> {
        Scoped(self)
    }

    /// Returns the number with operations of system scope: they are atomic for other devices and the
    /// host too.
    pub fn system(&self) -> Scoped<'_, T> {
        Scoped(self)
    }
}

mod sealed {
    pub trait AtomicNumber {}
}

/// A number with atomic operations: 32 or 64 bits.
pub trait AtomicNumber: Scalar + sealed::AtomicNumber {
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
    #[doc(hidden)]
    fn minus(self, other: Self) -> Self;
}

/// An integer with atomic operations.
pub trait AtomicInteger: AtomicNumber + Ord {
    #[doc(hidden)]
    fn bits(op: &'static str, a: Self, b: Self) -> Self;
}

macro_rules! numbers {
    ($($t:ty: $plus:expr, $minus:expr;)*) => {$(
        impl sealed::AtomicNumber for $t {}
        impl AtomicNumber for $t {
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
            fn minus(self, other: Self) -> Self {
                $minus(self, other)
            }
        }
    )*};
}
numbers! {
    u32: u32::wrapping_add, u32::wrapping_sub;
    i32: i32::wrapping_add, i32::wrapping_sub;
    u64: u64::wrapping_add, u64::wrapping_sub;
    i64: i64::wrapping_add, i64::wrapping_sub;
    f32: |a, b| a + b, |a, b| a - b;
    f64: |a, b| a + b, |a, b| a - b;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl AtomicInteger for $t {
            fn bits(op: &'static str, a: Self, b: Self) -> Self {
                match op {
                    "and" => a & b,
                    "or" => a | b,
                    _ => a ^ b,
                }
            }
        }
    )*};
}
integers!(u32, i32, u64, i64);

/// Returns the ordering of the reading half of an operation.
fn reading(order: Ordering) -> Ordering {
    match order {
        Ordering::Release => Ordering::Relaxed,
        Ordering::AcqRel => Ordering::Acquire,
        other => other,
    }
}

impl<T: AtomicNumber> Atomic<T> {
    fn load_bits(&self, order: Ordering) -> u64 {
        let place = self.0.get();
        // SAFETY: the place is aligned and alive, and all accesses to it are atomic and of this
        // size.
        unsafe {
            match size_of::<T>() {
                4 => AtomicU32::from_ptr(place.cast()).load(order).into(),
                _ => AtomicU64::from_ptr(place.cast()).load(order),
            }
        }
    }

    fn exchange_bits(&self, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        let (place, failed) = (self.0.get(), reading(order));
        // SAFETY: as for `load_bits`.
        unsafe {
            match size_of::<T>() {
                4 => AtomicU32::from_ptr(place.cast())
                    .compare_exchange(current as u32, new as u32, order, failed)
                    .map(u64::from)
                    .map_err(u64::from),
                _ => AtomicU64::from_ptr(place.cast()).compare_exchange(current, new, order, failed),
            }
        }
    }

    fn update(&self, order: Ordering, change: impl Fn(T) -> T) -> T {
        let mut seen = self.load_bits(Ordering::Relaxed);
        loop {
            let value = T::from_memory_bits(seen);
            match self.exchange_bits(seen, change(value).memory_bits(), order) {
                Ok(_) => return value,
                Err(now) => seen = now,
            }
        }
    }
}

/// Defines the operations once for both types, and their twins.
macro_rules! operations {
    ($($owner:ty),*) => {$(
        impl<T: AtomicNumber> $owner {
            /// Returns the value.
            ///
            /// # Panics
            /// With `Release` or `AcqRel`, as the atomic types of the standard library.
            pub fn load(&self, order: Ordering) -> T {
                T::from_memory_bits(self.host().load_bits(order))
            }

            /// Sets the value.
            ///
            /// # Panics
            /// With `Acquire` or `AcqRel`, as the atomic types of the standard library.
            pub fn store(&self, value: T, order: Ordering) {
                assert!(!matches!(order, Ordering::Acquire | Ordering::AcqRel), "a store does not acquire");
                self.host().update(order, |_| value);
            }

            /// Sets the value and returns the one before.
            pub fn swap(&self, value: T, order: Ordering) -> T {
                self.host().update(order, |_| value)
            }

            /// Sets the value where it is `current`. Returns the one before, which is `current`
            /// where it was set. Numbers are compared bit for bit.
            pub fn compare_and_swap(&self, current: T, new: T, order: Ordering) -> T {
                let found = self.host().exchange_bits(current.memory_bits(), new.memory_bits(), order);
                T::from_memory_bits(found.unwrap_or_else(|found| found))
            }

            /// Adds to the value and returns the one before. Integers wrap around.
            pub fn fetch_add(&self, value: T, order: Ordering) -> T {
                self.host().update(order, |before| before.plus(value))
            }

            /// Subtracts from the value and returns the one before. Integers wrap around.
            pub fn fetch_sub(&self, value: T, order: Ordering) -> T {
                self.host().update(order, |before| before.minus(value))
            }
        }

        impl<T: AtomicInteger> $owner {
            /// Keeps the smaller of the two values and returns the one before.
            pub fn fetch_min(&self, value: T, order: Ordering) -> T {
                self.host().update(order, |before| before.min(value))
            }

            /// Keeps the larger of the two values and returns the one before.
            pub fn fetch_max(&self, value: T, order: Ordering) -> T {
                self.host().update(order, |before| before.max(value))
            }

            /// Keeps the bits that both values have and returns the value before.
            pub fn fetch_and(&self, value: T, order: Ordering) -> T {
                self.host().update(order, |before| T::bits("and", before, value))
            }

            /// Adds the bits of another value and returns the value before.
            pub fn fetch_or(&self, value: T, order: Ordering) -> T {
                self.host().update(order, |before| T::bits("or", before, value))
            }

            /// Changes the bits of another value and returns the value before.
            pub fn fetch_xor(&self, value: T, order: Ordering) -> T {
                self.host().update(order, |before| T::bits("xor", before, value))
            }
        }
    )*};
}
operations!(Atomic<T>, Scoped<'_, T>);

impl<T> Atomic<T> {
    fn host(&self) -> &Atomic<T> {
        self
    }
}
impl<T> Scoped<'_, T> {
    fn host(&self) -> &Atomic<T> {
        self.0
    }
}

/// Atomic numbers of a block: shared memory that its threads change at any time.
pub struct SharedAtomics<T>(Arc<Box<[Atomic<T>]>>);

impl<T> Deref for SharedAtomics<T> {
    type Target = [Atomic<T>];

    fn deref(&self) -> &[Atomic<T>] {
        &self.0
    }
}

impl<T: AtomicNumber + Send + Sync> SharedAtomics<T> {
    pub(crate) fn filled(len: usize, value: T) -> Self {
        let all = host::shared(|| (0..len).map(|_| Atomic::new(value)).collect::<Box<[Atomic<T>]>>());
        host::barrier("block::shared_atomics");
        SharedAtomics(all)
    }
}

/// A [`SharedAtomics`] while a kernel is recorded.
pub struct SharedAtomicsTwin<T>(Slice<Atomic<T>>);

impl<T> Clone for SharedAtomicsTwin<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SharedAtomicsTwin<T> {}
impl<T> Twin for SharedAtomicsTwin<T> {
    fn get(&self) -> Self {
        *self
    }
}
impl<T> Deref for SharedAtomicsTwin<T> {
    type Target = Slice<Atomic<T>>;

    fn deref(&self) -> &Slice<Atomic<T>> {
        &self.0
    }
}
impl<T: 'static> Typed for SharedAtomics<T> {
    type Twin = SharedAtomicsTwin<T>;
}

impl<T: AtomicNumber> SharedAtomicsTwin<T> {
    pub(crate) fn filled(len: usize, value: V<T>) -> Self {
        let memory = SharedTwin::filled(len, value);
        barrier_twin();
        SharedAtomicsTwin(memory.slice().of_atomics())
    }
}

/// An [`Atomic`] while a kernel is recorded: its place, and the scope.
pub struct AtomicTwin<T> {
    mem: Mem,
    scope: &'static str,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for AtomicTwin<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for AtomicTwin<T> {}
impl<T> Twin for AtomicTwin<T> {
    fn get(&self) -> Self {
        *self
    }
}

impl<T: 'static> Typed for Atomic<T> {
    type Twin = AtomicTwin<T>;
}
impl<T: AtomicNumber> SliceElement for Atomic<T> {
    type Element = AtomicTwin<T>;

    fn element(mem: Mem) -> AtomicTwin<T> {
        AtomicTwin { mem, scope: "gpu", element: PhantomData }
    }
}

impl Typed for Ordering {
    type Twin = Ordering;
}
impl Constant for Ordering {
    fn constant(self) -> Ordering {
        self
    }
}
impl Twin for Ordering {
    fn get(&self) -> Ordering {
        *self
    }
}

/// Returns the order as PTX names it. The strictest is a fence before.
fn semantics(r: &mut Recorder, order: Ordering, scope: &'static str) -> &'static str {
    match order {
        Ordering::Relaxed => "relaxed",
        Ordering::Acquire => "acquire",
        Ordering::Release => "release",
        Ordering::AcqRel => "acq_rel",
        _ => {
            r.act_named(format!("fence.sc.{scope}"), "", None, &[], Effect::Store);
            "acq_rel"
        }
    }
}

impl<T> AtomicTwin<T> {
    /// Does what the method of [`Atomic`] does.
    pub fn block(self) -> Self {
        // Other blocks may use memory of the device at the same time.
        match self.mem.space {
            Space::Shared | Space::SharedRead => AtomicTwin { scope: "cta", ..self },
            _ => self,
        }
    }

    /// Does what the method of [`Atomic`] does.
    pub fn system(self) -> Self {
        AtomicTwin { scope: "sys", ..self }
    }
}

/// Returns the memory space as a part of the name of an instruction. An address that was chosen
/// between two says itself where it is.
fn space(mem: Mem) -> &'static str {
    match mem.space {
        Space::Shared | Space::SharedRead => ".shared",
        Space::Generic => "",
        _ => ".global",
    }
}

/// Returns the integer with the bits of a number.
fn bits_type(ty: Ty) -> Ty {
    match ty {
        Ty::F32 => Ty::U32,
        Ty::F64 => Ty::U64,
        other => other,
    }
}

fn to_bits(r: &mut Recorder, ty: Ty, value: Operand) -> Operand {
    match (ty.is_float(), value) {
        (false, value) => value,
        (true, Operand::Imm(_, bits)) => Operand::Imm(bits_type(ty), bits),
        (true, value) => r.compute("mov", bits_type(ty).bit_suffix(), bits_type(ty), &[value]),
    }
}

fn of_bits(r: &mut Recorder, ty: Ty, value: Operand) -> Operand {
    if ty.is_float() { r.compute("mov", bits_type(ty).bit_suffix(), ty, &[value]) } else { value }
}

impl<T: AtomicNumber> AtomicTwin<T> {
    fn act(self, op: &str, suffix: &'static str, ty: Ty, order: Ordering, values: &[Operand]) -> Operand {
        with(|r| {
            let semantics = semantics(r, order, self.scope);
            let dst = r.reg(ty);
            let name = format!("atom.{semantics}.{}{}.{op}", self.scope, space(self.mem));
            let mut args = vec![Operand::Mem(self.mem)];
            args.extend_from_slice(values);
            r.note_stores();
            r.act_named(name, suffix, Some(dst), &args, Effect::Store);
            Operand::Reg(dst)
        })
    }

    /// Records an operation on bits, of any number.
    fn on_bits(self, op: &str, order: Ordering, values: &[V<T>]) -> V<T> {
        let ty = bits_type(T::TY);
        let values: Vec<Operand> = with(|r| {
            values
                .iter()
                .map(|value| {
                    let value = value.operand(r);
                    to_bits(r, T::TY, value)
                })
                .collect()
        });
        let result = self.act(op, if ty.bits() == 64 { "b64" } else { "b32" }, ty, order, &values);
        with(|r| V::of(of_bits(r, T::TY, result)))
    }

    /// Does what the method of [`Atomic`] does.
    pub fn load(self, order: Ordering) -> V<T> {
        with(|r| {
            let ty = bits_type(T::TY);
            let semantics = match order {
                Ordering::Relaxed => "relaxed",
                Ordering::Acquire => "acquire",
                Ordering::SeqCst => {
                    semantics(r, order, self.scope);
                    "acquire"
                }
                _ => {
                    r.refuse("a load does not release; load with `Relaxed`, `Acquire` or `SeqCst`");
                    "relaxed"
                }
            };
            let dst = r.reg(ty);
            let name = format!("ld.{semantics}.{}{}", self.scope, space(self.mem));
            r.act_named(name, ty.memory_suffix(), Some(dst), &[Operand::Mem(self.mem)], Effect::Store);
            V::of(of_bits(r, T::TY, Operand::Reg(dst)))
        })
    }

    /// Does what the method of [`Atomic`] does.
    pub fn store(self, value: V<T>, order: Ordering) {
        with(|r| {
            let ty = bits_type(T::TY);
            let semantics = match order {
                Ordering::Relaxed => "relaxed",
                Ordering::Release => "release",
                Ordering::SeqCst => {
                    semantics(r, order, self.scope);
                    "release"
                }
                _ => {
                    r.refuse("a store does not acquire; store with `Relaxed`, `Release` or `SeqCst`");
                    "relaxed"
                }
            };
            let value = value.operand(r);
            let value = to_bits(r, T::TY, value);
            let name = format!("st.{semantics}.{}{}", self.scope, space(self.mem));
            r.note_stores();
            r.act_named(name, ty.memory_suffix(), None, &[Operand::Mem(self.mem), value], Effect::Store);
        });
    }

    /// Does what the method of [`Atomic`] does.
    pub fn swap(self, value: V<T>, order: Ordering) -> V<T> {
        self.on_bits("exch", order, &[value])
    }

    /// Does what the method of [`Atomic`] does.
    pub fn compare_and_swap(self, current: V<T>, new: V<T>, order: Ordering) -> V<T> {
        self.on_bits("cas", order, &[current, new])
    }

    /// Does what the method of [`Atomic`] does.
    pub fn fetch_add(self, value: V<T>, order: Ordering) -> V<T> {
        // Sums of signed integers are those of their bits.
        let suffix = match T::TY {
            Ty::F32 => "f32",
            Ty::F64 => "f64",
            ty if ty.bits() == 64 => "u64",
            _ => "u32",
        };
        let value = with(|r| value.operand(r));
        V::of(self.act("add", suffix, T::TY, order, &[value]))
    }

    /// Does what the method of [`Atomic`] does.
    pub fn fetch_sub(self, value: V<T>, order: Ordering) -> V<T> {
        let negated = with(|r| {
            let value = value.operand(r);
            V::of(match (value, T::TY.is_float()) {
                (value, true) => r.compute("neg", T::TY.suffix(), T::TY, &[value]),
                (value, false) => crate::record::arithmetic::wrapping(
                    r,
                    crate::record::arithmetic::Op::Sub,
                    T::TY,
                    Operand::Imm(T::TY, 0),
                    value,
                ),
            })
        });
        self.fetch_add(negated, order)
    }
}

impl<T: AtomicInteger> AtomicTwin<T> {
    fn ordered(self, op: &str, value: V<T>, order: Ordering) -> V<T> {
        let value = with(|r| value.operand(r));
        V::of(self.act(op, T::TY.suffix(), T::TY, order, &[value]))
    }

    /// Does what the method of [`Atomic`] does.
    pub fn fetch_min(self, value: V<T>, order: Ordering) -> V<T> {
        self.ordered("min", value, order)
    }

    /// Does what the method of [`Atomic`] does.
    pub fn fetch_max(self, value: V<T>, order: Ordering) -> V<T> {
        self.ordered("max", value, order)
    }

    /// Does what the method of [`Atomic`] does.
    pub fn fetch_and(self, value: V<T>, order: Ordering) -> V<T> {
        self.on_bits("and", order, &[value])
    }

    /// Does what the method of [`Atomic`] does.
    pub fn fetch_or(self, value: V<T>, order: Ordering) -> V<T> {
        self.on_bits("or", order, &[value])
    }

    /// Does what the method of [`Atomic`] does.
    pub fn fetch_xor(self, value: V<T>, order: Ordering) -> V<T> {
        self.on_bits("xor", order, &[value])
    }
}
