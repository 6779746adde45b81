//! The definition of a hierarchy as it is now, alone or shared with snapshots of it.

use std::ops::Deref;
use std::sync::Arc;

use super::definition::Definition;

/// While a graph is built nobody else has its definition. `Arc::make_mut` would ask for every node that is added whether that is so, at the price of an
/// atomic operation; here it is known.
pub(super) enum Present {
    /// Nobody else has it.
    Own(Box<Definition>),
    /// There was a snapshot of it, and may still be.
    Shared(Arc<Definition>),
    /// On the way from the one to the other.
    Changing,
}

impl Present {
    /// It as it is now, and stays for who asked.
    pub(super) fn share(&mut self) -> Arc<Definition> {
        let shared = match std::mem::replace(self, Present::Changing) {
            Present::Own(own) => Arc::from(own),
            Present::Shared(shared) => shared,
            Present::Changing => unreachable!("a change is over when it returns"),
        };
        *self = Present::Shared(Arc::clone(&shared));
        shared
    }

    /// It for changing. Where there is a snapshot, a copy is changed.
    #[inline]
    pub(super) fn own(&mut self) -> &mut Definition {
        if !matches!(self, Present::Own(_)) {
            self.part();
        }
        match self {
            Present::Own(own) => own,
            _ => unreachable!("it was made so above"),
        }
    }

    #[cold]
    fn part(&mut self) {
        if let Present::Shared(shared) = std::mem::replace(self, Present::Changing) {
            *self = Present::Own(Box::new(Arc::unwrap_or_clone(shared)));
        }
    }
}

impl Deref for Present {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        match self {
            Present::Own(own) => own,
            Present::Shared(shared) => shared,
            Present::Changing => unreachable!("a change is over when it returns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::definition::ConditionData;

    fn with_conditions(present: &mut Present, count: usize) {
        for _ in 0..count {
            let scope = present.root();
            present.own().conditions.insert(ConditionData { scope, default: None, used_by: None });
        }
    }

    #[test]
    fn a_snapshot_stays_as_it_was_and_the_same_until_a_change() {
        let mut present = Present::Own(Box::new(Definition::new()));
        with_conditions(&mut present, 1);
        let first = present.share();
        assert!(Arc::ptr_eq(&first, &present.share()));
        with_conditions(&mut present, 2);
        let second = present.share();
        assert_eq!((first.conditions().count(), second.conditions().count()), (1, 3));
    }

    #[test]
    fn without_a_snapshot_left_nothing_is_copied() {
        let mut present = Present::Own(Box::new(Definition::new()));
        with_conditions(&mut present, 1);
        let entry = std::ptr::from_ref(present.conditions().next().unwrap().1);
        drop(present.share());
        with_conditions(&mut present, 1);
        assert_eq!(std::ptr::from_ref(present.conditions().next().unwrap().1), entry);
    }
}
