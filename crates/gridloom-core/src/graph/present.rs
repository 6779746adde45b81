//! A definition that is changed, alone or shared with snapshots of it.

use std::ops::Deref;
use std::sync::Arc;

use super::definition::Definition;

/// The definition of a hierarchy as it is now, or of an executable. While a graph is built, or an executable is changed again and again, nobody else has it. `Arc::make_mut` would
/// ask each time whether that is so, at the price of an atomic operation; here it is known.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each graph and executable, and it lies with the rest of it"
)]
pub(crate) enum Present {
    /// Nobody else has it.
    Own(Definition),
    /// There was a snapshot of it, and may still be.
    Shared(Arc<Definition>),
}

impl Present {
    /// It as it is now, and stays for who asked.
    pub(crate) fn share(&mut self) -> Arc<Definition> {
        let shared = match self {
            Present::Own(own) => Arc::new(std::mem::replace(own, Definition::nothing())),
            Present::Shared(shared) => return Arc::clone(shared),
        };
        *self = Present::Shared(Arc::clone(&shared));
        shared
    }

    /// It for changing. Where there is a snapshot, a copy is changed.
    #[inline]
    pub(crate) fn own(&mut self) -> &mut Definition {
        if let Present::Shared(_) = self {
            self.part();
        }
        match self {
            Present::Own(own) => own,
            Present::Shared(_) => unreachable!("made its own above"),
        }
    }

    #[cold]
    fn part(&mut self) {
        if let Present::Shared(shared) = std::mem::replace(self, Present::Own(Definition::nothing())) {
            *self = Present::Own(Arc::unwrap_or_clone(shared));
        }
    }
}

impl Deref for Present {
    type Target = Definition;

    #[inline]
    fn deref(&self) -> &Definition {
        match self {
            Present::Own(own) => own,
            Present::Shared(shared) => shared,
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
        let mut present = Present::Own(Definition::new());
        with_conditions(&mut present, 1);
        let first = present.share();
        assert!(Arc::ptr_eq(&first, &present.share()));
        with_conditions(&mut present, 2);
        let second = present.share();
        assert_eq!((first.conditions().count(), second.conditions().count()), (1, 3));
    }

    #[test]
    fn without_a_snapshot_left_nothing_is_copied() {
        let mut present = Present::Own(Definition::new());
        with_conditions(&mut present, 1);
        let entry = std::ptr::from_ref(present.conditions().next().unwrap().1);
        drop(present.share());
        with_conditions(&mut present, 1);
        assert_eq!(std::ptr::from_ref(present.conditions().next().unwrap().1), entry);
    }
}
