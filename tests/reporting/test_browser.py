"""Reports in a real browser: they load in silence, tabs and zoom work, everyone can read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reporting.fits import METHOD, NASTY, Tank, nasty_fit, tank_experiment, tank_fit, walk_fit

import grisaille as gr

CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")
NAMELESS = """() => [...document.querySelectorAll("button, select, a, [role=img], [role=tab], img, input")].filter(
  (e) => !(e.ariaLabel || e.getAttribute("alt") || e.textContent.trim() || (e.labels && e.labels.length))
).map((e) => e.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tank_fit().report(tmp_path_factory.mktemp("report") / "tank.html", profiles=True)


def figure(page: Any, title: str) -> Any:
    """The figure of that title in the experiment that is shown; where none is shown, the first."""
    found = page.locator("figure", has=page.get_by_text(title, exact=True))
    shown = found.locator("visible=true")
    return shown.first if shown.count() else found.first


def canvas(page: Any, title: str) -> Any:
    return figure(page, title).locator(".canvas")


def zoomed(page: Any, title: str) -> bool:
    return figure(page, title).locator(".plot").get_attribute("data-zoomed") == "true"


def drag(page: Any, title: str, begin: float = 0.3, end: float = 0.6, down: float = 0.0) -> None:
    canvas(page, title).scroll_into_view_if_needed()
    box = canvas(page, title).bounding_box()
    height = box["y"] + 0.4 * box["height"]
    page.mouse.move(box["x"] + begin * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], height + down, steps=4)
    page.mouse.up()


def ticks(page: Any, title: str) -> list[str]:
    return canvas(page, title).locator("text[text-anchor=middle]:not(.name)").all_text_contents()


def test_it_loads_without_a_word(visit: Any, report: Path) -> None:
    page = visit(report)
    assert page.title() == "Tank"
    tabs = page.get_by_role("tab").all()
    assert [tab.inner_text() for tab in tabs] == "Summary Outputs Residuals Uncertainty Model Data Computation".split()
    for tab in tabs:
        tab.click()
        assert page.get_by_role("tabpanel").count() == 1
        assert page.get_by_role("tabpanel").get_attribute("aria-labelledby") == tab.get_attribute("id")
    assert page.locator(".canvas svg").count() == page.locator(".canvas").count() > 10
    assert page.problems == []


def test_tabs_by_keyboard_and_address(visit: Any, report: Path) -> None:
    page = visit(report)
    page.get_by_role("tab", name="Summary").focus()
    for key, expected in (("ArrowRight", "Outputs"), ("End", "Computation"), ("ArrowRight", "Summary")):
        page.keyboard.press(key)
        assert page.locator("[role=tab][aria-selected=true]").inner_text() == expected
        assert page.evaluate("document.activeElement.textContent") == expected
    page.get_by_role("tab", name="Model").click()
    page.reload()
    assert page.locator("[role=tab][aria-selected=true]").inner_text() == "Model"
    assert page.locator("#model math").first.bounding_box()["height"] > 10


def test_zoom_by_mouse(visit: Any, report: Path) -> None:
    page = visit(report)
    page.get_by_role("tab", name="Outputs").click()
    before = ticks(page, "y, first")
    drag(page, "y, first")
    assert zoomed(page, "y, first") and ticks(page, "y, first") != before
    assert zoomed(page, "Input u") and ticks(page, "Input u") == ticks(page, "y, first")  # charts of a run are linked
    canvas(page, "y, first").dblclick()
    assert not zoomed(page, "y, first") and ticks(page, "y, first") == before
    drag(page, "y, first", down=60)
    assert zoomed(page, "y, first")
    assert page.problems == []


def test_zoom_by_keyboard_and_buttons(visit: Any, report: Path) -> None:
    page = visit(report)
    page.get_by_role("tab", name="Outputs").click()
    before = ticks(page, "y, first")
    canvas(page, "y, first").focus()
    page.keyboard.press("+")
    inside = ticks(page, "y, first")
    assert zoomed(page, "y, first") and inside != before
    page.keyboard.press("ArrowRight")
    assert ticks(page, "y, first") != inside
    page.keyboard.press("0")
    assert not zoomed(page, "y, first")
    figure(page, "y, first").get_by_role("button", name="Zoom in").click()
    assert zoomed(page, "y, first")
    figure(page, "y, first").get_by_role("button", name="Show everything").click()
    assert ticks(page, "y, first") == before


def test_values_are_told_where_the_mouse_points(visit: Any, report: Path) -> None:
    page = visit(report)
    page.get_by_role("tab", name="Outputs").click()
    canvas(page, "y, first").hover()
    tip = page.locator(".tip:visible")
    assert "time [h]:" in tip.inner_text() and "measured: " in tip.inner_text() and "simulated: " in tip.inner_text()
    page.mouse.move(5, 5)
    assert page.locator(".tip:visible").count() == 0


def test_series_can_be_hidden(visit: Any, report: Path) -> None:
    page = visit(report)
    page.get_by_role("tab", name="Outputs").click()
    assert canvas(page, "y, first").locator("path.dots").count() == 1
    figure(page, "y, first").get_by_role("button", name="measured").click()
    assert canvas(page, "y, first").locator("path.dots").count() == 0


def test_experiments_are_chosen_from_a_list(visit: Any, report: Path) -> None:
    page = visit(report)
    page.get_by_role("tab", name="Outputs").click()
    assert canvas(page, "y, first").is_visible() and not canvas(page, "y, second").is_visible()
    page.locator("#outputs-picker").select_option("second")
    assert canvas(page, "y, second").is_visible() and not canvas(page, "y, first").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(visit: Any, report: Path, scheme: str) -> None:
    page = visit(report, color_scheme=scheme)
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.mouse.move(3, 3)
        assert page.evaluate(CONTRAST) == []


def test_dark_by_preference_and_by_button(visit: Any, report: Path) -> None:
    shade = "getComputedStyle(document.body).backgroundColor"
    light, dark = visit(report), visit(report, color_scheme="dark")
    assert light.evaluate(shade) != dark.evaluate(shade)
    light.get_by_role("button", name="Switch to dark").click()
    assert light.evaluate(shade) == dark.evaluate(shade)
    light.get_by_role("button", name="Switch to light").click()
    assert light.evaluate(shade) != dark.evaluate(shade)


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_does_not_scroll_sideways(visit: Any, report: Path, width: int) -> None:
    page = visit(report, width=width, height=700, has_touch=True)
    for tab in page.get_by_role("tab").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab.inner_text()


def test_everything_has_a_name(visit: Any, report: Path) -> None:
    page = visit(report)
    assert page.evaluate(NAMELESS) == []
    assert page.locator("h1").count() == 1 and page.locator("html").get_attribute("lang") == "en"
    assert page.locator("th:not([scope])").count() == 0
    labels = [c.get_attribute("aria-label") for c in page.locator(".canvas").all()]
    assert all(len(label) > 40 for label in labels) and len(set(labels)) > len(labels) / 2


def test_everything_is_reached_by_keyboard(visit: Any, report: Path) -> None:
    page = visit(report)
    reached = []
    for key in ("Tab", "Tab", "ArrowRight", *["Tab"] * 14):
        page.keyboard.press(key)
        reached.append(page.evaluate("document.activeElement.className + document.activeElement.tagName"))
    for part in ("themeBUTTON", "pickerSELECT", "canvasDIV", "keyBUTTON"):
        assert part in reached
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"


def test_print_shows_every_part(visit: Any, report: Path) -> None:
    page = visit(report)
    page.emulate_media(media="print")
    assert all(panel.is_visible() for panel in page.locator(".panel").all())
    assert canvas(page, "y, second").is_visible() and not page.locator("nav").is_visible()
    assert len(page.pdf()) > 20_000
    assert page.problems == []


def test_scripts_in_names_are_text(visit: Any, tmp_path: Path) -> None:
    page = visit(nasty_fit().report(tmp_path / "nasty.html"))
    for tab in page.get_by_role("tab").all():
        tab.click()
    assert page.title() == NASTY and page.locator("h1").inner_text() == NASTY
    assert page.problems == []


def test_states_of_a_filter(visit: Any, tmp_path: Path) -> None:
    page = visit(walk_fit().report(tmp_path / "walk.html"))
    page.get_by_role("tab", name="States").click()
    assert canvas(page, "x, walk").locator("path.band").count() == 1
    assert page.problems == []


def test_studies_and_comparisons(visit: Any, tmp_path: Path) -> None:
    data = tank_experiment("plan", 1, n=30)
    options = {"executor": "serial", "seed": 1}
    study = gr.monte_carlo(Tank(k=0.6), data, ["k"], METHOD, runs=6, noise={"y": 0.02}, **options)
    starts = gr.multistart(Tank(), data, ["k"], METHOD, starts=4, **options)
    both = gr.compare({"both": tank_fit(), "again": tank_fit()})
    for k, thing in enumerate((study, starts, gr.bootstrap(study.repeat(0), 4, **options), both)):
        page = visit(thing.report(tmp_path / f"{k}.html"))
        for tab in page.get_by_role("tab").all():
            tab.click()
        assert page.locator(".canvas svg").count() > 0
        assert page.evaluate(NAMELESS) == []
        assert page.problems == []
