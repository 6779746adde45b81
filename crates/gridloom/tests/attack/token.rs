//! User values that callbacks own. Each must be dropped exactly once, and its drop may do anything.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use gridloom::prelude::*;
use parking_lot::Mutex;

use super::choices::Choices;
use super::executables;
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
    let _: Option<Result<()>> = match choices.below(34) {
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
        15 => world.streams.get(choices).map(|stream| stream.is_idle().map(drop)),
        16 => world.executables.get(choices).map(|executable| {
            let _ = (executable.report(), executable.memory(), executable.take_error());
            let _ = format!("{executable:?}");
            world.graphs.put(choices, executable.graph()?);
            Ok(())
        }),
        17 => world
            .executables
            .get(choices)
            .zip(world.graphs.get(choices))
            .map(|(e, g)| executables::update(&e, &g)),
        18 => world.executables.get(choices).zip(world.nodes.get(choices)).map(|(executable, node)| {
            executable.passes(&node)?;
            executable.node(&node)?.set_enabled(true)
        }),
        19 => world.executables.get(choices).zip(world.captures.get(choices)).map(|(e, c)| e.launch(&*c)),
        20 => world.callables.get(choices).map(|callable| {
            let _ = (callable.stats(), format!("{callable:?}"));
            callable.graph()?;
            if choices.one_in(2) { callable.reset() } else { Ok(()) }
        }),
        21 => world.callables.get(choices).zip(world.streams.get(choices)).map(|(callable, stream)| {
            let (x, flag) = (world.device.alloc::<i32>(3)?, world.device.alloc::<i32>(1)?);
            callable.call(&stream, (&x, &flag, 1, 2usize))
        }),
        22 => Some(world.device.memory_use().map(drop)),
        23 => Some(world.device.trim()),
        24 => Some(world.device.event().map(drop)),
        25 => Some(world.device.load_ptx("").map(drop)),
        26 => world.buffers.get(choices).map(|buffer| {
            buffer.close();
            Ok(())
        }),
        27 => world.events.get(choices).zip(world.streams.get(choices)).map(|(event, stream)| {
            stream.wait(&event)?;
            stream.record(&event)
        }),
        28 => world.streams.get(choices).map(|stream| {
            stream.cancel();
            stream.capture().map(drop)
        }),
        29 => world
            .executables
            .get(choices)
            .zip(world.allocs.get(choices))
            .map(|(executable, alloc)| executable.buffer(&alloc)?.to_vec().map(drop)),
        30 => world
            .buffers
            .get(choices)
            .zip(world.streams.get(choices))
            .map(|(buffer, stream)| buffer.to_vec_after(&stream).map(drop)),
        31 => world.graphs.get(choices).map(|graph| {
            let (copy, _) = graph.deep_clone()?;
            let _ = (graph.check(), copy.to_json());
            world.graphs.put(choices, copy);
            Ok(())
        }),
        32 => world.captures.take(choices).map(|capture| {
            drop(capture);
            Ok(())
        }),
        _ => world.callables.take(choices).map(|callable| {
            drop(callable);
            Ok(())
        }),
    };
}
