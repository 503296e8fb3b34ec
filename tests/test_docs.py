"""Every Python example in README.md and docs/ runs, and prints what the page says it prints.

The ``python`` blocks of a page are executed in order, in one fresh namespace and an empty folder. A ``text`` block that
follows a ``python`` block directly is what that block must print, with numbers compared as numbers (``printed.py``; a
looser tolerance is stated by ``<!-- numbers within 10 % -->`` before a block). ``<!-- not executed -->`` before a block
leaves it out, ``<!-- file: PATH -->`` writes it to a file instead.
In ``console`` blocks, lines that begin with ``$ grisaille`` are run, and what follows each is what it must print. A
picture that a page saves under the name of one it shows must be that picture.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib.pyplot as plt
import pytest
from pictures import refuse_other_pictures
from printed import difference

import grisaille
from grisaille.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
WITHIN = r"<!-- numbers within (?P<{}>\d+) % -->"
BLOCK = re.compile(
    rf"(?:(?P<skip><!-- not executed -->)|<!-- file: (?P<file>\S+) -->|{WITHIN.format('commands')})?\s*"
    r"^```(?P<language>python|console|toml)\n(?P<code>.*?)^```\n"
    rf"(?:\s*(?:{WITHIN.format('results')}\s*)?^```text\n(?P<printed>.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")


COLUMNS = 88


@dataclass(frozen=True)
class Example:
    line: int
    code: str
    printed: str | None
    language: str = "python"
    file: str | None = None
    within: float | None = None


def examples(text: str) -> list[Example]:
    return [
        Example(
            text.count("\n", 0, match.start("code")),
            *match.group("code", "printed", "language", "file"),
            within=int(percent) / 100 if (percent := match["commands"] or match["results"]) else None,
        )
        for match in BLOCK.finditer(text)
        if not match["skip"] and (match["language"] != "toml" or match["file"])
    ]


def run(example: Example, page: Path, namespace: dict[str, object]) -> str:
    """Executes with the page's own line numbers, so that a failure points into the page."""
    if example.file is not None:
        Path(example.file).parent.mkdir(parents=True, exist_ok=True)
        Path(example.file).write_text(example.code, encoding="utf-8")
        return ""
    if example.language == "console":
        run_commands(example, page)
        return ""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * example.line + example.code, str(page), "exec"), namespace)
    return printed.getvalue()


def run_commands(example: Example, page: Path) -> None:
    """Each command, and what it prints beside what the page says (nothing said: nothing compared)."""
    for entry in example.code.replace("\\\n", "").split("$ ")[1:]:
        command, _, expected = entry.partition("\n")
        words = shlex.split(command, comments=True)
        assert words[0] == "grisaille", f"{page.name}: only grisaille is run in console blocks, not {words[0]}"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main(words[1:])
        if expected.strip():
            refuse_other_results(expected, printed.getvalue(), example, f"{page.name}: {command}")


def refuse_other_results(expected: str, printed: str, example: Example, where: str) -> None:
    found = difference(expected, printed, example.within)
    assert found is None, f"{where}, line {example.line}: {found}; the page says\n{expected}\nit prints\n{printed}"


def below_root(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if examples(page.read_text("utf-8"))], ids=below_root)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plt.close("all")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for example in examples(page.read_text("utf-8")):
        printed = run(example, page, namespace)
        if example.printed is not None:
            refuse_other_results(example.printed, printed, example, page.name)
    refuse_other_pictures(page, tmp_path)
    refuse_far_estimates(namespace)


def refuse_far_estimates(namespace: dict[str, object]) -> None:
    """A page that tells the ``truth`` by name and has a ``fit`` must come within four standard errors of it."""
    fit, truth = namespace.get("fit"), namespace.get("truth")
    if not isinstance(fit, grisaille.Fit) or not isinstance(truth, dict):
        return
    values = {name: fit[name] for name in truth if name in fit.names}
    off = {n: abs(v - truth[n]) / v.std_error for n, v in values.items()}
    assert off and max(off.values()) < 4, f"{off}: standard errors from the truth"


def test_estimates_far_from_the_truth_are_noticed() -> None:
    class Line(grisaille.Model):
        a, u = grisaille.Parameter(1.0), grisaille.Input()
        y = grisaille.Output(a * u, noise=0.1)
        equations: ClassVar[list[object]] = []

    data = grisaille.Experiment(inputs={"u": [1.0, 2.0, 3.0]}, outputs={"y": [2.0, 4.1, 5.9]})
    fit = grisaille.fit(Line(), data, ["a"], grisaille.OutputError())
    refuse_far_estimates({"fit": fit, "truth": {"a": 2.0}})
    with pytest.raises(AssertionError, match="standard errors from the truth"):
        refuse_far_estimates({"fit": fit, "truth": {"a": 1.0}})


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("[!R]*.md"))], ids=below_root)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def sections() -> dict[str, list[str]]:
    """The pages below each heading of the menu."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "mkdocs.yml").read_text("utf-8").partition("nav:\n")[2].splitlines():
        if heading := re.fullmatch(r"  - ([\w -]+):", line):
            found[heading[1]] = []
        elif page := re.fullmatch(r"      - .*?([\w/-]+\.md)", line):
            found[list(found)[-1]].append(page[1])
    return found


KINDS = {
    "Tutorials": "Tutorial",
    "Gallery": "Tutorial",
    "How-to guides": "How-to guide",
    "Explanation": "Explanation",
    "Reference": "Reference",
}


def test_pages_state_their_kind_and_stand_under_it() -> None:
    assert sections().keys() == KINDS.keys()
    pages = {page: KINDS[section] for section, below in sections().items() for page in below}
    texts = {page: (ROOT / "docs" / page).read_text("utf-8") for page in pages}
    assert {p for p in pages if f"**{pages[p]}.**" not in "\n".join(texts[p].splitlines()[:8])} == set()
    written = {p.relative_to(ROOT / "docs").as_posix() for p in PAGES[1:]}
    assert {p for p in written - {"index.md"} if not p.startswith("decisions/0")} == set(pages)


def test_guides_are_two_clicks_away() -> None:
    """One click leads to the page of all guides, the other to a guide."""
    listed = (ROOT / "docs" / "how-to" / "index.md").read_text("utf-8")
    targets = {(ROOT / "docs" / "how-to" / link).resolve() for link in LINK.findall(listed)}
    guides = {(ROOT / "docs" / page).resolve() for page in sections()["How-to guides"]}
    assert guides - targets == {ROOT / "docs" / "how-to" / "index.md"}


def test_decisions_are_numbered_and_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    pages = sorted(folder.glob("0*.md"))
    index = (folder / "index.md").read_text("utf-8")
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == sorted(set(numbers)), "two decisions have one number"
    for number, page in zip(numbers, pages, strict=True):
        text = page.read_text("utf-8")
        title = text.splitlines()[0]
        assert page.name.startswith(f"{number:04d}-") and title.startswith(f"# {number}. "), page.name
        status = text.partition("**Status:** ")[2].partition("\n")[0].rstrip(".")
        assert status.startswith(("accepted", "superseded by [")), page.name
        assert [f"## {part}" in text for part in ("Context", "Decision", "Consequences")] == [True] * 3, page.name
        assert f"| {number} | [{title.partition('. ')[2]}]({page.name}) | {status} |" in index, page.name


@pytest.mark.parametrize("page", PAGES, ids=below_root)
def test_code_fits_its_box_and_tables_have_heads(page: Path) -> None:
    fence = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    text = page.read_text("utf-8")
    wide = [line for block in fence.findall(text) for line in block.splitlines() if len(line) > COLUMNS]
    assert wide == [], f"{page.name} has code beyond {COLUMNS} columns, which scrolls"
    heads = re.findall(r"^(\|.*)\n\| *:?---", fence.sub("", text), re.MULTILINE)
    assert [head for head in heads if re.search(r"\| *\|", head)] == [], f"{page.name} has tables with empty heads"


@pytest.mark.parametrize("term", ["dead time", "quantised", "heat pump", "confidence interval"])
def test_the_search_finds_common_terms(term: str) -> None:
    """Search looks for words in the text of pages, those of the glossary not counted."""
    places = {
        "dead time": "delays.md", "quantised": "which-law.md", "heat pump": "gallery/house.md",
        "confidence interval": "fitting.md",
    }  # fmt: skip
    assert term in " ".join((ROOT / "docs" / places[term]).read_text("utf-8").lower().split())


def test_readme_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for script in ("scripts/demo", "scripts/check"):
        assert f"\npython3 {script}\n" in readme
        assert (ROOT / script).is_file()


def test_the_runner_notices_wrong_output() -> None:
    (example,) = examples("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match=r"the texts differ|is printed for"):
        refuse_other_results(example.printed or "", run(example, Path("page.md"), {}), example, "page.md")


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [
        ("a 2.4812 ± 0.0392 Ah", "a 2.4851 ± 0.0391 Ah", "a 2.4912 ± 0.0392 Ah"),
        ("a 2.4812 ± 0.0392 Ah", "a 2.4812 ± 0.0400 Ah", "a 2.4812 ± 0.0492 Ah"),
        ("(5.28 ± 0.035)e-05 N", "(5.29 ± 0.035)e-05 N", "(5.31 ± 0.035)e-05 N"),
        (
            "Q  2.48  0.0392  [2.40, 2.55]  63.2",
            "Q  2.47  0.0398  [2.41, 2.55]  62.0",
            "Q  2.48  0.0392  [2.40, 2.60]  63.2",
        ),
        ("Q  248  39.2  [170, 330]  6.3", "Q  251  39.3  [170, 331]  6.3", "Q  298  39.2  [170, 330]  6.3"),
        ("R² 0.981, rms 3.13e-07", "R² 0.981,  rms 3.14e-07", "R² 0.985, rms 3.13e-07"),
        ("60 samples, -0.5", "60   samples, -0.501", "61 samples, -0.5"),
        ("-0.5", "-0.5", "0.5"),
        ("x2 = ... of 3\n-----", "x2 = 4.7 of 3\n---------", "x3 = 4.7 of 3\n-----"),
        ("2.48...", "2.4871", "2.49"),
        ("1.5", "1.5", "nan"),
    ],
)
def test_printed_numbers_have_tolerances(expected: str, right: str, wrong: str) -> None:
    assert difference(expected, right) is None
    assert difference(expected, wrong) is not None


def test_a_block_can_state_its_tolerance() -> None:
    (example,) = examples("```python\nprint(105)\n```\n\n<!-- numbers within 4 % -->\n```text\n100\n```\n")
    assert example.within == 0.04
    assert difference("100", "104", example.within) is None
    assert difference("100", "106", example.within) is not None


def test_commands_are_run_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "<!-- file: a/b.toml -->\n```toml\nx = 1\n```\n\n```console\n$ grisaille --version\ngrisaille {}\n```\n"
    file, right = examples(text.format("..."))
    run(file, Path("page.md"), {})
    assert Path("a/b.toml").read_text() == "x = 1\n"
    run(right, Path("page.md"), {})
    with pytest.raises(AssertionError, match="the page says"):
        run(examples(text.format("nine"))[1], Path("page.md"), {})


def test_blocks_marked_not_executed_are_left_out() -> None:
    assert examples("<!-- not executed -->\n```python\nraise SystemExit\n```\n") == []


@pytest.mark.parametrize("domain", ["electrical", "rotational", "sampling", "signals", "thermal", "translational"])
def test_every_component_is_in_the_docs(domain: str) -> None:
    module = importlib.import_module(f"grisaille.components.{domain}")
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    named = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "components.md").read_text("utf-8")))
    missing = {name for name in own if name[0].isupper()} - named
    assert not missing, f"docs/components.md does not name {', '.join(sorted(missing))}"


def test_the_reference_names_everything_public() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    named = set(re.findall(r"`gr\.(\w+)", re.sub(r"<!--.*?-->", "", page)))
    assert set(grisaille.__all__) - named == set(), "docs/api.md does not name these"
    assert named - set(grisaille.__all__) == set(), "docs/api.md names these, which are not public"


def test_every_reference_has_a_signature_or_a_docstring() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None and spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    text = reference.on_page_markdown((ROOT / "docs" / "api.md").read_text("utf-8"))
    assert "<!-- reference" not in text
    assert "### gr.simulate\n\n```py\ngr.simulate(\n    model: Model,\n" in text
    assert "#### Fit.predict" in text and "#### Fit.profile" in text
    assert "#### Multistart.best" in text and "#### Comparison.report" in text, "what functions give back"
    assert "#### KalmanML.pose" not in text and "#### KalmanML.states" not in text, "the estimator contract is internal"
    assert " at 0x" not in text


def test_the_architecture_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    package = ROOT / "src" / "grisaille"
    rooms = {p.parent.name for p in package.glob("*/__init__.py")} | {p.name for p in package.glob("[a-z]*.py")}
    assert {room for room in rooms if f"`{room}`" not in page} == set()
