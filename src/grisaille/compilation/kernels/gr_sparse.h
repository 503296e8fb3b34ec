/* Keeps the sparse matrices of a model and their factors (gr_sparse_factors.h) in the memory of a task: task->factors,
 * gr_factors_work(room) doubles. Where L or U outgrow it, task->wanted says which room to come back with.
 */
#ifndef GR_SPARSE_H
#define GR_SPARSE_H

#include "gr_linear.h"
#include "gr_matrix.h"

#if GR_SPARSE

#include "gr_sparse_factors.h"

#define GR_WHOLE_SIZE (3 * GR_J_SIZE + 6 * GR_NX)

GR_FN gr_pattern gr_pattern_of_J(void) {
  const gr_pattern m = {GR_N, gr_J_begin, gr_J_row, gr_J_order, gr_J_wanted, gr_J_block};
  return m;
}

/* factors of dF/dz, of Newton's real and complex matrices and of all three stages at once */
typedef struct {
  gr_factors z, real, complex, whole;
  int *begin, *row, *order, *wanted, *block; /* the pattern of all three stages */
} gr_all_factors;

GR_FN long gr_all_factors_in(double *base, long room, gr_all_factors *f) {
  long at = 0;
#define GR_HERE (base ? base + at : 0)
#if GR_HAS_Z
  at += gr_factors_in(GR_HERE, GR_NZ, GR_Z_SIZE, room * GR_Z_ROOM, 1, &f->z);
#endif
  at += gr_factors_in(GR_HERE, GR_N, GR_J_SIZE, room * GR_J_ROOM, 1, &f->real);
  at += gr_factors_in(GR_HERE, GR_N, GR_J_SIZE, room * GR_J_ROOM, 2, &f->complex);
  at += gr_factors_in(GR_HERE, 3 * GR_N, GR_WHOLE_SIZE, 9 * room * GR_J_ROOM, 1, &f->whole);
#undef GR_HERE
  f->begin = gr_take_ints(base, &at, 3 * GR_N + 1);
  f->row = gr_take_ints(base, &at, GR_WHOLE_SIZE);
  f->order = gr_take_ints(base, &at, 3 * GR_N);
  f->wanted = gr_take_ints(base, &at, 3 * GR_N);
  f->block = gr_take_ints(base, &at, 3 * GR_N);
  return at;
}

GR_FN gr_all_factors gr_all_factors_of(const gr_task *k) {
  gr_all_factors f;
  gr_all_factors_in(k->factors, k->room, &f);
  return f;
}

GR_API long gr_factors_work(long room) {
  gr_all_factors f;
  return gr_all_factors_in(0, room, &f);
}

/* what a factorization answered, as the dense ones do: 0 or the refused column + 1 */
GR_FN long gr_refused(gr_task *k, long answer) {
  if (answer != GR_NO_ROOM) return answer;
  k->wanted = 4 * k->room;
  return 1;
}

#else

GR_API long gr_factors_work(long room) {
  (void)room;
  return 0;
}

#endif
#endif
