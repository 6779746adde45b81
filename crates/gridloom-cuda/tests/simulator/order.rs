//! The order of the nodes of a graph: one that they may run in, and what must have an order.

use super::World;
use super::graphs::{Node, Work};
use super::memory::sides;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// Each node after those it waits for. An edge that is missing shows: nodes without an order run
/// the youngest first, or, if the environment says so, in an order that differs from graph to
/// graph.
pub fn order(numbers: &[usize], nodes: &HashMap<usize, Node>) -> Vec<usize> {
    let shuffle = std::env::var_os("GRIDLOOM_SIMULATED_SHUFFLE").is_some();
    let salt = numbers.first().copied().unwrap_or(0);
    let rank = |number: usize| {
        let mut hasher = DefaultHasher::new();
        (salt, number).hash(&mut hasher);
        (if shuffle { hasher.finish() } else { 0 }, number)
    };
    let mut waits: HashMap<usize, usize> =
        numbers.iter().map(|number| (*number, nodes[number].after.len())).collect();
    let mut followers: HashMap<usize, Vec<usize>> = HashMap::new();
    for number in numbers {
        for before in &nodes[number].after {
            followers.entry(*before).or_default().push(*number);
        }
    }
    let ready = numbers.iter().copied().filter(|number| waits[number] == 0);
    let mut ready: BinaryHeap<(u64, usize)> = ready.map(rank).collect();
    let mut ordered = Vec::with_capacity(numbers.len());
    while let Some((_, number)) = ready.pop() {
        ordered.push(number);
        for follower in followers.remove(&number).unwrap_or_default() {
            let left = waits.get_mut(&follower).expect("a node of this graph");
            *left -= 1;
            if *left == 0 {
                ready.push(rank(follower));
            }
        }
    }
    assert_eq!(ordered.len(), numbers.len(), "graphs have no cycles");
    ordered
}

/// Notes kernels of a launch that start early, over a programmatic edge, and never wait for the
/// kernel before them, or take part in such an edge and are disabled: the launch would count as
/// ended while the kernel before them runs, and the next launch would start that one again.
pub fn check_early_starts(world: &mut World, nodes: &HashMap<usize, Node>) {
    for node in nodes.values().filter(|node| !node.early.is_empty()) {
        let waits = matches!(&node.work, Work::Kernel(call) if call.waits(world));
        let enabled = node.enabled && node.early.iter().all(|before| nodes[before].enabled);
        if !waits || !enabled {
            let what = if waits { "is disabled" } else { "never waits" };
            world.violation(format!("a kernel that takes part in an early start {what}"));
        }
    }
}

/// What each node comes after, directly or not. The nodes are in an order in which they may run.
fn ancestors<'a>(ordered: &'a [usize], nodes: &HashMap<usize, Node>) -> HashMap<&'a usize, HashSet<usize>> {
    let mut ancestors: HashMap<&usize, HashSet<usize>> = HashMap::new();
    for number in ordered {
        let mut all = HashSet::new();
        for before in &nodes[number].after {
            all.insert(*before);
            all.extend(&ancestors[before]);
        }
        ancestors.insert(number, all);
    }
    ancestors
}

/// Notes what a driver was seen to hang or fault with, or what its manual does not allow, in a
/// graph that is compiled: conditionals side by side, empty bodies, uses of a counter of passes
/// without an order, and managed memory in copies and fills of a body.
pub fn check(world: &mut World, ordered: &[usize], nodes: &HashMap<usize, Node>, is_body: bool) {
    let mut found = Vec::new();
    if is_body && ordered.is_empty() {
        found.push("the body of a conditional is empty".to_owned());
    }
    let mut exclusive: Vec<usize> = Vec::new();
    let mut counters: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for number in ordered {
        match &nodes[number].work {
            Work::Conditional { .. } => exclusive.push(*number),
            Work::Kernel(call) => {
                if let Some(counter) = call.counter() {
                    counters.entry(counter).or_default().push(*number);
                }
            }
            Work::Copy(copy) if is_body && sides(copy).iter().any(|side| world.memory.is_managed(*side)) => {
                found.push("a copy in the body of a conditional uses managed memory".to_owned());
            }
            Work::Fill(fill) if is_body && world.memory.is_managed(fill.dst) => {
                found.push("a fill in the body of a conditional uses managed memory".to_owned());
            }
            _ => {}
        }
    }
    for number in ordered {
        if let Work::Fill(fill) = &nodes[number].work {
            let end = fill.dst + (fill.width * fill.elementSize as usize) as u64;
            counters.range_mut(fill.dst..end).for_each(|(_, users)| users.push(*number));
        }
    }
    if exclusive.len() > 1 || counters.values().any(|users| users.len() > 1) {
        let ancestors = ancestors(ordered, nodes);
        let unordered = |users: &[usize]| {
            let pairs = users
                .iter()
                .enumerate()
                .flat_map(|(index, a)| users[index + 1..].iter().map(move |b| (a, b)));
            pairs.filter(|(a, b)| !ancestors[a].contains(b) && !ancestors[b].contains(a)).count()
        };
        if unordered(&exclusive) > 0 {
            found.push("conditionals of one graph have no order".to_owned());
        }
        for (counter, users) in &counters {
            if unordered(users) > 0 {
                found.push(format!("uses of the counter of passes at {counter:#x} have no order"));
            }
        }
    }
    found.into_iter().for_each(|found| world.violation(found));
}
