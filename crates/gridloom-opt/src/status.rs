//! The status of an executable: what can be read at any time, whether or not it is optimised.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gridloom_core::Error;
use gridloom_core::backend::ExecutableStatus;
use gridloom_core::executable::{MemoryUse, NodeReport, Report};
use parking_lot::Mutex;

/// The status of the current form, and what the optimiser adds to its report.
// The lock is held during each call: a clone of the status might be the last holder of an old
// form, which a callback must not drop.
pub(crate) struct Status {
    now: Mutex<Now>,
    /// How many launches are left before kernels are made, plus one. 0 if nobody counts.
    left: AtomicU32,
}

struct Now {
    form: Arc<dyn ExecutableStatus>,
    /// What is added to the report.
    added: Report,
    /// The error of a launch that an earlier form made.
    error: Option<Error>,
}

impl Status {
    pub(crate) fn new(form: Arc<dyn ExecutableStatus>, added: Report) -> Self {
        Status { now: Mutex::new(Now { form, added, error: None }), left: AtomicU32::new(0) }
    }

    /// Puts the status of another form in the place of the current one.
    pub(crate) fn replace(&self, form: Arc<dyn ExecutableStatus>, added: Report) {
        let mut now = self.now.lock();
        let error = now.form.take_error().or(now.error.take());
        let old = std::mem::replace(&mut *now, Now { form, added, error });
        drop(now);
        drop(old);
    }

    /// Says why the graph is not optimised, or nothing.
    pub(crate) fn explain(&self, reason: Option<String>) {
        self.left.store(0, Ordering::Relaxed);
        let line = reason.map(|reason| ("the graph".to_owned(), reason));
        let mut now = self.now.lock();
        now.added.not_optimized = line.into_iter().collect();
        now.added.nodes = Vec::new();
    }

    /// Says why each node runs as it was written.
    pub(crate) fn explain_nodes(&self, nodes: Vec<NodeReport>) {
        self.now.lock().added.nodes = nodes;
    }

    /// Says how many launches are left before kernels are made.
    #[inline]
    pub(crate) fn count(&self, left: u32) {
        self.left.store(left.saturating_add(1), Ordering::Relaxed);
    }
}

impl ExecutableStatus for Status {
    fn take_error(&self) -> Option<Error> {
        let mut now = self.now.lock();
        let before = now.error.take();
        now.form.take_error().or(before)
    }

    fn report(&self) -> Report {
        let now = self.now.lock();
        let mut report = now.form.report();
        report.conditionals.extend_from_slice(&now.added.conditionals);
        report.optimized.extend_from_slice(&now.added.optimized);
        report.not_optimized.extend_from_slice(&now.added.not_optimized);
        report.nodes.extend_from_slice(&now.added.nodes);
        match self.left.load(Ordering::Relaxed) {
            0 => {}
            left => {
                let reason = format!("its kernels are rewritten after {left} more launches");
                report.not_optimized.push(("the graph".to_owned(), reason));
            }
        }
        report
    }

    fn memory(&self) -> MemoryUse {
        self.now.lock().form.memory()
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:?})", self.now.lock().added)
    }
}
