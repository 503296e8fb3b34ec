"""Says what a band contains: ``"noise"``, the variance for given unknowns, or ``"all"``, that of the unknowns too.

It stands in the attributes of trajectories, as a coordinate, so that tables made of them have it as a column, in the
legends of pictures and in the names of columns that are written to files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import xarray as xr

Bands = Literal["noise", "all"]
BAND_CONTENTS = {"noise": "noise alone", "all": "noise and parameters"}


def with_kind(found: xr.Dataset, bands: Bands) -> xr.Dataset:
    """Return trajectories that say which bands they have."""
    return found.assign_attrs(bands=bands).assign_coords(bands=bands)


def band_label(level: float, bands: object) -> str:
    """Return the words of a legend, such as ``95 % band (noise alone)``."""
    contents = BAND_CONTENTS.get(str(bands), "")
    return f"{100 * level:g} % band" + (f" ({contents})" if contents else "")
