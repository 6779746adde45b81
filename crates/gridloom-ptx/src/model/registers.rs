//! The registers of a function.

use super::names::RegId;
use super::span::Span;
use super::types::ScalarType;

/// Registers declared together: `%r<10>` is ten, `%p` is one.
#[derive(Clone, Debug, PartialEq)]
pub struct RegGroup {
    /// The name; for a range, what comes before the number.
    pub name: String,
    /// `Some(n)` for a range `name<n>`, whose members are `name0` up to `name(n-1)`.
    pub range: Option<u32>,
    /// The type of every member.
    pub ty: ScalarType,
    /// The first member.
    pub first: RegId,
    /// Where it is declared.
    pub span: Span,
}

impl RegGroup {
    /// Returns how many registers this declares.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.range.unwrap_or(1)
    }
}

/// All registers of a function, numbered from 0 without gaps in order of declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registers {
    groups: Vec<RegGroup>,
    count: u32,
}

impl Registers {
    /// Returns an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares one register or a range of them and returns the first. Returns `None` if their
    /// number overflows.
    pub fn declare(&mut self, name: &str, range: Option<u32>, ty: ScalarType, span: Span) -> Option<RegId> {
        let first = RegId(self.count);
        self.count = self.count.checked_add(range.unwrap_or(1))?;
        self.groups.push(RegGroup { name: name.to_owned(), range, ty, first, span });
        Some(first)
    }

    /// Returns the declarations, in order.
    #[must_use]
    pub fn groups(&self) -> &[RegGroup] {
        &self.groups
    }

    /// Returns how many registers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the declaration a register came from.
    #[must_use]
    pub fn group(&self, reg: RegId) -> Option<&RegGroup> {
        if reg.0 >= self.count {
            return None;
        }
        // An empty range has the same `first` as the next group. So the group of a register is the
        // last one that starts at or before it.
        let after = self.groups.partition_point(|group| group.first <= reg);
        self.groups.get(after.checked_sub(1)?)
    }

    /// Returns the declared type of a register.
    ///
    /// # Panics
    /// If the register is not one of this function's.
    #[must_use]
    pub fn ty(&self, reg: RegId) -> ScalarType {
        self.group(reg).expect("a register of this function").ty
    }

    /// Returns the name of a register, for printing and messages. It is `%?` and the number if the
    /// function has no such register.
    #[must_use]
    pub fn name(&self, reg: RegId) -> String {
        match self.group(reg) {
            Some(group) if group.range.is_some() => format!("{}{}", group.name, reg.0 - group.first.0),
            Some(group) => group.name.clone(),
            None => format!("%?{}", reg.0),
        }
    }

    /// Returns the register named `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<RegId> {
        self.groups.iter().find_map(|group| match group.range {
            None => (group.name == name).then_some(group.first),
            Some(count) => {
                let digits = name.strip_prefix(group.name.as_str())?;
                let number: u32 = digits.parse().ok()?;
                // `%r01` is not a member of `%r<10>`.
                (number < count && number.to_string() == digits).then(|| RegId(group.first.0 + number))
            }
        })
    }

    /// Returns the types of all registers, in order.
    pub fn types(&self) -> impl Iterator<Item = ScalarType> + '_ {
        self.groups.iter().flat_map(|group| std::iter::repeat_n(group.ty, group.count() as usize))
    }
}
