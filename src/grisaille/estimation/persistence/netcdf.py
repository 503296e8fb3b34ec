"""Several datasets as groups of one netCDF-4 file, written and read through one open file.

xarray opens a file anew for every group and looks every dimension up again and again, which took most of the time of
saving and loading a fit. A netCDF-4 file is HDF5 in which every dimension is a dataset of its own, a *scale*, that
arrays name for each of their axes; a coordinate is the scale of its own dimension. So it is written here, and read, in
whatever way it was written.

Reference: NetCDF-4 file format specification, Unidata, appendix C of the netCDF user's guide.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import h5py
    import xarray as xr

NETCDF_ATTRIBUTES = frozenset({
    "CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid", "_Netcdf4Coordinates",
    "_NCProperties", "_nc3_strict",
})  # fmt: skip
"""Attributes by which netCDF keeps its own books."""
TRAILER = b"\ngrisaille sha256 "
"""What stands between the file that HDF5 reads and the digest of it; HDF5 passes over what follows its end."""
BARE_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
"""How the dataset of a dimension without coordinates begins to describe itself."""


def groups_as_bytes(groups: Iterable[tuple[str, xr.Dataset]]) -> bytes:
    """Return the file that holds datasets by the names of their groups; the empty name is the root.

    It is made in memory: where a disk is full, HDF5 loses the file, and the process with it.
    """
    import h5py

    made = io.BytesIO()
    with h5py.File(made, "w", track_order=True) as file:
        file.attrs["_NCProperties"] = np.bytes_(f"version=2,h5py={h5py.__version__}".encode())
        dimensions = 0
        for name, dataset in groups:
            group = file.create_group(name, track_order=True) if name else file
            dimensions = _write(group, dataset, dimensions)
    content = made.getvalue()
    return content + TRAILER + hashlib.sha256(content).hexdigest().encode()


def _write(group: Any, dataset: xr.Dataset, dimensions: int) -> int:
    """Return one group; gives how many dimensions the file has now."""
    scales = {}
    for number, (name, size) in enumerate(dataset.sizes.items(), start=dimensions):
        key = str(name)
        if name in dataset.variables:
            scales[key], label = _stored(group, key, dataset[name]), key
        else:
            bare = np.zeros(size, dtype=">f4")
            scales[key], label = _created(group, key, bare), f"{BARE_DIMENSION.decode()}.{size:10d}"
        scales[key].make_scale(label)
        scales[key].attrs["_Netcdf4Dimid"] = np.int32(number)
    for name, variable in dataset.variables.items():
        if name not in dataset.sizes:
            stored = _stored(group, str(name), variable)
            for axis, dimension in zip(stored.dims, variable.dims, strict=True):
                axis.attach_scale(scales[str(dimension)])
    group.attrs.update(dataset.attrs)
    return dimensions + len(dataset.sizes)


def _stored(group: Any, name: str, variable: Any) -> Any:
    stored = _created(group, name, variable.values)
    stored.attrs.update(variable.attrs)
    return stored


def _created(group: h5py.Group, name: str, values: np.ndarray) -> h5py.Dataset:
    """Return a dataset; an axis without entries is one that may grow, as netCDF knows no other."""
    import h5py

    kind = h5py.string_dtype() if values.dtype == object else values.dtype
    if values.size or not values.ndim:
        return group.create_dataset(name, data=values, dtype=kind)
    most = tuple(n or None for n in values.shape)
    return group.create_dataset(name, values.shape, kind, maxshape=most, chunks=tuple(n or 1 for n in values.shape))


def read_groups(path: str | os.PathLike[str]) -> dict[str, xr.Dataset]:
    """Return every group by its name, the root under the empty name; units of time are left as numbers."""
    import h5py

    _check_trailer(path)
    with h5py.File(path, "r") as file:
        inner = {str(name): item for name, item in file.items() if isinstance(item, h5py.Group)}
        return {name: _dataset(group) for name, group in {"": file, **inner}.items()}


def _check_trailer(path: str | os.PathLike[str]) -> None:
    """Refuse a file whose bytes are not those that were written; others than ours, and older ones, have no digest.

    Before HDF5 opens it: in some damaged files that never finds an end.
    """
    content = Path(path).read_bytes()
    digits = hashlib.sha256().digest_size * 2
    at = content.rfind(TRAILER, len(content) - digits - len(TRAILER))
    if at >= 0 and hashlib.sha256(content[:at]).hexdigest().encode() != content[at + len(TRAILER) :]:
        raise ValueError("its bytes are not those that were saved")
    if at < 0 and content.endswith(tuple(TRAILER[:k] for k in range(2, len(TRAILER)))):
        raise ValueError("its end is missing")


def _dataset(group: h5py.Group) -> xr.Dataset:
    import h5py
    import xarray as xr

    variables = {}
    for name, item in group.items():
        if isinstance(item, h5py.Dataset) and not bytes(item.attrs.get("NAME", b"")).startswith(BARE_DIMENSION):
            text = h5py.check_string_dtype(item.dtype) is not None
            variables[name] = xr.Variable(
                _dimensions(name, item), (item.asstr() if text else item)[()], _attributes(item)
            )
    return xr.Dataset(variables, attrs=_attributes(group))


def _dimensions(name: str, item: h5py.Dataset) -> tuple[str, ...]:
    if item.attrs.get("CLASS", b"") == b"DIMENSION_SCALE" and item.ndim == 1:
        return (name,)
    if not item.ndim:
        return ()
    # by the references themselves: HDF5's own way through them (item.dims) does not end in some damaged files
    listed = item.attrs["DIMENSION_LIST"]
    if len(listed) != item.ndim:
        raise ValueError(f"'{name}' has {item.ndim} axes and {len(listed)} dimensions")
    return tuple(str(item.file[axis[0]].name).rpartition("/")[2] for axis in listed)


def _attributes(item: h5py.Dataset) -> dict[str, Any]:
    found = {k: v for k, v in item.attrs.items() if k not in NETCDF_ATTRIBUTES}
    return {k: v[0] if isinstance(v, np.ndarray) and v.shape == (1,) else v for k, v in found.items()}
