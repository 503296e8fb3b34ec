// One chart as SVG: axes, then each series by its kind. Long series are drawn by their extremes in each pixel.

const SVG = "http://www.w3.org/2000/svg";

function node(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.appendChild(made);
  return made;
}

function label(text, attributes, parent) {
  node("text", attributes, parent).textContent = text;
}

// The extremes of y in each pixel column, in their order.
function extremes(x, y, from, to, place) {
  const found = [];
  let column = null, low = -1, high = -1;
  const flush = () => { if (low >= 0) found.push(...(low === high ? [low] : [Math.min(low, high), Math.max(low, high)])); };
  for (let k = from; k < to; k++) {
    const here = Math.floor(place(x[k]));
    if (here !== column) { flush(); column = here; low = high = -1; }
    if (y[k] === null) { // a gap stays one
      flush();
      low = high = -1;
      if (found.length && y[found[found.length - 1]] !== null) found.push(k);
      continue;
    }
    if (low < 0 || y[k] < y[low]) low = k;
    if (high < 0 || y[k] > y[high]) high = k;
  }
  flush();
  return found;
}

function polyline(indices, x, y, px, py) {
  let path = "", gap = true;
  for (const k of indices) {
    if (y[k] === null) { gap = true; continue; }
    path += `${gap ? "M" : "L"}${px(x[k]).toFixed(1)} ${py(y[k]).toFixed(1)}`;
    gap = false;
  }
  return path;
}

function stairs(indices, x, y, px, py) {
  let path = "", before = null;
  for (const k of indices) {
    if (y[k] === null) { before = null; continue; }
    path += before === null ? `M${px(x[k]).toFixed(1)} ${py(y[k]).toFixed(1)}` : `H${px(x[k]).toFixed(1)}V${py(y[k]).toFixed(1)}`;
    before = k;
  }
  return path;
}

// One closed part for each stretch without missing ends.
function area(indices, x, lower, upper, px, py) {
  const point = (k, y) => `${px(x[k]).toFixed(1)} ${py(y[k]).toFixed(1)}`;
  const parts = [[]];
  for (const k of indices) {
    if (lower[k] !== null && upper[k] !== null) parts[parts.length - 1].push(k);
    else if (parts[parts.length - 1].length) parts.push([]);
  }
  const closed = (part) => `M${part.map((k) => point(k, lower)).join("L")}L${[...part].reverse().map((k) => point(k, upper)).join("L")}Z`;
  return parts.filter((part) => part.length).map(closed).join("");
}

const KINDS = {
  line: (s, at, px, py, g) => node("path", { d: polyline(at, s.x, s.y, px, py), class: `line c${s.color}` }, g),
  steps: (s, at, px, py, g) => node("path", { d: stairs(at, s.x, s.y, px, py), class: `line c${s.color}` }, g),
  points: (s, at, px, py, g) => {
    const dots = at.filter((k) => s.y[k] !== null).map((k) => `M${px(s.x[k]).toFixed(1)} ${py(s.y[k]).toFixed(1)}h0`);
    node("path", { d: dots.join(""), class: `dots c${s.color}${at.length > 600 ? " small" : ""}` }, g);
  },
  stems: (s, at, px, py, g) => {
    const lines = at.map((k) => `M${px(s.x[k]).toFixed(1)} ${py(0).toFixed(1)}V${py(s.y[k]).toFixed(1)}`);
    node("path", { d: lines.join(""), class: `stems c${s.color}` }, g);
  },
  band: (s, at, px, py, g) => node("path", { d: area(at, s.x, s.y, s.upper, px, py), class: `band c${s.color}` }, g),
  bars: (s, at, px, py, g) => {
    for (let k = 0; k + 1 < s.x.length; k++) {
      const left = px(s.x[k]), right = px(s.x[k + 1]), top = py(s.y[k]);
      node("rect", { x: left, y: top, width: Math.max(right - left - 1, 0.5), height: Math.max(py(0) - top, 0), class: `bar c${s.color}` }, g);
    }
  },
};

function drawAxes(svg, box, spec, window_, px, py) {
  const g = node("g", { class: "axes" }, svg);
  const about = Math.max(2, box.width / 90), [low, high] = window_.x, dates = spec.dates;
  const xt = dates ? dateTicks(low, high, about, dates) : ticks(low, high, about);
  const yt = spec.log ? decades(...window_.y) : ticks(window_.y[0], window_.y[1], Math.max(3, box.height / 40));
  for (const v of xt.values) {
    node("line", { x1: px(v), x2: px(v), y1: box.top, y2: box.top + box.height, class: "grid" }, g);
    label(dates ? dateTickText(v, xt.step, dates) : tickText(v, xt.step), { x: px(v), y: box.top + box.height + 16, "text-anchor": "middle" }, g);
  }
  for (const v of yt.values) {
    const at = box.top + box.height * (1 - (v - window_.y[0]) / (window_.y[1] - window_.y[0]));
    node("line", { x1: box.left, x2: box.left + box.width, y1: at, y2: at, class: "grid" }, g);
    label(spec.log ? decadeText(v) : tickText(v, yt.step), { x: box.left - 6, y: at + 4, "text-anchor": "end" }, g);
  }
  node("rect", { x: box.left, y: box.top, width: box.width, height: box.height, class: "frame" }, g);
  label(dates ? `${spec.x}: ${spanText(low + 0.012 * (high - low), high - 0.012 * (high - low), dates)}` : spec.x, { x: box.left + box.width / 2, y: box.top + box.height + 34, "text-anchor": "middle", class: "name" }, g);
  const middle = box.top + box.height / 2;
  label(spec.y, { x: 12, y: middle, "text-anchor": "middle", class: "name", transform: `rotate(-90 12 ${middle})` }, g);
}
