//! The current work of an executable: its definition, and the arguments that changed since the
//! definition was last read.

use std::sync::Arc;

use super::table::ArgTable;
use crate::graph::{CowDefinition, Definition};

/// The current work of an executable.
pub(super) struct Current {
    /// The definition. It is shared with the graph it came from, or with readers, until it is
    /// changed. It may lag behind the table.
    pub(super) definition: CowDefinition,
    /// The kernel arguments that were changed.
    pub(super) table: ArgTable,
}

impl Current {
    pub(super) fn new(definition: Arc<Definition>) -> Self {
        Current { definition: CowDefinition::shared(definition), table: ArgTable::default() }
    }

    /// Writes the arguments from the table to the definition. Changes in progress are left out.
    #[inline]
    pub(super) fn bring_up_to_date(&mut self) {
        if !self.table.is_in_definition() {
            self.table.bring_up_to_date(self.definition.get_mut());
        }
    }

    /// Returns the definition, brought up to date.
    #[inline]
    pub(super) fn get(&mut self) -> &Definition {
        self.bring_up_to_date();
        &self.definition
    }

    /// Returns a snapshot of the definition, brought up to date.
    pub(super) fn share(&mut self) -> Arc<Definition> {
        self.bring_up_to_date();
        self.definition.share()
    }
}
