//! Kernel launches. The effect of a kernel cannot be checked, so creating a launch is `unsafe`.

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
/// The number and sizes of the arguments are checked when the launch is added to a graph or stream.
/// Their meaning cannot be checked: a kernel follows any address it is given. Creating a launch is
/// therefore `unsafe`, and the arguments of an existing one cannot be replaced by safe code:
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

/// Fails to compile if a field is added that [`KernelOp::pack`] does not write.
const _: fn(KernelOp) = |launch| {
    let KernelOp { kernel: _, config: _, args } = launch;
    let KernelArgs { bytes: _, layout: _, pointers: _, owner: _ } = args;
};

impl KernelOp {
    /// Creates a launch of `kernel` with these arguments.
    ///
    /// # Safety
    /// `kernel` comes from a backend, and `args` come from [`KernelArgs::pack`] and
    /// [`KernelArgs::set`]. With these arguments the kernel reads and writes only
    ///
    /// - memory of the regions among [`args.pointers`](KernelArgs::pointers), which the operation
    ///   keeps alive,
    /// - the conditions among them,
    /// - variables of its own module, and
    /// - memory behind addresses that are plain values in [`args.bytes`](KernelArgs::bytes). The
    ///   caller, or the owner in [`args.owner`](KernelArgs::owner), keeps it alive for as long as
    ///   the operation or a copy of it exists or is in flight.
    ///
    /// This holds for every launch shape that the device accepts, because
    /// [`with_config`](KernelOp::with_config) is safe. It also holds for any number of runs at any
    /// time, including concurrent ones, because the operation can be read back from a node and
    /// added to another graph or stream.
    #[inline]
    pub unsafe fn new(kernel: Arc<dyn backend::Kernel>, config: LaunchConfig, args: KernelArgs) -> Self {
        KernelOp { kernel, config, args }
    }

    /// Creates a launch whose arguments `pack` writes one by one. It must write as many as the
    /// kernel takes.
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
        // The launch is written in its final place, because it is large to move. SAFETY: the place
        // belongs to this vacancy, and each field of the launch is written once.
        let launch = unsafe {
            (&raw mut (*place).kernel).write(Arc::clone(kernel));
            (&raw mut (*place).config).write(config);
            (&raw mut (*place).args.bytes).write(zeros(params.map_or(0, Params::buffer_bytes)));
            (&raw mut (*place).args.layout).write(params.map_or_else(Params::new, Params::clone));
            (&raw mut (*place).args.pointers).write(SmallVec::new());
            (&raw mut (*place).args.owner).write(None);
            vacancy.filled()
        };
        // SAFETY: the launch was created above, and nobody else holds it.
        let args = unsafe { &mut (*place).args };
        let mut packer = ArgPacker::new(args, Named::Kernel(&**kernel), params);
        pack(&mut packer)?;
        packer.finish()?;
        Ok(launch)
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Arc<dyn backend::Kernel> {
        &self.kernel
    }

    /// Returns the launch shape and attributes.
    pub fn config(&self) -> &LaunchConfig {
        &self.config
    }

    /// Returns the arguments.
    pub fn args(&self) -> &KernelArgs {
        &self.args
    }

    /// Returns the launch with another shape. The promise of [`new`](KernelOp::new) covers every
    /// shape.
    pub fn with_config(&self, config: LaunchConfig) -> Self {
        KernelOp { config, ..self.clone() }
    }

    /// Returns the launch with other arguments.
    ///
    /// # Safety
    /// As for [`KernelOp::new`] with these arguments.
    pub unsafe fn with_args(&self, args: KernelArgs) -> Self {
        KernelOp { kernel: self.kernel.clone(), config: self.config, args }
    }
}

/// The arguments of a launch: one packed parameter buffer, and what its pointers and handles refer
/// to.
///
/// `bytes` already contains the addresses of existing allocations. The address of an alloc node's
/// memory and the handle of a condition are known only when the graph is lowered. The backend
/// writes them then.
#[derive(Debug, Default, PartialEq)]
pub struct KernelArgs {
    /// The parameter buffer, in the layout that the kernel declares.
    pub bytes: SmallVec<[u8; 48]>,
    /// The position of each argument in the buffer.
    pub layout: Params,
    /// The arguments, or parts of arguments, that refer to memory or conditions.
    pub pointers: SmallVec<[PointerArg; 3]>,
    /// The owner of foreign memory that the arguments need.
    pub owner: Option<Owner>,
}

/// Eight bytes of an argument that refer to memory or a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct PointerArg {
    /// The index of the parameter that contains them.
    pub index: u32,
    /// Their offset in the parameter. It is 0 unless the parameter is a structure.
    pub offset: u32,
    /// Their target.
    pub value: PointerValue,
}

/// The target of a pointer argument.
#[derive(Clone, Debug, PartialEq)]
pub enum PointerValue {
    /// The address of a region.
    Region(Region),
    /// The handle of a condition, for `cudaGraphSetConditional`.
    Condition(ConditionKey),
}

/// Returns the address if it is known before the graph is lowered.
#[inline]
pub(super) fn known_address(pointer: &PointerValue) -> Option<u64> {
    match pointer {
        PointerValue::Region(Region { base: Base::Allocation(allocation), offset, .. }) => {
            // This wraps only for a region past the end of its allocation, which the checks refuse.
            Some(allocation.address().wrapping_add(*offset))
        }
        _ => None,
    }
}

/// One argument before it is packed.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgValue {
    /// A plain value.
    Bytes(SmallVec<[u8; 16]>),
    /// A reference to memory or a condition.
    Pointer(PointerValue),
}

impl ArgValue {
    /// Creates a plain value from its bytes.
    #[inline]
    pub fn plain(bytes: &[u8]) -> Self {
        match word(bytes) {
            Some(word) => ArgValue::Bytes(SmallVec::from_buf_and_len(word.to_le_bytes(), bytes.len())),
            None => ArgValue::Bytes(SmallVec::from_slice(bytes)),
        }
    }

    /// Returns the size of the argument in bytes.
    pub fn size(&self) -> usize {
        match self {
            ArgValue::Bytes(bytes) => bytes.len(),
            ArgValue::Pointer(_) => 8,
        }
    }
}

/// Returns a value of 1, 2, 4 or 8 bytes as one number. Moving a value that was written byte by
/// byte costs several times as much.
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
        // The bytes are copied as a whole. A derived clone copies them one by one.
        KernelArgs {
            bytes: SmallVec::from_slice(&self.bytes),
            layout: self.layout.clone(),
            pointers: self.pointers.clone(),
            owner: self.owner.clone(),
        }
    }
}

/// Packs arguments one by one, each in the size of its parameter. They are laid out as the kernel
/// declares. If the kernel's parameters are unknown, they follow each other at their natural
/// alignment.
pub struct ArgPacker<'a> {
    args: &'a mut KernelArgs,
    kernel: Named<'a>,
    /// The positions of the kernel's parameters, if they are known.
    places: Option<&'a [ParamLayout]>,
    /// The number of arguments packed so far.
    packed: usize,
}

/// The source of the kernel's name for errors.
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

    /// Packs the next argument.
    #[inline]
    pub fn push(&mut self, value: ArgValue) -> Result<()> {
        match value {
            ArgValue::Bytes(bytes) => self.push_bytes(&bytes),
            ArgValue::Pointer(pointer) => self.push_pointer(|| Ok(pointer)),
        }
    }

    /// Packs a plain value as the next argument.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let place = self.next_place(bytes.len())?;
        self.write(place, bytes);
        Ok(())
    }

    /// Packs a pointer as the next argument. `pointer` is called once there is room, so that its
    /// result is built in place. If there is no room or `pointer` fails, nothing is packed.
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
        // SAFETY: there is room for one more element, and it is written before it is counted.
        // `push` would take the element through memory: written in parts, then moved as a whole.
        unsafe {
            pointers.as_mut_ptr().add(count).write(PointerArg { index, offset: 0, value });
            pointers.set_len(count + 1);
        }
        // An address that is not known yet is written when the graph is lowered.
        let address = known_address(&pointers[count].value).unwrap_or(0);
        self.write(place, &address.to_ne_bytes());
        Ok(())
    }

    /// Returns the position of the next argument of `size` bytes, or `None` if it goes behind the
    /// others.
    #[inline(always)]
    fn next_place(&self, size: usize) -> Result<Option<ParamLayout>> {
        let Some(places) = self.places else { return Ok(None) };
        match places.get(self.packed) {
            Some(place) if place.size as usize == size => Ok(Some(*place)),
            place => Err(self.misplaced(place, size)),
        }
    }

    /// Writes the next argument at its position.
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
        // The size of a type is a multiple of its alignment, so this is the strictest possible
        // alignment.
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

    /// Fails if there are too few arguments.
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

/// Returns a zeroed argument buffer of this size.
#[inline]
fn zeros(bytes: usize) -> SmallVec<[u8; 48]> {
    // Zeroed as a whole. `from_elem` writes byte by byte.
    if bytes <= 48 { SmallVec::from_buf_and_len([0; 48], bytes) } else { SmallVec::from_elem(0, bytes) }
}

impl KernelArgs {
    /// Packs arguments as `params` lays them out. If the kernel's parameters are unknown, the
    /// arguments follow each other at their natural alignment. Count and sizes must match.
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

    /// Returns the bytes of argument `index`.
    pub fn value(&self, index: usize) -> Option<&[u8]> {
        let place = self.layout.get(index)?;
        self.bytes.get(place.offset as usize..(place.offset + place.size) as usize)
    }
}

fn mismatch(message: String) -> Error {
    Error::new(ErrorKind::ParameterMismatch, message)
}
