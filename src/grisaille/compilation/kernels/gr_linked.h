/* Compiles integrators apart from the model: sizes, functions and, of sparse models, patterns are in other objects.
 *
 * Their text says only which kinds of things a model has (GR_SPARSE, GR_HAS_Z implicit unknowns, GR_HAS_U signals,
 * GR_HAS_C hidden constraints, GR_HAS_SIDES switches, GR_HAS_BENDS bends, GR_HAS_E relations that are held, GR_BENT bends of
 * their gaps, GR_HAS_W clauses of events), so that most models share one object. A size may be zero where its kind is
 * there, GR_NU alone. Where relations are held, sizes are limited (GR_MOST_X and others; kernel_source.py has them, too).
 * Sparse models with events have sizes and tables of their own: GR_NX is then defined before this. The objects they are linked with hold what is declared here
 * (gr_task.h and gr_matrix.h say what it is); where nothing is differentiated by parameters, the functions of the last
 * paragraph are empty and never called.
 */
#ifndef GR_LINKED_H
#define GR_LINKED_H

#define GR_LINKED 1
#define GR_SENSITIVE 1
#if GR_SPARSE
#define GR_SOLVERS_ELSEWHERE 1
#endif

#if defined(_WIN32)
#define GR_ELSEWHERE extern
#else
#define GR_ELSEWHERE extern __attribute__((visibility("hidden")))
#endif

#ifndef GR_NX
GR_ELSEWHERE const long gr_size_nx, gr_size_nz, gr_size_nu, gr_size_np, gr_size_nc, gr_size_ny, gr_size_nm;
GR_ELSEWHERE const long gr_size_sides, gr_size_bends, gr_size_wholes;
#define GR_NX gr_size_nx
#define GR_NZ gr_size_nz
#define GR_NU gr_size_nu
#define GR_NP gr_size_np
#define GR_NC gr_size_nc
#define GR_NY gr_size_ny
#define GR_NM gr_size_nm
#define GR_SIDES gr_size_sides
#define GR_BENDS gr_size_bends
#define GR_WHOLES gr_size_wholes
#if GR_HAS_E
GR_ELSEWHERE const long gr_size_ne, gr_size_gap_bends, gr_size_gap_wholes, gr_kind[];
#define GR_CAPPED 1
#define GR_MOST_X 256
#define GR_MOST_Z 512
#define GR_MOST_N (GR_MOST_X + GR_MOST_Z)
#define GR_MOST_U 256
#define GR_MOST_P 4096
#define GR_MOST_E 256
#define GR_MOST_Q 64
#define GR_NE gr_size_ne
#define GR_GAP_BENDS gr_size_gap_bends
#define GR_GAP_WHOLES gr_size_gap_wholes
#endif
#if GR_HAS_W
GR_ELSEWHERE const long gr_size_nw, gr_size_nr, gr_size_nb, gr_size_nq, gr_group[], gr_lasting[], gr_counter[], gr_target[];
GR_ELSEWHERE const long gr_resets[], gr_yields[], gr_clash[], gr_rank[], gr_remembered[], gr_begins[];
#define GR_NW gr_size_nw
#define GR_NR gr_size_nr
#define GR_NB gr_size_nb
#define GR_NQ gr_size_nq
#endif
#endif

#if GR_SPARSE
GR_ELSEWHERE const long gr_J_size, gr_J_room, gr_Z_size, gr_Z_room, gr_FP_size, gr_OJ_size, gr_OP_size;
#define GR_J_SIZE gr_J_size
#define GR_J_ROOM gr_J_room
#define GR_Z_SIZE gr_Z_size
#define GR_Z_ROOM gr_Z_room
#define GR_FP_SIZE gr_FP_size
#define GR_OJ_SIZE gr_OJ_size
#define GR_OP_SIZE gr_OP_size

GR_ELSEWHERE const int gr_J_begin[], gr_J_row[], gr_J_diagonal[], gr_J_order[], gr_J_wanted[], gr_J_block[];
GR_ELSEWHERE const int gr_Z_begin[], gr_Z_row[], gr_Z_from[], gr_Z_order[], gr_Z_wanted[], gr_Z_block[];
GR_ELSEWHERE const int gr_FP_begin[], gr_FP_row[], gr_OJ_begin[], gr_OJ_row[], gr_OP_begin[], gr_OP_row[];

#if GR_HAS_C
GR_ELSEWHERE const long gr_CJ_size, gr_CP_size, gr_Q_fronts, gr_Q_size, gr_Q_columns, gr_Q_tallest;
#define GR_CJ_SIZE gr_CJ_size
#define GR_CP_SIZE gr_CP_size
#define GR_Q_FRONTS gr_Q_fronts
#define GR_Q_SIZE gr_Q_size
#define GR_Q_COLUMNS gr_Q_columns
#define GR_Q_TALLEST gr_Q_tallest

GR_ELSEWHERE const int gr_CJ_begin[], gr_CJ_row[], gr_CP_begin[], gr_CP_row[];
GR_ELSEWHERE const int gr_Q_column_begin[], gr_Q_column[], gr_Q_own[], gr_Q_up[], gr_Q_state_begin[], gr_Q_state[];
GR_ELSEWHERE const int gr_Q_child_begin[], gr_Q_child[], gr_Q_height[], gr_Q_at[], gr_Q_place[];
#endif
#endif

#define GR_FUNCTION(name) \
  GR_ELSEWHERE void name(double t, const double *x, const double *z, const double *u, const double *p, double *out)
GR_FUNCTION(gr_F);
GR_FUNCTION(gr_J);
GR_FUNCTION(gr_C);
GR_FUNCTION(gr_CJ);
GR_FUNCTION(gr_O);
GR_FUNCTION(gr_S);
GR_FUNCTION(gr_B);
GR_FUNCTION(gr_BW);
GR_FUNCTION(gr_G);
GR_FUNCTION(gr_GD);
GR_FUNCTION(gr_GB);
GR_FUNCTION(gr_GW);
GR_FUNCTION(gr_GJ);
GR_FUNCTION(gr_W);
GR_FUNCTION(gr_R);
GR_FUNCTION(gr_T);

GR_FUNCTION(gr_FP);
GR_FUNCTION(gr_CP);
GR_FUNCTION(gr_OJ);
GR_FUNCTION(gr_OP);
GR_FUNCTION(gr_GP);
GR_FUNCTION(gr_RD);
GR_FUNCTION(gr_RJ);
GR_FUNCTION(gr_RP);
GR_FUNCTION(gr_TP);

#endif
