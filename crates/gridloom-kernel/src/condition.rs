//! Setting the condition of a graph.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::ir::{Operand, Stmt};
use crate::record::recorder::with;
use crate::record::value::{Twin, Typed, V};

/// A kernel parameter: a condition of a graph, which the kernel sets.
///
/// ```
/// use std::sync::atomic::AtomicU32;
///
/// use gridloom_kernel::{SetCondition, host};
///
/// fn decide(left: u32, again: SetCondition) {
///     again.set((left > 0) as u32);
/// }
///
/// let again = AtomicU32::new(1);
/// host::run(1, 1, || decide(0, SetCondition::new(&again)));
/// assert_eq!(again.into_inner(), 0);
/// ```
#[derive(Clone, Copy)]
pub struct SetCondition<'a>(&'a AtomicU32);

impl<'a> SetCondition<'a> {
    /// Makes a number of the host what a kernel sets.
    pub fn new(value: &'a AtomicU32) -> Self {
        SetCondition(value)
    }

    /// Sets the value of the condition. Of several threads that do, the last counts.
    pub fn set(self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// A [`SetCondition`] while a kernel is recorded.
#[derive(Clone, Copy)]
pub struct SetConditionTwin(V<u64>);

impl Twin for SetConditionTwin {
    fn get(&self) -> Self {
        *self
    }
}
impl Typed for SetCondition<'_> {
    type Twin = SetConditionTwin;
}

impl SetConditionTwin {
    pub(crate) fn of(handle: V<u64>) -> Self {
        SetConditionTwin(handle)
    }

    /// Does what the method of [`SetCondition`] does.
    pub fn set(self, value: V<u32>) {
        with(|r| {
            let (handle, value): (Operand, Operand) = (self.0.operand(r), value.operand(r));
            r.push(Stmt::SetCondition { handle, value });
        });
    }
}
