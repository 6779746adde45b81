// The timeline of one launch: a bar for each run of a node, in as many lanes as ran side by side.
const times = document.getElementById('times');
const strip = document.getElementById('timeline');
const stripPen = strip.getContext('2d');
const range = { from: 0, to: 1 };
const BAR = { top: 22, height: 16, step: 20 };
let bars = [];

// Nested runs lie below the run of the node that contains them; runs side by side get lanes.
function makeBars() {
  const depth = node => pathOf(node).length - 1;
  const list = spans
    .map(span => ({ node: nodes.get(span.node), start: span.start_ns, end: span.end_ns, pass: span.pass }))
    .filter(bar => bar.node)
    .sort((a, b) => a.start - b.start || b.end - a.end);
  const ends = [];
  for (const bar of list) {
    let lane = Math.min(depth(bar.node), ends.length);
    const container = bar.node.bodies.length > 0;
    while (ends[lane] !== undefined && ends[lane] > bar.start) lane += 1;
    bar.lane = lane;
    ends[lane] = bar.end;
    bar.container = container;
  }
  bars = list;
  strip.style.height = Math.min(260, BAR.top + Math.max(3, ends.length) * BAR.step + 8) + 'px';
}

function wholeLaunch() {
  range.from = 0;
  range.to = bars.reduce((end, bar) => Math.max(end, bar.end), Math.max(1, profile.launch_ns)) * 1.01;
  redraw();
}

function drawTimeline() {
  if (!profile) return;
  const width = strip.clientWidth, height = strip.clientHeight;
  const ratio = resizeCanvas(strip, width, height);
  stripPen.setTransform(ratio, 0, 0, ratio, 0, 0);
  stripPen.clearRect(0, 0, width, height);
  const perNs = width / (range.to - range.from);
  const faint = css('--faint'), line = css('--line'), accent = css('--accent'), critical = css('--critical'), gap = css('--gap');
  stripPen.font = '11px system-ui, sans-serif';
  stripPen.textBaseline = 'middle';
  const step = niceStep((range.to - range.from) / Math.max(2, width / 110));
  for (let tick = Math.ceil(range.from / step) * step; tick < range.to; tick += step) {
    const x = (tick - range.from) * perNs;
    stripPen.fillStyle = line;
    stripPen.fillRect(x, 0, 1, height);
    stripPen.fillStyle = faint;
    stripPen.fillText(duration(tick) || '0', x + 4, 9);
  }
  for (const bar of bars) {
    const x = (bar.start - range.from) * perNs, right = (bar.end - range.from) * perNs;
    if (right < 0 || x > width) continue;
    const y = BAR.top + bar.lane * BAR.step, w = Math.max(1, right - x);
    const fill = fillOf(bar.node, colourMode);
    stripPen.globalAlpha = bar.container ? 0.45 : 1;
    stripPen.fillStyle = fill;
    stripPen.fillRect(x, y, w, BAR.height);
    stripPen.globalAlpha = 1;
    if (bar.node.critical && !bar.container) { stripPen.fillStyle = critical; stripPen.fillRect(x, y + BAR.height, w, 2); }
    if (bar.node === selected || found.has(bar.node)) {
      stripPen.strokeStyle = accent;
      stripPen.lineWidth = 2;
      stripPen.strokeRect(x, y - 1, w, BAR.height + 2);
    }
    if (w > 40) {
      stripPen.fillStyle = inkOn(fill);
      stripPen.save();
      stripPen.beginPath();
      stripPen.rect(x, y, w, BAR.height);
      stripPen.clip();
      stripPen.fillText(bar.node.name, Math.max(x, 0) + 5, y + BAR.height / 2 + 0.5);
      stripPen.restore();
    }
  }
  // Gaps on the critical path: nothing of it ran.
  stripPen.fillStyle = gap;
  let last = 0;
  for (const piece of profile.critical_path || []) {
    if (piece.start_ns > last) stripPen.fillRect((last - range.from) * perNs, BAR.top - 5, Math.max(1, (piece.start_ns - last) * perNs), 3);
    last = Math.max(last, piece.end_ns);
  }
  if (profile.launch_ns > last) stripPen.fillRect((last - range.from) * perNs, BAR.top - 5, Math.max(1, (profile.launch_ns - last) * perNs), 3);
  // The runs of the critical path, as one line above all lanes.
  stripPen.fillStyle = critical;
  for (const piece of profile.critical_path || []) {
    const x = (piece.start_ns - range.from) * perNs, w = (piece.end_ns - piece.start_ns) * perNs;
    if (x + w >= 0 && x <= width) stripPen.fillRect(x, BAR.top - 5, Math.max(0.5, w), 3);
  }
}

function niceStep(rough) {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(1, rough))));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough) || 10 * power;
}

function barAt(event) {
  const area = strip.getBoundingClientRect();
  const at = range.from + (event.clientX - area.left) / strip.clientWidth * (range.to - range.from);
  const slack = (range.to - range.from) / strip.clientWidth * 3;
  const lane = Math.floor((event.clientY - area.top - BAR.top) / BAR.step);
  return bars.find(bar => bar.lane === lane && at >= bar.start - slack && at <= bar.end + slack);
}

if (profile) {
  times.hidden = false;
  makeBars();
  document.getElementById('times-title').textContent =
    'One launch: ' + duration(profile.launch_ns) + (profile.spans_left_out ? ' · ' + profile.spans_left_out + ' further runs are only summed up' : '');
  document.getElementById('times-fit').onclick = wholeLaunch;
  let drag = null;
  strip.addEventListener('pointerdown', event => {
    drag = { x: event.clientX, from: range.from, to: range.to, moved: false };
    strip.setPointerCapture(event.pointerId);
  });
  strip.addEventListener('pointermove', event => {
    if (drag) {
      const shift = (event.clientX - drag.x) / strip.clientWidth * (drag.to - drag.from);
      if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
      range.from = drag.from - shift;
      range.to = drag.to - shift;
      redraw();
      return;
    }
    const bar = barAt(event);
    tip(bar && bar.node, event, bar && ' · ' + duration(bar.end - bar.start) + (bar.pass && bar.pass.length ? ' · pass ' + bar.pass.join('/') : ''));
  });
  strip.addEventListener('pointerup', event => {
    const wasDrag = drag && drag.moved;
    drag = null;
    if (wasDrag) return;
    const bar = barAt(event);
    if (bar) select(bar.node, true);
  });
  strip.addEventListener('pointerleave', () => tip(null));
  strip.addEventListener('wheel', event => {
    event.preventDefault();
    const area = strip.getBoundingClientRect();
    const share = (event.clientX - area.left) / strip.clientWidth;
    const at = range.from + share * (range.to - range.from);
    const length = Math.max(10, Math.min(profile.launch_ns * 4 + 1000, (range.to - range.from) * Math.exp(event.deltaY * 0.0015)));
    range.from = at - share * length;
    range.to = range.from + length;
    redraw();
  }, { passive: false });
}
