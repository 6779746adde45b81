//! Writer of SVG: a drawing of the whole graph with every body open.

use std::fmt::Write;

use crate::html::escape;
use crate::picture::{Graph, Node, Picture};

const HEIGHT: f64 = 34.0;
const GAP: f64 = 18.0;
const LAYER_GAP: f64 = 34.0;
const PAD: f64 = 12.0;
const HEAD: f64 = 28.0;
const LEAST_WIDTH: f64 = 90.0;
const MOST_WIDTH: f64 = 260.0;
/// The approximate width of a character of the font.
const CHARACTER: f64 = 7.2;

impl Picture {
    /// Returns the graph as an SVG drawing.
    pub fn to_svg(&self) -> String {
        let drawing = place(&self.graph);
        let (width, height) = (drawing.width + 2.0 * PAD, drawing.height + 2.0 * PAD);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
             <title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fbfbf9\"/>\n",
            escape(&self.title)
        );
        drawing.write(&mut svg, PAD, PAD);
        svg.push_str("</svg>\n");
        svg
    }
}

/// A graph whose nodes have sizes and positions.
struct Drawing<'a> {
    graph: &'a Graph,
    boxes: Vec<NodeBox<'a>>,
    width: f64,
    height: f64,
}

struct NodeBox<'a> {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    bodies: Vec<(f64, f64, &'a str, Drawing<'a>)>,
}

fn place_node(node: &Node) -> NodeBox<'_> {
    let text = node.name.chars().count() as f64 * CHARACTER + 24.0;
    let mut made = NodeBox {
        x: 0.0,
        y: 0.0,
        width: text.clamp(LEAST_WIDTH, MOST_WIDTH),
        height: HEIGHT,
        bodies: Vec::new(),
    };
    if node.bodies.is_empty() {
        return made;
    }
    let top = HEAD + if node.bodies.len() > 1 { 16.0 } else { 0.0 };
    let (mut x, mut tallest) = (PAD, 0.0f64);
    for body in &node.bodies {
        let drawing = place(&body.graph);
        let width = drawing.width;
        tallest = tallest.max(drawing.height);
        made.bodies.push((x, top, &body.label, drawing));
        x += width + PAD;
    }
    made.width = made.width.max(x);
    made.height = top + tallest + PAD;
    made
}

fn place(graph: &Graph) -> Drawing<'_> {
    let mut boxes: Vec<NodeBox<'_>> = graph.nodes.iter().map(place_node).collect();
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        rows.resize_with(rows.len().max(node.layer + 1), Vec::new);
        rows[node.layer].push(index);
    }
    let width_of = |row: &[usize], boxes: &[NodeBox<'_>]| {
        row.iter().map(|&node| boxes[node].width + GAP).sum::<f64>() - GAP
    };
    let width = rows.iter().map(|row| width_of(row, &boxes)).fold(60.0, f64::max);
    let mut y = 0.0;
    for row in &mut rows {
        row.sort_by_key(|&node| graph.nodes[node].place);
        let tallest = row.iter().map(|&node| boxes[node].height).fold(0.0, f64::max);
        let mut x = (width - width_of(row, &boxes)) / 2.0;
        for &node in row.iter() {
            let place = &mut boxes[node];
            place.x = x;
            place.y = y + (tallest - place.height) / 2.0;
            x += place.width + GAP;
        }
        y += tallest + LAYER_GAP;
    }
    Drawing { graph, boxes, width, height: (y - LAYER_GAP).max(12.0) }
}

impl Drawing<'_> {
    /// Writes the drawing with its corner at `(x, y)`. The recursion is limited because nesting is.
    fn write(&self, svg: &mut String, x: f64, y: f64) {
        for (node, place) in self.graph.nodes.iter().zip(&self.boxes) {
            let (left, top) = (x + place.x, y + place.y);
            let colour = colour_of(&node.kind);
            let has_bodies = !place.bodies.is_empty();
            let (fill, ink) = if has_bodies { ("#f1f3f5", "#1d2430") } else { (colour, ink_on(colour)) };
            let name = shorten(&node.name, place.width);
            let text_y = top + if has_bodies { 18.0 } else { HEIGHT / 2.0 + 4.5 };
            let _ = writeln!(
                svg,
                "<g><title>{}</title><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"6\" \
                 fill=\"{fill}\" stroke=\"{colour}\"/><text x=\"{:.1}\" y=\"{text_y:.1}\" fill=\"{ink}\">{}</text></g>",
                escape(&format!("{} [{}]", node.name, node.kind)),
                place.width,
                place.height,
                left + 10.0,
                escape(&name),
            );
            for (body_x, body_y, label, drawing) in &place.bodies {
                if !label.is_empty() {
                    let _ = writeln!(
                        svg,
                        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\" fill=\"#6b7482\">{}</text>",
                        left + body_x,
                        top + HEAD + 10.0,
                        escape(label)
                    );
                }
                drawing.write(svg, left + body_x, top + body_y);
            }
        }
        let index_of: std::collections::HashMap<usize, usize> =
            self.graph.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
        for edge in &self.graph.edges {
            let (Some(&from), Some(&to)) = (index_of.get(&edge.from), index_of.get(&edge.to)) else {
                continue;
            };
            let (from, to) = (&self.boxes[from], &self.boxes[to]);
            let (x1, y1) = (x + from.x + from.width / 2.0, y + from.y + from.height);
            let (x2, y2) = (x + to.x + to.width / 2.0, y + to.y);
            let bend = ((y2 - y1) / 2.0).clamp(14.0, 60.0);
            let dash = if edge.programmatic { " stroke-dasharray=\"5 4\"" } else { "" };
            let _ = writeln!(
                svg,
                "<path d=\"M{x1:.1} {y1:.1}C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {:.1}\" fill=\"none\" \
                 stroke=\"#9aa3ae\"{dash}/><path d=\"M{x2:.1} {y2:.1}l-3.5 -6h7z\" fill=\"#9aa3ae\"/>",
                y1 + bend,
                y2 - bend,
                y2 - 4.0,
            );
        }
    }
}

fn shorten(name: &str, width: f64) -> String {
    let room = ((width - 16.0) / CHARACTER) as usize;
    if name.chars().count() <= room {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(room.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Returns the colour of a kind of node, the same as on the page.
fn colour_of(kind: &str) -> &'static str {
    match kind {
        "kernel" => "#4c78a8",
        "memcpy" => "#54a24b",
        "memset" => "#88c9a1",
        "alloc" => "#b79a20",
        "free" => "#d8c373",
        "callback" => "#e45756",
        "record" | "event_record" => "#9d755d",
        "wait" | "event_wait" => "#bab0ac",
        "child" => "#79706e",
        "if" | "if-else" | "if_else" | "switch" => "#b279a2",
        "while" => "#d67195",
        "empty" => "#c8ccd2",
        _ => "#8f99a6",
    }
}

/// Returns a text colour that is readable on a colour.
fn ink_on(colour: &str) -> &'static str {
    match colour {
        "#88c9a1" | "#d8c373" | "#bab0ac" | "#c8ccd2" | "#8f99a6" | "#b79a20" => "#15181d",
        _ => "#ffffff",
    }
}
