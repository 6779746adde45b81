// What colour a node has, by kind or by time. Both scales also differ in lightness, so that they read without colour vision.
const KIND_COLOURS = {
  kernel: '#4c78a8', memcpy: '#54a24b', memset: '#88c9a1', alloc: '#b79a20', free: '#d8c373', callback: '#e45756',
  event_record: '#9d755d', record: '#9d755d', event_wait: '#bab0ac', wait: '#bab0ac', child: '#79706e', if: '#c98bb9', if_else: '#a35f92', 'if-else': '#a35f92', while: '#d67195',
  switch: '#7c4a8c', empty: '#c8ccd2', opaque: '#5f6b7a',
};
// Longer is darker on a light page, and brighter on a dark one.
const HEAT = {
  light: [[242, 240, 230], [253, 212, 120], [244, 140, 60], [205, 50, 60], [95, 15, 80]],
  dark: [[58, 62, 74], [104, 50, 112], [196, 62, 78], [246, 150, 56], [255, 232, 150]],
};

function mix(scale, share) {
  const place = Math.max(0, Math.min(1, share)) * (scale.length - 1);
  const low = Math.min(Math.floor(place), scale.length - 2);
  const part = place - low;
  return scale[low].map((value, channel) => Math.round(value * (1 - part) + scale[low + 1][channel] * part));
}

function heat(share) {
  return 'rgb(' + mix(HEAT[document.documentElement.dataset.theme] || HEAT.light, share).join(',') + ')';
}

function fillOf(node, mode) {
  if (mode === 'time') {
    if (!node.times) return css('--untimed');
    // The square root spreads short times apart.
    return heat(Math.sqrt(node.times.busy_ns / Math.max(1, longest)));
  }
  return KIND_COLOURS[node.kind] || '#8f99a6';
}

function inkOn(colour) {
  const [red, green, blue] = colour.startsWith('#')
    ? [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16))
    : colour.match(/\d+/g).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 150 ? '#15181d' : '#ffffff';
}

// The colours of the page, by theme: asking the browser for each node would take longer than drawing it.
const cssColours = new Map();
function css(name) {
  const key = document.documentElement.dataset.theme + name;
  let value = cssColours.get(key);
  if (value === undefined) cssColours.set(key, value = getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return value;
}
