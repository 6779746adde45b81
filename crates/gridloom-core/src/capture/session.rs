//! Sessions: one capture into one graph, with any number of streams and forks.
//!
//! A session has a [branch](super::branch::Branch) for the captured stream or body and one for each
//! fork. A branch has a state and a *tail*: the nodes that its next operation depends on. One lock
//! protects the whole session, so joining, ending and closing are atomic. Nothing here waits for a
//! device.
//!
//! Ownership:
//!
//! - A branch keeps its session alive. A `Capture` or a stream holds the branch. The session around
//!   a body also keeps the body's session alive, until it ends.
//! - A closed session releases its graph at once. Any other session releases it when its last
//!   `Capture` is dropped, even if a stream still holds a branch.
//! - A stream captures exactly as long as its branch records. There is nothing to undo in the
//!   stream when a capture ends, is dropped or panics.
//! - Events hold a weak reference to a session.
//!
//! The lock of a session may be taken while the slot of a stream or the lock of the outer session
//! is held, never the other way round. No user value is dropped while it is held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::order::Ancestors;
use super::state::{Action, CaptureKind, CaptureState, Ending, end_by, step};
use crate::backend::DeviceId;
use crate::error::{Result, bail};
use crate::graph::{Graph, Node, NodeKey};

/// The nodes that the next operation of a branch depends on.
pub(super) type Tail = SmallVec<[NodeKey; 2]>;

/// One capture into one graph.
pub(crate) struct Session {
    device: DeviceId,
    pub(super) progress: Mutex<Progress>,
}

pub(super) struct Progress {
    /// `None` once the session is closed or its last capture is dropped.
    graph: Option<Graph>,
    /// The number of captures. Without one, nothing more is recorded.
    pub(super) captures: usize,
    /// The branches. The first one ends the session.
    pub(super) branches: Vec<BranchProgress>,
    /// The bodies of the conditionals recorded here, until this session ends.
    bodies: Vec<Body>,
}

pub(super) struct BranchProgress {
    kind: CaptureKind,
    state: CaptureState,
    pub(super) tail: Tail,
    /// Whether the branch was closed or dropped while it recorded. Its work is then incomplete, or
    /// joined by nothing.
    left_open: bool,
}

struct Body {
    graph: Graph,
    session: Arc<Session>,
}

/// The place in a session where an event was recorded. It keeps neither the session nor the graph
/// alive.
#[derive(Clone)]
pub(crate) struct Mark {
    pub(super) session: Weak<Session>,
    pub(super) node: NodeKey,
    /// Whether the recording becomes edges once something in the capture waits for it.
    pub(super) may_be_edges: bool,
    /// Whether the recording has become edges, so that no launch records the event.
    pub(super) is_edges: Arc<AtomicBool>,
}

impl Mark {
    pub(super) fn new(session: &Arc<Session>, node: NodeKey, may_be_edges: bool) -> Self {
        Mark { session: Arc::downgrade(session), node, may_be_edges, is_edges: Arc::default() }
    }

    /// Fails if the recording only ordered the work of a capture, which is over. No launch records
    /// the event then.
    pub(crate) fn refuse_edges(&self, operation: &str) -> Result<()> {
        if self.is_edges.load(Ordering::Relaxed) {
            bail!(
                InvalidState,
                "{operation} an event that was recorded on a capturing stream and waited for in the same capture: there it only ordered work, and launches of the graph do not record it; use Capture::record for an event that others wait for or time"
            );
        }
        Ok(())
    }

    /// Returns the session if it is still in progress.
    pub(crate) fn capturing(&self) -> Option<Arc<Session>> {
        self.session.upgrade().filter(|session| session.branch_state(0) == CaptureState::Capturing)
    }
}

impl BranchProgress {
    pub(super) fn new(kind: CaptureKind, state: CaptureState, tail: Tail) -> Self {
        BranchProgress { kind, state, tail, left_open: false }
    }

    pub(super) fn kind(&self) -> CaptureKind {
        self.kind
    }

    pub(super) fn is_capturing(&self) -> bool {
        self.state == CaptureState::Capturing
    }

    /// Checks an action without performing it.
    pub(super) fn check(&self, action: Action) -> Result<()> {
        step(self.kind, self.state, action).map(|_| ())
    }

    /// Checks an action and performs its transition.
    pub(super) fn act(&mut self, action: Action) -> Result<()> {
        self.state = step(self.kind, self.state, action)?;
        Ok(())
    }

    fn finish(&mut self) {
        self.state = end_by(self.state, Ending::Finish);
    }

    fn close(&mut self) {
        self.left_open |= self.is_capturing();
        self.state = end_by(self.state, Ending::Close);
    }

    /// Returns whether the work of this branch must still be joined.
    fn is_open(&self) -> bool {
        self.is_capturing() || self.left_open
    }
}

impl Progress {
    /// Returns the graph and a branch after checking that the branch allows the action.
    pub(super) fn branch(
        &mut self,
        index: usize,
        action: Action,
    ) -> Result<(&mut Graph, &mut BranchProgress)> {
        let branch = &mut self.branches[index];
        branch.check(action)?;
        let graph = self
            .graph
            .as_mut()
            .expect("a branch without a graph is closed or has no capture, and allows no action");
        Ok((graph, branch))
    }

    /// Returns the graph, unless it was released.
    pub(super) fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// Returns the node around the captured graph.
    pub(super) fn owner(&self) -> Option<Node> {
        self.graph.as_ref().and_then(Graph::owner)
    }

    pub(super) fn add_body(&mut self, graph: Graph, session: Arc<Session>) {
        self.bodies.push(Body { graph, session });
    }

    /// Checks that every body that was begun is complete.
    fn check_bodies(&self) -> Result<()> {
        for Body { graph, session } in &self.bodies {
            let Some(owner) = graph.owner() else { continue };
            let progress = session.progress.lock();
            let body = &progress.branches[0];
            if body.left_open {
                bail!(
                    InvalidState,
                    "the capture of a body of {} was closed or dropped before it ended, so the body is incomplete; close the whole capture",
                    owner.label()
                );
            }
            if body.is_capturing() {
                bail!(InvalidState, "a body of {} is still being captured; end it first", owner.label());
            }
        }
        Ok(())
    }

    /// Checks that the work of every fork leads to the first branch.
    fn check_forks(&self, graph: &Graph) -> Result<()> {
        if !self.branches[1..].iter().any(BranchProgress::is_open) {
            return Ok(());
        }
        let loose = graph.hierarchy.read(|definition| {
            let joined = Ancestors::of(definition, &self.branches[0].tail);
            let mut loose = Vec::new();
            for (number, fork) in
                self.branches.iter().enumerate().skip(1).filter(|(_, branch)| branch.is_open())
            {
                let is_loose =
                    |&&node: &&NodeKey| definition.get_node(node).is_some() && !joined.contains(node);
                let ends: Vec<String> =
                    fork.tail.iter().filter(is_loose).map(|&node| definition.label(node)).collect();
                if !ends.is_empty() {
                    let dropped = if fork.left_open { " (closed or dropped)" } else { "" };
                    loose.push(format!("fork {number}{dropped} at {}", ends.join(" and ")));
                }
            }
            loose
        });
        if !loose.is_empty() {
            bail!(
                InvalidState,
                "forks of the capture were not joined: {}; join them, or wait for an event recorded after their work",
                loose.join(", ")
            );
        }
        Ok(())
    }
}

impl Session {
    /// Creates a session whose first branch has this kind and state.
    pub(super) fn new(graph: Graph, kind: CaptureKind, state: CaptureState) -> Arc<Self> {
        let device = graph.device().id();
        let branches = vec![BranchProgress::new(kind, state, Tail::new())];
        let progress = Progress { graph: Some(graph), captures: 0, branches, bodies: Vec::new() };
        Arc::new(Session { device, progress: Mutex::new(progress) })
    }

    /// Returns the device of the graph.
    pub(crate) fn device(&self) -> DeviceId {
        self.device
    }

    pub(super) fn branch_state(&self, index: usize) -> CaptureState {
        self.progress.lock().branches[index].state
    }

    /// Ends the session. Only its first branch may do so.
    pub(super) fn end(&self, branch: usize) -> Result<Graph> {
        let mut progress = self.progress.lock();
        let graph = progress.branch(branch, Action::End)?.0.clone();
        progress.check_bodies()?;
        progress.check_forks(&graph)?;
        progress.branches[branch].act(Action::End)?;
        graph.hierarchy.end_recording(graph.key());
        progress.branches[1..].iter_mut().for_each(BranchProgress::finish);
        let bodies = std::mem::take(&mut progress.bodies);
        for body in &bodies {
            body.session.progress.lock().branches.iter_mut().for_each(BranchProgress::finish);
        }
        drop(progress);
        Ok(graph)
    }

    /// Closes one branch. Closing the first one closes the whole session.
    pub(super) fn close(&self, branch: usize) {
        if branch == 0 {
            self.give_up();
        } else {
            self.progress.lock().branches[branch].close();
        }
    }

    /// Counts one capture less. The last one releases the graph.
    pub(super) fn let_go(&self) {
        let mut progress = self.progress.lock();
        progress.captures -= 1;
        let graph = if progress.captures == 0 { progress.graph.take() } else { None };
        drop(progress);
        drop(graph);
    }

    fn give_up(&self) {
        let mut progress = self.progress.lock();
        progress.branches.iter_mut().for_each(BranchProgress::close);
        let (graph, bodies) = (progress.graph.take(), std::mem::take(&mut progress.bodies));
        if let Some(graph) = &graph {
            graph.hierarchy.end_recording(graph.key());
        }
        drop(progress);
        bodies.iter().for_each(|body| body.session.give_up());
        drop((graph, bodies));
    }
}
