//! The model of a PTX module: tables, typed indices and typed instructions.

mod debug;
mod function;
mod module;
mod names;
pub mod op;
mod operand;
mod registers;
mod span;
mod special;
mod types;
mod variable;

pub use debug::{InlinedAt, Section, SectionData, SectionItem, SectionValue, SourceFile, SourceLocation};
pub use function::{
    Body, BodyPragma, BranchTable, CallTable, Directives, Function, FunctionKind, Label, Param, PointerAttr,
    Prototype,
};
pub use module::{Item, Module, Symbol, Target, Version};
pub(crate) use names::Word;
pub use names::{
    BranchTableId, CallTableId, LabelId, LocalVarId, LocationId, ParamId, PrototypeId, RegId, SymbolId,
};
pub use operand::{Address, AddressBase, Dsts, Guard, Imm, Operand, PredOperand, Srcs, VarRef};
pub use registers::{RegGroup, Registers};
pub use span::Span;
pub use special::{Dim, DimSpecial, PlainSpecial, SpecialReg};
pub use types::{Linkage, ScalarType, Space, TypeClass, VarSpace};
pub use variable::{Attribute, Image, Initializer, Relocation, Variable};
