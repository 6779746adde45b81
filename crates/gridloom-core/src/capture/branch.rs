//! Branches: the lines of recording in a session.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::order;
use super::session::{BranchProgress, Mark, Progress, Session, Tail};
use super::state::{Action, CaptureKind, CaptureState};
use crate::backend::Device;
use crate::error::{Result, bail};
use crate::event::Event;
use crate::executable::Executable;
use crate::graph::{Condition, ConditionalSpec, Graph, Node, NodeKey, Writer};
use crate::op::Operation;

/// The largest number of branches of one fork.
pub const MAX_BRANCHES: usize = 65_536;

/// One line of recording in a session.
#[derive(Clone)]
pub(crate) struct Branch {
    session: Arc<Session>,
    index: usize,
}

impl Branch {
    /// Creates the first branch of a new session.
    pub(crate) fn primary(graph: Graph) -> Self {
        graph.hierarchy.begin_recording(graph.key());
        Branch { session: Session::new(graph, CaptureKind::Primary, CaptureState::Capturing), index: 0 }
    }

    /// Creates a fork for a stream that waits for an event of a session in progress.
    pub(crate) fn adopt(session: Arc<Session>, mark: &Mark) -> Result<Self> {
        let mut progress = session.progress.lock();
        progress.branch(0, Action::Record)?;
        let Some(tail) = order_only(&session, &mut progress, mark) else {
            bail!(InvalidHandle, "the recording of the event was deleted from the captured graph");
        };
        progress.branches.push(BranchProgress::new(CaptureKind::Forked, CaptureState::Capturing, tail));
        let index = progress.branches.len() - 1;
        drop(progress);
        Ok(Branch { session, index })
    }

    /// Returns whether the branch records.
    pub(crate) fn is_capturing(&self) -> bool {
        self.state() == CaptureState::Capturing
    }

    /// Counts a further capture of this session.
    pub(super) fn hold(&self) {
        self.session.progress.lock().captures += 1;
    }

    /// Counts one capture less.
    pub(super) fn let_go(&self) {
        self.session.let_go();
    }

    pub(crate) fn kind(&self) -> CaptureKind {
        self.session.progress.lock().branches[self.index].kind()
    }

    pub(crate) fn state(&self) -> CaptureState {
        self.session.branch_state(self.index)
    }

    /// Starts to record, after what the graph already holds.
    pub(crate) fn begin(&self) -> Result<()> {
        let mut progress = self.session.progress.lock();
        let (graph, branch) = progress.branch(self.index, Action::Begin)?;
        branch.tail = graph.hierarchy.read(|definition| {
            let is_last = |key: &NodeKey| definition.node(*key).successors().is_empty();
            definition.nodes(graph.key()).filter(is_last).collect()
        });
        branch.act(Action::Begin)?;
        graph.hierarchy.begin_recording(graph.key());
        Ok(())
    }

    /// Returns the graph, if the state of the branch allows it.
    pub(crate) fn graph(&self) -> Result<Graph> {
        Ok(self.session.progress.lock().branch(self.index, Action::Graph)?.0.clone())
    }

    /// Returns the conditional whose body this branch records.
    pub(crate) fn owner(&self) -> Option<Node> {
        self.session.progress.lock().owner()
    }

    pub(crate) fn end(&self) -> Result<Graph> {
        self.session.end(self.index)
    }

    pub(crate) fn close(&self) {
        self.session.close(self.index);
    }

    pub(crate) fn condition(&self, default: Option<u32>) -> Result<Condition> {
        Ok(self.session.progress.lock().branch(self.index, Action::Record)?.0.condition(default))
    }

    /// Records one node, which `add` adds after the nodes it is given. A failure leaves the branch
    /// unchanged.
    fn record(&self, add: impl FnOnce(&mut Graph, &Tail) -> Result<NodeKey>) -> Result<Node> {
        self.record_in(&mut self.session.progress.lock(), add)
    }

    fn record_in(
        &self,
        progress: &mut Progress,
        add: impl FnOnce(&mut Graph, &Tail) -> Result<NodeKey>,
    ) -> Result<Node> {
        let (graph, key) = self.record_key(progress, add)?;
        Ok(graph.node_handle(key))
    }

    /// Records one node and returns its key instead of a handle.
    fn record_key<'a>(
        &self,
        progress: &'a mut Progress,
        add: impl FnOnce(&mut Graph, &Tail) -> Result<NodeKey>,
    ) -> Result<(&'a Graph, NodeKey)> {
        let (graph, branch) = progress.branch(self.index, Action::Record)?;
        let key = add(graph, &branch.tail)?;
        branch.tail.clear();
        branch.tail.push(key);
        Ok((graph, key))
    }

    /// Records an operation without creating a handle. Returns `None` if the branch does not
    /// record. A refused operation stays with the caller, who drops it without a lock.
    pub(crate) fn submit(&self, operation: &mut Option<Operation>) -> Option<Result<()>> {
        let mut progress = self.session.progress.lock();
        if !progress.branches[self.index].is_capturing() {
            return None;
        }
        let recorded = self.record_key(&mut progress, |graph, tail| graph.add_recorded(tail, operation));
        Some(recorded.map(drop))
    }

    /// Records an operation that also depends on these nodes.
    pub(crate) fn add(&self, also_after: &[&Node], operation: Operation) -> Result<Node> {
        // Declared outside of the closure, so that a refused operation is dropped without a lock.
        let mut operation = Some(operation);
        self.record(|graph, tail| match also_after {
            [] => graph.add_recorded(tail, &mut operation),
            more => {
                let more = graph.own_keys(more)?;
                let after: SmallVec<[NodeKey; 4]> = tail.iter().copied().chain(more).collect();
                graph.add_keys(Writer::Capture, &after, &mut operation)
            }
        })
    }

    /// Records a conditional and returns the branches of its bodies, which have not begun.
    pub(crate) fn conditional(&self, spec: &ConditionalSpec) -> Result<(Node, Vec<Branch>)> {
        let mut progress = self.session.progress.lock();
        let node = self.record_in(&mut progress, |graph, tail| {
            graph.add_conditional_keys(Writer::Capture, tail, spec)
        })?;
        let bodies = node.bodies()?.into_iter().map(|graph| {
            let session = Session::new(graph.clone(), CaptureKind::Body, CaptureState::NotStarted);
            progress.add_body(graph, session.clone());
            Branch { session, index: 0 }
        });
        let bodies = bodies.collect();
        Ok((node, bodies))
    }

    pub(crate) fn embed(&self, graph: &Graph) -> Result<Node> {
        let here = self.session.progress.lock().branch(self.index, Action::Record)?.0.clone();
        let source = here.source_to_embed(graph)?;
        self.record(|here, tail| here.embed_keys(Writer::Capture, tail, &source, graph.key()))
    }

    /// Returns the device, if the branch records.
    pub(crate) fn recording_device(&self) -> Result<Arc<dyn Device>> {
        Ok(self.session.progress.lock().branch(self.index, Action::Record)?.0.device().clone())
    }

    /// Records the nodes of a graph themselves. The next operation depends on the last of them.
    pub(crate) fn inline(&self, graph: &Graph) -> Result<Vec<Node>> {
        let here = self.session.progress.lock().branch(self.index, Action::Record)?.0.clone();
        let source = here.source_to_embed(graph)?;
        let mut progress = self.session.progress.lock();
        let (here, branch) = progress.branch(self.index, Action::Record)?;
        let inlined = here.inline_keys(&branch.tail, &source, graph.key())?;
        if !inlined.nodes.is_empty() {
            branch.tail = inlined.last.into_iter().collect();
        }
        Ok(inlined.nodes.into_iter().map(|key| here.node_handle(key)).collect())
    }

    pub(crate) fn embed_executable(&self, executable: &Executable) -> Result<Node> {
        let source = executable.definition_for("launch of an executable")?;
        self.record(|here, tail| {
            here.check_embeddable(executable.device())?;
            here.embed_keys(Writer::Capture, tail, &source, source.root())
        })
    }

    /// Records an event and marks it, so that streams can join the session by waiting for it.
    pub(crate) fn record_event(&self, event: &Event) -> Result<Node> {
        let node = self.add(&[], Operation::EventRecord(event.backend().clone()))?;
        event.set_mark(Some(Mark::new(&self.session, node.key(), false)));
        Ok(node)
    }

    /// Records an event as [`record_event`](Self::record_event) does. The node becomes edges once a
    /// stream of this session waits for the event.
    pub(crate) fn record_order(&self, event: &Event) -> Result<()> {
        let node = self.add(&[], Operation::EventRecord(event.backend().clone()))?;
        event.set_mark(Some(Mark::new(&self.session, node.key(), true)));
        Ok(())
    }

    /// Makes the next operation depend on the recording of an event. An event that was recorded
    /// outside of the captured graph is waited for by a node.
    pub(crate) fn wait_order(&self, event: &Event) -> Result<()> {
        let mark = event.mark();
        let recorded_in = mark.as_ref().and_then(Mark::capturing);
        let mut progress = self.session.progress.lock();
        progress.branch(self.index, Action::Record)?;
        if let Some(mark) = &mark
            && let Some(mut missing) = self.find(&mut progress, mark, recorded_in.is_some())?
        {
            // An event that already comes before adds no order, and its recording stays a node.
            if missing.contains(&mark.node)
                && let Some(before) = order_only(&self.session, &mut progress, mark)
            {
                missing = before;
            }
            let tail = &mut progress.branches[self.index].tail;
            for node in missing {
                if !tail.contains(&node) {
                    tail.push(node);
                }
            }
            return Ok(());
        }
        drop(progress);
        self.refuse_elsewhere(mark.as_ref(), recorded_in.as_ref())?;
        let mut wait = Some(Operation::EventWait(event.backend().clone()));
        self.record(|graph, tail| graph.add_keys(Writer::Capture, tail, &mut wait)).map(drop)
    }

    /// Finds the nodes that a wait here has to follow besides what it follows already. Returns
    /// `None` if the event was recorded outside of this hierarchy.
    fn find(&self, progress: &mut Progress, mark: &Mark, capturing: bool) -> Result<Option<Tail>> {
        let (graph, branch) = progress.branch(self.index, Action::Record)?;
        let Some(place) = graph.hierarchy.place(mark.node) else { return Ok(None) };
        let found = graph
            .hierarchy
            .read(|definition| order::wait_for(definition, graph.key(), &branch.tail, &place, capturing));
        found.map(Some)
    }

    /// Fails if an event of another graph cannot be waited for here.
    fn refuse_elsewhere(&self, mark: Option<&Mark>, recorded_in: Option<&Arc<Session>>) -> Result<()> {
        if recorded_in.is_some_and(|session| !Arc::ptr_eq(session, &self.session)) {
            bail!(
                InvalidState,
                "the event was recorded in another capture that is still in progress; a capture cannot wait for a part of another one"
            );
        }
        match mark {
            Some(mark) if recorded_in.is_none() => mark.refuse_edges("waiting for"),
            _ => Ok(()),
        }
    }

    /// Records a wait for an event. If the event was recorded in the same capture, the wait also
    /// depends on the recording node, unless it already does.
    pub(crate) fn wait_event(&self, event: &Event) -> Result<Node> {
        let mark = event.mark();
        let recorded_in = mark.as_ref().and_then(Mark::capturing);
        let mut progress = self.session.progress.lock();
        progress.branch(self.index, Action::Record)?;
        let found = match &mark {
            Some(mark) => self.find(&mut progress, mark, recorded_in.is_some())?,
            None => None,
        };
        if found.is_none() {
            self.refuse_elsewhere(mark.as_ref(), recorded_in.as_ref())?;
        }
        // A recording that has become edges records nothing that a node could wait for.
        let is_edges = mark.is_some_and(|mark| mark.is_edges.load(Ordering::Relaxed));
        let mut wait = Some(match is_edges {
            true => Operation::Empty,
            false => Operation::EventWait(event.backend().clone()),
        });
        self.record_in(&mut progress, |graph, tail| {
            let after: SmallVec<[NodeKey; 4]> =
                tail.iter().copied().chain(found.into_iter().flatten()).collect();
            graph.add_keys(Writer::Capture, &after, &mut wait)
        })
    }

    /// Splits into `branches` branches, including this one, and returns the others.
    pub(crate) fn fork(&self, branches: usize) -> Result<Vec<Branch>> {
        let mut progress = self.session.progress.lock();
        let tail = progress.branch(self.index, Action::Record)?.1.tail.clone();
        if !(2..=MAX_BRANCHES).contains(&branches) {
            bail!(
                InvalidArgument,
                "a fork into {branches}; it takes 2 to {MAX_BRANCHES} branches, this capture being one of them"
            );
        }
        let first = progress.branches.len();
        let fork = || BranchProgress::new(CaptureKind::Forked, CaptureState::Capturing, tail.clone());
        progress.branches.extend((1..branches).map(|_| fork()));
        let branches =
            (first..progress.branches.len()).map(|index| Branch { session: self.session.clone(), index });
        Ok(branches.collect())
    }

    /// Merges forks into this branch. The next operation depends on all of them. Everything is
    /// checked before anything changes.
    pub(crate) fn join(&self, forks: &[&Branch]) -> Result<()> {
        let mut progress = self.session.progress.lock();
        progress.branch(self.index, Action::Record)?;
        if forks.is_empty() {
            bail!(InvalidArgument, "a join of one capture; give the forks to join into it");
        }
        let mut joined = FxHashSet::from_iter([self.index]);
        for fork in forks {
            if !Arc::ptr_eq(&self.session, &fork.session) {
                bail!(WrongGraph, "a join of captures of different graphs");
            }
            if !joined.insert(fork.index) {
                bail!(InvalidArgument, "the same capture twice in one join");
            }
            progress.branch(fork.index, Action::BeJoined)?;
        }
        let mut tail = std::mem::take(&mut progress.branches[self.index].tail);
        let mut known: FxHashSet<NodeKey> = tail.iter().copied().collect();
        for fork in forks {
            let branch = &mut progress.branches[fork.index];
            branch.act(Action::BeJoined)?;
            tail.extend(std::mem::take(&mut branch.tail).into_iter().filter(|&node| known.insert(node)));
        }
        progress.branches[self.index].tail = tail;
        Ok(())
    }
}

/// Replaces the recording of an event by edges, if it may be, and returns the nodes that work after
/// the event has to follow. Returns `None` if the event was not recorded in this session.
fn order_only(session: &Arc<Session>, progress: &mut Progress, mark: &Mark) -> Option<Tail> {
    let hierarchy = progress.graph()?.hierarchy.clone();
    let place = hierarchy.place(mark.node)?;
    let is_here = Weak::ptr_eq(&mark.session, &Arc::downgrade(session));
    if !is_here || !mark.may_be_edges || place.nodes[..] != [mark.node] {
        return Some(place.nodes);
    }
    let before = hierarchy.bypass(mark.node);
    mark.is_edges.store(true, Ordering::Relaxed);
    for branch in &mut progress.branches {
        if let Some(position) = branch.tail.iter().position(|node| *node == mark.node) {
            branch.tail.remove(position);
            for &node in &before {
                if !branch.tail.contains(&node) {
                    branch.tail.push(node);
                }
            }
        }
    }
    Some(before)
}
