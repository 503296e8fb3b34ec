// Dates on an axis: times stay numbers, dates = { zero, unit, shifts } says which instant they are and what clocks showed.
// "On the wall" is a time as a clock in that zone shows it, in milliseconds as if it were UTC.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const SPACINGS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500], ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND), ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR), ...[1, 2, 7, 14].map((n) => n * DAY),
];
const MONTHLY = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200];

function shiftAt(instant, dates) {
  let found = dates.shifts[0];
  for (const shift of dates.shifts) if (shift[0] === null || shift[0] <= instant) found = shift;
  return found;
}

function onWall(value, dates) {
  const instant = dates.zero + value * dates.unit;
  return instant + shiftAt(instant, dates)[1];
}

// The number of a time on the wall; null where the clock skips it.
function offWall(wall, dates) {
  for (const shift of dates.shifts) {
    const instant = wall - shift[1];
    if (shiftAt(instant, dates) === shift) return (instant - dates.zero) / dates.unit;
  }
  return null;
}

function dateTicks(low, high, about, dates) {
  const from = onWall(low, dates), to = onWall(high, dates), raw = (to - from) / Math.max(about, 1);
  const spacing = SPACINGS.find((s) => s >= raw), walls = [];
  if (spacing) {
    const origin = spacing % (7 * DAY) === 0 ? 4 * DAY : 0; // weeks begin on Mondays
    for (let w = Math.ceil((from - origin) / spacing) * spacing + origin; w <= to; w += spacing) walls.push(w);
  } else {
    const months = MONTHLY.find((m) => m * 30.44 * DAY >= raw) || MONTHLY[MONTHLY.length - 1];
    const begin = new Date(from);
    let month = Math.ceil((12 * begin.getUTCFullYear() + begin.getUTCMonth()) / months) * months;
    for (; monthStart(month) <= to; month += months) if (monthStart(month) >= from) walls.push(monthStart(month));
  }
  const values = walls.map((w) => offWall(w, dates)).filter((v) => v !== null && v >= low && v <= high);
  return { step: spacing || 31 * DAY, values };
}

function monthStart(month) {
  const date = new Date(0);
  date.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
  return date.getTime();
}

function padded(number, digits) {
  return String(number).padStart(digits || 2, "0");
}

function clockText(date, step) {
  const text = `${padded(date.getUTCHours())}:${padded(date.getUTCMinutes())}`;
  if (step >= MINUTE) return text;
  return `${text}:${padded(date.getUTCSeconds())}${step >= SECOND ? "" : `.${padded(date.getUTCMilliseconds(), 3)}`}`;
}

function dayText(date) {
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

function dateTickText(value, step, dates) {
  const date = new Date(Math.round(onWall(value, dates)));
  if (step > 14 * DAY) return date.getUTCMonth() === 0 ? String(date.getUTCFullYear()) : MONTHS[date.getUTCMonth()];
  return step >= DAY || date.getTime() % DAY === 0 ? dayText(date) : clockText(date, step);
}

// What ticks leave out: the year, and the day where all of them lie in one.
function spanText(low, high, dates) {
  const [from, to] = [low, high].map((v) => new Date(Math.round(onWall(v, dates))));
  const year = (date) => date.getUTCFullYear();
  if (year(from) !== year(to)) return `${year(from)} – ${year(to)}`;
  if (dayText(from) === dayText(to)) return `${dayText(from)} ${year(from)}`;
  return to - from < 62 * DAY ? `${dayText(from)} – ${dayText(to)} ${year(to)}` : String(year(to));
}

function stampText(value, dates) {
  const instant = Math.round(dates.zero + value * dates.unit), shift = shiftAt(instant, dates), date = new Date(instant + shift[1]);
  const step = date.getTime() % MINUTE === 0 ? MINUTE : date.getTime() % SECOND === 0 ? SECOND : 1;
  const day = `${date.getUTCFullYear()}-${padded(date.getUTCMonth() + 1)}-${padded(date.getUTCDate())}`;
  return `${day} ${clockText(date, step)} ${shift[2]}`.trim();
}
