//! Sessions: one capture into one graph, whatever number of streams and forks takes part.
//!
//! A session has a [branch](super::branch::Branch) for the stream or body that is captured and one for each fork. A branch has a state and a *tail*, the
//! nodes that its next operation comes after. All of a session is behind one lock, so that joining, ending and giving up are single
//! steps whatever other threads do. Nothing here waits for a device.
//!
//! Who retains whom, and why nothing is left behind:
//!
//! - a branch, held by a `Capture` or a stream, retains its session; so does the session around a body, until that one ends;
//! - a session that is given up lets go of its graph at once, and any other when its last `Capture` is dropped, whoever still holds one of its branches;
//! - a stream captures exactly as long as the branch it has records, so there is nothing to undo in it when a capture ends, is dropped or panics;
//! - events know a session weakly.
//!
//! The lock of a session may be taken under the slot of a stream and under the lock of the session around it, never the other way round.
//! No value of the user's is dropped while it is held.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::order::Ancestors;
use super::state::{Action, CaptureKind, CaptureState, Fate, step, suffer};
use crate::backend::DeviceId;
use crate::error::{Result, bail};
use crate::graph::{Graph, Node, NodeKey};

/// The nodes that come before the next operation of a branch.
pub(super) type Tail = SmallVec<[NodeKey; 2]>;

/// One capture into one graph.
pub(crate) struct Session {
    device: DeviceId,
    pub(super) progress: Mutex<Progress>,
}

pub(super) struct Progress {
    /// `None` once the session was given up, or nobody can ask for it any more.
    graph: Option<Graph>,
    /// How many captures there are. Without one, nothing is recorded any more.
    pub(super) captures: usize,
    /// The first is the one that ends the session.
    pub(super) branches: Vec<BranchProgress>,
    /// The bodies of conditionals recorded here, until this session ends.
    bodies: Vec<Body>,
}

pub(super) struct BranchProgress {
    kind: CaptureKind,
    state: CaptureState,
    pub(super) tail: Tail,
    /// Whether it was closed or dropped while it recorded: what it recorded leads nowhere, or is not all there.
    left_open: bool,
}

struct Body {
    graph: Graph,
    session: Arc<Session>,
}

/// Where in a session an event was recorded. It retains neither the session nor its graph.
#[derive(Clone)]
pub(crate) struct Mark {
    pub(super) session: Weak<Session>,
    pub(super) node: NodeKey,
}

impl Mark {
    /// The session, while it goes on.
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

    /// Checks an action without taking it.
    pub(super) fn check(&self, action: Action) -> Result<()> {
        step(self.kind, self.state, action).map(|_| ())
    }

    /// Checks an action and takes the step it stands for.
    pub(super) fn act(&mut self, action: Action) -> Result<()> {
        self.state = step(self.kind, self.state, action)?;
        Ok(())
    }

    fn finish(&mut self) {
        self.state = suffer(self.state, Fate::Finish);
    }

    fn close(&mut self) {
        self.left_open |= self.is_capturing();
        self.state = suffer(self.state, Fate::Close);
    }

    /// Whether what it recorded has yet to be joined by something.
    fn is_open(&self) -> bool {
        self.is_capturing() || self.left_open
    }
}

impl Progress {
    /// The graph and one branch, once it is known that the branch allows the action.
    pub(super) fn branch(
        &mut self,
        index: usize,
        action: Action,
    ) -> Result<(&mut Graph, &mut BranchProgress)> {
        let branch = &mut self.branches[index];
        branch.check(action)?;
        let graph = self.graph.as_mut().expect(
            "only a branch that nobody captures with, or a closed one, has no graph, and it allows nothing",
        );
        Ok((graph, branch))
    }

    /// The node around the graph that is captured.
    pub(super) fn owner(&self) -> Option<Node> {
        self.graph.as_ref().and_then(Graph::owner)
    }

    pub(super) fn add_body(&mut self, graph: Graph, session: Arc<Session>) {
        self.bodies.push(Body { graph, session });
    }

    /// Why the first branch cannot end: bodies that are not complete.
    fn check_bodies(&self) -> Result<()> {
        for Body { graph, session } in &self.bodies {
            let Some(owner) = graph.owner() else { continue };
            let progress = session.progress.lock();
            let body = &progress.branches[0];
            if body.left_open {
                bail!(
                    InvalidState,
                    "the capture of a body of {} was closed or dropped before it ended, so the body is not all there; give the whole capture up",
                    owner.label()
                );
            }
            if body.is_capturing() {
                bail!(InvalidState, "a body of {} is still being captured; end it first", owner.label());
            }
        }
        Ok(())
    }

    /// Why the first branch cannot end: forks whose work does not lead to its own.
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
    /// A session whose first branch is of this kind and state.
    pub(super) fn new(graph: Graph, kind: CaptureKind, state: CaptureState) -> Arc<Self> {
        let device = graph.device().id();
        let branches = vec![BranchProgress::new(kind, state, Tail::new())];
        let progress = Progress { graph: Some(graph), captures: 0, branches, bodies: Vec::new() };
        Arc::new(Session { device, progress: Mutex::new(progress) })
    }

    /// The device of its graph.
    pub(crate) fn device(&self) -> DeviceId {
        self.device
    }

    pub(super) fn branch_state(&self, index: usize) -> CaptureState {
        self.progress.lock().branches[index].state
    }

    /// Ends the session on behalf of one of its branches, which must be the first.
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

    /// Closes one branch; the first takes the whole session with it.
    pub(super) fn close(&self, branch: usize) {
        if branch == 0 {
            self.give_up();
        } else {
            self.progress.lock().branches[branch].close();
        }
    }

    /// Notes that a capture less is there, and lets go of the graph with the last.
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
