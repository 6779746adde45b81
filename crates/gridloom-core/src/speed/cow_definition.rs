//! A definition that is copied on write.

use std::ops::Deref;
use std::sync::Arc;

use crate::graph::Definition;

/// The current definition of a hierarchy or an executable. While a graph is built, or an executable
/// is changed repeatedly, nobody else holds the definition. `Arc::make_mut` would check that with
/// atomic operations on each change. This type remembers it in a flag.
pub(crate) struct CowDefinition {
    definition: Arc<Definition>,
    /// Whether nobody else holds the definition. If not, a snapshot was taken and may still exist.
    is_own: bool,
}

impl CowDefinition {
    /// Wraps a definition that nobody else holds.
    #[inline]
    pub(crate) fn own(definition: Definition) -> Self {
        CowDefinition { definition: Arc::new(definition), is_own: true }
    }

    /// Wraps a definition that others may hold.
    pub(crate) fn shared(definition: Arc<Definition>) -> Self {
        CowDefinition { definition, is_own: false }
    }

    /// Returns a snapshot. Later edits do not affect it.
    pub(crate) fn share(&mut self) -> Arc<Definition> {
        self.is_own = false;
        Arc::clone(&self.definition)
    }

    /// Returns the definition for changing. If there may be a snapshot, the definition is copied
    /// first.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut Definition {
        if !self.is_own {
            self.unshare();
        }
        // SAFETY: nobody else holds the definition, not even weakly. Only `share` hands it out, and
        // `share` clears `is_own`, which only `unshare` sets again.
        unsafe { &mut *Arc::as_ptr(&self.definition).cast_mut() }
    }

    #[cold]
    fn unshare(&mut self) {
        Arc::make_mut(&mut self.definition);
        self.is_own = true;
    }
}

impl Deref for CowDefinition {
    type Target = Definition;

    #[inline]
    fn deref(&self) -> &Definition {
        &self.definition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ConditionData;

    fn with_conditions(definition: &mut CowDefinition, count: usize) {
        for _ in 0..count {
            let scope = definition.root();
            definition.get_mut().conditions.insert(ConditionData { scope, default: None, used_by: None });
        }
    }

    #[test]
    fn a_snapshot_stays_as_it_was_and_the_same_until_a_change() {
        let mut definition = CowDefinition::own(Definition::new());
        with_conditions(&mut definition, 1);
        let first = definition.share();
        assert!(Arc::ptr_eq(&first, &definition.share()));
        with_conditions(&mut definition, 2);
        let second = definition.share();
        assert_eq!((first.conditions().count(), second.conditions().count()), (1, 3));
    }

    #[test]
    fn without_a_snapshot_left_nothing_is_copied() {
        let mut definition = CowDefinition::own(Definition::new());
        with_conditions(&mut definition, 1);
        let entry = std::ptr::from_ref(definition.conditions().next().unwrap().1);
        drop(definition.share());
        with_conditions(&mut definition, 1);
        assert_eq!(std::ptr::from_ref(definition.conditions().next().unwrap().1), entry);
    }
}
