//! Instructions that only compute: operands, integers and bits.

use super::generate::{Generator, Scope};

/// Types of whole registers, by their width.
pub(crate) const INTEGERS: [&str; 6] = ["u16", "s16", "u32", "s32", "u64", "s64"];

/// Bits of a type of an instruction.
pub(crate) fn bits(ty: &str) -> u32 {
    match ty {
        "f16x2" | "bf16x2" | "u16x2" | "s16x2" => 32,
        "f32x2" => 64,
        "bf16" => 16,
        _ => ty.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().unwrap_or(32),
    }
}

impl Generator {
    /// An instruction, or some that belong together, without effects outside of registers.
    pub(crate) fn compute(&mut self, scope: &Scope) -> Vec<String> {
        let lines = match self.random.below(12) {
            0..=2 => vec![self.integer(scope)],
            3 | 4 => vec![self.bits(scope)],
            5 => vec![self.compare(scope)],
            6 => vec![self.convert(scope)],
            7 => return self.several(scope),
            8..=10 if self.features.floats => vec![self.float(scope)],
            _ if !scope.in_function && self.random.one_in(4) => return self.special(scope),
            _ => vec![self.integer(scope)],
        };
        if self.random.one_in(5) {
            let guard = self.guard();
            return lines.into_iter().map(|line| format!("{guard}{line}")).collect();
        }
        lines
    }

    pub(crate) fn guard(&mut self) -> String {
        let not = if self.random.one_in(3) { "!" } else { "" };
        format!("@{not}{} ", self.predicate())
    }

    /// A register to write, for values of a type.
    pub(crate) fn dst(&mut self, ty: &str) -> String {
        match (bits(ty), ty) {
            (_, "pred") => self.predicate(),
            (_, "f32") if !self.random.one_in(6) => format!("%f{}", self.random.below(8)),
            (_, "f64") if !self.random.one_in(6) => format!("%d{}", self.random.below(6)),
            (16, _) => format!("%h{}", self.random.below(8)),
            (64, _) => format!("%rd{}", self.random.below(8)),
            _ => format!("%r{}", self.random.below(12)),
        }
    }

    /// A register to read, for values of a type.
    pub(crate) fn reg(&mut self, scope: &Scope, ty: &str) -> String {
        let whole = matches!(ty, "u32" | "s32" | "b32");
        if whole && self.random.one_in(5) {
            let mut names = vec!["%linear".to_owned(), "%lane".to_owned()];
            if !scope.in_function {
                names.push(format!("%u{}", self.random.below(4)));
                names.push("%gid".to_owned());
            }
            names.extend(scope.loops.iter().map(|number| format!("%i{number}")));
            return names.swap_remove(self.random.below(names.len()));
        }
        self.dst(ty)
    }

    /// An operand to read.
    pub(crate) fn src(&mut self, scope: &Scope, ty: &str) -> String {
        if self.random.one_in(4)
            && let Some(constant) = self.constant(ty)
        {
            return constant;
        }
        self.reg(scope, ty)
    }

    pub(crate) fn constant(&mut self, ty: &str) -> Option<String> {
        Some(match ty {
            "f32" => {
                const BITS: [u32; 9] = [
                    0,
                    0x8000_0000,
                    0x3f80_0000,
                    0xbf80_0000,
                    0x4049_0fdb,
                    0x7f80_0000,
                    0x0000_0001,
                    0x3f00_0000,
                    0xc2c8_0000,
                ];
                let bits = self.random.pick(&BITS);
                format!("0f{bits:08X}")
            }
            "f64" => {
                const BITS: [u64; 6] = [
                    0,
                    0x8000_0000_0000_0000,
                    0x3ff0_0000_0000_0000,
                    0xc004_0000_0000_0000,
                    0x7ff0_0000_0000_0000,
                    1,
                ];
                let bits = self.random.pick(&BITS);
                format!("0d{bits:016X}")
            }
            "u16" | "s16" | "b16" | "u32" | "s32" | "b32" | "u64" | "s64" | "b64" => {
                let width = bits(ty);
                let value: i64 = match self.random.below(6) {
                    0 => 0,
                    1 => 1,
                    2 => self.random.between(2, 40),
                    3 if ty.starts_with('s') => -self.random.between(1, 100),
                    4 if width == 16 => self.random.between(0, 0x7fff),
                    4 => self.random.between(0, 0x7fff_ffff),
                    _ => 1 << self.random.below(width as usize - 1),
                };
                value.to_string()
            }
            _ => return None,
        })
    }

    fn integer(&mut self, scope: &Scope) -> String {
        let ty = self.random.pick(&INTEGERS);
        let (word, narrow) =
            (self.random.pick(&["u32", "s32"]), self.random.pick(&["u16", "s16", "u32", "s32"]));
        let three = |this: &mut Self, ty: &str| {
            let (d, a, b, c) = (this.dst(ty), this.reg(scope, ty), this.src(scope, ty), this.src(scope, ty));
            format!("{d}, {a}, {b}, {c};")
        };
        let two = |this: &mut Self, ty: &str| {
            let (d, a, b) = (this.dst(ty), this.reg(scope, ty), this.src(scope, ty));
            format!("{d}, {a}, {b};")
        };
        let one = |this: &mut Self, ty: &str| format!("{}, {};", this.dst(ty), this.src(scope, ty));
        let half = self.random.pick(&["lo", "hi"]);
        match self.random.below(22) {
            0..=3 => format!("{}.{ty} {}", self.random.pick(&["add", "sub"]), two(self, ty)),
            4 => format!("{}.sat.s32 {}", self.random.pick(&["add", "sub"]), two(self, "s32")),
            5 | 6 => format!("mul.{half}.{ty} {}", two(self, ty)),
            7 => format!("{}.{ty} {}", self.random.pick(&["div", "rem"]), two(self, ty)),
            8 => format!("{}.{ty} {}", self.random.pick(&["min", "max"]), two(self, ty)),
            9 => format!("{}.relu.s32 {}", self.random.pick(&["min", "max"]), two(self, "s32")),
            10 => {
                let ty = self.random.pick(&["u16x2", "s16x2"]);
                format!("{}.{ty} {}", self.random.pick(&["add", "min", "max"]), two(self, ty))
            }
            11 => format!("{}.relu.s16x2 {}", self.random.pick(&["min", "max"]), two(self, "s16x2")),
            12 => {
                let (a, b) = (self.reg(scope, narrow), self.src(scope, narrow));
                format!("mul.wide.{narrow} {}, {a}, {b};", self.dst(twice(narrow)))
            }
            13 => format!("mul24.{half}.{word} {}", two(self, word)),
            14 if half == "hi" && word == "s32" && self.random.one_in(2) => {
                format!("mad24.hi.sat.s32 {}", three(self, "s32"))
            }
            14 => format!("mad24.{half}.{word} {}", three(self, word)),
            15 if self.random.one_in(4) => format!("mad.hi.sat.s32 {}", three(self, "s32")),
            15 => format!("mad.{half}.{ty} {}", three(self, ty)),
            16 => {
                let wide = twice(narrow);
                let (a, b, c) = (self.reg(scope, narrow), self.src(scope, narrow), self.src(scope, wide));
                format!("mad.wide.{narrow} {}, {a}, {b}, {c};", self.dst(wide))
            }
            17 => format!("sad.{ty} {}", three(self, ty)),
            18 => {
                let ty = self.random.pick(&["s16", "s32", "s64"]);
                format!("{}.{ty} {}", self.random.pick(&["abs", "neg"]), one(self, ty))
            }
            19 | 20 => {
                let (a, b) = (self.random.pick(&["u32", "s32"]), self.random.pick(&["u32", "s32"]));
                let operands = three(self, "b32");
                match self.random.one_in(2) {
                    true => format!("dp4a.{a}.{b} {operands}"),
                    false => format!("dp2a.{half}.{a}.{b} {operands}"),
                }
            }
            _ => {
                let ty = self.random.pick(&["b16", "b32", "b64", "f32", "f64", "u32", "s64"]);
                format!("mov.{ty} {}", one(self, ty))
            }
        }
    }

    fn bits(&mut self, scope: &Scope) -> String {
        let ty = self.random.pick(&["b16", "b32", "b64"]);
        let wide = self.random.pick(&["b32", "b64"]);
        let typed = self.random.pick(&["u32", "s32", "u64", "s64"]);
        let amount = self.src(scope, "b32");
        match self.random.below(19) {
            0 | 1 => {
                let (d, a, b) = (self.dst(ty), self.reg(scope, ty), self.src(scope, ty));
                format!("{}.{ty} {d}, {a}, {b};", self.random.pick(&["and", "or", "xor"]))
            }
            2 => {
                let (d, a, b) = (self.predicate(), self.predicate(), self.predicate());
                format!("{}.pred {d}, {a}, {b};", self.random.pick(&["and", "or", "xor"]))
            }
            3 => format!("not.pred {}, {};", self.predicate(), self.predicate()),
            4 => {
                let (d, a) = (self.dst(ty), self.src(scope, ty));
                format!("{}.{ty} {d}, {a};", self.random.pick(&["not", "cnot"]))
            }
            5 => {
                let (d, a, b, c) =
                    (self.dst("b32"), self.reg(scope, "b32"), self.src(scope, "b32"), self.src(scope, "b32"));
                let lut = self.random.below(256);
                if self.random.one_in(3) {
                    let (p, q) = (self.predicate(), self.predicate());
                    let op = self.random.pick(&["and", "or"]);
                    return format!("lop3.{op}.b32 {d}|{p}, {a}, {b}, {c}, 0x{lut:02x}, {q};");
                }
                format!("lop3.b32 {d}, {a}, {b}, {c}, 0x{lut:02x};")
            }
            6 | 7 => {
                let (d, a) = (self.dst(ty), self.src(scope, ty));
                format!("shl.{ty} {d}, {a}, {amount};")
            }
            8 | 9 => {
                let ty = self.random.pick(&["b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"]);
                let (d, a) = (self.dst(ty), self.src(scope, ty));
                format!("shr.{ty} {d}, {a}, {amount};")
            }
            10 => {
                let (d, a, b) = (self.dst("b32"), self.reg(scope, "b32"), self.src(scope, "b32"));
                let (way, mode) = (self.random.pick(&["l", "r"]), self.random.pick(&["clamp", "wrap"]));
                format!("shf.{way}.{mode}.b32 {d}, {a}, {b}, {amount};")
            }
            11 => {
                let (d, a) = (self.dst(typed), self.src(scope, typed));
                format!("bfe.{typed} {d}, {a}, {}, {};", self.position(scope), self.position(scope))
            }
            12 => {
                let (d, a, b) = (self.dst(wide), self.reg(scope, wide), self.src(scope, wide));
                format!("bfi.{wide} {d}, {a}, {b}, {}, {};", self.position(scope), self.position(scope))
            }
            13 => {
                let (d, a) = (self.dst("u32"), self.src(scope, typed));
                let how = self.random.pick(&["", ".shiftamt"]);
                format!("bfind{how}.{typed} {d}, {a};")
            }
            14 => format!("brev.{wide} {}, {};", self.dst(wide), self.src(scope, wide)),
            15 => {
                let (d, a) = (self.dst("u32"), self.src(scope, wide));
                format!("{}.{wide} {d}, {a};", self.random.pick(&["clz", "popc"]))
            }
            16 => {
                let (d, mask, offset) = (self.dst("b32"), self.reg(scope, "b32"), self.src(scope, "s32"));
                let base = self.random.below(32);
                format!("fns.b32 {d}, {mask}, {base}, {offset};")
            }
            17 => {
                let (d, a, b) = (self.dst("b32"), self.reg(scope, "b32"), self.src(scope, "b32"));
                let mode = self.random.pick(&["", "", "", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"]);
                format!("prmt.b32{mode} {d}, {a}, {b}, {amount};")
            }
            _ => {
                let mode = self.random.pick(&["clamp", "wrap"]);
                match self.random.one_in(2) {
                    true => {
                        let ty = self.random.pick(&["u32", "s32"]);
                        let (d, a) = (self.dst("b32"), self.src(scope, ty));
                        format!("szext.{mode}.{ty} {d}, {a}, {amount};")
                    }
                    false => {
                        let (d, a) = (self.dst("b32"), self.src(scope, "u32"));
                        format!("bmsk.{mode}.b32 {d}, {a}, {amount};")
                    }
                }
            }
        }
    }

    /// A position or length of a bit field, of which the low byte counts.
    fn position(&mut self, scope: &Scope) -> String {
        match self.random.one_in(2) {
            true => self.random.below(70).to_string(),
            false => self.reg(scope, "u32"),
        }
    }

    /// Instructions that hand a flag to each other, or take a value apart and put it together.
    fn several(&mut self, scope: &Scope) -> Vec<String> {
        let ty = self.random.pick(&["u32", "s32", "u64", "s64"]);
        let three =
            |this: &mut Self| format!("{}, {}, {}", this.dst(ty), this.reg(scope, ty), this.src(scope, ty));
        match self.random.below(6) {
            0 => vec![
                format!("add.cc.{ty} {};", three(self)),
                format!("addc.cc.{ty} {};", three(self)),
                format!("addc.{ty} {};", three(self)),
            ],
            1 => vec![
                format!("sub.cc.{ty} {};", three(self)),
                format!("subc.cc.{ty} {};", three(self)),
                format!("subc.{ty} {};", three(self)),
            ],
            2 => {
                let (first, second, third) = (three(self), three(self), three(self));
                let (c, d, e) = (self.src(scope, ty), self.src(scope, ty), self.src(scope, ty));
                vec![
                    format!("mad.lo.cc.{ty} {first}, {c};"),
                    format!("madc.hi.cc.{ty} {second}, {d};"),
                    format!("madc.{}.{ty} {third}, {e};", self.random.pick(&["lo", "hi"])),
                ]
            }
            3 => {
                let (a, b) = (self.dst("b32"), self.dst("b32"));
                vec![format!("mov.b64 {{{a}, {b}}}, {};", self.dst("b64"))]
            }
            4 => match self.random.below(3) {
                0 => vec![format!(
                    "mov.b64 {}, {{{}, {}}};",
                    self.dst("b64"),
                    self.dst("b32"),
                    self.dst("b32")
                )],
                1 => vec![format!(
                    "mov.b32 {}, {{{}, {}}};",
                    self.dst("b32"),
                    self.dst("b16"),
                    self.dst("b16")
                )],
                _ => vec![format!(
                    "mov.b64 {}, {{{}, {}, {}, {}}};",
                    self.dst("b64"),
                    self.dst("b16"),
                    self.dst("b16"),
                    self.dst("b16"),
                    self.dst("b16")
                )],
            },
            _ if self.random.one_in(2) => {
                // All different.
                let first = self.random.below(8);
                let names: Vec<String> = (0..4).map(|at| format!("%h{}", (first + 3 * at) % 8)).collect();
                vec![format!("mov.b64 {{{}}}, {};", names.join(", "), self.dst("b64"))]
            }
            _ => vec![format!("mov.b32 {{{}, {}}}, {};", self.dst("b16"), self.dst("b16"), self.dst("b32"))],
        }
    }

    fn special(&mut self, _scope: &Scope) -> Vec<String> {
        const NAMES: [&str; 16] = [
            "%tid.x",
            "%tid.y",
            "%tid.z",
            "%ntid.x",
            "%ntid.y",
            "%ntid.z",
            "%ctaid.x",
            "%ctaid.y",
            "%ctaid.z",
            "%nctaid.x",
            "%laneid",
            "%lanemask_lt",
            "%lanemask_ge",
            "%lanemask_eq",
            "%lanemask_le",
            "%lanemask_gt",
        ];
        vec![format!("mov.u32 {}, {};", self.dst("u32"), self.random.pick(&NAMES))]
    }
}

/// Returns the type of twice the width.
fn twice(ty: &str) -> &'static str {
    match ty {
        "u16" => "u32",
        "s16" => "s32",
        "u32" => "u64",
        _ => "s64",
    }
}
