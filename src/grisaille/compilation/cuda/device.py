"""Find a usable graphics processor, or the reason why there is none; nothing is imported before it is needed."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache

from grisaille.errors import SimulationError

DEVICES = ("cpu", "cuda", "cuda-single", "auto")
DEVICE_REMEDY = 'pip install "grisaille[gpu]"'


@dataclass(frozen=True)
class Availability:
    """``why`` is empty where a device can be used."""

    name: str
    why: str


@cache
def find_device() -> Availability:
    """Return the devices that CuPy finds here, or why there are none."""
    if importlib.util.find_spec("cupy") is None:
        return Availability(
            "", f"CuPy is not installed: {DEVICE_REMEDY} installs it, on a machine with an NVIDIA driver"
        )
    try:
        import cupy

        count = int(cupy.cuda.runtime.getDeviceCount())
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id) if count else {}
    except Exception as error:  # a driver that is missing or too old shows as any of many
        return Availability("", f"CuPy finds no CUDA device ({error}): nvidia-smi says whether the driver sees one")
    if not count:
        return Availability("", "CuPy finds no CUDA device: nvidia-smi says whether the driver sees one")
    return Availability(properties["name"].decode(), "")


def require_graphics_device() -> str:
    """Return the name of the device; raises where there is none."""
    found = find_device()
    if found.why:
        raise SimulationError(
            f"device='cuda': {found.why}. device='cpu' runs here; grisaille export-kernel writes a folder that runs on "
            f"a machine which has a graphics processor and CuPy alone."
        )
    return found.name
