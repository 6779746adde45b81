// The timeline of one launch: a bar for each run of a node, in as many lanes as ran side by side.
const times = document.getElementById('times');
const strip = document.getElementById('timeline');
const stripPen = strip.getContext('2d');
const range = { from: 0, to: 1, top: 0 };
const BAR = { top: 22, height: 16, step: 20, most: 260 };
let bars = [], lanes = 0;

// Nested runs lie below the run of the node that contains them; runs side by side get lanes.
function makeBars() {
  const depth = node => pathOf(node).length - 1;
  const list = spans
    .map(span => ({ node: nodes.get(span.node), start: span.start_ns, end: span.end_ns, pass: span.pass, thread: span.thread }))
    .filter(bar => bar.node)
    // Of runs that start together, an outer one comes before those inside it, and one that took no time before the next.
    .sort((a, b) => a.start - b.start || depth(a.node) - depth(b.node) || a.end - b.end);
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
  lanes = ends.length;
  strip.style.height = Math.min(BAR.most, BAR.top + Math.max(3, lanes) * BAR.step + 8) + 'px';
}

// Moves the lanes up and down, where there are more than fit.
function scrollLanes(top) {
  range.top = Math.max(0, Math.min(top, BAR.top + lanes * BAR.step + 8 - strip.clientHeight));
}

// Moves the timeline to a run of a node, if none of them is in sight.
function revealBars(node) {
  if (!profile) return;
  const own = bars.filter(bar => bar.node === node);
  const isSeen = bar => {
    const y = bar.lane * BAR.step - range.top;
    return bar.end >= range.from && bar.start <= range.to && y >= 0 && y + BAR.top + BAR.height <= strip.clientHeight;
  };
  if (!own.length || own.some(isSeen)) return;
  const bar = own[0], length = range.to - range.from;
  if (bar.end < range.from || bar.start > range.to) {
    range.from = (bar.start + bar.end) / 2 - length / 2;
    range.to = range.from + length;
  }
  scrollLanes(bar.lane * BAR.step - strip.clientHeight / 2 + BAR.top);
}

function wholeLaunch() {
  range.from = 0;
  range.to = bars.reduce((end, bar) => Math.max(end, bar.end), Math.max(1, profile.launch_ns)) * 1.01;
  range.top = 0;
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
    const text = moment(tick, step);
    if (x + 8 + stripPen.measureText(text).width < width) stripPen.fillText(text, x + 4, 9);
  }
  // The place in each lane up to which bars were drawn: of many runs within one pixel, one is enough.
  const filled = [];
  const marked = [];
  stripPen.save();
  stripPen.beginPath();
  stripPen.rect(0, BAR.top - 1, width, height);
  stripPen.clip();
  for (const bar of bars) {
    const x = (bar.start - range.from) * perNs, right = (bar.end - range.from) * perNs;
    const y = BAR.top + bar.lane * BAR.step - range.top, w = Math.max(1, right - x);
    if (right < 0 || x > width || y + BAR.height < BAR.top || y > height) continue;
    if (bar.node === selected || found.has(bar.node)) marked.push([bar, x, y, w]);
    if (right < filled[bar.lane]) continue;
    filled[bar.lane] = Math.max(x + 1, right);
    const fill = fillOf(bar.node, colourMode);
    stripPen.globalAlpha = bar.container ? 0.35 : 1;
    stripPen.fillStyle = fill;
    stripPen.fillRect(x, y, w, BAR.height);
    stripPen.globalAlpha = 1;
    if (bar.node.critical && !bar.container) { stripPen.fillStyle = critical; stripPen.fillRect(x, y + BAR.height, w, 2); }
    if (w > 40) {
      // The ground shows through a container.
      stripPen.fillStyle = bar.container ? css('--ink') : inkOn(fill);
      // The letters here are smaller than those that are measured.
      const left = Math.max(x, 0), room = (Math.min(right, width) - left - 8) * 13 / 11;
      if (room > 30) stripPen.fillText(elide(bar.node.name, room), left + 5, y + BAR.height / 2 + 0.5);
    }
  }
  for (const [bar, x, y, w] of marked) {
    const colour = bar === selectedRun ? css('--ink') : accent;
    if (w < 6 && bar !== selectedRun) {
      // An outline would cover the bar.
      stripPen.fillStyle = colour;
      stripPen.fillRect(x, y - 2, w, 3);
      continue;
    }
    stripPen.strokeStyle = colour;
    stripPen.lineWidth = 2;
    stripPen.strokeRect(x, y - 1, w, BAR.height + 2);
  }
  stripPen.restore();
  if (range.top > 0 || BAR.top + lanes * BAR.step + 8 > height) {
    // How much of the lanes is in sight.
    const whole = lanes * BAR.step + 8, room = height - BAR.top;
    stripPen.fillStyle = faint;
    stripPen.fillRect(width - 5, BAR.top + range.top / whole * room, 3, room / whole * room);
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

// Makes the time in sight longer or shorter, around a place of the strip.
function zoomTime(factor, share) {
  const at = range.from + share * (range.to - range.from);
  const length = Math.max(10, Math.min(profile.launch_ns * 4 + 1000, (range.to - range.from) * factor));
  range.from = at - share * length;
  range.to = range.from + length;
  redraw();
}

function niceStep(rough) {
  const power = Math.pow(10, Math.floor(Math.log10(Math.max(1, rough))));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough) || 10 * power;
}

function barAt(event) {
  const area = strip.getBoundingClientRect();
  const at = range.from + (event.clientX - area.left) / strip.clientWidth * (range.to - range.from);
  const slack = (range.to - range.from) / strip.clientWidth * 3;
  if (event.clientY - area.top < BAR.top) return undefined;
  const lane = Math.floor((event.clientY - area.top - BAR.top + range.top) / BAR.step);
  return bars.find(bar => bar.lane === lane && at >= bar.start - slack && at <= bar.end + slack);
}

if (profile) {
  times.hidden = false;
  makeBars();
  document.getElementById('times-title').textContent =
    'One launch: ' + duration(profile.launch_ns) + (lanes * BAR.step + BAR.top > BAR.most ? ' · ' + lanes + ' lanes, drag to see all' : '') + (profile.spans_left_out ? ' · ' + profile.spans_left_out + ' further runs are only summed up' : '');
  document.getElementById('times-fit').onclick = wholeLaunch;
  let drag = null;
  strip.addEventListener('pointerdown', event => {
    drag = { x: event.clientX, y: event.clientY, from: range.from, to: range.to, top: range.top, moved: false };
    strip.setPointerCapture(event.pointerId);
  });
  strip.addEventListener('pointermove', event => {
    if (drag) {
      const shift = (event.clientX - drag.x) / strip.clientWidth * (drag.to - drag.from);
      if (Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 3) drag.moved = true;
      scrollLanes(drag.top - (event.clientY - drag.y));
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
    if (bar) select(bar.node, true, bar);
  });
  strip.addEventListener('pointerleave', () => tip(null));
  strip.addEventListener('wheel', event => {
    event.preventDefault();
    const area = strip.getBoundingClientRect();
    zoomTime(Math.exp(event.deltaY * 0.0015), (event.clientX - area.left) / strip.clientWidth);
  }, { passive: false });
  strip.addEventListener('keydown', event => {
    const length = range.to - range.from;
    const move = share => { range.from += share * length; range.to += share * length; redraw(); };
    const keys = {
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), '+': () => zoomTime(0.7, 0.5), '-': () => zoomTime(1 / 0.7, 0.5),
      ArrowUp: () => { scrollLanes(range.top - BAR.step); redraw(); }, ArrowDown: () => { scrollLanes(range.top + BAR.step); redraw(); }, Home: wholeLaunch,
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
}
