//! Names inside a function: their meaning, scope by scope, and their names in the flattened body.

use std::collections::HashMap;

use crate::model::{BranchTableId, CallTableId, LabelId, LocalVarId, PrototypeId, RegId, VarRef};

/// The meaning of a name inside a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Reg(RegId),
    /// A vector register, split into its elements.
    Vector {
        first: RegId,
        count: u32,
    },
    Var(VarRef),
    Label(LabelId),
    BranchTable(BranchTableId),
    CallTable(CallTableId),
    Prototype(PrototypeId),
}

/// The first of the members that `name<n>` declares.
#[derive(Clone, Copy, Debug)]
pub(super) enum Members {
    Regs(RegId),
    /// Vector registers of this many elements each.
    Vectors(RegId, u32),
    Locals(LocalVarId),
}

#[derive(Default)]
struct Scope<'a> {
    serial: u32,
    names: HashMap<&'a str, Entity>,
    ranges: HashMap<&'a str, (Members, u32)>,
}

/// The open scopes of a function, and the names in its flat body.
#[derive(Default)]
pub(super) struct Names<'a> {
    open: Vec<Scope<'a>>,
    serials: u32,
    /// For every name in the flat body, the scope that declared it first.
    singles: HashMap<String, u32>,
    /// The same for names of ranges, without trailing digits, because `%r<5>` and `%r1<5>` could
    /// share members.
    range_stems: HashMap<String, u32>,
    /// The same for all single names without trailing digits, or `None` once two scopes share it.
    single_stems: HashMap<String, Option<u32>>,
    /// How often each name had to be changed.
    renamed: HashMap<String, u32>,
}

fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

impl<'a> Names<'a> {
    pub(super) fn open(&mut self) {
        self.open.push(Scope { serial: self.serials, ..Scope::default() });
        self.serials += 1;
    }

    pub(super) fn close(&mut self) {
        self.open.pop();
    }

    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns whether the innermost scope has this name already.
    pub(super) fn declared_here(&self, name: &str) -> bool {
        self.open
            .last()
            .is_some_and(|scope| scope.names.contains_key(name) || scope.range_member(name).is_some())
    }

    /// Returns whether the innermost scope has a range of this name already.
    pub(super) fn range_declared_here(&self, name: &str) -> bool {
        self.open.last().is_some_and(|scope| scope.ranges.contains_key(name))
    }

    pub(super) fn insert(&mut self, name: &'a str, entity: Entity) {
        if let Some(scope) = self.open.last_mut() {
            scope.names.insert(name, entity);
        }
    }

    pub(super) fn insert_range(&mut self, name: &'a str, members: Members, count: u32) {
        if let Some(scope) = self.open.last_mut() {
            scope.ranges.insert(name, (members, count));
        }
    }

    /// Returns the meaning of a name, innermost scope first.
    pub(super) fn find(&self, name: &str) -> Option<Entity> {
        self.open
            .iter()
            .rev()
            .find_map(|scope| scope.names.get(name).copied().or_else(|| scope.range_member(name)))
    }

    /// Returns all visible names except members of ranges, for suggestions.
    pub(super) fn visible(&self) -> impl Iterator<Item = (&'a str, Entity)> + '_ {
        self.open.iter().rev().flat_map(|scope| scope.names.iter().map(|(name, entity)| (*name, *entity)))
    }

    /// Returns all visible ranges.
    pub(super) fn visible_ranges(&self) -> impl Iterator<Item = (&'a str, u32)> + '_ {
        self.open.iter().rev().flat_map(|scope| scope.ranges.iter().map(|(name, (_, count))| (*name, *count)))
    }

    /// Returns the name of an innermost declaration in the flat body: its own, unless another scope
    /// or the module (`taken`) uses it.
    pub(super) fn unique(&mut self, name: &str, is_range: bool, taken: impl Fn(&str) -> bool) -> String {
        let serial = self.open.last().map_or(0, |scope| scope.serial);
        let root = stem(name);
        let clash = if is_range {
            self.range_stems.get(root).is_some_and(|other| *other != serial)
                || self.single_stems.get(root).is_some_and(|other| *other != Some(serial))
        } else {
            self.singles.get(name).is_some_and(|other| *other != serial)
                || self.range_stems.get(root).is_some_and(|other| *other != serial)
        };
        if clash || taken(name) {
            return self.fresh(name, taken);
        }
        let root = root.to_owned();
        if is_range {
            self.range_stems.entry(root).or_insert(serial);
        } else {
            self.single_stems
                .entry(root)
                .and_modify(|other| {
                    if *other != Some(serial) {
                        *other = None;
                    }
                })
                .or_insert(Some(serial));
            self.singles.entry(name.to_owned()).or_insert(serial);
        }
        name.to_owned()
    }

    /// Returns a name made from `name` that nothing in the function uses and that no later
    /// declaration will get.
    pub(super) fn fresh(&mut self, name: &str, taken: impl Fn(&str) -> bool) -> String {
        let count = self.renamed.entry(name.to_owned()).or_insert(0);
        loop {
            *count += 1;
            // A trailing underscore keeps the new name from being a member of any range.
            let chosen = format!("{name}${count}_");
            if !self.singles.contains_key(&chosen)
                && !self.range_stems.contains_key(&chosen)
                && !self.single_stems.contains_key(&chosen)
                && !taken(&chosen)
            {
                self.singles.insert(chosen.clone(), NO_SCOPE);
                self.range_stems.insert(chosen.clone(), NO_SCOPE);
                self.single_stems.insert(chosen.clone(), None);
                return chosen;
            }
        }
    }
}

/// The scope of names that no declaration in the text has.
const NO_SCOPE: u32 = u32::MAX;

impl Scope<'_> {
    fn range_member(&self, name: &str) -> Option<Entity> {
        if self.ranges.is_empty() {
            return None;
        }
        let digits_at = stem(name).len();
        // `%r10` is member 10 of `%r` or member 0 of `%r1`. Ranges are bounded, so seven digits
        // suffice.
        for split in (digits_at..name.len()).rev().take(7) {
            let (prefix, digits) = name.split_at(split);
            if digits.len() > 1 && digits.starts_with('0') {
                continue;
            }
            if let (Some((members, count)), Ok(number)) = (self.ranges.get(prefix), digits.parse::<u32>())
                && number < *count
            {
                return Some(match members {
                    Members::Regs(first) => Entity::Reg(RegId(first.0 + number)),
                    Members::Vectors(first, elements) => {
                        Entity::Vector { first: RegId(first.0 + number * elements), count: *elements }
                    }
                    Members::Locals(first) => Entity::Var(VarRef::Local(LocalVarId(first.0 + number))),
                });
            }
        }
        None
    }
}
