//! Instructions between registers, branches, and those outside the model.

use super::operand::{Names, flag, modifier, space};
use super::{memory, sync};
use crate::model::ScalarType;
use crate::model::op::{
    BfindMode, BitsOp, CallTarget, CompareOp, ControlOp, ConvertOp, Cvt, FloatOp, FloatPrecision, IntOp, Op,
    PrmtMode, Unsupported,
};

pub(super) fn op(n: &Names<'_>, op: &Op) -> String {
    match op {
        Op::Int(op) => int(n, op),
        Op::Bits(op) => bits(n, op),
        Op::Float(op) => float(n, op),
        Op::Compare(op) => compare(n, op),
        Op::Convert(op) => convert(n, op),
        Op::Memory(op) => memory::memory(n, op),
        Op::Atomic(op) => memory::atomic(n, op),
        Op::Control(op) => control(n, op),
        Op::Sync(op) => sync::sync(n, op),
        Op::Warp(op) => sync::warp(n, op),
        Op::Unsupported(op) => unsupported(n, op),
    }
}

fn int(n: &Names<'_>, op: &IntOp) -> String {
    match op {
        IntOp::Arith { op, ty, sat, relu, dst, a, b } => {
            format!(
                "{op}{}{}.{ty} {}{}",
                flag(*sat, ".sat"),
                flag(*relu, ".relu"),
                n.reg(*dst),
                n.more([a, b])
            )
        }
        IntOp::MulWide { ty, dst, a, b } => format!("mul.wide.{ty} {}{}", n.reg(*dst), n.more([a, b])),
        IntOp::Mul24 { half, ty, dst, a, b } => {
            format!("mul24.{half}.{ty} {}{}", n.reg(*dst), n.more([a, b]))
        }
        IntOp::Mad { mode, ty, sat, dst, a, b, c } => {
            format!("mad.{mode}{}.{ty} {}{}", flag(*sat, ".sat"), n.reg(*dst), n.more([a, b, c]))
        }
        IntOp::Mad24 { half, ty, sat, dst, a, b, c } => {
            format!("mad24.{half}{}.{ty} {}{}", flag(*sat, ".sat"), n.reg(*dst), n.more([a, b, c]))
        }
        IntOp::Carry { subtract, carry_in, carry_out, ty, dst, a, b } => {
            let name = if *subtract { "sub" } else { "add" };
            let (carry, cc) = (flag(*carry_in, "c"), flag(*carry_out, ".cc"));
            format!("{name}{carry}{cc}.{ty} {}{}", n.reg(*dst), n.more([a, b]))
        }
        IntOp::MadCarry { half, carry_in, carry_out, ty, dst, a, b, c } => {
            let (carry, cc) = (flag(*carry_in, "c"), flag(*carry_out, ".cc"));
            format!("mad{carry}.{half}{cc}.{ty} {}{}", n.reg(*dst), n.more([a, b, c]))
        }
        IntOp::Sad { ty, dst, a, b, c } => format!("sad.{ty} {}{}", n.reg(*dst), n.more([a, b, c])),
        IntOp::Abs { ty, dst, a } => format!("abs.{ty} {}{}", n.reg(*dst), n.more([a])),
        IntOp::Neg { ty, dst, a } => format!("neg.{ty} {}{}", n.reg(*dst), n.more([a])),
        IntOp::Dp4a { a_ty, b_ty, dst, a, b, c } => {
            format!("dp4a.{a_ty}.{b_ty} {}{}", n.reg(*dst), n.more([a, b, c]))
        }
        IntOp::Dp2a { half, a_ty, b_ty, dst, a, b, c } => {
            format!("dp2a.{half}.{a_ty}.{b_ty} {}{}", n.reg(*dst), n.more([a, b, c]))
        }
    }
}

fn bits(n: &Names<'_>, op: &BitsOp) -> String {
    match op {
        BitsOp::Logic { op, ty, dst, a, b } => format!("{op}.{ty} {}{}", n.reg(*dst), n.more([a, b])),
        BitsOp::Not { ty, dst, a } => format!("not.{ty} {}{}", n.reg(*dst), n.more([a])),
        BitsOp::Cnot { ty, dst, a } => format!("cnot.{ty} {}{}", n.reg(*dst), n.more([a])),
        BitsOp::Lop3 { dst, pred, a, b, c, lut } => {
            let word = modifier(pred.map(|pred| pred.op));
            let dsts = n.pair(*dst, pred.map(|pred| pred.dst));
            let q = pred.map(|pred| format!(", {}", n.pred(&pred.q))).unwrap_or_default();
            format!("lop3{word}.b32 {dsts}{}, {lut}{q}", n.more([a, b, c]))
        }
        BitsOp::Shl { ty, dst, a, b } => format!("shl.{ty} {}{}", n.reg(*dst), n.more([a, b])),
        BitsOp::Shr { ty, dst, a, b } => format!("shr.{ty} {}{}", n.reg(*dst), n.more([a, b])),
        BitsOp::Shf { direction, mode, dst, a, b, c } => {
            format!("shf.{direction}.{mode}.b32 {}{}", n.reg(*dst), n.more([a, b, c]))
        }
        BitsOp::Bfe { ty, dst, a, b, c } => format!("bfe.{ty} {}{}", n.reg(*dst), n.more([a, b, c])),
        BitsOp::Bfi { ty, dst, a, b, c, d } => format!("bfi.{ty} {}{}", n.reg(*dst), n.more([a, b, c, d])),
        BitsOp::Bfind { ty, mode, dst, a } => {
            format!(
                "bfind{}.{ty} {}{}",
                flag(*mode == BfindMode::ShiftAmount, ".shiftamt"),
                n.reg(*dst),
                n.more([a])
            )
        }
        BitsOp::Brev { ty, dst, a } => format!("brev.{ty} {}{}", n.reg(*dst), n.more([a])),
        BitsOp::Clz { ty, dst, a } => format!("clz.{ty} {}{}", n.reg(*dst), n.more([a])),
        BitsOp::Popc { ty, dst, a } => format!("popc.{ty} {}{}", n.reg(*dst), n.more([a])),
        BitsOp::Fns { dst, mask, base, offset } => {
            format!("fns.b32 {}{}", n.reg(*dst), n.more([mask, base, offset]))
        }
        BitsOp::Prmt { mode, dst, a, b, c } => {
            let mode = modifier((*mode != PrmtMode::Generic).then_some(mode));
            format!("prmt.b32{mode} {}{}", n.reg(*dst), n.more([a, b, c]))
        }
        BitsOp::Szext { mode, ty, dst, a, b } => {
            format!("szext.{mode}.{ty} {}{}", n.reg(*dst), n.more([a, b]))
        }
        BitsOp::Bmsk { mode, dst, a, b } => format!("bmsk.{mode}.b32 {}{}", n.reg(*dst), n.more([a, b])),
    }
}

fn precision(precision: FloatPrecision) -> String {
    match precision {
        FloatPrecision::Approx => ".approx".to_owned(),
        FloatPrecision::Full => ".full".to_owned(),
        FloatPrecision::Rounded(rounding) => format!(".{rounding}"),
    }
}

fn float(n: &Names<'_>, op: &FloatOp) -> String {
    match op {
        FloatOp::Arith { op, ty, rounding, ftz, sat, dst, a, b } => {
            let mods = format!("{}{}{}", modifier(*rounding), flag(*ftz, ".ftz"), flag(*sat, ".sat"));
            format!("{op}{mods}.{ty} {}{}", n.reg(*dst), n.more([a, b]))
        }
        FloatOp::Fma { ty, rounding, ftz, sat, relu, oob, dst, a, b, c } => {
            let mods =
                [flag(*ftz, ".ftz"), flag(*sat, ".sat"), flag(*oob, ".oob"), flag(*relu, ".relu")].concat();
            format!("fma.{rounding}{mods}.{ty} {}{}", n.reg(*dst), n.more([a, b, c]))
        }
        FloatOp::Mad { ty, rounding, ftz, sat, dst, a, b, c } => {
            let mods = format!("{}{}{}", modifier(*rounding), flag(*ftz, ".ftz"), flag(*sat, ".sat"));
            format!("mad{mods}.{ty} {}{}", n.reg(*dst), n.more([a, b, c]))
        }
        FloatOp::Div { ty, precision: how, ftz, dst, a, b } => {
            format!("div{}{}.{ty} {}{}", precision(*how), flag(*ftz, ".ftz"), n.reg(*dst), n.more([a, b]))
        }
        FloatOp::Rcp { ty, precision: how, ftz, dst, a } => {
            format!("rcp{}{}.{ty} {}{}", precision(*how), flag(*ftz, ".ftz"), n.reg(*dst), n.more([a]))
        }
        FloatOp::Sqrt { ty, precision: how, ftz, dst, a } => {
            format!("sqrt{}{}.{ty} {}{}", precision(*how), flag(*ftz, ".ftz"), n.reg(*dst), n.more([a]))
        }
        FloatOp::Approx { op, ty, ftz, dst, a } => {
            format!("{op}.approx{}.{ty} {}{}", flag(*ftz, ".ftz"), n.reg(*dst), n.more([a]))
        }
        FloatOp::Abs { ty, ftz, dst, a } => {
            format!("abs{}.{ty} {}{}", flag(*ftz, ".ftz"), n.reg(*dst), n.more([a]))
        }
        FloatOp::Neg { ty, ftz, dst, a } => {
            format!("neg{}.{ty} {}{}", flag(*ftz, ".ftz"), n.reg(*dst), n.more([a]))
        }
        FloatOp::MinMax { op, ty, ftz, nan, xorsign_abs, abs, dst, a, b, c } => {
            let sign = if *xorsign_abs { ".xorsign.abs" } else { flag(*abs, ".abs") };
            let mods = [flag(*ftz, ".ftz"), flag(*nan, ".NaN"), sign].concat();
            format!("{op}{mods}.{ty} {}{}{}", n.reg(*dst), n.more([a, b]), n.more(c))
        }
        FloatOp::Copysign { ty, dst, a, b } => format!("copysign.{ty} {}{}", n.reg(*dst), n.more([a, b])),
        FloatOp::Testp { op, ty, dst, a } => format!("testp.{op}.{ty} {}{}", n.reg(*dst), n.more([a])),
    }
}

fn compare(n: &Names<'_>, op: &CompareOp) -> String {
    match op {
        CompareOp::Set { cmp, combine, ftz, dst_ty, ty, dst, a, b } => {
            let mods = format!("{}{}", modifier(combine.map(|combine| combine.op)), flag(*ftz, ".ftz"));
            let c = combine.map(|combine| format!(", {}", n.pred(&combine.pred))).unwrap_or_default();
            format!("set.{cmp}{mods}.{dst_ty}.{ty} {}{}{c}", n.reg(*dst), n.more([a, b]))
        }
        CompareOp::Setp { cmp, combine, ftz, ty, p, q, a, b } => {
            let mods = format!("{}{}", modifier(combine.map(|combine| combine.op)), flag(*ftz, ".ftz"));
            let c = combine.map(|combine| format!(", {}", n.pred(&combine.pred))).unwrap_or_default();
            format!("setp.{cmp}{mods}.{ty} {}{}{c}", n.pair(*p, *q), n.more([a, b]))
        }
        CompareOp::Selp { ty, dst, a, b, cond } => {
            format!("selp.{ty} {}{}, {}", n.reg(*dst), n.more([a, b]), n.pred(cond))
        }
        CompareOp::Slct { ty, cond_ty, ftz, dst, a, b, c } => {
            format!("slct{}.{ty}.{cond_ty} {}{}", flag(*ftz, ".ftz"), n.reg(*dst), n.more([a, b, c]))
        }
    }
}

fn cvt(n: &Names<'_>, cvt: &Cvt) -> String {
    let (mut first, mut second) = (flag(cvt.satfinite, ".satfinite"), flag(cvt.relu, ".relu"));
    // The manual has these two the other way round for the 16-bit formats.
    if matches!(cvt.dst_ty, ScalarType::F16 | ScalarType::F16x2 | ScalarType::Bf16 | ScalarType::Bf16x2) {
        std::mem::swap(&mut first, &mut second);
    }
    let mods =
        [flag(cvt.ftz, ".ftz"), first, second, flag(cvt.sat, ".sat"), flag(cvt.scaled, ".scaled::n2::ue8m0")]
            .concat();
    // Two sources are two operands; four are a vector.
    let srcs = match cvt.srcs.len() {
        0..=2 => n.more(&cvt.srcs),
        _ => format!(", {}", n.srcs(&cvt.srcs)),
    };
    format!(
        "cvt{}{mods}.{}.{} {}{srcs}{}{}",
        modifier(cvt.rounding),
        cvt.dst_ty,
        cvt.src_ty,
        n.reg(cvt.dst),
        n.more(&cvt.random),
        n.more(&cvt.scale)
    )
}

fn convert(n: &Names<'_>, op: &ConvertOp) -> String {
    match op {
        ConvertOp::Cvt(op) => cvt(n, op),
        ConvertOp::CvtPack { dst_ty, ty, dst, a, b, c } => {
            let third = flag(c.is_some(), ".b32");
            format!("cvt.pack.sat.{dst_ty}.{ty}{third} {}{}{}", n.reg(*dst), n.more([a, b]), n.more(c))
        }
        ConvertOp::Cvta { to, space: from, ty, dst, src } => {
            format!("cvta{}{}.{ty} {}{}", flag(*to, ".to"), space(*from), n.reg(*dst), n.more([src]))
        }
        ConvertOp::Isspacep { space: asked, dst, src } => {
            format!("isspacep{} {}{}", space(*asked), n.reg(*dst), n.more([src]))
        }
        ConvertOp::Mapa { space: from, ty, dst, src, rank } => {
            format!("mapa{}.{ty} {}{}", space(*from), n.reg(*dst), n.more([src, rank]))
        }
        ConvertOp::Getctarank { space: from, ty, dst, src } => {
            format!("getctarank{}.{ty} {}{}", space(*from), n.reg(*dst), n.more([src]))
        }
        ConvertOp::Mov { ty, dst, src } => format!("mov.{ty} {}{}", n.reg(*dst), n.more([src])),
        ConvertOp::MovVector { ty, dsts, srcs } => {
            format!("mov.v{}.{ty} {}, {}", srcs.len(), n.dsts(dsts), n.srcs(srcs))
        }
        ConvertOp::Pack { ty, dst, srcs } => format!("mov.{ty} {}, {}", n.reg(*dst), n.srcs(srcs)),
        ConvertOp::Unpack { ty, dsts, src } => format!("mov.{ty} {}{}", n.dsts(dsts), n.more([src])),
    }
}

fn control(n: &Names<'_>, op: &ControlOp) -> String {
    let body = n.function.body.as_ref();
    match op {
        ControlOp::Bra { uni, target } => format!("bra{} {}", flag(*uni, ".uni"), n.label(*target)),
        ControlOp::BrxIdx { uni, index, table } => {
            let table =
                body.and_then(|body| body.branch_tables.get(table.index())).map_or("", |table| &table.name);
            format!("brx.idx{} {}, {table}", flag(*uni, ".uni"), n.src(index))
        }
        ControlOp::Call { uni, target, returns, args } => {
            let returned =
                if returns.is_empty() { String::new() } else { format!("{}, ", n.call_args(returns)) };
            let passed = if args.is_empty() { String::new() } else { format!(", {}", n.call_args(args)) };
            let (callee, table) = match target {
                CallTarget::Direct(id) => (n.symbol(*id).to_owned(), None),
                CallTarget::Prototype(reg, id) => {
                    (n.reg(*reg), body.and_then(|body| body.prototypes.get(id.index())).map(|p| &p.name))
                }
                CallTarget::Table(reg, id) => {
                    (n.reg(*reg), body.and_then(|body| body.call_tables.get(id.index())).map(|t| &t.name))
                }
            };
            let table = table.map(|name| format!(", {name}")).unwrap_or_default();
            format!("call{} {returned}{callee}{passed}{table}", flag(*uni, ".uni"))
        }
        ControlOp::Ret { uni } => format!("ret{}", flag(*uni, ".uni")),
        ControlOp::Exit => "exit".to_owned(),
        ControlOp::Trap => "trap".to_owned(),
        ControlOp::Brkpt => "brkpt".to_owned(),
        ControlOp::Nanosleep { duration } => format!("nanosleep.u32 {}", n.src(duration)),
        ControlOp::GridDepControl { action } => format!("griddepcontrol.{action}"),
        ControlOp::PmEvent { mask, event } => format!("pmevent{} {}", flag(*mask, ".mask"), n.src(event)),
        ControlOp::SetMaxNReg { increase, count } => {
            format!("setmaxnreg.{}.sync.aligned.u32 {count}", if *increase { "inc" } else { "dec" })
        }
    }
}

/// Tokens with one space between them read back as the same tokens.
fn unsupported(n: &Names<'_>, op: &Unsupported) -> String {
    let mut text = op.full_name();
    for token in &op.operands {
        text.push(' ');
        text.push_str(&n.raw(token));
    }
    text
}
