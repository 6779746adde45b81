//! Kernel launches as nodes hold them: reference-counted, and several to an allocation.
//!
//! A graph is built by creating one launch after the other, and a launch is large. Allocating each
//! one separately would take a good part of the time of adding a node. A thread therefore creates
//! its launches in blocks, and keeps some blocks for later. The contents of a launch are dropped
//! with its last holder. The block is freed with the last of its launches.

use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::spares::Spares;
use crate::op::KernelOp;

/// A shared kernel launch. It behaves like an `Arc`.
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
    place: NonNull<CountedLaunch>,
}

/// A launch with its reference count.
struct CountedLaunch {
    holders: AtomicUsize,
    block: NonNull<LaunchBlock>,
    launch: KernelOp,
}

/// A block of launches.
struct LaunchBlock {
    /// The number of places that hold a launch or can still get one.
    needed: AtomicUsize,
    places: [MaybeUninit<CountedLaunch>; PLACES],
}

/// The number of places in a block. More would save little time, and one launch that outlives the
/// others keeps the whole block alive.
const PLACES: usize = 8;

// SAFETY: like an `Arc`, it hands out shared references, and an exclusive one only to the single
// holder. The holder that counts down last drops the launch.
unsafe impl Send for Launch where KernelOp: Send + Sync {}
// SAFETY: as above.
unsafe impl Sync for Launch where KernelOp: Send + Sync {}

impl Launch {
    /// Creates a shared launch.
    pub fn new(launch: KernelOp) -> Self {
        let vacancy = Vacancy::take();
        // SAFETY: the place belongs to this vacancy, and the launch is written completely.
        unsafe {
            vacancy.launch().write(launch);
            vacancy.filled()
        }
    }

    /// Returns whether both are the same launch, not merely equal ones.
    #[inline]
    pub fn ptr_eq(one: &Self, other: &Self) -> bool {
        one.place == other.place
    }

    /// Returns the launch for changing. If others hold it too, this one becomes a copy first.
    #[inline]
    pub(crate) fn make_mut(&mut self) -> &mut KernelOp {
        // Acquire: all accesses of former holders happen before this point.
        if self.place().holders.load(Ordering::Acquire) != 1 {
            *self = Launch::new((**self).clone());
        }
        // SAFETY: nobody else holds the launch, and nobody can start to while its only holder is
        // borrowed.
        unsafe { &mut (*self.place.as_ptr()).launch }
    }

    #[inline]
    fn place(&self) -> &CountedLaunch {
        // SAFETY: the place is written before a `Launch` exists, and lives as long as one does.
        unsafe { self.place.as_ref() }
    }

    /// Drops a launch that nobody holds any more.
    #[inline(never)]
    fn drop_slow(&mut self) {
        // All accesses of the other holders happen before this point. A load and not a fence,
        // because ThreadSanitizer does not know fences.
        self.place().holders.load(Ordering::Acquire);
        let block = self.place().block;
        // SAFETY: this was the last holder. The block exists until all its places are given up, and
        // this place is given up once.
        unsafe {
            ptr::drop_in_place(&raw mut (*self.place.as_ptr()).launch);
            LaunchBlock::give_up(block, 1);
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
        // Relaxed, as in `Arc`: the new holder gets only what this one already has.
        if self.place().holders.fetch_add(1, Ordering::Relaxed) > isize::MAX as usize {
            // Only leaked handles can be that many. The counter must not overflow.
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
    place: NonNull<CountedLaunch>,
    block: NonNull<LaunchBlock>,
}

impl Vacancy {
    #[inline]
    pub(crate) fn take() -> Self {
        // A thread that is ending has no open block.
        OPEN.try_with(Open::take).unwrap_or_else(|_| Open::closed().take())
    }

    /// Returns the address to write the launch to.
    #[inline]
    pub(crate) fn launch(&self) -> *mut KernelOp {
        // SAFETY: the address is inside the place, and nothing is read.
        unsafe { &raw mut (*self.place.as_ptr()).launch }
    }

    /// Returns the launch with one holder.
    ///
    /// # Safety
    /// The launch was written.
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
        // SAFETY: there is no launch at this place, and there never will be.
        unsafe { LaunchBlock::give_up(self.block, 1) };
    }
}

/// The block in which a thread creates its launches.
struct Open {
    /// The block. It is valid while places are left.
    block: Cell<NonNull<LaunchBlock>>,
    /// The next free place. Once it equals `PLACES`, the block no longer belongs to this thread.
    next: Cell<usize>,
}

thread_local! {
    static OPEN: Open = const { Open::closed() };
    /// Spare blocks, enough for graphs of 128 launches.
    static SPARE: Spares<Box<MaybeUninit<LaunchBlock>>, 16> = const { Spares::new() };
}

impl Open {
    const fn closed() -> Self {
        Open { block: Cell::new(NonNull::dangling()), next: Cell::new(PLACES) }
    }

    #[inline]
    fn take(&self) -> Vacancy {
        if self.next.get() == PLACES {
            self.block.set(LaunchBlock::new());
            self.next.set(0);
        }
        let (block, next) = (self.block.get(), self.next.get());
        self.next.set(next + 1);
        // SAFETY: the block exists while it has free places, and this place is given away once.
        let place = unsafe { (&raw mut (*block.as_ptr()).places).cast::<CountedLaunch>().add(next) };
        // SAFETY: the address is inside an allocation and so not null.
        Vacancy { place: unsafe { NonNull::new_unchecked(place) }, block }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let left = PLACES - self.next.get();
        if left > 0 {
            // SAFETY: nobody got these places.
            unsafe { LaunchBlock::give_up(self.block.get(), left) };
        }
    }
}

impl LaunchBlock {
    #[cold]
    fn new() -> NonNull<Self> {
        let memory = Spares::take(&SPARE).unwrap_or_else(Box::new_uninit);
        let block = Box::into_raw(memory).cast::<LaunchBlock>();
        // SAFETY: the block was allocated above. Its places are written when they are given away.
        unsafe {
            (&raw mut (*block).needed).write(AtomicUsize::new(PLACES));
            NonNull::new_unchecked(block)
        }
    }

    /// Gives up places. The block is freed when none is needed any more.
    ///
    /// # Safety
    /// The places were needed, and nobody uses them or gives them up again.
    unsafe fn give_up(block: NonNull<Self>, places: usize) {
        // SAFETY: the block exists while places are needed.
        let needed = unsafe { &(*block.as_ptr()).needed };
        if needed.fetch_sub(places, Ordering::Release) == places {
            // A load and not a fence, as in `drop_slow`.
            needed.load(Ordering::Acquire);
            // SAFETY: `new` created it as such a box, and nobody needs it any more. It has nothing
            // to drop.
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

    /// Returns a launch, and a value that shows whether it still exists.
    fn launch() -> (Launch, Weak<u32>) {
        let kernel: Arc<dyn Kernel> = FakeKernel::new("kernel").params([]).on(&NullDevice::new());
        let owner = Arc::new(7);
        let there = Arc::downgrade(&owner);
        let args = KernelArgs { owner: Some(Owner::from(owner)), ..KernelArgs::default() };
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
