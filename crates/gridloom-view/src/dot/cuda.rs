//! Interpretation of the node labels that CUDA writes.
//!
//! A verbose label is a record: fields between `|`, groups between braces, with the keys in one
//! group and their values in the next. A short label has the number of the node on its first line
//! and its name on the second.

use std::collections::HashSet;
use std::fmt::Write;

use super::text::NodeText;

/// The most bytes of a readable name. A mangled name can stand for one that is exponentially
/// longer.
const MOST_READABLE: usize = 16 << 10;

/// What is known about a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) lines: Vec<(String, String)>,
    /// The names of graphs in the label, in order.
    pub(super) graphs: Vec<String>,
}

/// CUDA's words for kinds of nodes, and ours.
const KINDS: [(&str, &str); 17] = [
    ("KERNEL", "kernel"),
    ("MEMCPY", "memcpy"),
    ("MEMSET", "memset"),
    ("HOST", "callback"),
    ("EVENT_RECORD", "event_record"),
    ("EVENT RECORD", "event_record"),
    ("RECORD_EVENT", "event_record"),
    ("EVENT_WAIT", "event_wait"),
    ("WAIT_EVENT", "event_wait"),
    ("EVENT WAIT", "event_wait"),
    ("MEM_ALLOC", "alloc"),
    ("MEM ALLOC", "alloc"),
    ("MEM_FREE", "free"),
    ("MEM FREE", "free"),
    ("EMPTY", "empty"),
    ("CONDITIONAL", "conditional"),
    ("GRAPH", "child"),
];

/// Reads the label of a node.
pub(super) fn facts_of(node: &NodeText) -> Facts {
    let label = if node.label.is_empty() { node.name.as_str() } else { node.label.as_str() };
    let mut facts = if node.shape.contains("record") { record(label) } else { short(label, &node.shape) };
    if facts.name.is_empty() {
        facts.name.clone_from(&node.name);
    }
    if facts.kind != "kernel" {
        facts.graphs = graphs_in(&unescape(label));
    }
    if facts.kind == "conditional"
        || (facts.kind == "child" && label.to_ascii_uppercase().contains("CONDITIONAL"))
    {
        facts.kind = conditional_kind(label, facts.graphs.len());
    } else if !facts.graphs.is_empty() && facts.kind.is_empty() {
        facts.kind = "child".to_owned();
    }
    if facts.kind.is_empty() {
        // Where DOT was written from a picture, the tooltip is the kind.
        let kind = if is_kind(&node.tooltip) { &node.tooltip } else { "node" };
        facts.kind = kind.to_owned();
    }
    // A node that is named after its kind also gets its number, to distinguish it from others.
    if facts.kind != "kernel" && kind_of(&facts.name).is_some() {
        let number = facts.lines.iter().find(|(key, _)| key == "number").map(|(_, number)| number.as_str());
        if let Some(number) = number.and_then(|number| number.split(' ').next()) {
            facts.name = format!("{}#{number}", facts.kind);
        }
    }
    readable(&mut facts);
    facts
}

/// Shortens the name of a C++ kernel to the one its author gave it, and keeps the whole name as a
/// fact.
fn readable(facts: &mut Facts) {
    if !facts.name.starts_with("_Z") {
        return;
    }
    let Ok(symbol) = cpp_demangle::Symbol::new(facts.name.as_str()) else { return };
    let mut whole = Bounded(String::new());
    let options = cpp_demangle::DemangleOptions::default();
    if symbol.structured_demangle(&mut whole, &options).is_err() {
        return;
    }
    let Bounded(whole) = whole;
    facts.lines.push(("function".to_owned(), whole.clone()));
    facts.name = base_name(&whole);
}

/// A text that takes at most [`MOST_READABLE`] bytes.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > MOST_READABLE {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// Removes the return type, template arguments and parameters: `void a::f<int>(float)` becomes
/// `a::f`.
fn base_name(whole: &str) -> String {
    let (mut name, mut depth) = (String::new(), 0usize);
    for (at, character) in whole.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !whole[at..].starts_with("(anonymous namespace)") => break,
            ' ' if depth == 0 && !name.ends_with("(anonymous") => name.clear(),
            other if depth == 0 => name.push(other),
            _ => {}
        }
    }
    if name.is_empty() { whole.to_owned() } else { name }
}

fn conditional_kind(label: &str, bodies: usize) -> String {
    let label = label.to_ascii_uppercase();
    let kind = if label.contains("WHILE") {
        "while"
    } else if label.contains("SWITCH") {
        "switch"
    } else if bodies > 1 {
        "if_else"
    } else {
        "if"
    };
    kind.to_owned()
}

/// Returns the names of graphs in a label: `graph_` and a number, as a separate word.
fn graphs_in(label: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    for word in label.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let is_graph = word
            .strip_prefix("graph_")
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        if is_graph && seen.insert(word) {
            names.push(word.to_owned());
        }
    }
    names
}

/// Returns whether a word is one of Gridloom's kinds of node.
fn is_kind(word: &str) -> bool {
    KINDS.iter().any(|(_, kind)| *kind == word)
        || matches!(word, "if" | "if-else" | "while" | "switch" | "record" | "wait" | "opaque")
}

fn kind_of(text: &str) -> Option<&'static str> {
    let text = text.trim().to_ascii_uppercase();
    KINDS
        .iter()
        .find(|(word, _)| text == *word || text.starts_with(&format!("{word} ")))
        .map(|&(_, kind)| kind)
}

/// Resolves the escapes of a label: `\n`, `\l` and `\r` end lines, any other character stands for
/// itself.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('n' | 'l' | 'r') => plain.push('\n'),
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

fn short(label: &str, shape: &str) -> Facts {
    let text = unescape(label);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let mut facts = Facts::default();
    let first = lines.next().unwrap_or_default();
    // The number alone, or followed by the position in a topological order.
    let number = first.split_once(" (").map_or(first, |(number, _)| number);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let name = if is_number { lines.next().unwrap_or(first) } else { first };
    if is_number {
        facts.lines.push(("number".to_owned(), first.to_owned()));
    }
    facts.kind = match (kind_of(name), shape) {
        // A kernel may be called like a kind of node.
        (_, "octagon") => "kernel".to_owned(),
        (Some(kind), _) => kind.to_owned(),
        // As Gridloom writes it: the kind is in the name that it makes, or below that of the user.
        _ => match name.split_once('#').filter(|(kind, _)| is_kind(kind)) {
            Some((kind, _)) => kind.to_owned(),
            None => lines.next_if(|line| is_kind(line)).unwrap_or_default().to_owned(),
        },
    };
    name.clone_into(&mut facts.name);
    launch_shape(&mut facts);
    facts.lines.extend(lines.map(|line| (String::new(), line.to_owned())));
    facts
}

/// A record, as a tree of fields.
#[derive(Debug)]
enum Field {
    Text(String),
    Group(Vec<Field>),
}

fn record(label: &str) -> Facts {
    let fields = fields_of(label);
    let fields = match &fields[..] {
        [Field::Group(inner)] => inner,
        _ => &fields,
    };
    let mut facts = Facts::default();
    let mut rest = fields.iter();
    if let Some(Field::Text(title)) = fields.first() {
        rest.next();
        facts.kind = kind_of(title).unwrap_or_default().to_owned();
        // Records of other programs hold several lines, the first of which is the shortest.
        let mut lines = title.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.next().unwrap_or_default().clone_into(&mut facts.name);
        facts.lines.extend(lines.map(|line| (String::new(), line.to_owned())));
    }
    for field in rest {
        add_field(field, &mut facts);
    }
    launch_shape(&mut facts);
    facts
}

fn add_field(field: &Field, facts: &mut Facts) {
    match field {
        Field::Text(text) if text.trim().is_empty() => {}
        Field::Text(text) => facts.lines.push((String::new(), text.trim().to_owned())),
        Field::Group(group) => match &group[..] {
            // The number and name of a kernel.
            [Field::Text(id), Field::Text(number), Field::Text(name)] if id.trim() == "ID" => {
                facts.lines.push(("number".to_owned(), number.trim().to_owned()));
                name.trim().clone_into(&mut facts.name);
            }
            [Field::Text(key), Field::Text(value)] => {
                let key = if key.trim() == "ID" { "number" } else { key.trim() };
                facts.lines.push((key.to_owned(), value.trim().to_owned()));
            }
            [Field::Text(title), Field::Group(keys), Field::Group(values)] => {
                pairs(&format!("{} ", title.trim()), keys, values, facts);
            }
            [Field::Group(keys), Field::Group(values)] => pairs("", keys, values, facts),
            _ => group.iter().for_each(|field| add_field(field, facts)),
        },
    }
}

fn pairs(prefix: &str, keys: &[Field], values: &[Field], facts: &mut Facts) {
    for (key, value) in keys.iter().zip(values) {
        let key = format!("{prefix}{}", flat(key));
        let key = if key == "ID" { "number".to_owned() } else { key };
        facts.lines.push((key, flat(value)));
    }
}

fn flat(field: &Field) -> String {
    match field {
        Field::Text(text) => text.trim().to_owned(),
        Field::Group(group) => group.iter().map(flat).collect::<Vec<_>>().join(", "),
    }
}

/// Splits a record at `|` and braces. It uses a stack instead of recursion, because braces may nest
/// to any depth.
fn fields_of(label: &str) -> Vec<Field> {
    let mut stack: Vec<Vec<Field>> = vec![Vec::new()];
    let mut text = String::new();
    let mut after_group = false;
    let mut characters = label.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n' | 'l' | 'r') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            // The name of a port, which is not shown.
            '<' if text.trim().is_empty() && !after_group => {
                characters.by_ref().take_while(|&character| character != '>').for_each(drop);
            }
            '{' if stack.len() < 16 => {
                stack.push(Vec::new());
                text.clear();
                after_group = false;
            }
            '}' if stack.len() > 1 => {
                let mut group = stack.pop().unwrap_or_default();
                if !after_group || !text.trim().is_empty() {
                    group.push(Field::Text(std::mem::take(&mut text)));
                }
                text.clear();
                if let Some(outer) = stack.last_mut() {
                    outer.push(Field::Group(group));
                }
                after_group = true;
            }
            '|' => {
                if !after_group || !text.trim().is_empty() {
                    let field = Field::Text(std::mem::take(&mut text));
                    if let Some(group) = stack.last_mut() {
                        group.push(field);
                    }
                }
                text.clear();
                after_group = false;
            }
            other => text.push(other),
        }
    }
    while stack.len() > 1 {
        let group = stack.pop().unwrap_or_default();
        if let Some(outer) = stack.last_mut() {
            outer.push(Field::Group(group));
        }
    }
    let mut fields = stack.pop().unwrap_or_default();
    if !text.trim().is_empty() {
        fields.push(Field::Text(text));
    }
    fields
}

/// Splits `name<<<grid,block,shared>>>`.
fn launch_shape(facts: &mut Facts) {
    let Some((name, shape)) = facts.name.split_once("<<<") else { return };
    let shape = shape.trim_end().trim_end_matches(">>>").to_owned();
    facts.name = name.to_owned();
    if facts.kind.is_empty() {
        "kernel".clone_into(&mut facts.kind);
    }
    // Commas inside braces belong to one extent.
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for character in shape.chars() {
        match character {
            '{' | '(' => depth += 1,
            '}' | ')' => depth -= 1,
            ',' if depth == 0 => parts.push(String::new()),
            other => parts.last_mut().expect("never empty").push(other),
        }
    }
    for (key, part) in ["grid", "block", "shared"].into_iter().zip(parts) {
        facts.lines.push((key.to_owned(), part.replace(',', " × ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(shape: &str, label: &str) -> Facts {
        let (name, label, shape) = ("n".to_owned(), label.to_owned(), shape.to_owned());
        facts_of(&NodeText { name, label, shape, ..NodeText::default() })
    }

    #[test]
    fn a_verbose_kernel_has_its_name_and_launch_shape() {
        let label = "{KERNEL\n| {ID | 1 (topoId: 19) | sgemm\\<\\<\\<\\{16,10,2\\},128,0\\>\\>\\>}\n| {{node handle | func handle} | {0x0A | 0x0D}}\n| {cooperative | 0}\n}";
        let facts = facts("record", label);
        assert_eq!((facts.name.as_str(), facts.kind.as_str()), ("sgemm", "kernel"));
        let has = |key: &str, value: &str| facts.lines.iter().any(|(k, v)| k == key && v == value);
        assert!(has("grid", "16 × 10 × 2") && has("block", "128") && has("func handle", "0x0D"), "{facts:?}");
    }

    #[test]
    fn a_verbose_memset_has_its_values_by_name() {
        let label = "{MEMSET\n| {{ID | node handle | value} | {0 (topoId: 2) | 0x0A | 7}}}";
        let facts = facts("record", label);
        assert_eq!(facts.kind, "memset");
        assert!(facts.lines.contains(&("value".to_owned(), "7".to_owned())), "{facts:?}");
    }

    #[test]
    fn a_short_label_has_number_and_name() {
        let facts = facts("octagon", "3\nsaxpy\\<\\<\\<1,128,0\\>\\>\\>\n");
        assert_eq!((facts.name.as_str(), facts.kind.as_str()), ("saxpy", "kernel"));
    }

    #[test]
    fn kernels_of_cpp_are_called_as_in_the_source() {
        assert_eq!(facts("octagon", "0\n_Z4stepPiy\n").name, "step");
        assert_eq!(base_name("void at::native::kernel<4, f<int>(int)>(int, float)"), "at::native::kernel");
        assert_eq!(base_name("(anonymous namespace)::go(int)"), "(anonymous namespace)::go");
    }

    #[test]
    fn a_label_that_names_a_graph_contains_it() {
        let facts = facts("rectangle", "1\ngraph_2\n");
        assert_eq!((facts.kind.as_str(), &facts.graphs[..]), ("child", &["graph_2".to_owned()][..]));
    }

    #[test]
    fn a_kernel_may_be_called_like_a_graph_or_a_kind() {
        for name in ["memset", "graph_2", "EMPTY", "while"] {
            let short = facts("octagon", &format!("3\n{name}\n"));
            let verbose = format!("{{KERNEL\n| {{ID | 3 (topoId: 1) | {name}\\<\\<\\<1,1,0\\>\\>\\>}}\n}}");
            for facts in [short, facts("record", &verbose)] {
                assert_eq!(
                    (facts.name.as_str(), facts.kind.as_str(), facts.graphs.len()),
                    (name, "kernel", 0)
                );
            }
        }
    }

    #[test]
    fn a_record_of_another_program_is_named_after_its_first_line_without_ports() {
        let facts = facts("record", "{<p>entry:\\l  %0 = alloca\\l|{<s0>T|<s1>F}}");
        assert_eq!((facts.name.as_str(), facts.kind.as_str()), ("entry:", "node"));
        let lines: Vec<&str> = facts.lines.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(lines, ["%0 = alloca", "F"]);
    }

    #[test]
    fn braces_without_end_are_read_all_the_same() {
        assert_eq!(facts("record", &"{".repeat(1000)).kind, "node");
        assert_eq!(facts("record", "}}}}|||").kind, "node");
    }
}
