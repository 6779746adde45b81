//! CUDA versions, as drivers report them and as people write them.

use std::fmt;
use std::str::FromStr;

/// A CUDA version: `12.4`.
///
/// ```
/// use gridloom_cuda::CudaVersion;
///
/// let version: CudaVersion = "12.4".parse().unwrap();
/// assert_eq!(version, CudaVersion::new(12, 4));
/// assert!(version < CudaVersion::from_raw(13000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVersion(u32);

impl CudaVersion {
    /// Returns the newest PTX version that a driver of this version reads, if it is known. Drivers
    /// refuse newer versions, whatever the code uses.
    pub fn newest_ptx(self) -> Option<(u32, u32)> {
        Some(match (self.major(), self.minor()) {
            (12, minor @ 0..=5) => (8, minor),
            (12, 6) => (8, 5),
            (12, 7) => (8, 6),
            (12, 8) => (8, 7),
            (12, 9) => (8, 8),
            (13, minor @ 0..=2) => (9, minor),
            _ => return None,
        })
    }

    /// The oldest driver that Gridloom runs on.
    pub const OLDEST_SUPPORTED: Self = Self::new(12, 0);

    /// Creates the version `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self(major * 1000 + minor * 10)
    }

    /// Decodes `CUDA_VERSION` and the result of `cuDriverGetVersion`: 12040 is 12.4.
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the encoding of `CUDA_VERSION` and `cuDriverGetVersion`: 12.4 is 12040.
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Returns the number before the dot.
    pub const fn major(self) -> u32 {
        self.0 / 1000
    }

    /// Returns the number after the dot.
    pub const fn minor(self) -> u32 {
        self.0 % 1000 / 10
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}

impl fmt::Debug for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for a text that is not a CUDA version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a CUDA version: write it as `12.4` or `13`")]
pub struct ParseVersionError(String);

impl FromStr for CudaVersion {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseVersionError(text.to_owned());
        let (major, minor) = text.trim().split_once('.').unwrap_or((text.trim(), "0"));
        let major: u32 = major.parse().map_err(|_| wrong())?;
        let minor: u32 = minor.parse().map_err(|_| wrong())?;
        if major == 0 || major > 999 || minor > 99 {
            return Err(wrong());
        }
        Ok(Self::new(major, minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_reads_back_as_written() {
        for text in ["12.0", "12.4", "12.9", "13.0"] {
            assert_eq!(text.parse::<CudaVersion>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_bare_major_version_means_its_first_release() {
        assert_eq!("13".parse::<CudaVersion>().unwrap(), CudaVersion::new(13, 0));
    }

    #[test]
    fn versions_order_by_release() {
        assert!(CudaVersion::new(12, 9) < CudaVersion::new(13, 0));
        assert!(CudaVersion::new(12, 3) < CudaVersion::from_raw(12040));
    }

    #[test]
    fn what_is_no_version_is_refused_with_the_text() {
        for text in ["", "twelve", "12.x", "0.1", "-1", "12.4.1", "99999999999"] {
            let error = text.parse::<CudaVersion>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
        }
    }
}
