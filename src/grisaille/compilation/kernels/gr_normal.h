/* Draws standard normals from Philox words by Box and Muller, with a logarithm and a sine of our own: only + - * / and
 * sqrt, which IEEE 754 rounds in one way, so that every compiler and device gives the same bits. Needs
 * -ffp-contract=off or --fmad=false, never fast-math. Twin of disturbance/standard_normals.py, operation for operation.
 *
 *   a, b = (2 n + 1) 2^-53, n of 52 bits      z0 = sqrt(-2 log a) cos(2 pi b)      z1 = sqrt(-2 log a) sin(2 pi b)
 */
#ifndef GR_NORMAL_H
#define GR_NORMAL_H

#include "gr_philox.h"

#ifdef __CUDACC__
#include "gr_quick.h"
#define gr_sqrt(x) gr_quick_sqrt(x)
#define gr_ratio(a, b) gr_quick_ratio(a, b)
#else
#include <math.h>
#define gr_sqrt(x) sqrt(x)
#define gr_ratio(a, b) ((a) / (b))
#endif

typedef struct {
  gr_u32 k0, k1;     /* key: seed, purpose and name */
  gr_u32 antithetic; /* 1: realization 2m + 1 is minus realization 2m */
} gr_stream;

GR_FN gr_u64 gr_odd(gr_u32 low, gr_u32 high) {
  return ((((gr_u64)high << 20) | (low >> 12)) << 1) | 1u;
}

/* p0 + p1 z + ... + p8 z^8 in pairs (Estrin): half as long a chain of dependent operations as Horner's */
GR_FN double gr_polynomial(double z, double p0, double p1, double p2, double p3, double p4, double p5, double p6,
                           double p7, double p8) {
  double z2 = z * z, z4 = z2 * z2;
  double low = (p0 + p1 * z) + (p2 + p3 * z) * z2, high = (p4 + p5 * z) + (p6 + p7 * z) * z2;
  return low + (high + p8 * z4) * z4;
}

/* log(odd 2^-53) = e log 2 + 2 atanh(s), s = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt(2)) */
GR_FN double gr_log(gr_u64 odd) {
  union { double value; gr_u64 bits; } x;
  gr_u64 shifted;
  double e, f, s, z, r;
  x.value = (double)odd;
  /* adding the distance of sqrt(1/2) from 1 carries into the exponent exactly when m would exceed sqrt(2) */
  shifted = x.bits + (0x3FF0000000000000ull - 0x3FE6A09E667F3BCDull);
  e = (double)((long long)(shifted >> 52) - 1076);
  x.bits = (shifted & 0x000FFFFFFFFFFFFFull) + 0x3FE6A09E667F3BCDull;
  f = x.value - 1.0;
  s = gr_ratio(f, 2.0 + f);
  z = s * s;
  r = gr_polynomial(z, 0.6666666666666666, 0.4, 0.2857142857142857, 0.2222222222222222, 0.18181818181818182,
                    0.15384615384615385, 0.13333333333333333, 0.11764705882352941, 0.10526315789473684);
  r = r * z * s;
  /* the first part of log 2 has 32 bits: its product with e is exact */
  return e * 0.6931471803691238 + (s + s + (r + e * 1.9082149292705877e-10));
}

/* sine and cosine of 2 pi odd 2^-53; the nearest quarter turn is split off in integers, exactly, and put back without
 * branches, which random bits would make mispredicted */
GR_FN void gr_turn(gr_u64 odd, double *sine, double *cosine) {
  union { double value; gr_u64 bits; } s, c;
  gr_u64 quarter = (odd + (1ull << 50)) >> 51, swap;
  double f = (double)((long long)odd - (long long)(quarter << 51)) * 4.440892098500626e-16, z = f * f;
  s.value = f * gr_polynomial(z, 1.5707963267948966, -0.6459640975062463, 0.07969262624616705, -0.004681754135318688,
                              0.00016044118478735983, -3.598843235212085e-06, 5.692172921967927e-08,
                              -6.688035109811468e-10, 6.0669357311061955e-12);
  c.value = gr_polynomial(z, 1.0, -1.2337005501361697, 0.25366950790104803, -0.02086348076335296,
                          0.0009192602748394266, -2.5202042373060607e-05, 4.710874778818172e-07,
                          -6.386603083791852e-09, 6.565963114979473e-11);
  swap = (s.bits ^ c.bits) & (0 - (quarter & 1));
  s.bits ^= swap ^ ((quarter & 2) << 62);
  c.bits ^= swap ^ (((quarter + 1) & 2) << 62);
  *sine = s.value;
  *cosine = c.value;
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
