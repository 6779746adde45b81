//! Communication within a warp.
#![allow(missing_docs, reason = "operand fields carry the names of the PTX manual's syntax lines")]

use crate::model::names::{RegId, words};
use crate::model::operand::{Operand, PredOperand};
use crate::model::types::ScalarType;

words! {
    /// Which lane a shuffle reads.
    pub enum ShuffleMode { Up = "up", Down = "down", Bfly = "bfly", Idx = "idx", }
}

words! {
    /// What a vote computes.
    pub enum VoteMode { All = "all", Any = "any", Uni = "uni", Ballot = "ballot", }
}

words! {
    /// What `match` computes.
    pub enum MatchMode { Any = "any", All = "all", }
}

words! {
    /// The reduction of `redux`.
    pub enum ReduxOp {
        Add = "add", Min = "min", Max = "max", And = "and", Or = "or", Xor = "xor",
    }
}

/// Communication within a warp. A `mask` of `None` is the legacy form without `.sync`.
#[derive(Clone, Debug, PartialEq)]
pub enum WarpOp {
    /// `shfl d|p, a, b, c{, mask}`; `dst` or `pred` is `None` for `_` or when absent.
    Shfl {
        mode: ShuffleMode,
        dst: Option<RegId>,
        pred: Option<RegId>,
        a: Operand,
        b: Operand,
        c: Operand,
        mask: Option<Operand>,
    },
    /// `vote`; the destination is a predicate, or a `.b32` for [`VoteMode::Ballot`].
    Vote { mode: VoteMode, dst: RegId, pred: PredOperand, mask: Option<Operand> },
    /// `match.sync`; `pred` only with [`MatchMode::All`].
    Match {
        mode: MatchMode,
        ty: ScalarType,
        dst: Option<RegId>,
        pred: Option<RegId>,
        a: Operand,
        mask: Operand,
    },
    /// `redux.sync`.
    Redux { op: ReduxOp, ty: ScalarType, abs: bool, nan: bool, dst: RegId, src: Operand, mask: Operand },
    /// `activemask.b32`.
    ActiveMask { dst: RegId },
    /// `elect.sync d|p, mask`.
    Elect { dst: Option<RegId>, pred: RegId, mask: Operand },
}
