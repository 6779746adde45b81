//! The definition that an executable keeps and changes.

use std::sync::Arc;

use super::ready::{Ready, Values};
use crate::backend;
use crate::graph::{Definition, NodeKey};

/// What an executable does.
pub(super) struct Current {
    definition: Held,
    /// Nodes that were given values of which the definition does not know yet.
    ready: Ready,
}

/// The definition of an executable: shared with the graph it was made from, or whoever asked for it, until it is changed; from then on its own, so that
/// a further change need not ask who else has it.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each executable, and it lies with the rest of it"
)]
enum Held {
    Own(Definition),
    Shared(Arc<Definition>),
}

impl Current {
    pub(super) fn new(definition: Arc<Definition>) -> Self {
        Current { definition: Held::Shared(definition), ready: Ready::default() }
    }

    /// The definition as it is now.
    #[inline]
    pub(super) fn get(&mut self) -> &Definition {
        if !self.ready.is_settled() {
            self.ready.settle(self.definition.get_mut());
        }
        self.definition.get()
    }

    /// For changing it. Nobody else sees the change. Whoever changes what a node does says so with [`forget`](Current::forget).
    #[inline]
    pub(super) fn get_mut(&mut self) -> &mut Definition {
        let definition = self.definition.get_mut();
        if !self.ready.is_settled() {
            self.ready.settle(definition);
        }
        definition
    }

    /// Something else was put into the place of what these nodes do, or of a part of it.
    #[inline]
    pub(super) fn forget(&mut self, nodes: impl IntoIterator<Item = NodeKey>) {
        nodes.into_iter().for_each(|node| self.ready.forget(node));
    }

    /// Gives a node other plain values. Whether that was all there was to do; else nothing was changed.
    #[inline]
    pub(super) fn set(
        &mut self,
        backend: &mut dyn backend::Executable,
        node: NodeKey,
        values: Values<'_>,
    ) -> bool {
        let number = match self.ready.find(node) {
            Some(number) => Some(number),
            None if self.ready.may_add(node) => {
                self.get();
                self.ready.add(self.definition.get(), node, backend)
            }
            None => None,
        };
        number.is_some_and(|number| self.ready.set(backend, number, values))
    }

    /// As it is now, for others to keep.
    pub(super) fn share(&mut self) -> Arc<Definition> {
        self.get();
        self.definition.share()
    }
}

impl Held {
    #[inline]
    fn get(&self) -> &Definition {
        match self {
            Held::Own(own) => own,
            Held::Shared(shared) => shared,
        }
    }

    #[inline]
    fn get_mut(&mut self) -> &mut Definition {
        if let Held::Shared(_) = self {
            self.own();
        }
        match self {
            Held::Own(own) => own,
            Held::Shared(_) => unreachable!("made its own above"),
        }
    }

    #[cold]
    fn own(&mut self) {
        if let Held::Shared(shared) = std::mem::replace(self, Held::Own(Definition::nothing())) {
            *self = Held::Own(Arc::unwrap_or_clone(shared));
        }
    }

    fn share(&mut self) -> Arc<Definition> {
        let shared = match self {
            Held::Own(own) => Arc::new(std::mem::replace(own, Definition::nothing())),
            Held::Shared(shared) => return Arc::clone(shared),
        };
        *self = Held::Shared(Arc::clone(&shared));
        shared
    }
}
