//! Signatures: the types and the contract of a kernel, and the check of a launch against them.

use std::any::{Any, TypeId};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::expr::{Expr, Facts};
use super::{Bound, Contract, GivenMemory, Launched};
use crate::backend::{self, DeviceId};
use crate::error::{Error, ErrorKind, Result, bail};
use crate::launch::{KernelLimits, LaunchConfig};
use crate::op::Params;

/// A kind of integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// The size in bytes: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Whether the integer can be negative.
    pub signed: bool,
}

impl Integer {
    /// Returns the bytes of a value, or `None` if it does not fit.
    pub fn write(self, value: i64) -> Option<SmallVec<[u8; 8]>> {
        let bits = 8 * u32::from(self.bytes.min(8));
        let fits = match (self.signed, bits) {
            (true, 64) => true,
            (true, bits) => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&value),
            (false, 64) => value >= 0,
            (false, bits) => (0..1i64 << bits).contains(&value),
        };
        fits.then(|| match self.bytes {
            1 => SmallVec::from_slice(&(value as u8).to_ne_bytes()),
            2 => SmallVec::from_slice(&(value as u16).to_ne_bytes()),
            4 => SmallVec::from_slice(&(value as u32).to_ne_bytes()),
            _ => SmallVec::from_slice(&value.to_ne_bytes()),
        })
    }

    /// Reads a value. Returns `None` if it has another size or does not fit in `i64`.
    #[inline]
    pub fn read(self, bytes: &[u8]) -> Option<i64> {
        if bytes.len() != usize::from(self.bytes) {
            return None;
        }
        Some(match (bytes, self.signed) {
            (&[a, b, c, d], false) => u32::from_ne_bytes([a, b, c, d]).into(),
            (&[a, b, c, d], true) => i32::from_ne_bytes([a, b, c, d]).into(),
            (&[a, b, c, d, e, f, g, h], false) => {
                i64::try_from(u64::from_ne_bytes([a, b, c, d, e, f, g, h])).ok()?
            }
            (&[a, b, c, d, e, f, g, h], true) => i64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            (&[a], false) => a.into(),
            (&[a], true) => i8::from_ne_bytes([a]).into(),
            (&[a, b], false) => u16::from_ne_bytes([a, b]).into(),
            (&[a, b], true) => i16::from_ne_bytes([a, b]).into(),
            _ => return None,
        })
    }
}

/// The role of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParamKind {
    /// A plain value, with its kind of integer if it is one.
    Value(Option<Integer>),
    /// The number of elements that the kernel uses of the memory it is given.
    Length(Integer),
    /// The address of memory.
    Pointer {
        /// The size of an element in bytes.
        element_size: u32,
        /// Whether the pointer may be null.
        nullable: bool,
        /// Whether the kernel writes to the memory. If not, it only reads.
        written: bool,
    },
    /// The handle of a condition.
    Condition,
}

/// The declared type of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamType {
    /// The role of the parameter.
    pub kind: ParamKind,
    /// The Rust type of its plain values.
    pub type_id: TypeId,
    /// The name of that type.
    pub type_name: &'static str,
}

impl ParamType {
    /// Creates a parameter of this kind whose values have the type `T`.
    pub fn of<T: 'static>(kind: ParamKind) -> Self {
        ParamType { kind, type_id: TypeId::of::<T>(), type_name: std::any::type_name::<T>() }
    }

    /// Creates a parameter for plain values of type `T`.
    pub fn value<T: 'static>() -> Self {
        let is = |types: &[TypeId]| types.contains(&TypeId::of::<T>());
        let unsigned = [
            TypeId::of::<u8>(),
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
        ];
        let signed = [
            TypeId::of::<i8>(),
            TypeId::of::<i16>(),
            TypeId::of::<i32>(),
            TypeId::of::<i64>(),
            TypeId::of::<isize>(),
        ];
        let integer = (is(&unsigned) || is(&signed))
            .then(|| Integer { bytes: size_of::<T>() as u8, signed: is(&signed) });
        ParamType::of::<T>(ParamKind::Value(integer))
    }
}

/// A parameter that is a pointer.
#[derive(Clone, Debug)]
struct Pointer {
    index: u32,
    element_size: u32,
    nullable: bool,
    /// Whether the contract says how many elements the memory holds. If not, the length parameters
    /// do.
    is_bound: bool,
}

/// The types of a kernel's parameters, and the contract between its arguments.
#[derive(Clone, Debug)]
pub struct Signature {
    params: Vec<ParamType>,
    contract: Contract,
    lengths: SmallVec<[(u32, Integer); 2]>,
    pointers: SmallVec<[Pointer; 4]>,
    integers: Vec<Option<Integer>>,
    element_sizes: Vec<u32>,
}

/// A reason why a launch breaks a contract.
enum Violation<'a> {
    Null(u32),
    Unknown(u32),
    Unreadable(u32),
    Negative(u32, i64),
    TooShort { pointer: u32, has: u64, needs: i64, because: Because<'a> },
    Incomputable(&'a Expr),
    OutOfBounds(&'a Bound, i64, i64),
    Overlapping(u32, u32),
}

/// The source of a required number of elements.
enum Because<'a> {
    Element,
    Length(u32),
    Expression(&'a Expr),
}

impl Signature {
    /// Creates the signature of a kernel with these parameters. The contract may require elements
    /// of pointers, and may compute with integers.
    pub fn new(params: impl IntoIterator<Item = ParamType>, contract: Contract) -> Result<Self> {
        let params: Vec<ParamType> = params.into_iter().collect();
        let integers: Vec<Option<Integer>> = params.iter().map(|param| integer_of(param.kind)).collect();
        let element_sizes: Vec<u32> = params
            .iter()
            .map(|param| match param.kind {
                ParamKind::Pointer { element_size, .. } => element_size,
                _ => 0,
            })
            .collect();
        let mut lengths = SmallVec::new();
        let mut pointers = SmallVec::new();
        for (index, param) in params.iter().enumerate() {
            match param.kind {
                ParamKind::Length(integer) => lengths.push((index as u32, integer)),
                ParamKind::Pointer { element_size, nullable, .. } => {
                    let is_bound = contract.held().any(|(held, _)| held as usize == index);
                    pointers.push(Pointer { index: index as u32, element_size, nullable, is_bound });
                }
                _ => {}
            }
        }
        for (index, _) in contract.held() {
            if !matches!(params.get(index as usize).map(|param| param.kind), Some(ParamKind::Pointer { .. }))
            {
                bail!(
                    ParameterMismatch,
                    "the contract says what argument {index} holds, which is not a pointer among the kernel's {} parameters",
                    params.len()
                );
            }
        }
        for index in contract.disjoint.iter().flat_map(|&(one, other)| [one, other]) {
            if element_sizes.get(index as usize).is_none_or(|&size| size == 0) {
                bail!(
                    ParameterMismatch,
                    "the contract says what argument {index} is apart from, which is no pointer of the kernel's {} parameters",
                    params.len()
                );
            }
        }
        let (mut wrong, mut is_too_deep) = (None, false);
        let sides = contract.bounds().iter().flat_map(|bound| [&bound.number, &bound.other]);
        for expr in contract.held().map(|(_, elements)| elements).chain(sides) {
            expr.visit(&mut |part| {
                let fits = match part {
                    Expr::Argument(index) => integers.get(*index as usize).copied().flatten().is_some(),
                    Expr::Length(index) => element_sizes.get(*index as usize).is_some_and(|&size| size != 0),
                    Expr::TooDeep => {
                        is_too_deep = true;
                        return;
                    }
                    _ => return,
                };
                if !fits {
                    wrong.get_or_insert_with(|| part.to_string());
                }
            });
        }
        if is_too_deep {
            bail!(InvalidArgument, "the contract computes with {}", Expr::TooDeep);
        }
        if let Some(wrong) = wrong {
            bail!(
                ParameterMismatch,
                "the contract computes with the {wrong}, which the kernel's {} parameters do not have: an argument must be an integer, and a length that of a pointer",
                params.len()
            );
        }
        Ok(Signature { params, contract, lengths, pointers, integers, element_sizes })
    }

    /// Returns whether the contract depends on the value of an argument. Any other value of such an
    /// argument keeps a contract that was kept.
    pub(crate) fn depends_on(&self, index: usize) -> bool {
        match self.params.get(index).map(|param| param.kind) {
            Some(ParamKind::Value(_)) => {
                let mut depends = false;
                let sides = self.contract.bounds().iter().flat_map(|bound| [&bound.number, &bound.other]);
                for expr in self.contract.held().map(|(_, elements)| elements).chain(sides) {
                    expr.visit(&mut |part| {
                        depends |= matches!(part, Expr::Argument(argument) if *argument as usize == index);
                    });
                }
                depends
            }
            _ => true,
        }
    }

    /// Returns whether the contract depends on where memory lies, and not only on its length.
    pub(crate) fn depends_on_places(&self) -> bool {
        !self.contract.disjoint.is_empty()
    }

    /// Returns the types of the parameters.
    pub fn params(&self) -> &[ParamType] {
        &self.params
    }

    /// Returns the contract.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Returns whether a launch keeps the contract.
    #[inline]
    pub(crate) fn is_kept_by(&self, launch: &impl Launched) -> bool {
        self.violation(launch).is_none()
    }

    /// Checks that a launch keeps the contract. The error says which part it breaks.
    #[inline]
    pub(crate) fn check(&self, kernel: &dyn backend::Kernel, launch: &impl Launched) -> Result<()> {
        match self.violation(launch) {
            None => Ok(()),
            Some(violation) => Err(self.refuse(kernel.name(), &violation)),
        }
    }

    #[inline]
    fn violation(&self, launch: &impl Launched) -> Option<Violation<'_>> {
        let mut needs = 1;
        let mut longest = None;
        for &(index, integer) in &self.lengths {
            let Some(length) = launch.integer(index as usize, integer) else {
                return Some(Violation::Unreadable(index));
            };
            if length < 0 {
                return Some(Violation::Negative(index, length));
            }
            if length > needs {
                (needs, longest) = (length, Some(index));
            }
        }
        for pointer in &self.pointers {
            match launch.memory(pointer.index as usize) {
                GivenMemory::Bytes(bytes) => {
                    let has_room = pointer.is_bound || is_room(bytes, needs, pointer.element_size);
                    if !has_room {
                        let because = longest.map_or(Because::Element, Because::Length);
                        let has = bytes / u64::from(pointer.element_size.max(1));
                        return Some(Violation::TooShort { pointer: pointer.index, has, needs, because });
                    }
                }
                GivenMemory::Null if pointer.nullable => {}
                GivenMemory::Null => return Some(Violation::Null(pointer.index)),
                GivenMemory::Unknown => return Some(Violation::Unknown(pointer.index)),
            }
        }
        let Contract { holds, bounds, disjoint } = &self.contract;
        if holds.is_empty() && bounds.is_empty() && disjoint.is_empty() {
            return None;
        }
        self.broken_rule(launch)
    }

    /// Returns the first rule of the contract that a launch breaks. The pointers are already
    /// checked.
    fn broken_rule(&self, launch: &impl Launched) -> Option<Violation<'_>> {
        let facts = Facts { integers: &self.integers, element_sizes: &self.element_sizes };
        for (index, elements) in &self.contract.holds {
            let GivenMemory::Bytes(bytes) = launch.memory(*index as usize) else { continue };
            let Some(needs) = elements.evaluate(&facts, launch) else {
                return Some(Violation::Incomputable(elements));
            };
            let element_size = self.element_sizes[*index as usize];
            if needs > 0 && !is_room(bytes, needs, element_size) {
                let has = bytes / u64::from(element_size.max(1));
                let because = Because::Expression(elements);
                return Some(Violation::TooShort { pointer: *index, has, needs, because });
            }
        }
        for bound in &self.contract.bounds {
            let Some(number) = bound.number.evaluate(&facts, launch) else {
                return Some(Violation::Incomputable(&bound.number));
            };
            let Some(other) = bound.other.evaluate(&facts, launch) else {
                return Some(Violation::Incomputable(&bound.other));
            };
            if !bound.relation.holds(number, other) {
                return Some(Violation::OutOfBounds(bound, number, other));
            }
        }
        for &(one, other) in &self.contract.disjoint {
            if launch.may_overlap(one as usize, other as usize) {
                return Some(Violation::Overlapping(one, other));
            }
        }
        None
    }

    #[cold]
    fn refuse(&self, kernel: &str, violation: &Violation<'_>) -> Error {
        let message = match violation {
            Violation::Null(index) => format!(
                "argument {index} of {kernel} is null; give memory, or declare the parameter Nullable where the kernel tests for null"
            ),
            Violation::Unknown(index) => format!(
                "argument {index} of {kernel} is a plain address, and the size of its memory is unknown; give a buffer, or launch it with launch_unchecked"
            ),
            Violation::Unreadable(index) => {
                format!("argument {index} of {kernel}, a length, does not fit in 63 bits")
            }
            Violation::Negative(index, value) => {
                format!("argument {index} of {kernel}, a length, is {value}; it must be at least 0")
            }
            Violation::TooShort { pointer, has, needs, because } => {
                let elements = if *has == 1 { "element" } else { "elements" };
                let because = match because {
                    Because::Element => "a pointer leads to at least one".to_owned(),
                    Because::Length(index) => format!("argument {index}, a length, is {needs}"),
                    Because::Expression(expr) => format!("{expr} is {needs}"),
                };
                format!(
                    "argument {pointer} of {kernel} has {has} {elements}, the launch needs {needs} ({because}); give longer memory, or a smaller number"
                )
            }
            Violation::Incomputable(expr) => {
                format!("{expr}, which the contract of {kernel} asks for, overflows")
            }
            Violation::Overlapping(one, other) => format!(
                "argument {one} and argument {other} of {kernel} are memory that overlaps, and the kernel writes one of them while it uses the other; give memory that is apart"
            ),
            Violation::OutOfBounds(bound, number, other) => {
                let shown = |expr: &Expr, value: i64| match expr {
                    Expr::Constant(_) => value.to_string(),
                    expr => format!("{expr} ({value})"),
                };
                format!(
                    "{} must be {} {} in a launch of {kernel}",
                    shown(&bound.number, *number),
                    bound.relation,
                    shown(&bound.other, *other)
                )
            }
        };
        Error::new(ErrorKind::ContractViolation, message)
    }

    /// Returns a kernel with this signature. Every launch of it is checked. It runs `kernel`, whose
    /// own signature is dropped. The same kernel with an equal signature yields the same object.
    pub fn of_kernel(self, kernel: &Arc<dyn backend::Kernel>) -> Arc<dyn backend::Kernel> {
        let kernel = without_signature(kernel);
        // Declared before the lock and so dropped after it is released: one of these may be the
        // last reference.
        let mut others = Vec::new();
        let mut signed = SIGNED.lock();
        let known = signed.entry(address(&kernel)).or_default();
        for candidate in known.iter().filter_map(Weak::upgrade) {
            if candidate.signature.is_same(&self) {
                return candidate;
            }
            others.push(candidate);
        }
        let new = Arc::new(SignedKernel {
            device: kernel.device(),
            name: kernel.name().to_owned(),
            params: kernel.params().cloned(),
            limits: kernel.limits().clone(),
            kernel,
            signature: Arc::new(self),
        });
        known.push(Arc::downgrade(&new));
        new
    }

    /// Returns whether both signatures require the same of launches.
    fn is_same(&self, other: &Signature) -> bool {
        self.params == other.params && self.contract == other.contract
    }
}

/// The existing kernels with signatures, by the address of the kernel that each runs.
static SIGNED: LazyLock<Mutex<FxHashMap<usize, Vec<Weak<SignedKernel>>>>> = LazyLock::new(Mutex::default);

fn address(kernel: &Arc<dyn backend::Kernel>) -> usize {
    Arc::as_ptr(kernel).cast::<()>().addr()
}

/// Returns the kernel without its signature. Launches of it are not checked.
pub fn without_signature(kernel: &Arc<dyn backend::Kernel>) -> Arc<dyn backend::Kernel> {
    kernel.unsigned().unwrap_or(kernel).clone()
}

/// Returns the declared type of parameter `index`. Fails if the kernel has no signature or no such
/// parameter.
#[inline]
pub fn param_type(kernel: &dyn backend::Kernel, index: u32) -> Result<&ParamType> {
    match kernel.signature().and_then(|signature| signature.params().get(index as usize)) {
        Some(param) => Ok(param),
        None => refuse_param(kernel, index),
    }
}

#[cold]
fn refuse_param(kernel: &dyn backend::Kernel, index: u32) -> Result<&ParamType> {
    let name = kernel.name();
    let Some(signature) = kernel.signature() else {
        bail!(
            NotSupported,
            "{name} was launched without the types of its parameters, so a value for one cannot be checked; use set_arg_unchecked"
        );
    };
    bail!(
        ParameterMismatch,
        "kernel {name} takes {} parameters; there is no parameter {index}",
        signature.params().len()
    )
}

/// Returns whether memory has room for this many elements.
#[inline]
fn is_room(bytes: u64, elements: i64, element_size: u32) -> bool {
    u64::try_from(elements)
        .ok()
        .and_then(|elements| elements.checked_mul(element_size.into()))
        .is_some_and(|needed| needed <= bytes)
}

fn integer_of(kind: ParamKind) -> Option<Integer> {
    match kind {
        ParamKind::Value(integer) => integer,
        ParamKind::Length(integer) => Some(integer),
        ParamKind::Pointer { .. } | ParamKind::Condition => None,
    }
}

/// A backend's kernel with a signature. Frequently read facts are copied here.
#[derive(Debug)]
struct SignedKernel {
    kernel: Arc<dyn backend::Kernel>,
    signature: Arc<Signature>,
    device: DeviceId,
    name: String,
    params: Option<Params>,
    limits: KernelLimits,
}

impl Drop for SignedKernel {
    fn drop(&mut self) {
        let mut signed = SIGNED.lock();
        if let Some(known) = signed.get_mut(&address(&self.kernel)) {
            known.retain(|kernel| kernel.strong_count() > 0);
            if known.is_empty() {
                signed.remove(&address(&self.kernel));
            }
        }
    }
}

// SAFETY: all answers are those of the backend's kernel that it runs.
unsafe impl backend::Kernel for SignedKernel {
    fn device(&self) -> DeviceId {
        self.device
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn params(&self) -> Option<&Params> {
        self.params.as_ref()
    }

    fn limits(&self) -> &KernelLimits {
        &self.limits
    }

    fn properties(&self) -> Vec<(String, String)> {
        let mut properties = self.kernel.properties();
        let contract = self.signature.contract.to_string();
        if !contract.is_empty() {
            properties.push(("contract".into(), contract));
        }
        properties
    }

    fn resident_blocks(&self, config: &LaunchConfig) -> Result<Option<u64>> {
        self.kernel.resident_blocks(config)
    }

    fn ptx(&self) -> Option<&str> {
        self.kernel.ptx()
    }

    fn signature(&self) -> Option<&Arc<Signature>> {
        Some(&self.signature)
    }

    fn unsigned(&self) -> Option<&Arc<dyn backend::Kernel>> {
        Some(&self.kernel)
    }

    fn as_any(&self) -> &dyn Any {
        self.kernel.as_any()
    }
}
