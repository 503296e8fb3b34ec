"""Data sets that come with the package, ready to be fitted.

Each function gives experiments as a user would have made them from files; the files themselves lie beside this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from grisaille.experiment.experiment import Experiment

__all__ = ["nylon612", "nylon612_catalysed", "nylon612_table"]


def nylon612() -> list[Experiment]:
    """Return six runs of a lab-scale nylon 612 reactor, one experiment each.

    Input ``P_W`` [mmHg], the partial pressure of water, held from the time of its row on; outputs ``y_A`` and ``y_C``,
    amine and acid end groups [mol/Mg] with standard deviations 0.6 and 2.4; constant ``T`` [K]. Times in hours.
    Source: M. S. Varziri, thesis, Queen's University (2008), Tables 6.7–6.12, with data of M. A. Schaffer et al. (2003)
    and W. Zheng et al. (2005).
    """
    from grisaille.experiment.experiment import Experiment

    experiments = []
    for name, run in nylon612_table().groupby("run", sort=False):
        time, held = run["time"].to_numpy(), run.dropna(subset="P_W")
        measured = run.dropna(subset="C")
        experiments.append(
            Experiment(
                time,
                {"P_W": (held["time"].to_numpy(), held["P_W"].to_numpy())},
                {"y_A": run["A"].to_numpy(), "y_C": (measured["time"].to_numpy(), measured["C"].to_numpy())},
                name=str(name),
                constants={"T": float(run["T"].iloc[0])},
                unit="h",
                units={"P_W": "mmHg"},
            )
        )
    return experiments


def nylon612_table() -> pd.DataFrame:
    """Return the rows of the six runs: ``run, T [K], time [h], steady, A, C, P_W``; NaN where nothing was printed.

    ``steady`` marks the rows that the source takes for steady states (its asterisks).
    """
    return _read("nylon612.csv").astype({"steady": bool})


def nylon612_catalysed() -> pd.DataFrame:
    """Return steady states of three further runs with catalyst, ``run, T [K], SHP_ppm, time [h], A, C`` (Tables
    6.13–6.15).

    Their water pressures were not published.
    """
    return _read("nylon612_catalysed.csv")


def _read(name: str) -> pd.DataFrame:
    from importlib import resources

    import pandas as pd

    with resources.files(__package__).joinpath(name).open("r", encoding="utf-8") as file:
        table = pd.read_csv(file)
    table.insert(1, "T", table.pop("T_celsius") + 273.15)
    return table.rename(columns={"time_h": "time"})
