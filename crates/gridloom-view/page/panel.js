// The panel beside the graph: what is known of the selected node, or of the whole.
const panel = document.getElementById('panel');

// A longer text scrolls in a place of its own.
const LONG = 300;
// Of more nodes around a node, the innermost are named.
const MOST_AROUND = 5;

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text != null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function table(rows) {
  const made = element('table', null, panel);
  for (const [key, value, number] of rows) {
    const row = element('tr', null, made);
    element('td', key, row);
    const cell = element('td', null, row);
    if (number) cell.className = 'number';
    const long = value.length > LONG;
    (long ? element('div', null, cell) : cell).append(value);
    if (long) cell.firstChild.className = 'long';
  }
}

function linkTo(node, parent) {
  const made = element('a', node.name, parent);
  made.tabIndex = 0;
  made.onclick = () => select(node, true);
  made.onkeydown = event => { if (event.key === 'Enter') select(node, true); };
}

function nodeList(title, list) {
  if (!list.length) return;
  element('h3', title + (list.length > 1 ? ' (' + list.length + ')' : ''), panel);
  for (const node of list.slice(0, 50)) { const line = element('div', null, panel); linkTo(node, line); }
  if (list.length > 50) element('div', 'and ' + (list.length - 50) + ' more', panel);
}

function describe(node) {
  panel.replaceChildren();
  if (!node) { overview(); return; }
  element('h2', node.name, panel);
  const path = pathOf(node);
  if (path.length > 1) {
    const line = element('div', null, panel);
    if (path.length > MOST_AROUND + 1) line.append('… › ');
    path.slice(0, -1).slice(-MOST_AROUND).forEach(at => { linkTo(at, line); line.append(' › '); });
  }
  table([['kind', node.kind], ...node.facts]);
  if (node.bodies.length) {
    const count = node.bodies.reduce((sum, body) => sum + body.nodes.length, 0);
    const button = element('button', node.open ? 'Fold' : 'Unfold (' + count + ' nodes inside)', panel);
    button.style.marginTop = '8px';
    button.onclick = () => { toggle(node); describe(node); };
  }
  if (selectedRun && selectedRun.node === node) {
    element('h3', 'This run', panel);
    const rows = [['time', duration(selectedRun.end - selectedRun.start), true], ['start', moment(selectedRun.start, 10), true], ['end', moment(selectedRun.end, 10), true]];
    if (selectedRun.pass && selectedRun.pass.length) rows.push(['pass, from 0', selectedRun.pass.join(' / '), true]);
    if (selectedRun.thread != null) rows.push(['thread', String(selectedRun.thread), true]);
    table(rows);
  }
  const times = node.times;
  if (times) {
    element('h3', (times.runs > 1 ? 'All runs' : 'Time') + (node.critical ? ', on the critical path' : ''), panel);
    const rows = [['busy', duration(times.busy_ns), true], ['runs', String(times.runs), true]];
    if (times.runs > 1) rows.push(['one run', duration(times.min_ns) + ' to ' + duration(times.max_ns), true]);
    if (times.uncertainty_ns) rows.push(['a run may be off by', '± ' + duration(times.uncertainty_ns), true]);
    if (times.passes != null) rows.push(['passes', String(times.passes), true]);
    rows.push(['first start', duration(times.start_ns), true], ['last end', duration(times.end_ns), true]);
    if (profile.launch_ns) rows.push(['share of the launch', (100 * times.busy_ns / profile.launch_ns).toFixed(1) + ' %', true]);
    if (times.critical_ns) rows.push(['on the critical path', duration(times.critical_ns), true]);
    if (times.gap_ns) rows.push(['waited though ready', duration(times.gap_ns), true]);
    if (times.on_host) rows.push(['runs on', 'the host']);
    if (times.disabled) rows.push(['disabled', 'yes']);
    if (times.bytes && times.busy_ns && !isUnsure(node)) rows.push(['rate', (times.bytes * times.runs / times.busy_ns).toPrecision(3) + ' GB/s', true]);
    table(rows);
    if (isUnsure(node)) element('p', 'This node is too short for its time to be reliable.', panel);
  }
  nodeList('Waits for', node.before);
  nodeList('Then', node.after);
}

function overview() {
  element('h2', picture.title, panel);
  const kinds = new Map();
  nodes.forEach(node => kinds.set(node.kind, (kinds.get(node.kind) || 0) + 1));
  table([['nodes', String(nodes.size), true], ...[...kinds].sort((a, b) => b[1] - a[1]).map(([kind, count]) => ['  ' + kind, String(count), true])]);
  if (!nodes.size) return;
  if (!profile) { element('h3', 'Click a node to see what it does.', panel); keyList(); return; }
  element('h3', 'One launch' + (profile.device ? ' on ' + profile.device : ''), panel);
  const path = (profile.critical_path || []).reduce((sum, step) => sum + step.end_ns - step.start_ns, 0);
  table([
    ['launch', duration(profile.launch_ns), true],
    ['on the critical path', duration(path), true],
    ['gaps on it', duration(Math.max(0, profile.launch_ns - path)), true],
    ['nodes at once', (profile.parallelism || 0).toFixed(2) + (profile.possible_parallelism ? ' of ' + profile.possible_parallelism.toFixed(2) + ' possible' : ''), true],
    ...(profile.device_ns != null ? [['on the device', duration(profile.device_ns), true]] : []),
    ...(profile.host_ns ? [['in callbacks', duration(profile.host_ns), true]] : []),
    ...(profile.enqueue_ns != null ? [['call of launch', duration(profile.enqueue_ns), true]] : []),
    ...(profile.method ? [['measured by', profile.method, true]] : []),
    ...(profile.node_cost_ns ? [['cost, taken off', duration(profile.node_cost_ns) + ' a run', true]] : []),
    ...(profile.added_nodes ? [['nodes to measure', String(profile.added_nodes), true], ['measuring before it', duration(profile.before_ns || 0), true]] : []),
    ...(profile.uncertainty_ns ? [['a run may be off by', '± ' + duration(profile.uncertainty_ns), true]] : []),
  ]);
  for (const remark of profile.remarks || []) {
    const line = element('p', null, panel);
    // An option of the command stays on one line.
    remark.split(/(--[\w-]+)/).forEach((part, at) => {
      if (at % 2) element('span', part, line).className = 'option';
      else line.append(part);
    });
  }
  const slow = [...nodes.values()].filter(node => node.times?.busy_ns && !node.bodies.length).sort((a, b) => b.times.busy_ns - a.times.busy_ns).slice(0, 12);
  element('h3', 'Most time', panel);
  const made = element('table', null, panel);
  made.className = 'names';
  for (const node of slow) {
    const row = element('tr', null, made);
    linkTo(node, element('td', null, row));
    element('td', duration(node.times.busy_ns), row).className = 'number';
  }
  keyList();
}

function keyList() {
  element('h3', 'Keys', panel);
  const made = element('table', null, panel);
  const entries = [['/', 'search'], ['↑ ↓', 'node before, after'], ['← →', 'node beside'], ['Enter', 'fold, unfold'], ['e  c', 'unfold all, fold all'], ['+ −  f', 'zoom, show all'], ['Esc', 'select nothing']];
  for (const [keys, meaning] of entries) {
    const row = element('tr', null, made), cell = element('td', null, row);
    keys.split(/ +/).forEach(key => { element('kbd', key, cell); cell.append(' '); });
    element('td', meaning, row);
  }
}
