//! Two ways to perform a program on a device: with streams that run, and with streams that are
//! captured.

use std::sync::atomic::Ordering;

use gridloom::prelude::*;

use super::Cells;
use super::generate::STREAMS;
use super::program::{Cell, Form, Lane, Program, Step};
use crate::support::GraphKernels;

/// Performs a program, whichever way.
pub(crate) fn perform(program: &Program, way: &mut impl Way) -> Result<()> {
    for step in &program.0 {
        match *step {
            Step::Sync { from, to } => way.sync(from, to)?,
            Step::Fork { lane, ref branches } => way.fork(lane, branches)?,
            Step::Join { lane, ref branches } => way.join(lane, branches)?,
            Step::Conditional { lane, form, tested, ref bodies } => {
                way.conditional(lane, form, tested, bodies)?
            }
            ref step => way.operate(step)?,
        }
    }
    Ok(())
}

pub(crate) trait Way {
    fn operate(&mut self, step: &Step) -> Result<()>;
    fn sync(&mut self, from: Lane, to: Lane) -> Result<()>;
    fn fork(&mut self, lane: Lane, branches: &[Lane]) -> Result<()>;
    fn join(&mut self, lane: Lane, branches: &[Lane]) -> Result<()>;
    fn conditional(&mut self, lane: Lane, form: Form, tested: Cell, bodies: &[Program]) -> Result<()>;
}

/// One plain operation, on anything that takes it.
fn operate<S: Ops>(on: &S, k: &GraphKernels, cells: &Cells, step: &Step) -> Result<()> {
    let (one, value) = (LaunchConfig::one(), |cell: Cell| &cells.values[cell]);
    match *step {
        Step::Affine { out, x, a, b, .. } => {
            on.launch(&k.affine, one, (value(out), value(x), 1, a, b)).map(drop)
        }
        Step::Mix { out, x, .. } => on.launch(&k.mix, one, (value(out), value(x), 1)).map(drop),
        Step::Fill { cell, value: fill, .. } => on.memset(value(cell), fill).map(drop),
        Step::Copy { to, from, .. } => on.memcpy(value(to), value(from)).map(drop),
        Step::Call { by, .. } => {
            let calls = cells.calls.clone();
            on.callback(move || {
                calls.fetch_add(by, Ordering::Relaxed);
            })
            .map(drop)
        }
        _ => unreachable!("not a plain operation"),
    }
}

fn lane_of(step: &Step) -> Lane {
    match *step {
        Step::Affine { lane, .. }
        | Step::Mix { lane, .. }
        | Step::Fill { lane, .. }
        | Step::Copy { lane, .. }
        | Step::Call { lane, .. } => lane,
        _ => unreachable!("not a plain operation"),
    }
}

fn side_streams(k: &GraphKernels) -> Result<Vec<Stream>> {
    (1..STREAMS).map(|_| k.device.stream()).collect()
}

/// With streams that run. Conditionals are decided by the host, which waits for the value.
pub(crate) struct Direct<'a> {
    k: &'a GraphKernels,
    cells: &'a Cells,
    /// The stream of each lane; that of a joined one was given back.
    lanes: Vec<Option<Stream>>,
    free: Vec<Stream>,
}

impl<'a> Direct<'a> {
    pub(crate) fn new(k: &'a GraphKernels, cells: &'a Cells) -> Result<Self> {
        Ok(Direct { k, cells, lanes: vec![Some(k.stream.clone())], free: side_streams(k)? })
    }

    fn lane(&self, lane: Lane) -> &Stream {
        self.lanes[lane].as_ref().expect("a lane that goes on")
    }

    fn order(&self, from: Lane, to: Lane) -> Result<()> {
        let event = self.k.device.event()?;
        self.lane(from).record(&event)?;
        self.lane(to).wait(&event)
    }

    fn add_lane(&mut self, lane: Lane) {
        if lane == self.lanes.len() {
            self.lanes.push(Some(self.free.pop().expect("the program has no more streams than there are")));
        }
    }

    fn body(&mut self, lane: Lane, body: &Program) -> Result<()> {
        let lanes = vec![Some(self.lane(lane).clone())];
        let mut inner = Direct { k: self.k, cells: self.cells, lanes, free: std::mem::take(&mut self.free) };
        let outcome = perform(body, &mut inner);
        self.free = inner.free;
        self.free.extend(inner.lanes.into_iter().skip(1).flatten());
        outcome
    }

    fn value(&self, cell: Cell) -> Result<i32> {
        Ok(self.cells.values[cell].to_vec()?[0])
    }
}

impl Way for Direct<'_> {
    fn operate(&mut self, step: &Step) -> Result<()> {
        operate(self.lane(lane_of(step)), self.k, self.cells, step)
    }

    fn sync(&mut self, from: Lane, to: Lane) -> Result<()> {
        self.add_lane(to);
        self.order(from, to)
    }

    fn fork(&mut self, lane: Lane, branches: &[Lane]) -> Result<()> {
        for &branch in branches {
            self.sync(lane, branch)?;
        }
        Ok(())
    }

    fn join(&mut self, lane: Lane, branches: &[Lane]) -> Result<()> {
        for &branch in branches {
            self.order(branch, lane)?;
            self.free.extend(self.lanes[branch].take());
        }
        Ok(())
    }

    fn conditional(&mut self, lane: Lane, form: Form, tested: Cell, bodies: &[Program]) -> Result<()> {
        match form {
            Form::Repeat(passes) => (0..passes).try_for_each(|_| self.body(lane, &bodies[0])),
            Form::While | Form::DoWhile => {
                let mut first = form == Form::DoWhile;
                while std::mem::take(&mut first) || self.value(tested)? != 0 {
                    self.body(lane, &bodies[0])?;
                }
                Ok(())
            }
            Form::If | Form::IfElse | Form::Switch => {
                match form.chosen(self.value(tested)?).and_then(|chosen| bodies.get(chosen)) {
                    Some(body) => self.body(lane, body),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A lane of a capture: the capture, with the stream for the main one, or a stream that came in
/// through an event.
enum CapturedLane {
    Main(Capture, Stream),
    Handle(Capture),
    Stream(Stream),
}

impl CapturedLane {
    fn capture(&self) -> &Capture {
        match self {
            CapturedLane::Main(capture, _) | CapturedLane::Handle(capture) => capture,
            CapturedLane::Stream(_) => unreachable!("programs ask this of lanes with a handle only"),
        }
    }
}

/// With streams that are captured.
pub(crate) struct Captured<'a> {
    k: &'a GraphKernels,
    cells: &'a Cells,
    lanes: Vec<CapturedLane>,
    free: Vec<Stream>,
    /// Counts operations, so that the main lane takes them by turns as a capture and as a stream.
    turn: usize,
}

impl<'a> Captured<'a> {
    pub(crate) fn new(k: &'a GraphKernels, cells: &'a Cells) -> Result<Self> {
        let main = CapturedLane::Main(k.stream.capture()?, k.stream.clone());
        Ok(Captured { k, cells, lanes: vec![main], free: side_streams(k)?, turn: 0 })
    }

    /// Returns the graph, and all streams that took part.
    pub(crate) fn end(self) -> Result<(Graph, Vec<Stream>)> {
        let graph = self.lanes[0].capture().end()?;
        let mut streams = vec![self.k.stream.clone()];
        streams.extend(self.free);
        streams.extend(self.lanes.into_iter().filter_map(|lane| match lane {
            CapturedLane::Stream(stream) => Some(stream),
            _ => None,
        }));
        Ok((graph, streams))
    }
}

impl Way for Captured<'_> {
    fn operate(&mut self, step: &Step) -> Result<()> {
        self.turn += 1;
        match &self.lanes[lane_of(step)] {
            CapturedLane::Main(capture, _) if self.turn.is_multiple_of(2) => {
                operate(capture, self.k, self.cells, step)
            }
            CapturedLane::Main(_, stream) | CapturedLane::Stream(stream) => {
                operate(stream, self.k, self.cells, step)
            }
            CapturedLane::Handle(capture) => operate(capture, self.k, self.cells, step),
        }
    }

    fn sync(&mut self, from: Lane, to: Lane) -> Result<()> {
        if to == self.lanes.len() {
            let stream = self.free.pop().expect("the program has no more streams than there are");
            self.lanes.push(CapturedLane::Stream(stream));
        }
        let event = self.k.device.event()?;
        match &self.lanes[from] {
            CapturedLane::Main(capture, _) | CapturedLane::Handle(capture) => {
                capture.record(&event).map(drop)?
            }
            CapturedLane::Stream(stream) => stream.record(&event)?,
        }
        match &self.lanes[to] {
            CapturedLane::Main(_, stream) | CapturedLane::Stream(stream) => stream.wait(&event),
            CapturedLane::Handle(capture) => capture.wait(&event).map(drop),
        }
    }

    fn fork(&mut self, lane: Lane, branches: &[Lane]) -> Result<()> {
        let forks = self.lanes[lane].capture().fork(branches.len() + 1)?;
        self.lanes.extend(forks.into_iter().map(CapturedLane::Handle));
        Ok(())
    }

    fn join(&mut self, lane: Lane, branches: &[Lane]) -> Result<()> {
        self.lanes[lane].capture().join(branches.iter().map(|&branch| self.lanes[branch].capture()))
    }

    fn conditional(&mut self, lane: Lane, form: Form, tested: Cell, bodies: &[Program]) -> Result<()> {
        let (capture, tested) = (self.lanes[lane].capture(), &self.cells.values[tested]);
        let captures = match form {
            Form::If => vec![capture.if_nonzero(tested)?.into_body()],
            Form::IfElse => {
                let (then, otherwise) = capture.if_else_nonzero(tested)?.into_bodies();
                vec![then, otherwise]
            }
            Form::Switch => capture.switch_on(tested, bodies.len())?.into_bodies(),
            Form::While => vec![capture.while_nonzero(tested)?.into_body()],
            Form::DoWhile => vec![capture.do_while(tested)?.into_body()],
            Form::Repeat(passes) => vec![capture.repeat(passes)?.into_body()],
        };
        for (capture, body) in captures.into_iter().zip(bodies) {
            capture.begin()?;
            let free = std::mem::take(&mut self.free);
            let lanes = vec![CapturedLane::Handle(capture)];
            let mut inner = Captured { k: self.k, cells: self.cells, lanes, free, turn: 0 };
            perform(body, &mut inner)?;
            inner.lanes[0].capture().end()?;
            self.free = inner.free;
            self.free.extend(inner.lanes.into_iter().filter_map(|lane| match lane {
                CapturedLane::Stream(stream) => Some(stream),
                _ => None,
            }));
        }
        Ok(())
    }
}
