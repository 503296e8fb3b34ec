/* CVODE (BDF) and IDA with dense Jacobians, called from compiled code on compiled equations.

   model.h defines N_ODE, N_DAE and
     model_f(t, y, out), model_fj(t, y, out)                    y' = f and its Jacobian, column by column
     model_r(t, y, yp, out), model_rj(t, y, yp, cj, out)        0 = F and dF/dy + cj dF/dy'
   counts: steps, right-hand sides, Jacobians. */
#include <cvode/cvode.h>
#include <ida/ida.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include "model.h"

static int rates(realtype t, N_Vector y, N_Vector out, void *data) {
  (void)data;
  model_f(t, NV_DATA_S(y), NV_DATA_S(out));
  return 0;
}

static int rates_jacobian(realtype t, N_Vector y, N_Vector fy, SUNMatrix J, void *data, N_Vector a, N_Vector b,
                          N_Vector c) {
  (void)fy, (void)data, (void)a, (void)b, (void)c;
  model_fj(t, NV_DATA_S(y), SM_DATA_D(J));
  return 0;
}

static int residual(realtype t, N_Vector y, N_Vector yp, N_Vector out, void *data) {
  (void)data;
  model_r(t, NV_DATA_S(y), NV_DATA_S(yp), NV_DATA_S(out));
  return 0;
}

static int residual_jacobian(realtype t, realtype cj, N_Vector y, N_Vector yp, N_Vector r, SUNMatrix J, void *data,
                             N_Vector a, N_Vector b, N_Vector c) {
  (void)r, (void)data, (void)a, (void)b, (void)c;
  model_rj(t, NV_DATA_S(y), NV_DATA_S(yp), &cj, SM_DATA_D(J));
  return 0;
}

int run_cvode(double end, double rtol, double *atol, double *x, long *counts) {
  SUNContext context;
  realtype t = 0;
  SUNContext_Create(NULL, &context);
  N_Vector y = N_VMake_Serial(N_ODE, x, context), tolerance = N_VMake_Serial(N_ODE, atol, context);
  void *memory = CVodeCreate(CV_BDF, context);
  SUNMatrix J = SUNDenseMatrix(N_ODE, N_ODE, context);
  SUNLinearSolver solver = SUNLinSol_Dense(y, J, context);
  CVodeInit(memory, rates, 0.0, y);
  CVodeSVtolerances(memory, rtol, tolerance);
  CVodeSetLinearSolver(memory, solver, J);
  CVodeSetJacFn(memory, rates_jacobian);
  CVodeSetMaxNumSteps(memory, 10000000);
  CVodeSetErrFile(memory, NULL);
  const int flag = CVode(memory, end, y, &t, CV_NORMAL);
  CVodeGetNumSteps(memory, &counts[0]);
  CVodeGetNumRhsEvals(memory, &counts[1]);
  CVodeGetNumJacEvals(memory, &counts[2]);
  CVodeFree(&memory);
  SUNLinSolFree(solver);
  SUNMatDestroy(J);
  N_VDestroy(y);
  N_VDestroy(tolerance);
  SUNContext_Free(&context);
  return flag;
}

int run_ida(double end, double rtol, double *atol, double *x, double *xp, long *counts) {
  SUNContext context;
  realtype t = 0;
  SUNContext_Create(NULL, &context);
  N_Vector y = N_VMake_Serial(N_DAE, x, context), yp = N_VMake_Serial(N_DAE, xp, context);
  N_Vector tolerance = N_VMake_Serial(N_DAE, atol, context);
  void *memory = IDACreate(context);
  SUNMatrix J = SUNDenseMatrix(N_DAE, N_DAE, context);
  SUNLinearSolver solver = SUNLinSol_Dense(y, J, context);
  IDAInit(memory, residual, 0.0, y, yp);
  IDASVtolerances(memory, rtol, tolerance);
  IDASetLinearSolver(memory, solver, J);
  IDASetJacFn(memory, residual_jacobian);
  IDASetMaxNumSteps(memory, 10000000);
  IDASetErrFile(memory, NULL);
  const int flag = IDASolve(memory, end, &t, y, yp, IDA_NORMAL);
  IDAGetNumSteps(memory, &counts[0]);
  IDAGetNumResEvals(memory, &counts[1]);
  IDAGetNumJacEvals(memory, &counts[2]);
  IDAFree(&memory);
  SUNLinSolFree(solver);
  SUNMatDestroy(J);
  N_VDestroy(y);
  N_VDestroy(yp);
  N_VDestroy(tolerance);
  SUNContext_Free(&context);
  return flag;
}
