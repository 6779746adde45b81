//! The optimisations, and the selection of some of them.

use std::fmt;
use std::str::FromStr;

/// An optimisation that can be switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Optimization {
    /// Removes redundant edges and empty nodes.
    Edges,
    /// Turns small fills and copies into kernels.
    Fills,
    /// Turns consecutive kernels of one block into steps of one kernel.
    Chains,
    /// Turns independent kernels into parts of one grid.
    Batches,
    /// Loops whose bodies fit one block become one kernel. The bodies of others are repeated, so
    /// that the device tests less often.
    Loops,
    /// Starts kernels before those they depend on have ended.
    EarlyStart,
    /// Turns small bodies of branches into kernels that test the value themselves.
    Branches,
}

impl Optimization {
    /// All optimisations, in the order in which they are made.
    pub const ALL: &'static [Optimization] = &[
        Optimization::Edges,
        Optimization::Loops,
        Optimization::Branches,
        Optimization::Chains,
        Optimization::Batches,
        Optimization::Fills,
        Optimization::EarlyStart,
    ];

    /// Returns the name that options and the environment use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Optimization::Edges => "edges",
            Optimization::Fills => "fills",
            Optimization::Chains => "chains",
            Optimization::Batches => "batches",
            Optimization::Loops => "loops",
            Optimization::Branches => "branches",
            Optimization::EarlyStart => "early-start",
        }
    }
}

/// A set of optimisations.
///
/// ```
/// use gridloom_opt::{Optimization, Optimizations};
///
/// let wanted: Optimizations = "chains,loops".parse()?;
/// assert!(wanted.has(Optimization::Loops) && !wanted.has(Optimization::Batches));
/// assert_eq!("on".parse(), Ok(Optimizations::ALL));
/// assert_eq!("off".parse(), Ok(Optimizations::NONE));
/// assert!("chians".parse::<Optimizations>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Optimizations(u8);

impl Optimizations {
    /// No optimisations: a graph runs as it was written.
    pub const NONE: Optimizations = Optimizations(0);
    /// All optimisations.
    pub const ALL: Optimizations = Optimizations((1 << Optimization::ALL.len()) - 1);

    /// Returns the set of these optimisations.
    #[must_use]
    pub fn of(passes: &[Optimization]) -> Self {
        Optimizations(passes.iter().fold(0, |bits, &pass| bits | 1 << pass as u8))
    }

    /// Returns whether an optimisation is in the set.
    #[must_use]
    pub fn has(self, pass: Optimization) -> bool {
        self.0 & 1 << pass as u8 != 0
    }

    /// Returns the set without these optimisations.
    #[must_use]
    pub fn without(self, passes: &[Optimization]) -> Self {
        Optimizations(self.0 & !Optimizations::of(passes).0)
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Optimizations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(Optimization::ALL.iter().filter(|&&pass| self.has(pass)).map(|pass| pass.name()))
            .finish()
    }
}

impl FromStr for Optimizations {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "on" | "all" | "1" => return Ok(Optimizations::ALL),
            "off" | "none" | "0" | "" => return Ok(Optimizations::NONE),
            _ => {}
        }
        let mut passes = Optimizations::NONE;
        for word in text.split(',').map(str::trim) {
            let known = Optimization::ALL.iter().copied().find(|pass| pass.name() == word);
            let names: Vec<&str> = Optimization::ALL.iter().map(|pass| pass.name()).collect();
            let pass = known.ok_or_else(|| {
                format!(
                    "no optimisation is called {word:?}; there are auto, on, off, and any of {}",
                    names.join(", ")
                )
            })?;
            passes.0 |= 1 << pass as u8;
        }
        Ok(passes)
    }
}

/// When a graph is optimised, and how.
///
/// ```
/// use gridloom_opt::{Optimizations, Optimize};
///
/// assert_eq!(Optimize::default(), Optimize::Automatic);
/// assert_eq!("auto".parse(), Ok(Optimize::Automatic));
/// assert_eq!("off".parse(), Ok(Optimize::from(Optimizations::NONE)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Optimize {
    /// While the graph runs, once it was launched a number of times.
    #[default]
    Automatic,
    /// When the graph is instantiated, with these optimisations. Instantiation then takes as long
    /// as the device takes to compile the new kernels.
    Now(Optimizations),
}

impl From<Optimizations> for Optimize {
    fn from(wanted: Optimizations) -> Self {
        Optimize::Now(wanted)
    }
}

impl FromStr for Optimize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto" | "automatic" => Ok(Optimize::Automatic),
            other => other.parse().map(Optimize::Now),
        }
    }
}
