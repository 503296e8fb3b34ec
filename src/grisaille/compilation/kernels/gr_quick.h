/* Takes quotients and roots on CUDA devices without the branch to a slow path, which keeps a compiler from mixing what
 * follows with what comes before: a step with one sensitivity takes half the time. Rounded as IEEE 754 wants it where
 * |a|, |b| and x are between 2^-500 and 2^500, and to two units of the last digit where |a| is smaller; gr_over says
 * where they are not, and gr_cuda.h then repeats the window with plain ones. Reference: P. Markstein, IA-64 and
 * Elementary Functions (2000), chapters 8 and 9.
 */
#ifndef GR_QUICK_H
#define GR_QUICK_H

#include "gr_task.h"

GR_FN double gr_quick_ratio(double a, double b) {
  double r, e, q;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(b));
  e = __fma_rn(-b, r, 1.0);
  e = __fma_rn(e, e, e);
  r = __fma_rn(r, e, r);
  e = __fma_rn(-b, r, 1.0);
  r = __fma_rn(r, e, r);
  q = __dmul_rn(a, r);
  return __fma_rn(__fma_rn(-b, q, a), r, q);
}

/* a / b; far[0] and far[1] become too large (gr_is_far) where that is not sure to be rounded rightly */
GR_FN double gr_over(double a, double b, unsigned int *far) {
  const unsigned int ha = (unsigned int)__double2hiint(a), hb = (unsigned int)__double2hiint(b);
  const double q = gr_quick_ratio(a, b);
  /* upper halves are in order of size; small divisors wrap around */
  far[0] = max(far[0], ha & 0x7FFFFFFFu);
  far[1] = max(far[1], (hb & 0x7FFFFFFFu) - (523u << 20));
  /* the correction makes zeros positive */
  return __hiloint2double((int)((unsigned int)__double2hiint(q) | ((ha ^ hb) & 0x80000000u)), __double2loint(q));
}

GR_FN bool gr_is_far(const unsigned int *far) { return far[0] > (1523u << 20) || far[1] > (1000u << 20); }

GR_FN double gr_quick_sqrt(double x) {
  double y, e, s;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  e = __fma_rn(-x, __dmul_rn(y, y), 1.0);
  y = __fma_rn(__fma_rn(e, 0.375, 0.5), __dmul_rn(y, e), y);
  s = __dmul_rn(x, y);
  return __fma_rn(__fma_rn(-s, s, x), __dmul_rn(0.5, y), s);
}

#endif
