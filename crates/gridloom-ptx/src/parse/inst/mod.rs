//! Instructions: modifiers, and the dispatch by family. There is one file per family.
//!
//! A decoder first takes the modifiers it knows, in any order. If some are left, the instruction is
//! outside the model. Only then does it parse operands, and from there on anything wrong is an
//! error.

mod atomic;
mod bits;
mod compare;
mod control;
mod convert;
mod float;
mod int;
mod memory;
mod sync;
mod warp;

use smallvec::SmallVec;

use super::{Parse, Parser, Stop};
use crate::lexer::Kind;
use crate::limits;
use crate::model::op::Op;
use crate::model::{Operand, PredOperand, RegId, ScalarType, Space, Span, Word};

/// The mnemonics that [`Parser::decode`] knows.
pub(crate) const MNEMONICS: &[&str] = &[
    "add",
    "sub",
    "mul",
    "mad",
    "div",
    "min",
    "max",
    "abs",
    "neg",
    "addc",
    "subc",
    "madc",
    "rem",
    "mul24",
    "mad24",
    "sad",
    "dp4a",
    "dp2a",
    "and",
    "or",
    "xor",
    "not",
    "cnot",
    "lop3",
    "shl",
    "shr",
    "shf",
    "bfe",
    "bfi",
    "bfind",
    "brev",
    "clz",
    "popc",
    "fns",
    "prmt",
    "szext",
    "bmsk",
    "fma",
    "rcp",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "lg2",
    "ex2",
    "tanh",
    "copysign",
    "testp",
    "set",
    "setp",
    "selp",
    "slct",
    "cvt",
    "cvta",
    "isspacep",
    "mapa",
    "getctarank",
    "mov",
    "ld",
    "ldu",
    "st",
    "prefetch",
    "prefetchu",
    "discard",
    "applypriority",
    "createpolicy",
    "cp",
    "alloca",
    "stacksave",
    "stackrestore",
    "atom",
    "red",
    "bra",
    "brx",
    "call",
    "ret",
    "exit",
    "trap",
    "brkpt",
    "nanosleep",
    "griddepcontrol",
    "pmevent",
    "setmaxnreg",
    "bar",
    "barrier",
    "membar",
    "fence",
    "mbarrier",
    "shfl",
    "vote",
    "match",
    "redux",
    "activemask",
    "elect",
];

/// The words of an instruction's name.
pub(super) struct Mods<'a> {
    mnemonic: &'a str,
    span: Span,
    words: SmallVec<[&'a str; 8]>,
    /// A bit for each word that a decoder has taken.
    used: u64,
}

impl<'a> Mods<'a> {
    pub(super) fn new(mnemonic: &'a str, span: Span) -> Self {
        Self { mnemonic, span, words: SmallVec::new(), used: 0 }
    }

    pub(super) fn push(&mut self, word: &'a str, span: Span) {
        self.words.push(word);
        self.span = self.span.to(span);
    }

    pub(super) fn into_words(self) -> (String, Vec<String>) {
        (self.mnemonic.to_owned(), self.words.iter().map(|word| (*word).to_owned()).collect())
    }

    fn unused(&self) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        self.words
            .iter()
            .enumerate()
            .filter(|(index, _)| self.used & (1 << index) == 0)
            .map(|(i, word)| (i, *word))
    }

    /// Takes the word `word`, if it is there.
    fn flag(&mut self, word: &str) -> bool {
        let found = self.unused().find(|(_, other)| *other == word);
        if let Some((index, _)) = found {
            self.used |= 1 << index;
        }
        found.is_some()
    }

    /// Takes the first word that is a `T`, if there is one.
    fn take<T: Word>(&mut self) -> Option<T> {
        let (index, value) = self.unused().find_map(|(index, word)| Some((index, T::parse_word(word)?)))?;
        self.used |= 1 << index;
        Some(value)
    }

    /// Returns whether the first word is `word`, without taking it.
    fn starts_with(&self, word: &str) -> bool {
        self.words.first() == Some(&word)
    }

    /// Takes the state space. It is generic if there is none.
    fn space(&mut self) -> Space {
        self.take().unwrap_or(Space::Generic)
    }

    /// Takes `.v2`, `.v4` or `.v8`: the number of elements.
    fn vector(&mut self) -> usize {
        [("v1", 1), ("v2", 2), ("v4", 4), ("v8", 8)]
            .into_iter()
            .find_map(|(word, count)| self.flag(word).then_some(count))
            .unwrap_or(1)
    }

    /// Fails if a word is left that no decoder took.
    fn finish(&self) -> Parse<()> {
        match self.unused().next() {
            None => Ok(()),
            Some((_, word)) => Err(Stop::Unsupported(format!("`{}` has no `.{word}`", self.mnemonic))),
        }
    }
}

impl<'a> Parser<'a> {
    /// Decodes the instruction named by `mods`, whose operands start at the cursor.
    pub(super) fn decode(&mut self, mods: &mut Mods<'a>) -> Parse<Op> {
        if mods.words.len() > limits::MODIFIERS {
            return Err(Stop::Unsupported("it has too many modifiers".to_owned()));
        }
        match mods.mnemonic {
            "add" | "sub" | "mul" | "mad" | "div" | "min" | "max" | "abs" | "neg" => self.arithmetic(mods),
            "addc" | "subc" | "madc" | "rem" | "mul24" | "mad24" | "sad" | "dp4a" | "dp2a" => self.int(mods),
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shl" | "shr" | "shf" | "bfe" | "bfi"
            | "bfind" | "brev" | "clz" | "popc" | "fns" | "prmt" | "szext" | "bmsk" => self.bits(mods),
            "fma" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "copysign"
            | "testp" => self.float(mods),
            "set" | "setp" | "selp" | "slct" => self.compare(mods),
            "cvt" | "cvta" | "isspacep" | "mapa" | "getctarank" | "mov" => self.convert(mods),
            "ld" | "ldu" | "st" | "prefetch" | "prefetchu" | "discard" | "applypriority" | "createpolicy"
            | "cp" | "alloca" | "stacksave" | "stackrestore" => self.memory(mods),
            "atom" | "red" => self.atomic(mods),
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "nanosleep" | "griddepcontrol"
            | "pmevent" | "setmaxnreg" => self.control(mods),
            "bar" | "barrier" | "membar" | "fence" | "mbarrier" => self.sync(mods),
            "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => self.warp(mods),
            other => Err(Stop::Unsupported(format!("there is no instruction `{other}`"))),
        }
    }

    /// Decodes instructions whose type decides between integer and floating point.
    fn arithmetic(&mut self, mods: &mut Mods<'a>) -> Parse<Op> {
        let is_float =
            mods.unused().filter_map(|(_, word)| ScalarType::from_word(word)).any(ScalarType::is_float);
        if is_float { self.float(mods) } else { self.int(mods) }
    }

    /// Takes a required modifier.
    fn need<T: Word>(&mut self, mods: &mut Mods<'a>, what: &str) -> Parse<T> {
        match mods.take() {
            Some(value) => Ok(value),
            None => {
                // An unknown word may be the missing one, in a newer PTX.
                if mods.unused().any(|(_, word)| ScalarType::from_word(word).is_none()) {
                    mods.finish()?;
                }
                self.error(mods.span, format!("`{}` needs {what}", mods.mnemonic))
            }
        }
    }

    fn need_type(&mut self, mods: &mut Mods<'a>) -> Parse<ScalarType> {
        self.need(mods, "a type such as .u32")
    }

    // --- common operand lists ---

    fn unary(&mut self, ty: ScalarType) -> Parse<(RegId, Operand)> {
        let dst = self.dst(ty)?;
        self.comma()?;
        Ok((dst, self.src()?))
    }

    fn binary_operands(&mut self, ty: ScalarType) -> Parse<(RegId, Operand, Operand)> {
        let (dst, a) = self.unary(ty)?;
        self.comma()?;
        Ok((dst, a, self.src()?))
    }

    fn ternary_operands(&mut self, ty: ScalarType) -> Parse<(RegId, Operand, Operand, Operand)> {
        let (dst, a, b) = self.binary_operands(ty)?;
        self.comma()?;
        Ok((dst, a, b, self.src()?))
    }

    /// Parses `d|p`. Each is `None` if it is `_` or absent.
    fn dst_pair(&mut self) -> Parse<(Option<RegId>, Option<RegId>)> {
        let first = self.opt_dst()?;
        let second = if self.eat(Kind::Pipe) { self.opt_dst()? } else { None };
        Ok((first, second))
    }

    /// Parses `, operand`, if there is one more.
    fn optional_src(&mut self) -> Parse<Option<Operand>> {
        if self.eat(Kind::Comma) { self.src().map(Some) } else { Ok(None) }
    }

    /// Converts an operand to a predicate.
    fn operand_to_pred(&mut self, operand: Operand, span: Span) -> Parse<PredOperand> {
        match operand {
            Operand::Reg(reg) => Ok(PredOperand::Reg { reg, negated: false }),
            Operand::Imm(crate::model::Imm::Int(value)) => Ok(PredOperand::Const(value != 0)),
            _ => self.error(span, "expected a predicate"),
        }
    }
}
