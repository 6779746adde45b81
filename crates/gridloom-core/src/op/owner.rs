//! Something that an operation needs and Gridloom knows nothing about.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::user_code::UserValue;

/// Whatever has to stay alive for as long as an operation can run: the owner of memory, code or data that is
/// not Gridloom's.
///
/// It may be dropped on any thread, and a panic of its drop goes no further. Two are equal where they are the
/// very same thing. Anything in an `Arc` is made one with `into`.
#[derive(Clone)]
pub struct Owner(UserValue<Arc<dyn Any + Send + Sync>>);

impl Owner {
    /// Makes an owner of something whose type is not known here.
    pub fn new(owner: Arc<dyn Any + Send + Sync>) -> Self {
        Owner(UserValue::new(owner))
    }

    /// Returns what is kept.
    pub fn get(&self) -> &Arc<dyn Any + Send + Sync> {
        &self.0
    }
}

impl<T: Any + Send + Sync> From<Arc<T>> for Owner {
    fn from(owner: Arc<T>) -> Self {
        Owner::new(owner)
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an owner")
    }
}
