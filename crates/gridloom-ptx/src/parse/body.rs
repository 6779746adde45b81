//! Function bodies: scopes, labels, statements.

use std::collections::{HashMap, HashSet};

use super::function::Role;
use super::inst::Mods;
use super::scope::{Entity, Names};
use super::{Parse, Parser, Stop, shorten};
use crate::NotRun;
use crate::lexer::Kind;
use crate::limits;
use crate::model::op::{Instruction, IntOp, Op, Unsupported};
use crate::model::{
    Body, BodyPragma, BranchTable, BranchTableId, CallTable, CallTableId, Guard, Label, LabelId, Linkage,
    LocationId, Prototype, PrototypeId, SourceLocation, Span, VarSpace,
};

/// The state of the function being parsed.
#[derive(Default)]
pub(super) struct FunctionState<'a> {
    pub(super) body: Body,
    pub(super) names: Names<'a>,
    /// The labels of each scope, by the index of the token that opens it.
    labels: HashMap<usize, Vec<(&'a str, Span, Entity)>>,
    /// Additions written as `%r1+4` among the operands of the current instruction.
    pub(super) sums: Vec<IntOp>,
    location: Option<SourceLocation>,
    /// The entries of the body's table of locations.
    locations: HashMap<SourceLocation, LocationId>,
    /// The positions of those entries.
    positions: HashSet<Position>,
    /// Every `.loc` so far, by position, for inlined calls.
    seen: HashMap<Position, SourceLocation>,
}

/// File, line and column.
type Position = (u32, u32, u32);

impl<'a> Parser<'a> {
    /// Parses the body, from its `{` to its `}`. The scope of the parameters is already open.
    pub(super) fn function_body(&mut self) -> Parse<()> {
        self.find_labels();
        self.declare_labels(self.at);
        self.advance();
        loop {
            if self.gave_up() {
                return Err(Stop::Reported);
            }
            let before = self.at;
            match self.kind() {
                Kind::End => return self.expected("`}` at the end of the function"),
                Kind::LBrace => {
                    if self.fun.names.depth() >= limits::SCOPE_DEPTH {
                        let message = format!("scopes nested deeper than {}", limits::SCOPE_DEPTH);
                        return self.error(self.span(), message);
                    }
                    self.fun.names.open();
                    self.declare_labels(self.at);
                    self.advance();
                }
                Kind::RBrace => {
                    self.advance();
                    self.fun.names.close();
                    if self.fun.names.depth() == 0 {
                        // Errors inside are reported, and the next function can still be parsed.
                        return Ok(());
                    }
                }
                _ => {
                    if self.statement().is_err() {
                        self.skip_in_body();
                    }
                    if self.at == before {
                        self.advance();
                    }
                }
            }
        }
    }

    /// Skips to the next statement or the end of the scope, after an error inside a body.
    fn skip_in_body(&mut self) {
        let mut braces = 0usize;
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Semi => {
                    self.advance();
                    return;
                }
                Kind::LBrace => braces += 1,
                Kind::RBrace if braces == 0 => return,
                Kind::RBrace => braces -= 1,
                _ => {}
            }
            self.advance();
        }
    }

    /// Finds all labels of the body that starts at the cursor. Branches may go forward, and a label
    /// is visible in all of its scope. Tables and prototypes have labels too.
    fn find_labels(&mut self) {
        let mut scopes: Vec<usize> = Vec::new();
        // Whether the current token starts a statement.
        let mut start = true;
        let mut operand_braces = 0usize;
        let mut at = self.at;
        loop {
            let token = self.tokens.get(at).copied().unwrap_or(super::END);
            let next = self.tokens.get(at + 1).map_or(Kind::End, |token| token.kind);
            match token.kind {
                Kind::End => return,
                Kind::LBrace if start => scopes.push(at),
                Kind::LBrace => operand_braces += 1,
                Kind::RBrace if operand_braces > 0 => operand_braces -= 1,
                Kind::RBrace => {
                    scopes.pop();
                    if scopes.is_empty() {
                        return;
                    }
                    start = true;
                }
                Kind::Semi => {
                    start = true;
                    operand_braces = 0;
                }
                Kind::Ident if start && next == Kind::Colon => {
                    let after = self.tokens.get(at + 2).copied().unwrap_or(super::END);
                    let entity = self.new_label(self.text_of(after), token.span);
                    let name = self.text_of(token);
                    if let Some(scope) = scopes.last() {
                        self.fun.labels.entry(*scope).or_default().push((name, token.span, entity));
                    }
                    at += 1;
                }
                Kind::Dot if start && self.text_of(token) == ".loc" => {
                    at = self.after_location(at + 1);
                    continue;
                }
                _ => start = false,
            }
            at += 1;
        }
    }

    /// Returns the index of the token after a `.loc` whose numbers start at `at`.
    fn after_location(&self, mut at: usize) -> usize {
        let kind = |at: usize| self.tokens.get(at).map_or(Kind::End, |token| token.kind);
        while kind(at) == Kind::Int {
            at += 1;
        }
        if kind(at) == Kind::Comma {
            // `, function_name label{+n}, inlined_at file line column`
            at += 1;
            while matches!(kind(at), Kind::Ident | Kind::Dot | Kind::Plus | Kind::Minus | Kind::Int) {
                at += 1;
            }
            if kind(at) == Kind::Comma {
                at += 2;
                while kind(at) == Kind::Int {
                    at += 1;
                }
            }
        }
        at
    }

    /// Adds an entry to the table that the word after a label names.
    fn new_label(&mut self, after: &str, span: Span) -> Entity {
        let body = &mut self.fun.body;
        let id = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        match after {
            ".branchtargets" => {
                body.branch_tables.push(BranchTable { name: String::new(), targets: Vec::new(), span });
                Entity::BranchTable(BranchTableId(id(body.branch_tables.len() - 1)))
            }
            ".calltargets" => {
                body.call_tables.push(CallTable { name: String::new(), targets: Vec::new(), span });
                Entity::CallTable(CallTableId(id(body.call_tables.len() - 1)))
            }
            ".callprototype" => {
                body.prototypes.push(Prototype {
                    name: String::new(),
                    returns: Vec::new(),
                    params: Vec::new(),
                    noreturn: false,
                    abi_preserve: None,
                    abi_preserve_control: None,
                    span,
                });
                Entity::Prototype(PrototypeId(id(body.prototypes.len() - 1)))
            }
            _ => {
                body.labels.push(Label { name: String::new(), target: 0, span });
                Entity::Label(LabelId(id(body.labels.len() - 1)))
            }
        }
    }

    /// Declares the labels of the scope that the token `opens` opens.
    fn declare_labels(&mut self, opens: usize) {
        for (name, span, entity) in self.fun.labels.remove(&opens).unwrap_or_default() {
            if self.fun.names.declared_here(name) {
                let _ =
                    self.error::<()>(span, format!("`{}` is declared twice in this scope", shorten(name)));
                continue;
            }
            let unique = self.unique_name(name, false);
            self.fun.names.insert(name, entity);
            let body = &mut self.fun.body;
            match entity {
                Entity::Label(id) => body.labels[id.index()].name = unique,
                Entity::BranchTable(id) => body.branch_tables[id.index()].name = unique,
                Entity::CallTable(id) => body.call_tables[id.index()].name = unique,
                Entity::Prototype(id) => body.prototypes[id.index()].name = unique,
                _ => {}
            }
        }
    }

    fn statement(&mut self) -> Parse<()> {
        let start = self.span();
        match self.kind() {
            Kind::Semi => {
                self.advance();
                Ok(())
            }
            Kind::At => {
                self.advance();
                let negated = self.eat(Kind::Bang);
                let reg = self.reg("a predicate register")?;
                self.instruction(start, Some(Guard { reg, negated }))
            }
            Kind::Ident if self.token_at(1).kind == Kind::Colon => self.labelled(),
            Kind::Ident => self.instruction(start, None),
            Kind::Dot => self.directive(),
            _ => self.expected("an instruction"),
        }
    }

    /// Parses a label, with the table or prototype it names if there is one.
    fn labelled(&mut self) -> Parse<()> {
        let (name, span) = self.ident("a label")?;
        self.advance();
        match self.entity(name) {
            Some(Entity::Label(id)) => {
                self.fun.body.labels[id.index()].target = self.next_index();
                Ok(())
            }
            Some(Entity::BranchTable(id)) => {
                self.advance();
                let mut targets = Vec::new();
                loop {
                    targets.push(self.label()?);
                    if !self.eat(Kind::Comma) {
                        break;
                    }
                }
                self.expect(Kind::Semi, "`;`")?;
                self.fun.body.branch_tables[id.index()].targets = targets;
                Ok(())
            }
            Some(Entity::CallTable(id)) => {
                self.advance();
                let mut targets = Vec::new();
                loop {
                    let (name, span) = self.ident("a function")?;
                    match self.symbols.get(name) {
                        Some(symbol) => targets.push(*symbol),
                        None => return self.unknown_symbol(name, span),
                    }
                    if !self.eat(Kind::Comma) {
                        break;
                    }
                }
                self.expect(Kind::Semi, "`;`")?;
                self.fun.body.call_tables[id.index()].targets = targets;
                Ok(())
            }
            Some(Entity::Prototype(id)) => {
                self.advance();
                self.prototype(id)
            }
            _ => self.error(span, format!("`{}` cannot be a label here", shorten(name))),
        }
    }

    /// Parses a prototype after `.callprototype`.
    fn prototype(&mut self, id: PrototypeId) -> Parse<()> {
        let mut registers = 0;
        let returns =
            if self.at_kind(Kind::LParen) { self.params(Role::Return, &mut registers)? } else { Vec::new() };
        self.ident("`_`")?;
        let params =
            if self.at_kind(Kind::LParen) { self.params(Role::Param, &mut registers)? } else { Vec::new() };
        let (mut noreturn, mut preserve, mut control) = (false, None, None);
        while let Some(word) = self.peek_dot() {
            self.advance();
            match word {
                "noreturn" => noreturn = true,
                "abi_preserve" => preserve = Some(self.small("a number of registers")?),
                "abi_preserve_control" => control = Some(self.small("a number of registers")?),
                _ => return self.error(self.span(), format!("`.{}` after a prototype", shorten(word))),
            }
        }
        self.expect(Kind::Semi, "`;`")?;
        let prototype = &mut self.fun.body.prototypes[id.index()];
        prototype.returns = returns.into_iter().map(|(_, param)| param).collect();
        prototype.params = params.into_iter().map(|(_, param)| param).collect();
        prototype.noreturn = noreturn;
        prototype.abi_preserve = preserve;
        prototype.abi_preserve_control = control;
        Ok(())
    }

    fn directive(&mut self) -> Parse<()> {
        let at = self.span();
        let Some(word) = self.peek_dot() else { return self.expected("a directive") };
        self.advance();
        match word {
            "reg" => self.registers(),
            "loc" => {
                let location = self.location()?;
                self.fun.seen.insert(location.position(), location.clone());
                self.fun.location = Some(location);
                Ok(())
            }
            "file" => self.file(),
            "section" => self.section(),
            "pragma" => {
                let texts = self.pragma()?;
                let at = self.next_index();
                self.fun.body.pragmas.push(BodyPragma { at, texts });
                Ok(())
            }
            _ => match Linkage::from_word(word) {
                Some(linkage) => match self.peek_dot().and_then(VarSpace::from_word) {
                    Some(space) if space != VarSpace::Reg => {
                        self.advance();
                        self.local_variables(linkage, space)
                    }
                    _ => self.expected("a state space such as .shared"),
                },
                None => match VarSpace::from_word(word) {
                    Some(space) => self.local_variables(Linkage::Internal, space),
                    None => self.error_with_help(
                        at,
                        format!("unknown directive `.{}` inside a function", shorten(word)),
                        Some("a function holds .reg, .shared, .local, .param, .loc and .pragma".to_owned()),
                    ),
                },
            },
        }
    }

    fn next_index(&self) -> u32 {
        u32::try_from(self.fun.body.instructions.len()).unwrap_or(u32::MAX)
    }

    fn instruction(&mut self, start: Span, guard: Option<Guard>) -> Parse<()> {
        let is_name = self.text_of(self.token()).starts_with(|c: char| c.is_ascii_lowercase());
        if self.at_kind(Kind::Ident) && !is_name {
            return self.expected("an instruction");
        }
        let (mnemonic, name_span) = self.ident("an instruction")?;
        let mut mods = Mods::new(mnemonic, name_span);
        while let Some(word) = self.peek_dot() {
            let span = self.span();
            self.advance();
            mods.push(word, span);
        }
        let operands = self.at;
        self.fun.sums.clear();
        let op = match self.decode(&mut mods) {
            Ok(op) => op,
            Err(Stop::Unsupported(reason)) => {
                self.at = operands;
                self.fun.sums.clear();
                let (mnemonic, modifiers) = mods.into_words();
                let reason = match NotRun::find(&mnemonic, &modifiers) {
                    Some(family) => format!("{} are not run yet", family.family),
                    None => reason,
                };
                let operands = self.raw_operands()?;
                Op::Unsupported(Box::new(Unsupported { mnemonic, modifiers, operands, reason }))
            }
            Err(Stop::Reported) => return Err(Stop::Reported),
        };
        let end = self.span();
        if !self.at_kind(Kind::Semi) {
            let what = if self.at_kind(Kind::Comma) {
                format!("`;`: `{mnemonic}` takes no more operands")
            } else {
                "`;`".to_owned()
            };
            return self.expected(&what);
        }
        self.advance();
        let location = self.location_id();
        for sum in std::mem::take(&mut self.fun.sums) {
            self.fun.body.instructions.push(Instruction {
                guard: None,
                op: sum.into(),
                location,
                span: start.to(end),
            });
        }
        self.fun.body.instructions.push(Instruction { guard, op, location, span: start.to(end) });
        Ok(())
    }

    /// Returns the current `.loc` as an entry of the function's table. The position it was inlined
    /// at gets an entry before it, because the assembler requires that order.
    fn location_id(&mut self) -> Option<LocationId> {
        let fun = &mut self.fun;
        let location = fun.location.as_ref()?;
        if let Some(id) = fun.locations.get(location) {
            return Some(*id);
        }
        let mut chain = vec![location.clone()];
        while let Some(inlined) = chain.last().and_then(|location| location.inlined.as_ref()) {
            let call = inlined.position();
            let known =
                fun.positions.contains(&call) || chain.iter().any(|location| location.position() == call);
            match fun.seen.get(&call) {
                Some(place) if !known && chain.len() < limits::INLINED => chain.push(place.clone()),
                _ => break,
            }
        }
        let mut id = None;
        for location in chain.into_iter().rev() {
            let next = LocationId(u32::try_from(fun.body.locations.len()).unwrap_or(u32::MAX));
            id = Some(next);
            fun.positions.insert(location.position());
            fun.locations.insert(location.clone(), next);
            fun.body.locations.push(location);
        }
        id
    }
}
