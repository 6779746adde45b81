//! Statements as the PTX they are written as.

use std::fmt::Write;

use super::program::{FILES, File, If, Join, Loop, Masks, Output, Statement, Switch, mentions};

/// Returns the statements as text.
pub(crate) fn print(statements: &[Statement]) -> String {
    let mut printer = Printer::new("L");
    printer.statements(statements);
    printer.text
}

impl Output {
    /// Returns where it goes in the record, from the first free byte, and where the next may.
    pub(crate) fn place(&self, end: u32) -> (u32, u32) {
        let bytes = match self {
            Output::Register { file, .. } => FILES[*file].bytes,
            Output::Memory { .. } | Output::Counter(_) => 8,
        };
        let start = end.next_multiple_of(bytes);
        (start, start + bytes)
    }
}

pub(crate) struct Printer {
    pub(crate) text: String,
    label: u32,
    /// The label where a pass of the innermost loop ends, and the one behind the loop.
    loops: Vec<(String, String)>,
    record: u32,
    prefix: &'static str,
    /// How many threads there are, where what they put out lies side by side.
    pub(crate) columnar: Option<u32>,
}

impl Printer {
    pub(crate) fn new(prefix: &'static str) -> Self {
        Self { text: String::new(), label: 0, loops: Vec::new(), record: 0, prefix, columnar: None }
    }

    fn label(&mut self) -> String {
        self.label += 1;
        format!("{}{}", self.prefix, self.label)
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    pub(crate) fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Code(lines) => lines.iter().for_each(|line| self.line(line)),
            Statement::If(parts) => self.if_else(parts),
            Statement::Loop(parts) => self.repeat(parts),
            Statement::Switch(parts) => self.switch(parts),
            Statement::Break(condition) => {
                if let Some((_, end)) = self.loops.last().cloned() {
                    self.line(&format!("@{condition} bra {end};"));
                }
            }
            Statement::Continue(condition) => {
                if let Some((next, _)) = self.loops.last().cloned() {
                    self.line(&format!("@{condition} bra {next};"));
                }
            }
            Statement::Output(output) => self.output(output),
        }
    }

    fn if_else(&mut self, parts: &If) {
        let (other, end) = (self.label(), self.label());
        let condition = &parts.condition;
        parts.prelude.iter().for_each(|line| self.line(line));
        if let Some(Masks { outer, then, otherwise }) = &parts.masks {
            self.line(&format!("vote.sync.ballot.b32 {then}, {condition}, {outer};"));
            self.line(&format!("xor.b32 {otherwise}, {then}, {outer};"));
        }
        let negated = |condition: &str| match condition.strip_prefix('!') {
            Some(plain) => plain.to_owned(),
            None => format!("!{condition}"),
        };
        let bra = if parts.uniform { "bra.uni" } else { "bra" };
        let away = if parts.otherwise.is_empty() { &end } else { &other };
        let then = match &parts.also {
            None => {
                self.line(&format!("@{} {bra} {away};", negated(condition)));
                None
            }
            Some((Join::And, second)) => {
                self.line(&format!("@{} bra {away};", negated(condition)));
                self.line(&format!("@{} bra {away};", negated(second)));
                None
            }
            Some((Join::Or, second)) => {
                let then = self.label();
                self.line(&format!("@{condition} bra {then};"));
                self.line(&format!("@{} bra {away};", negated(second)));
                Some(then)
            }
        };
        if let Some(then) = then {
            let _ = writeln!(self.text, "{then}:");
        }
        self.statements(&parts.then);
        if !parts.otherwise.is_empty() {
            self.line(&format!("{bra} {end};"));
            let _ = writeln!(self.text, "{other}:");
            self.statements(&parts.otherwise);
        }
        let _ = writeln!(self.text, "{end}:");
    }

    fn repeat(&mut self, parts: &Loop) {
        let (top, next, end) = (self.label(), self.label(), self.label());
        let (i, n) = (format!("%i{}", parts.number), format!("%n{}", parts.number));
        let bra = if parts.uniform { "bra.uni" } else { "bra" };
        parts.trips.iter().for_each(|line| self.line(line));
        self.line(&format!("mov.u32 {i}, 0;"));
        if let Some((outer, inner)) = &parts.masks {
            self.line(&format!("mov.b32 {inner}, {outer};"));
        }
        let _ = writeln!(self.text, "{top}:");
        if !parts.at_least_once {
            self.line(&format!("setp.ge.u32 %q, {i}, {n};"));
            if let Some((_, inner)) = &parts.masks {
                self.line(&format!("vote.sync.ballot.b32 {inner}, !%q, {inner};"));
            }
            self.line(&format!("@%q {bra} {end};"));
        }
        self.loops.push((next.clone(), end.clone()));
        self.statements(&parts.body);
        self.loops.pop();
        if mentions(&self.text, &next) {
            let _ = writeln!(self.text, "{next}:");
        }
        self.line(&format!("add.u32 {i}, {i}, 1;"));
        if parts.at_least_once {
            self.line(&format!("setp.lt.u32 %q, {i}, {n};"));
            if let Some((_, inner)) = &parts.masks {
                self.line(&format!("vote.sync.ballot.b32 {inner}, %q, {inner};"));
            }
            self.line(&format!("@%q {bra} {top};"));
        } else {
            self.line(&format!("bra.uni {top};"));
        }
        let _ = writeln!(self.text, "{end}:");
    }

    fn switch(&mut self, parts: &Switch) {
        let cases: Vec<String> = parts.cases.iter().map(|_| self.label()).collect();
        let (table, end) = (self.label(), self.label());
        parts.index.iter().for_each(|line| self.line(line));
        if let Some((outer, inner)) = &parts.masks {
            self.line(&format!("match.any.sync.b32 {inner}, %index, {outer};"));
        }
        let brx = if parts.uniform { "brx.idx.uni" } else { "brx.idx" };
        let _ = writeln!(self.text, "{table}: .branchtargets {};", cases.join(", "));
        match &parts.guard {
            Some(guard) => self.line(&format!("@{guard} {brx} %index, {table};\n    bra {end};")),
            None => self.line(&format!("{brx} %index, {table};")),
        }
        for (label, case) in cases.iter().zip(&parts.cases) {
            let _ = writeln!(self.text, "{label}:");
            self.statements(case);
            self.line(&format!("bra {end};"));
        }
        let _ = writeln!(self.text, "{end}:");
    }

    fn output(&mut self, output: &Output) {
        let (at, end) = output.place(self.record);
        self.record = end;
        let place = match self.columnar {
            Some(threads) => format!("[%record{}+{}]", end - at, at * threads),
            None => format!("[%record+{at}]"),
        };
        match output {
            Output::Register { file, index } => {
                let File { prefix, ty, .. } = FILES[*file];
                if prefix == "%p" {
                    self.line(&format!("selp.u32 %t0, 1, 0, %p{index};"));
                    self.line(&format!("st.global.u32 {place}, %t0;"));
                } else {
                    self.line(&format!("st.global.{ty} {place}, {prefix}{index};"));
                }
            }
            Output::Memory { place: from, space, offset } => {
                self.line(&format!("ld.{space}.b64 %td0, [{from}+{offset}];"));
                self.line(&format!("st.global.b64 {place}, %td0;"));
            }
            Output::Counter(index) => {
                self.line("bar.sync 0;");
                self.line("setp.eq.u32 %q, %linear, 0;");
                self.line(&format!("@%q ld.shared.b64 %td0, [tally+{}];", 8 * index));
                self.line(&format!("@%q st.global.b64 {place}, %td0;"));
            }
        }
    }
}
