// An interactive chart: drag to zoom, point to read, keys and buttons for both, a legend that hides series.

const linked = new Map();

class Plot {
  constructor(host, spec) {
    this.host = host;
    this.spec = spec;
    this.canvas = host.querySelector(".canvas");
    this.zoom = { x: null, y: null };
    this.hidden = new Set();
    for (const s of spec.series) s.x = spread(s.x);
    if (spec.link) linked.set(spec.link, [...(linked.get(spec.link) || []), this]);
    this.said = this.add("output", "visually-hidden", host);
    this.tip = this.add("div", "tip", host);
    this.tip.hidden = true;
    this.buildBar();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    this.draw();
  }

  add(name, className, parent) {
    const made = document.createElement(name);
    made.className = className;
    parent.appendChild(made);
    return made;
  }

  buildBar() {
    const tools = this.add("div", "tools", this.host);
    this.host.insertBefore(tools, this.canvas);
    if (this.spec.series.length > 1) {
      const legend = this.add("div", "legend", this.host);
      this.host.insertBefore(legend, this.canvas);
      this.spec.series.forEach((s, k) => this.buildKey(legend, s, k));
    }
    const button = (text, name, act) => {
      const made = this.add("button", "", tools);
      made.type = "button";
      made.textContent = text;
      made.setAttribute("aria-label", name);
      made.title = name;
      made.addEventListener("click", act);
      return made;
    };
    button("+", "Zoom in", () => this.scale(0.5));
    button("−", "Zoom out", () => this.scale(2));
    this.resetButton = button("⤢", "Show everything", () => this.show({ x: null, y: null }));
    this.resetButton.disabled = true;
  }

  buildKey(legend, series, k) {
    const key = this.add("button", "key", legend);
    key.type = "button";
    key.setAttribute("aria-pressed", "true");
    this.add("span", `swatch ${series.kind} c${series.color}`, key);
    key.append(series.name);
    key.addEventListener("click", () => {
      const hide = !this.hidden.has(k);
      if (hide) this.hidden.add(k); else this.hidden.delete(k);
      key.setAttribute("aria-pressed", String(!hide));
      this.draw();
    });
  }

  get shown() {
    return this.spec.series.filter((_, k) => !this.hidden.has(k));
  }

  get fullX() {
    const ends = (linked.get(this.spec.link) || [this]).map((plot) => plot.ownX);
    return [Math.min(...ends.map((e) => e[0])), Math.max(...ends.map((e) => e[1]))];
  }

  get ownX() {
    if (this.ends) return this.ends;
    let low = Infinity, high = -Infinity;
    for (const s of this.spec.series) for (const v of s.x) { if (v < low) low = v; if (v > high) high = v; }
    for (const v of this.spec.marks || []) { low = Math.min(low, v); high = Math.max(high, v); }
    if (!(high > low)) { low = isFinite(low) ? low - 0.5 : 0; high = low + 1; }
    const solid = this.spec.series.every((s) => s.kind === "line" || s.kind === "band" || s.kind === "bars");
    const room = solid ? 0 : 0.012 * (high - low);
    return (this.ends = [low - room, high + room]);
  }

  fullY(x) {
    if (this.spec.range && !this.zoom.x) return this.spec.range;
    let low = Infinity, high = -Infinity;
    const take = (v) => { if (v !== null && isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); } };
    for (const s of this.shown) {
      for (let k = 0; k < s.x.length; k++) {
        if (s.x[k] < x[0] || s.x[k] > x[1]) continue;
        take(this.raise(s.y[k]));
        if (s.upper) take(this.raise(s.upper[k]));
      }
      if (s.kind === "stems" || s.kind === "bars") take(0);
    }
    for (const v of this.spec.levels || []) take(this.raise(v));
    if (!(high > low)) { const middle = isFinite(low) ? low : 0; low = middle - 0.5; high = middle + 0.5; }
    const room = 0.06 * (high - low);
    const grounded = this.shown.every((s) => s.kind === "bars");
    return [grounded ? 0 : low - room, high + room];
  }

  raise(v) {
    return !this.spec.log ? v : v > 0 ? Math.log10(v) : null;
  }

  draw() {
    const width = this.canvas.clientWidth || (this.host.closest(".grid-2") ? 380 : 720), height = this.spec.height || 240;
    const x = this.zoom.x || this.fullX, y = this.zoom.y || this.fullY(x);
    const box = { left: 72, top: 8, width: Math.max(width - 84, 40), height: height - 52 };
    const px = (v) => box.left + (box.width * (v - x[0])) / (x[1] - x[0]);
    const py = (v) => box.top + box.height * (1 - (this.raise(v) - y[0]) / (y[1] - y[0]));
    const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": "true", focusable: "false" });
    drawAxes(svg, box, this.spec, { x, y }, px, py);
    const id = `clip${this.host.dataset.chart}`;
    node("rect", { x: box.left, y: box.top, width: box.width, height: box.height }, node("clipPath", { id }, svg));
    const inside = node("g", { "clip-path": `url(#${id})` }, svg);
    for (const v of this.spec.levels || []) node("line", { x1: box.left, x2: box.left + box.width, y1: py(v), y2: py(v), class: v === 0 ? "level zero" : "level" }, inside);
    const layers = [...this.shown].sort((a, b) => (b.kind === "band") - (a.kind === "band"));
    for (const s of layers) KINDS[s.kind](s, this.visible(s, x, px), px, py, inside);
    for (const v of this.spec.marks || []) node("line", { x1: px(v), x2: px(v), y1: box.top, y2: box.top + box.height, class: "level" }, inside);
    this.cursor = node("g", { class: "cursor" }, svg);
    this.brush = node("rect", { class: "brush", height: 0, width: 0 }, svg);
    this.canvas.replaceChildren(svg);
    this.view = { x, y, box, px, py };
  }

  visible(s, x, px) {
    let from = 0, to = s.x.length;
    if (s.kind !== "points") {
      from = Math.max(firstAt(s.x, x[0]) - 1, 0);
      to = Math.min(firstAt(s.x, x[1]) + 1, s.x.length);
    }
    if (to - from > 4 * this.canvas.clientWidth && (s.kind === "line" || s.kind === "steps")) return extremes(s.x, s.y, from, to, px);
    return Array.from({ length: to - from }, (_, k) => from + k);
  }

  show(zoom, alone) {
    const full = this.fullX;
    if (zoom.x && zoom.x[0] <= full[0] && zoom.x[1] >= full[1]) zoom = { ...zoom, x: null };
    this.zoom = zoom;
    this.draw();
    this.resetButton.disabled = !zoom.x && !zoom.y;
    this.host.dataset.zoomed = String(!this.resetButton.disabled);
    if (alone) return;
    this.said.textContent = zoom.x ? `showing ${this.xText(zoom.x[0])} to ${this.xText(zoom.x[1])}` : "showing everything";
    for (const other of linked.get(this.spec.link) || []) if (other !== this) other.show({ x: zoom.x, y: null }, true);
  }

  xText(value) {
    return this.spec.dates ? stampText(value, this.spec.dates) : valueText(value);
  }

  scale(factor) {
    const [low, high] = this.view.x, middle = (low + high) / 2, half = ((high - low) / 2) * factor;
    this.show({ x: [middle - half, middle + half], y: null });
  }

  pan(share) {
    if (!this.zoom.x) return;
    const [low, high] = this.view.x, full = this.fullX;
    const by = Math.max(full[0] - low, Math.min(full[1] - high, share * (high - low)));
    this.show({ x: [low + by, high + by], y: this.zoom.y });
  }

  listen() {
    const c = this.canvas;
    c.addEventListener("pointerdown", (e) => this.press(e));
    c.addEventListener("pointermove", (e) => (this.from ? this.drag(e) : this.point(e)));
    c.addEventListener("pointerup", (e) => this.release(e));
    c.addEventListener("pointercancel", () => { this.from = null; this.draw(); });
    c.addEventListener("pointerleave", () => { if (!this.from) this.leave(); });
    c.addEventListener("keydown", (e) => this.key(e));
  }

  key(event) {
    const act = {
      "+": () => this.scale(0.5), "=": () => this.scale(0.5), "-": () => this.scale(2), ArrowLeft: () => this.pan(-0.2),
      ArrowRight: () => this.pan(0.2), 0: () => this.show({ x: null, y: null }), Escape: () => this.show({ x: null, y: null }),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  at(event) {
    const place = this.canvas.getBoundingClientRect(), scale = (this.canvas.clientWidth || 720) / place.width;
    return [(event.clientX - place.left) * scale, (event.clientY - place.top) * scale];
  }

  press(event) {
    if (event.button !== 0) return;
    this.from = this.at(event);
    this.leave();
    this.canvas.setPointerCapture(event.pointerId);
  }

  // A nearly horizontal drag chooses a stretch of x; otherwise both axes are zoomed.
  chosen(event) {
    const [x, y] = this.at(event), { box } = this.view;
    const inX = (v) => Math.min(Math.max(v, box.left), box.left + box.width);
    const inY = (v) => Math.min(Math.max(v, box.top), box.top + box.height);
    const both = event.pointerType !== "touch" && Math.abs(y - this.from[1]) > 24;
    const xs = [inX(Math.min(x, this.from[0])), inX(Math.max(x, this.from[0]))];
    const ys = both ? [inY(Math.min(y, this.from[1])), inY(Math.max(y, this.from[1]))] : [box.top, box.top + box.height];
    return { xs, ys, both };
  }

  drag(event) {
    const { xs, ys } = this.chosen(event);
    for (const [key, value] of Object.entries({ x: xs[0], width: xs[1] - xs[0], y: ys[0], height: ys[1] - ys[0] })) this.brush.setAttribute(key, value);
  }

  release(event) {
    if (!this.from) return;
    const { xs, ys, both } = this.chosen(event), { box, x, y } = this.view;
    this.from = null;
    if (xs[1] - xs[0] < 6) return this.click(event);
    const toX = (p) => x[0] + ((p - box.left) / box.width) * (x[1] - x[0]);
    const toY = (p) => y[1] - ((p - box.top) / box.height) * (y[1] - y[0]);
    this.show({ x: xs.map(toX), y: both ? [toY(ys[1]), toY(ys[0])] : null });
  }

  // Two clicks or taps in a row show everything; the browser's own dblclick gets lost when the picture is redrawn.
  click(event) {
    const twice = event.timeStamp - (this.clicked || -1e9) < 400;
    this.clicked = twice ? null : event.timeStamp;
    if (twice) return this.show({ x: null, y: null });
    this.draw();
    this.point(event);
  }

  point(event) {
    const { box, x, px, py } = this.view, [left] = this.at(event);
    if (left < box.left || left > box.left + box.width) return this.leave();
    const value = x[0] + ((left - box.left) / box.width) * (x[1] - x[0]);
    const rows = [];
    let nearest = null;
    this.cursor.replaceChildren();
    for (const s of this.shown) {
      if (s.kind === "bars" || !s.x.length) continue;
      let k = firstAt(s.x, value);
      if (s.kind === "steps") k = Math.max(k - 1, 0);
      else if (k === s.x.length || (k > 0 && value - s.x[k - 1] < s.x[k] - value)) k -= 1;
      if (nearest === null || Math.abs(s.x[k] - value) < Math.abs(nearest - value)) nearest = s.kind === "steps" ? value : s.x[k];
      rows.push([s, s.upper ? `${valueText(s.y[k])} … ${valueText(s.upper[k])}` : valueText(s.y[k])]);
      if (!s.upper && s.y[k] !== null && s.kind !== "steps") node("circle", { cx: px(s.x[k]), cy: py(s.y[k]), r: 4, class: `c${s.color}` }, this.cursor);
    }
    if (nearest === null) return this.leave();
    node("line", { x1: px(nearest), x2: px(nearest), y1: box.top, y2: box.top + box.height }, this.cursor);
    this.tell(nearest, rows, px(nearest), box);
  }

  tell(value, rows, left, box) {
    this.tip.replaceChildren();
    this.add("div", "tip-head", this.tip).textContent = `${this.spec.x}: ${this.xText(value)}`;
    for (const [s, text] of rows) {
      const line = this.add("div", "", this.tip);
      this.add("span", `swatch ${s.kind} c${s.color}`, line);
      line.append(`${s.name}: ${text}`);
    }
    this.tip.hidden = false;
    const flip = left > box.left + box.width / 2;
    this.tip.style.left = flip ? "auto" : `${left + 12}px`;
    this.tip.style.right = flip ? `${this.host.clientWidth - left + 12}px` : "auto";
    this.tip.style.top = `${this.canvas.offsetTop + 12}px`;
  }

  leave() {
    this.tip.hidden = true;
    if (this.cursor) this.cursor.replaceChildren();
  }
}
