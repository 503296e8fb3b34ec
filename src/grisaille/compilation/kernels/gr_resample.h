/* Particles put in an order in which neighbours are alike, and drawn again by systematic resampling.
 *
 * With one coordinate the order is that of its values, with several that of a Hilbert curve through the cube onto which
 * they are mapped (J. Skilling, AIP Conf. Proc. 707 (2004) 381). A small change of the weights then moves few particles,
 * and those not far, so that with the same random numbers an estimated likelihood is nearly a smooth function (M. Gerber,
 * N. Chopin, J. R. Stat. Soc. B 77 (2015) 509).
 */
#ifndef GR_RESAMPLE_H
#define GR_RESAMPLE_H

#include "gr_philox.h"

typedef struct {
  gr_u64 key;
  long place;
} gr_ranked;

enum { GR_KEY_BITS = 33, GR_DIGIT = 11, GR_MAX_BITS_EACH = 20, GR_COUNTS = 1 << GR_DIGIT };

/* a value of mean zero and deviation one as a whole number of so many bits, in the order of the values */
GR_FN gr_u64 gr_graded(double z, long bits) {
  const double top = (double)(1ull << bits) - 1.0, share = (z + 8.0) / 16.0 * top;
  return !(share > 0.0) ? 0 : share < top ? (gr_u64)share : (gr_u64)top;
}

/* how far along the Hilbert curve a point with coordinates of `bits` bits lies; destroys x */
GR_FN gr_u64 gr_hilbert(gr_u32 *x, long n, long bits) {
  gr_u32 m = 1u << (bits - 1), p, q, t;
  gr_u64 index = 0;
  long i, b;
  for (q = m; q > 1; q >>= 1) {
    p = q - 1;
    for (i = 0; i < n; i++) {
      if (x[i] & q) {
        x[0] ^= p;
      } else {
        t = (x[0] ^ x[i]) & p;
        x[0] ^= t;
        x[i] ^= t;
      }
    }
  }
  for (i = 1; i < n; i++) x[i] ^= x[i - 1];
  t = 0;
  for (q = m; q > 1; q >>= 1)
    if (x[n - 1] & q) t ^= q - 1;
  for (i = 0; i < n; i++) x[i] ^= t;
  for (b = bits - 1; b >= 0; b--)
    for (i = 0; i < n; i++) index = index << 1 | (x[i] >> b & 1u);
  return index;
}

/* n pairs in the order of their keys of GR_KEY_BITS bits, equal ones as they come; digit by digit, `other` has room for
 * as many and `counts` for GR_COUNTS numbers */
GR_FN void gr_sort(gr_ranked *a, gr_ranked *other, long *counts, long n) {
  gr_ranked *from = a, *to = other, *swap;
  long shift, i, sum;
  for (shift = 0; shift < GR_KEY_BITS; shift += GR_DIGIT) {
    for (i = 0; i < GR_COUNTS; i++) counts[i] = 0;
    for (i = 0; i < n; i++) counts[from[i].key >> shift & (GR_COUNTS - 1)]++;
    for (sum = i = 0; i < GR_COUNTS; i++) {
      const long here = counts[i];
      counts[i] = sum;
      sum += here;
    }
    for (i = 0; i < n; i++) to[counts[from[i].key >> shift & (GR_COUNTS - 1)]++] = from[i];
    swap = from, from = to, to = swap;
  }
  for (i = 0; from != a && i < n; i++) a[i] = from[i];
}

/* chosen[j]: which particle takes place j; weights (not normalised) in the order of `order`, u in (0, 1) */
GR_FN void gr_systematic(const gr_ranked *order, const double *weight, double total, double u, long n, long *chosen) {
  double reached = 0.0;
  long i = -1, j;
  for (j = 0; j < n; j++) {
    const double wanted = (u + (double)j) / (double)n * total;
    while (i < 0 || (reached < wanted && i + 1 < n)) {
      i++;
      reached += weight[order[i].place];
    }
    chosen[j] = order[i].place;
  }
}

#endif
