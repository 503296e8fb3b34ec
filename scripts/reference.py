"""A hook of MkDocs: the API reference, from signatures and docstrings.

A line ``<!-- reference: gr.fit gr.spectra.lowpass -->`` in a page is replaced by an entry for each name: its
signature, its docstring, and for classes their public methods and properties. The page in the repository holds only
its tables, so that nothing generated is kept under version control.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

MARK = re.compile(r"^<!-- reference: (?P<names>[^>]+) -->$", re.MULTILINE)
WIDTH = 88
FULL = 94
"""A line of a docstring that is at least so long goes on in the next one."""
NOTHING = (inspect.Signature.empty, None, "None")
INTERNAL = {"of"}
"""Methods by which the package makes its answers."""
UNTOLD = {"Model", "Connector", "Fit", "Analysis", "WellPosedness"}
"""Classes to be subclassed, whose constructor takes what the subclass declares; and answers, which nobody makes."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return MARK.sub(
        lambda found: "\n".join(entry for name in found["names"].split() for entry in entries(name)), markdown
    )


def entries(name: str) -> Iterator[str]:
    """The entry of a name, and for a class those of its members."""
    value = resolve(name)
    yield f"### {name}\n\n{fenced(name + signature(value, taken=len(name)))}{described(value)}\n"
    kind = value if inspect.isclass(value) else answer(value)
    if kind is not None and not issubclass(kind, BaseException):
        label = name if kind is value else kind.__name__
        yield from (entry for member in members(kind) if (entry := member_entry(label, kind, member)))


def answer(value: Any) -> type | None:
    """The class that a function gives back, where that has no public name of its own."""
    import grisaille

    if not inspect.isfunction(value):
        return None
    found = inspect.unwrap(value).__globals__.get(str(inspect.signature(value).return_annotation))
    is_ours = inspect.isclass(found) and found.__module__.startswith("grisaille")
    is_formula = is_ours and found.__module__.startswith("grisaille.model")
    return found if is_ours and not is_formula and found.__name__ not in grisaille.__all__ else None


def resolve(name: str) -> Any:
    """``gr.fit`` and ``gr.spectra.white`` by their public names."""
    import grisaille

    value: Any = grisaille
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def members(cls: type) -> list[str]:
    """Its own; of answers also those that earlier rooms wrote."""
    is_answer = cls.__module__.startswith("grisaille.results.")
    classes = [c for c in cls.__mro__ if c is not object] if is_answer else [cls]
    found = {n: inspect.getattr_static(cls, n) for c in classes for n in vars(c)}
    own = {n: v for n, v in found.items() if not n.startswith("_") and n not in INTERNAL | contract(cls)}
    return [n for n, v in own.items() if callable(v) or is_described(v)]


def contract(cls: type) -> set[str]:
    """Methods by which the package talks to its estimators."""
    from grisaille.estimation.estimator import Estimator

    return set(vars(Estimator)) if issubclass(cls, Estimator) else set()


def is_described(value: Any) -> bool:
    return isinstance(value, (property, classmethod, staticmethod)) or hasattr(value, "func")


def member_entry(name: str, cls: type, member: str) -> str:
    value = inspect.getattr_static(cls, member)
    inner = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
    if not inspect.getdoc(inner) or inspect.isclass(inner):
        return ""
    called = (
        ""
        if isinstance(value, property) or hasattr(value, "func")
        else signature(inner, bound=True, taken=len(member) + 1)
    )
    return f"#### {name.removeprefix('gr.')}.{member}\n\n{fenced('.' + member + called)}{described(inner)}\n"


def signature(value: Any, *, bound: bool = False, taken: int = 0) -> str:
    """As text; empty for what is not called. One argument per line where it is long; ``taken``: columns before it."""
    if not callable(value) or getattr(value, "__name__", "") in UNTOLD:
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parts = list(arguments(list(found.parameters.values())[1 if bound else 0 :]))
    gives = f" -> {annotation(found.return_annotation)}" if found.return_annotation not in NOTHING else ""
    line = f"({', '.join(parts)}){gives}"
    if taken + len(line) <= WIDTH:
        return line
    return "(\n" + "".join(f"{long_argument(p)},\n" for p in parts) + f"){gives}"


def long_argument(text: str) -> str:
    """One line, or several where it has many kinds or choices."""
    return textwrap.fill(text, WIDTH - 1, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False)


def arguments(parameters: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or p.kind is p.VAR_POSITIONAL
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        known = f": {annotation(p.annotation)}" if p.annotation is not p.empty else ""
        default = f"{' = ' if known else '='}{default_text(p.default)}" if p.default is not p.empty else ""
        yield f"{stars}{p.name}{known}{default}"


def annotation(value: Any) -> str:
    return value if isinstance(value, str) else inspect.formatannotation(value)


def default_text(value: Any) -> str:
    return repr(dict(value)) if isinstance(value, MappingProxyType) else repr(value)


def fenced(text: str) -> str:
    return f"```py\n{text}\n```\n\n"


def described(value: Any) -> str:
    """The docstring: its paragraphs as text, what is indented or lists arguments as it stands."""
    text = inspect.getdoc(value) or ""
    first, _, rest = text.partition("\n\n")
    quoted = f"\n\n```text\n{narrow(rest.rstrip().replace('``', '`'))}\n```" if rest.strip() else ""
    return first.replace("``", "`").replace("\n", " ") + quoted + "\n"


def narrow(text: str) -> str:
    """Paragraphs are filled anew where they are wider than ``WIDTH``; formulas and tables stay as they are."""
    lines, out = text.splitlines(), []
    while lines:
        paragraph = [lines.pop(0)]
        while lines and len(paragraph[-1]) >= FULL and lines[0].strip() and continues(paragraph, lines[0]):
            paragraph.append(lines.pop(0))
        if max(map(len, paragraph)) <= WIDTH:
            out += paragraph
            continue
        first = indent(paragraph[0])
        rest = indent(paragraph[1]) if len(paragraph) > 1 else first + "    " * (" : " in paragraph[0])
        out += textwrap.wrap(
            " ".join(line.strip() for line in paragraph), WIDTH, initial_indent=first, subsequent_indent=rest,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(out)


def continues(paragraph: list[str], line: str) -> bool:
    """Lines after the second have its indentation; the second may be indented by one level more than the first."""
    if len(paragraph) > 1:
        return indent(line) == indent(paragraph[1])
    return indent(line) in (indent(paragraph[0]), indent(paragraph[0]) + "    ")


def indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
