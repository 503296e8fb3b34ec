/* Locates and carries out events: relations of states and inputs are held between the instants at which they switch
 * (structure/held_events.py).
 *
 * The last 4 GR_NE entries of p are the modes: the value v at which each relation is held, the value o on the other side
 * of the switch on which it slides, 1 while it does, and the slack: by how much its gap was beyond the switch, because of
 * rounding or of Newton's tolerance, when the relation was decided. Between events they do not change, so steps keep their
 * order. A mode is watched by its gap, which must stay in the range that belongs to v, widened by the slack, or by its
 * share while it slides, in [0, 1].
 *
 * A step at whose end something has left its range is taken anew with another length until the first one is at the end
 * of its range to rounding: the instant is the root of the discrete solution. What happens inside a step is seen by the
 * cubic through gaps and rates at its ends. There modes change until all agree with the motion:
 *
 *   rate of the gap with v and with o in one direction: the relation switches,
 *   towards the switch from both sides:                 it slides, with the share that keeps the gap where it is.
 *
 * Between events sensitivities are those of the steps; at an event the instant moves by dt = -dG/rate and
 *
 *   S <- S + (F_before - F_after) dt.
 */
#ifndef GR_EVENTS_H
#define GR_EVENTS_H

#include "gr_bends.h"
#include "gr_event_room.h"
#include "gr_output.h"
#include "gr_change.h"
#include "gr_signal.h"
#include "gr_task.h"

#if GR_HAS_E

#ifndef __CUDACC__
#include <fenv.h>
#if defined(FE_UPWARD) && defined(FE_DOWNWARD) && defined(FE_TOWARDZERO)
#define GR_ROUNDINGS 3
#endif
#endif

enum { GR_AWAY = 0, GR_NEAR = 1, GR_LEFT = 2, GR_WAITS = 3 };
enum { GR_LT = 1, GR_LE = 2, GR_SIGN = 3, GR_FLOOR = 4, GR_CEIL = 5 };

#define GR_SHARES (GR_NZ - GR_NM - GR_NE) /* where the shares stand in z */
#define GR_SAMPLES 16
#define GR_INSIDE_POINTS 7
#define GR_EDGE 0.02        /* of a step: what turns so close to its ends is left to them */
#define GR_SHALLOW 1e-6     /* of what a gap moves by: excursions inside a step that are not looked for */
#define GR_RESOLVED 2e-3    /* of what a gap moves by: differences from a cubic that do not matter */
#define GR_DOUBTS 4.0       /* how many of those differences a gap may be away from what cubics tell */
#define GR_MOST_HALVINGS 40
#define GR_ROUGH 0.01       /* of what a gap may move by in a step: how far cubics may be off where it turns */
#define GR_GAP_PROBES 3
#define GR_MOST_SCANNED 4096
#define GR_BESIDE_BEND 1e-6  /* of the way to the next bend: where the rate of a gap is asked for */
#define GR_SHARE_NOISE 1e-12
#define GR_SHARE_SLACK 1e-9
#define GR_INTERIOR 1e-6    /* shares closer to the ends of their range are about to leave it */
#define GR_MOST_RETAKES 60
#define GR_GRAZING 1e-6     /* of the run: a gap that turns back within this time touches its switch and has no derivative */
#define GR_TOGETHER 1e-9    /* of the run: gaps that close within this time are at their switches where switches accumulate */
#define GR_TINY 1e-300
#define GR_INSTANT_NOISE 1e-3 /* of the terms of a derivative of an instant: counts as its size where they cancel */
#define GR_NOUGHT 1e-18     /* of its nominal value: a state that is found as less than that at the start is zero */
#define GR_KNOWN 0.1       /* of the tolerance of a gap: what rests may be beyond its switch by */
#define GR_PROBES 4         /* ways in which what gaps are computed from is moved in its last bits */
#define GR_MOST_AT_ONCE 200 /* events that follow each other within rounding */

GR_FN double *gr_held(const gr_task *k) { return k->p + GR_NP - 4 * GR_NE; }
GR_FN double *gr_other(const gr_task *k) { return k->p + GR_NP - 3 * GR_NE; }
GR_FN double *gr_sliding(const gr_task *k) { return k->p + GR_NP - 2 * GR_NE; }
GR_FN double *gr_slack(const gr_task *k) { return k->p + GR_NP - GR_NE; }
GR_FN void gr_note_p(const gr_task *k) {
  for (long i = 0; i < GR_NP; i++) gr_p_of_z(k)[i] = k->p[i];
}
GR_FN long gr_kind_of(long i) { return gr_kind[i] < 0 ? -gr_kind[i] : gr_kind[i]; }

/* gaps, or shares where a mode slides; rates of gaps, 0 for shares */
typedef struct {
  double q[GR_CAP(GR_NE, GR_MOST_E)], rate[GR_CAP(GR_NE, GR_MOST_E)];
} gr_gauge;

/* what ended a step: a mode at the upper or lower end of its range, -1: nothing */
typedef struct {
  long mode, up;
  double bend; /* how fast the rate of its gap changed in this step; of all gaps: gr_bends */
  double length; /* of the step in which it was looked for */
} gr_event;

/* one step of a given length from where a run stands: its end and the signals there, and what lies in between */
typedef struct {
  void *run;
  long (*take)(void *run, double length); /* answers a status */
  void (*inside)(const void *run, double share, double *x, double *z, double *u);
  const double *x, *z, *u_start;
  double t, u[GR_CAP(GR_NU, GR_MOST_U)];
  gr_newton *newton; /* of the run; its f is left alone */
  long rough; /* inside is a cubic, less accurate than the step */
} gr_stepper;

/* ---- the range of a mode ---- */

GR_FN double gr_relation(long kind, double gap) {
  switch (kind) {
    case GR_LT: return gap < 0.0;
    case GR_LE: return gap <= 0.0;
    case GR_SIGN: return gap > 0.0 ? 1.0 : gap < 0.0 ? -1.0 : 0.0;
    case GR_FLOOR: return floor(gap);
    default: return ceil(gap);
  }
}

GR_FN void gr_range(const gr_task *k, long i, double *low, double *high) {
  const double v = gr_held(k)[i];
  const long kind = gr_kind_of(i);
  *low = -HUGE_VAL;
  *high = HUGE_VAL;
  if (gr_sliding(k)[i] != 0.0) { *low = 0.0; *high = 1.0; }
  else if (kind == GR_FLOOR) { *low = v; *high = v + 1.0; }
  else if (kind == GR_CEIL) { *low = v - 1.0; *high = v; }
  else if (kind == GR_SIGN) { if (v >= 0.0) *low = 0.0; if (v <= 0.0) *high = 0.0; }
  else if (v != 0.0) *high = 0.0;
  else *low = 0.0;
  *low -= gr_slack(k)[i];
  *high += gr_slack(k)[i];
}

/* the value beyond the upper or lower end of the range */
GR_FN double gr_beside(const gr_task *k, long i, long up) {
  const double v = gr_held(k)[i];
  const long kind = gr_kind_of(i);
  if (kind == GR_FLOOR || kind == GR_CEIL) return up ? v + 1.0 : v - 1.0;
  if (kind == GR_SIGN) return up ? 1.0 : -1.0;
  return up ? 0.0 : 1.0;
}

/* how far a value is outside, below zero inside */
GR_FN double gr_outside(const gr_task *k, long i, double q) {
  double low, high;
  gr_range(k, i, &low, &high);
  return fmax(q - high, low - q);
}

GR_FN long gr_is_upper(const gr_task *k, long i, double q) {
  double low, high;
  gr_range(k, i, &low, &high);
  return q - high >= low - q;
}

GR_FN void gr_gauge_at(const gr_task *k, double t, const double *x, const double *z, const double *u, gr_gauge *g) {
  gr_G(t, x, z, u, k->p, g->q);
  gr_GD(t, x, z, u, k->p, g->rate);
  for (long i = 0; i < GR_NE; i++) {
    if (gr_sliding(k)[i] == 0.0) continue;
    g->q[i] = z[GR_SHARES + i];
    g->rate[i] = 0.0;
  }
}

GR_FN double gr_sign_of(unsigned long long *dice) {
  *dice ^= *dice << 13;
  *dice ^= *dice >> 7;
  *dice ^= *dice << 17;
  return *dice & 1024 ? 1.0 : -1.0;
}

/* rounding of gaps */
GR_COLD void gr_gauge_noise(const gr_task *k, double t, const double *x, const double *z, const double *u,
                            const gr_gauge *g, double *noise) {
  double *slope = gr_gap_slope(k);
  gr_GJ(t, x, z, u, k->p, slope);
  for (long i = 0; i < GR_NE; i++) {
    noise[i] = 16.0 * GR_EPS * fabs(t * g->rate[i]);
    for (long j = 0; j < GR_NX; j++) noise[i] += 8.0 * GR_EPS * fabs(slope[i + GR_NE * j] * x[j]);
    for (long j = 0; j < GR_NZ; j++) noise[i] += 8.0 * GR_EPS * fabs(slope[i + GR_NE * (GR_NX + j)] * z[j]);
    if (gr_sliding(k)[i] != 0.0) noise[i] = GR_SHARE_NOISE;
    if (!(noise[i] < HUGE_VAL)) noise[i] = 0.0;
  }
}

/* the gauge computed with another rounding */
GR_APART void gr_gauge_rounded(const gr_task *k, double t, const double *x, const double *z, const double *u, long probe,
                               gr_gauge *g) {
#ifdef GR_ROUNDINGS
  static const int ways[GR_ROUNDINGS] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const int usual = fegetround();
  fesetround(ways[probe]);
  gr_gauge_at(k, t, x, z, u, g);
  fesetround(usual);
#else
  (void)probe;
  gr_gauge_at(k, t, x, z, u, g);
#endif
}

GR_FN void gr_widen(const gr_task *k, const gr_gauge *g, const gr_gauge *near, double by, gr_gauge *fuzz) {
  for (long i = 0; i < GR_NE; i++) {
    if (gr_sliding(k)[i] != 0.0) continue;
    const double q = by * fabs(near->q[i] - g->q[i]), rate = by * fabs(near->rate[i] - g->rate[i]);
    if (q > fuzz->q[i] && q < HUGE_VAL) fuzz->q[i] = q;
    if (rate > fuzz->rate[i] && rate < HUGE_VAL) fuzz->rate[i] = rate;
  }
}

/* Below what gaps and rates say nothing: by what they change when every operation rounds another way, when states, signals
 * and time change in their last bits, and z by what Newton's method leaves open. Terms that cancel are seen by it.
 * Parameters stay: equations may ask whether one is equal to a number. */
GR_COLD void gr_fuzz_at(const gr_task *k, double t, const double *x, const double *z, const double *u, const gr_gauge *g,
                        gr_gauge *fuzz) {
  double x_near[GR_LEN(GR_NX)], z_near[GR_LEN(GR_NZ)], u_near[GR_LEN(GR_NU)];
  const double open = k->fixed_step > 0.0 ? 1e-13 / k->rtol : 1e-4;
  gr_gauge near;
  for (long i = 0; i < GR_NE; i++) fuzz->q[i] = fuzz->rate[i] = 0.0;
#ifdef GR_ROUNDINGS
  for (long probe = 0; probe < GR_ROUNDINGS; probe++) {
    gr_gauge_rounded(k, t, x, z, u, probe, &near);
    gr_widen(k, g, &near, 8.0, fuzz);
  }
#endif
  for (long probe = 0; probe < GR_PROBES; probe++) {
    unsigned long long dice = 0x9E3779B97F4A7C15ULL * (unsigned long long)(probe + 1);
    for (long j = 0; j < GR_NX; j++) x_near[j] = x[j] * (1.0 + 8.0 * GR_EPS * gr_sign_of(&dice));
    for (long j = 0; j < GR_NZ; j++)
      z_near[j] = z[j] + (8.0 * GR_EPS * fabs(z[j]) + open * (k->atol[GR_NX + j] + k->rtol * fabs(z[j]))) * gr_sign_of(&dice);
    for (long j = 0; j < GR_NU; j++) u_near[j] = u[j] * (1.0 + 8.0 * GR_EPS * gr_sign_of(&dice));
    gr_gauge_at(k, t * (1.0 + 8.0 * GR_EPS * gr_sign_of(&dice)), x_near, z_near, u_near, &near);
    gr_widen(k, g, &near, 1.0, fuzz);
  }
}

GR_FN long gr_leaves(const gr_task *k, const gr_gauge *g, const double *noise) {
  for (long i = 0; i < GR_NE; i++)
    if (gr_outside(k, i, g->q[i]) > (noise ? noise[i] : 0.0)) return 1;
  return 0;
}

/* how fast the rates of gaps change in a step of this length */
GR_FN void gr_note_bends(const gr_task *k, const gr_gauge *start, const gr_gauge *end, double length) {
  for (long i = 0; i < GR_NE; i++) gr_bends(k)[i] = length > 0.0 ? (end->rate[i] - start->rate[i]) / length : 0.0;
}

/* ---- where in a step ---- */

GR_FN double gr_hermite(double s, double q0, double d0, double q1, double d1) {
  const double r = 1.0 - s;
  return r * r * ((1.0 + 2.0 * s) * q0 + s * d0) + s * s * ((3.0 - 2.0 * s) * q1 - r * d1);
}

/* share of the step at which the cubic through both ends first leaves the range of mode i; 1 where it does not inside */
GR_COLD double gr_first_exit(const gr_task *k, long i, const gr_gauge *a, const gr_gauge *b, double h) {
  const long slides = gr_sliding(k)[i] != 0.0;
  const double q0 = a->q[i], q1 = b->q[i];
  const double d0 = slides ? q1 - q0 : h * a->rate[i], d1 = slides ? q1 - q0 : h * b->rate[i];
  const double shallow = GR_SHALLOW * (fabs(q1 - q0) + fabs(d0) + fabs(d1));
  double low = 0.0, high = 1.0;
  for (long n = 1; n < GR_SAMPLES; n++) {
    const double s = (double)n / GR_SAMPLES;
    if (gr_outside(k, i, gr_hermite(s, q0, d0, q1, d1)) > shallow) {
      high = s;
      break;
    }
    low = s;
  }
  if (high == 1.0 && !(gr_outside(k, i, q1) > 0.0)) return 1.0;
  for (long n = 0; n < 30; n++) {
    const double s = 0.5 * (low + high);
    if (gr_outside(k, i, gr_hermite(s, q0, d0, q1, d1)) > 0.0) high = s;
    else low = s;
  }
  return high;
}

/* where the cubic of mode i through both ends turns back at, beyond or close before the end of its range; 1: nowhere */
GR_FN double gr_turning(const gr_task *k, long i, const gr_gauge *a, const gr_gauge *b, double h) {
  const double q0 = a->q[i], q1 = b->q[i], d0 = h * a->rate[i], d1 = h * b->rate[i];
  const double shallow = GR_SHALLOW * (fabs(q1 - q0) + fabs(d0) + fabs(d1));
  double low, high;
  if (!(d0 * d1 < 0.0)) return 1.0;
  gr_range(k, i, &low, &high);
  if (!(d0 > 0.0 ? high < HUGE_VAL : low > -HUGE_VAL)) return 1.0;
  /* rate d0 + 2 B s + 3 C s^2, which changes its sign once */
  const double B = 3.0 * (q1 - q0) - 2.0 * d0 - d1, C = d0 + d1 - 2.0 * (q1 - q0);
  const double root = sqrt(fmax(B * B - 3.0 * C * d0, 0.0)), s = d0 / (d0 > 0.0 ? root - B : -root - B);
  if (!(s > GR_EDGE && s < 1.0 - GR_EDGE)) return 1.0;
  return gr_outside(k, i, gr_hermite(s, q0, d0, q1, d1)) > -shallow ? s : 1.0;
}

/* 1 where a share that slides is out of its range at a point inside a step: they are solved for there */
GR_APART long gr_shares_leave(gr_task *k, const gr_stepper *s, double t, const double *x, double *z, const double *u) {
  double f[GR_LEN(GR_N)];
  gr_newton here = *s->newton;
  const double amount = k->amount;
  const long where = k->where;
  here.f = f;
  const long status = gr_newton_iterate(k, &here, t, x, z, u);
  s->newton->valid = here.valid;
  k->where = where;
  k->amount = amount;
  for (long i = 0; !status && i < GR_NE; i++)
    if (gr_sliding(k)[i] != 0.0 && gr_outside(k, i, z[GR_SHARES + i]) > GR_SHARE_SLACK) return 1;
  return 0;
}

/* 1 where gap i moves by more than rounding in a step: one that rests at its switch does not leave it */
GR_COLD long gr_is_motion(const gr_task *k, const gr_stepper *s, const gr_gauge *a, const gr_gauge *b, double h, long i) {
  double noise[GR_NE];
  gr_gauge_noise(k, k->t, k->x, k->z, s->u_start, a, noise);
  return fabs(b->q[i] - a->q[i]) + h * fabs(a->rate[i]) + h * fabs(b->rate[i]) > noise[i];
}

/* how well steps know gap i. The slopes of gaps are those of this point (gr_gauge_noise). */
GR_COLD double gr_gap_tolerance(const gr_task *k, long i, const double *x, const double *z) {
  const double *slope = gr_gap_slope(k);
  double known = 0.0;
  for (long j = 0; j < GR_NX; j++) known += fabs(slope[i + GR_NE * j]) * (k->atol[j] + k->rtol * fabs(x[j]));
  for (long j = 0; j < GR_NZ; j++)
    known += fabs(slope[i + GR_NE * (GR_NX + j)]) * (k->atol[GR_NX + j] + k->rtol * fabs(z[j]));
  return known;
}

/* 1 where gap i moves by more than rounding in a step, and by more than the steps know: the noise of one at rest is not
 * followed */
GR_COLD long gr_is_followed(const gr_task *k, const gr_stepper *s, const gr_gauge *a, const gr_gauge *b, double h, long i,
                            double way) {
  return gr_is_motion(k, s, a, b, h, i) && way > GR_KNOWN * gr_gap_tolerance(k, i, k->x, k->z);
}

/* by how much the gap of mode i differs from the cubic through both ends at a share between them, in value and rate */
GR_FN double gr_doubt_of(long i, const gr_gauge *a, double share, const gr_gauge *at, const gr_gauge *b, double h) {
  const double q0 = a->q[i], q1 = b->q[i], d0 = h * a->rate[i], d1 = h * b->rate[i], s = share, r = 1.0 - s;
  const double slope = 6.0 * s * r * (q1 - q0) + r * (1.0 - 3.0 * s) * d0 + s * (3.0 * s - 2.0) * d1;
  return fmax(fabs(at->q[i] - gr_hermite(s, q0, d0, q1, d1)), 0.125 * fabs(h * at->rate[i] - slope));
}

GR_FN void gr_gauge_inside(gr_task *k, const gr_stepper *s, double share, double h, gr_gauge *g) {
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  s->inside(s->run, share, x, z, u);
  gr_gauge_at(k, k->t + share * h, x, z, u, g);
}

/* 1 where cubics tell whether gaps come to the end of their ranges between two shares of a step, where they are `a`, `b` */
GR_FN long gr_is_clear(gr_task *k, const gr_stepper *s, double begin, const gr_gauge *a, double end, const gr_gauge *b,
                       double h) {
  const double probes[GR_GAP_PROBES] = {0.28, 0.5, 0.73};
  const double share = end - begin, length = share * h;
  gr_gauge at;
  for (long n = 0; n < GR_GAP_PROBES; n++) {
    gr_gauge_inside(k, s, begin + probes[n] * share, h, &at);
    for (long i = 0; i < GR_NE; i++) {
      if (gr_sliding(k)[i] != 0.0) continue;
      const double way = fabs(b->q[i] - a->q[i]) + length * (fabs(a->rate[i]) + fabs(b->rate[i]) + fabs(at.rate[i]));
      const double doubt = gr_doubt_of(i, a, probes[n], &at, b, length);
      if (!(doubt > GR_RESOLVED * way)) continue;
      const double nearest = fmax(gr_outside(k, i, a->q[i]), fmax(gr_outside(k, i, at.q[i]), gr_outside(k, i, b->q[i])));
      if (GR_DOUBTS * doubt > -nearest && gr_is_followed(k, s, a, b, length, i, way)) return 0;
    }
  }
  return 1;
}

/* The longest part of a step from a share on, halved again and again, on which cubics tell whether a gap comes to the end
 * of its range: a gap that moves to and fro inside the step, as that of sin(50 x) > 0.99, is followed in shorter steps.
 * *end: the gauge at its end, first that of the whole part. */
GR_FN double gr_resolved(gr_task *k, const gr_stepper *s, double begin, const gr_gauge *a, double share, double h,
                         gr_gauge *end) {
  for (long n = 0; n < GR_MOST_HALVINGS && !gr_is_clear(k, s, begin, a, begin + share, end, h); n++) {
    if (!(share * h > 1e3 * gr_smallest_step(k, k->t))) break;
    share *= 0.5;
    gr_gauge_inside(k, s, begin + share, h, end);
  }
  return share;
}

/* Where gap i, inside its range at two shares of a step and turning back between them, is outside it; the second share: nowhere. The turn
 * is bracketed by the sign of the rate until what is left cannot lead outside. */
GR_FN double gr_turned(gr_task *k, const gr_stepper *s, double begin, const gr_gauge *a, double share, const gr_gauge *b, double h,
                       long i) {
  const double sign = a->rate[i] > 0.0 ? 1.0 : -1.0;
  double low = begin, high = share, q_low = a->q[i], q_high = b->q[i], steep = fmax(fabs(a->rate[i]), fabs(b->rate[i])), from, to;
  gr_gauge at;
  if (gr_sliding(k)[i] != 0.0 || !(a->rate[i] * b->rate[i] < 0.0)) return share;
  gr_range(k, i, &from, &to);
  if (!(sign > 0.0 ? to < HUGE_VAL : from > -HUGE_VAL)) return share;
  if (gr_outside(k, i, a->q[i]) > 0.0 || gr_outside(k, i, b->q[i]) > 0.0) return share;
  for (long n = 0; n < GR_MOST_HALVINGS; n++) {
    const double left = -fmax(gr_outside(k, i, q_low), gr_outside(k, i, q_high)), middle = 0.5 * (low + high);
    if (left > 2.0 * steep * (high - low) * h || !((high - low) * h > 1e3 * gr_smallest_step(k, k->t))) {
      const long looks = s->rough && left < GR_ROUGH * steep * h && middle > GR_EDGE && middle < share - GR_EDGE;
      return looks ? middle : share; /* a step that ends there knows */
    }
    gr_gauge_inside(k, s, middle, h, &at);
    if (gr_outside(k, i, at.q[i]) > GR_SHALLOW * steep * (share - begin) * h) return middle;
    steep = fmax(steep, fabs(at.rate[i]));
    if (at.rate[i] * sign > 0.0) {
      low = middle;
      q_low = at.q[i];
    } else {
      high = middle;
      q_high = at.q[i];
    }
  }
  return share;
}

/* The first share of a step at which some gap is outside its range, looked for in pieces that are as short as they have
 * to be: frozen steps are not shortened for the sake of a look. 1: none; where the pieces were too many for one step, its
 * error is not known. */
GR_COLD double gr_scanned(gr_task *k, const gr_stepper *s, const gr_gauge *a, double resolved, double h) {
  gr_gauge from = *a, to;
  double begin = 0.0, share = resolved;
  for (long n = 0; n < GR_MOST_SCANNED && begin < 1.0; n++) {
    share = fmin(share, 1.0 - begin);
    gr_gauge_inside(k, s, begin + share, h, &to);
    share = gr_resolved(k, s, begin, &from, share, h, &to);
    const double end = begin + share > 1.0 - 1e-12 ? 1.0 : begin + share;
    double first = end;
    for (long i = 0; i < GR_NE; i++) {
      const double shallow = GR_SHALLOW * (fabs(to.q[i] - from.q[i]) + share * h * (fabs(from.rate[i]) + fabs(to.rate[i])));
      if (gr_sliding(k)[i] == 0.0 && end < 1.0 && gr_outside(k, i, to.q[i]) > shallow) return end;
      first = fmin(first, gr_turned(k, s, begin, &from, end, &to, h, i));
    }
    if (first < end) return first;
    from = to;
    begin = end;
    share *= 2.0;
  }
  if (begin < 1.0) k->error_estimate = HUGE_VAL;
  return 1.0;
}

/* The first share of a step at which some mode seems to leave its range inside, or to turn back next to its end, where
 * gaps are smooth; 1: none. Seen by the cubic through gaps and rates, and by gaps at a few points. */
GR_FN double gr_suspect_smooth(gr_task *k, const gr_stepper *s, const gr_gauge *a, const gr_gauge *b, double h) {
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], gap[GR_NE];
  gr_gauge end = *b;
  double first = gr_resolved(k, s, 0.0, a, 1.0, h, &end);
  long slides = 0;
  const double resolved = first;
  if (resolved < 1.0 && k->fixed_step > 0.0) return gr_scanned(k, s, a, resolved, h);
  for (long i = 0; i < GR_NE; i++) {
    const double turned = gr_turned(k, s, 0.0, a, resolved, &end, h, i);
    if (turned < first && gr_is_motion(k, s, a, &end, resolved * h, i)) first = turned;
  }
  if (resolved < 1.0) return first;
  for (long i = 0; i < GR_NE; i++) slides |= gr_sliding(k)[i] != 0.0;
  for (long i = 0; i < GR_NE; i++) {
    const double share = gr_outside(k, i, b->q[i]) > 0.0 ? 1.0 : gr_turning(k, i, a, b, h);
    if (share < first && gr_is_motion(k, s, a, b, h, i)) first = share;
  }
  for (long n = 1; n <= GR_INSIDE_POINTS; n++) {
    const double share = (double)n / (GR_INSIDE_POINTS + 1);
    if (share >= first) break;
    s->inside(s->run, share, x, z, u);
    gr_G(k->t + share * h, x, z, u, k->p, gap);
    for (long i = 0; i < GR_NE; i++) {
      const double shallow = GR_SHALLOW * (fabs(b->q[i] - a->q[i]) + h * fabs(a->rate[i]) + h * fabs(b->rate[i]));
      if (gr_sliding(k)[i] == 0.0 && gr_outside(k, i, gap[i]) > shallow && gr_is_motion(k, s, a, b, h, i)) first = share;
    }
    if (slides && n % 2 == 0 && first > share && gr_shares_leave(k, s, k->t + share * h, x, z, u)) first = share;
    if (first == share) break;
  }
  return first;
}

#if GR_BENT
/* what is inside a step, with z solved for: it bends, too */
typedef struct {
  gr_task *k;
  const gr_stepper *s;
  double h;
} gr_bent_step;

GR_FN void gr_gap_bends(double t, const double *x, const double *z, const double *u, const double *p, double *out) {
  gr_GB(t, x, z, u, p, out);
  gr_GW(t, x, z, u, p, out + GR_GAP_BENDS);
}

GR_COLD void gr_bent_inside(const void *run, double share, double *x, double *z, double *u) {
  const gr_bent_step *a = (const gr_bent_step *)run;
  a->s->inside(a->s->run, share, x, z, u);
  if (GR_SHARES <= 0) return;
  double f[GR_LEN(GR_N)], kept[GR_LEN(GR_NZ)];
  gr_newton here = *a->s->newton;
  const double amount = a->k->amount;
  const long where = a->k->where;
  here.f = f;
  for (long i = 0; i < GR_NZ; i++) kept[i] = z[i];
  if (gr_newton_iterate(a->k, &here, a->k->t + share * a->h, x, z, u))
    for (long i = 0; i < GR_NZ; i++) z[i] = kept[i];
  a->s->newton->valid = here.valid;
  a->k->where = where;
  a->k->amount = amount;
}

GR_FN void gr_gauge_bent(gr_bent_step *a, double share, gr_gauge *g) {
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  gr_bent_inside(a, share, x, z, u);
  gr_gauge_at(a->k, a->k->t + share * a->h, x, z, u, g);
}

/* the share of bend i next to one that was found on the polynomial, by steps that end there */
GR_COLD double gr_refined_bend(gr_task *k, const gr_stepper *s, const gr_span *span, long i, double share, double h) {
  double out[GR_LEN(GR_MOST_BENDS)], at = share, last = 0.999 * share, value = 0.0, v_last = 0.0, level = 0.0;
  for (long n = 0; n < GR_BEND_SECANTS; n++) {
    const double here = n ? at : last;
    if (s->take(s->run, here * h)) return share;
    span->bends(s->t, s->x, s->z, s->u, k->p, out);
    if (n == 0 && i >= span->gaps) level = floor(out[i] + 0.5);
    value = out[i] - level;
    const double next = n ? at - value * (at - last) / (value - v_last) : at;
    if (n) last = at;
    v_last = value;
    if (value == 0.0 || !(fabs(next - share) < 0.5 * share && next < 1.0)) return here;
    if (n && fabs(next - at) < 1e-14) return next;
    at = next;
  }
  return at;
}

/* The first share of a step at which some gap is outside its range at a bend or turns back there between two of them; 1:
 * nowhere. */
GR_COLD double gr_suspect_bent(gr_task *k, const gr_stepper *s, const gr_gauge *a, double upto, double h) {
  gr_bent_step run = {k, s, h};
  const gr_span span = {k, &run, h, GR_GAP_BENDS, GR_ALL_GAP_BENDS, gr_gap_bends, gr_bent_inside, 0, 0};
  gr_bend_list bends;
  gr_gauge from, to;
  double begin = 0.0;
  if (!gr_lists_bends(&span, 1.0, &bends)) return 1.0;
  for (long j = 0; j <= bends.n && begin < upto; j++) {
    const double end = j < bends.n ? bends.at[j] : bends.upto, beside = GR_BESIDE_BEND * (end - begin);
    gr_gauge_bent(&run, begin + beside, &from);
    gr_gauge_bent(&run, end - beside, &to);
    for (long i = 0; i < GR_NE; i++) {
      const double turned = gr_turned(k, s, begin + beside, &from, end - beside, &to, h, i);
      if (turned < end - beside) return turned;
    }
    gr_gauge_bent(&run, end, &to);
    for (long i = 0; i < GR_NE && j < bends.n; i++)
      if (gr_sliding(k)[i] == 0.0 && gr_outside(k, i, to.q[i]) > GR_SHALLOW * fabs(to.q[i] - a->q[i]))
        return gr_refined_bend(k, s, &span, bends.of[j], end, h);
    begin = end;
  }
  if (bends.upto < 1.0 && k->fixed_step > 0.0) k->error_estimate = HUGE_VAL;
  return bends.upto;
}
#endif

/* The first share of a step at which some mode seems to leave its range inside, or to turn back next to its end; 1: none */
GR_FN double gr_suspect(gr_task *k, const gr_stepper *s, const gr_gauge *a, const gr_gauge *b, double h) {
  const double first = gr_suspect_smooth(k, s, a, b, h);
#if GR_BENT
  return fmin(first, gr_suspect_bent(k, s, a, first, h));
#else
  return first;
#endif
}

/* x and z of a step between its ends, from F there */
GR_FN void gr_between(double share, double h, const double *x0, const double *f0, const double *z0, const double *x1,
                      const double *f1, const double *z1, double *x, double *z) {
  for (long i = 0; i < GR_NX; i++) x[i] = gr_hermite(share, x0[i], h * f0[i], x1[i], h * f1[i]);
  for (long i = 0; i < GR_NZ; i++) z[i] = z0[i] + share * (z1[i] - z0[i]);
}

/* 1 where the gap of mode i leaves its switch in a step by more than its slack: at its end, half way (from one end of its
 * range to the other), or where the cubic between turns back */
GR_FN long gr_gets_away(const gr_task *k, long i, const gr_gauge *a, const gr_gauge *b, double h) {
  const double q0 = a->q[i], q1 = b->q[i], d0 = h * a->rate[i], d1 = h * b->rate[i], far = -2.0 * gr_slack(k)[i];
  if (gr_outside(k, i, q1) < far || gr_outside(k, i, gr_hermite(0.5, q0, d0, q1, d1)) < far) return 1;
  const double B = 3.0 * (q1 - q0) - 2.0 * d0 - d1, C = d0 + d1 - 2.0 * (q1 - q0), D = B * B - 3.0 * C * d0;
  if (!(D > 0.0)) return 0;
  const double s = d0 / (d0 > 0.0 ? sqrt(D) - B : -sqrt(D) - B);
  return s > 0.0 && s < 1.0 && gr_outside(k, i, gr_hermite(s, q0, d0, q1, d1)) < far;
}

/* 1 where gap i stands beyond the end of its range when slack is not counted */
GR_FN long gr_has_passed(const gr_task *k, long i, double q) { return gr_outside(k, i, q) + gr_slack(k)[i] > 0.0; }

/* slack is forgotten where a gap has left its switch: at a point of the motion, not at the end of a step that may be taken
 * anew */
GR_FN void gr_forget_slack(const gr_task *k, const double *gap) {
  for (long i = 0; i < GR_NE; i++)
    if (gr_slack(k)[i] > 0.0 && gr_sliding(k)[i] == 0.0 && gr_outside(k, i, gap[i]) < -2.0 * gr_slack(k)[i])
      gr_slack(k)[i] = 0.0;
}

/* where the first mode that is outside at b left, by the rate at the point taken last or by a straight line */
GR_COLD double gr_next_length(const gr_task *k, double a, const gr_gauge *at_a, double b, const gr_gauge *at_b,
                              double last, const gr_gauge *at_last) {
  double first = b;
  for (long i = 0; i < GR_NE; i++) {
    double low, high;
    if (!(gr_outside(k, i, at_b->q[i]) > 0.0)) continue;
    gr_range(k, i, &low, &high);
    const double end = gr_is_upper(k, i, at_b->q[i]) ? high : low;
    double next = last - (at_last->q[i] - end) / at_last->rate[i];
    if (!(next > a && next < b)) next = a + (b - a) * (end - at_a->q[i]) / (at_b->q[i] - at_a->q[i]);
    if (!(next > a && next < b)) next = 0.5 * (a + b);
    first = fmin(first, next);
  }
  return first < b ? first : 0.5 * (a + b);
}

/* The length of the step that ends where the first mode leaves its range, between 0 and h, at whose end the gauge is
 * `end`; 0 where it leaves at once. The stepper stands at the end of that step. */
GR_COLD long gr_locate(gr_task *k, gr_stepper *s, const gr_gauge *start, const gr_gauge *end, double h, double *length,
                       gr_event *event) {
  gr_gauge at_a = *start, at_b = *end, now = *end;
  double noise[GR_NE], a = 0.0, b = h, next = h, least = gr_smallest_step(k, k->t);
  gr_gauge_noise(k, k->t, k->x, k->z, s->u_start, start, noise);
  event->length = h;
  for (long i = 0; i < GR_NE; i++) {
    if (!(gr_outside(k, i, end->q[i]) > 0.0)) continue;
    const long up = gr_is_upper(k, i, end->q[i]);
    double low, high;
    gr_range(k, i, &low, &high);
    const double beyond = up ? start->q[i] - high : low - start->q[i];
    if (beyond >= -noise[i] && (up ? start->rate[i] > 0.0 : start->rate[i] < 0.0)) {
      *length = event->bend = 0.0;
      gr_note_bends(k, start, end, 0.0);
      event->mode = i;
      event->up = up;
      return GR_DONE;
    }
    next = fmin(next, h * gr_first_exit(k, i, start, end, h));
  }
  for (long n = 0; n < GR_MOST_RETAKES; n++) {
    const double width = b - a;
    if (width <= least) break;
    if (!(next > a && next < b)) next = 0.5 * (a + b);
    long status = s->take(s->run, next);
    if (status && b - a <= 1e3 * least) break; /* too short a step to be taken */
    if (status) return status;
    gr_gauge_at(k, s->t, s->x, s->z, s->u, &now);
    gr_gauge_noise(k, s->t, s->x, s->z, s->u, &now, noise);
    if (!gr_leaves(k, &now, noise)) {
      for (long i = 0; i < GR_NE; i++) {
        if (!(gr_outside(k, i, at_b.q[i]) > 0.0) || gr_outside(k, i, now.q[i]) < -noise[i]) continue;
        *length = next;
        event->mode = i;
        event->up = gr_is_upper(k, i, at_b.q[i]);
        event->bend = (now.rate[i] - start->rate[i]) / next;
        gr_note_bends(k, start, &now, next);
        return GR_DONE;
      }
      a = next;
      at_a = now;
    } else {
      b = next;
      at_b = now;
    }
    const double last = next;
    next = n % 3 == 2 && b - a > 0.5 * width ? 0.5 * (a + b) : gr_next_length(k, a, &at_a, b, &at_b, last, &now);
  }
  double most = -1.0;
  for (long i = 0; i < GR_NE; i++) {
    const double out = gr_outside(k, i, at_b.q[i]);
    if (!(out > 0.0) || most >= 0.0) continue;
    most = out;
    event->mode = i;
    event->bend = (at_b.rate[i] - start->rate[i]) / b;
    event->up = gr_is_upper(k, i, at_b.q[i]);
  }
  gr_note_bends(k, start, &at_b, b);
  *length = b > 1e3 * least ? b : 0.0;
  return *length > 0.0 ? s->take(s->run, b) : GR_DONE;
}

/* The first event in a step of length h that was taken, at whose ends the gauges are `start` and `end`: *length is that of
 * the step that ends there, event->mode is -1 where nothing happens. */
GR_FN long gr_find(gr_task *k, gr_stepper *s, const gr_gauge *start, const gr_gauge *end, double h, double *length,
                   gr_event *event) {
  double noise[GR_NE], kept[GR_NE];
  long status = GR_DONE;
  event->mode = -1;
  gr_forget_slack(k, start->q);
  for (long i = 0; i < GR_NE; i++) { /* what leaves its switch in this step and comes back is found at it */
    kept[i] = gr_slack(k)[i];
    if (kept[i] > 0.0 && gr_sliding(k)[i] == 0.0 && gr_has_passed(k, i, end->q[i]) && gr_gets_away(k, i, start, end, h))
      gr_slack(k)[i] = 0.0;
  }
  if (gr_leaves(k, end, 0)) {
    gr_gauge_noise(k, s->t, s->x, s->z, s->u, end, noise);
    if (gr_leaves(k, end, noise)) status = gr_locate(k, s, start, end, h, length, event);
  }
  for (long i = 0; i < GR_NE; i++)
    if (i != event->mode) gr_slack(k)[i] = kept[i];
  return status;
}

/* A step of length h could not be taken, perhaps because it leads beyond a switch, where what is held has no value. 1
 * where the run stands at such a switch, u being the signals there; else *next is as far as there is a way to it. */
GR_COLD long gr_is_blocked(const gr_task *k, const double *u, double h, double *next, gr_event *event) {
  gr_gauge g;
  double noise[GR_NE], low, high, soonest = h, way = HUGE_VAL;
  event->mode = -1;
  gr_gauge_at(k, k->t, k->x, k->z, u, &g);
  gr_note_bends(k, &g, &g, 0.0);
  gr_gauge_noise(k, k->t, k->x, k->z, u, &g, noise);
  for (long i = 0; i < GR_NE; i++) {
    gr_range(k, i, &low, &high);
    const double left = g.rate[i] > 0.0 ? high - g.q[i] : g.q[i] - low;
    if (g.rate[i] == 0.0 || !(left <= fabs(g.rate[i]) * soonest)) continue;
    soonest = left / fabs(g.rate[i]);
    way = left;
    event->mode = i;
    event->up = g.rate[i] > 0.0;
    event->bend = 0.0;
    event->length = h;
  }
  if (event->mode < 0) return 0;
  if (way <= 64.0 * noise[event->mode]) return 1;
  event->mode = -1;
  *next = fmin(0.9 * soonest, 0.5 * h);
  return 0;
}

/* ---- what happens at an event ---- */

/* instants within this time are one */
GR_FN double gr_one_instant(const gr_task *k) { return 1e-12 * (k->t1 - k->t0) + 100.0 * gr_smallest_step(k, k->t); }

GR_FN long gr_record(gr_task *k, long mode, double what) {
  k->at_once = k->n_events > 0 && k->t - k->event_at <= gr_one_instant(k) ? k->at_once + 1 : 0;
  if (k->n_events < k->most_events) {
    double *row = k->events + 3 * k->n_events;
    row[0] = k->t;
    row[1] = (double)mode;
    row[2] = what;
  }
  k->n_events++;
  k->event_at = k->t;
  return k->at_once > GR_MOST_AT_ONCE + 4 * GR_NE ? gr_fail(k, GR_ACCUMULATES, mode, (double)k->at_once) : GR_DONE;
}

/* z and F with the modes and discrete variables as they are now; z comes in as it was at x_before */
GR_COLD long gr_solve_set(gr_task *k, gr_newton *n, const double *x_before, const double *x, double *z, const double *u) {
  const double *was_sliding = gr_p_of_z(k) + GR_NP - 2 * GR_NE;
  const gr_equations old = {x_before, u, gr_p_of_z(k)};
  long slides = 0;
  n->valid = 0;
  for (long i = 0; i < GR_NE; i++) {
    slides |= gr_sliding(k)[i] != was_sliding[i];
    if (gr_sliding(k)[i] == 0.0) z[GR_SHARES + i] = 0.0;
  }
  const long status = slides ? gr_solve_implicit(k, n, 0, k->t, x, z, u)
                             : gr_solve_changed(k, n, 0, &old, k->t, x, z, u);
  if (!status) gr_note_p(k);
  return status;
}

/* z and F with the modes as they are now */
GR_COLD long gr_solve_modes(gr_task *k, gr_newton *n, const double *x, double *z, const double *u) {
  return gr_solve_set(k, n, x, x, z, u);
}

/* the rate of gap i with its relation held at v; 0 where it says nothing */
GR_COLD long gr_rate_with(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, long i, double v,
                          double *rate) {
  gr_gauge g, fuzz;
  gr_held(k)[i] = v;
  gr_sliding(k)[i] = 0.0;
  const long status = gr_solve_modes(k, n, x, z, u);
  if (status) return status;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_fuzz_at(k, k->t, x, z, u, &g, &fuzz);
  *rate = fabs(g.rate[i]) > fuzz.rate[i] ? g.rate[i] : 0.0;
  return GR_DONE;
}

/* The modes at the ends of their ranges that their gaps leave by the motion as it is: 1 at the upper, -1 at the lower end, 0
 * for all others. Answers how many. */
GR_COLD long gr_list_leaving(const gr_task *k, const double *x, const double *z, const double *u, const long *near,
                             double *within, long *way) {
  long count = 0;
  gr_gauge g, fuzz;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_gauge_noise(k, k->t, x, z, u, &g, within);
  gr_fuzz_at(k, k->t, x, z, u, &g, &fuzz);
  for (long j = 0; j < GR_NE; j++) {
    way[j] = 0;
    within[j] = fmax(within[j], fuzz.q[j]) + fabs(g.rate[j]) * gr_one_instant(k);
    if (gr_sliding(k)[j] != 0.0 || near[j] == GR_LEFT || near[j] == GR_WAITS || !(fabs(g.rate[j]) > fuzz.rate[j])) continue;
    const long up = gr_is_upper(k, j, g.q[j]);
    if ((g.rate[j] > 0.0) == (up != 0) && gr_outside(k, j, g.q[j]) >= -within[j]) way[j] = up ? 1 : -1;
    count += way[j] != 0;
  }
  return count;
}

/* 1 where every gap of the list goes on the way it came, and none has jumped back */
GR_COLD long gr_go_their_way(const gr_task *k, const double *x, const double *z, const double *u, const double *within,
                             const long *way) {
  gr_gauge g, fuzz;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_fuzz_at(k, k->t, x, z, u, &g, &fuzz);
  for (long j = 0; j < GR_NE; j++)
    if (way[j] && (!((double)way[j] * g.rate[j] > fuzz.rate[j]) || gr_outside(k, j, g.q[j]) > 64.0 * within[j])) return 0;
  return 1;
}

/* Relations that are reached at one instant, as several of one gap are: *passes where mode i and all others whose gaps leave
 * their ranges here (*way) go over to their other values at once, and all gaps go on. One of them alone may be sent back by those
 * that have not switched yet, and slide where the equations do not. Else modes are as before. */
GR_COLD long gr_pass_together(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, long i, long *near,
                              long *way, long *passes) {
  double within[GR_NE], kept[GR_NE], z_kept[GR_LEN(GR_NZ)];
  const double amount = k->amount;
  const long where = k->where;
  long status = gr_solve_modes(k, n, x, z, u);
  for (long j = 0; j < GR_NE; j++) way[j] = 0;
  *passes = 0;
  if (status || gr_list_leaving(k, x, z, u, near, within, way) < 2 || !way[i]) return status;
  for (long j = 0; j < GR_NE; j++) kept[j] = gr_held(k)[j];
  for (long j = 0; j < GR_NZ; j++) z_kept[j] = z[j];
  for (long j = 0; j < GR_NE; j++)
    if (way[j]) gr_held(k)[j] = gr_beside(k, j, way[j] > 0);
  *passes = !gr_solve_modes(k, n, x, z, u) && gr_go_their_way(k, x, z, u, within, way);
  k->where = where;
  k->amount = amount;
  for (long j = 0; j < GR_NE && !*passes; j++) gr_held(k)[j] = kept[j];
  for (long j = 0; j < GR_NZ && !*passes; j++) z[j] = z_kept[j];
  for (long j = 0; j < GR_NE && *passes && !status; j++) {
    if (!way[j]) continue;
    if (near[j] == GR_AWAY) near[j] = GR_NEAR;
    status = gr_record(k, j, (double)way[j]);
  }
  return status || *passes ? status : gr_solve_modes(k, n, x, z, u);
}

/* 1 where states move otherwise with mode j at its other value, by more than is tolerated at the end of the run */
GR_COLD long gr_is_felt(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, long j, long up) {
  double f[GR_LEN(GR_NX)], z_kept[GR_LEN(GR_NZ)];
  const double held = gr_held(k)[j], amount = k->amount;
  const long where = k->where;
  long felt = 0;
  for (long i = 0; i < GR_NX; i++) f[i] = n->f[i];
  for (long i = 0; i < GR_NZ; i++) z_kept[i] = z[i];
  gr_held(k)[j] = gr_beside(k, j, up);
  if (!gr_solve_modes(k, n, x, z, u))
    for (long i = 0; i < GR_NX; i++)
      felt |= fabs(n->f[i] - f[i]) * (k->t1 - k->t0) > k->atol[i] + k->rtol * (fabs(x[i]) + fabs(f[i]) * (k->t1 - k->t0));
  gr_held(k)[j] = held;
  for (long i = 0; i < GR_NZ; i++) z[i] = z_kept[i];
  k->where = where;
  k->amount = amount;
  return felt;
}

/* Mode i has begun to slide at a point that those of the list have reached as well. GR_UNSETTLED where one of them rests at its
 * switch since, as another relation of the same gap does, and is felt: it would have a share of its own in between, which no
 * equation says. The amount is -1 - i then. */
GR_COLD long gr_slides_alone(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, long i, const long *way) {
  long status = GR_DONE;
  gr_gauge g, fuzz;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_fuzz_at(k, k->t, x, z, u, &g, &fuzz);
  for (long j = 0; j < GR_NE && !status; j++) {
    if (j == i || !way[j] || gr_sliding(k)[j] != 0.0 || fabs(g.rate[j]) > fuzz.rate[j]) continue;
    if (gr_is_felt(k, n, x, z, u, j, way[j] > 0)) return gr_fail(k, GR_UNSETTLED, j, -1.0 - (double)i);
    status = gr_solve_modes(k, n, x, z, u);
  }
  return status;
}

/* Mode i between the values below and above its switch, where it stands; `unsure`: where neither side is meant. `near`, where
 * given: see gr_agree; it comes from the motion, and may pass its switch with others. */
GR_COLD long gr_decide(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, long i, double below,
                       double above, double unsure, long *near) {
  const double held = gr_held(k)[i];
  long way[GR_NE];
  double down, up;
  long status = gr_rate_with(k, n, x, z, u, i, below, &down);
  if (!status) status = gr_rate_with(k, n, x, z, u, i, above, &up);
  if (status) return status;
  double what = 0.0, v = unsure;
  if (down > 0.0 && up < 0.0) {
    long passes = 0;
    gr_held(k)[i] = held;
    if (near) status = gr_pass_together(k, n, x, z, u, i, near, way, &passes);
    if (status || passes) return status;
    if (gr_kind[i] < 0) return gr_fail(k, GR_UNSETTLED, i, down - up);
    gr_held(k)[i] = below;
    gr_other(k)[i] = above;
    gr_sliding(k)[i] = 1.0;
    z[GR_SHARES + i] = down / (down - up);
  } else {
    if (down >= 0.0 && up >= 0.0 && down + up > 0.0) v = above;
    if (down <= 0.0 && up <= 0.0 && down + up < 0.0) v = below;
    gr_held(k)[i] = v;
    what = v == above ? 1.0 : -1.0;
  }
  status = gr_record(k, i, what);
  if (!status) status = gr_solve_modes(k, n, x, z, u);
  return !status && near && gr_sliding(k)[i] != 0.0 ? gr_slides_alone(k, n, x, z, u, i, way) : status;
}

/* a mode that slides leaves at the upper or lower end of its share */
GR_COLD long gr_leave(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, long i, long up) {
  gr_sliding(k)[i] = 0.0;
  if (up) gr_held(k)[i] = gr_other(k)[i];
  const long status = gr_record(k, i, up ? 2.0 : -2.0);
  return status ? status : gr_solve_modes(k, n, x, z, u);
}

/* a mode that is held and stands at the end of its range; `near`: see gr_agree */
GR_COLD long gr_cross(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, long i, long up, long *near) {
  const double v = gr_held(k)[i], other = gr_beside(k, i, up);
  if (gr_kind_of(i) == GR_SIGN && v == 0.0) return gr_decide(k, n, x, z, u, i, -1.0, 1.0, up ? 1.0 : -1.0, 0);
  return gr_decide(k, n, x, z, u, i, up ? v : other, up ? other : v, other, near);
}

/* 1 where the sliding of mode i draws the motion to its switch: the rate falls as the share grows */
GR_COLD long gr_attracts(gr_task *k, gr_newton *n, const double *x, const double *z, const double *u, long i) {
  const double below = gr_held(k)[i], above = gr_other(k)[i];
  double down = 0.0, up = 0.0, trial[GR_LEN(GR_NZ)];
  for (long j = 0; j < GR_NZ; j++) trial[j] = z[j];
  long status = gr_rate_with(k, n, x, trial, u, i, below, &down);
  if (!status) status = gr_rate_with(k, n, x, trial, u, i, above, &up);
  gr_held(k)[i] = below;
  gr_sliding(k)[i] = 1.0;
  gr_note_p(k); /* that of z */
  return !status && up < down;
}

/* Sliding that goes on after another has ended must still be drawn to its switch: else it ends as well, and nothing
 * says on which side. */
GR_COLD long gr_go_on(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, const long *near) {
  long left = 0;
  for (long i = 0; i < GR_NE; i++) left |= near[i] == GR_LEFT;
  for (long i = 0; left && i < GR_NE; i++)
    if (gr_sliding(k)[i] != 0.0 && !gr_attracts(k, n, x, z, u, i)) return gr_fail(k, GR_UNSETTLED, i, 0.0);
  return left ? gr_solve_modes(k, n, x, z, u) : GR_DONE;
}

/* 1 where a gap that does not move stands exactly at its switch and its relation is held at the other value: gaps of
 * discrete variables and of relations are whole numbers */
GR_FN long gr_rests_wrongly(const gr_task *k, long i, const gr_gauge *g, const long *near) {
  const long kind = gr_kind_of(i);
  if ((kind != GR_LT && kind != GR_LE) || near[i] != GR_AWAY || g->q[i] != 0.0 || g->rate[i] != 0.0) return 0;
  return gr_held(k)[i] != gr_relation(kind, 0.0);
}

/* How far rounding takes a gap at rest in the whole run, and no farther than steps know it. The slopes of gaps are those
 * of this point (gr_gauge_noise). */
GR_COLD double gr_drift(const gr_task *k, long i, const double *x, const double *z, const gr_gauge *fuzz) {
  return fmin(fuzz->q[i] + (k->t1 - k->t0) * fuzz->rate[i], GR_KNOWN * gr_gap_tolerance(k, i, x, z));
}

/* By how much a gap may be beyond the end of its range from here on. Never nothing for one that rests at its switch and
 * has been decided there: the next event at this instant must not take it for one that was not. */
GR_COLD double gr_slack_of(const gr_task *k, long i, const double *x, const double *z, const gr_gauge *g,
                           const gr_gauge *fuzz, long near) {
  const double out = gr_outside(k, i, g->q[i]), drift = gr_drift(k, i, x, z, fuzz);
  const long rests = fabs(g->rate[i]) <= fuzz->rate[i] && out >= -drift;
  return fmax(1.5 * fmax(0.0, out), !rests ? 0.0 : near == GR_NEAR ? fmax(1.5 * drift, GR_TINY) : 1.5 * drift);
}

/* 1 where gap i has left its range by rounding: what rests at its switch stays there */
GR_COLD long gr_stays_at_rest(const gr_task *k, long i, const double *x, const double *z, const double *u) {
  double noise[GR_NE];
  gr_gauge g, fuzz;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_gauge_noise(k, k->t, x, z, u, &g, noise);
  gr_fuzz_at(k, k->t, x, z, u, &g, &fuzz);
  const double before = gr_slack(k)[i];
  gr_slack(k)[i] = 0.0;
  const double drift = gr_drift(k, i, x, z, &fuzz), out = gr_outside(k, i, g.q[i]);
  const long rests = fabs(g.rate[i]) <= fuzz.rate[i] && fabs(out) <= drift && before < drift;
  gr_slack(k)[i] = rests ? 1.5 * drift : before;
  return rests;
}

/* 1 where a gap that was at its switch is still there with its relation at the other value, if not to rounding */
GR_COLD long gr_is_near(const gr_task *k, long i, const double *x, const double *z, const double *u, double noise) {
  double gap[GR_NE];
  gr_G(k->t, x, z, u, k->p, gap);
  return gr_sliding(k)[i] == 0.0 && gr_outside(k, i, gap[i]) <= 64.0 * noise;
}

/* Modes at the point where the run stands, until all agree with it: x stays, z and F (n->f) follow. `near`: gaps
 * that stand at their switch, whatever is left of them, those that have just ended to slide: their rates are zero, and
 * those whose turn comes later (gr_together.h). */
GR_COLD long gr_agree(gr_task *k, gr_newton *n, const double *x, double *z, const double *u, long *near) {
  double noise[GR_NE];
  gr_gauge g, fuzz;
  long status = gr_solve_modes(k, n, x, z, u), mode = 0;
  for (long pass = 0; !status && pass < 20 + 6 * GR_NE; pass++) {
    long changed = 0;
    gr_gauge_at(k, k->t, x, z, u, &g);
    gr_gauge_noise(k, k->t, x, z, u, &g, noise);
    gr_fuzz_at(k, k->t, x, z, u, &g, &fuzz);
    for (long i = 0; i < GR_NE; i++) noise[i] = fmax(noise[i], fuzz.q[i]);
    for (long i = 0; i < GR_NE && !changed && !status; i++) {
      const double out = gr_outside(k, i, g.q[i]);
      const long up = gr_is_upper(k, i, g.q[i]);
      mode = i;
      if (gr_sliding(k)[i] != 0.0) {
        changed = out > GR_SHARE_SLACK;
        if (changed) status = gr_leave(k, n, x, z, u, i, up);
        if (changed) near[i] = GR_LEFT;
      } else if (near[i] == GR_LEFT || near[i] == GR_WAITS) {
        continue;
      } else if (out > noise[i] && near[i] == GR_AWAY) {
        /* a gap that has jumped with an input or another mode */
        changed = 1;
        gr_held(k)[i] = gr_relation(gr_kind_of(i), g.q[i]);
        status = gr_record(k, i, up ? 1.0 : -1.0);
        if (!status) status = gr_solve_modes(k, n, x, z, u);
      } else if ((out >= -noise[i] || near[i] == GR_NEAR) && (up ? g.rate[i] > fuzz.rate[i] : g.rate[i] < -fuzz.rate[i])) {
        changed = 1;
        status = gr_cross(k, n, x, z, u, i, up, near);
        if (!status && near[i] == GR_AWAY && gr_is_near(k, i, x, z, u, noise[i])) near[i] = GR_NEAR;
      } else if (gr_rests_wrongly(k, i, &g, near)) {
        changed = 1;
        gr_held(k)[i] = 1.0 - gr_held(k)[i];
        status = gr_record(k, i, gr_held(k)[i] == 0.0 ? 1.0 : -1.0);
        if (!status) status = gr_solve_modes(k, n, x, z, u);
      }
    }
    if (status) return status;
    if (changed) continue;
    status = gr_go_on(k, n, x, z, u, near);
    if (status) return status;
    for (long i = 0; i < GR_NE; i++)
      if (gr_sliding(k)[i] == 0.0) gr_slack(k)[i] = gr_slack_of(k, i, x, z, &g, &fuzz, near[i]);
    return GR_DONE;
  }
  return status ? status : gr_fail(k, GR_UNSETTLED, mode, 0.0);
}

/* gaps that were left beyond their switch when they were decided still stand there; `marks`, where given, says
 * of others that they are there, or wait */
GR_COLD void gr_stand_off(const gr_task *k, const double *gap, const long *marks, long *near) {
  gr_forget_slack(k, gap);
  for (long i = 0; i < GR_NE; i++) {
    near[i] = gr_slack(k)[i] > 0.0 && gr_sliding(k)[i] == 0.0 ? GR_NEAR : GR_AWAY;
    gr_slack(k)[i] = 0.0;
    if (marks && marks[i] != GR_AWAY && gr_sliding(k)[i] == 0.0) near[i] = marks[i];
  }
}

#if GR_SENSITIVE
/* S where F jumps from `before` to `after` at an instant with the derivative k->dt */
GR_COLD void gr_saltate(gr_task *k, const double *before, const double *after) {
  for (long d = 0; d < k->ns; d++)
    for (long j = 0; j < GR_NX; j++) {
      k->sx[j + GR_NX * d] += (before[j] - after[j]) * k->dt[d];
      gr_sizes(k)[j + GR_MOVED * d] += (fabs(before[j]) + fabs(after[j])) * gr_size_of_instant(k, d);
    }
}
#endif

/* 1 where the instant whose derivative is dt moves */
GR_FN long gr_is_moving(const gr_task *k, const double *dt) {
  for (long d = 0; d < k->ns; d++)
    if (dt[d] != 0.0) return 1;
  return 0;
}

/* 1 where F jumps by more than rounding */
GR_FN long gr_is_jump(const double *before, const double *after) {
  for (long j = 0; j < GR_NX; j++)
    if (fabs(before[j] - after[j]) > 64.0 * GR_EPS * (fabs(before[j]) + fabs(after[j]))) return 1;
  return 0;
}

#include "gr_when.h"

/* modes at the start of a run */
GR_COLD long gr_first_modes(gr_task *k, gr_newton *n, double *x, double *z, const double *u, double *scratch) {
  double noise[GR_NE];
  long near[GR_NE];
  gr_gauge g;
  k->n_events = k->at_once = 0;
  k->event_at = k->joined_at = -HUGE_VAL;
  for (long i = 0; i < 4 * GR_NE; i++) gr_held(k)[i] = 0.0;
  for (long i = 0; i < GR_NP; i++) gr_p_of_z(k)[i] = HUGE_VAL; /* not known */
  for (long i = 0; i < GR_NE; i++) z[GR_SHARES + i] = 0.0;
  for (long i = 0; i < GR_NX; i++) gr_slip(k)[i] = 0.0;
  for (long d = 0; d < k->ns; d++) k->dt[d] = 0.0;
#if GR_SENSITIVE
  for (long d = 0; d < k->ns; d++) gr_instant_noise(k)[d] = 0.0;
  for (long d = 0; d < GR_MOVED * k->ns; d++) gr_sizes(k)[d] = 0.0;
#endif
  for (long pass = 0; pass <= GR_NE; pass++) { /* gaps may contain relations before them */
    gr_gauge_at(k, k->t, x, z, u, &g);
    gr_gauge_noise(k, k->t, x, z, u, &g, noise);
    for (long i = 0; i < GR_NE; i++) {
      const double *slope = gr_gap_slope(k);
      double nought = noise[i];
      for (long j = 0; j < GR_NX; j++) nought += GR_NOUGHT * k->nominal[j] * fabs(slope[i + GR_NE * j]);
      near[i] = g.q[i] != 0.0 && fabs(g.q[i]) <= nought ? GR_NEAR : GR_AWAY;
      gr_held(k)[i] = gr_relation(gr_kind_of(i), near[i] == GR_NEAR ? 0.0 : g.q[i]);
    }
  }
  long status = gr_solve_modes(k, n, x, z, u);
  if (status) return status;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_gauge_noise(k, k->t, x, z, u, &g, noise);
  for (long i = 0; i < GR_NE && !status; i++)
    if (gr_kind_of(i) == GR_SIGN && (near[i] == GR_NEAR || fabs(g.q[i]) <= noise[i])) status = gr_decide(k, n, x, z, u, i, -1.0, 1.0, 0.0, 0);
#if GR_HAS_W
  double held[GR_NE];
  long waits[GR_NE];
  for (long i = 0; i < GR_NE; i++) { /* at their switch relations are what they say, until initialization is over */
    const long stands = near[i] == GR_NEAR || fabs(g.q[i]) <= noise[i];
    waits[i] = stands && (gr_kind_of(i) == GR_LT || gr_kind_of(i) == GR_LE) ? GR_WAITS : near[i];
  }
  if (!status) status = gr_agree(k, n, x, z, u, waits);
  if (!status) status = gr_initialize(k, n, x, z, u, waits, scratch);
  for (long i = 0; i < GR_NE; i++) {
    held[i] = gr_held(k)[i];
    if (waits[i] == GR_WAITS) gr_slack(k)[i] = 0.0;
    else near[i] = waits[i];
  }
  if (!status) status = gr_agree(k, n, x, z, u, near);
  if (!status) status = gr_react_at_start(k, n, held, x, z, u, near, scratch);
#else
  if (!status) status = gr_agree(k, n, x, z, u, near);
  (void)scratch;
#endif
  return status;
}

/* Signals have jumped from u_before to u. A mode slides on only where its gap has not. */
GR_COLD long gr_pass_kink(gr_task *k, gr_newton *n, double *x, double *z, const double *u_before, const double *u,
                          const long *marks, double *scratch) {
  double before[GR_NE], after[GR_NE], noise[GR_NE];
  gr_gauge g;
  gr_G(k->t, x, z, u_before, k->p, before);
  gr_G(k->t, x, z, u, k->p, after);
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_gauge_noise(k, k->t, x, z, u, &g, noise);
  for (long i = 0; i < GR_NE; i++) {
    if (gr_sliding(k)[i] == 0.0 || fabs(after[i] - before[i]) <= 64.0 * noise[i]) continue;
    gr_sliding(k)[i] = 0.0;
    gr_held(k)[i] = gr_relation(gr_kind_of(i), after[i]);
    const long status = gr_record(k, i, after[i] > before[i] ? 2.0 : -2.0);
    if (status) return status;
  }
  long near[GR_NE];
  gr_stand_off(k, after, marks, near);
#if GR_SENSITIVE
  for (long d = 0; d < k->ns; d++) gr_instant_noise(k)[d] = 0.0;
#endif
#if GR_HAS_W
  const long dated = gr_ticks(k, x, z, u_before, u);
#if GR_SENSITIVE
  double f[GR_LEN(GR_NX)];
  if (k->ns > 0) {
    const long unsolved = gr_solve_modes(k, n, x, z, u);
    if (unsolved) return unsolved;
    for (long j = 0; j < GR_NX; j++) f[j] = n->f[j];
  }
#endif
  long status = gr_agree(k, n, x, z, u, near);
#if GR_SENSITIVE
  if (!status && k->ns > 0) gr_saltate(k, f, n->f);
#endif
  return status ? status : gr_react(k, n, x, z, u, near, 0, dated, 0, scratch);
#else
  (void)scratch;
  for (long d = 0; d < k->ns; d++) k->dt[d] = 0.0;
  return gr_agree(k, n, x, z, u, near);
#endif
}

/* 1 where the end of the stretch of frozen steps between two instants is the tick of a clock that moves, by `dt` */
GR_COLD long gr_ends_moving(gr_task *k, double from, double to, long hint, double *dt) {
#if GR_HAS_W && GR_SENSITIVE
  double before[GR_LEN(GR_NU)], after[GR_LEN(GR_NU)];
  long ticks[GR_NQ + 1];
  if (k->ns == 0 || GR_NQ == 0) return 0;
  const long segment = gr_segment(k, 0.5 * (from + to), hint), next = gr_segment(k, to, segment);
  if (next == segment) return 0;
  gr_signals_from(k, segment, to, before);
  gr_signals_from(k, next, to, after);
  gr_ticking(before, after, ticks);
  gr_moving_ticks(k, k->x, k->z, after, ticks, dt);
  return gr_is_moving(k, dt);
#else
  (void)k; (void)from; (void)to; (void)hint; (void)dt;
  return 0;
#endif
}

#if GR_SENSITIVE
/* The rate of gap i that gr_slip adds. The factors of dF/dz and dF/dp, in scratch, are those of this point. */
GR_COLD double gr_slip_rate(gr_task *k, gr_newton *n, const double *slope, long i, const double *scratch) {
  double rate = 0.0, sz[GR_LEN(GR_NZ)], *nothing = gr_by_p(k), *dp = k->dp;
  const long ns = k->ns;
  long implicit = 0;
  for (long j = 0; j < GR_NX; j++) rate += slope[i + GR_NE * j] * gr_slip(k)[j];
  for (long j = 0; j < GR_NZ; j++) implicit |= slope[i + GR_NE * (GR_NX + j)] != 0.0;
  if (!implicit) return rate;
  for (long j = 0; j < GR_NP; j++) nothing[j] = 0.0;
  k->ns = 1;
  k->dp = nothing;
  gr_sensitivity_z(k, n, scratch, gr_slip(k), sz);
  k->ns = ns;
  k->dp = dp;
  for (long j = 0; j < GR_NZ; j++) rate += slope[i + GR_NE * (GR_NX + j)] * sz[j];
  return rate;
}

/* The rate of the share of mode i, which slides, along the motion: no equation says it, so those of z are looked at beside
 * this point. The factors of dF/dz are those of this point; n->f is F. */
GR_COLD double gr_share_rate(gr_task *k, gr_newton *n, long i, double length, const double *x, const double *z) {
  const double by = GR_DISPLACEMENT * (k->fixed_step > 0.0 ? k->fixed_step : fmax(length, GR_GRAZING * (k->t1 - k->t0)));
  const long segment = gr_segment(k, k->t, 0);
  double beside[GR_LEN(GR_NX)], u[GR_LEN(GR_NU)], f[GR_LEN(GR_N)], rate[GR_LEN(GR_NZ)], ends[2];
  for (long side = 0; side < 2; side++) {
    ends[side] = k->t + (side ? by : -by);
    for (long j = 0; j < GR_NX; j++) beside[j] = x[j] + (ends[side] - k->t) * n->f[j];
    gr_signals_from(k, segment, ends[side], u);
    gr_F(ends[side], beside, z, u, k->p, f);
    for (long j = 0; j < GR_NZ; j++) rate[j] = side ? (rate[j] - f[GR_NX + j]) / (ends[1] - ends[0]) : f[GR_NX + j];
  }
  gr_solve_z(k, n, rate);
  return gr_not_finite(GR_NZ, rate) >= 0 ? 0.0 : rate[GR_SHARES + i];
}

/* Gap i, as it stands in `slope`, and its rate are those of the share where the mode slides; 0 where it touches the end of
 * its range only. */
GR_COLD long gr_leaves_sliding(gr_task *k, gr_newton *n, const gr_event *e, const double *x, const double *z, double *slope,
                               double *rate) {
  const long i = e->mode;
  for (long j = 0; j < GR_N; j++) slope[i + GR_NE * j] = j == GR_NX + GR_SHARES + i;
  *rate = gr_share_rate(k, n, i, e->length, x, z);
  return fabs(*rate) * e->length > GR_SHARE_SLACK;
}

/* k->dt: d(instant) in every direction */
GR_COLD long gr_moving_instants(gr_task *k, gr_newton *n, const gr_event *e, const double *x, const double *z,
                                const double *u, double *scratch) {
  const long i = e->mode, slides = gr_sliding(k)[i] != 0.0;
  double *slope = gr_gap_slope(k), *by_p = gr_by_p(k);
  gr_gauge g;
  gr_gauge_at(k, k->t, x, z, u, &g);
  long status = gr_complete_sensitivity(k, n, k->t, x, z, u, k->sx, k->sz, scratch);
  if (status) return status;
  gr_GJ(k->t, x, z, u, k->p, slope);
  for (long d = 0; d < k->ns; d++) k->dt[d] = gr_instant_noise(k)[d] = 0.0;
  const long crosses = slides ? gr_leaves_sliding(k, n, e, x, z, slope, &g.rate[i])
                              : fabs(g.rate[i]) > GR_GRAZING * (k->t1 - k->t0) * fabs(e->bend);
  if (!crosses) return gr_fail(k, GR_GRAZES, i, g.rate[i]);
  const double rate = g.rate[i] + gr_slip_rate(k, n, slope, i, scratch);
  gr_GP(k->t, x, z, u, k->p, by_p);
  for (long d = 0; d < k->ns; d++) {
    double moved = 0.0, size = 0.0;
    for (long j = 0; !slides && j < GR_NP; j++) gr_add(by_p[i + GR_NE * j] * k->dp[j + GR_NP * d], &moved, &size);
    for (long j = 0; j < GR_NX; j++) {
      gr_add(slope[i + GR_NE * j] * k->sx[j + GR_NX * d], &moved, &size);
      size += fabs(slope[i + GR_NE * j]) * gr_sizes(k)[j + GR_MOVED * d];
    }
    for (long j = 0; j < GR_NZ; j++) gr_add(slope[i + GR_NE * (GR_NX + j)] * k->sz[j + GR_NZ * d], &moved, &size);
    k->dt[d] = -moved / rate;
    gr_instant_noise(k)[d] = GR_INSTANT_NOISE * size / fabs(rate);
    for (long j = 0; j < GR_NX; j++) k->sx[j + GR_NX * d] += gr_slip(k)[j] * k->dt[d];
  }
  return GR_DONE;
}
#endif

/* Where switches accumulate, several may slide at once: those whose gaps close within GR_TOGETHER of the run. Answers 1
 * where their shares are in range; else, or where this was done just before, the modes are as before. */
GR_COLD long gr_join(gr_task *k, gr_newton *n, const double *x, double *z, const double *u) {
  double kept[4 * GR_NE], z_kept[GR_LEN(GR_NZ)], noise[GR_NE], gap[GR_NE];
  const double soon = GR_TOGETHER * (k->t1 - k->t0), amount = k->amount;
  const long where = k->where, before = k->at_once;
  long joined = 0;
  gr_gauge g;
  for (long i = 0; i < 4 * GR_NE; i++) kept[i] = gr_held(k)[i];
  for (long i = 0; i < GR_NZ; i++) z_kept[i] = z[i];
  if (k->t - k->joined_at <= soon) return 0;
  if (gr_solve_modes(k, n, x, z, u)) return 0;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_gauge_noise(k, k->t, x, z, u, &g, noise);
  gr_G(k->t, x, z, u, k->p, gap);
  for (long i = 0; i < GR_NE; i++) {
    const long whole = gr_kind_of(i) == GR_FLOOR || gr_kind_of(i) == GR_CEIL;
    const double apart = fabs(gap[i] - (whole ? floor(gap[i] + 0.5) : 0.0));
    if (gr_sliding(k)[i] != 0.0) {
      joined++;
      continue;
    }
    if (gr_kind[i] < 0 || !(apart <= soon * fabs(g.rate[i]) + noise[i])) continue;
    const long up = gr_is_upper(k, i, gap[i]);
    const double v = gr_held(k)[i], other = gr_beside(k, i, up);
    if (other == v) continue;
    gr_held(k)[i] = up ? v : other;
    gr_other(k)[i] = up ? other : v;
    gr_sliding(k)[i] = 1.0;
    gr_slack(k)[i] = 0.0;
    z[GR_SHARES + i] = 0.5;
    joined++;
  }
  long fits = joined > 1 && !gr_solve_modes(k, n, x, z, u);
  for (long i = 0; fits && i < GR_NE; i++)
    if (gr_sliding(k)[i] != 0.0 && gr_outside(k, i, z[GR_SHARES + i]) > -GR_INTERIOR) fits = 0;
  for (long i = 0; fits && i < GR_NE; i++)
    if (gr_sliding(k)[i] != 0.0 && kept[2 * GR_NE + i] == 0.0) gr_record(k, i, 0.0);
  if (fits) k->joined_at = k->t;
  k->at_once = fits ? 0 : before;
  k->where = where;
  k->amount = amount;
  if (fits) return 1;
  for (long i = 0; i < 4 * GR_NE; i++) gr_held(k)[i] = kept[i];
  for (long i = 0; i < GR_NZ; i++) z[i] = z_kept[i];
  n->valid = 0;
  return 0;
}

/* The switch of one mode at the point where the run stands: modes, z, sensitivities of x. n->f must be F before it; it is
 * F after it. `marks`: see gr_stand_off.
 *
 * gr_slip is by what the end of that step moves with its length more than F says: nothing where error control has chosen
 * it, the discretisation error of a frozen one, whose derivative is that of the steps. */
GR_COLD long gr_switch(gr_task *k, gr_newton *n, const gr_event *e, double *x, double *z, const double *u,
                       const long *marks, double *scratch) {
  const long i = e->mode, slides = gr_sliding(k)[i] != 0.0;
  long near[GR_NE], status = GR_DONE;
  double gap[GR_NE];
#if GR_HAS_W
  const long stuck = !slides && gr_slack(k)[i] > 0.0; /* it has not left its switch since it was decided */
#endif
  gr_G(k->t, x, z, u, k->p, gap);
  gr_stand_off(k, gap, marks, near);
  near[i] = slides ? GR_LEFT : GR_NEAR;
#if GR_SENSITIVE
  double before[GR_LEN(GR_NX)];
  for (long j = 0; j < GR_NX; j++) before[j] = n->f[j];
  for (long d = 0; d < k->ns; d++) k->dt[d] = 0.0;
  if (k->ns > 0) status = gr_moving_instants(k, n, e, x, z, u, scratch);
  const long grazes = status == GR_GRAZES; /* which matters where anything changes there */
  const double rate = k->amount;
  if (status && !grazes) return status;
#else
  (void)scratch;
#endif
  status = slides ? gr_leave(k, n, x, z, u, i, e->up) : gr_cross(k, n, x, z, u, i, e->up, near);
  for (long j = 0; marks && j < GR_NE && !status; j++) {
    if (j == i || marks[j] != GR_NEAR || gr_sliding(k)[j] == 0.0) continue;
    near[j] = GR_LEFT;
    status = gr_leave(k, n, x, z, u, j, gr_is_upper(k, j, z[GR_SHARES + j]));
  }
  if (!status) status = gr_agree(k, n, x, z, u, near);
  if ((status == GR_ACCUMULATES || status == GR_UNSETTLED) && gr_join(k, n, x, z, u)) status = GR_DONE;
#if GR_SENSITIVE
  if (!status && grazes && gr_is_jump(before, n->f)) return gr_fail(k, GR_GRAZES, i, rate);
  if (!status) gr_saltate(k, before, n->f);
#endif
#if GR_HAS_W
#if GR_SENSITIVE
  if (!status) status = gr_react(k, n, x, z, u, near, 0, !grazes, stuck, scratch);
  if (status == GR_NO_INSTANT && grazes) return gr_fail(k, GR_GRAZES, i, rate);
#else
  if (!status) status = gr_react(k, n, x, z, u, near, 0, 1, stuck, scratch);
#endif
#endif
  return status;
}

#include "gr_together.h"

/* The event that ended the last step, with what is reached at the same instant */
GR_COLD long gr_happen(gr_task *k, gr_newton *n, const gr_event *e, double *x, double *z, const double *u,
                       double *scratch) {
  if (gr_sliding(k)[e->mode] == 0.0 && gr_stays_at_rest(k, e->mode, x, z, u)) return GR_DONE;
#if GR_SENSITIVE
  if (k->ns > 0) return gr_happen_together(k, n, e, x, z, u, scratch);
#endif
  return gr_switch(k, n, e, x, z, u, 0, scratch);
}

/* Signals have jumped from u_before to u, where the run stands. */
GR_COLD long gr_modes_at_kink(gr_task *k, gr_newton *n, double *x, double *z, const double *u_before, const double *u,
                              double *scratch) {
#if GR_SENSITIVE
  if (k->ns > 0) return gr_pass_kink_together(k, n, x, z, u_before, u, scratch);
#endif
  return gr_pass_kink(k, n, x, z, u_before, u, 0, scratch);
}

#endif
#endif
