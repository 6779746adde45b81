//! Callables compared with the calls that one would write by hand.

use crate::bare::{BareGraph, Shape};
use crate::measure::{Aim, Table};
use crate::{BATCH, CONDITIONAL, PASS, PASSES, PLAIN, Work};
use gridloom::prelude::*;
use std::cell::Cell;
use std::time::Duration;

const KERNELS: usize = 8;
const ROUNDS: usize = 301;

const SAME: Aim = Aim::TimesPlus(1.1, Duration::from_nanos(100));
const OTHER: Aim = Aim::Times(1.25);

impl Work {
    /// Calls of a few kernels: with the same arguments, beside a launch; with all arguments changed
    /// every time, beside changing each node and a launch.
    pub(crate) fn calls(&self, table: &mut Table) -> Result<()> {
        let stores = || {
            let store = self.store.clone();
            Callable::new(&self.device, move |g, (x, value): (Param<[u32]>, Scalar<u32>)| {
                (0..KERNELS).try_for_each(|_| g.launch(&store, LaunchConfig::one(), (&x, &value)))
            })
        };
        let (same, other) = (stores(), stores());
        let (graph, nodes) = self.bare_graph(Shape::Chain, KERNELS, 1)?;
        let bare = graph.instantiate()?;
        table.compare(
            &format!("call of {}, the same arguments", crate::kernels(KERNELS)),
            SAME,
            (ROUNDS, BATCH),
            || self.batch(|| same.call(&self.stream, (&self.memory, 1))),
            || self.batch(|| bare.launch()),
        )?;
        let elsewhere = self.device.buffer_from(&[0])?;
        let addresses = [self.memory_at, elsewhere.address()?];
        let (ours, theirs) = (Cell::new(0), Cell::new(0));
        let next = |turn: &Cell<u32>| {
            turn.set(turn.get() + 1);
            turn.get()
        };
        table.compare(
            &format!("call of {}, all arguments change", crate::kernels(KERNELS)),
            OTHER,
            (ROUNDS, BATCH),
            || {
                self.batch(|| {
                    let value = next(&ours);
                    let memory = if value % 2 == 0 { &self.memory } else { &elsewhere };
                    other.call(&self.stream, (memory, value))
                })
            },
            || {
                self.batch(|| {
                    let value = next(&theirs);
                    let address = addresses[value as usize % 2];
                    nodes
                        .iter()
                        .try_for_each(|&node| bare.set_store(node, self.bare_store, address, value))?;
                    bare.launch()
                })
            },
        )
    }

    /// A loop on a value in memory: beside a WHILE with a kernel more that looks at the value,
    /// which is the same work, and beside one whose only kernel sets the condition itself, which is
    /// not.
    pub(crate) fn do_while(&self, table: &mut Table) -> Result<()> {
        // SAFETY: the kernel changes the one counter it is given.
        let decrease = unsafe { self.device.load_ptx(PLAIN)?.kernel::<(PtrMut<i32>,)>("decrease")? };
        let left = self.device.buffer_from(&[0])?;
        let count_down = Callable::new(&self.device, move |g, (left,): (Param<i32>,)| {
            g.memset(&left, PASSES)?;
            g.do_while(&left, |body| body.launch(&decrease, LaunchConfig::one(), (&left,)))
        });
        let ours = || self.bare.device_time(|| count_down.call(&self.stream, (&left,)));

        let bare_decrease = self.bare.function(PLAIN, c"decrease")?;
        let decide = self.bare.function(CONDITIONAL, c"decide")?;
        let full = BareGraph::do_while(&self.bare, bare_decrease, decide, (self.left_at, PASSES))?;
        let bare = full.instantiate()?;
        table.compare(
            "do_while, a pass of 1 kernel, a kernel decides",
            PASS,
            (101, PASSES as usize),
            ours,
            || self.bare.device_time(|| bare.launch()),
        )?;
        // The counter is as it was found, for the loops of others.
        self.left.write(&[PASSES, 0])?;
        let countdown = self.bare.function(CONDITIONAL, c"countdown")?;
        let none = (self.bare_store, self.memory_at, 0);
        let bare = BareGraph::while_loop(&self.bare, none, (countdown, self.left_at, PASSES))?;
        let bare = bare.instantiate()?;
        table.compare(
            "the same beside a kernel that sets the condition",
            Aim::None,
            (101, PASSES as usize),
            ours,
            || self.bare.device_time(|| bare.launch()),
        )
    }
}
