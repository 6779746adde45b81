//! Prints a recorded kernel as PTX.

use std::collections::HashMap;
use std::fmt::Write;

use super::ty::Class;
use super::{Base, Inst, Mem, Operand, Program, Reg, Site, Space, Stmt, Ty};

/// The oldest devices that kernels in Rust run on, and the PTX that their instructions need.
const HEADER: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

/// Prints a kernel as a module of its own.
pub(crate) fn print(program: &Program) -> String {
    let mut printer = Printer::new(program);
    printer.statements(&program.body);
    printer.line("ret;");
    printer.failures();
    printer.module()
}

struct Printer<'a> {
    program: &'a Program,
    /// The number of each register in its class.
    numbers: Vec<u32>,
    /// How many registers each class has.
    counts: HashMap<Class, u32>,
    body: String,
    /// What stands behind the body.
    cold: String,
    /// The places that a check jumps to.
    used_sites: Vec<Site>,
    labels: u32,
    strings: Vec<String>,
    /// Functions of the device that the kernel calls.
    has_print: bool,
    has_condition: bool,
}

impl<'a> Printer<'a> {
    fn new(program: &'a Program) -> Self {
        let mut counts = HashMap::new();
        let numbers = program
            .regs
            .iter()
            .map(|ty| {
                let count = counts.entry(ty.class()).or_insert(0);
                *count += 1;
                *count - 1
            })
            .collect();
        Printer {
            program,
            numbers,
            counts,
            body: String::new(),
            cold: String::new(),
            used_sites: Vec::new(),
            labels: 0,
            strings: Vec::new(),
            has_print: false,
            has_condition: false,
        }
    }

    fn line(&mut self, text: &str) {
        self.body.push('\t');
        self.body.push_str(text);
        self.body.push('\n');
    }

    fn reg(&self, reg: Reg) -> String {
        let class = self.program.regs[reg.0 as usize].class();
        format!("{}{}", class.prefix(), self.numbers[reg.0 as usize])
    }

    /// Returns a register that only the printed code has.
    fn temporary(&mut self, class: Class) -> String {
        let count = self.counts.entry(class).or_insert(0);
        *count += 1;
        format!("{}{}", class.prefix(), *count - 1)
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$L{}", self.labels - 1)
    }

    fn string(&mut self, text: &str) -> usize {
        match self.strings.iter().position(|known| known == text) {
            Some(index) => index,
            None => {
                self.strings.push(text.to_owned());
                self.strings.len() - 1
            }
        }
    }

    fn immediate(ty: Ty, bits: u64) -> String {
        match ty {
            Ty::Bool => (if bits == 0 { "0" } else { "-1" }).to_owned(),
            Ty::F32 => format!("0f{:08X}", bits as u32),
            Ty::F64 => format!("0d{bits:016X}"),
            ty if ty.is_signed() => (bits as i64).to_string(),
            _ => bits.to_string(),
        }
    }

    fn param(&self, index: u32) -> String {
        format!("{}_param_{index}", self.program.name)
    }

    fn address(&mut self, mem: &Mem) -> String {
        let base = match mem.base {
            Base::Reg(reg) => self.reg(reg),
            Base::Local(index) => format!("__local{index}"),
            Base::Constant(index) => format!("__constant{index}"),
            Base::Param(index) => self.param(index),
            Base::Shared(index) => format!("__shared{index}"),
            Base::DynamicShared => "__dynamic_shared".to_owned(),
        };
        let base = match mem.index {
            // Addresses of a block's memory have 32 bits.
            Some(index) if matches!(mem.base, Base::Reg(reg) if self.program.regs[reg.0 as usize].class() == Class::B32) =>
            {
                let (sum, index) = (self.temporary(Class::B32), self.reg(index));
                self.line(&format!("cvt.u32.u64 {sum}, {index};"));
                self.line(&format!("add.u32 {sum}, {sum}, {base};"));
                sum
            }
            None => base,
            Some(index) => {
                let (sum, index) = (self.temporary(Class::B64), self.reg(index));
                if let Base::Reg(_) = mem.base {
                    self.line(&format!("add.s64 {sum}, {base}, {index};"));
                } else {
                    self.line(&format!("mov.u64 {sum}, {base};"));
                    self.line(&format!("add.s64 {sum}, {sum}, {index};"));
                }
                sum
            }
        };
        match mem.offset {
            0 => format!("[{base}]"),
            offset => format!("[{base}+{offset}]"),
        }
    }

    fn operand(&mut self, operand: &Operand) -> String {
        match operand {
            Operand::Reg(reg) => self.reg(*reg),
            Operand::Imm(ty, bits) => Self::immediate(*ty, *bits),
            Operand::Special(name) => (*name).to_owned(),
            Operand::Mem(mem) => self.address(mem),
            Operand::Address(base) => {
                let mem = Mem { space: Space::Shared, base: *base, index: None, offset: 0 };
                self.address(&mem).trim_matches(['[', ']']).to_owned()
            }
        }
    }

    /// Returns the operand in a register.
    fn in_register(&mut self, operand: &Operand) -> String {
        match operand {
            Operand::Imm(ty, bits) => {
                let temporary = self.temporary(ty.class());
                let value = Self::immediate(*ty, *bits);
                self.line(&format!("mov.{} {temporary}, {value};", ty.bit_suffix()));
                temporary
            }
            other => self.operand(other),
        }
    }

    fn inst(&mut self, inst: &Inst) {
        let mut operands = Vec::with_capacity(4);
        if let Some(dst) = inst.dst {
            operands.push(self.reg(dst));
        }
        for (index, arg) in inst.args.iter().enumerate() {
            // Numbers can stand for any operand but the first, except where there is only one.
            let text = if index == 0 && inst.op != "mov" { self.in_register(arg) } else { self.operand(arg) };
            operands.push(text);
        }
        let dot = if inst.suffix.is_empty() { "" } else { "." };
        self.line(&format!("{}{dot}{} {};", inst.op, inst.suffix, operands.join(", ")));
    }

    fn jump_if(&mut self, cond: &Operand, when: bool, to: &str) {
        let cond = self.in_register(cond);
        self.line(&format!("@{}{cond} bra {to};", if when { "" } else { "!" }));
    }

    fn site_label(&mut self, site: Site) -> String {
        if !self.used_sites.contains(&site) {
            self.used_sites.push(site);
        }
        format!("$F{}", site.0)
    }

    fn statements(&mut self, list: &[Stmt]) {
        for stmt in list {
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Inst(inst) => self.inst(inst),
            Stmt::Barrier => self.line("bar.sync 0;"),
            Stmt::Reached { .. } => {}
            Stmt::Print { text, arguments } => self.print_call(text, arguments),
            Stmt::SetCondition { handle, value } => self.condition_call(handle, value),
            Stmt::Check { cond, fails_when, site } => {
                let label = self.site_label(*site);
                self.jump_if(cond, *fails_when, &label);
            }
            Stmt::Fail(site) => {
                let label = self.site_label(*site);
                self.line(&format!("bra.uni {label};"));
            }
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise),
            Stmt::Block { label, body } => {
                self.statements(body);
                self.body.push_str(&format!("$B{}:\n", label.0));
            }
            Stmt::Loop { label, body, step } => {
                self.body.push_str(&format!("$H{}:\n", label.0));
                self.statements(body);
                self.body.push_str(&format!("$C{}:\n", label.0));
                self.statements(step);
                self.line(&format!("bra $H{};", label.0));
                self.body.push_str(&format!("$B{}:\n", label.0));
            }
            Stmt::Break { label, when: None } => self.line(&format!("bra $B{};", label.0)),
            Stmt::Break { label, when: Some((cond, value)) } => {
                self.jump_if(cond, *value, &format!("$B{}", label.0));
            }
            Stmt::Continue(label) => self.line(&format!("bra $C{};", label.0)),
            Stmt::Exit => self.line("ret;"),
            Stmt::SameForAll { .. } | Stmt::Promise { .. } => {}
        }
    }

    fn branch(&mut self, cond: &Operand, then: &[Stmt], otherwise: &[Stmt]) {
        // What ends in a failure stands behind all other code.
        if then.is_empty() && matches!(otherwise.last(), Some(Stmt::Fail(_))) {
            let label = self.label();
            self.jump_if(cond, false, &label);
            let body = std::mem::take(&mut self.body);
            self.statements(otherwise);
            let which = std::mem::replace(&mut self.body, body);
            self.cold.push_str(&format!("{label}:\n{which}"));
            return;
        }
        let end = self.label();
        if otherwise.is_empty() {
            self.jump_if(cond, false, &end);
            self.statements(then);
        } else {
            let other = self.label();
            self.jump_if(cond, false, &other);
            self.statements(then);
            self.line(&format!("bra {end};"));
            self.body.push_str(&format!("{other}:\n"));
            self.statements(otherwise);
        }
        self.body.push_str(&format!("{end}:\n"));
    }

    fn print_call(&mut self, text: &Mem, arguments: &Mem) {
        self.has_print = true;
        let (format, values) = (self.temporary(Class::B64), self.temporary(Class::B64));
        let (text, arguments) = (self.address(text), self.address(arguments));
        self.line(&format!("mov.u64 {format}, {};", text.trim_matches(['[', ']'])));
        self.line(&format!("cvta.global.u64 {format}, {format};"));
        self.line(&format!("mov.u64 {values}, {};", arguments.trim_matches(['[', ']'])));
        self.line(&format!("cvta.local.u64 {values}, {values};"));
        self.line("{ .param .b64 p0; .param .b64 p1; .param .b32 printed;");
        self.line(&format!("st.param.b64 [p0], {format};"));
        self.line(&format!("st.param.b64 [p1], {values};"));
        self.line("call (printed), vprintf, (p0, p1); }");
    }

    fn condition_call(&mut self, handle: &Operand, value: &Operand) {
        self.has_condition = true;
        let (handle, value) = (self.in_register(handle), self.in_register(value));
        self.line("{ .param .b64 p0; .param .b32 p1;");
        self.line(&format!("st.param.b64 [p0], {handle};"));
        self.line(&format!("st.param.b32 [p1], {value};"));
        self.line("call cudaGraphSetConditional, (p0, p1); }");
    }

    /// Prints the blocks that checks jump to. Each calls the function that reports its failure. The
    /// calls with many arguments are in those functions, because code that contains them runs
    /// slowly on the CPU.
    fn failures(&mut self) {
        if self.used_sites.is_empty() {
            return;
        }
        self.body.push_str(&std::mem::take(&mut self.cold));
        for site in self.used_sites.clone() {
            self.body.push_str(&format!("$F{}:\n", site.0));
            self.line(&format!("call __fail{};", site.0));
            self.line("bra.uni $FAIL;");
        }
        self.body.push_str("$FAIL:\n");
        self.line("trap;");
        self.line("ret;");
    }

    /// Returns the functions that report failures, one for each place: its message, file, line and
    /// function.
    fn write_failures(&mut self, out: &mut String) -> std::fmt::Result {
        if self.used_sites.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            ".extern .func __assertfail (.param .b64 p0, .param .b64 p1, .param .b32 p2, .param .b64 p3, .param .b64 p4);"
        )?;
        let mut functions = String::new();
        for site in self.used_sites.clone() {
            let info = &self.program.sites[site.0 as usize];
            let texts = [&info.message, info.file, info.function].map(|text| self.string(text));
            writeln!(functions, ".func __fail{} ()\n{{\n\t.reg .b64 %rd<3>;", site.0)?;
            for (index, text) in texts.into_iter().enumerate() {
                writeln!(functions, "\tmov.u64 %rd{index}, __text{text};")?;
                writeln!(functions, "\tcvta.global.u64 %rd{index}, %rd{index};")?;
            }
            functions.push_str(
                "\t{ .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n",
            );
            functions.push_str("\tst.param.b64 [p0], %rd0;\n\tst.param.b64 [p1], %rd1;\n");
            writeln!(functions, "\tst.param.b32 [p2], {};", info.line)?;
            functions.push_str("\tst.param.b64 [p3], %rd2;\n\tst.param.b64 [p4], 1;\n");
            functions.push_str("\tcall.uni __assertfail, (p0, p1, p2, p3, p4); }\n\ttrap;\n\tret;\n}\n");
        }
        for (index, text) in self.strings.iter().enumerate() {
            let bytes: Vec<String> = text.bytes().chain([0]).map(|byte| byte.to_string()).collect();
            writeln!(out, ".global .align 1 .b8 __text{index}[{}] = {{{}}};", bytes.len(), bytes.join(", "))?;
        }
        out.push_str(&functions);
        Ok(())
    }

    /// Returns the module: what the body needs, and the body.
    fn module(mut self) -> String {
        let mut out = HEADER.to_owned();
        let _ = self.write_module(&mut out);
        out
    }

    fn write_module(&mut self, out: &mut String) -> std::fmt::Result {
        let program = self.program;
        self.write_failures(out)?;
        if self.has_print {
            writeln!(out, ".extern .func (.param .b32 printed) vprintf (.param .b64 p0, .param .b64 p1);")?;
        }
        if self.has_condition {
            writeln!(out, ".extern .func cudaGraphSetConditional (.param .b64 p0, .param .b32 p1);")?;
        }
        if let Some(align) = program.dynamic_shared {
            writeln!(out, ".extern .shared .align {align} .b8 __dynamic_shared[];")?;
        }
        for (index, (align, bytes)) in program.constants.iter().enumerate() {
            let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
            writeln!(
                out,
                ".global .align {align} .b8 __constant{index}[{}] = {{{}}};",
                bytes.len().max(1),
                list.join(", ")
            )?;
        }
        let params: Vec<String> = program
            .params
            .iter()
            .enumerate()
            .map(|(index, param)| {
                let name = self.param(index as u32);
                match (param.bytes, param.align) {
                    (8, 8) => format!("\t.param .b64 {name}"),
                    (4, 4) => format!("\t.param .b32 {name}"),
                    (bytes, align) => format!("\t.param .align {align} .b8 {name}[{bytes}]"),
                }
            })
            .collect();
        writeln!(out, ".visible .entry {}(\n{}\n)", program.name, params.join(",\n"))?;
        if let Some([x, y, z]) = program.rules.block {
            writeln!(out, ".reqntid {x}, {y}, {z}")?;
        }
        writeln!(out, "{{")?;
        for class in Class::ALL {
            if let Some(count) = self.counts.get(&class) {
                writeln!(out, "\t.reg {} {}<{count}>;", class.declaration(), class.prefix())?;
            }
        }
        for (index, array) in program.locals.iter().enumerate() {
            if array.bytes > 0 {
                writeln!(out, "\t.local .align {} .b8 __local{index}[{}];", array.align, array.bytes)?;
            }
        }
        for (index, array) in program.shared.iter().enumerate() {
            writeln!(out, "\t.shared .align {} .b8 __shared{index}[{}];", array.align, array.bytes.max(1))?;
        }
        out.push_str(&self.body);
        out.push_str("}\n");
        Ok(())
    }
}
