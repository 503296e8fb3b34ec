"""Writes what each estimator can do into docs/abilities.md, from the contract of estimators.

python scripts/abilities.py     with an interpreter that has the package, such as .venv/bin/python
"""

from __future__ import annotations

import re
from pathlib import Path

import grisaille as gr
from grisaille.estimation.abilities.table import markdown

PAGE = Path(__file__).resolve().parent.parent / "docs" / "abilities.md"
BETWEEN = re.compile(r"(?<=<!-- abilities -->\n).*?(?=<!-- end -->)", re.DOTALL)
METHODS = (gr.OutputError(), gr.SimulatedPEM(), gr.KalmanML(), gr.ParticleML(), gr.Collocation())
VARIANTS = (
    'gr.OutputError(loss="huber")',
    'gr.OutputError(errors="robust")',
    'gr.OutputError(shooting="multiple")',
    'gr.SimulatedPEM(match="mean-variance")',
    "gr.KalmanML(robust=3.0)",
    "gr.KalmanML(horizon=2)",
    'gr.Collocation(criterion="amle")',
    'gr.Collocation(criterion="amle", debias=True)',
    'gr.Collocation(criterion="ipda")',
    'gr.Collocation(criterion="smoothing")',
)


def page(text: str) -> str:
    """A page with the tables that the contract gives between its marks."""
    made = markdown(METHODS, [(call, eval(call, {"gr": gr})) for call in VARIANTS])
    return BETWEEN.sub(lambda _: f"\n{made}\n\n", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
