//! Enums that mirror a word of the PTX language, and the typed indices of the model.

/// A modifier the parser can recognise.
pub(crate) trait Word: Sized {
    fn parse_word(word: &str) -> Option<Self>;
}

/// Declares an enum in which every variant has one spelling in PTX text.
///
/// The spelling is next to the variant, so that parser and printer always agree.
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $text:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $( $(#[$vmeta])* #[doc = concat!("`", $text, "`")] $variant, )+ }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Returns the word in PTX text, without a leading dot.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// Returns the value spelled `word` (without a leading dot), if there is one.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($text => Some($name::$variant),)+ _ => None }
            }
        }

        impl $crate::model::Word for $name {
            fn parse_word(word: &str) -> Option<Self> {
                Self::from_word(word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

macro_rules! index {
    ($($(#[$meta:meta])* $name:ident;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the index as a `usize`, for indexing the table it belongs to.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

index! {
    /// A register of one function: an index into its [`Registers`](super::Registers).
    RegId;
    /// A variable declared inside a function: an index into [`Body::locals`](super::Body::locals).
    LocalVarId;
    /// A formal parameter or return value: an index into
    /// [`Function::params`](super::Function::params) or
    /// [`Function::returns`](super::Function::returns).
    ParamId;
    /// A label of one function: an index into [`Body::labels`](super::Body::labels).
    LabelId;
    /// A module-scope variable or function: an index into
    /// [`Module::symbols`](super::Module::symbols).
    SymbolId;
    /// A `.branchtargets` list: an index into [`Body::branch_tables`](super::Body::branch_tables).
    BranchTableId;
    /// A `.calltargets` list: an index into [`Body::call_tables`](super::Body::call_tables).
    CallTableId;
    /// A `.callprototype`: an index into [`Body::prototypes`](super::Body::prototypes).
    PrototypeId;
    /// A source position from `.loc`: an index into [`Body::locations`](super::Body::locations).
    LocationId;
}
