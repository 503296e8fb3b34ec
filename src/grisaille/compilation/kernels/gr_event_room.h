/* Lays out the memory of events: matrices whose sizes grow with products are no local variables. They lie at the head of
 * task->work, before what integrators keep there.
 */
#ifndef GR_EVENT_ROOM_H
#define GR_EVENT_ROOM_H

#include <math.h>

#include "gr_project.h"
#include "gr_task.h"

#if GR_HAS_E

#define GR_DISPLACEMENT 1e-4 /* of the largest frozen step: what steps are moved by to see how they scale */
#define GR_GAP_SLOPE (GR_NE * GR_N)
#if GR_HAS_W
#define GR_MOST(a, b) ((a) > (b) ? (a) : (b))
#define GR_BY_P (GR_MOST(GR_NE, GR_NQ) * GR_NP)
#define GR_RESETS GR_MOST(GR_PROJECT_WORK, GR_NR * (GR_N + GR_NP))
#else
#define GR_BY_P (GR_NE * GR_NP)
#define GR_RESETS 0
#endif
#define GR_EVENT_ROOM (GR_GAP_SLOPE + GR_BY_P + GR_RESETS + GR_NX + GR_NE + GR_NP)
#if GR_HAS_W
#define GR_MOST_PARTS (GR_NE + GR_NQ + 1) /* what may be reached at one instant: relations, ticks, a jump of signals */
#else
#define GR_MOST_PARTS (GR_NE + 1)
#endif
#define GR_MOVED (GR_NX + GR_NP) /* what has derivatives that events change: states, then parameters */
#if GR_SENSITIVE
#define GR_TOGETHER_ROOM (4 * GR_MOVED + 2 + GR_MOST_PARTS) /* of one direction */
#else
#define GR_TOGETHER_ROOM 0
#endif

GR_FN double *gr_gap_slope(const gr_task *k) { return k->work; }              /* dG/d[x; z] */
GR_FN double *gr_by_p(const gr_task *k) { return k->work + GR_GAP_SLOPE; }    /* dG/dp or dT/dp */
GR_FN double *gr_for_resets(const gr_task *k) { return gr_by_p(k) + GR_BY_P; } /* dR/d[x; z] and dR/dp, or a projection */
GR_FN double *gr_slip(const gr_task *k) { return gr_for_resets(k) + GR_RESETS; } /* see gr_switch */
GR_FN double *gr_bends(const gr_task *k) { return gr_slip(k) + GR_NX; } /* see gr_event */
GR_FN double *gr_p_of_z(const gr_task *k) { return gr_bends(k) + GR_NE; } /* p with which z was last solved */
GR_FN long gr_event_room(long ns) { return GR_EVENT_ROOM + GR_TOGETHER_ROOM * ns; }

#if GR_SENSITIVE
/* for each direction: by what rounding moves the derivative of an instant, and sizes of the terms that events add to
 * derivatives; what else lies there is gr_together.h's */
GR_FN double *gr_instant_noise(const gr_task *k) { return k->work + GR_EVENT_ROOM; }
GR_FN double *gr_sizes(const gr_task *k) { return gr_instant_noise(k) + k->ns; }
GR_FN double *gr_for_turns(const gr_task *k) { return gr_sizes(k) + GR_MOVED * k->ns; }
GR_FN double gr_size_of_instant(const gr_task *k, long d) { return fabs(k->dt[d]) + gr_instant_noise(k)[d]; }
GR_FN void gr_add(double term, double *sum, double *size) {
  *sum += term;
  *size += fabs(term);
}
#endif

#else
#define GR_EVENT_ROOM 0
GR_FN long gr_event_room(long ns) { return 0 * ns; }
#endif

#endif
