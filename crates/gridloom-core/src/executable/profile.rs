//! Launching once and measuring when each node ran.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Executable, InstantiateOptions, State};
use crate::backend::{self, EventOptions};
use crate::error::{Result, bail};
use crate::graph::{Definition, Graph, NodeKey};
use crate::lower;
use crate::op::Operation;
use crate::profile::instrument::{self, Instrumented};
use crate::profile::{self, Facts, Profile, ProfileOptions, Recording};
use crate::stream::Stream;

/// What a profile leaves behind, if another executable ran in the place of this one.
pub(super) struct AfterProfile {
    /// The end of the profiled launch. The next launch waits for it.
    ended: Arc<dyn backend::Event>,
    /// The passes of conditionals in the profiled launch, which is the latest.
    pub(super) passes: FxHashMap<NodeKey, u64>,
}

/// A copy of an executable that is launched in its place.
struct Copy {
    executable: Executable,
    timers: Option<Instrumented>,
}

impl Executable {
    /// Launches the graph once on a stream, waits for the stream, and returns when each node ran.
    ///
    /// The launch is a launch like any other, with the same results. Nodes take their present
    /// parameters, and disabled nodes stay disabled. An optimised graph is launched as it was
    /// written. Memory that the launch leaves allocated is that of this executable. The executable
    /// does not change.
    ///
    /// Fails as [`launch`](Executable::launch) and [`Stream::synchronize`] do, and on a capturing
    /// stream.
    pub fn profile(&self, stream: &Stream, options: &ProfileOptions) -> Result<Profile> {
        if stream.is_capturing() {
            bail!(
                InvalidState,
                "a profile on a capturing stream; a profile is a launch, so use another stream, or end the capture first"
            );
        }
        self.check_stream(stream)?;
        let max_runs = options.max_runs.max(1);
        let (definition, disabled, records) = {
            let mut state = self.state.lock();
            let records = !options.timer_kernels && state.backend.records();
            (state.current.share(), state.disabled.clone(), records)
        };
        if records {
            return self.profile_recorded(stream, &definition, &disabled, max_runs);
        }
        let copy = self.copy_for_profile(&definition, &disabled, options, max_runs)?;
        self.profile_copy(stream, &definition, &disabled, max_runs, &copy)
    }

    /// Profiles with a backend that records its launches.
    fn profile_recorded(
        &self,
        stream: &Stream,
        definition: &Definition,
        disabled: &FxHashSet<NodeKey>,
        max_runs: usize,
    ) -> Result<Profile> {
        let begin = Instant::now();
        let (take, report) = {
            let mut state = self.state.lock();
            let take = self.launch_with(&mut state, stream, |backend, stream| {
                backend.launch_recorded(stream, max_runs)
            })?;
            (take, self.status.report())
        };
        let enqueue_ns = begin.elapsed().as_nanos() as u64;
        if let Err(error) = stream.synchronize() {
            // It is reported here, and not a second time.
            drop(self.take_error());
            return Err(error);
        }
        let facts = Facts {
            device: self.device.name(),
            method: "workers",
            report: &report,
            disabled,
            enqueue_ns,
            wall_ns: begin.elapsed().as_nanos() as u64,
            added_nodes: 0,
            before_ns: 0,
            remarks: Vec::new(),
        };
        Ok(profile::analyse(definition, take()?, facts))
    }

    /// Makes the executable to launch in the place of this one: the graph as it was written, with
    /// timers if the device does not record by itself.
    fn copy_for_profile(
        &self,
        definition: &Arc<Definition>,
        disabled: &FxHashSet<NodeKey>,
        options: &ProfileOptions,
        max_runs: usize,
    ) -> Result<Copy> {
        let timers = if options.timer_kernels || !self.device.records_launches() {
            Some(instrument::instrument(&self.device, definition, disabled, max_runs)?)
        } else {
            None
        };
        let written = timers.as_ref().map_or(definition, |timers| &timers.definition);
        let settings = InstantiateOptions {
            auto_free_on_launch: self.auto_free,
            node_priority: self.node_priority,
            conditional_mode: self.conditional_mode,
            count_passes: true,
            ..InstantiateOptions::default()
        };
        let graph = Graph::under_same_keys(&self.device, written.clone());
        let executable = graph.instantiate_with(&settings)?;
        {
            let mut state = executable.state.lock();
            let State { current, backend, disabled: now, .. } = &mut *state;
            for &node in disabled {
                backend.set_enabled(current.get(), node, false)?;
                now.insert(node);
            }
        }
        Ok(Copy { executable, timers })
    }

    fn profile_copy(
        &self,
        stream: &Stream,
        definition: &Definition,
        disabled: &FxHashSet<NodeKey>,
        max_runs: usize,
        copy: &Copy,
    ) -> Result<Profile> {
        let other = &copy.executable;
        let begin;
        let take: Option<backend::TakeRecording> = {
            let mut state = self.state.lock();
            if state.uses_outliving {
                self.check_outliving_uses(&mut state)?;
            }
            self.check_outstanding(&mut state)?;
            self.come_after_launches(&mut state, stream)?;
            // From here on `cancel` reaches the launch.
            self.profiled.lock().clone_from(&other.cancel);
            begin = Instant::now();
            let mut others = other.state.lock();
            let take = match &copy.timers {
                Some(_) => other.launch_with(&mut others, stream, launch).map(|()| None),
                None => other
                    .launch_with(&mut others, stream, |backend, stream| {
                        backend.launch_recorded(stream, max_runs)
                    })
                    .map(Some),
            };
            // Done even after a failure, because a part of the launch may be running.
            self.let_launches_follow(&mut state, stream)?;
            let take = take?;
            // The launch takes over the memory that the previous one left.
            state.outstanding.drain(..).for_each(|(_, memory)| memory.free());
            state.outstanding = others.outstanding.clone();
            take
        };
        let enqueue_ns = begin.elapsed().as_nanos() as u64;
        let outcome = stream.synchronize();
        *self.profiled.lock() = None;
        outcome?;
        let wall_ns = begin.elapsed().as_nanos() as u64;
        let report = other.report();
        let (mut remarks, mut added_nodes, mut before_ns) = (Vec::new(), 0, 0);
        let (recording, method): (Recording, _) = match (&copy.timers, take) {
            (Some(timers), _) => {
                remarks = instrument::remarks(definition, timers, max_runs);
                let (recording, before) = timers.read(&**stream.backend())?;
                (added_nodes, before_ns) = (timers.added_nodes, before);
                (recording, "timer kernels")
            }
            (None, Some(take)) => (take()?, "workers"),
            (None, None) => (Recording::default(), "workers"),
        };
        self.take_over_passes(definition, other);
        let device = self.device.name();
        let facts = Facts {
            device,
            method,
            report: &report,
            disabled,
            enqueue_ns,
            wall_ns,
            added_nodes,
            before_ns,
            remarks,
        };
        Ok(profile::analyse(definition, recording, facts))
    }

    /// Makes a stream wait for the launches of this executable so far.
    fn come_after_launches(&self, state: &mut State, stream: &Stream) -> Result<()> {
        if state.after_profile.is_some() {
            Self::pass_profile(state, stream)?;
        }
        let Some(last) = state.backend.latest_stream() else {
            return state.backend.follow_launches(stream.backend());
        };
        if Arc::ptr_eq(&last, stream.backend()) {
            return Ok(());
        }
        let event = self.device.create_event(EventOptions::new().timing(false))?;
        // SAFETY: both streams and the event are of this device.
        unsafe {
            last.enqueue(&Operation::EventRecord(event.clone()))?;
            stream.backend().enqueue(&Operation::EventWait(event))
        }
    }

    /// Makes the next launch of this executable wait for what is on the stream now.
    fn let_launches_follow(&self, state: &mut State, stream: &Stream) -> Result<()> {
        let ended = self.device.create_event(EventOptions::new().timing(false))?;
        // SAFETY: stream and event are of this device.
        unsafe { stream.backend().enqueue(&Operation::EventRecord(ended.clone())) }?;
        state.after_profile = Some(Box::new(AfterProfile { ended, passes: FxHashMap::default() }));
        Ok(())
    }

    /// Makes a launch on this stream wait for the profiled launch before it.
    #[cold]
    pub(super) fn pass_profile(state: &mut State, stream: &Stream) -> Result<()> {
        if let Some(after) = &state.after_profile {
            // SAFETY: stream and event are of the device of the executable.
            unsafe { stream.backend().enqueue(&Operation::EventWait(after.ended.clone())) }?;
        }
        state.after_profile = None;
        Ok(())
    }

    /// Remembers the passes of a profiled launch, unless another launch came since.
    fn take_over_passes(&self, definition: &Definition, other: &Executable) {
        let mut passes = FxHashMap::default();
        for node in lower::conditionals(definition) {
            let read = other.state.lock().backend.passes(node);
            if let Ok(count) = read.and_then(|read| read()) {
                passes.insert(node, count);
            }
        }
        if let Some(after) = &mut self.state.lock().after_profile {
            after.passes = passes;
        }
    }
}

/// Launches without recording.
pub(super) fn launch(backend: &mut dyn backend::Executable, stream: &Arc<dyn backend::Stream>) -> Result<()> {
    backend.launch(stream)
}
