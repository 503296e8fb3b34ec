"""The gallery is complete: every page has a picture that it draws, small enough, and a place in the index and the menu.

That its pages run, and draw what they show, is tested with all other pages in ``test_docs.py``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from pictures import SHOWN, difference, refuse_other_pictures, write_small

ROOT = Path(__file__).resolve().parent.parent
GALLERY = ROOT / "docs" / "gallery"
PAGES = [page for page in sorted(GALLERY.glob("*.md")) if page.name != "index.md"]
BYTES = 60_000


def test_there_are_a_dozen_from_several_fields() -> None:
    fields = {page.read_text("utf-8").split("\n*", 1)[1].split(" · ")[0] for page in PAGES}
    words = {word.strip().casefold() for field in fields for word in field.split(",")}
    assert len(PAGES) >= 12
    assert words == {"process", "building energy", "mechanics", "electrical", "biology"}


def test_all_estimators_are_shown() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    for call in ("gr.OutputError(", "gr.SimulatedPEM(", "gr.Collocation(", 'fit.why["KalmanML"]', "gr.monte_carlo("):
        assert call in text


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_draws_one_small_picture(page: Path) -> None:
    text = page.read_text("utf-8")
    (shown,) = SHOWN.findall(text)
    assert shown == f"../images/gallery/{page.stem}.png"
    assert f'figure.savefig("{page.stem}.png"' in text
    assert (page.parent / shown).stat().st_size < BYTES


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_is_in_the_index_and_the_menu(page: Path) -> None:
    title = page.read_text("utf-8").splitlines()[0].removeprefix("# ")
    index = (GALLERY / "index.md").read_text("utf-8")
    assert f"(../images/gallery/{page.stem}.png)]({page.name})" in index
    assert f"[{title}]({page.name})" in index
    assert f"gallery/{page.name}" in (ROOT / "mkdocs.yml").read_text("utf-8")


def test_pictures_without_a_page_are_noticed() -> None:
    drawn = {picture.stem for picture in (ROOT / "docs" / "images" / "gallery").glob("*.png")}
    assert drawn == {page.stem for page in PAGES}


def test_another_curve_is_another_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRISAILLE_PICTURES", raising=False)
    folder, page = tmp_path / "drawn", tmp_path / "page.md"
    folder.mkdir()
    page.write_text("![a line](line.png)\n", "utf-8")
    _draw(folder / "line.png", end=1.0)
    write_small(folder / "line.png", tmp_path / "line.png")
    refuse_other_pictures(page, folder)
    assert difference(tmp_path / "line.png", folder / "line.png") < 0.01
    _draw(folder / "line.png", end=0.9)
    with pytest.raises(AssertionError, match="draws another"):
        refuse_other_pictures(page, folder)


def _draw(path: Path, end: float) -> None:
    figure, axes = plt.subplots(figsize=(7.5, 3.0), layout="constrained")
    axes.plot([0, 1], [0, end], linewidth=1)
    axes.set_ylim(0, 1)
    figure.savefig(path, dpi=100)
    plt.close(figure)
