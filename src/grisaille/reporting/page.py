"""A page that needs nothing but itself: tabs of content, charts as data, style and script inside.

A content-security policy forbids every request and every script but the package's own, which is named by its hash: a
name that slipped through the escaping could still not run.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from grisaille.errors import DataError
from grisaille.markup import Html, joined, tag
from grisaille.reporting.chart_encoding import encode
from grisaille.reporting.charts import Album
from grisaille.writing import write_whole

if TYPE_CHECKING:
    from grisaille.markup import Content

SCRIPTS = ("scales.js", "dates.js", "draw.js", "plot.js", "page.js")
KEYS = (
    "Plot: plus and minus keys zoom, left and right arrows move a zoomed plot, 0 or Escape shows everything. Dragging "
    "chooses a stretch, a double click shows everything."
)


@dataclass(frozen=True)
class Tab:
    """One tab of a page."""

    title: str
    content: Html

    @property
    def name(self) -> str:
        return self.title.lower().replace(" ", "-")


@dataclass(frozen=True)
class Chip:
    """A verdict of a few words below the title; ``good`` is None where it is neither good nor bad."""

    words: str
    good: bool | None = None


def build_page(
    title: str, subtitle: Iterable[Content], chips: Sequence[Chip], tabs: Sequence[Tab], album: Album, footer: str
) -> str:
    """Return the whole document."""
    script = _script()
    return "<!doctype html>\n" + tag(
        "html",
        tag("head", *_head(title, script)),
        tag(
            "body",
            _header(title, subtitle, chips),
            _navigation(tabs),
            tag("main", *(_panel(tab) for tab in tabs)),
            tag("footer", footer),
            tag("p", KEYS, id="keys", class_="visually-hidden"),
            tag("script", Html(encode(album.charts)), type="application/json", id="charts"),
            tag("script", Html(script)),
        ),
        lang="en",
    )


def write_page(path: str | os.PathLike[str], page: str) -> Path:
    """Write the page beside its place and move it there when complete; return the path."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise DataError(
            f"The report cannot be written as {str(target)!r}: it is a page, give a name that ends in .html."
        )
    return write_whole(target, page.encode("utf-8"), "The report")


def card(*content: Content, title: str = "") -> Html:
    """Return a framed part of a tab."""
    return tag("section", tag("h2", title) if title else None, *content, class_="card")


def scrolling(content: Html) -> Html:
    """Scrolls inside itself where the page is narrower, with a shadow where more is to come; keys scroll it too."""
    return tag("div", content, class_="scroll", tabindex="0", role="group", aria_label="table")


def facts(entries: Iterable[tuple[Content, Content]]) -> Html:
    """Return small numbers with their names above."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in entries), class_="facts")


def bullets(sentences: Iterable[Content]) -> Html | None:
    listed = [tag("li", sentence) for sentence in sentences]
    return tag("ul", *listed, class_="notes") if listed else None


def choices(label: str, options: Sequence[tuple[str, Html]], group: str) -> Html:
    """Return parts of which one is shown at a time, chosen from a list; in print all of them, with their names."""
    if len(options) == 1:
        return options[0][1]
    names = [f"{group}-{k}" for k in range(len(options))]
    select = tag(
        "select", *(tag("option", title, value=n) for n, (title, _) in zip(names, options, strict=True)),
        class_="picker", id=f"{group}-picker",
    )  # fmt: skip
    parts = [
        tag("div", tag("h3", title), content, class_="choice", id=n)
        for n, (title, content) in zip(names, options, strict=True)
    ]
    row = tag("p", tag("label", label, for_=f"{group}-picker"), select, class_="picker-row")
    return joined((row, *parts))


def _head(title: str, script: str) -> Iterable[Html]:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    yield tag("meta", charset="utf-8")
    yield tag("meta", http_equiv="Content-Security-Policy", content=policy)
    yield tag("meta", name="viewport", content="width=device-width, initial-scale=1")
    yield tag("meta", name="generator", content="grisaille")
    yield tag("title", title)
    yield tag("link", rel="icon", href="data:,")
    yield tag("style", Html(_asset("page.css")))


def _header(title: str, subtitle: Iterable[Content], chips: Sequence[Chip]) -> Html:
    shown = [
        tag(
            "li",
            _sign(chip.good),
            chip.words,
            class_=f"chip{'' if chip.good is None else ' good' if chip.good else ' bad'}",
        )
        for chip in chips
    ]
    text = tag("div", tag("h1", title), *(tag("p", line) for line in subtitle), tag("ul", *shown, class_="chips"))
    return tag("header", text, tag("button", "◐", type="button", class_="theme", aria_label="Dark"), class_="page")


def _sign(good: bool | None) -> Html | None:
    return None if good is None else tag("span", "✓ " if good else "✗ ", aria_hidden="true")


def _navigation(tabs: Sequence[Tab]) -> Html:
    buttons = [
        tag(
            "button", tab.title, type="button", role="tab", id=f"tab-{tab.name}", aria_controls=tab.name,
            aria_selected="false",
        )
        for tab in tabs
    ]  # fmt: skip
    return tag("nav", tag("div", *buttons, role="tablist", aria_label="Parts of the report", class_="tablist"))


def _panel(tab: Tab) -> Html:
    return tag("div", tab.content, class_="panel", id=tab.name, role="tabpanel", aria_labelledby=f"tab-{tab.name}")


@cache
def _asset(name: str) -> str:
    return (files("grisaille.reporting") / "assets" / name).read_text("utf-8")


@cache
def _script() -> str:
    body = "\n".join(_asset(name) for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{body}}})();\n'
