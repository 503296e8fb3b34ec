/* CVODE (BDF) with banded and, where SUNDIALS has it (WITH_KLU), sparse Jacobians, on compiled equations.

   model.h defines N_ODE, N_ENTRIES, BAND (below and above the diagonal), column[], row[] of the Jacobian's entries, and
     model_f(t, y, phi, out), model_j(t, y, phi, out)    y' = f and the entries of its Jacobian, column by column
   The run is in two parts, before and after the signal phi jumps. counts: steps, right-hand sides, Jacobians. */
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_band.h>
#include <sunmatrix/sunmatrix_band.h>
#ifdef WITH_KLU
#include <sunlinsol/sunlinsol_klu.h>
#include <sunmatrix/sunmatrix_sparse.h>
#endif

#include "model.h"

static int rates(realtype t, N_Vector y, N_Vector out, void *phi) {
  model_f(t, NV_DATA_S(y), (double *)phi, NV_DATA_S(out));
  return 0;
}

static int banded(realtype t, N_Vector y, N_Vector fy, SUNMatrix J, void *phi, N_Vector a, N_Vector b, N_Vector c) {
  double entries[N_ENTRIES];
  (void)fy, (void)a, (void)b, (void)c;
  model_j(t, NV_DATA_S(y), (double *)phi, entries);
  for (long e = 0; e < N_ENTRIES; e++) SM_ELEMENT_B(J, row[e], column[e]) = entries[e];
  return 0;
}

#ifdef WITH_KLU
static int sparse(realtype t, N_Vector y, N_Vector fy, SUNMatrix J, void *phi, N_Vector a, N_Vector b, N_Vector c) {
  (void)fy, (void)a, (void)b, (void)c;
  model_j(t, NV_DATA_S(y), (double *)phi, SM_DATA_S(J));
  for (long e = 0; e < N_ENTRIES; e++) SM_INDEXVALS_S(J)[e] = row[e];
  for (long j = 0, e = 0; j <= N_ODE; j++) {
    while (e < N_ENTRIES && column[e] < j) e++;
    SM_INDEXPTRS_S(J)[j] = e;
  }
  return 0;
}
#endif

int run_cvode(int with_klu, double middle, double end, double rtol, double atol, double *phi, double *x, long *counts) {
  SUNContext context;
  realtype t = 0;
  double now = phi[0];
  SUNContext_Create(NULL, &context);
  N_Vector y = N_VMake_Serial(N_ODE, x, context);
  void *memory = CVodeCreate(CV_BDF, context);
#ifdef WITH_KLU
  SUNMatrix J = with_klu ? SUNSparseMatrix(N_ODE, N_ODE, N_ENTRIES, CSC_MAT, context)
                         : SUNBandMatrix(N_ODE, BAND, BAND, context);
  SUNLinearSolver solver = with_klu ? SUNLinSol_KLU(y, J, context) : SUNLinSol_Band(y, J, context);
#else
  SUNMatrix J = SUNBandMatrix(N_ODE, BAND, BAND, context);
  SUNLinearSolver solver = SUNLinSol_Band(y, J, context);
  (void)with_klu;
#endif
  CVodeInit(memory, rates, 0.0, y);
  CVodeSStolerances(memory, rtol, atol);
  CVodeSetUserData(memory, &now);
  CVodeSetLinearSolver(memory, solver, J);
#ifdef WITH_KLU
  CVodeSetJacFn(memory, with_klu ? sparse : banded);
#else
  CVodeSetJacFn(memory, banded);
#endif
  CVodeSetMaxNumSteps(memory, 10000000);
  CVodeSetErrFile(memory, NULL);
  CVodeSetStopTime(memory, middle);
  int flag = CVode(memory, middle, y, &t, CV_NORMAL);
  CVodeGetNumSteps(memory, &counts[0]);
  CVodeGetNumRhsEvals(memory, &counts[1]);
  CVodeGetNumJacEvals(memory, &counts[2]);
  if (flag >= 0) {
    long more[3];
    now = phi[1];
    CVodeReInit(memory, middle, y);
    CVodeSetStopTime(memory, end);
    flag = CVode(memory, end, y, &t, CV_NORMAL);
    CVodeGetNumSteps(memory, &more[0]);
    CVodeGetNumRhsEvals(memory, &more[1]);
    CVodeGetNumJacEvals(memory, &more[2]);
    for (int i = 0; i < 3; i++) counts[i] += more[i];
  }
  CVodeFree(&memory);
  SUNLinSolFree(solver);
  SUNMatDestroy(J);
  N_VDestroy(y);
  SUNContext_Free(&context);
  return flag;
}
