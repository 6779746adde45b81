//! Special registers.

use super::lanes::{Slot, lanes_of};
use super::warp::{Context, Group, Warp};
use gridloom_ptx::{Dim, DimSpecial, PlainSpecial, ScalarType, SpecialReg};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns whether the CPU device supports a special register. Kernels that read another one are
/// refused when they are looked up.
pub(crate) fn is_supported(register: SpecialReg) -> bool {
    match register {
        SpecialReg::Plain(_) | SpecialReg::Dim(..) | SpecialReg::EnvReg(_) => true,
        SpecialReg::Pm(_) | SpecialReg::Pm64(_) | SpecialReg::ReservedSmemOffset(_) => false,
    }
}

/// Returns the type of a temporary that holds a special register.
pub(crate) fn type_of(register: SpecialReg) -> ScalarType {
    match register {
        SpecialReg::Dim(..)
        | SpecialReg::Plain(
            PlainSpecial::LaneId
            | PlainSpecial::WarpId
            | PlainSpecial::NWarpId
            | PlainSpecial::LaneMaskEq
            | PlainSpecial::LaneMaskLe
            | PlainSpecial::LaneMaskLt
            | PlainSpecial::LaneMaskGe
            | PlainSpecial::LaneMaskGt,
        ) => ScalarType::U32,
        _ => ScalarType::U64,
    }
}

/// Returns the coordinates of a linear index.
pub(crate) fn coordinates(linear: u64, extent: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = extent.map(|e| u64::from(e.max(1)));
    [(linear % x) as u32, (linear / x % y) as u32, (linear / (x * y)) as u32]
}

impl Warp {
    pub(crate) fn read_special(
        &mut self,
        cx: &Context<'_>,
        group: Group,
        active: u32,
        destination: Slot,
        register: SpecialReg,
    ) {
        let uniform = self.uniform_special(cx, register);
        for lane in lanes_of(active) {
            let value = uniform.unwrap_or_else(|| self.lane_special(cx, register, lane));
            self.registers(group.base, cx.code).set(destination, lane, value);
        }
    }

    /// Returns the value of a register that is the same in all lanes.
    fn uniform_special(&self, cx: &Context<'_>, register: SpecialReg) -> Option<u64> {
        let component = |values: [u32; 3], dim| match dim {
            Dim::X => values[0].into(),
            Dim::Y => values[1].into(),
            Dim::Z => values[2].into(),
        };
        let launch = cx.launch;
        let shared = u64::from(launch.kernel.shared_bytes()) + u64::from(launch.dynamic_shared);
        Some(match register {
            SpecialReg::Dim(register, dim) => match register {
                DimSpecial::Tid => return None,
                DimSpecial::NTid => component(launch.block, dim),
                DimSpecial::CtaId | DimSpecial::ClusterId => component(cx.block, dim),
                DimSpecial::NCtaId | DimSpecial::NClusterId => component(launch.grid, dim),
                // Without clusters, each block is a cluster of its own.
                DimSpecial::ClusterCtaId => 0,
                DimSpecial::ClusterNCtaId => 1,
            },
            SpecialReg::Plain(register) => match register {
                PlainSpecial::LaneId
                | PlainSpecial::LaneMaskEq
                | PlainSpecial::LaneMaskLe
                | PlainSpecial::LaneMaskLt
                | PlainSpecial::LaneMaskGe
                | PlainSpecial::LaneMaskGt => return None,
                PlainSpecial::WarpId => self.index.into(),
                PlainSpecial::NWarpId => launch.threads_per_block().div_ceil(32).into(),
                PlainSpecial::SmId | PlainSpecial::ClusterCtaRank | PlainSpecial::IsExplicitCluster => 0,
                PlainSpecial::NSmId | PlainSpecial::ClusterNCtaRank => 1,
                PlainSpecial::GridId => launch.grid_id,
                PlainSpecial::CurrentGraphExec => 0,
                PlainSpecial::Clock => self.steps & 0xffff_ffff,
                PlainSpecial::ClockHi => self.steps >> 32,
                PlainSpecial::Clock64 => self.steps,
                PlainSpecial::GlobalTimer => nanoseconds(),
                PlainSpecial::GlobalTimerLo => nanoseconds() & 0xffff_ffff,
                PlainSpecial::GlobalTimerHi => nanoseconds() >> 32,
                PlainSpecial::DynamicSmemSize => launch.dynamic_shared.into(),
                PlainSpecial::TotalSmemSize | PlainSpecial::AggrSmemSize => shared,
                PlainSpecial::ReservedSmemOffsetBegin
                | PlainSpecial::ReservedSmemOffsetEnd
                | PlainSpecial::ReservedSmemOffsetCap => 0,
            },
            SpecialReg::EnvReg(_)
            | SpecialReg::Pm(_)
            | SpecialReg::Pm64(_)
            | SpecialReg::ReservedSmemOffset(_) => 0,
        })
    }

    fn lane_special(&self, cx: &Context<'_>, register: SpecialReg, lane: u32) -> u64 {
        let bit = 1u32 << lane;
        let value = match register {
            SpecialReg::Dim(_, dim) => {
                let thread = coordinates(u64::from(self.index * 32 + lane), cx.launch.block);
                match dim {
                    Dim::X => thread[0],
                    Dim::Y => thread[1],
                    Dim::Z => thread[2],
                }
            }
            SpecialReg::Plain(PlainSpecial::LaneMaskEq) => bit,
            SpecialReg::Plain(PlainSpecial::LaneMaskLe) => bit | (bit - 1),
            SpecialReg::Plain(PlainSpecial::LaneMaskLt) => bit - 1,
            SpecialReg::Plain(PlainSpecial::LaneMaskGe) => !(bit - 1),
            SpecialReg::Plain(PlainSpecial::LaneMaskGt) => !(bit | (bit - 1)),
            _ => lane,
        };
        value.into()
    }
}

fn nanoseconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::coordinates;

    #[test]
    fn x_counts_fastest() {
        assert_eq!(coordinates(0, [4, 3, 2]), [0, 0, 0]);
        assert_eq!(coordinates(5, [4, 3, 2]), [1, 1, 0]);
        assert_eq!(coordinates(23, [4, 3, 2]), [3, 2, 1]);
    }
}
