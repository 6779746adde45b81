//! Events inside a graph: which recording a launch makes, and which its wait nodes wait for.
//!
//! A launch that records an event begins the recording when it is *enqueued*, like a record operation on a stream, so that
//! whoever waits for the event afterwards waits for the launch. A wait node waits for what was the latest recording before the
//! launch, unless the launch itself has recorded the event by then. So a launch never waits for itself.

use std::sync::Arc;

use gridloom_core::backend;

use crate::event::{CpuEvent, Recording};

/// How a graph uses an event.
pub(super) struct EventUse {
    event: Arc<dyn backend::Event>,
    records: u32,
    /// Whether each launch records it exactly once. Else the recording is reached at the end of the launch only, since before
    /// that it could come again, or never.
    once: bool,
}

impl EventUse {
    pub(super) fn new(event: Arc<dyn backend::Event>) -> Self {
        EventUse { event, records: 0, once: true }
    }

    /// Notes a record node, and whether every launch runs it exactly once.
    pub(super) fn add_record(&mut self, exactly_once: bool) {
        self.records += 1;
        self.once = exactly_once && self.records == 1;
    }

    fn event(&self) -> &CpuEvent {
        self.event.as_any().downcast_ref().expect("checked when the plan was made")
    }

    /// What a launch that is being enqueued will record and wait for.
    pub(super) fn begin(&self) -> LaunchEvent {
        let event = self.event();
        let before = event.latest();
        LaunchEvent { own: (self.records > 0).then(|| event.begin()), before }
    }

    pub(super) fn record(&self, launch: &LaunchEvent) {
        if let Some(own) = &launch.own {
            self.event().pass(own);
            if self.once {
                own.reach();
            }
        }
    }
}

/// An event as one launch uses it.
pub(super) struct LaunchEvent {
    own: Option<Arc<Recording>>,
    before: Option<Arc<Recording>>,
}

impl LaunchEvent {
    pub(super) fn wait(&self) {
        let recorded = self.own.as_ref().is_some_and(|own| own.is_passed());
        if let (false, Some(before)) = (recorded, &self.before) {
            before.wait();
        }
    }

    /// Lets all go on who wait for the launch, whether it has recorded or not.
    pub(super) fn end(&self) {
        if let Some(own) = &self.own {
            own.inherit(self.before.as_deref());
            if !own.is_reached() {
                own.reach();
            }
        }
    }
}
