//! The grammar of DOT: graphs, clusters, nodes, edges and their attributes.

use std::collections::HashMap;

use crate::{MOST_DEPTH, MOST_NODES, ReadError};

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
    pub(super) parent: usize,
    pub(super) label: String,
}

pub(super) struct NodeText {
    pub(super) name: String,
    pub(super) cluster: usize,
    pub(super) label: String,
    pub(super) shape: String,
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
    let mut parser = Parser { tokens: tokenize(text)?, at: 0, file: File::default(), nodes: HashMap::new() };
    parser.file()?;
    Ok(parser.file)
}

fn tokenize(text: &str) -> Result<Vec<(usize, Token)>, ReadError> {
    let mut tokens = Vec::new();
    let mut characters = text.chars().peekable();
    let mut line = 1;
    while let Some(&character) = characters.peek() {
        match character {
            '\n' => {
                line += 1;
                characters.next();
            }
            white if white.is_whitespace() || white == '\u{feff}' => {
                characters.next();
            }
            '#' => while characters.next_if(|&character| character != '\n').is_some() {},
            '/' => {
                let start = line;
                characters.next();
                match characters.next() {
                    Some('/') => while characters.next_if(|&character| character != '\n').is_some() {},
                    Some('*') => {
                        let mut star = false;
                        loop {
                            match characters.next() {
                                None => return Err(ReadError::at(start, "a comment has no end")),
                                Some('/') if star => break,
                                Some(other) => {
                                    line += usize::from(other == '\n');
                                    star = other == '*';
                                }
                            }
                        }
                    }
                    _ => return Err(ReadError::at(line, "'/' begins no comment")),
                }
            }
            '"' => {
                let start = line;
                characters.next();
                let mut quoted = String::new();
                loop {
                    match characters.next() {
                        None => return Err(ReadError::at(start, "a quoted text has no end")),
                        Some('"') => break,
                        Some('\\') => match characters.next() {
                            Some('"') => quoted.push('"'),
                            // Other escapes belong to the label and are resolved with it.
                            Some(other) => {
                                line += usize::from(other == '\n');
                                quoted.push('\\');
                                quoted.push(other);
                            }
                            None => return Err(ReadError::at(start, "a quoted text has no end")),
                        },
                        Some(other) => {
                            line += usize::from(other == '\n');
                            quoted.push(other);
                        }
                    }
                }
                tokens.push((start, Token::Text(quoted)));
            }
            '<' => {
                let start = line;
                let (mut depth, mut html) = (0, String::new());
                loop {
                    let Some(next) = characters.next() else {
                        return Err(ReadError::at(start, "an HTML label has no end"));
                    };
                    line += usize::from(next == '\n');
                    match next {
                        '<' => depth += 1,
                        '>' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                    html.push(next);
                }
                tokens.push((start, Token::Text(html.trim_start_matches('<').to_owned())));
            }
            '{' | '}' | '[' | ']' | ';' | ',' | '=' | ':' | '+' => {
                characters.next();
                tokens.push((line, Token::Punctuation(character)));
            }
            _ => {
                let mut word = String::new();
                while let Some(&next) = characters.peek() {
                    if next == '-' {
                        let mut ahead = characters.clone();
                        ahead.next();
                        if matches!(ahead.peek(), Some('>' | '-')) {
                            break;
                        }
                    } else if next.is_whitespace() || "{}[];,=:\"<>#/+".contains(next) {
                        break;
                    }
                    word.push(next);
                    characters.next();
                }
                if word.is_empty() {
                    characters.next();
                    match (character, characters.next()) {
                        ('-', Some(head @ ('>' | '-'))) => tokens.push((line, Token::Arrow(head == '>'))),
                        _ => return Err(ReadError::at(line, format!("'{character}' is not expected here"))),
                    }
                } else {
                    tokens.push((line, Token::Text(word)));
                }
            }
        }
    }
    Ok(tokens)
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    file: File,
    nodes: HashMap<String, usize>,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn skip(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(&Token::Punctuation(wanted));
        self.at += usize::from(is_there);
        is_there
    }

    fn error(&self, message: impl Into<String>) -> ReadError {
        let line =
            self.tokens.get(self.at.min(self.tokens.len().saturating_sub(1))).map_or(1, |(line, _)| *line);
        ReadError::at(line, message)
    }

    fn word(&mut self, wanted: &str) -> bool {
        let is_there = matches!(self.peek(), Some(Token::Text(word)) if word.eq_ignore_ascii_case(wanted));
        self.at += usize::from(is_there);
        is_there
    }

    fn file(&mut self) -> Result<(), ReadError> {
        self.word("strict");
        if !self.word("digraph") {
            return Err(self.error("this is neither a graph in JSON nor a 'digraph' in DOT"));
        }
        if let Some(Token::Text(name)) = self.peek() {
            self.file.name = name.clone();
            self.at += 1;
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
                    self.at += 1;
                    return Ok(());
                }
                Some(Token::Punctuation(';' | ',')) => self.at += 1,
                Some(Token::Punctuation('{')) => self.subgraph(cluster, depth)?,
                Some(Token::Text(word)) if word.eq_ignore_ascii_case("subgraph") => {
                    self.subgraph(cluster, depth)?
                }
                Some(Token::Text(_)) => self.statement(cluster)?,
                Some(_) => return Err(self.error("a node, an edge or a subgraph is expected")),
            }
        }
    }

    fn subgraph(&mut self, parent: usize, depth: usize) -> Result<(), ReadError> {
        let mut is_cluster = false;
        if self.word("subgraph")
            && let Some(Token::Text(name)) = self.peek()
        {
            is_cluster = name.starts_with("cluster");
            self.at += 1;
        }
        if !self.skip('{') {
            return Err(self.error("'{' is expected after 'subgraph'"));
        }
        let mut inner = parent;
        if is_cluster {
            inner = self.file.clusters.len();
            if inner > MOST_NODES {
                return Err(self.error("too many subgraphs"));
            }
            self.file.clusters.push(Cluster { parent, label: String::new() });
        }
        self.statements(inner, depth + 1)
    }

    fn statement(&mut self, cluster: usize) -> Result<(), ReadError> {
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
        let mut chain = vec![self.node(&name, cluster)?];
        while let Some(&Token::Arrow(directed)) = self.peek() {
            if !directed {
                return Err(self.error("'--' joins nodes of undirected graphs; this is a directed one"));
            }
            self.at += 1;
            match self.next() {
                Some(Token::Text(name)) => {
                    self.port()?;
                    chain.push(self.node(&name, cluster)?);
                }
                _ => return Err(self.error("a node is expected after '->'")),
            }
        }
        let attributes = self.attributes()?;
        if let [node] = chain[..] {
            let node = &mut self.file.nodes[node];
            if let Some(label) = attributes.get("label") {
                node.label.clone_from(label);
            }
            if let Some(shape) = attributes.get("shape") {
                node.shape.clone_from(shape);
            }
            return Ok(());
        }
        let programmatic =
            attributes.values().any(|value| value.to_ascii_lowercase().contains("programmatic"));
        for pair in chain.windows(2) {
            self.file.edges.push(EdgeText { from: pair[0], to: pair[1], programmatic });
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
            return Ok(index);
        }
        let index = self.file.nodes.len();
        if index >= MOST_NODES {
            return Err(self.error(format!("more than {MOST_NODES} nodes")));
        }
        self.nodes.insert(name.to_owned(), index);
        let (label, shape) = (String::new(), String::new());
        self.file.nodes.push(NodeText { name: name.to_owned(), cluster, label, shape });
        Ok(index)
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
