// What is set up once: buttons, search, colours, keys.
document.getElementById('title').textContent = picture.title;
document.getElementById('summary').textContent = nodes.size + (nodes.size === 1 ? ' node' : ' nodes') + (profile ? ' · ' + duration(profile.launch_ns) : '');

const colour = document.getElementById('colour');
for (const [value, name] of profile ? [['time', 'by time'], ['kind', 'by kind']] : [['kind', 'by kind']]) {
  const option = element('option', name, colour);
  option.value = value;
}
colour.onchange = () => { colourMode = colour.value; legend(); redraw(); };

function legend() {
  const made = document.getElementById('legend');
  made.replaceChildren();
  if (!nodes.size) return;
  const entry = (colour, text) => {
    const item = element('span', null, made), mark = element('i', null, item);
    mark.style.background = colour;
    item.append(text);
    return mark;
  };
  if (colourMode === 'time') {
    for (const share of longest ? [0, 0.25, 0.5, 1] : [0]) entry(heat(share), duration(longest * share * share));
    if ([...nodes.values()].some(node => !node.times)) entry(css('--untimed'), 'not measured').className = 'outlined';
  } else {
    for (const kind of new Set([...nodes.values()].map(node => node.kind))) entry(KIND_COLOURS[kind] || '#8f99a6', kind);
  }
  if (profile) { entry(css('--critical'), 'critical path'); entry(css('--gap'), 'waiting, though ready'); }
}

const search = document.getElementById('search');
const foundText = document.getElementById('found');
let hits = [], hit = -1;
search.addEventListener('input', () => {
  const wanted = search.value.trim().toLowerCase();
  hits = wanted ? [...nodes.values()].filter(node =>
    node.name.toLowerCase().includes(wanted) || node.kind.includes(wanted) || node.facts.some(([, value]) => String(value).toLowerCase().includes(wanted))) : [];
  hit = -1;
  found = new Set(hits);
  foundText.textContent = wanted ? hits.length + ' found' : '';
  redraw();
});
search.addEventListener('keydown', event => {
  if (event.key === 'Escape') { search.value = ''; search.dispatchEvent(new Event('input')); canvas.focus(); }
  if (event.key !== 'Enter' || !hits.length) return;
  hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
  foundText.textContent = (hit + 1) + ' of ' + hits.length;
  select(hits[hit], true);
});

document.getElementById('fit').onclick = fit;
document.getElementById('unfold').onclick = () => foldAll(true);
document.getElementById('fold').onclick = () => foldAll(false);
const root = document.documentElement;
const dark = window.matchMedia('(prefers-color-scheme: dark)');
root.dataset.theme = dark.matches ? 'dark' : 'light';
dark.addEventListener('change', () => { root.dataset.theme = dark.matches ? 'dark' : 'light'; legend(); redraw(); });
document.getElementById('theme').onclick = () => {
  root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
  legend();
  redraw();
};
addEventListener('keydown', event => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT)$/.test(event.target.tagName)) return;
  const keys = {
    '/': () => { event.preventDefault(); search.focus(); }, f: fit, e: () => foldAll(true), c: () => foldAll(false), Escape: () => select(null),
    '+': () => zoom(1.3), '=': () => zoom(1.3), '-': () => zoom(1 / 1.3),
  };
  if (keys[event.key]) keys[event.key]();
  // A focused button or link answers to Enter itself.
  if (event.key === 'Enter' && selected && !/^(BUTTON|A)$/.test(event.target.tagName)) { toggle(selected); describe(selected); }
  if (/^Arrow(Up|Down|Left|Right)$/.test(event.key)) {
    const next = selected ? neighbour(selected, event.key) : picture.graph.nodes[0];
    if (next) { event.preventDefault(); select(next, true); }
  }
});
addEventListener('resize', resized);

// The node that an arrow leads to: along edges up and down, into and out of bodies at their ends, and to the side within
// a layer.
function neighbour(node, key) {
  if (key === 'ArrowDown') return node.open && node.bodies[0].nodes[0] || node.after[0] || (node.parent && node.parent.after[0]);
  if (key === 'ArrowUp') return node.before[0] || node.parent;
  const around = node.parent ? node.parent.bodies.find(body => body.nodes.includes(node)) : picture.graph;
  const step = key === 'ArrowRight' ? 1 : -1;
  const beside = around.nodes.find(other => other.layer === node.layer && other.place === node.place + step);
  if (beside || !node.parent) return beside;
  const body = node.parent.bodies[node.parent.bodies.indexOf(around) + step];
  return body && body.nodes[0];
}

// Small graphs open with their bodies unfolded.
if (nodes.size <= 60) nodes.forEach(node => { node.open = node.bodies.length > 0; });
arrange();
legend();
describe(null);
document.getElementById('empty').hidden = nodes.size > 0;
if (profile) wholeLaunch();
fit();
