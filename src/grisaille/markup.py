"""HTML, safe by construction: whatever is not already markup is escaped when it enters a tag.

``tag("td", text, class_="number")`` gives ``<td class="number">text</td>``. Only ``Html`` passes as it is, and only
``tag``, ``joined`` and files of the package make it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

Content: TypeAlias = str | float | None
"""What elements and attributes hold; None is nothing."""
VOID_ELEMENTS = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: Content) -> Html:
    """Return markup as it is, anything else escaped."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def joined(parts: Iterable[Content], between: str = "") -> Html:
    """Return parts one after the other; None is nothing."""
    return Html(between.join(text(part) for part in parts if part is not None))


def tag(name: str, /, *children: Content, **attributes: Content) -> Html:
    """Return one element; ``class_`` is class, ``aria_label`` is aria-label, None and False leave an attribute out."""
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{escape(str(value))}"')
    opening = f"<{' '.join(words)}>"
    return Html(opening if name in VOID_ELEMENTS else f"{opening}{joined(children)}</{name}>")


def table(
    head: Iterable[Content],
    rows: Iterable[Iterable[Content]],
    *,
    caption: str = "",
    numbers: Iterable[int] = (),
    prose: Iterable[int] = (),
    stacked: bool = False,
) -> Html:
    """Return a table whose first column heads its rows.

    numbers : columns that are aligned to the right
    prose : columns of sentences, which may be broken into lines
    stacked : cells also carry the titles of their columns, so that a narrow page can put them below each other
    """
    named = list(head)
    kinds = {**dict.fromkeys(prose, "prose"), **dict.fromkeys(numbers, "number")}
    titles = [tag("th", h, scope="col", class_=kinds.get(k)) for k, h in enumerate(named)]
    body = []
    for row in rows:
        first, *others = row
        cells = [
            tag("td", c, class_=kinds.get(k), data_title=named[k] if stacked else None) for k, c in enumerate(others, 1)
        ]
        body.append(tag("tr", tag("th", first, scope="row"), *cells))
    title = tag("caption", caption) if caption else None
    kind = "stacked" if stacked else None
    return tag("table", title, tag("thead", tag("tr", *titles)), tag("tbody", *body), class_=kind)
