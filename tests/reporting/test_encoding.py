"""Charts as JSON: extremes survive thinning, budgets hold, numbers keep what an axis can show."""

from __future__ import annotations

import json

import numpy as np
import pytest

from grisaille.reporting import Album, Chart, ChartSeries, encode, thin


def chart(x: np.ndarray, y: np.ndarray, **options) -> Chart:
    return Chart("title", "words", "x", "y", [ChartSeries("s", "line", x, y)], **options)


def decoded(*charts: Chart, **options) -> list[dict]:
    return [c["series"][0] for c in json.loads(encode(charts, **options))]


def test_nothing_that_sticks_out_disappears() -> None:
    y = np.sin(np.linspace(0, 50, 100_000))
    y[[12_345, 70_001]] = 9.0, -9.0
    kept = thin(np.arange(100_000), y, 500)
    assert len(kept) <= 502 and {0, 12_345, 70_001, 99_999} <= set(kept)
    assert (np.diff(kept) > 0).all()


def test_short_series_are_kept_whole() -> None:
    long, short = chart(np.arange(5000.0), np.arange(5000.0) ** 2), chart(np.arange(9.0), np.arange(9.0) ** 2)
    first, second = decoded(long, short, budget=1000)
    assert len(first["y"]) <= 993 and first["of"] == 5000
    assert len(second["y"]) == 9 and "of" not in second


def test_not_measured_is_null_and_thinning_survives_it() -> None:
    y = np.full(1000, np.nan)
    y[500] = 1.0
    (found,) = decoded(chart(np.arange(1000.0), y), budget=100)
    assert 1 in found["y"] and None in found["y"]


def test_equidistant_abscissae_are_short() -> None:
    (found,) = decoded(chart(np.linspace(0, 30, 151), np.zeros(151)))
    assert found["x"] == {"from": 0.0, "step": 0.2, "count": 151}


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_numbers_keep_a_hundred_thousandth_of_their_span(scale: float, offset: float) -> None:
    y = offset * scale + scale * np.random.default_rng(1).random(200)
    (found,) = decoded(chart(np.sort(y), y))
    np.testing.assert_allclose(found["y"], y, rtol=0, atol=2e-5 * scale + 1e-15 * offset * scale)


def test_logarithmic_axes_keep_small_numbers() -> None:
    (found,) = decoded(chart(np.arange(3.0), np.array([1e6, 1.0, 1e-9]), log_y=True))
    assert found["y"] == [1e6, 1.0, 1e-9]


def test_the_text_cannot_end_its_element() -> None:
    text = encode([Chart("", "", "</script><script>", "\u2028", [])])
    assert "<" not in text and "\u2028" not in text
    assert json.loads(text)[0]["x"] == "</script><script>"


def test_places_are_numbered_and_described() -> None:
    album = Album()
    album.place(chart(np.arange(3.0), np.arange(3.0)))
    second = album.place(chart(np.arange(3.0), np.arange(3.0)))
    assert 'data-chart="1"' in second and 'aria-label="title. words"' in second
