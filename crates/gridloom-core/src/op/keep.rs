//! Something that an operation needs and Gridloom knows nothing about.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Whatever has to stay alive for as long as an operation can run: the owner of memory, code or data that is not Gridloom's.
///
/// It may be dropped on any thread, and two are equal where they keep the very same thing.
#[derive(Clone)]
pub struct Keep(Arc<dyn Any + Send + Sync>);

impl Keep {
    /// Keeps an owner.
    pub fn new(owner: Arc<dyn Any + Send + Sync>) -> Self {
        Keep(owner)
    }

    /// The owner.
    pub fn owner(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.0
    }
}

impl PartialEq for Keep {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an owner")
    }
}
