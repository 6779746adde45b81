//! Reader of the JSON form of graphs.

use serde::Deserialize;
use serde_json::Value;

use crate::picture::{Body, Edge, Graph, Node, Picture, body_label, reference};
use crate::{MOST_DEPTH, MOST_NODES, ReadError};

/// The levels of JSON around and in the values of a node, and four for each body around it.
const MOST_LEVELS: i32 = 4 * MOST_DEPTH as i32 + 64;
/// Room for the recursion over that many levels, in a build without optimisation too.
const STACK: usize = 16 << 20;

#[derive(Deserialize)]
struct File {
    format: String,
    version: u32,
    #[serde(default)]
    title: Option<String>,
    graph: GraphText,
}

/// What tells other files of Gridloom, and other versions, from graphs.
#[derive(Deserialize)]
struct Head {
    format: String,
    #[serde(default)]
    version: Option<u64>,
}

impl Head {
    /// Returns why a file with this head is not read.
    fn complaint(&self) -> Option<String> {
        match (&*self.format, self.version) {
            ("gridloom-profile", _) => {
                Some("this is a profile; show its graph, with --html --profile".to_owned())
            }
            ("gridloom-graph", Some(1) | None) => None,
            ("gridloom-graph", Some(version)) => {
                Some(format!("version {version} of the format; this reads version 1"))
            }
            (format, _) => Some(format!("the format is '{format}', not 'gridloom-graph'")),
        }
    }
}

#[derive(Deserialize)]
struct GraphText {
    nodes: Vec<NodeText>,
    #[serde(default)]
    edges: Vec<EdgeText>,
}

#[derive(Deserialize)]
struct NodeText {
    id: usize,
    name: String,
    kind: String,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    bodies: Vec<GraphText>,
}

#[derive(Deserialize)]
struct EdgeText {
    from: usize,
    to: usize,
    #[serde(default)]
    kind: String,
}

/// Reads what `Graph::to_json` writes.
///
/// # Errors
/// Fails if the text is not such a graph, an edge leads to a node that is not in its graph, two
/// nodes have the same number, or there are more nodes than [`MOST_NODES`] or bodies deeper than
/// [`MOST_DEPTH`].
pub fn read(text: &str) -> Result<Picture, ReadError> {
    refuse_deep(text)?;
    // A body takes four levels of JSON, so the reader's own limit would be too low. Its recursion
    // needs more room than a thread may have left.
    let outcome = std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || parse(text));
        reader
            .map_err(|error| ReadError::new(format!("no thread to read with: {error}")))?
            .join()
            .unwrap_or_else(|_| Err(ReadError::new("reading the JSON failed")))
    });
    let mut picture = outcome?;
    picture.arrange();
    Ok(picture)
}

/// Fails if values are nested deeper than those of any graph that is read.
fn refuse_deep(text: &str) -> Result<(), ReadError> {
    let (mut depth, mut is_text, mut is_escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        if depth > MOST_LEVELS {
            return Err(ReadError::new(format!("bodies or values are nested deeper than {MOST_DEPTH}")));
        }
    }
    Ok(())
}

fn parse(text: &str) -> Result<Picture, ReadError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let file = File::deserialize(&mut reader).and_then(|file| reader.end().map(|()| file));
    let file = file.map_err(|error| {
        // Another version may have other fields.
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let complaint = Head::deserialize(&mut reader).ok().and_then(|head| head.complaint());
        match complaint {
            Some(complaint) => ReadError::new(complaint),
            None => ReadError::at(error.line(), format!("no graph in JSON: {error}")),
        }
    })?;
    let head = Head { format: file.format, version: Some(file.version.into()) };
    if let Some(complaint) = head.complaint() {
        return Err(ReadError::new(complaint));
    }
    let mut seen = std::collections::HashSet::new();
    let graph = convert(file.graph, 0, &mut seen)?;
    Ok(Picture { title: file.title.unwrap_or_else(|| "graph".to_owned()), graph })
}

fn convert(
    text: GraphText,
    depth: usize,
    seen: &mut std::collections::HashSet<usize>,
) -> Result<Graph, ReadError> {
    if depth > MOST_DEPTH {
        return Err(ReadError::new(format!("bodies are nested deeper than {MOST_DEPTH}")));
    }
    let mut graph = Graph::default();
    for node in text.nodes {
        if !seen.insert(node.id) {
            return Err(ReadError::new(format!("two nodes have the number {}", node.id)));
        }
        if seen.len() > MOST_NODES {
            return Err(ReadError::new(format!("more than {MOST_NODES} nodes")));
        }
        let mut bodies = Vec::new();
        for (index, body) in node.bodies.into_iter().enumerate() {
            bodies
                .push(Body { label: body_label(&node.kind, index), graph: convert(body, depth + 1, seen)? });
        }
        let mut facts = Vec::new();
        flatten("", &node.params, &mut facts);
        graph.nodes.push(Node {
            id: node.id,
            name: node.name,
            kind: node.kind,
            facts,
            bodies,
            ..Node::default()
        });
    }
    let here: std::collections::HashSet<usize> = graph.nodes.iter().map(|node| node.id).collect();
    for edge in text.edges {
        for end in [edge.from, edge.to] {
            if !here.contains(&end) {
                return Err(ReadError::new(format!(
                    "the edge from {} to {} leads out of its graph: it has no node {end}",
                    edge.from, edge.to
                )));
            }
        }
        graph.edges.push(Edge { from: edge.from, to: edge.to, programmatic: edge.kind == "programmatic" });
    }
    Ok(graph)
}

/// Converts parameters to lines of a table: short ones whole, nested ones by their path.
fn flatten(path: &str, value: &Value, facts: &mut Vec<(String, String)>) {
    // Every value below a long key has it in its path.
    let join = |key: &str| reference(&if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") });
    match value {
        Value::Null => {}
        Value::Object(fields) if is_region(value) => facts.push((path.to_owned(), region(fields))),
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(&join(key), value, facts);
            }
        }
        Value::Array(items) if items.iter().all(|item| item.is_number() || item.is_string()) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            facts.push((path.to_owned(), items.join(" × ")));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&reference(&format!("{path}[{index}]")), item, facts);
            }
        }
        other => facts.push((path.to_owned(), plain(other))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_region(value: &Value) -> bool {
    value.get("offset").is_some() && value.get("bytes").is_some()
}

fn region(fields: &serde_json::Map<String, Value>) -> String {
    let name = if let Some(name) = fields.get("name") {
        plain(name)
    } else if let Some(buffer) = fields.get("buffer") {
        format!("buffer {buffer}")
    } else {
        "host bytes".to_owned()
    };
    let bytes = fields.get("bytes").map_or_else(String::new, plain);
    match fields.get("offset").and_then(Value::as_u64) {
        None | Some(0) => format!("{name}, {bytes} bytes"),
        Some(offset) => format!("{name} + {offset}, {bytes} bytes"),
    }
}
