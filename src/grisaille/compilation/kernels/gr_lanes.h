/* Carries several directions of a derivative at once; every operation is the IEEE one in each lane.
 *
 * GR_PAIRS: two of them, as many as a register holds without further instruction sets. */
#ifndef GR_LANES_H
#define GR_LANES_H

#if defined(__GNUC__) && !defined(__CUDACC__) && defined(GR_PAIRS)

#define GR_ABREAST 2
typedef double gr_lanes __attribute__((vector_size(16), aligned(16)));
#define GR_ALL(a) ((gr_lanes){(a), (a)})
#define GR_ANY(v) ((v)[0] != 0.0 || (v)[1] != 0.0)

#elif defined(__GNUC__) && !defined(__CUDACC__)

#define GR_ABREAST 4
typedef double gr_lanes __attribute__((vector_size(32), aligned(16)));
#define GR_ALL(a) ((gr_lanes){(a), (a), (a), (a)})
#define GR_ANY(v) ((v)[0] != 0.0 || (v)[1] != 0.0 || (v)[2] != 0.0 || (v)[3] != 0.0)

#else

#define GR_ABREAST 1
typedef double gr_lanes;
#define GR_ALL(a) (a)
#define GR_ANY(v) ((v) != 0.0)

#endif
#endif
