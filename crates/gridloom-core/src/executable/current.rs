//! The definition that an executable keeps and changes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::change::{Change, Part};
use super::follow::{Followed, Follower, Value};
use super::ready::{ArgWriter, Ready, Refusal, Which};
use super::whole;
use crate::backend::{self, Allocation};
use crate::graph::{Checker, CowDefinition, Definition, NodeKey};
use crate::memory::Base;
use crate::op::{ArgValue, Operation, PointerValue};

/// What an executable does.
pub(super) struct Current {
    /// Shared with the graph it was made from, or whoever asked for it, until it is changed.
    definition: CowDefinition,
    /// Nodes that were given values of which the definition does not know yet.
    ready: Ready,
    /// Values that nodes follow.
    followed: Option<Box<Followed>>,
    /// Whether it was updated as a whole before. What is once is, may be again, and then it pays to have nodes ready.
    is_updated: bool,
}

impl Current {
    pub(super) fn new(definition: Arc<Definition>) -> Self {
        Current {
            definition: CowDefinition::shared(definition),
            ready: Ready::default(),
            followed: None,
            is_updated: false,
        }
    }

    /// Has the definition say what is done.
    #[inline]
    fn settle(&mut self) {
        if !self.ready.is_settled() {
            let definition = self.definition.get_mut();
            self.ready.settle(definition);
            if let Some(followed) = self.followed.as_mut().filter(|followed| followed.has_gaps()) {
                followed.fill_gaps(definition, &self.ready);
            }
        }
    }

    /// The definition as it is now.
    #[inline]
    pub(super) fn get(&mut self) -> &Definition {
        self.settle();
        &self.definition
    }

    /// For changing it. Nobody else sees the change. Whoever changes what a node does says so with [`note`](Current::note).
    #[inline]
    pub(super) fn get_mut(&mut self) -> &mut Definition {
        self.settle();
        self.definition.get_mut()
    }

    /// Changes were made, or taken back. Nothing is followed any more.
    #[inline]
    pub(super) fn note(&mut self, changes: &[Change]) {
        self.unfollow();
        let definition = &self.definition;
        for (index, change) in changes.iter().enumerate() {
            match change.part {
                Part::Operation(_) => self.ready.forget(change.node),
                // Once for all arguments of a node.
                Part::Argument(..) if changes.get(index + 1).is_some_and(|next| next.node == change.node) => {
                }
                Part::Argument(..) => self.ready.look_again(definition, change.node),
            }
        }
    }

    /// Tells the backend of changes that were made, where they are of arguments of one node, which is ready.
    #[inline]
    pub(super) fn tell(
        &mut self,
        backend: &mut dyn backend::Executable,
        changes: &[Change],
    ) -> Result<(), Refusal> {
        let Some(node) = changes.first().map(|change| change.node) else { return Err(Refusal::Other) };
        let is_argument = |change: &Change| change.node == node && matches!(change.part, Part::Argument(..));
        let Some(number) = self.ready.find(node).filter(|_| changes.iter().all(is_argument)) else {
            return Err(Refusal::Other);
        };
        let Operation::Kernel(launch) = self.definition.node(node).operation() else {
            return Err(Refusal::Other);
        };
        match backend.set_arguments(&[(number, &launch.args.bytes)]) {
            Ok(true) => {}
            Ok(false) => return Err(Refusal::Other),
            Err(_) => return Err(Refusal::Failed),
        }
        let mut unused: SmallVec<[&Arc<dyn Allocation>; 4]> = SmallVec::new();
        for change in changes {
            if let Part::Argument(_, ArgValue::Pointer(PointerValue::Region(old))) = &change.part
                && let Base::Allocation(memory) = &old.base
                && !launch.args.uses(memory)
            {
                unused.push(memory);
            }
        }
        if !unused.is_empty() {
            backend.keep(&unused);
        }
        Ok(())
    }

    /// Nothing is followed any more. The definition does not lag behind.
    #[inline]
    fn unfollow(&mut self) {
        if let Some(followed) = self.followed.take() {
            // What it keeps, the definition or what was taken out of it has too. Which memory the nodes have is not known to them.
            followed.numbers().for_each(|number| self.ready.forget_number(number));
        }
    }

    /// Has `write` give a node other plain values. Whether that was all there was to do; else nothing was changed.
    #[inline]
    pub(super) fn set(
        &mut self,
        backend: &mut dyn backend::Executable,
        // By reference: only its index is needed, mostly, and a key that was just written is slow to read whole.
        node: &NodeKey,
        which: Which<'_>,
        write: impl FnOnce(&mut ArgWriter<'_>) -> bool,
    ) -> bool {
        let number = match self.ready.find(*node) {
            // Whatever is followed is set with the values.
            Some(_) if self.followed.is_some() => None,
            Some(number) => Some(number),
            None => self.make_ready(backend, node),
        };
        let Some(number) = number else { return false };
        match self.ready.set(backend, number, which, write) {
            Ok(()) => true,
            Err(refusal) => self.refused(backend, refusal, std::slice::from_ref(node)),
        }
    }

    #[cold]
    fn make_ready(&mut self, backend: &mut dyn backend::Executable, node: &NodeKey) -> Option<usize> {
        if !self.ready.may_add(*node) {
            return None;
        }
        self.settle();
        self.ready.add(&self.definition, *node, backend)
    }

    /// Has nodes put back that a failure may have left with something else. Nothing was done, in any case.
    #[cold]
    fn refused(
        &mut self,
        backend: &mut dyn backend::Executable,
        refusal: Refusal,
        nodes: &[NodeKey],
    ) -> bool {
        if refusal == Refusal::Failed {
            backend.put_back(self.get(), nodes);
        }
        false
    }

    /// Whether arguments follow values.
    #[inline]
    pub(super) fn is_followed(&self) -> bool {
        self.followed.is_some()
    }

    /// Has arguments follow values, which are those that they have. Whether they can.
    pub(super) fn follow(&mut self, backend: &mut dyn backend::Executable, followers: &[Follower]) -> bool {
        self.settle();
        self.unfollow();
        self.followed = Followed::new(&self.definition, &mut self.ready, backend, followers).map(Box::new);
        self.followed.is_some()
    }

    /// Gives other values to what follows them, all or none. Whether that was all there was to do; else nothing was changed.
    pub(super) fn set_followed(
        &mut self,
        backend: &mut dyn backend::Executable,
        checker: Checker<'_>,
        given: &mut [(u32, Value)],
    ) -> bool {
        let Some(followed) = &mut self.followed else { return false };
        match followed.set(&mut self.ready, backend, checker, given) {
            Ok(()) => {
                followed.open_gaps(self.definition.get_mut(), &self.ready, given);
                true
            }
            Err((refusal, nodes)) => self.refused(backend, refusal, &nodes),
        }
    }

    /// Takes over the arguments of a definition, where there is nothing else that differs: then returns what they replaced, to be dropped outside of any
    /// lock. Else nothing was changed.
    pub(super) fn take_arguments(
        &mut self,
        backend: &mut dyn backend::Executable,
        source: &Definition,
    ) -> Option<Vec<PointerValue>> {
        if !std::mem::replace(&mut self.is_updated, true) || self.followed.is_some() {
            return None;
        }
        match whole::take_arguments(&self.definition, &mut self.ready, backend, source) {
            Ok(written) if written.moved().is_empty() => Some(Vec::new()),
            Ok(written) => {
                let definition = self.definition.get_mut();
                Some(whole::keep_memory(definition, &self.ready, backend, source, &written))
            }
            Err((refusal, nodes)) => {
                self.refused(backend, refusal, &nodes);
                None
            }
        }
    }

    /// As it is now, for others to keep.
    pub(super) fn share(&mut self) -> Arc<Definition> {
        self.settle();
        self.definition.share()
    }
}
