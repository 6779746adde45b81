//! The grammar of DOT: graphs, clusters, nodes, edges and their attributes.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

use crate::{MOST_DEPTH, MOST_NODES, ReadError};

/// The most edges of a graph with edges between subgraphs, which stand for all those between their
/// nodes.
const MOST_EDGES: usize = 4_000_000;

/// The contents of a file.
#[derive(Default)]
pub(super) struct File {
    pub(super) name: String,
    /// The outermost graph is the first.
    pub(super) clusters: Vec<Cluster>,
    pub(super) nodes: Vec<NodeText>,
    pub(super) edges: Vec<EdgeText>,
}

#[derive(Default)]
pub(super) struct Cluster {
    pub(super) name: String,
    pub(super) parent: usize,
    pub(super) label: String,
}

#[derive(Default)]
pub(super) struct NodeText {
    pub(super) name: String,
    pub(super) cluster: usize,
    pub(super) label: String,
    pub(super) shape: String,
    pub(super) tooltip: String,
    /// Whether it is there for the layout only.
    pub(super) is_invisible: bool,
}

pub(super) struct EdgeText {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) programmatic: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name, a number or a quoted text.
    Text(String),
    Punctuation(char),
    /// `->` or `--`.
    Arrow(bool),
}

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<File, ReadError> {
    let mut parser = Parser {
        tokens: Tokens { characters: text.chars().peekable(), line: 1 },
        next: None,
        line: 1,
        failure: None,
        file: File::default(),
        nodes: HashMap::new(),
        mentioned: Vec::new(),
    };
    parser.advance();
    match parser.file() {
        Ok(()) => Ok(parser.file),
        Err(error) => Err(parser.failure.unwrap_or(error)),
    }
}

/// The tokens of a text, one at a time: all of them together take many times the memory of the
/// text.
struct Tokens<'a> {
    characters: Peekable<Chars<'a>>,
    line: usize,
}

impl Tokens<'_> {
    /// Takes the characters up to the end of the line.
    fn skip_line(&mut self) {
        while self.characters.next_if(|&character| character != '\n').is_some() {}
    }

    /// Takes a character of a longer token.
    fn take(&mut self, start: usize, what: &str) -> Result<char, ReadError> {
        let character =
            self.characters.next().ok_or_else(|| ReadError::at(start, format!("{what} has no end")))?;
        self.line += usize::from(character == '\n');
        Ok(character)
    }

    /// Returns the next token with its line.
    fn next(&mut self) -> Result<Option<(usize, Token)>, ReadError> {
        loop {
            let Some(&character) = self.characters.peek() else { return Ok(None) };
            let start = self.line;
            let token = match character {
                white if white.is_whitespace() || white == '\u{feff}' => {
                    self.line += usize::from(white == '\n');
                    self.characters.next();
                    continue;
                }
                '#' => {
                    self.skip_line();
                    continue;
                }
                '/' => {
                    self.comment()?;
                    continue;
                }
                '"' => Token::Text(self.quoted()?),
                '<' => Token::Text(self.html()?),
                '{' | '}' | '[' | ']' | ';' | ',' | '=' | ':' | '+' => {
                    self.characters.next();
                    Token::Punctuation(character)
                }
                _ => self.word()?,
            };
            return Ok(Some((start, token)));
        }
    }

    fn comment(&mut self) -> Result<(), ReadError> {
        let start = self.line;
        self.characters.next();
        match self.characters.next() {
            Some('/') => self.skip_line(),
            Some('*') => {
                let mut star = false;
                loop {
                    match self.take(start, "a comment")? {
                        '/' if star => break,
                        other => star = other == '*',
                    }
                }
            }
            _ => return Err(ReadError::at(start, "'/' begins no comment")),
        }
        Ok(())
    }

    fn quoted(&mut self) -> Result<String, ReadError> {
        let start = self.line;
        self.characters.next();
        let mut quoted = String::new();
        loop {
            match self.take(start, "a quoted text")? {
                '"' => return Ok(quoted),
                '\\' => match self.take(start, "a quoted text")? {
                    '"' => quoted.push('"'),
                    // Other escapes belong to the label and are resolved with it.
                    other => quoted.extend(['\\', other]),
                },
                other => quoted.push(other),
            }
        }
    }

    fn html(&mut self) -> Result<String, ReadError> {
        let start = self.line;
        let (mut depth, mut html) = (0, String::new());
        loop {
            let next = self.take(start, "an HTML label")?;
            match next {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(text_of_html(&html[1..]));
            }
            html.push(next);
        }
    }

    /// Takes a name, a number or an arrow.
    fn word(&mut self) -> Result<Token, ReadError> {
        let mut word = String::new();
        while let Some(&next) = self.characters.peek() {
            if next == '-' {
                let mut ahead = self.characters.clone();
                ahead.next();
                if matches!(ahead.peek(), Some('>' | '-')) {
                    break;
                }
            } else if next.is_whitespace() || "{}[];,=:\"<>#/+".contains(next) {
                break;
            }
            word.push(next);
            self.characters.next();
        }
        if !word.is_empty() {
            return Ok(Token::Text(word));
        }
        match (self.characters.next(), self.characters.next()) {
            (Some('-'), Some(head @ ('>' | '-'))) => Ok(Token::Arrow(head == '>')),
            (first, _) => {
                let first = first.unwrap_or_default();
                Err(ReadError::at(self.line, format!("'{first}' is not expected here")))
            }
        }
    }
}

/// Returns the text of an HTML label. Elements that end a line become line ends, all others vanish.
fn text_of_html(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&', '\\']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (end, plain) = match rest.as_bytes()[0] {
            b'<' => match rest.find('>') {
                Some(end) => (end + 1, line_end(&rest[1..end])),
                None => (rest.len(), None),
            },
            b'&' => match rest.as_bytes().iter().take(12).position(|&byte| byte == b';') {
                Some(end) => (end + 1, Some(entity(&rest[1..end]).unwrap_or('\u{fffd}'))),
                None => (1, Some('&')),
            },
            // Labels are unescaped later.
            _ => {
                text.push('\\');
                (1, Some('\\'))
            }
        };
        text.extend(plain);
        rest = &rest[end..];
    }
    text + rest
}

/// Returns the line end that an element stands for, if it does.
fn line_end(element: &str) -> Option<char> {
    let name: String = element.chars().take_while(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    matches!(name.as_str(), "br" | "br/" | "/tr" | "hr/").then_some('\n')
}

/// Returns the character that an HTML entity stands for.
fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    /// The next token. `None` at the end of the text, and after a failure.
    next: Option<Token>,
    /// The line of the next token, or of the last one at the end.
    line: usize,
    /// Why there are no more tokens, if it is not the end of the text.
    failure: Option<ReadError>,
    file: File,
    nodes: HashMap<String, usize>,
    /// The nodes that the statement under way mentions, including those in subgraphs.
    mentioned: Vec<usize>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.next.as_ref()
    }

    fn advance(&mut self) {
        self.next = match self.tokens.next() {
            Ok(Some((line, token))) => {
                self.line = line;
                Some(token)
            }
            Ok(None) => None,
            Err(error) => {
                self.failure = Some(error);
                None
            }
        };
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.next.take();
        self.advance();
        token
    }

    fn skip(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(&Token::Punctuation(wanted));
        if is_there {
            self.advance();
        }
        is_there
    }

    fn error(&self, message: impl Into<String>) -> ReadError {
        ReadError::at(self.line, message)
    }

    fn word(&mut self, wanted: &str) -> bool {
        let is_there = matches!(self.peek(), Some(Token::Text(word)) if word.eq_ignore_ascii_case(wanted));
        if is_there {
            self.advance();
        }
        is_there
    }

    fn file(&mut self) -> Result<(), ReadError> {
        self.word("strict");
        if !self.word("digraph") {
            return Err(self.error("this is neither a graph in JSON nor a 'digraph' in DOT"));
        }
        if let Some(Token::Text(name)) = self.peek() {
            self.file.name = name.clone();
            self.advance();
        }
        if !self.skip('{') {
            return Err(self.error("'{' is expected after 'digraph'"));
        }
        self.file.clusters.push(Cluster::default());
        self.statements(0, 0)
    }

    /// Reads statements up to the closing brace.
    fn statements(&mut self, cluster: usize, depth: usize) -> Result<(), ReadError> {
        if depth > MOST_DEPTH {
            return Err(self.error(format!("subgraphs are nested deeper than {MOST_DEPTH}")));
        }
        loop {
            match self.peek() {
                None => return Err(self.error("the text ends before '}'")),
                Some(Token::Punctuation('}')) => {
                    self.advance();
                    return Ok(());
                }
                Some(Token::Punctuation(';' | ',')) => self.advance(),
                Some(Token::Punctuation('{') | Token::Text(_)) => self.statement(cluster, depth)?,
                Some(_) => return Err(self.error("a node, an edge or a subgraph is expected")),
            }
            if depth == 0 {
                self.mentioned.clear();
            }
        }
    }

    /// Reads a subgraph. Returns its nodes.
    fn subgraph(&mut self, parent: usize, depth: usize) -> Result<Vec<usize>, ReadError> {
        let mut cluster_name = None;
        if self.word("subgraph")
            && let Some(Token::Text(name)) = self.peek()
        {
            cluster_name = name.starts_with("cluster").then(|| name.clone());
            self.advance();
        }
        if !self.skip('{') {
            return Err(self.error("'{' is expected after 'subgraph'"));
        }
        let mut inner = parent;
        if let Some(name) = cluster_name {
            inner = self.file.clusters.len();
            if inner > MOST_NODES {
                return Err(self.error("too many subgraphs"));
            }
            self.file.clusters.push(Cluster { name, parent, label: String::new() });
        }
        let before = self.mentioned.len();
        self.statements(inner, depth + 1)?;
        let mut nodes = self.mentioned[before..].to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        self.mentioned.truncate(before);
        self.mentioned.extend_from_slice(&nodes);
        Ok(nodes)
    }

    /// Reads a node or a subgraph, where an edge may start or end.
    fn end_of_edge(&mut self, cluster: usize, depth: usize) -> Result<Vec<usize>, ReadError> {
        match self.peek() {
            Some(Token::Punctuation('{')) => self.subgraph(cluster, depth),
            Some(Token::Text(word)) if word.eq_ignore_ascii_case("subgraph") => self.subgraph(cluster, depth),
            Some(Token::Text(_)) => {
                let Some(Token::Text(name)) = self.next() else { return Ok(Vec::new()) };
                self.port()?;
                Ok(vec![self.node(&name, cluster)?])
            }
            _ => Err(self.error("a node is expected after '->'")),
        }
    }

    /// Reads an attribute of the graph, a node, a subgraph or edges.
    fn statement(&mut self, cluster: usize, depth: usize) -> Result<(), ReadError> {
        let is_subgraph = match self.peek() {
            Some(Token::Text(word)) => word.eq_ignore_ascii_case("subgraph"),
            _ => true,
        };
        let first = if is_subgraph {
            self.subgraph(cluster, depth)?
        } else {
            let Some(Token::Text(name)) = self.next() else { return Ok(()) };
            if self.skip('=') {
                let value = self.value()?;
                if name == "label" {
                    self.file.clusters[cluster].label = value;
                }
                return Ok(());
            }
            if matches!(name.as_str(), "graph" | "node" | "edge") {
                let attributes = self.attributes()?;
                if name == "graph"
                    && let Some(label) = attributes.get("label")
                {
                    self.file.clusters[cluster].label = label.clone();
                }
                return Ok(());
            }
            self.port()?;
            vec![self.node(&name, cluster)?]
        };
        let mut chain = vec![first];
        while let Some(&Token::Arrow(directed)) = self.peek() {
            if !directed {
                return Err(self.error("'--' joins nodes of undirected graphs; this is a directed one"));
            }
            self.advance();
            chain.push(self.end_of_edge(cluster, depth)?);
        }
        if is_subgraph && chain.len() == 1 {
            return Ok(());
        }
        let attributes = self.attributes()?;
        let is_invisible = attributes.get("style").is_some_and(|style| style.contains("invis"));
        if let [nodes] = &chain[..]
            && let [node] = nodes[..]
        {
            self.move_inwards(node, cluster);
            let node = &mut self.file.nodes[node];
            node.is_invisible |= is_invisible;
            if let Some(label) = attributes.get("label") {
                node.label.clone_from(label);
            }
            if let Some(shape) = attributes.get("shape") {
                node.shape.clone_from(shape);
            }
            if let Some(tooltip) = attributes.get("tooltip") {
                node.tooltip.clone_from(tooltip);
            }
            return Ok(());
        }
        if is_invisible {
            return Ok(());
        }
        let programmatic =
            attributes.values().any(|value| value.to_ascii_lowercase().contains("programmatic"));
        for pair in chain.windows(2) {
            let more = pair[0].len().saturating_mul(pair[1].len());
            if more > 1 && self.file.edges.len().saturating_add(more) > MOST_EDGES {
                return Err(self.error(format!("more than {MOST_EDGES} edges")));
            }
            for &from in &pair[0] {
                let edges = pair[1].iter().map(|&to| EdgeText { from, to, programmatic });
                self.file.edges.extend(edges);
            }
        }
        Ok(())
    }

    /// Skips a port, which says where at a node an edge ends.
    fn port(&mut self) -> Result<(), ReadError> {
        while self.skip(':') {
            if !matches!(self.next(), Some(Token::Text(_))) {
                return Err(self.error("a port is expected after ':'"));
            }
        }
        Ok(())
    }

    fn node(&mut self, name: &str, cluster: usize) -> Result<usize, ReadError> {
        if let Some(&index) = self.nodes.get(name) {
            self.mentioned.push(index);
            return Ok(index);
        }
        let index = self.file.nodes.len();
        if index >= MOST_NODES {
            return Err(self.error(format!("more than {MOST_NODES} nodes")));
        }
        self.mentioned.push(index);
        self.nodes.insert(name.to_owned(), index);
        self.file.nodes.push(NodeText { name: name.to_owned(), cluster, ..NodeText::default() });
        Ok(index)
    }

    /// Puts a node that an edge named first into the cluster that lists it.
    fn move_inwards(&mut self, node: usize, cluster: usize) {
        let present = self.file.nodes[node].cluster;
        let mut around = cluster;
        while around != present && around != 0 {
            around = self.file.clusters[around].parent;
        }
        if around == present {
            self.file.nodes[node].cluster = cluster;
        }
    }

    fn value(&mut self) -> Result<String, ReadError> {
        let Some(Token::Text(mut value)) = self.next() else {
            return Err(self.error("a value is expected after '='"));
        };
        while self.skip('+') {
            match self.next() {
                Some(Token::Text(more)) => value.push_str(&more),
                _ => return Err(self.error("a text is expected after '+'")),
            }
        }
        Ok(value)
    }

    fn attributes(&mut self) -> Result<HashMap<String, String>, ReadError> {
        let mut attributes = HashMap::new();
        while self.skip('[') {
            loop {
                if self.skip(']') {
                    break;
                }
                if self.skip(',') || self.skip(';') {
                    continue;
                }
                match self.next() {
                    Some(Token::Text(name)) => {
                        let value = if self.skip('=') { self.value()? } else { "true".to_owned() };
                        attributes.insert(name, value);
                    }
                    _ => return Err(self.error("an attribute or ']' is expected")),
                }
            }
        }
        Ok(attributes)
    }
}
