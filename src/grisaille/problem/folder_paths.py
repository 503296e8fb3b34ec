"""The one rule for files that ``problem.toml`` names: they lie in its folder, links followed.

A folder may come from a stranger. Loading it runs the model file and reads the data that lie in it, and nothing else:
absolute paths, ways out through ``..`` and links that lead outside are refused, for models, data and stores alike.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath


def is_path(text: str) -> bool:
    """Return whether a text may name a file elsewhere: it has a separator, a drive, or goes up."""
    return "/" in text or "\\" in text or text.startswith("~") or ".." in text or bool(PureWindowsPath(text).drive)


def leads_outside(folder: Path, name: str) -> str:
    """Return why ``name`` does not stay in the folder, to be read after its place in the file; empty where it does.

    Not checked: that there is such a file.
    """
    written = (PurePosixPath(name), PureWindowsPath(name))
    if any(p.is_absolute() or p.drive for p in written) or name.startswith(("/", "\\", "~")):
        return f"is {name!r}, an absolute path; files are named from the folder on."
    if any(".." in p.parts for p in written):
        return f"is {name!r}, outside the folder."
    try:
        target = (folder / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, characters that no name may have
        return f"is {name!r}, which is no file's name ({error})."
    if not target.is_relative_to(folder.resolve()):
        return f"is {name!r}, a link that leads out of the folder, to {str(target)!r}."
    return ""
