"""Certified nonlinear regression problems of the NIST Statistical Reference Datasets, as static models.

Source: NIST/ITL StRD, nonlinear regression (public domain). Data and certified values are reference files, read by the
tests that need them; here are the models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import grisaille as gr
from grisaille import atan, cos, exp, sin

Formula = Callable[..., Any]


def _gauss(b: Any, x: Any) -> Any:
    return (
        b[0] * exp(-b[1] * x) + b[2] * exp(-((x - b[3]) ** 2) / b[4] ** 2) + b[5] * exp(-((x - b[6]) ** 2) / b[7] ** 2)
    )


def _lanczos(b: Any, x: Any) -> Any:
    return b[0] * exp(-b[1] * x) + b[2] * exp(-b[3] * x) + b[4] * exp(-b[5] * x)


def _chwirut(b: Any, x: Any) -> Any:
    return exp(-b[0] * x) / (b[1] + b[2] * x)


def _enso(b: Any, x: Any) -> Any:
    turn = 2 * np.pi * x
    return (
        b[0] + b[1] * cos(turn / 12) + b[2] * sin(turn / 12) + b[4] * cos(turn / b[3]) + b[5] * sin(turn / b[3])
        + b[7] * cos(turn / b[6]) + b[8] * sin(turn / b[6])
    )  # fmt: skip


FORMULAS: dict[str, Formula] = {
    "Bennett5": lambda b, x: b[0] * (b[1] + x) ** (-1 / b[2]),
    "BoxBOD": lambda b, x: b[0] * (1 - exp(-b[1] * x)),
    "Chwirut1": _chwirut,
    "Chwirut2": _chwirut,
    "DanWood": lambda b, x: b[0] * x ** b[1],
    "ENSO": _enso,
    "Eckerle4": lambda b, x: b[0] / b[1] * exp(-0.5 * ((x - b[2]) / b[1]) ** 2),
    "Gauss1": _gauss,
    "Gauss2": _gauss,
    "Gauss3": _gauss,
    "Hahn1": lambda b, x: (b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3) / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3),
    "Kirby2": lambda b, x: (b[0] + b[1] * x + b[2] * x**2) / (1 + b[3] * x + b[4] * x**2),
    "Lanczos1": _lanczos,
    "Lanczos2": _lanczos,
    "Lanczos3": _lanczos,
    "MGH09": lambda b, x: b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3]),
    "MGH10": lambda b, x: b[0] * exp(b[1] / (x + b[2])),
    "MGH17": lambda b, x: b[0] + b[1] * exp(-x * b[3]) + b[2] * exp(-x * b[4]),
    "Misra1a": lambda b, x: b[0] * (1 - exp(-b[1] * x)),
    "Misra1b": lambda b, x: b[0] * (1 - (1 + b[1] * x / 2) ** -2),
    "Misra1c": lambda b, x: b[0] * (1 - (1 + 2 * b[1] * x) ** -0.5),
    "Misra1d": lambda b, x: b[0] * b[1] * x / (1 + b[1] * x),
    "Nelson": lambda b, x1, x2: b[0] - b[1] * x1 * exp(-b[2] * x2),
    "Rat42": lambda b, x: b[0] / (1 + exp(b[1] - b[2] * x)),
    "Rat43": lambda b, x: b[0] / (1 + exp(b[1] - b[2] * x)) ** (1 / b[3]),
    "Roszman1": lambda b, x: b[0] - b[1] * x - atan(b[2] / (x - b[3])) / np.pi,
    "Thurber": lambda b, x: (b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3) / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3),
}


def regression_model(name: str, start: list[float]) -> gr.Model:
    """y = formula(b, x): no unknowns, no equations, one output."""
    formula = FORMULAS[name]
    inputs = {"x1": gr.Input(), "x2": gr.Input()} if name == "Nelson" else {"x": gr.Input()}
    parameters = {f"b{k + 1}": gr.Parameter(value) for k, value in enumerate(start)}
    output = gr.Output(formula(list(parameters.values()), *inputs.values()))
    return type(name, (gr.Model,), {**parameters, **inputs, "y": output})()
