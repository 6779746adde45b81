// The picture and the profile, linked: every node knows its parent, its graph and its times.
'use strict';

const picture = JSON.parse(document.getElementById('picture').textContent);
const profile = JSON.parse(document.getElementById('profile').textContent);
const nodes = new Map();

// Names may be empty, and hold characters that would reorder or break what stands beside them.
function shown(name) {
  return name.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, ' ').trim() || '(no name)';
}

function link(graph, parent) {
  const here = new Map();
  graph.nodes.forEach((node, index) => {
    node.parent = parent;
    node.name = shown(node.name);
    node.index = index;
    node.before = [];
    node.after = [];
    node.bodies = node.bodies || [];
    node.open = false;
    here.set(node.id, node);
    nodes.set(node.id, node);
    node.bodies.forEach(body => link(body, node));
  });
  graph.edges = graph.edges.map(edge => ({ from: here.get(edge.from), to: here.get(edge.to), programmatic: !!edge.programmatic }));
  graph.edges.forEach(edge => { edge.from.after.push(edge.to); edge.to.before.push(edge.from); });
}
link(picture.graph, null);

// Times in nanoseconds. A node without a row in the profile has none.
const spans = (profile && profile.spans) || [];
if (profile) {
  for (const row of profile.nodes || []) {
    const node = nodes.get(row.id);
    if (node) node.times = row;
  }
  (profile.critical_path || []).forEach(step => {
    // The nodes around it are on the path too.
    for (let node = nodes.get(step.node); node && !node.critical; node = node.parent) node.critical = true;
  });
}
let longest = 0;
nodes.forEach(node => { if (!node.bodies.length && node.times) longest = Math.max(longest, node.times.busy_ns); });

// What a node is called where there is room for how often it went round.
function label(node) {
  const passes = node.times && node.times.passes;
  return node.name + (passes != null ? '  ×' + passes : '');
}

// A time with three digits and its unit. A time that would round up to a thousand gets the next unit.
function duration(ns) {
  if (ns == null) return '';
  if (ns < 1e3) return ns.toFixed(0) + ' ns';
  const [unit, name] = ns < 999.5e3 ? [1e3, 'µs'] : ns < 999.5e6 ? [1e6, 'ms'] : [1e9, 's'];
  return (ns < 999.5e9 ? (ns / unit).toPrecision(3) : (ns / unit).toFixed(0)) + ' ' + name;
}

// A point in time, to compare it with others close by: with the digits that steps of this length need.
function moment(ns, step) {
  const [unit, name] = ns < 1e3 ? [1, 'ns'] : ns < 1e6 ? [1e3, 'µs'] : ns < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  return (ns / unit).toFixed(Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9))) + ' ' + name;
}

// A time that may be off by more than it is long says only that a node takes next to nothing.
function isUnsure(node) {
  const times = node.times;
  return !!times && times.runs > 0 && times.uncertainty_ns > 0 && times.busy_ns / times.runs <= times.uncertainty_ns;
}

function pathOf(node) {
  const path = [];
  for (let at = node; at; at = at.parent) path.unshift(at);
  return path;
}
