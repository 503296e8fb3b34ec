/* Standard normals from Philox words by Box and Muller, with a logarithm and a sine of our own: only + - * / and sqrt,
 * which IEEE 754 rounds in one way, so that every compiler and device gives the same bits. Needs -ffp-contract=off or
 * --fmad=false, never fast-math. Twin of disturbance/normal.py, operation for operation.
 *
 *   a, b = (2 n + 1) 2^-53, n of 52 bits      z0 = sqrt(-2 log a) cos(2 pi b)      z1 = sqrt(-2 log a) sin(2 pi b)
 */
#ifndef GR_NORMAL_H
#define GR_NORMAL_H

#include "gr_philox.h"

#ifdef __CUDACC__
#define gr_sqrt(x) __dsqrt_rn(x)
#else
#include <math.h>
#define gr_sqrt(x) sqrt(x)
#endif

typedef struct {
  gr_u32 k0, k1;     /* key: seed, purpose and name */
  gr_u32 antithetic; /* 1: realization 2m + 1 is minus realization 2m */
} gr_stream;

GR_FN gr_u64 gr_odd(gr_u32 low, gr_u32 high) {
  return ((((gr_u64)high << 20) | (low >> 12)) << 1) | 1u;
}

/* log(odd 2^-53) = e log 2 + 2 atanh(s), s = (m - 1) / (m + 1), m in (sqrt(1/2), sqrt(2)] */
GR_FN double gr_log(gr_u64 odd) {
  union { double value; gr_u64 bits; } x;
  double e, f, s, z, r;
  x.value = (double)odd;
  e = (double)((long long)(x.bits >> 52) - 1076);
  x.bits = (x.bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
  if (x.value > 1.4142135623730951) {
    x.value *= 0.5;
    e += 1.0;
  }
  f = x.value - 1.0;
  s = f / (2.0 + f);
  z = s * s;
  r = 0.10526315789473684;
  r = r * z + 0.11764705882352941;
  r = r * z + 0.13333333333333333;
  r = r * z + 0.15384615384615385;
  r = r * z + 0.18181818181818182;
  r = r * z + 0.2222222222222222;
  r = r * z + 0.2857142857142857;
  r = r * z + 0.4;
  r = r * z + 0.6666666666666666;
  r = r * z * s;
  /* the first part of log 2 has 32 bits: its product with e is exact */
  return e * 0.6931471803691238 + (s + s + (r + e * 1.9082149292705877e-10));
}

/* sine and cosine of 2 pi odd 2^-53; the quarter turn is split off in integers, exactly */
GR_FN void gr_turn(gr_u64 odd, double *sine, double *cosine) {
  gr_u64 quarter = (odd + (1ull << 50)) >> 51;
  double f = (double)((long long)odd - (long long)(quarter << 51)) * 4.440892098500626e-16;
  double z = f * f, s, c, swap;
  s = 6.0669357311061955e-12;
  s = s * z - 6.688035109811468e-10;
  s = s * z + 5.692172921967927e-08;
  s = s * z - 3.598843235212085e-06;
  s = s * z + 0.00016044118478735983;
  s = s * z - 0.004681754135318688;
  s = s * z + 0.07969262624616705;
  s = s * z - 0.6459640975062463;
  s = (s * z + 1.5707963267948966) * f;
  c = 6.565963114979473e-11;
  c = c * z - 6.386603083791852e-09;
  c = c * z + 4.710874778818172e-07;
  c = c * z - 2.5202042373060607e-05;
  c = c * z + 0.0009192602748394266;
  c = c * z - 0.02086348076335296;
  c = c * z + 0.25366950790104803;
  c = c * z - 1.2337005501361697;
  c = c * z + 1.0;
  if (quarter & 1) {
    swap = s;
    s = c;
    c = -swap;
  }
  *sine = quarter & 2 ? -s : s;
  *cosine = quarter & 2 ? -c : c;
}

/* components 2 block and 2 block + 1 of the vector drawn at a node */
GR_FN void gr_normal_pair(const gr_stream *stream, gr_u32 realization, gr_u32 step, gr_u32 node, gr_u32 block,
                          double *z) {
  gr_u32 w[4];
  double radius, sine, cosine;
  w[0] = step;
  w[1] = node;
  w[2] = stream->antithetic ? realization & ~1u : realization;
  w[3] = block;
  gr_philox(w, stream->k0, stream->k1);
  radius = gr_sqrt(-2.0 * gr_log(gr_odd(w[0], w[1])));
  if (stream->antithetic & realization & 1u) radius = -radius;
  gr_turn(gr_odd(w[2], w[3]), &sine, &cosine);
  z[0] = radius * cosine;
  z[1] = radius * sine;
}

GR_FN void gr_normals(const gr_stream *stream, gr_u32 realization, gr_u32 step, gr_u32 node, long n, double *z) {
  double pair[2];
  for (long i = 0; i + 1 < n; i += 2) gr_normal_pair(stream, realization, step, node, (gr_u32)(i / 2), z + i);
  if (n & 1) {
    gr_normal_pair(stream, realization, step, node, (gr_u32)(n / 2), pair);
    z[n - 1] = pair[0];
  }
}

#endif
