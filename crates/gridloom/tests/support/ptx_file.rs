//! Reads the expectations that a PTX test file carries; `tests/ptx/README.md` describes the form.
//!
//! Pure: text in, cases out. A runner takes each [`Case`], gives its arguments to its kernel, and
//! asks every [`Expected`] whether the bytes it finds afterwards are right.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fmt;

/// One launch of one kernel, and what must come of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    /// The line of its `RUN`, counted from 1.
    pub line: usize,
    /// The kernel's name.
    pub kernel: String,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// The only device that the case is for, or none where it is for all.
    pub only: Option<Device>,
    /// The kernel's arguments, in order.
    pub args: Vec<Argument>,
    /// What must come of it.
    pub outcome: Outcome,
}

/// A device that a case can be restricted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// The CPU device.
    Cpu,
    /// A CUDA device.
    Cuda,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// A buffer in device memory with these bytes in it; the kernel gets its address.
    Buffer(Vec<u8>),
    /// The value itself.
    Scalar(Vec<u8>),
}

/// What must come of a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The launch succeeds, and leaves these contents.
    Contents(Vec<Expected>),
    /// Loading the file, looking the kernel up or launching it fails with an error that contains
    /// this text.
    Error(String),
}

/// What a buffer must hold after the launch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expected {
    /// The line of the directive.
    pub line: usize,
    /// The argument's number, counted from 0.
    pub argument: usize,
    /// How its bytes are read.
    pub ty: Type,
    /// Each element, from the first on.
    pub values: Vec<Wanted>,
    /// The relative error allowed to numbers; none allows no other bits at all.
    pub bound: Option<f64>,
}

/// One expected element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// These bits.
    Bits(u64),
    /// Any NaN.
    AnyNan,
}

/// The type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `u8` to `u64`, and `b8` to `b64`.
    Unsigned(u32),
    /// `s8` to `s64`.
    Signed(u32),
    /// `f16`.
    F16,
    /// `bf16`.
    Bf16,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

/// A directive that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    /// Its line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// All cases of a file, in order.
pub(crate) fn parse(text: &str) -> Result<Vec<Case>, ParseError> {
    let mut cases: Vec<Case> = Vec::new();
    for Directive { line, keyword, rest } in directives(text)? {
        let fail = |message: String| ParseError { line, message };
        if keyword == "RUN" {
            cases.push(run(line, &rest).map_err(fail)?);
            continue;
        }
        let case = cases.last_mut().ok_or_else(|| fail(format!("{keyword} before any RUN")))?;
        match keyword {
            "ARG" => case.args.push(argument(&rest).map_err(fail)?),
            "EXPECT" => {
                let expected = expectation(line, &rest, &case.args).map_err(fail)?;
                match &mut case.outcome {
                    Outcome::Contents(contents) => contents.push(expected),
                    Outcome::Error(_) => return Err(fail("a case has either contents or an error".into())),
                }
            }
            _ => match &case.outcome {
                Outcome::Contents(contents) if contents.is_empty() => {
                    case.outcome = Outcome::Error(rest.trim().to_owned());
                }
                _ => return Err(fail("a case has either contents or an error".into())),
            },
        }
    }
    match cases.iter().find(|case| case.outcome == Outcome::Contents(Vec::new())) {
        Some(case) => {
            let message = format!("kernel `{}` expects nothing: add an EXPECT line", case.kernel);
            Err(ParseError { line: case.line, message })
        }
        None => Ok(cases),
    }
}

/// A directive with its continuation lines joined and its comment removed.
struct Directive {
    line: usize,
    keyword: &'static str,
    rest: String,
}

fn directives(text: &str) -> Result<Vec<Directive>, ParseError> {
    let mut found: Vec<Directive> = Vec::new();
    // Whether the last directive's list is still open, so that a comment continues it.
    let mut open = false;
    for (index, source) in text.lines().enumerate() {
        let line = index + 1;
        let comment = source.trim_start().strip_prefix("//").map(str::trim);
        let keyword = |text: &str| {
            // The longer keyword first: both start alike.
            ["RUN", "ARG", "EXPECT-ERROR", "EXPECT"]
                .into_iter()
                .find(|keyword| text.strip_prefix(keyword).is_some_and(|rest| rest.starts_with(':')))
        };
        match (comment, open) {
            (Some(comment), false) => {
                let Some(keyword) = keyword(comment) else { continue };
                let rest = &comment[keyword.len() + 1..];
                // An error's text is taken as it stands; a number sign may be part of it.
                let rest = if keyword == "EXPECT-ERROR" { rest } else { without_note(rest) };
                found.push(Directive { line, keyword, rest: rest.to_owned() });
            }
            (Some(comment), true) if keyword(comment).is_none() => {
                let last = found.last_mut().expect("a list is open, so a directive was found");
                last.rest.push(' ');
                last.rest.push_str(without_note(comment));
            }
            (_, true) => {
                return Err(ParseError { line, message: "the list above is not closed with `]`".into() });
            }
            (None, false) => continue,
        }
        open = found.last().is_some_and(|directive| {
            directive.keyword != "EXPECT-ERROR"
                && directive.rest.contains('[')
                && !directive.rest.contains(']')
        });
    }
    if open {
        let line = found.last().map_or(0, |directive| directive.line);
        return Err(ParseError { line, message: "the list is not closed with `]`".into() });
    }
    Ok(found)
}

/// A directive's text up to `#`, which starts a note to the reader.
fn without_note(text: &str) -> &str {
    text.split('#').next().unwrap_or(text)
}

fn run(line: usize, text: &str) -> Result<Case, String> {
    let mut case = Case {
        line,
        kernel: String::new(),
        grid: [1, 1, 1],
        block: [1, 1, 1],
        shared: 0,
        only: None,
        args: Vec::new(),
        outcome: Outcome::Contents(Vec::new()),
    };
    for setting in text.split_whitespace() {
        let (name, value) =
            setting.split_once('=').ok_or_else(|| format!("`{setting}` is not of the form name=value"))?;
        match name {
            "kernel" => value.clone_into(&mut case.kernel),
            "grid" => case.grid = dimensions(value)?,
            "block" => case.block = dimensions(value)?,
            "shared" => {
                case.shared = value.parse().map_err(|_| format!("`{value}` is not a size in bytes"))?
            }
            "only" => {
                case.only = Some(match value {
                    "cpu" => Device::Cpu,
                    "cuda" => Device::Cuda,
                    _ => return Err(format!("`{value}` is not a device: write cpu or cuda")),
                });
            }
            _ => {
                return Err(format!("`{name}` is not a setting: write kernel, grid, block, shared or only"));
            }
        }
    }
    if case.kernel.is_empty() { Err("RUN needs kernel=NAME".into()) } else { Ok(case) }
}

fn dimensions(text: &str) -> Result<[u32; 3], String> {
    let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.parse().ok()).collect();
    numbers
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| format!("`{text}` is not of the form x,y,z"))
}

fn argument(text: &str) -> Result<Argument, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["in", ty, ..] => {
            let ty = Type::parse(ty)?;
            Ok(Argument::Buffer(elements(ty, list(text)?)?))
        }
        ["out", ty, len] => {
            let ty = Type::parse(ty)?;
            let len: usize = len.parse().map_err(|_| format!("`{len}` is not a number of elements"))?;
            Ok(Argument::Buffer(vec![0; len * ty.bytes()]))
        }
        [ty, value] => {
            let ty = Type::parse(ty)?;
            Ok(Argument::Scalar(elements(ty, vec![*value])?))
        }
        _ => Err("write `in TYPE [VALUES]`, `out TYPE LENGTH` or `TYPE VALUE`".into()),
    }
}

fn expectation(line: usize, text: &str, args: &[Argument]) -> Result<Expected, String> {
    let mut words = text.split_whitespace();
    let (Some(argument), Some(ty)) = (words.next(), words.next()) else {
        return Err("write `NUMBER TYPE [VALUES]`".into());
    };
    let argument: usize =
        argument.parse().map_err(|_| format!("`{argument}` is not an argument's number"))?;
    let ty = Type::parse(ty)?;
    let values: Vec<Wanted> =
        list(text)?.into_iter().map(|value| ty.wanted(value)).collect::<Result<_, _>>()?;
    let after = text.split(']').nth(1).unwrap_or("").trim();
    let bound = match after.strip_prefix('~') {
        Some(bound) => {
            let bound = bound.trim().parse().map_err(|_| format!("`{bound}` is not a relative bound"))?;
            if !ty.is_float() {
                return Err("a bound is for floating-point types".into());
            }
            Some(bound)
        }
        None if after.is_empty() => None,
        None => return Err(format!("`{after}` after the list: only `~BOUND` may stand there")),
    };
    match args.get(argument) {
        Some(Argument::Buffer(bytes)) if bytes.len() == values.len() * ty.bytes() => {}
        Some(Argument::Buffer(bytes)) => {
            return Err(format!(
                "argument {argument} holds {} bytes, the list {}",
                bytes.len(),
                values.len() * ty.bytes()
            ));
        }
        Some(Argument::Scalar(_)) => {
            return Err(format!("argument {argument} is a value, which no kernel changes"));
        }
        None => return Err(format!("there is no argument {argument} above")),
    }
    Ok(Expected { line, argument, ty, values, bound })
}

/// Returns the items between the brackets.
fn list(text: &str) -> Result<Vec<&str>, String> {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(inside, _)| inside.trim().trim_end_matches(','))
        .ok_or_else(|| "the values stand in brackets: [1, 2, 3]".to_owned())?;
    Ok(if inside.is_empty() { Vec::new() } else { inside.split(',').map(str::trim).collect() })
}

/// Returns the bytes of a list of values, in memory order.
fn elements(ty: Type, values: Vec<&str>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(values.len() * ty.bytes());
    for value in values {
        match ty.wanted(value)? {
            Wanted::Bits(bits) => bytes.extend_from_slice(&bits.to_le_bytes()[..ty.bytes()]),
            Wanted::AnyNan => return Err("an argument needs a NaN of certain bits: write nan or 0x…".into()),
        }
    }
    Ok(bytes)
}

impl Type {
    fn parse(name: &str) -> Result<Self, String> {
        Ok(match name {
            "u8" | "b8" => Self::Unsigned(8),
            "u16" | "b16" => Self::Unsigned(16),
            "u32" | "b32" => Self::Unsigned(32),
            "u64" | "b64" => Self::Unsigned(64),
            "s8" => Self::Signed(8),
            "s16" => Self::Signed(16),
            "s32" => Self::Signed(32),
            "s64" => Self::Signed(64),
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => return Err(format!("`{name}` is not a type: write u32, s64, b16, f32, f16, bf16, …")),
        })
    }

    /// Bytes of one element.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Unsigned(bits) | Self::Signed(bits) => bits as usize / 8,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        !matches!(self, Self::Unsigned(_) | Self::Signed(_))
    }

    /// Returns the value of a bit pattern, where the type is a floating-point one.
    fn to_f64(self, bits: u64) -> f64 {
        match self {
            Self::Unsigned(_) | Self::Signed(_) => f64::NAN,
            Self::F16 => half::f16::from_bits(bits as u16).to_f64(),
            Self::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
            Self::F32 => f32::from_bits(bits as u32).into(),
            Self::F64 => f64::from_bits(bits),
        }
    }

    /// Returns the bits of a number that the type holds exactly (`f32` and `f64`: or the nearest to
    /// it).
    fn bits_of(self, value: f64) -> Option<u64> {
        let bits = match self {
            Self::Unsigned(_) | Self::Signed(_) => return None,
            Self::F16 => half::f16::from_f64(value).to_bits().into(),
            Self::Bf16 => half::bf16::from_f64(value).to_bits().into(),
            Self::F32 => (value as f32).to_bits().into(),
            Self::F64 => value.to_bits(),
        };
        let exact = matches!(self, Self::F32 | Self::F64) || self.to_f64(bits) == value;
        exact.then_some(bits)
    }

    /// Returns the NaN that PTX instructions produce.
    fn nan(self) -> u64 {
        match self {
            Self::F64 => 0xfff8_0000_0000_0000,
            Self::F32 => 0x7fff_ffff,
            _ => 0x7fff,
        }
    }

    fn wanted(self, text: &str) -> Result<Wanted, String> {
        let width = 8 * self.bytes() as u32;
        let bad = || format!("`{text}` is not a value of this type");
        if let Some(digits) = text.strip_prefix("0x") {
            let bits = u64::from_str_radix(&digits.replace('_', ""), 16).map_err(|_| bad())?;
            return if width == 64 || bits >> width == 0 { Ok(Wanted::Bits(bits)) } else { Err(bad()) };
        }
        match (self, text) {
            (Self::Unsigned(_) | Self::Signed(_), _) => {
                let value: i128 = text.parse().map_err(|_| bad())?;
                let (min, max) = match self {
                    Self::Signed(bits) => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
                    _ => (0, (1 << width) - 1),
                };
                let mask = u64::MAX >> (64 - width);
                if (min..=max).contains(&value) { Ok(Wanted::Bits(value as u64 & mask)) } else { Err(bad()) }
            }
            (_, "nan") => Ok(Wanted::Bits(self.nan())),
            (_, "any-nan") => Ok(Wanted::AnyNan),
            _ => {
                let value: f64 = text.parse().map_err(|_| bad())?;
                let bits = if self == Self::F32 {
                    // Straight from decimal: a detour through `f64` would round twice.
                    text.parse::<f32>().ok().map(|value| value.to_bits().into())
                } else {
                    self.bits_of(value)
                };
                bits.map(Wanted::Bits).ok_or_else(|| {
                    format!("`{text}` cannot be held exactly: write the bits, or another number")
                })
            }
        }
    }
}

impl Expected {
    /// Returns whether a buffer holds what it must; if not, a sentence about the first element that
    /// does not.
    pub(crate) fn check(&self, found: &[u8]) -> Result<(), String> {
        let size = self.ty.bytes();
        if found.len() != self.values.len() * size {
            return Err(format!(
                "argument {} holds {} bytes, expected {}",
                self.argument,
                found.len(),
                self.values.len() * size
            ));
        }
        for (index, (&wanted, bytes)) in self.values.iter().zip(found.chunks_exact(size)).enumerate() {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            let bits = u64::from_le_bytes(word);
            if !self.accepts(wanted, bits) {
                let wanted = match wanted {
                    Wanted::Bits(bits) => self.show(bits),
                    Wanted::AnyNan => "a NaN".into(),
                };
                return Err(format!(
                    "line {}: argument {}, element {index}: expected {wanted}, found {}",
                    self.line,
                    self.argument,
                    self.show(bits)
                ));
            }
        }
        Ok(())
    }

    fn accepts(&self, wanted: Wanted, bits: u64) -> bool {
        let Wanted::Bits(wanted) = wanted else { return self.ty.to_f64(bits).is_nan() && self.ty.is_float() };
        if wanted == bits {
            return true;
        }
        let (wanted, found) = (self.ty.to_f64(wanted), self.ty.to_f64(bits));
        // A special value, zero included, has no neighbours that would do as well.
        self.bound.is_some_and(|bound| {
            wanted.is_finite() && wanted != 0.0 && (found - wanted).abs() <= bound * wanted.abs()
        })
    }

    fn show(&self, bits: u64) -> String {
        let width = 2 * self.ty.bytes();
        match self.ty {
            Type::Unsigned(_) => format!("{bits} (0x{bits:0width$x})"),
            Type::Signed(size) => {
                format!("{} (0x{bits:0width$x})", (bits << (64 - size)) as i64 >> (64 - size))
            }
            _ => format!("{:?} (0x{bits:0width$x})", self.ty.to_f64(bits)),
        }
    }
}
