//! Instructions that only compute: floating point, comparison and conversion.

use super::generate::{Generator, Scope};
use super::integer::{INTEGERS, bits};

const ROUNDINGS: [&str; 4] = [".rn", ".rz", ".rm", ".rp"];
const HALVES: [&str; 4] = ["f16", "f16x2", "bf16", "bf16x2"];

impl Generator {
    fn rounding(&mut self) -> &'static str {
        self.random.pick(&ROUNDINGS)
    }

    fn maybe(&mut self, modifier: &'static str) -> &'static str {
        if self.random.one_in(3) { modifier } else { "" }
    }

    fn operands(&mut self, scope: &Scope, ty: &str, count: usize) -> String {
        let mut text = self.dst(ty);
        for index in 0..count {
            let operand = if index == 0 { self.reg(scope, ty) } else { self.src(scope, ty) };
            text = format!("{text}, {operand}");
        }
        text
    }

    /// A type, with the rounding and clamping that addition, multiplication and both at once have
    /// for it.
    fn arithmetic(&mut self, fused: bool) -> (&'static str, String) {
        let ty =
            self.random.pick(&["f32", "f32", "f32", "f64", "f64", "f16", "f16x2", "bf16", "bf16x2", "f32x2"]);
        let rounding = match ty {
            "f32" | "f64" | "f32x2" => self.rounding(),
            _ => ".rn",
        };
        let rounding = if !fused && self.random.one_in(3) { "" } else { rounding };
        let flush = if matches!(ty, "f32" | "f32x2" | "f16" | "f16x2") { self.maybe(".ftz") } else { "" };
        let clamp = match ty {
            "f32" => self.maybe(".sat"),
            "f16" | "f16x2" if fused && self.random.one_in(4) => ".relu",
            "f16" | "f16x2" => self.maybe(".sat"),
            "bf16" | "bf16x2" if fused => self.maybe(".relu"),
            _ => "",
        };
        (ty, format!("{rounding}{flush}{clamp}.{ty}"))
    }

    pub(crate) fn float(&mut self, scope: &Scope) -> String {
        let single = self.random.pick(&["f32", "f64"]);
        let rounding = self.rounding();
        let flush = if single == "f32" { self.maybe(".ftz") } else { "" };
        match self.random.below(16) {
            0..=3 => {
                let (ty, modifiers) = self.arithmetic(false);
                let op = self.random.pick(&["add", "sub", "mul"]);
                format!("{op}{modifiers} {};", self.operands(scope, ty, 2))
            }
            4 | 5 => {
                let (ty, modifiers) = self.arithmetic(true);
                format!("fma{modifiers} {};", self.operands(scope, ty, 3))
            }
            6 => format!("mad{rounding}{flush}.{single} {};", self.operands(scope, single, 3)),
            7 => format!("div{rounding}{flush}.{single} {};", self.operands(scope, single, 2)),
            8 => {
                let op = self.random.pick(&["rcp", "sqrt"]);
                format!("{op}{rounding}{flush}.{single} {};", self.operands(scope, single, 1))
            }
            9 | 10 if self.features.approximations => self.approximation(scope),
            11 => {
                let ty = self.random.pick(&["f32", "f64", "f16", "f16x2", "bf16", "bf16x2"]);
                let flush = if matches!(ty, "f32" | "f16" | "f16x2") { self.maybe(".ftz") } else { "" };
                format!("{}{flush}.{ty} {};", self.random.pick(&["abs", "neg"]), self.operands(scope, ty, 1))
            }
            12 | 13 => {
                let ty = self.random.pick(&["f32", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"]);
                let op = self.random.pick(&["min", "max"]);
                if ty == "f64" {
                    return format!("{op}.f64 {};", self.operands(scope, ty, 2));
                }
                let flush = if matches!(ty, "f32" | "f16" | "f16x2") { self.maybe(".ftz") } else { "" };
                let nan = self.maybe(".NaN");
                if ty == "f32" && self.random.one_in(4) {
                    let abs = self.maybe(".abs");
                    return format!("{op}{flush}{nan}{abs}.f32 {};", self.operands(scope, ty, 3));
                }
                let sign = self.maybe(".xorsign.abs");
                format!("{op}{flush}{nan}{sign}.{ty} {};", self.operands(scope, ty, 2))
            }
            14 => format!("copysign.{single} {};", self.operands(scope, single, 2)),
            _ => {
                const PROPERTIES: [&str; 6] =
                    ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
                let property = self.random.pick(&PROPERTIES);
                let (p, a) = (self.predicate(), self.reg(scope, single));
                format!("testp.{property}.{single} {p}, {a};")
            }
        }
    }

    fn approximation(&mut self, scope: &Scope) -> String {
        let flush = self.maybe(".ftz");
        match self.random.below(12) {
            0 => format!("div.approx{flush}.f32 {};", self.operands(scope, "f32", 2)),
            1 => format!("div.full{flush}.f32 {};", self.operands(scope, "f32", 2)),
            2 => format!("rcp.approx{flush}.f32 {};", self.operands(scope, "f32", 1)),
            3 => format!("rcp.approx.ftz.f64 {};", self.operands(scope, "f64", 1)),
            4 => format!("rsqrt.approx{flush}.f64 {};", self.operands(scope, "f64", 1)),
            5 => {
                let half = self.random.pick(&HALVES);
                let flush = if half.starts_with('b') { ".ftz" } else { "" };
                format!("ex2.approx{flush}.{half} {};", self.operands(scope, half, 1))
            }
            6 => {
                let ty = self.random.pick(&["f32", "f16", "f16x2", "bf16", "bf16x2"]);
                format!("tanh.approx.{ty} {};", self.operands(scope, ty, 1))
            }
            _ => {
                let op = self.random.pick(&["rsqrt", "sin", "cos", "lg2", "ex2", "sqrt"]);
                format!("{op}.approx{flush}.f32 {};", self.operands(scope, "f32", 1))
            }
        }
    }

    /// A type that can be compared, and a comparison for it.
    fn comparison(&mut self) -> (&'static str, String) {
        const ORDERED: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
        const UNORDERED: [&str; 8] = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];
        if self.features.floats && self.random.one_in(2) {
            let ty = self.random.pick(&["f32", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"]);
            let order =
                if self.random.one_in(2) { self.random.pick(&ORDERED) } else { self.random.pick(&UNORDERED) };
            return (ty, order.to_owned());
        }
        let ty = self.random.pick(&["u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64"]);
        let order = match ty.as_bytes()[0] {
            b'b' => self.random.pick(&["eq", "ne"]),
            b'u' if self.random.one_in(3) => self.random.pick(&["lo", "ls", "hi", "hs"]),
            _ => self.random.pick(&ORDERED),
        };
        (ty, order.to_owned())
    }

    pub(crate) fn compare(&mut self, scope: &Scope) -> String {
        let (ty, order) = self.comparison();
        let flush = if matches!(ty, "f32" | "f16" | "f16x2") { self.maybe(".ftz") } else { "" };
        let (a, b) = (self.reg(scope, ty), self.src(scope, ty));
        let (mut combine, mut with) = (String::new(), String::new());
        if self.random.one_in(3) {
            combine = format!(".{}", self.random.pick(&["and", "or", "xor"]));
            let not = if self.random.one_in(2) { "!" } else { "" };
            with = format!(", {not}{}", self.predicate());
        }
        match self.random.below(8) {
            0..=3 => {
                let (p, q) = (self.random.below(6), self.random.below(5));
                let pair = ty.ends_with("x2") || (!matches!(ty, "f16" | "bf16") && self.random.one_in(3));
                // Two different ones.
                let second = if pair { format!("|%p{}", (p + 1 + q) % 6) } else { String::new() };
                format!("setp.{order}{combine}{flush}.{ty} %p{p}{second}, {a}, {b}{with};")
            }
            4 => {
                let to = match ty {
                    "f16x2" | "bf16x2" => ty,
                    "f16" | "bf16" => self.random.pick(&["u16", "s16", "u32", "s32", ty]),
                    _ => self.random.pick(&["u32", "s32", "f32"]),
                };
                format!("set.{order}{combine}{flush}.{to}.{ty} {}, {a}, {b}{with};", self.dst(to))
            }
            5 | 6 => {
                let ty = self.random.pick(&["b16", "u16", "b32", "s32", "b64", "u64", "f32", "f64"]);
                let (d, a, b, p) = (self.dst(ty), self.reg(scope, ty), self.src(scope, ty), self.predicate());
                format!("selp.{ty} {d}, {a}, {b}, {p};")
            }
            _ => {
                let ty = self.random.pick(&["b16", "u16", "b32", "s32", "b64", "u64", "f32", "f64"]);
                let (d, a, b) = (self.dst(ty), self.reg(scope, ty), self.src(scope, ty));
                let sign = self.random.pick(&["s32", "f32"]);
                let flush = if sign == "f32" { self.maybe(".ftz") } else { "" };
                let c = self.reg(scope, sign);
                format!("slct{flush}.{ty}.{sign} {d}, {a}, {b}, {c};")
            }
        }
    }

    pub(crate) fn convert(&mut self, scope: &Scope) -> String {
        const WHOLE: [&str; 4] = [".rni", ".rzi", ".rmi", ".rpi"];
        let (to, from) = (self.random.pick(&INTEGERS), self.random.pick(&INTEGERS));
        if !self.features.floats || self.random.one_in(3) {
            // Of bytes too, which lie in wider registers.
            let byte = self.random.pick(&["u8", "s8"]);
            return match self.random.below(8) {
                // Between any two, from registers that are wider, or to them.
                4..=6 => {
                    const ALL: [&str; 8] = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
                    let (to, from) = (self.random.pick(&ALL), self.random.pick(&ALL));
                    let sat = if bits(to) <= bits(from) && to != from { self.maybe(".sat") } else { "" };
                    let register = |this: &mut Self, ty: &str| {
                        let fits: &[&str] = match bits(ty) {
                            8 | 16 => &["b16", "b16", "b32", "b32", "b64"],
                            32 => &["b32", "b32", "b64"],
                            _ => &["b64"],
                        };
                        let file = this.random.pick(fits);
                        this.dst(file)
                    };
                    format!("cvt{sat}.{to}.{from} {}, {};", register(self, to), register(self, from))
                }
                0 => format!("cvt.{to}.{byte} {}, {};", self.dst(to), self.dst("b16")),
                1 => {
                    let sat = self.maybe(".sat");
                    format!("cvt{sat}.{byte}.{from} {}, {};", self.dst("b16"), self.reg(scope, from))
                }
                _ => {
                    // Clamping is for what does not fit.
                    let sat = if bits(to) <= bits(from) && to != from { self.maybe(".sat") } else { "" };
                    format!("cvt{sat}.{to}.{from} {}, {};", self.dst(to), self.reg(scope, from))
                }
            };
        }
        let float = self.random.pick(&["f32", "f32", "f64", "f16", "bf16"]);
        let flush = if float == "f32" { self.maybe(".ftz") } else { "" };
        match self.random.below(9) {
            0 | 1 => {
                let (rounding, d) = (self.random.pick(&WHOLE), self.dst(to));
                format!("cvt{rounding}{flush}.{to}.{float} {d}, {};", self.dst(float))
            }
            2 | 3 => {
                let (rounding, sat) =
                    (self.rounding(), if float == "bf16" { "" } else { self.maybe(".sat") });
                let rounding = if float == "bf16" { ".rn" } else { rounding };
                format!("cvt{rounding}{sat}.{float}.{from} {}, {};", self.dst(float), self.reg(scope, from))
            }
            4 => {
                let rounding = self.random.pick(&WHOLE);
                let float = if float == "bf16" { "f16" } else { float };
                let sat = self.maybe(".sat");
                format!("cvt{rounding}{flush}{sat}.{float}.{float} {}, {};", self.dst(float), self.dst(float))
            }
            5 => {
                let (rounding, flush) = (self.rounding(), self.maybe(".ftz"));
                let sat = self.maybe(".sat");
                format!("cvt{rounding}{flush}{sat}.f32.f64 {}, {};", self.dst("f32"), self.dst("f64"))
            }
            6 => {
                let (to, from) =
                    self.random.pick(&[("f64", "f32"), ("f32", "f16"), ("f64", "f16"), ("f32", "bf16")]);
                format!("cvt.{to}.{from} {}, {};", self.dst(to), self.dst(from))
            }
            7 => {
                let relu = self.maybe(".relu");
                match self.random.below(5) {
                    0 => {
                        let rounding = self.random.pick(&[".rn", ".rz"]);
                        let (d, a) = (self.dst("f16"), self.dst("f32"));
                        format!("cvt{rounding}{relu}.{}.f32 {d}, {a};", self.random.pick(&["f16", "bf16"]))
                    }
                    1 => {
                        let rounding = self.random.pick(&[".rn", ".rz"]);
                        let ty = self.random.pick(&["f16x2", "bf16x2"]);
                        format!(
                            "cvt{rounding}{relu}.{ty}.f32 {}, {}, {};",
                            self.dst(ty),
                            self.dst("f32"),
                            self.dst("f32")
                        )
                    }
                    2 => {
                        let ty = self.random.pick(&["e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2"]);
                        format!(
                            "cvt.rn.satfinite{relu}.{ty}.f32 {}, {}, {};",
                            self.dst("b16"),
                            self.dst("f32"),
                            self.dst("f32")
                        )
                    }
                    3 => {
                        let ty = self.random.pick(&["e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2"]);
                        format!("cvt.rn{relu}.f16x2.{ty} {}, {};", self.dst("b32"), self.dst("b16"))
                    }
                    _ => {
                        let rounding = self.random.pick(&[".rn", ".rz", ".rna"]);
                        let relu = if rounding == ".rna" { "" } else { relu };
                        format!("cvt{rounding}{relu}.tf32.f32 {}, {};", self.dst("b32"), self.dst("f32"))
                    }
                }
            }
            _ => {
                let ty = self.random.pick(&["u8", "s8", "u16", "s16"]);
                let (d, a, b) = (self.dst("b32"), self.reg(scope, "s32"), self.reg(scope, "s32"));
                match bits(ty) {
                    8 => format!("cvt.pack.sat.{ty}.s32.b32 {d}, {a}, {b}, {};", self.reg(scope, "b32")),
                    _ => format!("cvt.pack.sat.{ty}.s32 {d}, {a}, {b};"),
                }
            }
        }
    }
}
