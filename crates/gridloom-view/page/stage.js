// The graph on its canvas: drawing, zooming, selecting, folding.
const stage = document.getElementById('stage');
const canvas = document.getElementById('graph');
const pen = canvas.getContext('2d');
const view = { x: 0, y: 0, scale: 1 };
let selected = null, selectedRun = null, found = new Set(), colourMode = profile ? 'time' : 'kind';

function resizeCanvas(target, width, height) {
  const ratio = window.devicePixelRatio || 1;
  if (target.width !== Math.round(width * ratio) || target.height !== Math.round(height * ratio)) {
    target.width = Math.round(width * ratio);
    target.height = Math.round(height * ratio);
  }
  return ratio;
}

let waiting = false;
function redraw() {
  tip(null);
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; drawGraph(); drawTimeline(); });
}

function drawGraph() {
  const width = stage.clientWidth, height = stage.clientHeight;
  const ratio = resizeCanvas(canvas, width, height);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, -view.x * view.scale * ratio, -view.y * view.scale * ratio);
  const seen = { left: view.x, top: view.y, right: view.x + width / view.scale, bottom: view.y + height / view.scale };
  const ink = css('--ink'), faint = css('--faint'), edgeColour = css('--edge'), bodyColour = css('--body'), line = css('--line');
  const critical = css('--critical'), accent = css('--accent'), foundColour = css('--found'), panel = css('--panel'), gapColour = css('--gap');
  const isSeen = (left, top, right, bottom) => left < seen.right && right > seen.left && top < seen.bottom && bottom > seen.top;
  const small = view.scale < 0.28, tiny = view.scale < 0.06;
  // Open nodes first, as the ground that their bodies stand on.
  for (const node of drawn) {
    if (!node.open || !isSeen(node.left, node.top, node.left + node.width, node.top + node.height)) continue;
    pen.fillStyle = bodyColour;
    pen.strokeStyle = node === selected ? accent : node.critical ? critical : line;
    pen.lineWidth = (node === selected ? 2.5 : 1.2);
    box(node, 8);
    pen.fill();
    pen.stroke();
    pen.fillStyle = fillOf(node, colourMode);
    pen.fillRect(node.left + 1, node.top + 1, node.width - 2, 4);
    if (small) continue;
    pen.fillStyle = ink;
    pen.font = '600 13px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    pen.fillText(elide('▾ ' + label(node), node.width - 24), node.left + 8, node.top + 17);
    if (node.bodies.length > 1) {
      pen.font = '11px system-ui, sans-serif';
      pen.fillStyle = faint;
      node.bodies.forEach(body => pen.fillText(elide(body.label, body.width), node.left + body.x, node.top + NODE.head + 4));
    }
  }
  drawEdges(isSeen, edgeColour, critical, accent, tiny);
  for (const node of drawn) {
    if (node.open || !isSeen(node.left, node.top, node.left + node.width, node.top + node.height)) continue;
    const fill = fillOf(node, colourMode);
    pen.fillStyle = fill;
    if (tiny) {
      const height = Math.max(node.height, 1 / view.scale);
      pen.fillRect(node.left, node.top, node.width, height);
      // An outline would hide the colour.
      if (node.critical) { pen.fillStyle = critical; pen.fillRect(node.left, node.top + height, node.width, 1 / view.scale); }
      continue;
    }
    box(node, 6);
    pen.fill();
    if (node.bodies.length) {
      pen.strokeStyle = panel;
      pen.lineWidth = 1;
      pen.strokeRect(node.left + 3.5, node.top + 3.5, node.width - 7, node.height - 7);
    }
    if (colourMode === 'time' && !node.times) {
      pen.strokeStyle = edgeColour;
      pen.lineWidth = 1;
      pen.stroke();
    }
    if (node === selected || node.critical || found.has(node)) {
      pen.strokeStyle = node === selected ? accent : found.has(node) ? foundColour : critical;
      pen.lineWidth = node === selected ? 3.5 : 2.5;
      box(node, 6);
      pen.stroke();
    }
    const wait = node.times && node.times.gap_ns / Math.max(1, node.times.gap_ns + node.times.busy_ns);
    if (wait > 0.02) {
      // The time that it waited though it was ready, beside its own time. It ends before the middle, where edges arrive.
      pen.fillStyle = gapColour;
      pen.fillRect(node.left, node.top - 6, (node.width / 2 - 8) * wait, 3);
    }
    if (small) continue;
    pen.fillStyle = inkOn(fill);
    pen.font = '13px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    const text = (node.bodies.length ? '▸ ' : '') + label(node);
    pen.fillText(elide(text, node.width - 16), node.left + 10, node.top + node.height / 2 + 0.5);
  }
  found.forEach(node => {
    if (!tiny && !small) return;
    pen.strokeStyle = critical;
    pen.lineWidth = 2 / view.scale;
    pen.strokeRect(node.left - 3 / view.scale, node.top - 3 / view.scale, node.width + 6 / view.scale, node.height + 6 / view.scale);
  });
}

function box(node, radius) {
  pen.beginPath();
  pen.roundRect(node.left, node.top, node.width, node.height, radius);
}

// The most edges of a kind that are drawn at once. Of more, a share stands for all: they would cover each other, and take
// seconds to draw.
const MOST_EDGES = 3000;
// How far an edge goes down or up while it turns, from the side of a node and from below: not as far as the next row.
const BEND = 40, TURN = 24;

function drawEdges(isSeen, colour, critical, accent, tiny) {
  const strokes = { plain: [], programmatic: [], critical: [], selected: [] };
  for (const edge of drawnEdges) {
    const from = edge.from, to = edge.to;
    const aside = edge.around && !tiny, gap = edge.gap !== undefined && !tiny;
    const x1 = from.left + from.width / (aside ? 1 : 2), y1 = from.top + (aside ? Math.min(from.height, NODE.head) / 2 : from.height);
    const x2 = to.left + to.width / (aside ? 1 : 2), y2 = to.top + (aside ? Math.min(to.height, NODE.head) / 2 : 0);
    if (!isSeen(Math.min(x1, x2, gap ? edge.gap : x1) - 40, Math.min(y1, y2) - 40, Math.max(x1, x2, edge.around) + 40, Math.max(y1, y2) + 40)) continue;
    const kind = from === selected || to === selected ? 'selected' : from.critical && to.critical ? 'critical' : edge.programmatic ? 'programmatic' : 'plain';
    strokes[kind].push([x1, y1, x2, y2, aside ? edge.around : 0, gap ? edge.gap : null]);
  }
  const styles = { plain: [colour, 1.2, []], programmatic: [colour, 1.2, [5, 4]], critical: [critical, 2.2, []], selected: [accent, 2.2, []] };
  let shown = 0, seen = 0;
  for (const kind of Object.keys(strokes)) {
    const all = strokes[kind].length, step = Math.ceil(all / MOST_EDGES);
    seen += all;
    if (step > 1) strokes[kind] = strokes[kind].filter((_, at) => at % step === 0);
    shown += strokes[kind].length;
  }
  document.getElementById('edges').textContent = shown < seen ? shown + ' of ' + seen + ' edges in sight are drawn' : '';
  for (const [kind, edges] of Object.entries(strokes)) {
    if (!edges.length) continue;
    const [stroke, width, dash] = styles[kind];
    pen.strokeStyle = stroke;
    pen.fillStyle = stroke;
    pen.lineWidth = tiny ? 1 / view.scale : width;
    // Thousands of lines would cover all nodes.
    pen.globalAlpha = tiny && kind !== 'selected' && edges.length > 1000 ? 0.3 : 1;
    pen.setLineDash(dash);
    pen.beginPath();
    for (const [x1, y1, x2, y2, around, gap] of edges) {
      pen.moveTo(x1, y1);
      if (tiny) pen.lineTo(x2, y2);
      else if (around) goAround(x1, y1, x2 + 4, y2, around);
      else if (gap !== null) goBetween(x1, y1, x2, y2 - 4, gap);
      else {
        const bend = Math.max(14, Math.min(60, Math.abs(y2 - y1) / 2));
        pen.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2 - 4);
      }
    }
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    if (tiny) continue;
    pen.beginPath();
    for (const [, , x, y, around] of edges) {
      const [side, up] = around ? [6, 3.5] : [3.5, 6];
      pen.moveTo(x, y);
      pen.lineTo(around ? x + side : x - side, y - up);
      pen.lineTo(x + side, around ? y + up : y - up);
      pen.closePath();
    }
    pen.fill();
  }
}

// Leads out to one side, straight down there, and back, within the gaps above and below the rows in between.
function goAround(x1, y1, x2, y2, side) {
  const turn = Math.min(BEND, Math.abs(y2 - y1) / 2);
  pen.bezierCurveTo(side, y1, side, y1, side, y1 + turn);
  pen.lineTo(side, y2 - turn);
  pen.bezierCurveTo(side, y2, side, y2, x2, y2);
}

// Leads from one column to another through the gap before it: below the first node, up, and down onto the other.
function goBetween(x1, y1, x2, y2, gap) {
  pen.bezierCurveTo(x1, y1 + TURN, gap, y1 + TURN, gap, y1);
  pen.lineTo(gap, y2);
  pen.bezierCurveTo(gap, y2 - TURN, x2, y2 - TURN, x2, y2);
}

// What `fit` left, to fit again in a window of another size.
let fitted = null;
function fit() {
  // The legend covers the lower edge.
  const foot = document.getElementById('legend').offsetHeight + 10;
  const width = Math.max(1, stage.clientWidth - 40), height = Math.max(1, stage.clientHeight - foot - 40);
  const graph = picture.graph;
  view.scale = Math.min(1.5, width / Math.max(1, graph.width), height / Math.max(1, graph.height));
  view.x = graph.width / 2 - stage.clientWidth / 2 / view.scale;
  view.y = graph.height / 2 - (stage.clientHeight - foot) / 2 / view.scale;
  fitted = { ...view };
  redraw();
}

function resized() {
  if (fitted && fitted.x === view.x && fitted.y === view.y && fitted.scale === view.scale) fit(); else redraw();
}

// Zooms, and keeps a point of the screen where it is.
function zoom(factor, at) {
  at = at || { x: stage.clientWidth / 2, y: stage.clientHeight / 2 };
  const scale = Math.max(0.005, Math.min(6, view.scale * factor));
  view.x += at.x / view.scale - at.x / scale;
  view.y += at.y / view.scale - at.y / scale;
  view.scale = scale;
  redraw();
}

function show(node) {
  for (let at = node.parent; at; at = at.parent) at.open = true;
  arrange();
  view.scale = Math.max(view.scale, 0.8);
  view.x = node.left + node.width / 2 - stage.clientWidth / 2 / view.scale;
  view.y = node.top + Math.min(node.height, 200) / 2 - stage.clientHeight / 2 / view.scale;
}

// Selects a node, and one of its runs if a bar of the timeline was clicked.
function select(node, centre, run) {
  selected = node;
  selectedRun = run || null;
  if (node && centre) show(node);
  if (node && !run) revealBars(node);
  describe(node);
  redraw();
}

function toggle(node) {
  if (!node.bodies.length) return;
  const before = { left: node.left, top: node.top };
  node.open = !node.open;
  arrange();
  // The node stays where it is on the screen.
  view.x += node.left - before.left;
  view.y += node.top - before.top;
  redraw();
}

function foldAll(open) {
  nodes.forEach(node => { node.open = open && node.bodies.length > 0; });
  arrange();
  fit();
}

// The innermost node at a point of the screen.
function nodeAt(clientX, clientY) {
  const area = canvas.getBoundingClientRect();
  const x = view.x + (clientX - area.left) / view.scale, y = view.y + (clientY - area.top) / view.scale;
  let hit = null;
  for (const node of drawn) {
    if (x >= node.left && x <= node.left + node.width && y >= node.top && y <= node.top + node.height) hit = node;
  }
  return hit && { node: hit, head: y - hit.top <= NODE.head, fold: x - hit.left <= 22 };
}

let drag = null;
canvas.addEventListener('pointerdown', event => {
  drag = { x: event.clientX, y: event.clientY, left: view.x, top: view.y, moved: false };
  canvas.setPointerCapture(event.pointerId);
  canvas.classList.add('drags');
});
canvas.addEventListener('pointermove', event => {
  if (drag) {
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (Math.abs(dx) + Math.abs(dy) > 3) drag.moved = true;
    view.x = drag.left - dx / view.scale;
    view.y = drag.top - dy / view.scale;
    redraw();
    return;
  }
  const hit = nodeAt(event.clientX, event.clientY);
  tip(hit && hit.node, event);
});
canvas.addEventListener('pointerup', event => {
  canvas.classList.remove('drags');
  const wasDrag = drag && drag.moved;
  drag = null;
  if (wasDrag) return;
  const hit = nodeAt(event.clientX, event.clientY);
  if (hit && hit.node.bodies.length && hit.fold && hit.head) toggle(hit.node);
  select(hit && hit.node, false);
});
canvas.addEventListener('dblclick', event => {
  const hit = nodeAt(event.clientX, event.clientY);
  if (hit && (!hit.node.open || hit.head)) toggle(hit.node);
});
canvas.addEventListener('pointerleave', () => tip(null));
canvas.addEventListener('wheel', event => {
  event.preventDefault();
  const area = canvas.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * 0.0015), { x: event.clientX - area.left, y: event.clientY - area.top });
}, { passive: false });

const tipBox = document.getElementById('tip');
function tip(node, event, extra) {
  tipBox.hidden = !node;
  if (!node) return;
  const time = node.times ? ' · ' + duration(node.times.busy_ns) : '';
  const name = node.name.length > 120 ? node.name.slice(0, 60) + '…' + node.name.slice(-60) : node.name;
  tipBox.textContent = name + (node.name.startsWith(node.kind) ? '' : ' [' + node.kind + ']') + (extra || time) + (isUnsure(node) ? ', too short to tell' : '');
  tipBox.style.left = Math.min(event.clientX + 14, innerWidth - tipBox.offsetWidth - 8) + 'px';
  tipBox.style.top = Math.min(event.clientY + 14, innerHeight - tipBox.offsetHeight - 8) + 'px';
}
