//! A definition that is changed, alone or shared with snapshots of it.

use std::ops::Deref;
use std::sync::Arc;

use crate::graph::Definition;

/// The definition of a hierarchy as it is now, or of an executable. While a graph is built, or an executable is changed again and again, nobody else has it. `Arc::make_mut` would
/// ask each time whether that is so, at the price of an atomic operation; here it is known.
pub(crate) struct CowDefinition {
    definition: Arc<Definition>,
    /// Whether nobody else has it. If not, there was a snapshot of it, and may still be.
    is_own: bool,
}

impl CowDefinition {
    /// A definition that nobody else has.
    #[inline]
    pub(crate) fn own(definition: Definition) -> Self {
        CowDefinition { definition: Arc::new(definition), is_own: true }
    }

    /// A definition that others may have.
    pub(crate) fn shared(definition: Arc<Definition>) -> Self {
        CowDefinition { definition, is_own: false }
    }

    /// It as it is now, and stays for who asked.
    pub(crate) fn share(&mut self) -> Arc<Definition> {
        self.is_own = false;
        Arc::clone(&self.definition)
    }

    /// It for changing. Where there is a snapshot, a copy is changed.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut Definition {
        if !self.is_own {
            self.unshare();
        }
        // SAFETY: nobody else has it, weakly or not: it is handed out by `share` alone, and is this one's own again only after `unshare`.
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
