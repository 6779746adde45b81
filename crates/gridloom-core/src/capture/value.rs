//! Initial values of conditions.

use crate::error::{Result, bail};

/// A value that a condition can have at the start of each launch: a `bool`, any integer that fits
/// 32 bits, or an `Option<u32>`. `None` means 0, as in
/// [`Graph::condition`](crate::graph::Graph::condition).
///
/// ```
/// use gridloom_core::capture::ConditionDefault;
///
/// assert_eq!(true.default_value()?, Some(1));
/// assert_eq!(7i64.default_value()?, Some(7));
/// assert_eq!(None.default_value()?, None);
/// assert!((-1).default_value().is_err());
/// # Ok::<(), gridloom_core::Error>(())
/// ```
pub trait ConditionDefault {
    /// Returns the value of the condition. Fails if it does not fit.
    fn default_value(self) -> Result<Option<u32>>;
}

impl ConditionDefault for bool {
    fn default_value(self) -> Result<Option<u32>> {
        Ok(Some(u32::from(self)))
    }
}

impl ConditionDefault for Option<u32> {
    fn default_value(self) -> Result<Option<u32>> {
        Ok(self)
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl ConditionDefault for $integer {
            fn default_value(self) -> Result<Option<u32>> {
                match u32::try_from(self) {
                    Ok(value) => Ok(Some(value)),
                    Err(_) => bail!(
                        InvalidArgument,
                        "{self} as the value of a condition; it holds 0 to {}",
                        u32::MAX
                    ),
                }
            }
        }
    )*};
}
integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);
