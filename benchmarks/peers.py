"""Other solvers on the pendulum study, each as its users would write it."""

from __future__ import annotations

import time

import numpy as np
from pendulum_study import EVERY, GRID, G, K, L, M, Study

RTOL, ATOL = 1e-6, 1e-9


def _start() -> tuple[np.ndarray, np.ndarray]:
    """Stabilised index-1 form: x, y, vx, vy and the integrals of the two multipliers; at rest below the hinge."""
    return np.array([0.0, -L, 0.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 0.0, -M * G / L, 0.0])


class IdaPython:
    """scikit-sundae IDA, residual in Python; both constraints kept, multipliers as derivatives of dummy states."""

    label = "scikit-sundae IDA, Python residual"

    def __init__(self) -> None:
        import sksundae

        self.sun, self.build = sksundae, 0.0

    def residual(self, t_grid: np.ndarray, force: np.ndarray):
        def res(t, s, sp, r):
            x, y, vx, vy = s[:4]
            T, mu = sp[4], sp[5]
            k = min(int(t / GRID), len(force) - 2)
            f = force[k] + (force[k + 1] - force[k]) * (t / GRID - k)
            r[0] = sp[0] - vx + x * mu
            r[1] = sp[1] - vy + y * mu
            r[2] = M * sp[2] - T * x + K * abs(vx) * vx - f
            r[3] = M * sp[3] - T * y + K * abs(vy) * vy + M * G
            r[4] = x * x + y * y - L * L
            r[5] = x * vx + y * vy

        return res

    def run(self, study: Study) -> np.ndarray:
        rows = []
        for w in study.w:
            solver = self.sun.ida.IDA(self.residual(study.t, study.u + w), rtol=RTOL, atol=ATOL, max_num_steps=100_000)
            y0, yp0 = _start()
            yp0[2] = (study.u[0] + w[0]) / M
            s = solver.solve(study.t[::EVERY], y0, yp0)
            rows.append(np.unwrap(np.arctan2(s.y[:, 0], -s.y[:, 1])))
        return np.array(rows)


class IdaCompiled(IdaPython):
    """The same with a residual compiled by numba."""

    label = "scikit-sundae IDA, compiled residual"

    def __init__(self) -> None:
        super().__init__()
        import numba

        begin = time.perf_counter()

        @numba.njit
        def core(t, s, sp, r, force):
            x, y, vx, vy, T, mu = s[0], s[1], s[2], s[3], sp[4], sp[5]
            k = min(int(t / GRID), len(force) - 2)
            f = force[k] + (force[k + 1] - force[k]) * (t / GRID - k)
            r[0] = sp[0] - vx + x * mu
            r[1] = sp[1] - vy + y * mu
            r[2] = M * sp[2] - T * x + K * abs(vx) * vx - f
            r[3] = M * sp[3] - T * y + K * abs(vy) * vy + M * G
            r[4] = x * x + y * y - L * L
            r[5] = x * vx + y * vy

        core(0.0, np.zeros(6), np.zeros(6), np.zeros(6), np.zeros(4))
        self.core, self.build = core, time.perf_counter() - begin

    def residual(self, t_grid: np.ndarray, force: np.ndarray):
        core = self.core

        def res(t, s, sp, r):
            core(t, s, sp, r, force)

        return res


class CasadiIdas:
    """CasADi's idas, inputs as per-cell controls, the constraint differentiated to index 1."""

    label = "CasADi idas"

    def __init__(self) -> None:
        self.build = 0.0
        self.solver = None

    def _make(self, t: np.ndarray) -> None:
        import casadi as ca

        begin = time.perf_counter()
        s, z, c = ca.SX.sym("s", 4), ca.SX.sym("z", 1), ca.SX.sym("c", 3)
        tau = ca.SX.sym("t")
        x, y, vx, vy = ca.vertsplit(s)
        f = c[0] + c[1] * (tau - c[2])
        ax = (z * x - K * ca.fabs(vx) * vx + f) / M
        ay = (z * y - K * ca.fabs(vy) * vy - M * G) / M
        dae = {
            "x": s,
            "z": z,
            "u": c,
            "t": tau,
            "ode": ca.vertcat(vx, vy, ax, ay),
            "alg": x * ax + y * ay + vx**2 + vy**2,
        }
        options = {"reltol": RTOL, "abstol": ATOL, "max_num_steps": 100_000, "calc_ic": True}
        self.solver = ca.integrator("F", "idas", dae, float(t[0]), t[1:].tolist(), options)
        self.build = time.perf_counter() - begin

    def run(self, study: Study) -> np.ndarray:
        if self.solver is None:
            self._make(study.t)
        rows = []
        for w in study.w:
            force = study.u + w
            controls = np.vstack([force[:-1], np.diff(force) / GRID, study.t[:-1]])
            out = np.array(self.solver(x0=[0.0, -L, 0.0, 0.0], z0=-M * G / L, u=controls)["xf"])
            s = np.hstack([[[0.0], [-L]], out[:2]])[:, ::EVERY]
            rows.append(np.unwrap(np.arctan2(s[0], -s[1])))
        return np.array(rows)


class ScipyRadau:
    """SciPy's Radau on the angle form, which its user had to derive."""

    label = "SciPy Radau, angle form"

    def __init__(self) -> None:
        from scipy.integrate import solve_ivp

        self.solve, self.build = solve_ivp, 0.0

    def run(self, study: Study) -> np.ndarray:
        rows = []
        for w in study.w:
            force = study.u + w

            def rhs(t, s, force=force):
                a, v = s
                k = min(int(t / GRID), len(force) - 2)
                f = force[k] + (force[k + 1] - force[k]) * (t / GRID - k)
                c, sn = np.cos(a), np.sin(a)
                vx, vy = L * v * c, L * v * sn
                fx, fy = -K * abs(vx) * vx + f, -K * abs(vy) * vy - M * G
                return [v, (fx * c + fy * sn) / (M * L)]

            span = (study.t[0], study.t[-1])
            run = self.solve(rhs, span, [0.0, 0.0], "Radau", t_eval=study.t[::EVERY], rtol=RTOL, atol=ATOL)
            rows.append(run.y[0])
        return np.array(rows)


class DiffraxTsit5:
    """diffrax Tsit5 under vmap on the angle form."""

    label = "diffrax Tsit5, vmap, angle form"

    def __init__(self) -> None:
        import diffrax
        import jax

        jax.config.update("jax_enable_x64", True)
        self.diffrax, self.jax, self.build, self.compiled = diffrax, jax, 0.0, None

    def _make(self, study: Study):
        import jax.numpy as jnp

        dfx = self.diffrax
        saves = jnp.asarray(study.t[::EVERY])

        def field(t, s, force):
            k = jnp.clip((t / GRID).astype(int), 0, force.shape[0] - 2)
            f = force[k] + (force[k + 1] - force[k]) * (t / GRID - k)
            c, sn = jnp.cos(s[0]), jnp.sin(s[0])
            vx, vy = L * s[1] * c, L * s[1] * sn
            fx, fy = -K * jnp.abs(vx) * vx + f, -K * jnp.abs(vy) * vy - M * G
            return jnp.array([s[1], (fx * c + fy * sn) / (M * L)])

        def one(force):
            solution = dfx.diffeqsolve(
                dfx.ODETerm(field), dfx.Tsit5(), saves[0], saves[-1], None, jnp.zeros(2), force, max_steps=100_000,
                saveat=dfx.SaveAt(ts=saves), stepsize_controller=dfx.PIDController(rtol=RTOL, atol=ATOL),
            )  # fmt: skip
            return solution.ys[:, 0]

        return self.jax.jit(self.jax.vmap(one))

    def warm(self, study: Study) -> None:
        begin = time.perf_counter()
        self.run(study)
        self.build = time.perf_counter() - begin

    def run(self, study: Study) -> np.ndarray:
        if self.compiled is None:
            self.compiled = self._make(study)
        return np.asarray(self.compiled(study.u + study.w).block_until_ready())
