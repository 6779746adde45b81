//! Writer of SVG: a drawing of the whole graph with every body open.

use std::fmt::Write;

use crate::colour::{colour_of, ink_on};
use crate::html::escape;
use crate::picture::{Graph, Node, Picture};

const HEIGHT: f64 = 34.0;
const GAP: f64 = 18.0;
const LAYER_GAP: f64 = 34.0;
const PAD: f64 = 12.0;
const HEAD: f64 = 28.0;
const LEAST_WIDTH: f64 = 90.0;
const MOST_WIDTH: f64 = 260.0;
/// A row of nodes wider than this, or than the drawing would be as a square, is broken into rows.
const WRAP_WIDTH: f64 = 2000.0;
/// The room beside nodes for edges that go around them, in drawings up to a width.
const ASIDE: f64 = 24.0;
/// The lanes in that room, and the distance between them.
const LANES: usize = 3;
const LANE: f64 = 6.0;
/// How far an edge goes down while it turns: less than from the middle of a node to the next row.
const BEND: f64 = 40.0;
const ASIDE_WIDTH: f64 = 900.0;

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
    /// The width with the edges that go around nodes.
    width: f64,
    /// The width of the nodes.
    inner: f64,
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
    let text = width_of(&node.name) + 24.0;
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
    // Bodies narrower than the name of their node stand below its middle.
    let aside = (made.width - x).max(0.0) / 2.0;
    made.bodies.iter_mut().for_each(|body| body.0 += aside);
    made.width = made.width.max(x);
    made.height = top + tallest + PAD;
    made
}

fn place(graph: &Graph) -> Drawing<'_> {
    let mut boxes: Vec<NodeBox<'_>> = graph.nodes.iter().map(place_node).collect();
    let row_width = |row: &[usize], boxes: &[NodeBox<'_>]| {
        row.iter().map(|&node| boxes[node].width + GAP).sum::<f64>() - GAP
    };
    let mut rows = rows_of(graph, &boxes);
    let width = rows.iter().map(|row| row_width(row, &boxes)).fold(60.0, f64::max);
    let mut y = 0.0;
    for row in &mut rows {
        let tallest = row.iter().map(|&node| boxes[node].height).fold(0.0, f64::max);
        let mut x = (width - row_width(row, &boxes)) / 2.0;
        for &node in row.iter() {
            let place = &mut boxes[node];
            place.x = x;
            place.y = y + (tallest - place.height) / 2.0;
            x += place.width + GAP;
        }
        y += tallest + LAYER_GAP;
    }
    let mut drawing = Drawing { graph, boxes, width, inner: width, height: (y - LAYER_GAP).max(12.0) };
    if drawing.routes().any(|route| route.is_aside) {
        drawing.width += ASIDE;
    }
    drawing
}

/// Returns the nodes of each row from left to right: those of a layer, or of a part of one.
fn rows_of(graph: &Graph, boxes: &[NodeBox<'_>]) -> Vec<Vec<usize>> {
    let mut layers: Vec<Vec<usize>> = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        layers.resize_with(layers.len().max(node.layer + 1), Vec::new);
        layers[node.layer].push(index);
    }
    let area: f64 = boxes.iter().map(|place| (place.width + GAP) * (place.height + LAYER_GAP)).sum();
    let widest = WRAP_WIDTH.max(1.4 * area.sqrt());
    let mut rows = Vec::new();
    for mut layer in layers {
        layer.sort_by_key(|&node| graph.nodes[node].place);
        let (mut row, mut width) = (Vec::new(), 0.0);
        for node in layer {
            if !row.is_empty() && width + boxes[node].width > widest {
                rows.push(std::mem::take(&mut row));
                width = 0.0;
            }
            row.push(node);
            width += boxes[node].width + GAP;
        }
        if !row.is_empty() {
            rows.push(row);
        }
    }
    rows
}

/// An edge between two nodes of a drawing.
struct Route {
    from: usize,
    to: usize,
    is_programmatic: bool,
    /// Whether it would run straight through the nodes between its ends, and goes around them.
    is_aside: bool,
}

impl Drawing<'_> {
    /// Writes the drawing with its corner at `(x, y)`. The recursion is limited because nesting is.
    fn write(&self, svg: &mut String, x: f64, y: f64) {
        // Nodes cover the edges that pass below them.
        self.write_edges(svg, x, y);
        for (node, place) in self.graph.nodes.iter().zip(&self.boxes) {
            let (left, top) = (x + place.x, y + place.y);
            let colour = colour_of(&node.kind);
            let has_bodies = !place.bodies.is_empty();
            let (fill, ink) = if has_bodies { ("#f1f3f5", "#1d2430") } else { (colour, ink_on(colour)) };
            let name = shorten(&node.name, place.width - 16.0);
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
    }

    fn routes(&self) -> impl Iterator<Item = Route> {
        let index_of: std::collections::HashMap<usize, usize> =
            self.graph.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
        let middle = |index: usize| self.boxes[index].x + self.boxes[index].width / 2.0;
        self.graph.edges.iter().filter_map(move |edge| {
            let (&from, &to) = (index_of.get(&edge.from)?, index_of.get(&edge.to)?);
            let layers = self.graph.nodes[to].layer.abs_diff(self.graph.nodes[from].layer);
            let is_through = layers > 1 && (middle(from) - middle(to)).abs() < 20.0;
            let is_aside = is_through && self.inner < ASIDE_WIDTH;
            Some(Route { from, to, is_programmatic: edge.programmatic, is_aside })
        })
    }

    fn write_edges(&self, svg: &mut String, x: f64, y: f64) {
        let mut aside = 0;
        for route in self.routes() {
            let (from, to) = (&self.boxes[route.from], &self.boxes[route.to]);
            let dash = if route.is_programmatic { " stroke-dasharray=\"5 4\"" } else { "" };
            let head_of = |place: &NodeBox<'_>| place.y + place.height.min(HEIGHT) / 2.0;
            if route.is_aside {
                let (x1, y1) = (x + from.x + from.width, y + head_of(from));
                let (x2, y2) = (x + to.x + to.width, y + head_of(to));
                // Straight down beside all nodes, in a lane of its own where there are few.
                let side = x + self.inner + LANE * (1 + aside % LANES) as f64;
                aside += 1;
                let turn = BEND.min((y2 - y1).abs() / 2.0);
                let (top, bottom) = (y1 + turn, y2 - turn);
                let _ = writeln!(
                    svg,
                    "<path d=\"M{x1:.1} {y1:.1}C{side:.1} {y1:.1} {side:.1} {y1:.1} {side:.1} {top:.1}V{bottom:.1}\
                     C{side:.1} {y2:.1} {side:.1} {y2:.1} {:.1} {y2:.1}\" fill=\"none\" \
                     stroke=\"#9aa3ae\"{dash}/><path d=\"M{x2:.1} {y2:.1}l6 -3.5v7z\" fill=\"#9aa3ae\"/>",
                    x2 + 4.0,
                );
                continue;
            }
            let (x1, y1) = (x + from.x + from.width / 2.0, y + from.y + from.height);
            let (x2, y2) = (x + to.x + to.width / 2.0, y + to.y);
            let bend = ((y2 - y1) / 2.0).clamp(14.0, 60.0);
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

/// Returns the approximate width of a text, in a font that is as wide as usual ones.
fn width_of(text: &str) -> f64 {
    let width = |character: char| match character {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '('
        | ')' | '[' | ']' => 5.0,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '#' => 11.5,
        'A'..='Z' | '0'..='9' | '_' | '<' | '>' | '=' | '+' => 8.9,
        '\u{1100}'.. => 13.5,
        _ => 8.0,
    };
    text.chars().map(width).sum()
}

/// Shortens a name to a width. It loses its middle, because the names of kernels differ most at
/// their ends.
fn shorten(name: &str, room: f64) -> String {
    if width_of(name) <= room {
        return name.to_owned();
    }
    let characters: Vec<char> = name.chars().collect();
    let mut keep = (room / 5.0) as usize;
    loop {
        let (front, back) = (keep.div_ceil(2), keep / 2);
        let ends = characters.iter().take(front).chain(['…'].iter());
        let short: String = ends.chain(&characters[characters.len().saturating_sub(back)..]).collect();
        if keep <= 1 || width_of(&short) <= room {
            return short;
        }
        keep -= 1;
    }
}
