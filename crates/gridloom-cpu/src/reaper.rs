//! Where the last references that work in flight held are dropped.
//!
//! The drop of a user's closure is code of the user: it may block, panic, or come back to the device. So it runs neither on
//! a stream's thread, where it would hold up the work behind it, nor under any lock.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use parking_lot::Mutex;

type Remains = Box<dyn Send>;

/// A thread that drops things, started with the first of them. It ends when the device is gone.
#[derive(Default)]
pub(crate) struct Reaper {
    sender: Mutex<Option<Sender<Remains>>>,
}

impl Reaper {
    /// Drops `remains` soon, on another thread.
    pub(crate) fn bury(&self, remains: impl Send + 'static) {
        let remains: Remains = Box::new(remains);
        let mut sender = self.sender.lock();
        if sender.is_none() {
            let (to, from) = channel::<Remains>();
            let spawned = thread::Builder::new().name("gridloom-reaper".into()).spawn(move || {
                for remains in from {
                    drop_contained(remains);
                }
            });
            match spawned {
                Ok(_) => *sender = Some(to),
                Err(error) => {
                    tracing::warn!(%error, "no thread to drop finished work on; it is dropped in place")
                }
            }
        }
        let unsent = match &*sender {
            Some(to) => to.send(remains).err().map(|error| error.0),
            None => Some(remains),
        };
        drop(sender);
        unsent.into_iter().for_each(drop_contained);
    }
}

fn drop_contained(remains: Remains) {
    if std::panic::catch_unwind(AssertUnwindSafe(|| drop(remains))).is_err() {
        tracing::warn!("a value held by finished work panicked while it was dropped");
    }
}
