/* Where events compute: matrices whose sizes grow with products are no local variables. They lie at the head of
 * task->work, before what integrators keep there.
 */
#ifndef GR_EVENT_ROOM_H
#define GR_EVENT_ROOM_H

#include "gr_project.h"
#include "gr_task.h"

#if GR_NE > 0

#define GR_DISPLACEMENT 1e-4 /* of the largest frozen step: what steps are moved by to see how they scale */
#define GR_GAP_SLOPE (GR_NE * GR_N)
#if GR_NW > 0
#define GR_MOST(a, b) ((a) > (b) ? (a) : (b))
#define GR_BY_P (GR_MOST(GR_NE, GR_NQ) * GR_NP)
#define GR_RESETS GR_MOST(GR_PROJECT_WORK, GR_NR * (GR_N + GR_NP))
#else
#define GR_BY_P (GR_NE * GR_NP)
#define GR_RESETS 0
#endif
#define GR_EVENT_ROOM (GR_GAP_SLOPE + GR_BY_P + GR_RESETS + GR_NX)

GR_FN double *gr_gap_slope(const gr_task *k) { return k->work; }              /* dG/d[x; z] */
GR_FN double *gr_by_p(const gr_task *k) { return k->work + GR_GAP_SLOPE; }    /* dG/dp or dT/dp */
GR_FN double *gr_for_resets(const gr_task *k) { return gr_by_p(k) + GR_BY_P; } /* dR/d[x; z] and dR/dp, or a projection */
GR_FN double *gr_slip(const gr_task *k) { return gr_for_resets(k) + GR_RESETS; } /* see gr_happen */

#else
#define GR_EVENT_ROOM 0
#endif

#endif
