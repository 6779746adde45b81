//! Lanes: where a capture records.
//!
//! A *session* is one capture into one graph. It has one lane for the stream or body that was captured, and one for each fork. A lane knows the
//! nodes that its next operation depends on, its *tail*. Sessions and lanes never wait for a device.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::state::{Action, CaptureKind, CaptureState, step};
use crate::error::{Error, Result, bail};
use crate::event::Event;
use crate::graph::{ConditionalSpec, Graph, Node};
use crate::op::Operation;
use crate::stream::StreamSlot;

/// One capture into one graph.
pub(crate) struct Session {
    pub(crate) graph: Graph,
    lanes: Mutex<Vec<Weak<Lane>>>,
}

/// One line of recording of a session.
pub(crate) struct Lane {
    pub(crate) session: Arc<Session>,
    pub(crate) kind: CaptureKind,
    /// Its number in the session, for messages: 0 is the one that ends it.
    number: usize,
    /// The stream that records here, where it is one.
    slot: Option<Weak<StreamSlot>>,
    progress: Mutex<Progress>,
}

struct Progress {
    state: CaptureState,
    tail: SmallVec<[Node; 2]>,
}

/// Where in a session an event was recorded.
#[derive(Clone)]
pub(crate) struct Mark {
    pub(crate) session: Weak<Session>,
    pub(crate) node: Node,
}

impl Session {
    /// A session with its first lane.
    pub(crate) fn start(graph: Graph, kind: CaptureKind, slot: Option<Weak<StreamSlot>>) -> Arc<Lane> {
        let state =
            if kind == CaptureKind::Body { CaptureState::NotStarted } else { CaptureState::Capturing };
        let session = Arc::new(Session { graph, lanes: Mutex::new(Vec::new()) });
        session.lane(kind, state, SmallVec::new(), slot)
    }

    fn lane(
        self: &Arc<Self>,
        kind: CaptureKind,
        state: CaptureState,
        tail: SmallVec<[Node; 2]>,
        slot: Option<Weak<StreamSlot>>,
    ) -> Arc<Lane> {
        let mut lanes = self.lanes.lock();
        let lane = Arc::new(Lane {
            session: self.clone(),
            kind,
            number: lanes.len(),
            slot,
            progress: Mutex::new(Progress { state, tail }),
        });
        lanes.push(Arc::downgrade(&lane));
        lane
    }

    /// A stream that waits for an event of this session becomes a fork of it.
    pub(crate) fn adopt(self: &Arc<Self>, after: Node, slot: Weak<StreamSlot>) -> Arc<Lane> {
        let tail = SmallVec::from_iter([after]);
        self.lane(CaptureKind::Forked, CaptureState::Capturing, tail, Some(slot))
    }

    /// Whether its first lane still records.
    pub(crate) fn is_capturing(&self) -> bool {
        let first = self.lanes.lock().first().and_then(Weak::upgrade);
        first.is_some_and(|lane| lane.state() == CaptureState::Capturing)
    }

    fn all_lanes(&self) -> Vec<Arc<Lane>> {
        self.lanes.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Lane {
    pub(crate) fn state(&self) -> CaptureState {
        self.progress.lock().state
    }

    /// Checks an action and takes the step it stands for.
    pub(crate) fn act(&self, action: Action) -> Result<()> {
        let mut progress = self.progress.lock();
        progress.state = step(self.kind, progress.state, action)?;
        Ok(())
    }

    /// Records through `add`, which gets the nodes to depend on. A failure leaves the lane as it was.
    pub(crate) fn record(&self, add: impl FnOnce(&Graph, &[&Node]) -> Result<Node>) -> Result<Node> {
        let mut progress = self.progress.lock();
        step(self.kind, progress.state, Action::Record)?;
        let node = add(&self.session.graph, &progress.tail.iter().collect::<SmallVec<[&Node; 4]>>())?;
        progress.tail.clear();
        progress.tail.push(node.clone());
        Ok(node)
    }

    pub(crate) fn add(&self, operation: Operation) -> Result<Node> {
        self.record(|graph, after| graph.add(after, operation))
    }

    pub(crate) fn conditional(&self, spec: ConditionalSpec) -> Result<Node> {
        self.record(|graph, after| graph.add_conditional(after, spec))
    }

    /// Records an event, and marks it so that other streams can join this session by waiting for it.
    pub(crate) fn record_event(&self, event: &Event) -> Result<Node> {
        let node = self.add(Operation::EventRecord(event.backend().clone()))?;
        event.set_mark(Some(Mark { session: Arc::downgrade(&self.session), node: node.clone() }));
        Ok(node)
    }

    /// Waits for an event: where it was recorded in this very session, by an edge too.
    pub(crate) fn wait_event(&self, event: &Event) -> Result<Node> {
        let recorded = match event.mark() {
            Some(mark) => match mark.session.upgrade() {
                Some(session) if Arc::ptr_eq(&session, &self.session) => Some(mark.node),
                Some(session) if session.is_capturing() => bail!(
                    InvalidState,
                    "the event was recorded in another capture that goes on; a capture cannot wait for a part of another one"
                ),
                _ => None,
            },
            None => None,
        };
        self.record(|graph, after| {
            let after: SmallVec<[&Node; 4]> = after.iter().copied().chain(recorded.iter()).collect();
            graph.add(&after, Operation::EventWait(event.backend().clone()))
        })
    }

    /// Splits into `branches`, this one among them, and returns the others.
    pub(crate) fn fork(&self, branches: usize) -> Result<Vec<Arc<Lane>>> {
        if branches < 2 {
            bail!(
                InvalidArgument,
                "a fork into {branches}; it takes at least two branches, this capture being one of them"
            );
        }
        let tail = {
            let progress = self.progress.lock();
            step(self.kind, progress.state, Action::Record)?;
            progress.tail.clone()
        };
        let fork = || self.session.lane(CaptureKind::Forked, CaptureState::Capturing, tail.clone(), None);
        Ok((1..branches).map(|_| fork()).collect())
    }

    /// Merges forks into this lane: what is recorded next comes after them all. Checks everything before it changes anything.
    pub(crate) fn join(&self, others: &[&Lane]) -> Result<()> {
        if others.is_empty() {
            bail!(InvalidArgument, "a join of one capture; give the captures to join into it");
        }
        for (index, other) in others.iter().enumerate() {
            if !Arc::ptr_eq(&self.session, &other.session) {
                bail!(WrongGraph, "a join of captures of different graphs");
            }
            if std::ptr::eq(self, *other)
                || others[..index].iter().any(|earlier| std::ptr::eq(*earlier, *other))
            {
                bail!(InvalidArgument, "the same capture twice in one join");
            }
            step(other.kind, other.state(), Action::BeJoined)?;
        }
        step(self.kind, self.state(), Action::Record)?;
        let mut tails = Vec::new();
        for other in others {
            other.act(Action::BeJoined)?;
            other.release_stream();
            tails.extend(std::mem::take(&mut other.progress.lock().tail));
        }
        let mut progress = self.progress.lock();
        for node in tails {
            if !progress.tail.contains(&node) {
                progress.tail.push(node);
            }
        }
        Ok(())
    }

    /// Ends the session. Every fork must have led back here.
    pub(crate) fn end(&self) -> Result<Graph> {
        step(self.kind, self.state(), Action::End)?;
        let lanes = self.session.all_lanes();
        let loose = self.loose_ends(&lanes);
        if !loose.is_empty() {
            bail!(
                InvalidState,
                "forks of the capture were not joined: {}; join them, or wait for an event recorded after their work",
                loose.join(", ")
            );
        }
        self.act(Action::End)?;
        for lane in lanes {
            if lane.kind == CaptureKind::Forked {
                let mut progress = lane.progress.lock();
                if progress.state == CaptureState::Capturing {
                    progress.state = CaptureState::Ended;
                }
            }
            lane.release_stream();
        }
        self.release_stream();
        Ok(self.session.graph.clone())
    }

    /// Gives the whole session up, where this is its first lane, or else this lane alone.
    pub(crate) fn close(&self) {
        let lanes = if self.number == 0 { self.session.all_lanes() } else { Vec::new() };
        for lane in lanes.iter().map(|lane| &**lane).chain([self]) {
            let mut progress = lane.progress.lock();
            progress.state = step(lane.kind, progress.state, Action::Close).unwrap_or(CaptureState::Closed);
            progress.tail.clear();
            drop(progress);
            lane.release_stream();
        }
    }

    /// The stream behind this lane, if any, is an ordinary stream again.
    fn release_stream(&self) {
        if let Some(slot) = self.slot.as_ref().and_then(Weak::upgrade) {
            slot.leave(self);
        }
    }

    /// The lanes whose last work does not lead to this lane's.
    fn loose_ends(&self, lanes: &[Arc<Lane>]) -> Vec<String> {
        let tail: Vec<Node> = self.progress.lock().tail.to_vec();
        let definition = self.session.graph.definition();
        let mut reached: HashSet<_> = tail.iter().map(Node::key).collect();
        let mut stack: Vec<_> = reached.iter().copied().collect();
        while let Some(key) = stack.pop() {
            let Some(node) = definition.get_node(key) else { continue };
            stack.extend(
                node.predecessors().iter().map(|edge| edge.node).filter(|&node| reached.insert(node)),
            );
        }
        let mut loose = Vec::new();
        for lane in lanes.iter().filter(|lane| lane.number != 0) {
            let progress = lane.progress.lock();
            if progress.state == CaptureState::Capturing {
                let ends = progress.tail.iter().filter(|node| !reached.contains(&node.key()));
                let names: Vec<String> = ends.map(|node| definition.label(node.key())).collect();
                if !names.is_empty() {
                    loose.push(format!("fork {} at {}", lane.number, names.join(" and ")));
                }
            }
        }
        loose
    }
}

/// The error for an operation that a capturing stream cannot do.
pub(crate) fn refuse(operation: &str) -> Error {
    Error::new(
        crate::ErrorKind::InvalidState,
        format!(
            "{operation} of a stream that is capturing: its work is being recorded, not run; end the capture first"
        ),
    )
}
