//! The state of a recording. A thread records one kernel at a time.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::ir::{
    Array, Base, Effect, Inst, Label, Mem, Operand, Program, Reached, Reg, Site, SiteInfo, Space, Stmt,
    Target, Ty,
};
use crate::record::value::ScalarHandle;

/// Why a kernel cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// What is wrong, and what to do.
    pub message: String,
    /// The source file.
    pub file: &'static str,
    /// The line in it.
    pub line: u32,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for RecordError {}

/// Unwinds a recording that cannot end.
pub(crate) struct Abandoned;

/// The deepest that device functions may call each other. Each call is recorded in place.
const MOST_CALLS: usize = 200;

struct Frame {
    file: &'static str,
    function: &'static str,
    is_overflow_checked: bool,
    /// The line of the caller.
    line: u32,
}

/// The kernel that is being recorded.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) program: Program,
    /// The lists of statements that are open, the innermost last.
    open: Vec<Vec<Stmt>>,
    frames: Vec<Frame>,
    line: u32,
    labels: u32,
    /// Whether indices are promised to be in range.
    is_unchecked: bool,
    /// How many loops are open.
    loops: u32,
    sites: HashMap<SiteInfo, Site>,
    /// How often each variable was written, and memory.
    writes: HashMap<Reg, u64>,
    stores: u64,
    /// How many of the stores were to each array of the thread, by its name.
    stores_of: HashMap<u32, u64>,
    /// The arrays of the thread whose addresses were taken, so that slices write them too.
    addressed: HashSet<u32>,
    /// How each parameter is shared out among the threads.
    claims: HashMap<u32, (&'static str, Operand)>,
    heights: HashMap<u32, Operand>,
    /// The loops whose steps are being recorded.
    steps: Vec<Label>,
    pub(crate) error: Option<RecordError>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Calls `act` with the recorder of this thread.
pub(crate) fn with<R>(act: impl FnOnce(&mut Recorder) -> R) -> R {
    RECORDER.with_borrow_mut(|recorder| {
        act(recorder.as_mut().expect("device code is recorded by loading a kernel, never called"))
    })
}

/// Starts a recording. Returns what was being recorded before.
pub(crate) fn start(name: &str, is_unchecked: bool, target: Target) -> Option<Recorder> {
    let mut recorder = Recorder { open: vec![Vec::new()], is_unchecked, ..Recorder::default() };
    recorder.program.target = target;
    // PTX has no letters but those of ASCII in its names.
    recorder.program.name = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    RECORDER.replace(Some(recorder))
}

/// Ends a recording and goes on with the one before.
pub(crate) fn finish(before: Option<Recorder>) -> Result<Program, RecordError> {
    let mut recorder = RECORDER.replace(before).expect("a recording was started");
    match recorder.error {
        Some(error) => Err(error),
        None => {
            recorder.program.body = recorder.open.pop().unwrap_or_default();
            Ok(recorder.program)
        }
    }
}

impl Recorder {
    pub(crate) fn reg(&mut self, ty: Ty) -> Reg {
        self.program.regs.push(ty);
        Reg(self.program.regs.len() as u32 - 1)
    }

    pub(crate) fn push(&mut self, stmt: Stmt) {
        let list = self.open.last_mut().expect("a list of statements is open");
        // What follows a jump is not reached.
        if !matches!(
            list.last(),
            Some(Stmt::Break { when: None, .. } | Stmt::Continue(_) | Stmt::Exit | Stmt::Fail(_))
        ) {
            list.push(stmt);
        }
    }

    /// Adds an instruction with a result.
    pub(crate) fn compute(
        &mut self,
        op: &'static str,
        suffix: &'static str,
        ty: Ty,
        args: &[Operand],
    ) -> Operand {
        let dst = self.reg(ty);
        let op = op.into();
        self.push(Stmt::Inst(Inst { op, suffix, dst: Some(dst), args: args.to_vec(), effect: Effect::None }));
        Operand::Reg(dst)
    }

    /// Adds an instruction that does something.
    pub(crate) fn act(
        &mut self,
        op: &'static str,
        suffix: &'static str,
        dst: Option<Reg>,
        args: &[Operand],
        effect: Effect,
    ) {
        self.push(Stmt::Inst(Inst { op: op.into(), suffix, dst, args: args.to_vec(), effect }));
    }

    /// Adds an instruction whose name is made of parts.
    pub(crate) fn act_named(
        &mut self,
        op: String,
        suffix: &'static str,
        dst: Option<Reg>,
        args: &[Operand],
        effect: Effect,
    ) {
        self.push(Stmt::Inst(Inst { op: op.into(), suffix, dst, args: args.to_vec(), effect }));
    }

    /// Returns the operand in a register.
    pub(crate) fn in_register(&mut self, ty: Ty, operand: Operand) -> Operand {
        match operand {
            Operand::Imm(..) => self.compute("mov", ty.bit_suffix(), ty, &[operand]),
            other => other,
        }
    }

    pub(crate) fn enter_loop(&mut self) {
        self.loops += 1;
    }

    pub(crate) fn leave_loop(&mut self) {
        self.loops -= 1;
    }

    /// Returns whether what is recorded now may run more than once.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.loops > 0
    }

    /// Returns an array of the block.
    pub(crate) fn shared(&mut self, bytes: usize, align: usize) -> Base {
        // Neighbouring elements are loaded at once where their address allows it.
        let align = if bytes >= 16 { align.max(16) } else { align };
        self.program.shared.push(Array { bytes, align });
        Base::Shared(self.program.shared.len() as u32 - 1)
    }

    /// Returns the memory of the block that launches add. There is one.
    pub(crate) fn dynamic_shared(&mut self, align: usize) -> Base {
        if self.program.dynamic_shared.replace(align).is_some() {
            self.refuse("a kernel has one dynamic shared memory; divide it, or declare the others with `block::shared`");
        }
        Base::DynamicShared
    }

    /// Asks that all threads of a group come here together, or none.
    pub(crate) fn reached_by(&mut self, by: Reached, what: &str) {
        let group = match by {
            Reached::Block => "block",
            Reached::Warp => "warp",
        };
        let site = self.site(&format!(
            "not all threads of a {group} may come to `{what}`: it stands behind a branch, loop or return that depends on the thread; call it where all of them do"
        ));
        self.push(Stmt::Reached { by, site });
    }

    /// Notes that a value is the same in all threads of a warp.
    pub(crate) fn same_in_warp(&mut self, value: Operand) {
        if let Operand::Reg(reg) = value {
            self.program.same_in_warp.insert(reg);
        }
    }

    pub(crate) fn target(&self) -> Target {
        self.program.target
    }

    /// Notes that memory is written.
    pub(crate) fn note_stores(&mut self) {
        self.stores += 1;
    }

    /// States the source line of what follows. The functions of this crate have none: what they
    /// record is at the line of their caller.
    pub(crate) fn at(&mut self, line: u32) {
        if line != 0 {
            self.line = line;
        }
    }

    pub(crate) fn line_now(&self) -> u32 {
        self.line
    }

    /// Returns the place that fails with this message at the current line.
    pub(crate) fn site(&mut self, message: &str) -> Site {
        let (file, function) = self.frames.last().map_or(("", ""), |frame| (frame.file, frame.function));
        let info = SiteInfo { message: message.to_owned(), file, line: self.line, function };
        if let Some(site) = self.sites.get(&info) {
            return *site;
        }
        let site = Site(self.program.sites.len() as u32);
        self.program.sites.push(info.clone());
        self.sites.insert(info, site);
        site
    }

    /// Fails the launch where `cond` has the value `fails_when`.
    pub(crate) fn check(&mut self, cond: Operand, fails_when: bool, message: &str) {
        match cond {
            Operand::Imm(_, bits) if (bits != 0) != fails_when => {}
            Operand::Imm(..) => {
                let site = self.site(message);
                self.push(Stmt::Fail(site));
            }
            cond => {
                let site = self.site(message);
                self.push(Stmt::Check { cond, fails_when, site });
            }
        }
    }

    /// Fails the launch where an index is not in range. Where that was promised, the optimiser
    /// knows it instead.
    pub(crate) fn check_index(&mut self, is_inside: Operand, message: &str) {
        match is_inside {
            cond if !self.is_unchecked => self.check(cond, false, message),
            Operand::Imm(..) => {}
            cond => self.push(Stmt::Promise { cond }),
        }
    }

    /// Remembers the first thing that cannot be recorded.
    pub(crate) fn refuse(&mut self, message: impl Into<String>) {
        let (file, line) = (self.frames.last().map_or("", |frame| frame.file), self.line);
        self.error.get_or_insert_with(|| RecordError { message: message.into(), file, line });
    }

    pub(crate) fn is_overflow_checked(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.is_overflow_checked)
    }

    pub(crate) fn open(&mut self) {
        self.open.push(Vec::new());
    }

    pub(crate) fn close(&mut self) -> Vec<Stmt> {
        self.open.pop().expect("a list of statements is open")
    }

    /// Notes that a place is written.
    pub(crate) fn note_write(&mut self, place: &ScalarHandle) {
        match place {
            ScalarHandle::Var(reg) => *self.writes.entry(*reg).or_default() += 1,
            ScalarHandle::Mem(mem) => {
                self.stores += 1;
                if let Base::Local(array) = mem.base {
                    *self.stores_of.entry(array).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    /// Returns how often a place was written.
    pub(crate) fn stamp(&self, place: &ScalarHandle) -> u64 {
        match place {
            ScalarHandle::Var(reg) => self.writes.get(reg).copied().unwrap_or_default(),
            ScalarHandle::Mem(mem) => self.stores_to(mem),
            _ => 0,
        }
    }

    /// Returns how many stores there were that may have written a place.
    pub(crate) fn stores_to(&self, mem: &Mem) -> u64 {
        match mem.base {
            Base::Local(array) if !self.addressed.contains(&array) => {
                self.stores_of.get(&array).copied().unwrap_or_default()
            }
            _ => self.stores,
        }
    }

    /// Notes that the address of an array is taken.
    pub(crate) fn note_address(&mut self, base: Base) {
        if let Base::Local(array) = base {
            self.addressed.insert(array);
        }
    }

    /// Notes how a parameter is shared out. Returns whether it is so everywhere.
    pub(crate) fn claim(&mut self, param: u32, way: &'static str, size: Operand) -> bool {
        *self.claims.entry(param).or_insert((way, size)) == (way, size)
    }

    /// Notes how many rows the planes of a parameter have. Returns whether it is so everywhere.
    pub(crate) fn claim_height(&mut self, param: u32, height: Operand) -> bool {
        *self.heights.entry(param).or_insert(height) == height
    }

    pub(crate) fn enter_step(&mut self, label: Label) {
        self.steps.push(label);
    }

    pub(crate) fn leave_step(&mut self) {
        self.steps.pop();
    }

    pub(crate) fn loop_of_step(&self) -> Label {
        *self.steps.last().expect("the step of a loop is recorded")
    }

    pub(crate) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Returns an array of the thread.
    pub(crate) fn local(&mut self, bytes: usize, align: usize) -> Mem {
        self.program.locals.push(Array { bytes, align });
        let base = Base::Local(self.program.locals.len() as u32 - 1);
        Mem { space: Space::Local, base, index: None, offset: 0 }
    }

    /// Returns a constant of the module.
    pub(crate) fn constant(&mut self, align: usize, bytes: Vec<u8>) -> Mem {
        let constant = (align, bytes);
        let index = match self.program.constants.iter().position(|known| *known == constant) {
            Some(index) => index,
            None => {
                self.program.constants.push(constant);
                self.program.constants.len() - 1
            }
        };
        Mem { space: Space::ReadOnly, base: Base::Constant(index as u32), index: None, offset: 0 }
    }
}

/// The recording of one function, from its first statement to its last.
pub struct Entered(());

/// Starts the recording of a function.
pub fn enter(file: &'static str, function: &'static str, is_overflow_checked: bool) -> Entered {
    let is_too_deep = with(|r| {
        let line = r.line;
        r.frames.push(Frame { file, function, is_overflow_checked, line });
        let is_too_deep = r.frames.len() > MOST_CALLS;
        if is_too_deep {
            r.refuse(format!(
                "`{function}` is called by itself: device functions are recorded where they are called and cannot be recursive; use a loop"
            ));
        }
        is_too_deep
    });
    if is_too_deep {
        std::panic::resume_unwind(Box::new(Abandoned));
    }
    Entered(())
}

impl Drop for Entered {
    fn drop(&mut self) {
        RECORDER.with_borrow_mut(|recorder| {
            if let Some(recorder) = recorder
                && let Some(frame) = recorder.frames.pop()
            {
                recorder.line = frame.line;
            }
        });
    }
}

/// States the source line of what follows.
pub fn at(line: u32) {
    with(|r| r.at(line));
}
