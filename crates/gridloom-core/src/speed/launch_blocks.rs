//! Kernel launches as nodes hold them: shared, and several to an allocation.
//!
//! A graph is built by making one launch after the other, and a launch is large. An allocation for each would be a good part of the time for a node, since allocators have
//! no pieces of that size at hand and sort out what was freed first. So a thread makes its launches in blocks, and keeps some for later. What a launch holds goes with its last holder; the block goes with
//! the last of its launches.

use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use super::spares::Spares;
use crate::op::KernelOp;

/// A kernel launch that is shared, as in an `Arc`.
///
/// ```
/// # use std::sync::Arc;
/// # use gridloom_core::{backend::Kernel, launch::LaunchConfig, null::{FakeKernel, NullDevice}, op::{KernelArgs, KernelOp, Launch, Operation}};
/// # let device = NullDevice::new();
/// # let kernel: Arc<dyn Kernel> = FakeKernel::new("sweep").params([]).on(&device);
/// // SAFETY: it takes no arguments.
/// let launch = Launch::new(unsafe { KernelOp::new(kernel, LaunchConfig::one(), KernelArgs::default()) });
/// let same = launch.clone();
/// assert!(Launch::ptr_eq(&launch, &same));
/// assert_eq!(same.kernel().name(), "sweep");
/// let operation = Operation::Kernel(launch);
/// # drop(operation);
/// ```
pub struct Launch {
    place: NonNull<Place>,
}

/// Where a launch lies.
struct Place {
    holders: AtomicUsize,
    block: NonNull<Block>,
    launch: KernelOp,
}

/// Places for launches.
struct Block {
    /// How many have a launch, or will get one.
    needed: AtomicUsize,
    places: [MaybeUninit<Place>; PLACES],
}

/// In a block. More would save little time, and one launch that outlives the others keeps the whole block.
const PLACES: usize = 8;

// SAFETY: like an `Arc`, it gives out shared references to a launch and, to its only holder, exclusive ones; who counts down last drops it.
unsafe impl Send for Launch where KernelOp: Send + Sync {}
// SAFETY: as above.
unsafe impl Sync for Launch where KernelOp: Send + Sync {}

impl Launch {
    /// A launch to be shared.
    pub fn new(launch: KernelOp) -> Self {
        let vacancy = Vacancy::take();
        // SAFETY: the place is this vacancy's, and the launch is written whole.
        unsafe {
            vacancy.launch().write(launch);
            vacancy.filled()
        }
    }

    /// Whether both are the same launch, not only equal ones.
    #[inline]
    pub fn ptr_eq(one: &Self, other: &Self) -> bool {
        one.place == other.place
    }

    /// The launch for changing. Where others hold it too, it becomes a copy of it.
    #[inline]
    pub(crate) fn make_mut(&mut self) -> &mut KernelOp {
        // Who let go of it did so after the last look at it.
        if self.place().holders.load(Ordering::Acquire) != 1 {
            *self = Launch::new((**self).clone());
        }
        // SAFETY: nobody else holds it, and nobody can come to while it is borrowed from its only holder.
        unsafe { &mut (*self.place.as_ptr()).launch }
    }

    #[inline]
    fn place(&self) -> &Place {
        // SAFETY: written before there was a `Launch`, and there for as long as there is one.
        unsafe { self.place.as_ref() }
    }

    /// Lets go of what nobody holds any more.
    #[inline(never)]
    fn drop_slow(&mut self) {
        // After what all the others did with it.
        fence(Ordering::Acquire);
        let block = self.place().block;
        // SAFETY: this was the last holder. The block is there until all its places are given up, and this one is, once.
        unsafe {
            ptr::drop_in_place(&raw mut (*self.place.as_ptr()).launch);
            Block::give_up(block, 1);
        }
    }
}

impl Deref for Launch {
    type Target = KernelOp;

    #[inline]
    fn deref(&self) -> &KernelOp {
        &self.place().launch
    }
}

impl Clone for Launch {
    #[inline]
    fn clone(&self) -> Self {
        // Nothing is handed over but what this holder has already.
        if self.place().holders.fetch_add(1, Ordering::Relaxed) > isize::MAX as usize {
            // Only forgotten ones can be that many. One more, and they would be counted as none.
            std::process::abort();
        }
        Launch { place: self.place }
    }
}

impl Drop for Launch {
    #[inline]
    fn drop(&mut self) {
        if self.place().holders.fetch_sub(1, Ordering::Release) == 1 {
            self.drop_slow();
        }
    }
}

impl From<KernelOp> for Launch {
    fn from(launch: KernelOp) -> Self {
        Launch::new(launch)
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        KernelOp::fmt(self, f)
    }
}

/// A place that waits for its launch.
pub(crate) struct Vacancy {
    place: NonNull<Place>,
    block: NonNull<Block>,
}

impl Vacancy {
    #[inline]
    pub(crate) fn take() -> Self {
        // A thread that ends and still makes launches has no open block.
        OPEN.try_with(Open::take).unwrap_or_else(|_| Open::closed().take())
    }

    /// Where the launch is to be written.
    #[inline]
    pub(crate) fn launch(&self) -> *mut KernelOp {
        // SAFETY: inside the place, of which nothing is read.
        unsafe { &raw mut (*self.place.as_ptr()).launch }
    }

    /// The launch, held once.
    ///
    /// # Safety
    /// It was written.
    #[inline]
    pub(crate) unsafe fn filled(self) -> Launch {
        let Vacancy { place, block } = self;
        std::mem::forget(self);
        // SAFETY: nobody else has the place.
        unsafe {
            (&raw mut (*place.as_ptr()).holders).write(AtomicUsize::new(1));
            (&raw mut (*place.as_ptr()).block).write(block);
        }
        Launch { place }
    }
}

impl Drop for Vacancy {
    fn drop(&mut self) {
        // SAFETY: there is no launch at this place, and never will be.
        unsafe { Block::give_up(self.block, 1) };
    }
}

/// The block in which a thread makes its launches.
struct Open {
    /// Its block, while places of it are left.
    block: Cell<NonNull<Block>>,
    /// The next place to be given away. At the end, the block is not this thread's any more.
    next: Cell<usize>,
}

thread_local! {
    static OPEN: Open = const { Open::closed() };
    /// For graphs of up to 128 launches.
    static SPARE: Spares<Box<MaybeUninit<Block>>, 16> = const { Spares::new() };
}

impl Open {
    const fn closed() -> Self {
        Open { block: Cell::new(NonNull::dangling()), next: Cell::new(PLACES) }
    }

    #[inline]
    fn take(&self) -> Vacancy {
        if self.next.get() == PLACES {
            self.block.set(Block::new());
            self.next.set(0);
        }
        let (block, next) = (self.block.get(), self.next.get());
        self.next.set(next + 1);
        // SAFETY: the block is there while places of it are left, and this one is given away once.
        let place = unsafe { (&raw mut (*block.as_ptr()).places).cast::<Place>().add(next) };
        // SAFETY: inside an allocation.
        Vacancy { place: unsafe { NonNull::new_unchecked(place) }, block }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let left = PLACES - self.next.get();
        if left > 0 {
            // SAFETY: these places were given to nobody.
            unsafe { Block::give_up(self.block.get(), left) };
        }
    }
}

impl Block {
    #[cold]
    fn new() -> NonNull<Self> {
        let memory = Spares::take(&SPARE).unwrap_or_else(Box::new_uninit);
        let block = Box::into_raw(memory).cast::<Block>();
        // SAFETY: it was made here; the places are written when they are given away.
        unsafe {
            (&raw mut (*block).needed).write(AtomicUsize::new(PLACES));
            NonNull::new_unchecked(block)
        }
    }

    /// Notes that so many places need to be there no longer, and lets go of the block when none does.
    ///
    /// # Safety
    /// They were needed, and nobody uses them or gives them up again.
    unsafe fn give_up(block: NonNull<Self>, places: usize) {
        // SAFETY: it is there while places are needed.
        let needed = unsafe { &(*block.as_ptr()).needed };
        if needed.fetch_sub(places, Ordering::Release) == places {
            fence(Ordering::Acquire);
            // SAFETY: made by `new` as a box of this, and nobody needs it any more. It has nothing to drop.
            Spares::keep(&SPARE, unsafe { Box::from_raw(block.as_ptr().cast()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak, mpsc};

    use super::*;
    use crate::backend::Kernel;
    use crate::launch::LaunchConfig;
    use crate::null::{FakeKernel, NullDevice};
    use crate::op::{KernelArgs, Owner};

    /// A launch, and what tells whether it is still there.
    fn launch() -> (Launch, Weak<u32>) {
        let kernel: Arc<dyn Kernel> = FakeKernel::new("kernel").params([]).on(&NullDevice::new());
        let owner = Arc::new(7);
        let there = Arc::downgrade(&owner);
        let args = KernelArgs { keep: Some(Owner::from(owner)), ..KernelArgs::default() };
        // SAFETY: it takes no arguments.
        (Launch::new(unsafe { KernelOp::new(kernel, LaunchConfig::one(), args) }), there)
    }

    #[test]
    fn what_a_launch_holds_goes_with_its_last_holder() {
        let (first, there) = launch();
        let second = first.clone();
        drop(first);
        assert!(there.upgrade().is_some());
        drop(second);
        assert!(there.upgrade().is_none());
    }

    #[test]
    fn launches_of_one_block_go_one_by_one_in_any_order() {
        for step in [1, 3, 7] {
            let mut launches: Vec<_> = (0..4 * PLACES).map(|_| Some(launch())).collect();
            for at in 0..launches.len() {
                let at = at * step % launches.len();
                let (launch, there) = launches[at].take().expect("each once");
                assert_eq!(launch.kernel().name(), "kernel");
                drop(launch);
                assert!(there.upgrade().is_none());
                assert!(launches.iter().flatten().all(|(_, there)| there.upgrade().is_some()));
            }
        }
    }

    #[test]
    fn the_only_holder_changes_a_launch_in_place_and_others_keep_theirs() {
        let (mut ours, _there) = launch();
        let place = std::ptr::from_ref(&*ours);
        ours.make_mut().config.shared = 1;
        assert_eq!((std::ptr::from_ref(&*ours), ours.config.shared), (place, 1));
        let theirs = ours.clone();
        ours.make_mut().config.shared = 2;
        assert_eq!((theirs.config.shared, ours.config.shared), (1, 2));
        assert!(!Launch::ptr_eq(&ours, &theirs));
    }

    #[test]
    fn launches_outlive_the_thread_that_made_them() {
        let made: Vec<_> = (1..=PLACES + 1)
            .map(|count| std::thread::spawn(move || (0..count).map(|_| launch()).collect::<Vec<_>>()))
            .flat_map(|thread| thread.join().expect("no panic"))
            .collect();
        for (launch, there) in made {
            assert!(there.upgrade().is_some());
            drop(launch);
            assert!(there.upgrade().is_none());
        }
    }

    #[test]
    fn holders_on_several_threads_let_go_once() {
        let (launch, there) = launch();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let launch = launch.clone();
                scope.spawn(move || (0..100).for_each(|_| drop(launch.clone())));
            }
        });
        assert!(there.upgrade().is_some());
        drop(launch);
        assert!(there.upgrade().is_none());
    }

    #[test]
    fn launches_can_be_made_while_a_thread_ends() {
        struct AtTheEnd(mpsc::Sender<(Launch, Weak<u32>)>);
        impl Drop for AtTheEnd {
            fn drop(&mut self) {
                self.0.send(launch()).expect("waited for");
            }
        }
        thread_local!(static LATE: Cell<Option<AtTheEnd>> = const { Cell::new(None) });
        let (sender, made) = mpsc::channel();
        std::thread::spawn(move || {
            // Registered before the open block is, and so dropped after it.
            LATE.set(Some(AtTheEnd(sender)));
            drop(launch());
        });
        let (launch, there) = made.recv().expect("sent at the end of the thread");
        assert_eq!(launch.kernel().name(), "kernel");
        drop(launch);
        assert!(there.upgrade().is_none());
    }

    #[test]
    fn a_vacancy_that_gets_no_launch_is_given_up() {
        (0..3 * PLACES).for_each(|_| drop(Vacancy::take()));
        let (launch, there) = launch();
        drop(launch);
        assert!(there.upgrade().is_none());
    }
}
