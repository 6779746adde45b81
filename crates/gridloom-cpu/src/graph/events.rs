//! Events inside a graph: the recordings that a launch makes, and those that its wait nodes wait
//! for.
//!
//! A launch that records an event makes its recording the latest one when it is *enqueued*, like a
//! record operation on a stream. Later waits for the event therefore wait for the launch. A wait
//! node waits for the recording that was the latest before the launch, unless the launch itself has
//! already recorded the event. A launch therefore never waits for itself.

use std::sync::Arc;

use gridloom_core::{Result, backend};

use crate::event::{self, CpuEvent, Recording};

/// The uses of an event in a graph.
#[derive(Clone)]
struct EventUse {
    event: Arc<dyn backend::Event>,
    /// The number of record nodes that run exactly once in each launch.
    sure_records: u32,
    /// The number of record nodes in bodies, which may run any number of times.
    other_records: u32,
    waits: u32,
}

impl EventUse {
    fn event(&self) -> &CpuEvent {
        self.event.as_any().downcast_ref().expect("checked when the event was noted")
    }

    /// Returns whether each launch records the event exactly once. Otherwise the recording is
    /// reached only at the end of the launch, because the event may still be recorded again or
    /// never.
    fn once(&self) -> bool {
        self.sure_records == 1 && self.other_records == 0
    }
}

/// The events of a graph, numbered. The number of an event that is no longer used is reused.
#[derive(Clone, Default)]
pub(super) struct Events(Vec<Option<EventUse>>);

impl Events {
    /// Adds a record node. `exactly_once` says whether every launch runs it exactly once. Returns
    /// the number of the event.
    pub(super) fn record(&mut self, event: &Arc<dyn backend::Event>, exactly_once: bool) -> Result<u32> {
        let (number, used) = self.entry(event)?;
        if exactly_once {
            used.sure_records += 1;
        } else {
            used.other_records += 1;
        }
        Ok(number)
    }

    /// Adds a wait node. Returns the number of the event.
    pub(super) fn wait(&mut self, event: &Arc<dyn backend::Event>) -> Result<u32> {
        let (number, used) = self.entry(event)?;
        used.waits += 1;
        Ok(number)
    }

    /// Removes a record node.
    pub(super) fn forget_record(&mut self, number: u32, exactly_once: bool) {
        if let Some(used) = &mut self.0[number as usize] {
            if exactly_once {
                used.sure_records -= 1;
            } else {
                used.other_records -= 1;
            }
        }
        self.free_unused(number);
    }

    /// Removes a wait node.
    pub(super) fn forget_wait(&mut self, number: u32) {
        if let Some(used) = &mut self.0[number as usize] {
            used.waits -= 1;
        }
        self.free_unused(number);
    }

    fn free_unused(&mut self, number: u32) {
        let used = &mut self.0[number as usize];
        if used.as_ref().is_some_and(|used| used.sure_records + used.other_records + used.waits == 0) {
            *used = None;
        }
    }

    fn entry(&mut self, event: &Arc<dyn backend::Event>) -> Result<(u32, &mut EventUse)> {
        event::own(event)?;
        let same =
            |used: &Option<EventUse>| used.as_ref().is_some_and(|used| Arc::ptr_eq(&used.event, event));
        let number = match self.0.iter().position(same).or_else(|| self.0.iter().position(Option::is_none)) {
            Some(number) => number,
            None => {
                self.0.push(None);
                self.0.len() - 1
            }
        };
        let fresh = || EventUse { event: event.clone(), sure_records: 0, other_records: 0, waits: 0 };
        Ok((number as u32, self.0[number].get_or_insert_with(fresh)))
    }

    /// Returns what a launch that is about to be enqueued will record and wait for. Nobody knows
    /// its recordings before they are [published](Events::publish).
    pub(super) fn begin(&self) -> Box<[LaunchEvent]> {
        let begin = |used: &Option<EventUse>| match used {
            None => LaunchEvent::default(),
            Some(used) => {
                let records = used.sure_records + used.other_records > 0;
                LaunchEvent { own: records.then(Recording::new), before: used.event().latest() }
            }
        };
        self.0.iter().map(begin).collect()
    }

    /// Makes the recordings of a launch the latest ones. The launch is being enqueued.
    pub(super) fn publish(&self, recordings: &[Option<Arc<Recording>>]) {
        for (used, recording) in self.0.iter().zip(recordings) {
            if let (Some(used), Some(recording)) = (used, recording) {
                used.event().publish(recording);
            }
        }
    }

    /// Runs a record node.
    pub(super) fn pass(&self, number: u32, launch: &[LaunchEvent]) {
        if let (Some(used), Some(own)) = (&self.0[number as usize], &launch[number as usize].own) {
            used.event().pass(own);
            if used.once() {
                own.reach();
            }
        }
    }
}

/// An event as one launch uses it.
#[derive(Default)]
pub(super) struct LaunchEvent {
    own: Option<Arc<Recording>>,
    before: Option<Arc<Recording>>,
}

impl LaunchEvent {
    /// Returns the recording that the launch makes.
    pub(super) fn recording(&self) -> Option<Arc<Recording>> {
        self.own.clone()
    }

    pub(super) fn wait(&self) {
        let recorded = self.own.as_ref().is_some_and(|own| own.is_passed());
        if let (false, Some(before)) = (recorded, &self.before) {
            before.wait();
        }
    }

    /// Releases all waiters for the launch, whether it has recorded or not.
    pub(super) fn end(&self) {
        if let Some(own) = &self.own {
            own.inherit(self.before.as_deref());
            if !own.is_reached() {
                own.reach();
            }
        }
    }
}
