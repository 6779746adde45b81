//! The values that device code computes with while it is recorded.

use std::ops::Deref;

use crate::ir::{Base, Effect, Mem, Operand, Reg, Space, Ty};
use crate::record::recorder::{Recorder, with};

/// A type that device code can name, and what stands for its values while it is recorded.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that device code can use",
    note = "device code uses scalars, arrays, slices, tuples, `Option`, references, and structs and enums with `#[derive(KernelType)]`"
)]
pub trait Typed {
    /// What stands for a value.
    type Twin: Copy;
}

/// A plain type of device code: a scalar, an array of plain types, or a struct with
/// `#[derive(KernelType)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type that device code can use",
    note = "device code uses scalars, arrays, tuples, `Option`, and structs with `#[derive(KernelType)]`; inside of an array or struct, use a struct instead of a tuple"
)]
///
/// # Safety
/// The derive macro implements it. The places of a value's parts are inside the memory of the
/// value.
pub unsafe trait KernelType: Copy + 'static + Typed<Twin = V<Self>> {
    /// The registers or the memory of a value.
    #[doc(hidden)]
    type Handle: Copy + 'static;
    #[doc(hidden)]
    fn declare() -> Self::Handle;
    #[doc(hidden)]
    fn get(handle: &Self::Handle) -> Self::Handle;
    #[doc(hidden)]
    fn assign(to: &Self::Handle, from: &Self::Handle);
    /// Returns a new variable with this value. A temporary value becomes the variable itself.
    #[doc(hidden)]
    fn own(value: &Self::Handle) -> Self::Handle {
        let variable = Self::declare();
        Self::assign(&variable, value);
        variable
    }
    /// Returns how often the place was written so far.
    #[doc(hidden)]
    fn stamp(handle: &Self::Handle) -> u64;
    /// Returns what a method is called on: the value of a scalar, whose methods take it, else the
    /// place.
    #[doc(hidden)]
    fn receiver(handle: &Self::Handle) -> Self::Handle;
    #[doc(hidden)]
    fn place(mem: Mem) -> Self::Handle;
    #[doc(hidden)]
    fn lift(self) -> Self::Handle;
    #[doc(hidden)]
    fn bytes(self, out: &mut [u8]);
}

/// A value or place of type `T`.
pub struct V<T: KernelType> {
    #[doc(hidden)]
    pub __handle: T::Handle,
}

impl<T: KernelType> V<T> {
    pub(crate) fn new(handle: T::Handle) -> Self {
        V { __handle: handle }
    }
}

impl<T: KernelType> Clone for V<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: KernelType> Copy for V<T> {}

impl<T: KernelType> Deref for V<T> {
    type Target = T::Handle;

    fn deref(&self) -> &T::Handle {
        &self.__handle
    }
}

/// A reference to a place.
#[derive(Clone, Copy)]
pub struct R<X> {
    #[doc(hidden)]
    pub __place: X,
}

impl<X> Deref for R<X> {
    type Target = X;

    fn deref(&self) -> &X {
        &self.__place
    }
}

/// An optional value.
#[derive(Clone, Copy)]
pub struct Opt<X> {
    #[doc(hidden)]
    pub __some: V<bool>,
    #[doc(hidden)]
    pub __value: X,
}

/// What stands for a value while it is recorded.
pub trait Twin: Copy {
    /// Returns the value as it is now, which later assignments do not change.
    fn get(&self) -> Self;
    /// Returns what a method is called on.
    fn receiver(self) -> Self {
        self
    }
    /// Returns how often the place was written so far.
    fn stamp(&self) -> u64 {
        0
    }
    /// Returns what a closure has that moves it: a variable of its own.
    fn captured(&self) -> Self {
        *self
    }
}

/// What can be in a mutable variable.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in a mutable variable of device code, nor chosen by `if` or `match`",
    note = "references are fixed when the kernel is loaded: give a reference a `let` without `mut`, and choose between values or indices instead"
)]
pub trait Var: Twin {
    /// Returns a new variable.
    fn declare() -> Self;
    /// Gives the place another value.
    fn assign(&self, from: Self);
    /// Returns a new variable with this value.
    fn own(self) -> Self {
        let variable = Self::declare();
        variable.assign(self);
        variable
    }
}

impl<T: KernelType> Twin for V<T> {
    fn get(&self) -> Self {
        V::new(T::get(&self.__handle))
    }

    fn receiver(self) -> Self {
        V::new(T::receiver(&self.__handle))
    }

    fn stamp(&self) -> u64 {
        T::stamp(&self.__handle)
    }

    fn captured(&self) -> Self {
        self.get().own()
    }
}

impl<T: KernelType> Var for V<T> {
    fn declare() -> Self {
        V::new(T::declare())
    }

    fn assign(&self, from: Self) {
        T::assign(&self.__handle, &from.__handle);
    }

    fn own(self) -> Self {
        V::new(T::own(&self.__handle))
    }
}

impl<X: Copy> Twin for R<X> {
    fn get(&self) -> Self {
        *self
    }
}

impl<X: Twin> Twin for Opt<X> {
    fn get(&self) -> Self {
        Opt { __some: self.__some.get(), __value: self.__value.get() }
    }

    fn captured(&self) -> Self {
        Opt { __some: self.__some.captured(), __value: self.__value.captured() }
    }
}

impl<X: Var> Var for Opt<X> {
    fn declare() -> Self {
        Opt { __some: V::declare(), __value: X::declare() }
    }

    fn assign(&self, from: Self) {
        self.__some.assign(from.__some);
        self.__value.assign(from.__value);
    }
}

impl<T: Typed> Typed for Option<T> {
    type Twin = Opt<T::Twin>;
}

impl<T: Typed> Typed for &T {
    type Twin = R<T::Twin>;
}

impl<T: Typed> Typed for &mut T {
    type Twin = R<T::Twin>;
}

/// A value that is known when the kernel is loaded.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a constant that device code can use",
    note = "constants are scalars, arrays, tuples, options and structs with `#[derive(KernelType)]`; make a constant slice a constant array"
)]
pub trait Constant: Typed {
    #[doc(hidden)]
    fn constant(self) -> Self::Twin;
}

impl<T: KernelType> Constant for T {
    fn constant(self) -> V<T> {
        V::new(self.lift())
    }
}

impl<T: Constant> Constant for Option<T>
where
    T::Twin: Var,
{
    fn constant(self) -> Opt<T::Twin> {
        let some = V::new(self.is_some().lift());
        match self {
            Some(value) => Opt { __some: some, __value: value.constant() },
            None => Opt { __some: some, __value: <T::Twin as Var>::declare() },
        }
    }
}

macro_rules! tuples {
    ($($T:ident $i:tt),*) => {
        impl<$($T: Typed),*> Typed for ($($T,)*) {
            type Twin = ($($T::Twin,)*);
        }
        impl<$($T: Twin),*> Twin for ($($T,)*) {
            #[allow(clippy::unused_unit, reason = "the empty tuple has no parts")]
            fn get(&self) -> Self {
                ($(self.$i.get(),)*)
            }

            #[allow(clippy::unused_unit, reason = "the empty tuple has no parts")]
            fn captured(&self) -> Self {
                ($(self.$i.captured(),)*)
            }
        }
        impl<$($T: Var),*> Var for ($($T,)*) {
            #[allow(clippy::unused_unit, reason = "the empty tuple has no parts")]
            fn declare() -> Self {
                ($($T::declare(),)*)
            }

            #[allow(unused_variables, reason = "the empty tuple has no parts")]
            fn assign(&self, from: Self) {
                $(self.$i.assign(from.$i);)*
            }
        }
        impl<$($T: Constant),*> Constant for ($($T,)*) {
            #[allow(clippy::unused_unit, reason = "the empty tuple has no parts")]
            fn constant(self) -> Self::Twin {
                ($(self.$i.constant(),)*)
            }
        }
    };
}
tuples!();
tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// Where a scalar is.
#[derive(Clone, Copy, Debug)]
pub enum ScalarHandle {
    /// It is known.
    #[doc(hidden)]
    Imm(u64),
    /// In a register that is written once.
    #[doc(hidden)]
    Reg(Reg),
    /// In a variable.
    #[doc(hidden)]
    Var(Reg),
    /// In memory.
    #[doc(hidden)]
    Mem(Mem),
}

/// A type that `as` takes: a scalar, or an enum without fields.
#[diagnostic::on_unimplemented(
    message = "device code cannot cast `{Self}` with `as`",
    note = "`as` takes scalars, and enums without fields that have `#[derive(KernelType)]`"
)]
pub trait Cast: KernelType {
    /// The scalar with its value.
    #[doc(hidden)]
    type Number: Scalar;
    #[doc(hidden)]
    fn number(value: V<Self>) -> V<Self::Number>;
}

/// A scalar type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of device code",
    note = "its numbers are `bool`, integers of up to 64 bits, `f16`, `bf16`, `f32` and `f64`"
)]
pub trait Scalar: KernelType<Handle = ScalarHandle> + Cast<Number = Self> {
    #[doc(hidden)]
    const TY: Ty;
    #[doc(hidden)]
    fn to_bits64(self) -> u64;
    /// Returns the bits that are in memory.
    #[doc(hidden)]
    fn memory_bits(self) -> u64;
    #[doc(hidden)]
    fn from_memory_bits(bits: u64) -> Self;
}

impl<T: Scalar> V<T> {
    /// Returns the value as an operand.
    pub(crate) fn operand(&self, r: &mut Recorder) -> Operand {
        operand(r, T::TY, &self.__handle)
    }

    /// Returns a small number of any type.
    pub(crate) fn of_number(number: u8) -> Self {
        let bits = match T::TY {
            Ty::F16 => half::f16::from(number).to_bits().into(),
            Ty::Bf16 => half::bf16::from(number).to_bits().into(),
            Ty::F32 => f32::from(number).to_bits().into(),
            Ty::F64 => f64::from(number).to_bits(),
            _ => number.into(),
        };
        V::of(Operand::Imm(T::TY, bits))
    }

    pub(crate) fn of(operand: Operand) -> Self {
        V::new(match operand {
            Operand::Imm(_, bits) => ScalarHandle::Imm(bits),
            Operand::Reg(reg) => ScalarHandle::Reg(reg),
            _ => unreachable!("results are numbers or registers"),
        })
    }
}

/// Returns the operand of a scalar: read from memory where it is there.
pub(crate) fn operand(r: &mut Recorder, ty: Ty, handle: &ScalarHandle) -> Operand {
    match *handle {
        ScalarHandle::Imm(bits) => Operand::Imm(ty, bits),
        ScalarHandle::Reg(reg) | ScalarHandle::Var(reg) => Operand::Reg(reg),
        ScalarHandle::Mem(mem) => load(r, ty, mem),
    }
}

fn load_op(space: Space) -> &'static str {
    match space {
        Space::Global => "ld.global",
        Space::ReadOnly => "ld.global.nc",
        Space::Local => "ld.local",
        Space::Generic => "ld",
        Space::Param => "ld.param",
        Space::Shared | Space::SharedRead => "ld.shared",
        Space::BlockRead => "ld.global",
    }
}

fn store_op(space: Space) -> &'static str {
    match space {
        Space::Global | Space::ReadOnly => "st.global",
        Space::Local => "st.local",
        Space::Shared | Space::SharedRead => "st.shared",
        Space::BlockRead => "st.global",
        Space::Generic | Space::Param => "st",
    }
}

/// Returns the element of a constant at a known place.
fn constant_at(r: &Recorder, ty: Ty, mem: Mem) -> Option<Operand> {
    let (Base::Constant(constant), None) = (mem.base, mem.index) else { return None };
    let (_, bytes) = r.program.constants.get(constant as usize)?;
    let start = usize::try_from(mem.offset).ok()?;
    let bytes = bytes.get(start..start + ty.bytes() as usize)?;
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    Some(Operand::Imm(ty, super::arithmetic::narrow_bits(ty, u64::from_le_bytes(word))))
}

fn load(r: &mut Recorder, ty: Ty, mem: Mem) -> Operand {
    if let Some(known) = constant_at(r, ty, mem) {
        return known;
    }
    // A predicate register is not loaded from memory: its byte is.
    let in_register = if ty == Ty::Bool { Ty::U8 } else { ty };
    let dst = r.reg(in_register);
    // Constants are variables of the module that nothing writes, which is no promise about the
    // memory of others.
    let space = match mem.base {
        Base::Constant(_) => Space::Global,
        _ => mem.space,
    };
    let effect = match mem.space {
        Space::ReadOnly | Space::Param => Effect::None,
        _ => Effect::Load,
    };
    r.act(load_op(space), ty.memory_suffix(), Some(dst), &[Operand::Mem(mem)], effect);
    let value = Operand::Reg(dst);
    if ty == Ty::Bool {
        return r.compute("setp.ne", "u32", Ty::Bool, &[value, Operand::Imm(Ty::U32, 0)]);
    }
    value
}

fn scalar_declare(ty: Ty) -> ScalarHandle {
    ScalarHandle::Var(with(|r| r.reg(ty)))
}

fn scalar_get(ty: Ty, handle: &ScalarHandle) -> ScalarHandle {
    with(|r| match *handle {
        ScalarHandle::Imm(_) | ScalarHandle::Reg(_) => *handle,
        ScalarHandle::Var(reg) => {
            let copy = r.reg(ty);
            r.act("mov", ty.bit_suffix(), Some(copy), &[Operand::Reg(reg)], Effect::None);
            ScalarHandle::Reg(copy)
        }
        ScalarHandle::Mem(mem) => match load(r, ty, mem) {
            Operand::Reg(reg) => ScalarHandle::Reg(reg),
            Operand::Imm(_, bits) => ScalarHandle::Imm(bits),
            _ => unreachable!("a load gives a register or a number"),
        },
    })
}

fn scalar_assign(ty: Ty, to: &ScalarHandle, from: &ScalarHandle) {
    with(|r| {
        let value = operand(r, ty, from);
        r.note_write(to);
        match *to {
            ScalarHandle::Var(reg) => r.act("mov", ty.bit_suffix(), Some(reg), &[value], Effect::None),
            ScalarHandle::Mem(mem) => {
                let value = match ty {
                    Ty::Bool => r.compute(
                        "selp",
                        "u32",
                        Ty::U32,
                        &[Operand::Imm(Ty::U32, 1), Operand::Imm(Ty::U32, 0), value],
                    ),
                    _ => value,
                };
                r.act(
                    store_op(mem.space),
                    ty.memory_suffix(),
                    None,
                    &[Operand::Mem(mem), value],
                    Effect::Store,
                );
            }
            ScalarHandle::Imm(_) | ScalarHandle::Reg(_) => {
                r.refuse("a temporary value is assigned to; assign to a variable")
            }
        }
    });
}

macro_rules! scalars {
    ($($t:ty, $ty:ident, $bits:expr, $of:expr;)*) => {$(
        impl Typed for $t {
            type Twin = V<$t>;
        }
        // SAFETY: a scalar is its own only part.
        unsafe impl KernelType for $t {
            type Handle = ScalarHandle;

            fn declare() -> ScalarHandle {
                scalar_declare(Ty::$ty)
            }
            fn get(handle: &ScalarHandle) -> ScalarHandle {
                scalar_get(Ty::$ty, handle)
            }
            fn assign(to: &ScalarHandle, from: &ScalarHandle) {
                scalar_assign(Ty::$ty, to, from)
            }
            fn stamp(handle: &ScalarHandle) -> u64 {
                with(|r| r.stamp(handle))
            }
            fn receiver(handle: &ScalarHandle) -> ScalarHandle {
                scalar_get(Ty::$ty, handle)
            }
            fn place(mem: Mem) -> ScalarHandle {
                ScalarHandle::Mem(mem)
            }
            fn lift(self) -> ScalarHandle {
                ScalarHandle::Imm(self.to_bits64())
            }
            fn bytes(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_bits64().to_le_bytes()[..size_of::<$t>()]);
            }
        }
        impl Cast for $t {
            type Number = $t;

            fn number(value: V<$t>) -> V<$t> {
                value
            }
        }
        impl Scalar for $t {
            const TY: Ty = Ty::$ty;

            fn to_bits64(self) -> u64 {
                let to: fn($t) -> u64 = $bits;
                to(self)
            }

            fn memory_bits(self) -> u64 {
                self.to_bits64() & (u64::MAX >> (64 - 8 * size_of::<$t>()))
            }

            fn from_memory_bits(bits: u64) -> Self {
                let of: fn(u64) -> $t = $of;
                of(bits)
            }
        }
    )*};
}
// Integers as 64 bits of their value, so that folding need not know how wide they are.
scalars!(
    bool, Bool, |x| x.into(), |b| b != 0;
    u8, U8, |x| x.into(), |b| b as u8;
    i8, I8, |x| i64::from(x) as u64, |b| b as i8;
    u16, U16, |x| x.into(), |b| b as u16;
    i16, I16, |x| i64::from(x) as u64, |b| b as i16;
    u32, U32, |x| x.into(), |b| b as u32;
    i32, I32, |x| i64::from(x) as u64, |b| b as i32;
    u64, U64, |x| x, |b| b;
    i64, I64, |x| x as u64, |b| b as i64;
    usize, U64, |x| x as u64, |b| b as usize;
    isize, I64, |x| x as i64 as u64, |b| b as isize;
    half::f16, F16, |x| x.to_bits().into(), |b| half::f16::from_bits(b as u16);
    half::bf16, Bf16, |x| x.to_bits().into(), |b| half::bf16::from_bits(b as u16);
    f32, F32, |x| x.to_bits().into(), |b| f32::from_bits(b as u32);
    f64, F64, |x| x.to_bits(), f64::from_bits;
);

/// Returns a literal.
pub fn lit<T: Scalar>(value: T) -> V<T> {
    V::new(value.lift())
}

/// Returns a constant of the program.
pub fn constant<T: Constant>(value: T) -> T::Twin {
    value.constant()
}

/// Returns what a closure has that moves a variable.
pub fn captured<X: Twin>(variable: &X) -> X {
    variable.captured()
}

/// Types whose default value is computed when the kernel is recorded. An `impl Default` with
/// `#[device]` comes first.
pub trait DefaultTwin: Default + Constant {
    #[doc(hidden)]
    fn __twin_default() -> Self::Twin {
        Self::default().constant()
    }
}
impl<T: Default + Constant> DefaultTwin for T {}

impl<T: KernelType + Default> V<T> {
    /// Does what the function of the standard library does.
    #[allow(clippy::should_implement_trait, reason = "it stands for the function of that name")]
    pub fn default() -> V<T> {
        constant(T::default())
    }
}

/// Returns the value of a place.
pub fn get<X: Twin>(place: &X) -> X {
    place.get()
}

/// Returns a new variable with this value.
pub fn var<X: Var>(value: X) -> X {
    value.own()
}

/// Returns a new variable without a value.
pub fn declare<X: Var>() -> X {
    X::declare()
}

/// Gives a place another value.
pub fn assign<X: Var>(place: &X, value: X) {
    place.assign(value);
}

/// Returns a reference to a place.
pub fn refer<X: Copy>(place: X) -> R<X> {
    R { __place: place }
}

/// What `*` can be written before: a reference, or what a pattern took out of one.
#[diagnostic::on_unimplemented(message = "`{Self}` is no reference")]
pub trait Dereference {
    /// The place that it leads to.
    type Place;
    #[doc(hidden)]
    fn place(self) -> Self::Place;
}
impl<X> Dereference for R<X> {
    type Place = X;

    fn place(self) -> X {
        self.__place
    }
}
/// A pattern that goes through a reference names the places of its parts.
impl<T: KernelType> Dereference for V<T> {
    type Place = V<T>;

    fn place(self) -> V<T> {
        self
    }
}

/// Returns the place that a reference leads to.
pub fn deref<X: Dereference>(reference: X) -> X::Place {
    reference.place()
}

/// `Some(value)`.
pub fn some<X>(value: X) -> Opt<X> {
    Opt { __some: lit(true), __value: value }
}

/// `None`.
pub fn none<X: Var>() -> Opt<X> {
    Opt { __some: lit(false), __value: X::declare() }
}

/// Returns the value of what is never reached.
pub fn never<X: Var>() -> X {
    X::declare()
}

/// Returns a new value of the type that `like` would return. `like` is not called: it has the
/// compiler check and infer.
pub fn fresh_like<T: KernelType>(like: impl FnOnce() -> T) -> V<T> {
    drop(like);
    V::new(T::declare())
}

/// Stands for a value where the compiler checks the types alone. Never called.
pub fn phantom<X: Phantom>(_: &X) -> X::Host {
    unreachable!("only the compiler looks at it")
}

/// What a twin stands for.
pub trait Phantom {
    /// The type of the value.
    type Host;
}

impl<T: KernelType> Phantom for V<T> {
    type Host = T;
}

/// Returns the value with these registers or this memory.
pub fn of_handle<T: KernelType>(handle: T::Handle) -> V<T> {
    V::new(handle)
}

/// `mem::swap`.
pub fn swap<X: Var>(a: R<X>, b: R<X>) {
    let (first, second) = (a.__place.get(), b.__place.get());
    a.__place.assign(second);
    b.__place.assign(first);
}

/// `mem::replace`.
pub fn replace<X: Var>(place: R<X>, value: X) -> X {
    let before = place.__place.get();
    place.__place.assign(value);
    before
}

/// Returns what a method is called on.
pub fn receiver<X: Twin>(place: X) -> X {
    place.receiver()
}

/// Returns how often a place was written so far.
pub fn stamp<X: Twin>(place: &X) -> u64 {
    place.stamp()
}

/// Refuses a method whose arguments change what it is called on.
pub fn unchanged<X: Twin>(place: &X, stamp: u64) {
    if place.stamp() != stamp {
        with(|r| {
            r.refuse("an argument of the method changes what it is called on; take the value into a variable first")
        });
    }
}

/// Checks that a name means a function of the standard library: each function has its own type.
pub fn is_of_standard_library<F: SameFunction<G>, G>(_: F, _: G) {}

/// The type of a function that is the same as another one.
#[diagnostic::on_unimplemented(
    message = "this function has the name of one of the standard library, which device code would call instead",
    note = "give it another name"
)]
pub trait SameFunction<G> {}
impl<F> SameFunction<F> for F {}
/// With a second one, the compiler names the function instead of its type.
impl<F> SameFunction<[F; 0]> for F {}
