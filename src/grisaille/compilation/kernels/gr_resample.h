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

enum { GR_HILBERT_BITS = 60, GR_MAX_BITS_EACH = 20 };

/* the bits of a double such that whole numbers have the order of the values */
GR_FN gr_u64 gr_sortable(double value) {
  union { double value; gr_u64 bits; } x;
  x.value = value;
  return x.bits >> 63 ? ~x.bits : x.bits | (1ull << 63);
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

/* merge sort of n pairs, by their keys, then by their places; `other` has room for as many */
GR_FN void gr_sort(gr_ranked *a, gr_ranked *other, long n) {
  gr_ranked *from = a, *to = other, *swap;
  long width, i, j, k, first, middle, last;
  for (first = 0; first < n; first += 8)
    for (i = first + 1; i < n && i < first + 8; i++) {
      const gr_ranked held = from[i];
      for (j = i; j > first && from[j - 1].key > held.key; j--) from[j] = from[j - 1];
      from[j] = held;
    }
  for (width = 8; width < n; width *= 2) {
    for (first = 0; first < n; first += 2 * width) {
      middle = first + width < n ? first + width : n;
      last = first + 2 * width < n ? first + 2 * width : n;
      for (i = first, j = middle, k = first; k < last; k++)
        to[k] = i < middle && (j >= last || from[i].key <= from[j].key) ? from[i++] : from[j++];
    }
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
