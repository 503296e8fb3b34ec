"""HTML is escaped wherever it is not markup already."""

from __future__ import annotations

from grisaille.markup import Html, joined, table, tag, text


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "a < b & c") == "<p>a &lt; b &amp; c</p>"
    assert tag("p", tag("b", "x")) == "<p><b>x</b></p>"
    assert text(Html("<i>")) == "<i>" and text("<i>") == "&lt;i&gt;"


def test_attributes_cannot_be_left() -> None:
    assert tag("a", title='"><script>') == '<a title="&quot;&gt;&lt;script&gt;"></a>'
    assert tag("td", class_="number", aria_label="x", hidden=True, id=None) == (
        '<td class="number" aria-label="x" hidden></td>'
    )


def test_void_elements_have_no_end() -> None:
    assert tag("meta", name="viewport") == '<meta name="viewport">'


def test_none_is_nothing() -> None:
    assert joined(["a", None, 1], ", ") == "a, 1"


def test_tables_head_columns_and_rows() -> None:
    made = table(("", "value"), [("k", "1 < 2")], numbers=(1,), caption="T")
    assert made.count('scope="col"') == 2 and made.count('scope="row"') == 1
    assert '<td class="number">1 &lt; 2</td>' in made and "<caption>T</caption>" in made
