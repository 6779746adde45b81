//! Kernel launches: the one operation whose meaning cannot be checked, and so the one that is `unsafe` to make.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Launch, Owner, ParamLayout, Params};
use crate::backend;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::ConditionKey;
use crate::launch::LaunchConfig;
use crate::memory::{Base, Region};
use crate::speed::Vacancy;

/// A kernel launch.
///
/// Number and sizes of the arguments are checked when it is added to a graph or stream, their meaning cannot be: a kernel follows whatever
/// address it is given. So making one is `unsafe`, and nobody can put other arguments into one that is there:
///
/// ```compile_fail,E0133
/// # use std::sync::Arc;
/// # use gridloom_core::{backend::Kernel, launch::LaunchConfig, op::{ArgValue, KernelArgs, KernelOp}};
/// fn write_anywhere(kernel: Arc<dyn Kernel>, address: u64) -> KernelOp {
///     let address = ArgValue::Bytes(address.to_ne_bytes().as_slice().into());
///     let args = KernelArgs::pack(kernel.name(), kernel.params(), [address]).unwrap();
///     KernelOp::new(kernel, LaunchConfig::one(), args)
/// }
/// ```
///
/// ```compile_fail,E0616
/// # use gridloom_core::op::{KernelArgs, KernelOp};
/// fn write_anywhere(launch: &mut KernelOp, elsewhere: KernelArgs) {
///     launch.args = elsewhere;
/// }
/// ```
///
/// ```compile_fail,E0451
/// # use gridloom_core::op::{KernelArgs, KernelOp};
/// fn write_anywhere(launch: KernelOp, elsewhere: KernelArgs) -> KernelOp {
///     KernelOp { args: elsewhere, ..launch }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct KernelOp {
    pub(crate) kernel: Arc<dyn backend::Kernel>,
    pub(crate) config: LaunchConfig,
    pub(crate) args: KernelArgs,
}

/// All the fields there are, which [`KernelOp::pack`] writes one by one.
const _: fn(KernelOp) = |launch| {
    let KernelOp { kernel: _, config: _, args } = launch;
    let KernelArgs { bytes: _, layout: _, pointers: _, keep: _ } = args;
};

impl KernelOp {
    /// A launch of `kernel` with these arguments.
    ///
    /// # Safety
    /// `kernel` comes from a backend, `args` are as [`KernelArgs::pack`] and [`KernelArgs::set`] make them, and with these arguments the kernel reads
    /// and writes only
    ///
    /// - memory of the regions among [`args.pointers`](KernelArgs::pointers), which the operation keeps alive,
    /// - the conditions among them,
    /// - variables of its own module, and
    /// - memory behind addresses that are plain values in [`args.bytes`](KernelArgs::bytes), which the caller, or the owner in
    ///   [`args.keep`](KernelArgs::keep), keeps alive for as long as the operation or a copy of it exists or is in flight.
    ///
    /// This holds for every launch shape that the device accepts ([`with_config`](KernelOp::with_config) is safe), and for any number of runs at
    /// any time, also at once: the operation can be read back from a node and added to another graph or stream.
    #[inline]
    pub unsafe fn new(kernel: Arc<dyn backend::Kernel>, config: LaunchConfig, args: KernelArgs) -> Self {
        KernelOp { kernel, config, args }
    }

    /// A launch whose arguments `pack` gives, one by one. As many must be given as the kernel takes.
    ///
    /// # Safety
    /// As for [`KernelOp::new`] with these arguments.
    #[inline]
    pub unsafe fn pack(
        kernel: &Arc<dyn backend::Kernel>,
        config: LaunchConfig,
        pack: impl FnOnce(&mut ArgPacker<'_>) -> Result<()>,
    ) -> Result<Launch> {
        let params = kernel.params();
        let vacancy = Vacancy::take();
        let place = vacancy.launch();
        // Where it stays: a launch takes more room than one wants to move.
        // SAFETY: the place is this vacancy's, and each field of the launch is written once.
        let launch = unsafe {
            (&raw mut (*place).kernel).write(Arc::clone(kernel));
            (&raw mut (*place).config).write(config);
            (&raw mut (*place).args.bytes).write(zeros(params.map_or(0, Params::buffer_bytes)));
            (&raw mut (*place).args.layout).write(params.map_or_else(Params::new, Params::clone));
            (&raw mut (*place).args.pointers).write(SmallVec::new());
            (&raw mut (*place).args.keep).write(None);
            vacancy.filled()
        };
        // SAFETY: it was made here, and nobody else holds it.
        let args = unsafe { &mut (*place).args };
        let mut packer = ArgPacker::new(args, Named::Kernel(&**kernel), params);
        pack(&mut packer)?;
        packer.finish()?;
        Ok(launch)
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<dyn backend::Kernel> {
        &self.kernel
    }

    /// Its launch shape and attributes.
    pub fn config(&self) -> &LaunchConfig {
        &self.config
    }

    /// Its arguments.
    pub fn args(&self) -> &KernelArgs {
        &self.args
    }

    /// The same launch in another shape. Whoever made it has promised for every shape.
    pub fn with_config(&self, config: LaunchConfig) -> Self {
        KernelOp { config, ..self.clone() }
    }

    /// The same kernel in the same shape with other arguments.
    ///
    /// # Safety
    /// As for [`KernelOp::new`] with these arguments.
    pub unsafe fn with_args(&self, args: KernelArgs) -> Self {
        KernelOp { kernel: self.kernel.clone(), config: self.config, args }
    }
}

/// The arguments of a launch: one packed parameter buffer, and what its pointers and handles stand for.
///
/// Addresses of existing allocations are in `bytes` already; an address of an alloc node and the handle of a condition are
/// written there by the backend when it lowers the graph, since only then are they known.
#[derive(Debug, Default, PartialEq)]
pub struct KernelArgs {
    /// The parameter buffer, laid out as the kernel declares it.
    pub bytes: SmallVec<[u8; 48]>,
    /// Where each argument lies in it.
    pub layout: Params,
    /// The arguments, or parts of them, that refer to memory or conditions.
    pub pointers: SmallVec<[PointerArg; 3]>,
    /// What the arguments need besides: the owner of memory that is not Gridloom's.
    pub keep: Option<Owner>,
}

/// Eight bytes of an argument that refer to something.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerArg {
    /// Which parameter they are in.
    pub index: u32,
    /// Where they start in it: 0, except where the parameter is a structure.
    pub offset: u32,
    /// What they refer to.
    pub value: PointerValue,
}

/// What an 8-byte argument refers to.
#[derive(Clone, Debug, PartialEq)]
pub enum PointerValue {
    /// The address of a region.
    Region(Region),
    /// The handle of a condition, for `cudaGraphSetConditional`.
    Condition(ConditionKey),
}

/// The address where it is known before the graph is lowered.
#[inline]
pub(super) fn known_address(pointer: &PointerValue) -> Option<u64> {
    match pointer {
        PointerValue::Region(Region { base: Base::Allocation(allocation), offset, .. }) => {
            // Wraps for a region that no allocation has, which the checks refuse.
            Some(allocation.address().wrapping_add(*offset))
        }
        _ => None,
    }
}

/// One argument as a caller gives it, before it is packed.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgValue {
    /// A plain value.
    Bytes(SmallVec<[u8; 16]>),
    /// Something referred to.
    Pointer(PointerValue),
}

impl ArgValue {
    /// The bytes of a plain value.
    #[inline]
    pub fn plain(bytes: &[u8]) -> Self {
        match word(bytes) {
            Some(word) => ArgValue::Bytes(SmallVec::from_buf_and_len(word.to_le_bytes(), bytes.len())),
            None => ArgValue::Bytes(SmallVec::from_slice(bytes)),
        }
    }

    /// Its bytes among the arguments.
    pub fn size(&self) -> usize {
        match self {
            ArgValue::Bytes(bytes) => bytes.len(),
            ArgValue::Pointer(_) => 8,
        }
    }
}

/// Up to 8 bytes, as most values have, in one piece: what is written byte by byte and then moved costs several times as much.
#[inline]
fn word(bytes: &[u8]) -> Option<u128> {
    Some(match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]).into(),
        _ => return None,
    })
}

impl Clone for KernelArgs {
    fn clone(&self) -> Self {
        // What a derived clone does one by one is copied whole.
        KernelArgs {
            bytes: SmallVec::from_slice(&self.bytes),
            layout: self.layout.clone(),
            pointers: self.pointers.clone(),
            keep: self.keep.clone(),
        }
    }
}

/// Arguments as they are packed one by one, each of the size of its parameter: as the kernel lays them out, or one after the other at their natural alignment where its
/// parameters are unknown.
pub struct ArgPacker<'a> {
    args: &'a mut KernelArgs,
    kernel: Named<'a>,
    /// The places of the kernel's parameters, where they are known.
    places: Option<&'a [ParamLayout]>,
    /// How many are packed.
    packed: usize,
}

/// What errors call the kernel.
#[derive(Clone, Copy)]
enum Named<'a> {
    Kernel(&'a dyn backend::Kernel),
    Name(&'a str),
}

impl<'a> Named<'a> {
    fn name(self) -> &'a str {
        match self {
            Named::Kernel(kernel) => kernel.name(),
            Named::Name(name) => name,
        }
    }
}

impl<'a> ArgPacker<'a> {
    #[inline]
    fn new(args: &'a mut KernelArgs, kernel: Named<'a>, params: Option<&'a Params>) -> Self {
        ArgPacker { args, kernel, places: params.map(|params| &**params), packed: 0 }
    }

    /// Packs one argument more.
    #[inline]
    pub fn push(&mut self, value: ArgValue) -> Result<()> {
        match value {
            ArgValue::Bytes(bytes) => self.push_bytes(&bytes),
            ArgValue::Pointer(pointer) => self.push_pointer(|| Ok(pointer)),
        }
    }

    /// Packs the bytes of a plain value.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let place = self.next_place(bytes.len())?;
        self.write(place, bytes);
        Ok(())
    }

    /// Packs an argument that refers to something. It is asked for once there is a place for it, and so made where it stays. Where there is none, or it fails, nothing is packed.
    #[inline(always)]
    pub fn push_pointer(&mut self, pointer: impl FnOnce() -> Result<PointerValue>) -> Result<()> {
        let place = self.next_place(8)?;
        let index = self.packed as u32;
        let pointers = &mut self.args.pointers;
        if pointers.len() == pointers.capacity() {
            pointers.reserve(1);
        }
        let value = pointer()?;
        let count = pointers.len();
        // SAFETY: there is room for one more, which is written before it is counted. (What `push` is given, it is given in memory: written in parts, then moved whole.)
        unsafe {
            pointers.as_mut_ptr().add(count).write(PointerArg { index, offset: 0, value });
            pointers.set_len(count + 1);
        }
        // What is not known yet is written when the graph is lowered.
        let address = known_address(&pointers[count].value).unwrap_or(0);
        self.write(place, &address.to_ne_bytes());
        Ok(())
    }

    /// The place of the next argument, which has `size` bytes. `None` where it is behind those so far.
    #[inline(always)]
    fn next_place(&self, size: usize) -> Result<Option<ParamLayout>> {
        let Some(places) = self.places else { return Ok(None) };
        match places.get(self.packed) {
            Some(place) if place.size as usize == size => Ok(Some(*place)),
            place => Err(self.misplaced(place, size)),
        }
    }

    /// Writes the next argument to its place.
    #[inline(always)]
    fn write(&mut self, place: Option<ParamLayout>, bytes: &[u8]) {
        let start = match place {
            Some(place) => place.offset as usize,
            None => self.append(bytes.len()),
        };
        self.packed += 1;
        self.args.bytes[start..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Makes room behind the arguments so far.
    fn append(&mut self, size: usize) -> usize {
        // A type's size is a multiple of its alignment, so this is the strictest it can have.
        let align = 1 << size.trailing_zeros().min(4);
        let offset = self.args.bytes.len().next_multiple_of(align);
        self.args.bytes.resize(offset + size, 0);
        self.args.layout.push(ParamLayout { offset: offset as u32, size: size as u32 });
        offset
    }

    #[cold]
    fn misplaced(&self, param: Option<&ParamLayout>, size: usize) -> Error {
        let (kernel, index) = (self.kernel.name(), self.packed);
        mismatch(match param {
            Some(param) => format!(
                "parameter {index} of kernel {kernel} has {} bytes, the argument has {size}",
                param.size
            ),
            None => format!("kernel {kernel} takes {index} parameters, more arguments were given"),
        })
    }

    /// Refuses arguments that are too few.
    #[inline]
    fn finish(&self) -> Result<()> {
        match self.places {
            Some(places) if places.len() != self.packed => Err(self.too_few(places.len())),
            _ => Ok(()),
        }
    }

    #[cold]
    fn too_few(&self, needed: usize) -> Error {
        let (kernel, given) = (self.kernel.name(), self.packed);
        mismatch(format!("kernel {kernel} takes {needed} parameters, {given} arguments were given"))
    }
}

/// An argument buffer of this size.
#[inline]
fn zeros(bytes: usize) -> SmallVec<[u8; 48]> {
    // Written whole, where `from_elem` writes one by one.
    if bytes <= 48 { SmallVec::from_buf_and_len([0; 48], bytes) } else { SmallVec::from_elem(0, bytes) }
}

impl KernelArgs {
    /// Packs arguments as `params` lays them out, or one after the other at their natural alignment where the
    /// kernel's parameters are unknown. Count and sizes must match.
    pub fn pack(
        kernel: &str,
        params: Option<&Params>,
        values: impl IntoIterator<Item = ArgValue>,
    ) -> Result<Self> {
        let mut args = KernelArgs {
            bytes: zeros(params.map_or(0, Params::buffer_bytes)),
            layout: params.cloned().unwrap_or_default(),
            ..KernelArgs::default()
        };
        let mut packer = ArgPacker::new(&mut args, Named::Name(kernel), params);
        for value in values {
            packer.push(value)?;
        }
        packer.finish()?;
        Ok(args)
    }

    /// The bytes of argument `index`.
    pub fn value(&self, index: usize) -> Option<&[u8]> {
        let place = self.layout.get(index)?;
        self.bytes.get(place.offset as usize..(place.offset + place.size) as usize)
    }
}

fn mismatch(message: String) -> Error {
    Error::new(ErrorKind::ParameterMismatch, message)
}
