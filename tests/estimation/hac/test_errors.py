"""Robust errors against the spread of estimates, and what is said where no errors can be right."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import t as student

from grisaille.estimation import robust_errors
from grisaille.estimation.hac import RobustCovariance, ScoreSeries

SETS = 30


def cases(lengths: tuple[int, ...], outputs: tuple[str, ...] = ("y",)) -> list[Any]:
    clock = SimpleNamespace(unit="s")
    experiment = SimpleNamespace(is_static=False, clock=clock)
    return [
        SimpleNamespace(
            grid=np.arange(n, dtype=float), samples=[SimpleNamespace(rows=np.arange(n), output=o) for o in outputs],
            experiment=experiment,
        )
        for n in lengths
    ]  # fmt: skip


def regression(n: int, seed: int = 0) -> np.ndarray:
    """A step, its slow answer, and a wave."""
    step = np.repeat(np.random.default_rng(seed).choice([-1.0, 1.0], n // 8 + 1), 8)[:n]
    return np.stack([lfilter([0.1], [1, -0.9], step), np.sin(np.arange(n) / 4)], axis=1)


def correlated(rng: np.random.Generator, n: int, root: float) -> np.ndarray:
    e = lfilter([1.0], [1.0, -root], rng.standard_normal(n + 500) * np.sqrt(1 - root**2))[500:]
    return np.asarray(e + 0.2 * rng.standard_normal(n))


def errors_of(of: list[Any], J: np.ndarray, e: np.ndarray, **options: Any) -> tuple[np.ndarray, RobustCovariance]:
    bread = np.linalg.inv(J.T @ J)
    delta = bread @ (J.T @ e)
    names = [f"p{k}" for k in range(J.shape[1])]
    return delta, robust_errors(of, ScoreSeries(J, e - J @ delta, np.linalg.cholesky(bread)), names, **options)


def plants() -> dict[str, tuple[list[Any], np.ndarray, Any]]:
    two = np.vstack([regression(100), 0.5 * regression(100, 1)])
    three = np.vstack([regression(60, k) for k in range(3)])

    def both(rng: np.random.Generator) -> np.ndarray:
        e = correlated(rng, 100, 0.8)
        return np.concatenate([e, 0.7 * e + 0.1 * rng.standard_normal(100)])

    return {
        "one": (cases((200,)), regression(200), lambda rng: correlated(rng, 200, 0.9)),
        "two outputs": (cases((100,), ("y", "z")), two, both),
        "three records": (
            cases((60, 60, 60)), three, lambda rng: np.concatenate([correlated(rng, 60, 0.8) for _ in range(3)])
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", plants())
def test_intervals_cover_where_plain_ones_do_not(name: str) -> None:
    """Margin: 30 sets × 2 unknowns, of which 95 % ± 6 should hold."""
    of, J, draw = plants()[name]
    held, plain = [], []
    for seed in range(SETS):
        e = draw(np.random.default_rng(seed))
        delta, found = errors_of(of, J, e)
        error = np.sqrt(np.diag(found.covariance))
        held.append(np.abs(delta) < student.ppf(0.975, found.degrees_of_freedom) * error)
        left = e - J @ delta
        usual = np.sqrt(np.diag(np.linalg.inv(J.T @ J)) * (left @ left) / (len(e) - 2))
        plain.append(np.abs(delta) < 1.97 * usual)
    assert np.mean(plain) < 0.8 and np.mean(plain, axis=0).min() < 0.7
    assert np.mean(held) > 0.87


def test_white_residuals_have_plain_errors() -> None:
    J = regression(400)
    e = np.random.default_rng(4).standard_normal(400)
    _, found = errors_of(cases((400,)), J, e)
    assert np.diag(found.covariance) == pytest.approx(np.diag(np.linalg.inv(J.T @ J)), rel=0.35)
    assert (found.degrees_of_freedom > 20).all()


def test_larger_residuals_where_an_unknown_is_determined_make_its_error_larger() -> None:
    J = np.stack([np.ones(400), np.where(np.arange(400) < 60, 1.0, 0.0)], axis=1)
    e = np.random.default_rng(5).standard_normal(400) * np.where(np.arange(400) < 60, 4.0, 1.0)
    _, found = errors_of(cases((400,)), J, e)
    assert np.sqrt(found.covariance[1, 1]) == pytest.approx(np.sqrt(16 / 60 + 1 / 340), rel=0.35)
    assert any("larger where they determine p1" in note for note in found.notes)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_units_do_not_matter(scale: float) -> None:
    J, e = regression(200), correlated(np.random.default_rng(1), 200, 0.9)
    _, found = errors_of(cases((200,)), J, e)
    _, other = errors_of(cases((200,)), J * [scale, 1.0], e)
    assert other.covariance * np.outer([scale, 1.0], [scale, 1.0]) == pytest.approx(found.covariance, rel=1e-6)
    assert other.degrees_of_freedom == pytest.approx(found.degrees_of_freedom, rel=1e-6)


def test_a_correlation_as_long_as_the_record_leaves_no_errors_or_says_how_few_stretches_there_are() -> None:
    J, said = np.stack([np.ones(100), np.linspace(0, 1, 100)], axis=1), []
    for seed in range(8):
        e = np.cumsum(np.random.default_rng(seed).standard_normal(100))
        _, found = errors_of(cases((100,)), J, e, calibrated=False)
        said.append(found.notes[0])
        if "NONE" in found.notes[0]:
            assert np.isinf(np.diag(found.covariance)).all()
    assert sum("NONE" in note or "ROUGH" in note for note in said) >= 7  # one wanders so little that nothing shows it
    assert all("of the 99" in note or "of the 100" in note for note in said)


def test_too_few_samples_are_named() -> None:
    _, found = errors_of(cases((7,)), regression(7), np.arange(7.0))
    assert "7 instants of 1 output are too few" in found.notes[0] and np.isinf(found.covariance[0, 0])
