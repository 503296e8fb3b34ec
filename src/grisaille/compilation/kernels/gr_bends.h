/* Finds what bends inside a step: knots of tables, abs, minimum and maximum, relations that do not jump.
 *
 * Error control sees F at the stages of a step. A table whose argument passes several knots between two of them may hold a
 * bump there that no stage has met. So a step that passes bends is looked at: where the argument of each bend is at its
 * knot, by the polynomial x(s) through the step, 0 <= s <= 1, F is compared with the slope of that polynomial,
 *
 *   d(s) = F(t + s h, x(s)) - x'(s),      missed = h sum_j w_j |d(s_j)| / tolerance,
 *
 * w_j: half the distance between the points beside s_j. Where that is too much, the step is to end at the last bend before
 * what it has missed. Frozen steps are compared with pieces of themselves instead, and only where they pass two bends:
 * those that pass one have their ends on both sides of it.
 *
 * Where gaps depend on z, the polynomial of z may be poor: z is exact at the stages alone, and what x does not feel does
 * not shorten steps (a voltage on the far side of diodes that block). So where a gap comes close to its bend by the
 * polynomial, z is solved for where the polynomial is worst, and a step whose gaps are doubtful is halved.
 *
 * A bend may be hidden behind another one: 1 - |s - c| / w is below zero at both ends of a step that passes s = c, and
 * above zero next to it. So all gaps are looked at where one of them is zero, and again where others are found there.
 *
 *   GR_BENDS  gaps that are zero at a bend: gr_B       GR_WHOLES  values that are whole numbers at one (floor, tables that
 *             repeat themselves): gr_BW                (structure/bends.py)
 *   GR_BENT   the same of the gaps of relations that are held: GR_GAP_BENDS, gr_GB and GR_GAP_WHOLES, gr_GW (gr_events.h)
 */
#ifndef GR_BENDS_H
#define GR_BENDS_H

#include <math.h>

#include "gr_signal.h"
#include "gr_task.h"

#if GR_HAS_BENDS || GR_BENT

#define GR_ALL_BENDS (GR_BENDS + GR_WHOLES)
#if GR_BENT
#define GR_ALL_GAP_BENDS (GR_GAP_BENDS + GR_GAP_WHOLES)
#define GR_MOST_BENDS (GR_ALL_BENDS > GR_ALL_GAP_BENDS ? GR_ALL_BENDS : GR_ALL_GAP_BENDS)
#else
#define GR_MOST_BENDS GR_ALL_BENDS
#endif
#define GR_BEND_CELLS 4
#define GR_MOST_POINTS 256
#define GR_FEW_POINTS 8    /* up to which the middle between two bends is looked at, too */
#define GR_BEND_SECANTS 6
#define GR_BEND_TURNS 5
#define GR_BEND_DEPTH 3    /* bends behind bends behind bends */
#define GR_BEND_NEAR 0.02  /* of what a gap moves by in a step: how close a turn may be that is looked at */
#define GR_BEND_ON 1e-6    /* of a gap beside an end of a step: how close to zero it is there where the end is on the bend */
#define GR_BEND_APPROACH 0.5 /* of what a gap moves by in a step: how close it comes where its polynomial is looked at */
#define GR_BEND_SURE 1e-6  /* of the same: errors of the polynomial that hide nothing */
#define GR_BEND_CLOSE 0.05 /* of the way to what was missed: a bend so close to the start of a step is behind it */

/* a step that was taken */
typedef struct gr_span gr_span;
struct gr_span {
  const gr_task *k;
  void *run;
  double h;
  long gaps, all; /* entries that are zero at a bend, and these with those that are whole numbers at one */
  void (*bends)(double t, const double *x, const double *z, const double *u, const double *p, double *out);
  void (*inside)(const void *run, double share, double *x, double *z, double *u);
  double (*defect)(void *run, double share); /* h |F - x'| in tolerances */
  long (*solve)(void *run, double share, double *x, double *z, double *u); /* inside, with z solved for; 0: not asked */
};

#if GR_HAS_BENDS
/* of F */
GR_FN void gr_rate_bends(double t, const double *x, const double *z, const double *u, const double *p, double *out) {
  gr_B(t, x, z, u, p, out);
  gr_BW(t, x, z, u, p, out + GR_BENDS);
}
#endif

GR_FN double gr_square(double a) { return a * a; }

/* the cubic through values and slopes at both ends */
GR_FN double gr_cubic(double s, double a, double da, double b, double db) {
  const double r = 1.0 - s;
  return r * r * ((1.0 + 2.0 * s) * a + s * da) + s * s * ((3.0 - 2.0 * s) * b - r * db);
}

GR_FN double gr_cubic_slope(double s, double a, double da, double b, double db) {
  return 6.0 * s * (1.0 - s) * (b - a) + (1.0 - s) * (1.0 - 3.0 * s) * da + s * (3.0 * s - 2.0) * db;
}

GR_ARRAY double gr_bend_shares[GR_BEND_CELLS + 1] = {0.0, 0.27, 0.53, 0.78, 1.0};

GR_FN void gr_bend_values(const gr_span *s, double share, double *out) {
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  const double t = s->k->t + share * s->h;
  s->inside(s->run, share, x, z, u);
  s->bends(t, x, z, u, s->k->p, out);
}

/* bends of entry i between two of its values */
GR_FN double gr_bends_between(const gr_span *s, long i, double a, double b) {
  if (i < s->gaps) return (a < 0.0) != (b < 0.0);
  const double n = fabs(floor(b) - floor(a));
  return n < HUGE_VAL ? n : 0.0;
}

/* the share at which the parabola through three values turns */
GR_FN double gr_parabola_turn(const double *at, const double *v) {
  const double first = (v[1] - v[0]) / (at[1] - at[0]), second = (v[2] - v[1]) / (at[2] - at[1]);
  const double bend = (second - first) / (at[2] - at[0]);
  return 0.5 * (at[0] + at[1]) - 0.5 * first / bend;
}

/* 1 where an end of a step lies on the bend of a gap: so far rounding and the search for bends decide about its sign there */
GR_FN long gr_is_on_bend(double end, double beside) { return fabs(end) <= GR_BEND_ON * (fabs(end) + fabs(beside)); }

/* where gap i, of one sign at all points but for ends on its bend, turns beyond that between two of them; 0: nowhere.
 * `rough`: the polynomial is a cubic, and a gap that comes close counts */
GR_FN double gr_bend_turn(const gr_span *s, long i, const double *values, long rough) {
  double at[3], v[3], out[GR_LEN(GR_MOST_BENDS)], moves = 0.0;
  long near = 0;
  if (i >= s->gaps) return 0.0;
  const double sign = values[GR_BEND_CELLS / 2 * s->all + i];
  for (long c = 0; c <= GR_BEND_CELLS; c++) {
    const long beside = c == 0 ? 1 : c == GR_BEND_CELLS ? GR_BEND_CELLS - 1 : c;
    if ((values[c * s->all + i] < 0.0) != (sign < 0.0) &&
        (beside == c || !gr_is_on_bend(values[c * s->all + i], values[beside * s->all + i]))) return 0.0;
  }
  for (long c = 1; c <= GR_BEND_CELLS; c++) {
    moves += fabs(values[c * s->all + i] - values[(c - 1) * s->all + i]);
    if (fabs(values[c * s->all + i]) < fabs(values[near * s->all + i])) near = c;
  }
  if (near == 0) near = 1;
  if (near == GR_BEND_CELLS) near = GR_BEND_CELLS - 1;
  for (long c = 0; c < 3; c++) {
    at[c] = gr_bend_shares[near - 1 + c];
    v[c] = values[(near - 1 + c) * s->all + i];
  }
  for (long n = 0; n < GR_BEND_TURNS; n++) {
    const double share = gr_parabola_turn(at, v);
    if (!(share > at[0] && share < at[2]) || share == at[1]) return 0.0;
    const double bend = ((v[2] - v[1]) / (at[2] - at[1]) - (v[1] - v[0]) / (at[1] - at[0])) / (at[2] - at[0]);
    const double value = v[1] + (share - at[1]) * ((v[1] - v[0]) / (at[1] - at[0]) + bend * (share - at[0]));
    const long crosses = (value < 0.0) != (v[1] < 0.0), is_close = fabs(value) < GR_BEND_NEAR * moves;
    if (!is_close) return crosses ? share : 0.0;
    if (rough || (crosses && n > 0)) return share;
    gr_bend_values(s, share, out);
    if ((out[i] < 0.0) != (v[1] < 0.0)) return share;
    const long right = share > at[1], nearer = fabs(out[i]) <= fabs(v[1]), end = right == nearer ? 0 : 2;
    if (!nearer) { /* the turn stays beside the middle */
      at[end] = share;
      v[end] = out[i];
      continue;
    }
    at[end] = at[1];
    v[end] = v[1];
    at[1] = share;
    v[1] = out[i];
  }
  return 0.0;
}

/* how many bends a step passes, so many or more (`rough`: or nearly, see gr_bend_turn), those hidden behind others not
 * counted; `values` becomes those at gr_bend_shares */
GR_FN double gr_count_bends(const gr_span *s, double many, long rough, double *values) {
  double n = 0.0;
  for (long c = 0; c <= GR_BEND_CELLS; c++) gr_bend_values(s, gr_bend_shares[c], values + c * s->all);
  for (long i = 0; i < s->all && n < many; i++) {
    for (long c = 0; c < GR_BEND_CELLS; c++)
      n += gr_bends_between(s, i, values[c * s->all + i], values[(c + 1) * s->all + i]);
    if (gr_bend_turn(s, i, values, rough) > 0.0) n += 2.0;
  }
  return n;
}

GR_FN long gr_passes_bends(const gr_span *s, double many, long rough, double *values) {
  return gr_count_bends(s, many, rough, values) >= many;
}

/* the share between a and b, where entry i is va and vb beyond a bend */
GR_COLD double gr_bend_root(const gr_span *s, long i, double level, double a, double va, double b, double vb, long secants) {
  double out[GR_LEN(GR_MOST_BENDS)], share = a + (b - a) * (va / (va - vb));
  const double enough = 1e-6 * (fabs(va) + fabs(vb));
  long side = 0;
  for (long n = 0; n < secants; n++) {
    gr_bend_values(s, share, out);
    const double v = out[i] - level;
    if (!(fabs(v) > enough)) break;
    if ((v < 0.0) == (va < 0.0)) {
      a = share;
      va = v;
      if (side == 1) vb *= 0.5; /* the Illinois rule */
      side = 1;
    } else {
      b = share;
      vb = v;
      if (side == -1) va *= 0.5;
      side = -1;
    }
    share = a + (b - a) * (va / (va - vb));
  }
  return share;
}

/* bends in order: where, and which entry */
typedef struct {
  long n, of[GR_MOST_POINTS + 1];
  double at[GR_MOST_POINTS + 1];
  double upto; /* < 1: there are more beyond this share */
} gr_bend_list;

GR_FN void gr_bend_insert(gr_bend_list *l, double share, long entry) {
  long j = l->n;
  if (!(share > 0.0 && share < 1.0) || l->n >= GR_MOST_POINTS) return;
  for (; j > 0 && l->at[j - 1] > share; j--) {
    l->at[j] = l->at[j - 1];
    l->of[j] = l->of[j - 1];
  }
  l->at[j] = share;
  l->of[j] = entry;
  l->n++;
}

/* Bends between neighbours of a bend that have the same sign there and another one at it. Answers how many there are. */
GR_COLD long gr_bend_unhide(const gr_span *s, gr_bend_list *l) {
  double values[3][GR_LEN(GR_MOST_BENDS)], share[3] = {0.0, 0.0, 0.0};
  const gr_bend_list known = *l;
  long cell = 1, j = 0, n = 0;
  gr_bend_values(s, 0.0, values[1]);
  while (share[1] < 1.0) {
    const long is_bend = j < known.n && known.at[j] < gr_bend_shares[cell];
    share[2] = is_bend ? known.at[j++] : gr_bend_shares[cell++];
    if (!(share[2] > share[1])) continue;
    gr_bend_values(s, share[2], values[2]);
    for (long i = 0; i < s->gaps && n > 0; i++) {
      const double *v0 = values[0] + i, *v1 = values[1] + i, *v2 = values[2] + i;
      if ((*v0 < 0.0) == (*v1 < 0.0) || (*v0 < 0.0) != (*v2 < 0.0)) continue;
      gr_bend_insert(l, gr_bend_root(s, i, 0.0, share[0], *v0, share[1], *v1, GR_BEND_SECANTS), i);
      gr_bend_insert(l, gr_bend_root(s, i, 0.0, share[1], *v1, share[2], *v2, GR_BEND_SECANTS), i);
    }
    for (long m = 0; m < 2; m++) {
      share[m] = share[m + 1];
      for (long i = 0; i < s->all; i++) values[m][i] = values[m + 1][i];
    }
    n++;
  }
  return l->n - known.n;
}

/* The bends of a step in order, with room for the points between them; `values` are those of gr_count_bends. */
GR_COLD void gr_bend_points(const gr_span *s, const double *values, gr_bend_list *l) {
  l->n = 0;
  l->upto = 1.0;
  for (long i = 0; i < s->gaps; i++) {
    const double turn = gr_bend_turn(s, i, values, 0);
    if (turn > 0.0) gr_bend_insert(l, turn, i);
  }
  for (long c = 0; c < GR_BEND_CELLS; c++) {
    const double *va = values + c * s->all, *vb = va + s->all;
    double passed = 0.0;
    for (long i = 0; i < s->all; i++) passed += gr_bends_between(s, i, va[i], vb[i]);
    if ((double)l->n + passed > (double)GR_MOST_POINTS) {
      l->upto = c > 0 ? gr_bend_shares[c] : gr_bend_shares[1] * fmax(1e-3, 0.5 * (double)GR_MOST_POINTS / passed);
      return;
    }
    for (long i = 0; i < s->all; i++) {
      const long count = (long)gr_bends_between(s, i, va[i], vb[i]);
      for (long m = 0; m < count; m++) {
        const double level = i < s->gaps ? 0.0 : floor(fmin(va[i], vb[i])) + 1.0 + (double)m;
        const long secants = passed > GR_FEW_POINTS ? 1 : GR_BEND_SECANTS;
        gr_bend_insert(l, gr_bend_root(s, i, level, gr_bend_shares[c], va[i] - level, gr_bend_shares[c + 1],
                                       vb[i] - level, secants), i);
      }
    }
  }
  for (long n = 0; n < GR_BEND_DEPTH && l->n > 0 && gr_bend_unhide(s, l) > 0; n++) {}
}

/* The bends of a step, where there are so many or more, hidden ones counted; 0 where not */
GR_FN long gr_lists_bends(const gr_span *s, double many, gr_bend_list *l) {
  double values[(GR_BEND_CELLS + 1) * GR_LEN(GR_MOST_BENDS)];
  const double count = gr_count_bends(s, many, 0, values);
  if (count < 1.0) return 0;
  gr_bend_points(s, values, l);
  return count >= many || (double)l->n >= many;
}

#if GR_HAS_Z
GR_ARRAY double gr_bend_worst[2] = {0.4, 0.87}; /* between stages at 0, 0.16, 0.64 and 1 */

/* How close gap i, of one sign at all points, comes to its bend by the polynomial, and where; by how much it moves. */
GR_FN double gr_bend_approach(const gr_span *s, long i, const double *values, double *where, double *moves) {
  double out[GR_LEN(GR_MOST_BENDS)], at[3], v[3], low = fabs(values[i]);
  long near = 0;
  *where = 0.0;
  *moves = 0.0;
  for (long c = 1; c <= GR_BEND_CELLS; c++) {
    *moves += fabs(values[c * s->all + i] - values[(c - 1) * s->all + i]);
    if (fabs(values[c * s->all + i]) < low) low = fabs(values[(near = c) * s->all + i]);
  }
  *where = gr_bend_shares[near];
  if (!(low < GR_BEND_APPROACH * *moves)) return low;
  if (near == 0) near = 1;
  if (near == GR_BEND_CELLS) near = GR_BEND_CELLS - 1;
  for (long c = 0; c < 3; c++) {
    at[c] = gr_bend_shares[near - 1 + c];
    v[c] = values[(near - 1 + c) * s->all + i];
  }
  for (long n = 0; n < 2; n++) {
    const double share = gr_parabola_turn(at, v);
    if (!(share > at[0] && share < at[2]) || share == at[1]) return low;
    gr_bend_values(s, share, out);
    if ((out[i] < 0.0) != (v[1] < 0.0)) low = 0.0;
    if (fabs(out[i]) <= low) {
      low = fabs(out[i]);
      *where = share;
    }
    at[share > at[1] ? 0 : 2] = at[1];
    v[share > at[1] ? 0 : 2] = v[1];
    at[1] = share;
    v[1] = out[i];
  }
  return low;
}

/* 1 where z at a point is another than its polynomial says, as far as the bends of gaps go that come close by it */
GR_COLD long gr_bend_differs(const gr_span *s, double at, const double *values, const double *low, const double *moves) {
  double found[GR_LEN(GR_MOST_BENDS)], guess[GR_LEN(GR_MOST_BENDS)];
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  if (!(at > 0.0 && at < 1.0)) return 0;
  gr_bend_values(s, at, guess);
  if (s->solve(s->run, at, x, z, u)) return 1;
  s->bends(s->k->t + at * s->h, x, z, u, s->k->p, found);
  for (long i = 0; i < s->gaps; i++) {
    if (!(low[i] < HUGE_VAL)) continue;
    const double apart = fabs(found[i] - guess[i]);
    if ((found[i] < 0.0) != (values[i] < 0.0)) return 1;
    if (apart > GR_BEND_SURE * moves[i] && fmin(low[i], fabs(found[i])) < 2.0 * apart) return 1;
  }
  return 0;
}

/* 1 where gap i, of one sign at both ends, is said to pass its bend and come back, and does so otherwise than the
 * polynomial says or unseen by the step */
GR_COLD long gr_bend_returns_otherwise(const gr_span *s, long i, const double *values) {
  double found[GR_LEN(GR_MOST_BENDS)], x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  long far = 0;
  for (long c = 1; c < GR_BEND_CELLS; c++)
    if ((values[c * s->all + i] < 0.0) != (values[i] < 0.0) &&
        (far == 0 || fabs(values[c * s->all + i]) > fabs(values[far * s->all + i])))
      far = c;
  if (far == 0 || (values[GR_BEND_CELLS * s->all + i] < 0.0) != (values[i] < 0.0)) return 0;
  if (s->solve(s->run, gr_bend_shares[far], x, z, u)) return 1;
  s->bends(s->k->t + gr_bend_shares[far] * s->h, x, z, u, s->k->p, found);
  const double guess = values[far * s->all + i];
  if (!(fabs(found[i] - guess) <= GR_BEND_CLOSE * fabs(guess))) return 1;
  return !(0.25 * s->defect(s->run, gr_bend_shares[far]) <= 1.0);
}

/* 1 where the polynomial of z does not say whether a gap passes its bend and comes back */
GR_COLD long gr_bend_doubts(const gr_span *s) {
  double values[(GR_BEND_CELLS + 1) * GR_LEN(GR_MOST_BENDS)], low[GR_LEN(GR_MOST_BENDS)], moves[GR_LEN(GR_MOST_BENDS)];
  double at = 0.0, where, closest = 1.0;
  for (long c = 0; c <= GR_BEND_CELLS; c++) gr_bend_values(s, gr_bend_shares[c], values + c * s->all);
  for (long i = 0; i < s->gaps; i++) {
    long passes = 0;
    for (long c = 1; c <= GR_BEND_CELLS; c++) passes |= (values[c * s->all + i] < 0.0) != (values[i] < 0.0);
    if (passes && gr_bend_returns_otherwise(s, i, values)) return 1;
    low[i] = passes ? HUGE_VAL : gr_bend_approach(s, i, values, &where, moves + i);
    if (passes || !(low[i] < GR_BEND_APPROACH * moves[i])) {
      low[i] = HUGE_VAL;
    } else if (low[i] < closest * moves[i]) {
      closest = low[i] / moves[i];
      at = where;
    }
  }
  if (!(closest < 1.0)) return 0;
  return gr_bend_differs(s, at, values, low, moves) || gr_bend_differs(s, gr_bend_worst[0], values, low, moves) ||
         gr_bend_differs(s, gr_bend_worst[1], values, low, moves);
}
#endif

GR_FN long gr_bend_middles(double *at, long n) {
  if (n < 2 || n > GR_FEW_POINTS) return n;
  for (long j = 2 * n - 2; j > 0; j--) at[j] = j % 2 ? 0.5 * (at[j / 2] + at[j / 2 + 1]) : at[j / 2];
  return 2 * n - 1;
}

/* half the distance between the points beside point j of n */
GR_FN double gr_bend_width(const double *at, long n, long j) {
  return 0.5 * ((j + 1 < n ? at[j + 1] : 1.0) - (j > 0 ? at[j - 1] : 0.0));
}

/* The share of a step at which it should end, so that nothing is passed unseen; 1: the whole step may be taken. *missed
 * is what it has missed, in tolerances, as far as that was looked at: up to `most`. */
GR_COLD double gr_seen_up_to(const gr_span *s, gr_bend_list *l, double most, double *missed) {
  double *at = l->at;
  *missed = l->upto < 1.0 ? HUGE_VAL : 0.0;
  if (l->upto < 1.0) return l->upto;
  const long n = gr_bend_middles(at, l->n);
  for (long j = 0; j < n; j++) {
    const double more = gr_bend_width(at, n, j) * s->defect(s->run, at[j]);
    *missed += more == more ? more : HUGE_VAL;
    if (!(*missed < most)) {
      const double end = j > 0 && at[j - 1] > GR_BEND_CLOSE * at[j] ? at[j - 1] : at[j];
      return end < 0.95 ? end : 0.7;
    }
  }
  return 1.0;
}

#endif
#endif
