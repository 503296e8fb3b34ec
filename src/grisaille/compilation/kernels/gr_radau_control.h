/* Chooses how long the steps of the implicit method are.
 *
 * The embedded error has order 3. Taken as the error of a method of order 5 it would be far too pessimistic at small
 * tolerances, so it is compared with 0.1 rtol^(2/3) in place of rtol, and atol in proportion. Lengths follow
 * Gustafsson's predictive controller (Hairer, Wanner: Solving Ordinary Differential Equations II, section IV.8) and
 * stay as they are when the gain would be below 1.2, which saves a factorization.
 */
#ifndef GR_RADAU_CONTROL_H
#define GR_RADAU_CONTROL_H

#include "gr_radau_room.h"

#define GR_RADAU_MOST_ITERATIONS 7
#define GR_RADAU_KEEP_JACOBIAN 1e-3
#define GR_RADAU_KEEP_STEP 1.2
#define GR_RADAU_SAFETY 0.9
#define GR_RADAU_GROW 8.0
#define GR_RADAU_SHRINK 0.2
#define GR_RADAU_CLOSER 1e-2 /* of the way to a switch that a step leaves */
#define GR_RADAU_SLIDES 100.0 /* switches within so many lengths of the step over the last are those of sliding */
#define GR_RADAU_NEAREST 1e3 /* steps towards a switch are not shorter than this, in smallest ones */

/* how much looser than rtol the embedded error is judged */
GR_FN double gr_radau_leeway(const gr_task *k) { return 0.1 / cbrt(k->rtol); }

GR_FN void gr_radau_scales(const gr_task *k, gr_radau_room *r, const double *other) {
  const double leeway = gr_radau_leeway(k);
  for (long i = 0; i < GR_N; i++) {
    const double a = fabs(r->y[i]), b = fabs(other[i]);
    const double unit = k->atol[i] + k->rtol * (a > b ? a : b);
    r->scale[i] = leeway * (unit > 1e-300 ? unit : 1e-300);
  }
}

/* relative size of the solution, for iterations to rounding */
GR_FN void gr_radau_sizes(const gr_task *k, gr_radau_room *r) {
  for (long i = 0; i < GR_N; i++) {
    const double size = fabs(r->y[i]) + k->atol[i] / k->rtol;
    r->scale[i] = size > 0.0 ? size : 1.0;
  }
}

/* first step: one hundredth of the time in which x would change by its own size */
GR_COLD double gr_radau_first_step(const gr_task *k, gr_radau_room *r) {
  double size = 0.0, speed = 0.0;
  for (long i = 0; i < GR_NX; i++) {
    const double unit = k->atol[i] + k->rtol * fabs(r->y[i]);
    size += (r->y[i] / unit) * (r->y[i] / unit);
    speed += (r->f[i] / unit) * (r->f[i] / unit);
  }
  size = sqrt(size / GR_LEN(GR_NX));
  speed = sqrt(speed / GR_LEN(GR_NX));
  const double least = 100.0 * gr_smallest_step(k, k->t), most = 1e-3 * (k->t1 - k->t);
  const double h = 0.01 * (size > 100.0 ? size : 100.0) / speed;
  return !(h < most) ? most : h > least ? h : least;
}

/* the wish of the controller, cut so that the step ends where it must: at a kink, or at a row that cannot be
 * interpolated */
GR_FN double gr_radau_cut(const gr_task *k, const gr_radau *s, double h, long land) {
  if (k->hmax > 0.0 && h > k->hmax) h = k->hmax;
  const double left = s->kink - k->t, ahead = 2.0 * (s->switch_at - k->t);
  if (ahead > GR_RADAU_NEAREST * gr_smallest_step(k, k->t) && ahead < h) h = ahead;
  h = h >= left ? left : 2.0 * h > left ? 0.5 * left : h;
  if (!gr_row_before(k, k->t + h)) return h;
  const double row = k->times[k->written] - k->t;
  return land || s->roughness * h * h * h * h > 1.0 ? row : h;
}

GR_FN double gr_radau_between(double low, double value, double high) {
  return !(value > low) ? low : value < high ? value : high;
}

/* h_new after an attempt of length h with this error */
GR_FN double gr_radau_propose(const gr_radau *s, double h, double error, long iterations) {
  const double most = GR_RADAU_MOST_ITERATIONS;
  double safety = GR_RADAU_SAFETY * (1.0 + 2.0 * most) / ((double)iterations + 2.0 * most);
  if (safety > GR_RADAU_SAFETY) safety = GR_RADAU_SAFETY;
  double quotient = gr_radau_between(1.0 / GR_RADAU_GROW, pow(error, 0.25) / safety, 1.0 / GR_RADAU_SHRINK);
  if (error < 1.0 && !s->first && s->h_accepted > 0.0) {
    const double predicted = s->h_accepted / h * pow(error * error / s->error_accepted, 0.25) / GR_RADAU_SAFETY;
    const double bounded = gr_radau_between(1.0 / GR_RADAU_GROW, predicted, 1.0 / GR_RADAU_SHRINK);
    if (bounded > quotient) quotient = bounded;
  }
  return h / quotient;
}

/* where the next step goes on: a step cut short does not shrink the wish unless its own error says so */
GR_FN void gr_radau_next_wish(gr_radau *s, double wish, double h, double proposal, double error) {
  if (s->rejected && proposal > h) proposal = h;
  s->h_accepted = h;
  s->error_accepted = error > 1e-2 ? error : 1e-2;
  if (h < 0.999 * wish && proposal >= 0.999 * GR_RADAU_GROW * h && proposal < wish) proposal = wish;
  const double gain = proposal / h;
  s->h = gain >= 1.0 && gain <= GR_RADAU_KEEP_STEP && s->theta <= GR_RADAU_KEEP_JACOBIAN ? h : proposal;
}

#endif
