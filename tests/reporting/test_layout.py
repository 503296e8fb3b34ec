"""Pages on a phone, a laptop and a wide screen: nothing is cut off, numbers keep their units, dates stand below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reporting.fits import wide_fit

import grisaille as gr

BROKEN = """() => [...document.querySelectorAll(".panel.open td:not(.prose)")].filter((cell) => {
  const lines = [...cell.childNodes].filter((n) => n.nodeType === 3 && n.textContent.trim()).flatMap((n) => {
    const range = document.createRange(); range.selectNode(n);
    return [...range.getClientRects()].map((r) => Math.round(r.top));
  });
  return new Set(lines).size > 1;
}).map((cell) => cell.textContent)"""
"""Cells whose text is in several lines."""
HIDDEN = """() => [...document.querySelectorAll(".panel.open table")].filter((e) => e.offsetParent).filter((table) => {
  const box = table.closest(".scroll"), card = table.closest(".card").getBoundingClientRect();
  const ends = box.getBoundingClientRect();
  const fits = table.getBoundingClientRect().width <= box.clientWidth + 1;
  return ends.right > card.right || !(fits || getComputedStyle(box).overflowX === "auto");
}).map((table) => table.textContent.slice(0, 60))"""
"""Tables that neither fit nor scroll inside of their card."""
COVERED = """() => [...document.querySelectorAll(".panel.open tbody th")].filter((e) => e.offsetParent).filter((th) => {
  const inner = [...th.children].map((c) => c.getBoundingClientRect().right);
  return Math.max(...inner) > th.getBoundingClientRect().right + 1 && getComputedStyle(th).overflow !== "hidden";
}).map((th) => th.textContent)"""
"""Names that run into the numbers beside them."""


@pytest.fixture(scope="module")
def wide_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wide_fit().report(tmp_path_factory.mktemp("wide") / "wide.html")


@pytest.mark.parametrize("width", [390, 1200, 1800])
def test_nothing_is_cut_off(visit: Any, wide_page: Path, width: int) -> None:
    page = visit(wide_page, width=width)
    for tab in page.get_by_role("tab").all():
        tab.click()
        name = tab.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate(HIDDEN) == [], name
        assert page.evaluate(BROKEN) == [], name
        assert page.evaluate(COVERED) == [], name
    assert page.problems == []


def test_a_wide_screen_is_used(visit: Any, wide_page: Path) -> None:
    page = visit(wide_page, width=1800)
    assert page.locator("main").bounding_box()["width"] > 1500
    rows = page.locator("#summary table").first.locator("tbody tr").all()
    heights = sorted(row.bounding_box()["height"] for row in rows)
    assert len(heights) == 17 and heights[14] < 45 and heights[-1] < 75, "only names of experiments are broken"


def test_large_correlations_begin_with_the_strongest(visit: Any, wide_page: Path) -> None:
    page, found = visit(wide_page, width=1200), wide_fit().correlation.to_numpy()
    page.get_by_role("tab", name="Uncertainty").click()
    cells = page.locator("table.correlation.dense tbody td")
    assert cells.count() == len(found) ** 2 and cells.first.bounding_box()["width"] < 50
    assert page.locator("table.correlation").bounding_box()["width"] < 1150
    told = page.locator("table.correlation td[title]").nth(len(found)).get_attribute("title")
    assert told == f"{wide_fit().names[1]} and {wide_fit().names[0]}: {found[1, 0]:+.2f}".replace("-", "−")
    phone = visit(wide_page, width=390)
    phone.get_by_role("tab", name="Uncertainty").click()
    assert phone.locator("table.correlation.dense tbody td").first.bounding_box()["width"] < 24


DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Plots that come into sight are drawn again at their width before the next picture."""


def ticks(page: Any, title: str) -> list[str]:
    page.evaluate(DRAWN)
    figure = page.locator("figure", has=page.get_by_text(title, exact=True)).locator("visible=true").first
    return figure.locator("text[text-anchor=middle]:not(.name)").all_text_contents()


def test_dates_below_and_summer_time(visit: Any, wide_page: Path) -> None:
    page = visit(wide_page, width=1200)
    page.get_by_role("tab", name="Outputs").click()
    night = ticks(page, "y, the night in which clocks are put forward")
    assert night == ["22:00", "23:00", "31 Mar", "01:00", "03:00", "04:00", "05:00", "06:00", "07:00"]
    figure = page.locator(
        "#outputs figure", has=page.get_by_text("y, the night in which clocks are put forward", exact=True)
    ).first
    assert "time, Europe/Berlin: 30 Mar – 31 Mar 2024" in figure.locator("text.name").all_text_contents()
    box = figure.locator(".canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 15, box["y"] + 60)
    assert "2024-03-31 07:00 CEST" in page.locator(".tip:visible").inner_text()
    page.locator("#outputs-picker").select_option("week")
    assert ticks(page, "y, week")[:3] == ["1 Apr", "2 Apr", "3 Apr"]
    assert page.problems == []


def test_quantities_that_nothing_measures_are_shown(visit: Any, wide_page: Path) -> None:
    page = visit(wide_page, width=1200)
    page.get_by_role("tab", name="Outputs").click()
    titles = page.locator("figcaption:visible").all_text_contents()
    assert "heat_flow, simulated" in titles and "th, simulated" in titles and "waves, simulated" in titles


def test_dots_and_words(visit: Any, wide_page: Path) -> None:
    page = visit(wide_page, width=1200)
    page.get_by_role("tab", name="Model").click()
    assert page.locator("ol.equations mover").count() == 1 and page.locator("ol.equations mfrac").count() == 0


def test_disturbances_lead_the_states(visit: Any, tmp_path: Path) -> None:
    class Level(gr.Model):
        h, k = gr.Variable(1.0, "m"), gr.Parameter(0.5, bounds=(0.1, 2.0))
        leak = gr.Variable(unit="m/h", description="through the wall")
        rain = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.5), scale=0.3, unit="m/h")
        gust = gr.Disturbance(gr.spectra.white(), scale=0.01)
        y = gr.Output(h, noise=0.05, unit="m")
        equations = [gr.der(h) == rain - leak + gust, leak == k * h]

    t = np.linspace(0, 10, 41)
    run = gr.simulate(Level(), t, realizations=1, seed=3, noise=True)
    data = gr.Experiment(t, {}, {"y": run["y"].values[0]}, name="walk", unit="h")
    page = visit(gr.fit(Level(), data, ["k"], gr.KalmanML()).report(tmp_path / "level.html"))
    page.get_by_role("tab", name="States").click()
    titles = page.locator("figcaption:visible").all_text_contents()
    assert titles == ["rain, walk", "h, walk", "leak, walk: through the wall", "y, walk"]
    assert "rain [m/h]" in page.locator("#states text.name").all_text_contents()
    assert "gust: white noise has no value" in page.locator("#states").inner_text()
