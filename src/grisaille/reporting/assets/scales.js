// Axes: round numbers on them, and numbers as text.

function ticks(low, high, about) {
  const raw = (high - low) / Math.max(about, 1);
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const steps = [10, 5, 2, 1, 0.5, 0.2].map((m) => m * power);
  const on = (step) => Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
  let step = steps.filter((s) => s >= raw * 0.999).pop();
  if (on(step) < 2) step = steps.find((s) => on(s) >= 2) || step;
  const found = Array.from({ length: on(step) }, (_, k) => (Math.ceil(low / step - 1e-9) + k) * step);
  return { step, values: found.map((v) => (Math.abs(v) < 1e-9 * step ? 0 : v)) };
}

function decades(low, high) {
  const every = Math.max(1, Math.ceil((high - low) / 6));
  const found = [];
  for (let k = Math.ceil(low - 1e-9); k <= high + 1e-9; k += every) found.push(k);
  return found.length > 1 ? { step: 1, values: found } : ticks(low, high, 4);
}

function decadeText(exponent) {
  if (!Number.isInteger(exponent)) return valueText(Number(Math.pow(10, exponent).toPrecision(2)));
  return Math.abs(exponent) <= 3 ? String(Number(Math.pow(10, exponent).toPrecision(1))) : `1e${exponent}`.replace("-", "−");
}

function tickText(value, step) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.max(0, Math.ceil(Math.log10(size / step) - 0.01))).replace(/\.?0+e/, "e").replace("e+", "e").replace("-", "−");
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return value.toFixed(Math.min(decimals, 12)).replace("-", "−");
}

function valueText(value) {
  if (value === null || !isFinite(value)) return "—";
  const size = Math.abs(value);
  const text = size !== 0 && (size >= 1e6 || size < 1e-4) ? value.toExponential(4) : String(Number(value.toPrecision(6)));
  return text.replace(/-/g, "−");
}

function spread(x) {
  if (Array.isArray(x)) return x;
  return Array.from({ length: x.count }, (_, k) => x.from + k * x.step);
}

// First index with x[index] >= value, for ascending x.
function firstAt(x, value) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
