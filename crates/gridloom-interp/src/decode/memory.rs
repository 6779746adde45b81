//! Loads, stores, copies, the stack and atomic operations.

use super::Refusal;
use super::function::FunctionDecoder;
use super::integer::with_integer;
use crate::code::{Alloca, Atomic, AtomicKind, CopyAsync, Extend, Load, Meaning, Op, Rmw, Store};
use crate::fault::Space;
use crate::lanes::{Slot, Source};
use crate::numeric::compare::{self, Extremum};
use crate::numeric::integer::{self, Integer};
use crate::numeric::{Bf16, F16, Float, atomic, packed};
use gridloom_ptx::op::{AtomOp, AtomicOp, AtomicRmw, FenceSem, MemoryOp, Order};
use gridloom_ptx::{self as ptx, Address, Operand, RegId, ScalarType};

impl FunctionDecoder<'_, '_> {
    pub(super) fn memory(&mut self, op: &MemoryOp) -> Result<(), Refusal> {
        match op {
            MemoryOp::Ld { ty, dsts, access } => {
                self.load(access.space, &access.addr, *ty, dsts, access.order == Order::Acquire)?;
            }
            MemoryOp::Ldu { space, ty, dsts, addr } => self.load(*space, addr, *ty, dsts, false)?,
            MemoryOp::St { ty, srcs, access } => {
                let operand = self.memory_operand(access.space, &access.addr)?;
                let mut sources = Vec::with_capacity(srcs.len());
                for operand in srcs {
                    if ty.bits() > 64 {
                        sources.extend(self.wide_sources(operand)?);
                    } else {
                        sources.push(self.source(operand, *ty)?);
                    }
                }
                let (size, align) = (ty.size().min(8), ty.size() * srcs.len() as u32);
                let release = access.order == Order::Release;
                self.emit(Op::Store(Box::new(Store { operand, size, sources, align, release })));
            }
            MemoryOp::Prefetch { .. }
            | MemoryOp::PrefetchUniform { .. }
            | MemoryOp::Discard { .. }
            | MemoryOp::ApplyPriority { .. }
            | MemoryOp::CpAsyncCommitGroup
            | MemoryOp::CpAsyncWaitGroup { .. }
            | MemoryOp::CpAsyncWaitAll => self.emit(Op::Nothing),
            // A policy is only used in cache hints, which are ignored.
            MemoryOp::CreatePolicyFractional { dst, .. }
            | MemoryOp::CreatePolicyRange { dst, .. }
            | MemoryOp::CreatePolicyCvt { dst, .. } => {
                let (d, zero) = (self.slot(*dst), self.constant(0));
                self.map_as(Meaning::Copy, [d], [zero], |[a]| [a]);
            }
            MemoryOp::CpAsync(copy) => {
                let (to, from) = (
                    self.memory_operand(copy.dst_space, &copy.dst)?,
                    self.memory_operand(ptx::Space::Global, &copy.src)?,
                );
                let source_size = match &copy.src_size {
                    Some(size) => Some(self.source(size, ScalarType::U32)?),
                    None => None,
                };
                let ignore = copy.ignore_src.as_ref().map(|ignore| self.predicate(ignore));
                if !matches!(copy.size, 4 | 8 | 16) {
                    return Err(Refusal::because(format!("cp.async of {} bytes", copy.size)));
                }
                self.emit(Op::CopyAsync(Box::new(CopyAsync {
                    to,
                    from,
                    size: copy.size,
                    source_size,
                    ignore,
                })));
            }
            MemoryOp::CpAsyncMbarrierArrive { noinc, space, addr } => {
                self.copies_arrive(*noinc, *space, addr)?;
            }
            MemoryOp::Alloca { ty, dst, size, align } => {
                let (destination, size) = (self.slot(*dst), self.source(size, *ty)?);
                let align = align.unwrap_or(8).max(1);
                self.emit(Op::Alloca(Box::new(Alloca { destination, size, align })));
            }
            MemoryOp::StackSave { dst, .. } => self.emit(Op::StackSave { destination: self.slot(*dst) }),
            MemoryOp::StackRestore { ty, src } => {
                let source = self.source(src, *ty)?;
                self.emit(Op::StackRestore { source });
            }
        }
        Ok(())
    }

    fn load(
        &mut self,
        space: ptx::Space,
        addr: &Address,
        ty: ScalarType,
        dsts: &[Option<RegId>],
        acquire: bool,
    ) -> Result<(), Refusal> {
        let operand = self.memory_operand(space, addr)?;
        let mut destinations: Vec<Slot> = Vec::with_capacity(dsts.len());
        for dst in dsts {
            if ty.bits() > 64 {
                destinations.extend(self.wide_slots(*dst));
            } else {
                destinations.push(self.slot_or_sink(*dst));
            }
        }
        let width = dsts.iter().flatten().map(|&dst| self.type_of(dst).bits()).max().unwrap_or(64);
        let signed_to = (ty.is_signed() && width > ty.bits()).then_some(width.min(64));
        let extend = Extend { size: ty.size().min(8), signed_to };
        let align = ty.size() * dsts.len() as u32;
        self.emit(Op::Load(Box::new(Load { operand, extend, destinations, align, acquire })));
        Ok(())
    }

    pub(super) fn atomic(&mut self, op: &AtomicOp) -> Result<(), Refusal> {
        let (dsts, rmw): (&[Option<RegId>], &AtomicRmw) = match op {
            AtomicOp::Atom { dsts, rmw } => (dsts, rmw),
            AtomicOp::Red { rmw } => (&[], rmw),
        };
        let operand = self.memory_operand(rmw.space, &rmw.addr)?;
        let kind = if rmw.ty.bits() > 64 {
            self.atomic_wide(rmw)?
        } else {
            let function = update(rmw, operand.space == Space::Shared)?;
            let c = match &rmw.c {
                Some(c) => self.source(c, rmw.ty)?,
                None => self.constant(0),
            };
            let operands =
                rmw.b.iter().map(|b| Ok([self.source(b, rmw.ty)?, c])).collect::<Result<_, Refusal>>()?;
            AtomicKind::Update { size: rmw.ty.size(), function, operands }
        };
        let destinations = match (&kind, dsts) {
            (AtomicKind::Wide { .. }, [dst]) => self.wide_slots(*dst).to_vec(),
            _ => dsts.iter().map(|dst| self.slot_or_sink(*dst)).collect(),
        };
        // Every atomic operation here is sequentially consistent. A `.sc` fence orders the accesses
        // around it.
        let fenced = matches!(rmw.sem, Some(FenceSem::Sc));
        if fenced {
            self.emit(Op::Fence);
        }
        self.emit(Op::Atomic(Box::new(Atomic { operand, kind, destinations })));
        Ok(())
    }

    fn atomic_wide(&mut self, rmw: &AtomicRmw) -> Result<AtomicKind, Refusal> {
        let [b] = &rmw.b[..] else { return Err(Refusal::because("an atomic vector of .b128")) };
        let b = self.wide_sources(b)?;
        match (rmw.op, &rmw.c) {
            (AtomOp::Exch, _) => Ok(AtomicKind::Wide { compare: None, value: b }),
            (AtomOp::Cas, Some(c)) => Ok(AtomicKind::Wide { compare: Some(b), value: self.wide_sources(c)? }),
            (op, _) => Err(Refusal::because(format!("atom.{op} on .{}", rmw.ty))),
        }
    }

    /// Decodes an operand, or the constant 1 if there is none.
    pub(super) fn count(&mut self, operand: Option<&Operand>) -> Result<Source, Refusal> {
        match operand {
            Some(operand) => self.source(operand, ScalarType::U32),
            None => Ok(self.constant(1)),
        }
    }
}

/// Returns the function that computes the value an atomic operation stores.
fn update(rmw: &AtomicRmw, shared: bool) -> Result<Rmw, Refusal> {
    let AtomicRmw { op, ty, .. } = *rmw;
    let refuse = || Refusal::because(format!("atom.{op} on .{ty}"));
    if ty.is_float() {
        return match (op, ty) {
            (AtomOp::Exch, _) => Ok(Box::new(|_, b, _| b)),
            (AtomOp::Add, ScalarType::F32) => {
                Ok(Box::new(move |old, b, _| atomic::add_f32(old as u32, b as u32, !shared).into()))
            }
            (AtomOp::Add, ScalarType::F64) => Ok(Box::new(|old, b, _| atomic::add_f64(old, b))),
            (AtomOp::Add, ScalarType::F16) => {
                Ok(Box::new(|old, b, _| atomic::add_f16(old as u16, b as u16).into()))
            }
            (AtomOp::Add, ScalarType::Bf16) => {
                Ok(Box::new(|old, b, _| atomic::add_bf16(old as u16, b as u16).into()))
            }
            (AtomOp::Add, ScalarType::F16x2) => {
                Ok(Box::new(|old, b, _| atomic::add_f16x2(old as u32, b as u32).into()))
            }
            (AtomOp::Add, ScalarType::Bf16x2) => {
                Ok(Box::new(|old, b, _| atomic::add_bf16x2(old as u32, b as u32).into()))
            }
            (AtomOp::Min | AtomOp::Max, ScalarType::F16) => Ok(extremum::<F16>(op, false)),
            (AtomOp::Min | AtomOp::Max, ScalarType::Bf16) => Ok(extremum::<Bf16>(op, false)),
            (AtomOp::Min | AtomOp::Max, ScalarType::F16x2) => Ok(extremum::<F16>(op, true)),
            (AtomOp::Min | AtomOp::Max, ScalarType::Bf16x2) => Ok(extremum::<Bf16>(op, true)),
            _ => Err(refuse()),
        };
    }
    if ty.size() == 1 || ty.size() == 2 && !matches!(op, AtomOp::Cas | AtomOp::Exch) {
        return Err(refuse());
    }
    Ok(match op {
        AtomOp::And => Box::new(|old, b, _| old & b),
        AtomOp::Or => Box::new(|old, b, _| old | b),
        AtomOp::Xor => Box::new(|old, b, _| old ^ b),
        AtomOp::Exch => Box::new(|_, b, _| b),
        AtomOp::Cas => Box::new(|old, b, c| if old == b { c } else { old }),
        AtomOp::Inc => Box::new(|old, b, _| atomic::inc(old as u32, b as u32).into()),
        AtomOp::Dec => Box::new(|old, b, _| atomic::dec(old as u32, b as u32).into()),
        AtomOp::Add => with_integer!(ty, T => integers::<T>(atomic::add)),
        AtomOp::Min => with_integer!(ty, T => integers::<T>(integer::min)),
        AtomOp::Max => with_integer!(ty, T => integers::<T>(integer::max)),
    })
}

fn integers<T: Integer + Send + Sync>(function: fn(T, T) -> T) -> Rmw {
    Box::new(move |old, b, _| function(T::from_bits(old), T::from_bits(b)).to_bits())
}

fn extremum<F: Float<Bits = u16>>(op: AtomOp, two: bool) -> Rmw {
    let how = Extremum::default();
    let one = move |a, b| {
        if op == AtomOp::Min { compare::min::<F>(a, b, how) } else { compare::max::<F>(a, b, how) }
    };
    if two {
        Box::new(move |old, b, _| packed::zip(old as u32, b as u32, one).into())
    } else {
        Box::new(move |old, b, _| one(old as u16, b as u16).into())
    }
}
