//! Owners: values that an operation keeps alive and Gridloom does not look into.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::user_code::UserValue;

/// A value that must live for as long as an operation can run, such as the owner of foreign memory,
/// code or data.
///
/// It may be dropped on any thread. A panic of its drop is caught. Two owners are equal if they are
/// the same `Arc`. Any `Arc` converts with `into`.
#[derive(Clone)]
pub struct Owner(UserValue<Arc<dyn Any + Send + Sync>>);

impl Owner {
    /// Creates an owner from a value of any type.
    pub fn new(owner: Arc<dyn Any + Send + Sync>) -> Self {
        Owner(UserValue::new(owner))
    }

    /// Returns the owned value.
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
