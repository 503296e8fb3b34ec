"""What else can be done with a model that the flattener refuses."""

from __future__ import annotations

OTHERWISE = (
    'Where OpenModelica is installed, flattener="omc" flattens by it; elsewhere `omc -f --baseModelica Plant.mo`, '
    "without -d=evaluateAllParameters, gives a text that can be read."
)
