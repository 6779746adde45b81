//! User values that callbacks own. Each must be dropped exactly once, and its drop may do anything.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use gridloom::prelude::*;
use parking_lot::Mutex;

use super::choices::Choices;
use super::world::World;

/// A panic that the attack means. Others are finds.
pub(crate) struct Intended {
    /// Whether dropping the payload panics again.
    again: bool,
}

impl Intended {
    pub(crate) fn panic(choices: &mut Choices) -> ! {
        std::panic::panic_any(Intended { again: choices.one_in(4) })
    }
}

impl Drop for Intended {
    fn drop(&mut self) {
        // A panic while another one unwinds ends the process, by the rules of the language.
        if self.again && !std::thread::panicking() {
            std::panic::panic_any(Intended { again: false });
        }
    }
}

/// All tokens ever made.
#[derive(Default)]
pub(crate) struct Ledger {
    drops: Mutex<Vec<Arc<AtomicU8>>>,
    alive: AtomicUsize,
}

impl Ledger {
    pub(crate) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    pub(crate) fn made(&self) -> usize {
        self.drops.lock().len()
    }

    /// Returns the tokens that were not dropped exactly once.
    pub(crate) fn wrong(&self) -> Vec<(usize, u8)> {
        let drops = self.drops.lock();
        let counts = drops.iter().map(|count| count.load(Ordering::SeqCst)).enumerate();
        counts.filter(|(_, count)| *count != 1).collect()
    }
}

/// What dropping a token does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnDrop {
    Nothing,
    Panic,
    Sleep,
    /// Calls back into the library.
    Call(u64),
}

/// A value of the user's.
pub(crate) struct Token {
    ledger: Arc<Ledger>,
    drops: Arc<AtomicU8>,
    world: Weak<World>,
    on_drop: OnDrop,
    /// Something of the library's that goes with it.
    _held: Option<Box<dyn Send + Sync>>,
}

impl Token {
    pub(crate) fn new(world: &Arc<World>, on_drop: OnDrop, held: Option<Box<dyn Send + Sync>>) -> Self {
        let drops: Arc<AtomicU8> = Arc::default();
        world.ledger.drops.lock().push(drops.clone());
        world.ledger.alive.fetch_add(1, Ordering::SeqCst);
        Token { ledger: world.ledger.clone(), drops, world: Arc::downgrade(world), on_drop, _held: held }
    }

    /// One whose drop does nothing that others notice.
    pub(crate) fn quiet(world: &Arc<World>) -> Self {
        Token::new(world, OnDrop::Nothing, None)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:?})", self.on_drop)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
        self.ledger.alive.fetch_sub(1, Ordering::SeqCst);
        match self.on_drop {
            OnDrop::Nothing => {}
            OnDrop::Sleep => std::thread::sleep(Duration::from_micros(300)),
            OnDrop::Panic => {
                if !std::thread::panicking() {
                    std::panic::panic_any(Intended { again: false });
                }
            }
            OnDrop::Call(seed) => {
                if let Some(world) = self.world.upgrade()
                    && !std::thread::panicking()
                {
                    call_in(&world, &mut Choices::seeded(seed));
                }
            }
        }
    }
}

/// What a callback, a print sink or a drop may try. Whether it works depends on the place; it must
/// return.
pub(crate) fn call_in(world: &Arc<World>, choices: &mut Choices) {
    let _: Option<Result<()>> = match choices.below(16) {
        0 => world.streams.get(choices).map(|stream| stream.synchronize()),
        1 => Some(world.device.synchronize()),
        2 => world.events.get(choices).map(|event| event.synchronize()),
        3 => world.events.get(choices).map(|event| event.is_reached().map(drop)),
        4 => world.buffers.get(choices).map(|buffer| buffer.to_vec().map(drop)),
        5 => world.buffers.get(choices).map(|buffer| buffer.write(&vec![3; buffer.len()])),
        6 => world.executables.get(choices).zip(world.streams.get(choices)).map(|(e, s)| {
            e.cancel();
            e.launch(&s)
        }),
        7 => world.graphs.get(choices).map(|graph| graph.instantiate().map(drop)),
        8 => world.graphs.get(choices).map(|graph| graph.empty().map(drop)),
        9 => world.nodes.get(choices).map(|node| node.delete()),
        10 => world.streams.get(choices).map(|stream| stream.callback(|| ())),
        11 => Some(world.device.alloc::<i32>(5).map(drop)),
        12 => Some(world.device.stream().map(drop)),
        13 => world.executables.take(choices).map(|executable| {
            drop(executable);
            Ok(())
        }),
        14 => world.captures.get(choices).map(|capture| capture.end().map(drop)),
        _ => world.streams.get(choices).map(|stream| stream.is_idle().map(drop)),
    };
}
