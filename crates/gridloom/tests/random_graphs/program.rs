//! A program: steps over numbered buffers of integers, with loops and branches. Graph and reference
//! are both made from it.

use std::collections::BTreeSet;

/// The number of a buffer. Those below [`Program::external`] exist outside the graph; the others
/// are alloc nodes.
pub(crate) type Buf = usize;

/// A whole program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The length of every buffer, by number.
    pub(crate) lens: Vec<usize>,
    /// The numbers of the buffers that alloc nodes provide.
    pub(crate) locals: BTreeSet<Buf>,
    pub(crate) body: StepList,
}

/// Steps that behave as if they ran in this order.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepList(pub(crate) Vec<Step>);

/// One thing to do. Offsets and lengths are in elements.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Empty,
    /// `dst[i] = a * src[i] + b`; the buffers may be the same.
    Affine {
        dst: Buf,
        src: Buf,
        a: i32,
        b: i32,
    },
    /// `dst[i] = 31 * dst[i] + src[i]`, of two buffers.
    Mix {
        dst: Buf,
        src: Buf,
    },
    /// `dst[i] += by`.
    Increase {
        dst: Buf,
        by: i32,
    },
    /// Fills elements with a value of `size` bytes.
    Fill {
        dst: Buf,
        at: usize,
        len: usize,
        value: u32,
        size: usize,
    },
    Fill2d {
        dst: Buf,
        at: usize,
        pitch: usize,
        width: usize,
        height: usize,
        value: i32,
    },
    Copy {
        dst: Buf,
        at: usize,
        src: Buf,
        from: usize,
        len: usize,
    },
    Copy2d {
        dst: Buf,
        at: usize,
        dst_pitch: usize,
        src: Buf,
        from: usize,
        src_pitch: usize,
        width: usize,
        height: usize,
    },
    /// Copies from the host.
    Upload {
        dst: Buf,
        at: usize,
        values: Vec<i32>,
    },
    Callback {
        amount: u64,
    },
    /// Records an event and waits for it.
    Events,
    /// Memory for the rest of the block, filled with a value.
    Alloc {
        buf: Buf,
        value: i32,
    },
    Child(StepList),
    Repeat {
        number: usize,
        passes: u64,
        limit: Option<u64>,
        body: StepList,
    },
    /// Sets a counter, then loops while it is not 0, testing before or after each pass.
    WhileNonzero {
        number: usize,
        counter: Buf,
        passes: i32,
        test_first: bool,
        limit: Option<u64>,
        body: StepList,
    },
    /// The same through a condition that kernels set.
    While {
        number: usize,
        counter: Buf,
        passes: i32,
        body: StepList,
    },
    /// One body or two, by the value of a selector.
    If {
        number: usize,
        selector: Buf,
        by_condition: bool,
        bodies: Vec<StepList>,
    },
    Switch {
        number: usize,
        selector: Buf,
        by_condition: bool,
        bodies: Vec<StepList>,
    },
}

/// The names of all steps.
pub(crate) const STEP_NAMES: [&str; 18] = [
    "empty",
    "affine",
    "mix",
    "increase",
    "fill",
    "fill_2d",
    "copy",
    "copy_2d",
    "upload",
    "callback",
    "events",
    "alloc",
    "child",
    "repeat",
    "while_nonzero",
    "while",
    "if",
    "switch",
];

impl Step {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Step::Empty => "empty",
            Step::Affine { .. } => "affine",
            Step::Mix { .. } => "mix",
            Step::Increase { .. } => "increase",
            Step::Fill { .. } => "fill",
            Step::Fill2d { .. } => "fill_2d",
            Step::Copy { .. } => "copy",
            Step::Copy2d { .. } => "copy_2d",
            Step::Upload { .. } => "upload",
            Step::Callback { .. } => "callback",
            Step::Events => "events",
            Step::Alloc { .. } => "alloc",
            Step::Child(_) => "child",
            Step::Repeat { .. } => "repeat",
            Step::WhileNonzero { .. } => "while_nonzero",
            Step::While { .. } => "while",
            Step::If { .. } => "if",
            Step::Switch { .. } => "switch",
        }
    }

    /// Returns the blocks inside it.
    pub(crate) fn blocks(&self) -> &[StepList] {
        match self {
            Step::Child(body)
            | Step::Repeat { body, .. }
            | Step::WhileNonzero { body, .. }
            | Step::While { body, .. } => std::slice::from_ref(body),
            Step::If { bodies, .. } | Step::Switch { bodies, .. } => bodies,
            _ => &[],
        }
    }

    /// Returns the buffers it reads and those it writes, with everything inside it.
    pub(crate) fn footprint(&self) -> Footprint {
        let mut foot = Footprint::default();
        match *self {
            Step::Affine { dst, src, .. } => foot.read(src).write(dst),
            Step::Mix { dst, src } => foot.read(src).read(dst).write(dst),
            Step::Increase { dst, .. } => foot.read(dst).write(dst),
            Step::Fill { dst, .. } | Step::Fill2d { dst, .. } | Step::Upload { dst, .. } => foot.write(dst),
            Step::Copy { dst, src, .. } | Step::Copy2d { dst, src, .. } => foot.read(src).write(dst),
            Step::Alloc { buf, .. } => foot.write(buf),
            Step::WhileNonzero { counter, .. } | Step::While { counter, .. } => {
                foot.read(counter).write(counter)
            }
            Step::If { selector, .. } | Step::Switch { selector, .. } => foot.read(selector),
            Step::Empty | Step::Callback { .. } | Step::Events | Step::Child(_) | Step::Repeat { .. } => {
                &mut foot
            }
        };
        for step in self.blocks().iter().flat_map(|block| &block.0) {
            let inner = step.footprint();
            foot.reads.extend(inner.reads);
            foot.writes.extend(inner.writes);
        }
        foot
    }
}

/// The buffers that a step reads and writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Footprint {
    pub(crate) reads: BTreeSet<Buf>,
    pub(crate) writes: BTreeSet<Buf>,
}

impl Footprint {
    fn read(&mut self, buf: Buf) -> &mut Self {
        self.reads.insert(buf);
        self
    }

    fn write(&mut self, buf: Buf) -> &mut Self {
        self.writes.insert(buf);
        self
    }
}

impl StepList {
    /// Calls `visit` with every step and how deep it is nested.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&Step, usize)) {
        self.visit_at(0, visit);
    }

    fn visit_at(&self, depth: usize, visit: &mut dyn FnMut(&Step, usize)) {
        for step in &self.0 {
            visit(step, depth);
            step.blocks().iter().for_each(|block| block.visit_at(depth + 1, visit));
        }
    }

    /// Returns whether it uses no memory that an alloc node outside of it provides.
    pub(crate) fn is_self_contained(&self, locals: &BTreeSet<Buf>) -> bool {
        let (mut used, mut own) = (BTreeSet::new(), BTreeSet::new());
        self.visit(&mut |step, _| {
            let foot = step.footprint();
            used.extend(foot.reads);
            used.extend(foot.writes);
            if let Step::Alloc { buf, .. } = step {
                own.insert(*buf);
            }
        });
        used.iter().all(|buf| !locals.contains(buf) || own.contains(buf))
    }
}

impl Program {
    /// Returns whether a buffer exists outside the graph.
    pub(crate) fn is_external(&self, buf: Buf) -> bool {
        !self.locals.contains(&buf)
    }

    /// Returns the lengths of the buffers outside the graph, in the order of their numbers.
    pub(crate) fn externals(&self) -> impl Iterator<Item = usize> + '_ {
        self.lens.iter().enumerate().filter(|(buf, _)| self.is_external(*buf)).map(|(_, len)| *len)
    }
}
