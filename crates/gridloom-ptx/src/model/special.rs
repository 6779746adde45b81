//! Special registers.

use super::names::words;

words! {
    /// One of the three components of a launch index.
    pub enum Dim { X = "x", Y = "y", Z = "z", }
}

words! {
    /// A special register without a component or number.
    pub enum PlainSpecial {
        LaneId = "%laneid",
        WarpId = "%warpid",
        NWarpId = "%nwarpid",
        SmId = "%smid",
        NSmId = "%nsmid",
        GridId = "%gridid",
        LaneMaskEq = "%lanemask_eq",
        LaneMaskLe = "%lanemask_le",
        LaneMaskLt = "%lanemask_lt",
        LaneMaskGe = "%lanemask_ge",
        LaneMaskGt = "%lanemask_gt",
        Clock = "%clock",
        ClockHi = "%clock_hi",
        Clock64 = "%clock64",
        GlobalTimer = "%globaltimer",
        GlobalTimerLo = "%globaltimer_lo",
        GlobalTimerHi = "%globaltimer_hi",
        DynamicSmemSize = "%dynamic_smem_size",
        TotalSmemSize = "%total_smem_size",
        AggrSmemSize = "%aggr_smem_size",
        ClusterCtaRank = "%cluster_ctarank",
        ClusterNCtaRank = "%cluster_nctarank",
        IsExplicitCluster = "%is_explicit_cluster",
        CurrentGraphExec = "%current_graph_exec",
        ReservedSmemOffsetBegin = "%reserved_smem_offset_begin",
        ReservedSmemOffsetEnd = "%reserved_smem_offset_end",
        ReservedSmemOffsetCap = "%reserved_smem_offset_cap",
    }
}

words! {
    /// A special register with `.x`, `.y` and `.z`.
    pub enum DimSpecial {
        Tid = "%tid",
        NTid = "%ntid",
        CtaId = "%ctaid",
        NCtaId = "%nctaid",
        ClusterId = "%clusterid",
        NClusterId = "%nclusterid",
        ClusterCtaId = "%cluster_ctaid",
        ClusterNCtaId = "%cluster_nctaid",
    }
}

/// A read-only register that the hardware provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecialReg {
    /// `%laneid`, `%clock64` and the like.
    Plain(PlainSpecial),
    /// `%tid.x` and the like.
    Dim(DimSpecial, Dim),
    /// `%envreg<0..31>`.
    EnvReg(u8),
    /// `%pm<0..7>`: a performance counter.
    Pm(u8),
    /// `%pm<0..7>_64`: a performance counter of 64 bits.
    Pm64(u8),
    /// `%reserved_smem_offset_<0..1>`.
    ReservedSmemOffset(u8),
}

impl SpecialReg {
    /// Returns the register named `name`, with `dim` the component after it, if there is such a
    /// register.
    #[must_use]
    pub fn from_name(name: &str, dim: Option<Dim>) -> Option<Self> {
        if let Some(dim) = dim {
            return DimSpecial::from_word(name).map(|special| SpecialReg::Dim(special, dim));
        }
        if let Some(plain) = PlainSpecial::from_word(name) {
            return Some(SpecialReg::Plain(plain));
        }
        let number = |text: &str, limit: u8| -> Option<u8> {
            let value: u8 = text.parse().ok()?;
            (value < limit && value.to_string() == text).then_some(value)
        };
        if let Some(rest) = name.strip_prefix("%envreg") {
            return number(rest, 32).map(SpecialReg::EnvReg);
        }
        if let Some(rest) = name.strip_prefix("%reserved_smem_offset_") {
            return number(rest, 2).map(SpecialReg::ReservedSmemOffset);
        }
        if let Some(rest) = name.strip_prefix("%pm") {
            return match rest.strip_suffix("_64") {
                Some(rest) => number(rest, 8).map(SpecialReg::Pm64),
                None => number(rest, 8).map(SpecialReg::Pm),
            };
        }
        None
    }

    /// Returns whether a name is that of a special register, or of a range whose members would be.
    #[must_use]
    pub fn is_reserved(name: &str) -> bool {
        matches!(name, "%envreg" | "%pm" | "%reserved_smem_offset_")
            || DimSpecial::from_word(name).is_some()
            || SpecialReg::from_name(name, None).is_some()
    }

    /// Returns the width of the register in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            SpecialReg::Plain(
                PlainSpecial::Clock64
                | PlainSpecial::GlobalTimer
                | PlainSpecial::GridId
                | PlainSpecial::CurrentGraphExec,
            )
            | SpecialReg::Pm64(_) => 64,
            SpecialReg::Plain(PlainSpecial::IsExplicitCluster) => 1,
            _ => 32,
        }
    }
}

impl std::fmt::Display for SpecialReg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SpecialReg::Plain(plain) => f.write_str(plain.as_str()),
            SpecialReg::Dim(special, dim) => write!(f, "{special}.{dim}"),
            SpecialReg::EnvReg(n) => write!(f, "%envreg{n}"),
            SpecialReg::Pm(n) => write!(f, "%pm{n}"),
            SpecialReg::Pm64(n) => write!(f, "%pm{n}_64"),
            SpecialReg::ReservedSmemOffset(n) => write!(f, "%reserved_smem_offset_{n}"),
        }
    }
}
