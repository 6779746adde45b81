//! Special registers, and the position of a group in its block.

use super::Emitter;
use super::value::Val;
use crate::analysis::flow::Role;
use crate::native::Class;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Value};
use gridloom_interp::code::Op;
use gridloom_interp::compiled::Machine;
use gridloom_ptx::{Dim, DimSpecial, PlainSpecial, SpecialReg};
use std::mem::offset_of;

/// Returns whether reading a special register is compiled. Clocks are not, because the interpreter
/// counts them.
pub(crate) fn special_role(register: SpecialReg) -> Role {
    match register {
        SpecialReg::Dim(..) => Role::Compiled,
        SpecialReg::Plain(
            PlainSpecial::LaneId
            | PlainSpecial::WarpId
            | PlainSpecial::NWarpId
            | PlainSpecial::LaneMaskEq
            | PlainSpecial::LaneMaskLe
            | PlainSpecial::LaneMaskLt
            | PlainSpecial::LaneMaskGe
            | PlainSpecial::LaneMaskGt
            | PlainSpecial::GridId
            | PlainSpecial::DynamicSmemSize,
        ) => Role::Compiled,
        _ => Role::Interpreted,
    }
}

fn component(dim: Dim) -> usize {
    match dim {
        Dim::X => 0,
        Dim::Y => 1,
        Dim::Z => 2,
    }
}

impl Emitter<'_> {
    /// Returns which components of `%tid` the function reads that the number of a thread does not
    /// tell.
    pub(super) fn dimensions(&self) -> [bool; 3] {
        let mut read = [false; 3];
        if self.plan.is_row {
            return read;
        }
        for pc in self.plan.flow.range.clone() {
            if let Op::Special { register: SpecialReg::Dim(DimSpecial::Tid, dim), .. } =
                &self.plan.flow.instruction(pc).op
            {
                // The dimensions before it tell when it changes.
                read[..=component(*dim)].fill(true);
            }
        }
        read
    }

    /// Returns the position of a thread in its block, in the requested dimensions.
    pub(super) fn start_position(&mut self, thread: Value, read: [bool; 3]) -> [Option<Value>; 3] {
        let mut position = [None; 3];
        let mut rest = thread;
        for (i, slot) in position.iter_mut().enumerate() {
            if !read[i] {
                break;
            }
            if i == 2 {
                *slot = Some(rest);
                break;
            }
            let extent = self.machine_field(offset_of!(Machine, block) + 4 * i, I32);
            *slot = Some(self.b.ins().urem(rest, extent));
            rest = self.b.ins().udiv(rest, extent);
        }
        position
    }

    /// Returns the position of the next group.
    pub(super) fn next_position(&mut self) -> Vec<Value> {
        let [Some(x), Some(_), _] = self.position else {
            let lanes = self.b.ins().iconst(I32, i64::from(self.lanes));
            return self.moved_on(0, lanes);
        };
        // The next group is mostly in the same row. A predictable branch is faster than the sums.
        let (next_row, done) = (self.b.create_block(), self.b.create_block());
        let others: Vec<Value> = self.position.iter().skip(1).copied().flatten().collect();
        let sum = self.b.ins().iadd_imm_u(x, i64::from(self.lanes));
        let extent = self.machine_field(offset_of!(Machine, block), I32);
        let over = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, sum, extent);
        let same_row: Vec<BlockArg> = [sum].into_iter().chain(others).map(BlockArg::from).collect();
        same_row.iter().for_each(|_| {
            self.b.append_block_param(done, I32);
        });
        self.b.ins().brif(over, next_row, &[], done, &same_row);
        self.b.switch_to_block(next_row);
        let zero = self.b.ins().iconst(I32, 0);
        let one = self.b.ins().iconst(I32, 1);
        let rest = self.moved_on(1, one);
        let arguments: Vec<BlockArg> = [zero].into_iter().chain(rest).map(BlockArg::from).collect();
        self.b.ins().jump(done, &arguments);
        self.b.switch_to_block(done);
        self.b.block_params(done).to_vec()
    }

    /// Returns the position from a dimension on, advanced by `more`.
    fn moved_on(&mut self, from: usize, mut more: Value) -> Vec<Value> {
        let mut next = Vec::new();
        for i in from..3 {
            let Some(at) = self.position[i] else { break };
            let sum = self.b.ins().iadd(at, more);
            if i == 2 {
                next.push(sum);
                break;
            }
            let extent = self.machine_field(offset_of!(Machine, block) + 4 * i, I32);
            let over = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, sum, extent);
            // A group ends with its row, unless there is only one row.
            let zero = self.b.ins().iconst(I32, 0);
            next.push(self.b.ins().select(over, zero, sum));
            more = self.b.ins().uextend(I32, over);
        }
        next
    }

    /// Returns a special register and its class.
    pub(super) fn special(&mut self, register: SpecialReg) -> (Val, Class) {
        let field = |emitter: &mut Self, offset: usize, dim: Dim| {
            let value = emitter.machine_field(offset + 4 * component(dim), I32);
            (Val::One(value), Class::B32)
        };
        match register {
            SpecialReg::Dim(register, dim) => match register {
                DimSpecial::Tid => {
                    let value = self.position[component(dim)].unwrap_or(self.thread);
                    let differs = dim == Dim::X && self.lanes > 1;
                    (if differs { Val::Affine(value, 1) } else { Val::One(value) }, Class::B32)
                }
                DimSpecial::NTid => field(self, offset_of!(Machine, block), dim),
                DimSpecial::CtaId | DimSpecial::ClusterId => {
                    (Val::One(self.index[component(dim)]), Class::B32)
                }
                DimSpecial::NCtaId | DimSpecial::NClusterId => field(self, offset_of!(Machine, grid), dim),
                DimSpecial::ClusterCtaId => (Val::One(self.constant(0, Class::B32)), Class::B32),
                DimSpecial::ClusterNCtaId => (Val::One(self.constant(1, Class::B32)), Class::B32),
            },
            SpecialReg::Plain(PlainSpecial::GridId) => {
                (Val::One(self.machine_field(offset_of!(Machine, grid_id), I64)), Class::B64)
            }
            SpecialReg::Plain(PlainSpecial::DynamicSmemSize) => {
                (Val::One(self.machine_field(offset_of!(Machine, dynamic_shared), I32)), Class::B32)
            }
            SpecialReg::Plain(PlainSpecial::WarpId) => {
                (Val::One(self.b.ins().ushr_imm_u(self.thread, 5)), Class::B32)
            }
            SpecialReg::Plain(PlainSpecial::NWarpId) => {
                let mut threads = self.b.ins().iconst(I32, 1);
                for i in 0..3 {
                    let extent = self.machine_field(offset_of!(Machine, block) + 4 * i, I32);
                    threads = self.b.ins().imul(threads, extent);
                }
                let threads = self.b.ins().iadd_imm_u(threads, 31);
                (Val::One(self.b.ins().ushr_imm_u(threads, 5)), Class::B32)
            }
            SpecialReg::Plain(PlainSpecial::LaneId) => {
                let lane = self.b.ins().band_imm_u(self.thread, 31);
                (if self.lanes > 1 { Val::Affine(lane, 1) } else { Val::One(lane) }, Class::B32)
            }
            SpecialReg::Plain(register) => {
                let values: Vec<Value> = (0..self.lanes).map(|lane| self.lane_mask(register, lane)).collect();
                let value = if self.lanes == 1 {
                    Val::One(values[0])
                } else {
                    Val::Many(self.gather(&values, Class::B32))
                };
                (value, Class::B32)
            }
            _ => (Val::One(self.constant(0, Class::B32)), Class::B32),
        }
    }

    /// Returns `%lanemask_…` in one thread of the group.
    fn lane_mask(&mut self, register: PlainSpecial, lane: u32) -> Value {
        let thread = self.b.ins().iadd_imm_u(self.thread, i64::from(lane));
        let lane = self.b.ins().band_imm_u(thread, 31);
        let one = self.b.ins().iconst(I32, 1);
        let bit = self.b.ins().ishl(one, lane);
        let below = self.b.ins().iadd_imm_s(bit, -1);
        let up_to = self.b.ins().bor(bit, below);
        match register {
            PlainSpecial::LaneMaskLe => up_to,
            PlainSpecial::LaneMaskLt => below,
            PlainSpecial::LaneMaskGe => self.b.ins().bnot(below),
            PlainSpecial::LaneMaskGt => self.b.ins().bnot(up_to),
            _ => bit,
        }
    }

    /// Returns the address of a variable of the frame, in local space.
    pub(super) fn frame_address(&mut self, offset: u32) -> Val {
        if self.plan.flow.is_kernel {
            return Val::One(self.constant(offset.into(), Class::B64));
        }
        let frames = self.machine_field(offset_of!(Machine, frames), I64);
        let index = self.b.ins().uextend(I64, self.thread);
        let at = self.b.ins().ishl_imm_u(index, 2);
        let at = self.b.ins().iadd(frames, at);
        let frame = self.b.ins().load(I32, MemFlagsData::trusted(), at, 0);
        let frame = self.b.ins().iadd_imm_u(frame, i64::from(offset));
        Val::One(self.b.ins().uextend(I64, frame))
    }
}
