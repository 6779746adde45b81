//! Who drives each conditional: the device itself, or the host.

use super::plan::Program;
use crate::driver::Driver;
use crate::foreign::OpaqueGraph;
use crate::version::CudaVersion;
use gridloom_core::executable::{ConditionalMode, ConditionalReport};
use gridloom_core::graph::{ConditionKey, Definition, GraphKey, NodeData, NodeKey};
use gridloom_core::lower::conditionals;
use gridloom_core::memory::{Base, MemoryKind};
use gridloom_core::op::{ConditionalForm, ConditionalOp, Operation, PointerValue, Role, Test};
use gridloom_core::{Error, ErrorKind, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The first driver with conditional nodes that can be relied on.
const IF_AND_WHILE_SINCE: CudaVersion = CudaVersion::new(12, 4);
/// The first driver with the second body of an IF, and SWITCH.
const ELSE_AND_SWITCH_SINCE: CudaVersion = CudaVersion::new(12, 8);

/// What a driver can do with conditionals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capabilities {
    version: CudaVersion,
}

impl Capabilities {
    pub(super) fn of(driver: &Driver) -> Self {
        Self { version: driver.version() }
    }

    #[cfg(test)]
    pub(super) fn at(version: CudaVersion) -> Self {
        Self { version }
    }

    /// Returns whether there are conditional nodes at all.
    pub(super) fn any(self) -> bool {
        self.version >= IF_AND_WHILE_SINCE
    }

    fn needed(form: ConditionalForm) -> CudaVersion {
        match form {
            ConditionalForm::If | ConditionalForm::While => IF_AND_WHILE_SINCE,
            ConditionalForm::IfElse | ConditionalForm::Switch => ELSE_AND_SWITCH_SINCE,
        }
    }
}

/// The conditionals that the host drives, each with the reason.
#[derive(Debug, Clone, Default)]
pub(super) struct Modes {
    hosted: FxHashMap<NodeKey, String>,
}

impl Modes {
    pub(super) fn is_hosted(&self, conditional: NodeKey) -> bool {
        self.hosted.contains_key(&conditional)
    }

    #[cfg(test)]
    pub(super) fn reason_of(&self, conditional: NodeKey) -> Option<&str> {
        self.hosted.get(&conditional).map(String::as_str)
    }

    /// Decides who drives each conditional, and makes the program that follows from it.
    pub(super) fn decide(
        definition: &Definition,
        disabled: &FxHashSet<NodeKey>,
        mode: ConditionalMode,
        capabilities: Capabilities,
    ) -> Result<(Self, Program)> {
        let decision = Decision::new(definition, mode, capabilities);
        let mut modes = Self::default();
        loop {
            // Each round can only add; it ends when a round adds nothing.
            while decision.add_where_bodies_demand(&mut modes) {}
            let program = Program::new(definition, &modes, disabled);
            if !decision.add_where_conditions_demand(&mut modes, &program) {
                if mode == ConditionalMode::Native
                    && let Some((&node, reason)) = modes.hosted.iter().min_by_key(|(node, _)| **node)
                {
                    return Err(Error::new(
                        ErrorKind::NotSupported,
                        format!(
                            "the device cannot drive this conditional: {reason}; use ConditionalMode::Auto"
                        ),
                    )
                    .at_node(definition.label(node)));
                }
                return Ok((modes, program));
            }
        }
    }

    /// Returns one entry for each conditional, outermost first.
    pub(super) fn report(&self, definition: &Definition) -> Vec<ConditionalReport> {
        conditionals(definition)
            .into_iter()
            .map(|node| {
                let hosted = self.hosted.get(&node);
                let reason = hosted.map_or("the device drives it", String::as_str);
                ConditionalReport::new(node, definition.label(node), hosted.is_none(), reason)
            })
            .collect()
    }
}

struct Decision<'a> {
    definition: &'a Definition,
    mode: ConditionalMode,
    capabilities: Capabilities,
    conditionals: Vec<NodeKey>,
    /// The kernels that are given a condition, with the conditions.
    setters: BTreeMap<NodeKey, Vec<ConditionKey>>,
    /// The conditional that tests a condition.
    tested_by: FxHashMap<ConditionKey, NodeKey>,
}

impl<'a> Decision<'a> {
    fn new(definition: &'a Definition, mode: ConditionalMode, capabilities: Capabilities) -> Self {
        let tested_by =
            definition.conditions().filter_map(|(key, data)| Some((key, data.used_by()?))).collect();
        Self {
            definition,
            mode,
            capabilities,
            conditionals: conditionals(definition),
            setters: setters(definition),
            tested_by,
        }
    }

    /// Adds what the mode, the driver, a body's contents or a surrounding hosted loop demand. Says
    /// whether anything was added.
    fn add_where_bodies_demand(&self, modes: &mut Modes) -> bool {
        let mut added = false;
        for &node in &self.conditionals {
            if modes.is_hosted(node) {
                continue;
            }
            if let Some(reason) = self.reason(node, modes) {
                modes.hosted.insert(node, reason);
                added = true;
            }
        }
        added
    }

    fn reason(&self, node: NodeKey, modes: &Modes) -> Option<String> {
        let conditional = conditional(self.definition, node)?;
        if self.mode == ConditionalMode::Hosted {
            return Some("ConditionalMode::Hosted was asked for".to_owned());
        }
        let (found, needed) = (self.capabilities.version, Capabilities::needed(conditional.form));
        if found < needed {
            return Some(format!("it needs a driver for CUDA {needed}, this one supports {found}"));
        }
        if let Some(inner) = self.forbidden_inside(&self.definition.bodies(node), modes) {
            return Some(inner);
        }
        if matches!(conditional.test, Test::Condition(_))
            && let Some(outer) = self.hosted_loop_around(node, modes)
        {
            return Some(format!(
                "its condition keeps its value across the passes of {}, which the host drives",
                self.definition.label(outer)
            ));
        }
        None
    }

    /// Returns why the device cannot run these bodies.
    fn forbidden_inside(&self, bodies: &[GraphKey], modes: &Modes) -> Option<String> {
        for &body in bodies {
            for node in self.definition.nodes(body) {
                if let Some(reason) = self.forbidden(node, modes) {
                    return Some(reason);
                }
            }
        }
        None
    }

    /// Returns why the device cannot run a node in a body.
    fn forbidden(&self, node: NodeKey, modes: &Modes) -> Option<String> {
        let label = || self.definition.label(node);
        let operation = self.definition.node(node).operation();
        let facts = operation.kind().facts();
        if !facts.in_device_bodies {
            let (label, name) = (label(), facts.name);
            return Some(format!("its body holds {label}, and CUDA allows no {name} node there"));
        }
        match facts.role {
            Role::Work if transfers_managed(self.definition, operation) => {
                let label = label();
                Some(format!(
                    "its body holds {label}, and CUDA allows no copies and fills of managed memory there"
                ))
            }
            Role::Order | Role::Work => None,
            Role::Child => self.forbidden_inside(operation.bodies(), modes),
            Role::Conditional => {
                modes.is_hosted(node).then(|| format!("its body holds {}, which the host drives", label()))
            }
            Role::Opaque => not_for_bodies(operation).then(|| {
                let label = label();
                format!("its body holds {label}, in which there are nodes that CUDA does not allow there")
            }),
        }
    }

    fn hosted_loop_around(&self, node: NodeKey, modes: &Modes) -> Option<NodeKey> {
        let mut graph = self.definition.node(node).graph();
        while let Some((owner, _)) = self.definition.owner(graph) {
            let is_loop = conditional(self.definition, owner)
                .is_some_and(|conditional| conditional.form == ConditionalForm::While);
            if is_loop && modes.is_hosted(owner) {
                return Some(owner);
            }
            graph = self.definition.node(owner).graph();
        }
        None
    }

    /// Adds conditionals whose condition is set outside of the `CUgraph` they are in, or by a
    /// kernel that is also given a condition that the host reads: a kernel sets all its conditions
    /// the same way.
    fn add_where_conditions_demand(&self, modes: &mut Modes, program: &Program) -> bool {
        if self.setters.is_empty() {
            return false;
        }
        let units = program.units();
        let mut added = false;
        for (&kernel, conditions) in &self.setters {
            let mixed = conditions
                .iter()
                .filter_map(|condition| self.tested_by.get(condition))
                .find(|node| modes.is_hosted(**node))
                .copied();
            for condition in conditions {
                let Some(&node) = self.tested_by.get(condition) else { continue };
                if modes.is_hosted(node) {
                    continue;
                }
                let reason = if let Some(other) = mixed {
                    format!(
                        "{} sets its condition and that of {}, which the host drives",
                        self.definition.label(kernel),
                        self.definition.label(other)
                    )
                } else if units.get(&kernel) != units.get(&node) {
                    format!(
                        "{} sets its condition on the other side of a conditional that the host drives",
                        self.definition.label(kernel)
                    )
                } else {
                    continue;
                };
                modes.hosted.insert(node, reason);
                added = true;
            }
        }
        added
    }
}

/// Returns whether an operation copies or fills managed memory. CUDA allows that in no body that
/// the device decides about: only device memory and pinned host memory.
pub(super) fn transfers_managed(definition: &Definition, operation: &Operation) -> bool {
    let mut found = false;
    if matches!(operation, Operation::Memcpy(_) | Operation::Memset(_)) {
        operation.for_each_region(|region| {
            found |= match &region.base {
                Base::Allocation(allocation) => allocation.kind() == MemoryKind::Managed,
                Base::AllocNode(alloc) => matches!(
                    definition.get_node(*alloc).map(NodeData::operation),
                    Some(Operation::Alloc(alloc)) if alloc.kind == MemoryKind::Managed
                ),
                Base::Bytes(_) => false,
            };
        });
    }
    found
}

fn not_for_bodies(operation: &Operation) -> bool {
    let Operation::Opaque(opaque) = operation else { return false };
    OpaqueGraph::from_backend(&**opaque).is_ok_and(|opaque| opaque.contents().not_for_bodies)
}

fn conditional(definition: &Definition, node: NodeKey) -> Option<&ConditionalOp> {
    definition.node(node).operation().as_conditional().map(|conditional| &**conditional)
}

fn setters(definition: &Definition) -> BTreeMap<NodeKey, Vec<ConditionKey>> {
    let mut setters = BTreeMap::new();
    if definition.conditions().next().is_none() {
        return setters;
    }
    let mut graphs = vec![definition.root()];
    while let Some(graph) = graphs.pop() {
        for node in definition.nodes(graph) {
            graphs.extend(definition.bodies(node));
            if let Operation::Kernel(kernel) = definition.node(node).operation() {
                let conditions: Vec<ConditionKey> = kernel
                    .args()
                    .pointers
                    .iter()
                    .filter_map(|pointer| match &pointer.value {
                        PointerValue::Condition(condition) => Some(*condition),
                        PointerValue::Region(_) => None,
                    })
                    .collect();
                if !conditions.is_empty() {
                    setters.insert(node, conditions);
                }
            }
        }
    }
    setters
}

#[cfg(test)]
mod tests;
