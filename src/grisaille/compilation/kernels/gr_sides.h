/* Finds how far a straight line goes before one of the switches on it changes.
 *
 * Newton's method on equations with bends walks from piece to piece: in each, the correction belongs to that piece, and
 * is cut where it leaves it, just beyond the first switch on its way (Katzenelson's algorithm). On coherently oriented
 * pieces, such as those of monotone equations, this walk ends at the root.
 *
 * A gap below zero and one that is not lie on different sides; gr_S writes GR_SIDES of them.
 *
 * Reference: Katzenelson, An algorithm for solving nonlinear resistor networks, Bell System Technical Journal 44 (1965).
 */
#ifndef GR_SIDES_H
#define GR_SIDES_H

#include <math.h>

#include "gr_task.h"

#define GR_MOST_CUTS 100
#define GR_NUDGE 1e-13 /* how far beyond a switch the line is followed, as a part of itself */

/* 1 when some gap lies on its other side */
GR_FN long gr_have_changed(long n, const double *before, const double *after) {
  for (long i = 0; i < n; i++)
    if ((before[i] < 0.0) != (after[i] < 0.0)) return 1;
  return 0;
}

#if GR_HAS_SIDES
/* n gaps at a share of a line */
typedef void (*gr_line_gaps)(const void *line, double share, double *gaps);

/* where the first gap that changes does, if all are straight */
GR_COLD double gr_first_change(long n, const double *low, const double *high) {
  double first = 1.0;
  for (long i = 0; i < n; i++) {
    if ((low[i] < 0.0) == (high[i] < 0.0)) continue;
    const double share = low[i] / (low[i] - high[i]);
    if (!(share - share == 0.0)) return 0.5;
    if (share < first) first = share;
  }
  return first > 0.0 ? first : 0.0;
}

/* The share in (0, 1] at which the line has just passed its first switch; 1 where it passes none. Gaps that are straight
 * along the line cost three evaluations. n: at most 3 GR_SIDES. */
GR_COLD double gr_reach(const void *line, gr_line_gaps gaps, long n) {
  double here[3 * GR_SIDES], at_low[3 * GR_SIDES], at_high[3 * GR_SIDES], found[3 * GR_SIDES];
  double low = 0.0, high = 1.0, nudge = GR_NUDGE;
  gaps(line, 0.0, here);
  gaps(line, 1.0, at_high);
  if (!gr_have_changed(n, here, at_high)) return 1.0;
  for (long i = 0; i < n; i++) at_low[i] = here[i];
  for (long cut = 0; cut < GR_MOST_CUTS && high - low > 1e-12 * high; cut++) {
    const double at = low + (high - low) * (cut % 4 < 3 ? gr_first_change(n, at_low, at_high) : 0.5);
    const double beside = fmin(nudge * at, 0.25 * (high - low)), beyond = fmin(at + beside, high), before = at - beside;
    gaps(line, beyond, found);
    if (!gr_have_changed(n, here, found)) {
      for (long i = 0; i < n; i++) at_low[i] = found[i];
      low = beyond;
      nudge = fmin(8.0 * nudge, 1e-9);
      continue;
    }
    for (long i = 0; i < n; i++) at_high[i] = found[i];
    high = beyond;
    nudge = GR_NUDGE;
    if (!(before > low)) continue;
    gaps(line, before, found);
    if (!gr_have_changed(n, here, found)) break;
    for (long i = 0; i < n; i++) at_high[i] = found[i];
    high = before;
  }
  return high;
}
#endif

#endif
