"""Every Python example in README.md and docs/ runs, and prints what the page says it prints.

The ``python`` blocks of a page are executed in order, in one fresh namespace and an empty folder. A ``text`` block that
follows a ``python`` block directly is what that block must print (``...`` stands for anything, whitespace is not
compared). ``<!-- not executed -->`` before a block leaves it out, ``<!-- file: PATH -->`` writes it to a file instead.
In ``console`` blocks, lines that begin with ``$ grisaille`` are run, and what follows each is what it must print. A
picture that a page saves under the name of one it shows must be that picture.
"""

from __future__ import annotations

import contextlib
import doctest
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

import grisaille
from grisaille.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(
    r"(?:(?P<skip><!-- not executed -->)|<!-- file: (?P<file>\S+) -->)?\s*^```(?P<language>python|console|toml)\n"
    r"(?P<code>.*?)^```\n(?:\s*^```text\n(?P<printed>.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Example:
    line: int
    code: str
    printed: str | None
    language: str = "python"
    file: str | None = None


def examples(text: str) -> list[Example]:
    return [
        Example(text.count("\n", 0, match.start("code")), *match.group("code", "printed", "language", "file"))
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
    for entry in example.code.split("$ ")[1:]:
        command, _, expected = entry.partition("\n")
        words = shlex.split(command, comments=True)
        assert words[0] == "grisaille", f"{page.name}: only grisaille is run in console blocks, not {words[0]}"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main(words[1:])
        same = doctest.OutputChecker().check_output(expected, printed.getvalue(), LOOSELY)
        assert same or not expected.strip(), (
            f"{page.name}, line {example.line}: {command}\nthe page says\n{expected}\nit prints\n{printed.getvalue()}"
        )


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
            same = doctest.OutputChecker().check_output(example.printed, printed, LOOSELY)
            assert same, f"{page.name}, line {example.line}: the page says\n{example.printed}\nit prints\n{printed}"
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


@pytest.mark.parametrize("page", PAGES, ids=below_root)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_readme_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for script in ("scripts/demo", "scripts/check"):
        assert f"\npython3 {script}\n" in readme
        assert (ROOT / script).is_file()


def test_the_runner_notices_wrong_output() -> None:
    (example,) = examples("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    printed = run(example, Path("page.md"), {})
    assert not doctest.OutputChecker().check_output(example.printed or "", printed, LOOSELY)


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
