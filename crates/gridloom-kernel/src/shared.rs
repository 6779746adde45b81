//! Shared memory of a block: each thread writes its own elements, and after a barrier all threads
//! read all of them.

use std::hash::{DefaultHasher, Hash};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use crate::host;
use crate::ir::{Operand, Reached, Space, Stmt, Ty};
use crate::record::Label;
use crate::record::arithmetic::lt;
use crate::record::control::{leave_unless, loop_begin, loop_end, loop_step};
use crate::record::iterate::Iterate;
use crate::record::memory::Slice;
use crate::record::recorder::with;
use crate::record::value::{KernelType, Opt, R, Typed, V, Var, assign, get, lit, refer, var};
use crate::thread::{rank_twin, threads_twin};

/// Memory of a block, while its threads write it: element *i* belongs to the thread whose
/// [rank](crate::thread::rank) is *i* modulo the number of threads of the block.
///
/// [`block::sync`](crate::block::sync) waits for all threads of the block and makes it a
/// [`SharedView`], which all of them read.
pub struct Shared<'a, T> {
    memory: Cells<'a, T>,
}

/// Memory of a block, while its threads read it: it is a slice.
///
/// [`block::sync`](crate::block::sync) waits for all threads of the block and makes it a [`Shared`]
/// again, for its threads to write.
pub struct SharedView<'a, T> {
    memory: Cells<'a, T>,
}

/// Memory that several threads have.
pub(crate) struct Cells<'a, T> {
    pub(crate) start: *mut T,
    pub(crate) len: usize,
    /// The place of the thread that it was given to.
    pub(crate) place: host::ThreadPosition,
    /// What owns the memory, where it is not borrowed.
    _owner: Option<Arc<Owned<T>>>,
    lifetime: PhantomData<&'a mut [T]>,
}

/// Memory that threads write, each its part.
struct Owned<T>(Box<[std::cell::UnsafeCell<T>]>);

// SAFETY: the elements are reached through `Shared`, each by one thread, and through `SharedView`,
// by all, with a barrier between the two.
unsafe impl<T: Send + Sync> Sync for Owned<T> {}

impl<T: Copy + Send + Sync + 'static> Shared<'static, T> {
    /// Makes shared memory, the same in all threads of the block.
    pub(crate) fn filled(len: usize, value: T) -> Self {
        let owner = host::shared(|| Owned((0..len).map(|_| std::cell::UnsafeCell::new(value)).collect()));
        assert_eq!(owner.0.len(), len, "the threads of a block ask for different shared memory");
        let start = owner.0.as_ptr().cast_mut().cast();
        let place = host::position();
        Shared { memory: Cells { start, len, place, _owner: Some(owner), lifetime: PhantomData } }
    }
}

impl<'a, T> Shared<'a, T> {
    /// # Safety
    /// The elements are the block's for `'a`: its threads have them as `Shared` or, all at the same
    /// time, as `SharedView`, each once and under its place, and nothing else has.
    pub(crate) unsafe fn of(start: *mut T, len: usize, place: host::ThreadPosition) -> Self {
        Shared { memory: Cells { start, len, place, _owner: None, lifetime: PhantomData } }
    }

    pub(crate) fn into_cells(self) -> Cells<'a, T> {
        self.memory
    }

    /// Returns how many elements the memory has.
    #[allow(clippy::len_without_is_empty, reason = "a thread asks for what it owns")]
    pub fn len(&self) -> usize {
        self.memory.len
    }

    /// Returns the first element of this thread, which is the one at its rank. Returns `None` if
    /// the memory has no such element.
    pub fn mine(&mut self) -> Option<&mut T> {
        let rank = self.memory.place.rank();
        // SAFETY: the index is in range. The element belongs to this thread alone until all threads
        // of the block have called `sync`, which takes `self` by value.
        (rank < self.memory.len).then(|| unsafe { &mut *self.memory.start.add(rank) })
    }

    /// Returns the elements of this thread with their indices: from its rank on, every so many as
    /// the block has threads.
    pub fn each_mine(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let (place, start) = (self.memory.place, self.memory.start);
        // SAFETY: as for `mine`; each index comes once.
        (place.rank()..self.memory.len)
            .step_by(place.threads())
            .map(move |index| (index, unsafe { &mut *start.add(index) }))
    }
}

impl<'a, T> SharedView<'a, T> {
    /// Makes memory readable by all threads of the block, after a barrier.
    pub(crate) fn of_cells(memory: Cells<'a, T>, _: Synced) -> Self {
        SharedView { memory }
    }
}

impl<T> Deref for SharedView<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: while a thread has a view, all threads of the block have: none writes before all
        // have called `sync` again, which takes the view by value.
        unsafe { std::slice::from_raw_parts(self.memory.start, self.memory.len) }
    }
}

impl<T> Cells<'_, T> {
    /// Says which memory it is, and in which phase. Its size tells it from empty memory at the same
    /// address.
    ///
    /// # Panics
    /// When the caller is not the thread that it was given to, and would come in its stead.
    pub(crate) fn identify(&self, phase: &'static str, to: &mut DefaultHasher) {
        assert!(
            self.place == host::position(),
            "memory of a block is used by another thread than the one that it was given to"
        );
        (self.start.addr(), self.len * size_of::<T>(), phase).hash(to);
    }
}

pub(crate) mod sealed {
    /// Says that memory is in the hands of this crate: safety rests on what `Phase` identifies, and
    /// on who has a `Synced`.
    pub trait Phase {}
}

/// What [`block::sync`](crate::block::sync) takes: memory of the block, or a tuple of such memory.
#[diagnostic::on_unimplemented(
    message = "`block::sync` cannot take `{Self}`",
    note = "it takes `Shared`, `SharedView` and `Pairs`, tuples of them, and `()`"
)]
pub trait Phase: sealed::Phase {
    /// The same memory in its other phase.
    type Next;
    /// Says which memory it is.
    #[doc(hidden)]
    fn identify(&self, to: &mut DefaultHasher);
    #[doc(hidden)]
    fn next(self, synced: Synced) -> Self::Next;
}

/// Says that all threads of the block have met. Only `block::sync` makes one.
#[derive(Clone, Copy)]
pub struct Synced(());

impl Synced {
    pub(crate) fn new() -> Self {
        Synced(())
    }
}

impl<T> sealed::Phase for Shared<'_, T> {}
impl<'a, T> Phase for Shared<'a, T> {
    type Next = SharedView<'a, T>;

    fn identify(&self, to: &mut DefaultHasher) {
        self.memory.identify("written", to);
    }

    fn next(self, _: Synced) -> SharedView<'a, T> {
        SharedView { memory: self.memory }
    }
}
impl<T> sealed::Phase for SharedView<'_, T> {}
impl<'a, T> Phase for SharedView<'a, T> {
    type Next = Shared<'a, T>;

    fn identify(&self, to: &mut DefaultHasher) {
        self.memory.identify("read", to);
    }

    fn next(self, _: Synced) -> Shared<'a, T> {
        Shared { memory: self.memory }
    }
}

macro_rules! tuples {
    ($($T:ident $i:tt),*) => {
        impl<$($T: Phase),*> sealed::Phase for ($($T,)*) {}
        impl<$($T: Phase),*> Phase for ($($T,)*) {
            type Next = ($($T::Next,)*);

            #[allow(unused_variables, reason = "the empty tuple has no parts")]
            fn identify(&self, to: &mut DefaultHasher) {
                $(self.$i.identify(to);)*
            }

            #[allow(clippy::unused_unit, unused_variables, reason = "the empty tuple has no parts")]
            fn next(self, synced: Synced) -> Self::Next {
                ($(self.$i.next(synced),)*)
            }
        }
    };
}
tuples!();
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);

/// A [`Shared`] while a kernel is recorded.
pub struct SharedTwin<T>(Slice<T>);

/// A [`SharedView`] while a kernel is recorded.
pub struct SharedViewTwin<T>(Slice<T>);

macro_rules! twins {
    ($($twin:ident),*) => {$(
        impl<T> Clone for $twin<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $twin<T> {}
        impl<T> $crate::record::Twin for $twin<T> {
            fn get(&self) -> Self {
                *self
            }
        }
        impl<T: $crate::record::KernelType> $crate::record::Var for $twin<T> {
            fn declare() -> Self {
                $crate::record::recorder::with(|r| r.refuse("which memory of the block a variable has is fixed when the kernel is loaded: give it where the variable is declared"));
                $twin($crate::record::Slice::new($crate::ir::Space::Shared, $crate::record::lit(0), $crate::record::lit(0)))
            }

            fn assign(&self, from: Self) {
                if !self.0.is_same(&from.0) {
                    $crate::record::recorder::with(|r| r.refuse("a variable that has memory of the block is given other memory; use another variable"));
                }
            }

            fn own(self) -> Self {
                self
            }
        }
    )*};
}
pub(crate) use twins;
twins!(SharedTwin, SharedViewTwin);

impl<T> Typed for Shared<'_, T> {
    type Twin = SharedTwin<T>;
}
impl<T> Typed for SharedView<'_, T> {
    type Twin = SharedViewTwin<T>;
}

impl<T> Deref for SharedViewTwin<T> {
    type Target = Slice<T>;

    fn deref(&self) -> &Slice<T> {
        &self.0
    }
}

impl<T: KernelType> SharedTwin<T> {
    /// Makes shared memory: an array of the module, filled by the threads of the block.
    pub(crate) fn filled(len: usize, value: V<T>) -> Self {
        Self::from_fn(len, |_| value)
    }

    /// Makes shared memory, of which each thread computes its elements.
    pub(crate) fn from_fn(len: usize, value: impl Fn(V<usize>) -> V<T>) -> Self {
        with(|r| {
            if r.is_in_loop() {
                r.refuse("shared memory is declared once, outside of loops");
            }
        });
        let all = Self::unfilled(len).0;
        each_of_mine(&all, |index, place| place.assign(value(index)));
        SharedTwin(all)
    }

    /// Makes shared memory that has no values yet.
    pub(crate) fn unfilled(len: usize) -> Self {
        let base = with(|r| {
            let array = r.shared(size_of::<T>() * len, align_of::<T>());
            V::of(r.compute("mov", "u64", Ty::U64, &[Operand::Address(array)]))
        });
        SharedTwin(Slice::new(Space::Shared, base, lit(len)))
    }

    pub(crate) fn slice(self) -> Slice<T> {
        self.0
    }

    /// Returns the memory that the launch adds.
    pub(crate) fn dynamic(value: V<T>) -> Self {
        let (base, len) = with(|r| {
            let array = r.dynamic_shared(align_of::<T>());
            let bytes = r.compute("mov", "u32", Ty::U32, &[Operand::Special("%dynamic_smem_size")]);
            let size = Operand::Imm(Ty::U32, size_of::<T>().max(1) as u64);
            let len = r.compute("div", "u32", Ty::U32, &[bytes, size]);
            let len = r.compute("cvt", "u64.u32", Ty::U64, &[len]);
            (V::of(r.compute("mov", "u64", Ty::U64, &[Operand::Address(array)])), V::of(len))
        });
        Self::fill(Slice::new(Space::Shared, base, len), value)
    }

    fn fill(all: Slice<T>, value: V<T>) -> Self {
        each_of_mine(&all, |_, place| place.assign(value));
        SharedTwin(all)
    }

    pub(crate) fn of(all: Slice<T>) -> Self {
        SharedTwin(all)
    }

    /// Does what the method of [`Shared`] does.
    #[allow(clippy::len_without_is_empty, reason = "it stands for the method of that name")]
    pub fn len(self) -> V<usize> {
        self.0.len()
    }

    /// Does what the method of [`Shared`] does.
    pub fn mine(self) -> Opt<R<V<T>>> {
        let rank = rank_twin();
        Opt { __some: lt(rank, self.0.len()), __value: refer(self.0.unchecked(rank)) }
    }

    /// Does what the method of [`Shared`] does.
    pub fn each_mine(self) -> EachMine<T> {
        EachMine(self.0)
    }
}

/// Records `act` for each element of this thread.
pub(crate) fn each_of_mine<T: KernelType>(all: &Slice<T>, act: impl Fn(V<usize>, V<T>)) {
    let (index, step) = (var(rank_twin()), threads_twin());
    let around = loop_begin();
    leave_unless(around, lt(get(&index), all.len()));
    act(get(&index), all.unchecked(get(&index)));
    loop_step();
    assign(&index, get(&index).wrapping_add(step));
    loop_end(around);
}

/// The elements of a thread.
#[derive(Clone, Copy)]
pub struct EachMine<T>(Slice<T>);

impl<T: KernelType> Iterate for EachMine<T> {
    type State = (Slice<T>, V<usize>, V<usize>);
    type Item = (V<usize>, R<V<T>>);

    fn start(self) -> Self::State {
        (self.0, var(rank_twin()), threads_twin())
    }

    fn next((all, now, _): &Self::State, around: Label) -> Self::Item {
        leave_unless(around, lt(get(now), all.len()));
        (get(now), refer(all.unchecked(get(now))))
    }

    fn step((_, now, step): &Self::State) {
        assign(now, get(now).wrapping_add(*step));
    }
}

/// Memory of the block while it is recorded, in either phase.
#[diagnostic::on_unimplemented(message = "`block::sync` cannot take `{Self}`")]
pub trait PhaseTwin {
    /// The same memory in its other phase.
    type Next;
    #[doc(hidden)]
    fn next(self) -> Self::Next;
}

impl<T: KernelType> PhaseTwin for SharedTwin<T> {
    type Next = SharedViewTwin<T>;

    fn next(self) -> SharedViewTwin<T> {
        SharedViewTwin(self.0.in_phase(true))
    }
}
impl<T: KernelType> PhaseTwin for SharedViewTwin<T> {
    type Next = SharedTwin<T>;

    fn next(self) -> SharedTwin<T> {
        SharedTwin(self.0.in_phase(false))
    }
}

macro_rules! twin_tuples {
    ($($T:ident $i:tt),*) => {
        impl<$($T: PhaseTwin),*> PhaseTwin for ($($T,)*) {
            type Next = ($($T::Next,)*);

            #[allow(clippy::unused_unit, reason = "the empty tuple has no parts")]
            fn next(self) -> Self::Next {
                ($(self.$i.next(),)*)
            }
        }
    };
}
twin_tuples!();
twin_tuples!(A 0);
twin_tuples!(A 0, B 1);
twin_tuples!(A 0, B 1, C 2);
twin_tuples!(A 0, B 1, C 2, D 3);

/// Records a barrier of the block.
pub(crate) fn barrier_twin() {
    with(|r| {
        r.reached_by(Reached::Block, "block::sync");
        r.push(Stmt::Barrier);
    });
}
