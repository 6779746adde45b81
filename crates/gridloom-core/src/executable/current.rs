//! What an executable does now: its definition, and the arguments that changed since somebody last looked at it.

use std::sync::Arc;

use super::table::ArgTable;
use crate::graph::{CowDefinition, Definition};

/// What an executable does.
pub(super) struct Current {
    /// Shared with the graph it was made from, or whoever asked for it, until it is changed. Lags behind the table.
    pub(super) definition: CowDefinition,
    /// The arguments of kernels that were changed.
    pub(super) table: ArgTable,
}

impl Current {
    pub(super) fn new(definition: Arc<Definition>) -> Self {
        Current { definition: CowDefinition::shared(definition), table: ArgTable::default() }
    }

    /// Has the definition say what is done, or, while changes are under way, what was done before.
    #[inline]
    pub(super) fn bring_up_to_date(&mut self) {
        if !self.table.is_in_definition() {
            self.table.bring_up_to_date(self.definition.get_mut());
        }
    }

    /// Returns the definition as it is now.
    #[inline]
    pub(super) fn get(&mut self) -> &Definition {
        self.bring_up_to_date();
        &self.definition
    }

    /// Returns the definition as it is now, for others to keep.
    pub(super) fn share(&mut self) -> Arc<Definition> {
        self.bring_up_to_date();
        self.definition.share()
    }
}
