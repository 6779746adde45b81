//! The definition that an executable keeps and changes.

use std::sync::Arc;

use crate::graph::Definition;

/// The definition of an executable: shared with the graph it was made from, or whoever asked for it, until it is changed; from then on its own, so that
/// a further change need not ask who else has it.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each executable, and it lies with the rest of it"
)]
pub(super) enum Current {
    Own(Definition),
    Shared(Arc<Definition>),
}

impl Current {
    #[inline]
    pub(super) fn get(&self) -> &Definition {
        match self {
            Current::Own(own) => own,
            Current::Shared(shared) => shared,
        }
    }

    /// For changing it. Nobody else sees the change.
    #[inline]
    pub(super) fn get_mut(&mut self) -> &mut Definition {
        if let Current::Shared(_) = self {
            self.own();
        }
        match self {
            Current::Own(own) => own,
            Current::Shared(_) => unreachable!("made its own above"),
        }
    }

    #[cold]
    fn own(&mut self) {
        if let Current::Shared(shared) = std::mem::replace(self, Current::Own(Definition::nothing())) {
            *self = Current::Own(Arc::unwrap_or_clone(shared));
        }
    }

    /// As it is now, for others to keep.
    pub(super) fn share(&mut self) -> Arc<Definition> {
        let shared = match self {
            Current::Own(own) => Arc::new(std::mem::replace(own, Definition::nothing())),
            Current::Shared(shared) => return Arc::clone(shared),
        };
        *self = Current::Shared(Arc::clone(&shared));
        shared
    }
}
