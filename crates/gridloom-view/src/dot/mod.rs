//! Reader of DOT: the output of CUDA's `cuGraphDebugDotPrint`, and other directed graphs.
//!
//! CUDA writes one cluster for each graph, side by side. A node that contains a graph (an embedded
//! one, or the body of a conditional) has the name of that graph in its label. Other programs nest
//! clusters. Each nested one becomes a node with a body.

mod cuda;
mod text;

use std::collections::{HashMap, HashSet};

use crate::picture::{Body, Edge, Graph, Node, Picture, body_label, reference};
use crate::{MOST_BYTES, MOST_DEPTH, MOST_NODES, ReadError};

/// The most edges of graphs that are drawn more than once.
const MOST_REPEATED_EDGES: usize = 4_000_000;

/// Reads a directed graph.
///
/// # Errors
/// Fails if the text is not a directed graph in DOT, with the line, or if it is too large or nested
/// too deep.
pub fn read(text: &str) -> Result<Picture, ReadError> {
    let file = text::parse(text)?;
    if file.nodes.is_empty() {
        return Err(ReadError::new("the graph has no nodes"));
    }
    let graph = Builder::new(&file)?.root()?;
    // CUDA calls every graph `dot`, and `Graph::to_dot` calls every graph `gridloom`.
    let is_general = matches!(&*file.name, "" | "dot" | "gridloom");
    let title = if is_general { "graph" } else { &file.name };
    let mut picture = Picture { title: title.to_owned(), graph };
    picture.arrange();
    Ok(picture)
}

/// Returns the edges of each cluster: each edge belongs to the innermost cluster that both its ends
/// are in.
fn edges_of_clusters(file: &text::File) -> Vec<Vec<&text::EdgeText>> {
    let mut depths = vec![0; file.clusters.len()];
    for (index, cluster) in file.clusters.iter().enumerate().skip(1) {
        // A cluster comes after the one around it.
        depths[index] = depths[cluster.parent] + 1;
    }
    let mut edges = vec![Vec::new(); file.clusters.len()];
    for edge in &file.edges {
        let (mut one, mut other) = (file.nodes[edge.from].cluster, file.nodes[edge.to].cluster);
        while one != other {
            if depths[one] >= depths[other] {
                one = file.clusters[one].parent;
            } else {
                other = file.clusters[other].parent;
            }
        }
        edges[one].push(edge);
    }
    edges
}

/// Determines which node is in which graph.
struct Builder<'a> {
    file: &'a text::File,
    facts: Vec<cuda::Facts>,
    /// The clusters that each node contains, by the names in its label.
    inside: Vec<Vec<usize>>,
    /// The nodes of each cluster.
    members: Vec<Vec<usize>>,
    /// The clusters nested in each cluster that no node contains.
    nested: Vec<Vec<usize>>,
    /// The edges of each cluster: those of its own nodes and of clusters nested in it.
    edges: Vec<Vec<&'a text::EdgeText>>,
    /// Whether a node was drawn already.
    is_drawn: Vec<bool>,
    /// The next number of a node that is not the first of its text.
    next: usize,
    /// How many nodes and bodies were made.
    made: usize,
    /// How many edges were looked at.
    edges_made: usize,
    /// The bytes of names and facts of nodes that were drawn before.
    repeated: usize,
}

impl<'a> Builder<'a> {
    fn new(file: &'a text::File) -> Result<Self, ReadError> {
        if file.nodes.len() > MOST_NODES {
            return Err(ReadError::new(format!("more than {MOST_NODES} nodes")));
        }
        let facts: Vec<cuda::Facts> = file.nodes.iter().map(cuda::facts_of).collect();
        let by_label: HashMap<&str, usize> = file
            .clusters
            .iter()
            .enumerate()
            .filter(|(_, cluster)| !cluster.label.is_empty())
            .map(|(index, cluster)| (cluster.label.as_str(), index))
            .collect();
        let mut contained = HashSet::new();
        let mut inside = vec![Vec::new(); file.nodes.len()];
        for (index, facts) in facts.iter().enumerate() {
            for name in &facts.graphs {
                if let Some(&cluster) = by_label.get(name.as_str())
                    && cluster != file.nodes[index].cluster
                {
                    inside[index].push(cluster);
                    contained.insert(cluster);
                }
            }
        }
        let mut members = vec![Vec::new(); file.clusters.len()];
        for (index, node) in file.nodes.iter().enumerate().filter(|(_, node)| !node.is_invisible) {
            members[node.cluster].push(index);
        }
        let mut nested = vec![Vec::new(); file.clusters.len()];
        for (index, cluster) in file.clusters.iter().enumerate().skip(1) {
            if !contained.contains(&index) {
                nested[cluster.parent].push(index);
            }
        }
        let (edges, is_drawn) = (edges_of_clusters(file), vec![false; file.nodes.len()]);
        let next = file.nodes.len();
        Ok(Builder {
            file,
            facts,
            inside,
            members,
            nested,
            edges,
            is_drawn,
            next,
            made: 0,
            edges_made: 0,
            repeated: 0,
        })
    }

    fn root(mut self) -> Result<Graph, ReadError> {
        // CUDA's outermost cluster is the graph itself.
        let mut root = 0;
        while self.members[root].is_empty() && self.nested[root].len() == 1 {
            root = self.nested[root][0];
        }
        self.graph(root, 0)
    }

    fn graph(&mut self, cluster: usize, depth: usize) -> Result<Graph, ReadError> {
        if depth > MOST_DEPTH {
            return Err(ReadError::new(format!(
                "graphs are nested deeper than {MOST_DEPTH}, or contain themselves"
            )));
        }
        let mut graph = Graph::default();
        let mut ids = HashMap::new();
        for index in self.members[cluster].clone() {
            self.count()?;
            let facts = &self.facts[index];
            // A graph that several nodes contain is drawn in each, with separate numbers.
            let id = if std::mem::replace(&mut self.is_drawn[index], true) {
                let bytes = facts.lines.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
                self.repeated += facts.name.len() + bytes;
                if self.repeated > MOST_BYTES {
                    return Err(ReadError::new("graphs that several nodes contain are too large"));
                }
                self.fresh()
            } else {
                index
            };
            ids.insert(index, id);
            let mut node = self.node(index, id);
            let kind = node.kind.clone();
            for (position, inner) in self.inside[index].clone().into_iter().enumerate() {
                self.count()?;
                let graph = self.graph(inner, depth + 1)?;
                node.bodies.push(Body { label: body_label(&kind, position), graph });
            }
            graph.nodes.push(node);
        }
        let mut holders = HashMap::new();
        for inner in self.nested[cluster].clone() {
            self.count()?;
            let id = self.fresh();
            holders.insert(inner, id);
            if let Some(head) = self.head_of(inner) {
                let mut node = self.node(head, id);
                for body in self.nested[inner].clone() {
                    self.count()?;
                    let label = &self.file.clusters[body].label;
                    let label = if label == "body" { String::new() } else { reference(label) };
                    node.bodies.push(Body { label, graph: self.graph(body, depth + 1)? });
                }
                graph.nodes.push(node);
                continue;
            }
            let label = &self.file.clusters[inner].label;
            let name = if label.is_empty() { format!("cluster {inner}") } else { reference(label) };
            let body = Body { label: String::new(), graph: self.graph(inner, depth + 1)? };
            graph.nodes.push(Node {
                id,
                name,
                kind: "child".to_owned(),
                bodies: vec![body],
                ..Node::default()
            });
        }
        self.add_edges(cluster, &ids, &holders, &mut graph)?;
        Ok(graph)
    }

    /// Returns a node without what it contains.
    fn node(&self, index: usize, id: usize) -> Node {
        let cuda::Facts { name, kind, lines, .. } = self.facts[index].clone();
        Node { id, name, kind, facts: lines, ..Node::default() }
    }

    /// Returns the node that a cluster stands for, as Gridloom writes a node with bodies: the
    /// cluster `cluster_n1` holds the node `n1` and the clusters `cluster_n1_0` and so on.
    fn head_of(&self, cluster: usize) -> Option<usize> {
        let &[head] = &self.members[cluster][..] else { return None };
        let name = &self.file.clusters[cluster].name;
        let is_body = |&body: &usize| self.file.clusters[body].name.starts_with(&format!("{name}_"));
        let is_whole = name.strip_prefix("cluster_") == Some(&self.file.nodes[head].name)
            && self.inside[head].is_empty()
            && !self.nested[cluster].is_empty()
            && self.nested[cluster].iter().all(is_body);
        is_whole.then_some(head)
    }

    /// Counts what is made, since a graph that several nodes contain is made several times.
    fn count(&mut self) -> Result<(), ReadError> {
        self.made += 1;
        match self.made > MOST_NODES {
            true => {
                Err(ReadError::new(format!("more than {MOST_NODES} nodes, graphs inside nodes included")))
            }
            false => Ok(()),
        }
    }

    /// Adds the edges whose ends are in this graph, or in clusters nested in it.
    fn add_edges(
        &mut self,
        cluster: usize,
        ids: &HashMap<usize, usize>,
        holders: &HashMap<usize, usize>,
        graph: &mut Graph,
    ) -> Result<(), ReadError> {
        let file = self.file;
        let end_in = |node: usize| -> Option<usize> {
            if let Some(&id) = ids.get(&node) {
                return Some(id);
            }
            let mut at = file.nodes[node].cluster;
            while at != cluster {
                if let Some(&id) = holders.get(&at) {
                    return Some(id);
                }
                at = file.clusters[at].parent;
            }
            None
        };
        let mut seen = HashSet::new();
        for edge in &self.edges[cluster] {
            let (Some(from), Some(to)) = (end_in(edge.from), end_in(edge.to)) else { continue };
            if from != to && seen.insert((from, to)) {
                graph.edges.push(Edge { from, to, programmatic: edge.programmatic });
            }
        }
        self.edges_made += self.edges[cluster].len();
        match self.edges_made > self.file.edges.len() + MOST_REPEATED_EDGES {
            true => Err(ReadError::new("graphs that several nodes contain have too many edges")),
            false => Ok(()),
        }
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }
}
