/* Particles are moved along an interval, GR_LANES at a time: normals, steps, limits of states and events.
 */
#ifndef GR_PARTICLE_STEPS_H
#define GR_PARTICLE_STEPS_H

#include "gr_particle_task.h"

GR_FN void gr_widen(const double *from, long n, gr_wide *to) {
  long i;
  for (i = 0; i < n; i++) to[i] = GR_SPLAT(from[i]);
}

/* the logarithm, which is that of one number where all lanes have the same */
GR_FN gr_wide gr_log_wide(gr_wide a) {
#if GR_LANES == 2
  if (GR_LANE(a, 0) == GR_LANE(a, 1)) return GR_SPLAT(log(GR_LANE(a, 0)));
#endif
  return GR_EACH1(log, a);
}

GR_FN gr_wide gr_wide_sqrt(gr_wide a) { return GR_EACH1(sqrt, a); }

/* n standard normals of a block in one interval: those of an odd particle are those of its left neighbour with the other
 * sign, because neighbours are alike and what they predict wrongly then nearly cancels */
GR_FN void gr_draw(const gr_particle_task *f, long block, gr_u32 interval, long n, gr_wide *z) {
  double pair[2];
  long i, l;
#if GR_LANES == 1
  const double sign = block % 2 ? -1.0 : 1.0;
  const gr_u32 number = (gr_u32)(block / 2);
#else
  const gr_u32 number = (gr_u32)block;
#endif
  for (i = 0; i < n; i += 2) {
    gr_normal_pair(&f->stream, number, interval, GR_DRAW, (gr_u32)(i / 2), pair);
    for (l = 0; l < 2 && i + l < n; l++) {
#if GR_LANES == 1
      z[i + l] = GR_SPLAT(sign * pair[l]);
#else
      GR_LANE(z[i + l], 0) = pair[l];
      GR_LANE(z[i + l], 1) = -pair[l];
#endif
    }
  }
}

GR_FN const gr_wide *gr_q(const gr_particle_task *f, const gr_room *r, long block) {
  return r->q + (f->n_walking > 0 ? block * GR_LEN(GR_NQ) : 0);
}

GR_FN const gr_wide *gr_c(const gr_particle_task *f, const gr_room *r, long block) {
  return r->c + (f->n_walking > 0 ? block * GR_LEN(GR_NK) : 0);
}

/* states kept inside their limits */
GR_FN void gr_limit(const gr_particle_task *f, gr_wide *s) {
  long i, l;
  if (!f->lowest) return;
  for (i = 0; i < GR_NM; i++)
    for (l = 0; l < GR_LANES; l++) {
      const double value = GR_LANE(s[i], l);
      if (value < f->lowest[i]) GR_LANE(s[i], l) = f->lowest[i];
      if (value > f->highest[i]) GR_LANE(s[i], l) = f->highest[i];
    }
}

#ifdef GR_EVENTS
enum { GR_MOST_PASSES = 50 };

/* what happens at the end of a step: u there, ticks where a signal that counts them has grown since `before` */
GR_FN void gr_happen(const gr_particle_task *f, double t, gr_wide *s, const double *before, const double *u,
                     const gr_wide *q, const gr_wide *nominal, const gr_wide *c) {
  gr_wide wide[GR_LEN(GR_NU)], pulse[GR_LEN(GR_EVENTS)], fired[1];
  long i, l, pass;
  gr_widen(u, GR_NU, wide);
  for (i = 0; i < GR_EVENTS; i++) pulse[i] = GR_SPLAT(u[gr_counter[i]] > before[gr_counter[i]] + 0.5 ? 1.0 : 0.0);
  for (pass = 0; pass < GR_MOST_PASSES; pass++) {
    int any = 0;
    gr_event(t, s, wide, pulse, q, nominal, c, s, fired);
    for (l = 0; l < GR_LANES; l++) any |= GR_LANE(fired[0], l) > 0.0;
    if (!any) break;
  }
  gr_limit(f, s);
}
#endif

/* one block along an interval from s to out; `every` steps of v make one (2: for the error of steps); tape: states before
 * each step, or NULL */
GR_FN void gr_along(const gr_particle_task *f, const gr_interval *it, const gr_wide *s, const gr_wide *v,
                    const gr_wide *q, const gr_wide *nominal, const gr_wide *c, gr_wide *tape, gr_wide *out) {
  gr_wide ua[GR_LEN(GR_NU)], um[GR_LEN(GR_NU)], ub[GR_LEN(GR_NU)];
  const double *u = f->stages + it->stage * GR_NU;
  long k, j, i;
  for (i = 0; i < GR_NS; i++) out[i] = s[i];
  for (k = it->first; k < it->last; k++) {
    const long n = f->steps[k];
    const double t = f->bounds[k], h = (f->bounds[k + 1] - t) / (double)n;
    gr_widen(u, GR_NU, ub);
    for (j = 0; j < n; j++) {
      for (i = 0; i < GR_NU; i++) ua[i] = ub[i];
      gr_widen(u + GR_NU, GR_NU, um);
      gr_widen(u + 2 * GR_NU, GR_NU, ub);
      u += 2 * GR_NU;
      if (tape) {
        for (i = 0; i < GR_NS; i++) tape[i] = out[i];
        tape += GR_LEN(GR_NS);
      }
      gr_move(t + (double)j * h, h, out, ua, um, ub, v, q, nominal, c, out);
      gr_limit(f, out);
#ifdef GR_EVENTS
      gr_happen(f, t + (double)(j + 1) * h, out, u, j + 1 == n ? f->signals + (k + 1) * GR_NU : u, q, nominal, c);
#endif
      v += GR_NV;
    }
    u += GR_NU;
  }
}

#ifdef GR_COARSE
/* the same with steps of twice the length, whose normals are those that the halves make together */
GR_FN void gr_coarsely(const gr_particle_task *f, const gr_interval *it, const gr_wide *s, const gr_wide *v,
                       const gr_wide *q, const gr_wide *nominal, const gr_wide *c, gr_wide *out) {
  gr_wide ua[GR_LEN(GR_NU)], um[GR_LEN(GR_NU)], ub[GR_LEN(GR_NU)], both[GR_LEN(GR_NV)];
  const double *u = f->stages + it->stage * GR_NU, half = 0.70710678118654752;
  long k, j, i;
  for (i = 0; i < GR_NS; i++) out[i] = s[i];
  for (k = it->first; k < it->last; k++) {
    const long n = f->steps[k] / 2;
    const double t = f->bounds[k], h = (f->bounds[k + 1] - t) / (double)n;
    for (j = 0; j < n; j++) {
      gr_widen(u, GR_NU, ua);
      gr_widen(u + 2 * GR_NU, GR_NU, um);
      gr_widen(u + 4 * GR_NU, GR_NU, ub);
      u += 4 * GR_NU;
#if GR_COARSE == 1
      for (i = 0; i < GR_NV; i++) both[i] = GR_SPLAT(half) * (v[i] + v[GR_NV + i]);
#elif GR_COARSE == 2
      /* increments, then their areas */
      for (i = 0; i < GR_NV / 2; i++) {
        const gr_wide a = v[i], b = v[GR_NV + i], A = v[GR_NV / 2 + i], B = v[GR_NV + GR_NV / 2 + i];
        both[i] = GR_SPLAT(half) * (a + b);
        both[GR_NV / 2 + i] = GR_SPLAT(0.5 * half) * (A + B) + GR_SPLAT(0.61237243569579452) * (a - b);
      }
#else
      (void)half, (void)i;
#endif
      gr_move(t + (double)j * h, h, out, ua, um, ub, both, q, nominal, c, out);
      gr_limit(f, out);
#ifdef GR_EVENTS
      gr_happen(f, t + (double)(j + 1) * h, out, u, j + 1 == n ? f->signals + (k + 1) * GR_NU : u, q, nominal, c);
#endif
      v += 2 * GR_NV;
    }
    u += GR_NU;
  }
}
#endif

#endif
