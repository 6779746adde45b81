// Where nodes are drawn. Layers and the order within them come with the picture; sizes depend on what is folded.
const NODE = { height: 34, gap: 18, layerGap: 34, pad: 12, head: 36, minWidth: 90, maxWidth: 240 };
// Layers wider than this, or than the whole graph would be as a square, are broken into rows. Graphs much taller than
// wide are broken into columns, to fit a screen.
const WRAP_WIDTH = 2000, TALL = 0.8, COLUMN_GAP = 70;
// The width of the lanes of edges that go around nodes.
const LANES = 32;

const measure = document.createElement('canvas').getContext('2d');
measure.font = '13px system-ui, sans-serif';
const widths = new Map();
function textWidth(text) {
  let width = widths.get(text);
  if (width === undefined) widths.set(text, width = measure.measureText(text).width);
  return width;
}

// A text that is too wide for its place loses its middle: names of kernels differ most at their ends.
const elided = new Map();
function elide(text, room) {
  if (textWidth(text) <= room) return text;
  const key = text + '\n' + Math.floor(room);
  let short = elided.get(key);
  if (short !== undefined) return short;
  let low = 0, high = text.length;
  const cut = keep => text.slice(0, Math.ceil(keep / 2)) + '…' + text.slice(text.length - Math.floor(keep / 2));
  while (low < high) {
    const keep = Math.ceil((low + high) / 2);
    if (measure.measureText(cut(keep)).width <= room) low = keep; else high = keep - 1;
  }
  short = cut(low);
  elided.set(key, short);
  return short;
}

function layoutNode(node) {
  node.width = Math.min(NODE.maxWidth, Math.max(NODE.minWidth, textWidth(label(node)) * (node.open ? 1.15 : 1) + 24 + (node.bodies.length ? 18 : 0)));
  node.height = NODE.height;
  if (!node.bodies.length || !node.open) return;
  let x = NODE.pad, tallest = 0;
  for (const body of node.bodies) {
    layoutGraph(body);
    body.x = x;
    body.y = NODE.head + (node.bodies.length > 1 ? 16 : 0);
    x += body.width + NODE.pad;
    tallest = Math.max(tallest, body.y + body.height);
  }
  // Bodies narrower than the name of their node stand below its middle.
  if (x < node.width) for (const body of node.bodies) body.x += (node.width - x) / 2;
  node.width = Math.max(node.width, x);
  node.height = tallest + NODE.pad;
}

function rowsOf(graph) {
  const layers = [];
  const area = graph.nodes.reduce((sum, node) => sum + (node.width + NODE.gap) * (node.height + NODE.layerGap), 0);
  const widest = Math.max(WRAP_WIDTH, 1.4 * Math.sqrt(area));
  for (const node of graph.nodes) (layers[node.layer] = layers[node.layer] || []).push(node);
  const rows = [];
  for (const layer of layers) {
    if (!layer) continue;
    layer.sort((a, b) => a.place - b.place);
    let row = [], width = 0;
    for (const node of layer) {
      if (row.length && width + node.width > widest) { rows.push(row); row = []; width = 0; }
      row.push(node);
      width += node.width + NODE.gap;
    }
    if (row.length) rows.push(row);
  }
  return rows;
}

// Puts each node of a row as near to where its neighbours are as the others of the row allow.
function placeRow(row, wish) {
  let edge = -Infinity;
  for (const node of row) {
    node.x = Math.max(edge, wish(node) - node.width / 2);
    edge = node.x + node.width + NODE.gap;
  }
  // What was pushed to the right is moved back as a whole by the mean of the pushes.
  let push = 0;
  for (const node of row) push += node.x + node.width / 2 - wish(node);
  push /= row.length;
  for (const node of row) node.x -= push;
}

function layoutGraph(graph) {
  graph.nodes.forEach(layoutNode);
  const rows = rowsOf(graph);
  const middle = node => node.x + node.width / 2;
  let widest = 0;
  for (const row of rows) {
    const total = row.reduce((sum, node) => sum + node.width + NODE.gap, -NODE.gap);
    widest = Math.max(widest, total);
    let x = -total / 2;
    for (const node of row) { node.x = x; x += node.width + NODE.gap; }
  }
  const wish = key => node => {
    const others = node[key];
    if (!others.length) return middle(node);
    let sum = 0;
    for (const other of others) sum += middle(other);
    // Within the widest row, so that the graph does not grow with each round.
    return Math.max(-widest / 2, Math.min(widest / 2, sum / others.length));
  };
  for (let round = 0; round < 2; round++) {
    for (let at = 0; at < rows.length; at++) placeRow(rows[at], wish('before'));
    for (let at = rows.length - 1; at >= 0; at--) placeRow(rows[at], wish('after'));
  }
  let y = 0;
  const tops = rows.map(row => {
    const top = y;
    const height = Math.max(...row.map(node => node.height));
    for (const node of row) node.y = top + (height - node.height) / 2;
    y += height + NODE.layerGap;
    return { row, top, bottom: y };
  });
  let left = Infinity, right = -Infinity;
  for (const node of graph.nodes) { left = Math.min(left, node.x); right = Math.max(right, node.x + node.width); }
  if (!graph.nodes.length) { left = 0; right = 60; y = NODE.layerGap + 12; }
  graph.width = right - left;
  graph.height = y - NODE.layerGap;
  // An edge that would run straight through the nodes between its ends goes around them, in lanes
  // on the right.
  const runsThrough = ({ from, to }) => to.layer - from.layer > 1 && Math.abs(middle(from) - middle(to)) < 20;
  graph.around = new Set(graph.width < 900 ? graph.edges.filter(runsThrough) : []);
  graph.columnStep = graph.width + COLUMN_GAP;
  for (const node of graph.nodes) { node.x -= left; node.column = 0; }
  // A long thin graph becomes columns, read from left to right.
  const columns = Math.min(200, Math.floor(Math.sqrt(graph.height / (TALL * (graph.width + COLUMN_GAP)))) + 1);
  if (columns > 1 && graph.height > 1600) {
    graph.around.clear();
    const tall = graph.height / columns;
    let column = 0, start = 0, height = 0;
    for (const { row, top, bottom } of tops) {
      if (top - start >= tall) { column += 1; start = top; }
      for (const node of row) { node.x += column * (graph.width + COLUMN_GAP); node.y -= start; node.column = column; }
      height = Math.max(height, bottom - NODE.layerGap - start);
    }
    graph.width += column * (graph.width + COLUMN_GAP);
    graph.height = height;
  }
  if (graph.around.size) graph.width += LANES;
}

// Absolute positions, and the list of what is visible, outermost first.
let drawn = [], drawnEdges = [];
function arrange() {
  layoutGraph(picture.graph);
  drawn = [];
  drawnEdges = [];
  const place = (graph, x, y) => {
    graph.left = x;
    graph.top = y;
    for (const node of graph.nodes) {
      node.left = x + node.x;
      node.top = y + node.y;
      drawn.push(node);
      if (node.open) node.bodies.forEach(body => place(body, node.left + body.x, node.top + body.y));
    }
    let aside = 0;
    for (const edge of graph.edges) {
      const { from, to } = edge;
      // One to another column takes the gap before that.
      edge.gap = from.column === to.column ? undefined : x + Math.max(1, to.column) * graph.columnStep - COLUMN_GAP / 2;
      edge.around = graph.around.has(edge) ? x + graph.width - LANES + 14 + 6 * (aside++ % 3) : 0;
      drawnEdges.push(edge);
    }
  };
  place(picture.graph, 0, 0);
}
