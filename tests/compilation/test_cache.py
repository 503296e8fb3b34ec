"""Compiled libraries on disk: found, refused, repaired, limited."""

from __future__ import annotations

import os
import stat

import pytest

from grisaille import cache_folder
from grisaille.compilation import build_cache
from grisaille.errors import CompilationError

WHAT, WITH = build_cache.digest(["some source"]), build_cache.digest(["some compiler"])


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    folder = tmp_path / "cache"
    monkeypatch.setenv("GRISAILLE_CACHE", str(folder))
    return folder


def test_installed_is_found_with_its_compiler_or_any(place):
    path = build_cache.store_library(WHAT, WITH, b"library")
    assert build_cache.find(WHAT, WITH) == path == build_cache.find(WHAT, None)
    assert build_cache.find(WHAT, build_cache.digest(["another"])) is None
    assert build_cache.find(build_cache.digest(["other source"]), None) is None
    assert path.read_bytes() == b"library"


def test_keys_do_not_run_into_one_another():
    assert build_cache.digest(["ab", "c"]) != build_cache.digest(["a", "bc"])


@pytest.mark.parametrize("damage", [b"librar", b"", b"librarx", b"library and more"])
def test_damaged_files_are_removed(damage):
    path = build_cache.store_library(WHAT, WITH, b"library")
    path.write_bytes(damage)
    assert build_cache.find(WHAT, WITH) is None
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")
@pytest.mark.parametrize("whose", ["another's", "open to others", "a link"])
def test_files_that_may_be_of_others_are_never_loaded(monkeypatch, tmp_path, whose):
    """Their names and contents are right: they were put there while the folder was open."""
    path = build_cache.store_library(WHAT, WITH, b"library")
    if whose == "open to others":
        path.chmod(0o666)
    elif whose == "a link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        me = os.getuid()
        monkeypatch.setattr(cache_folder, "_check_ownership", lambda place: None)
        monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert build_cache.find(WHAT, WITH) is None
    assert not path.is_symlink() and not path.exists()


def test_who_waits_for_a_build_is_not_kept_waiting_for_ever(monkeypatch):
    monkeypatch.setattr(cache_folder, "PATIENCE", 0.05)
    with build_cache.building(WHAT), build_cache.building(WHAT):
        build_cache.store_library(WHAT, WITH, b"library")
    build_cache.clear()
    assert build_cache.find(WHAT, WITH) is None


def test_the_least_recently_used_go_first():
    paths = [build_cache.store_library(build_cache.digest([str(i)]), WITH, bytes([i]) * 100) for i in range(4)]
    for age, path in zip((40, 10, 30, 20), paths, strict=True):
        os.utime(path, (1e9 - age, 1e9 - age))
    build_cache.find(build_cache.digest(["0"]), WITH)
    newest = build_cache.store_library(WHAT, WITH, b"x" * 100, limit=300)
    assert [path.exists() for path in paths] == [True, True, False, False] and newest.exists()


def test_inspect_and_clear(place):
    assert build_cache.cache_contents().files == 0
    build_cache.store_library(WHAT, WITH, b"library")
    (place / "notes.txt").write_text("not ours")
    before = build_cache.clear()
    assert (before.files, before.bytes) == (1, 7) and str(place) in str(before) and "1 compiled model," in str(before)
    assert build_cache.cache_contents().files == 0 and (place / "notes.txt").exists()


@pytest.mark.skipif(os.name != "posix", reason="POSIX ownership")
def test_the_folder_is_private(place):
    assert stat.S_IMODE(build_cache.folder().stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="POSIX ownership")
def test_a_folder_of_somebody_else_is_refused(monkeypatch, place):
    build_cache.folder()
    monkeypatch.setattr(os, "getuid", lambda: place.stat().st_uid + 1)
    with pytest.raises(CompilationError, match=r"belongs to user .* GRISAILLE_CACHE"):
        build_cache.find(WHAT, WITH)


@pytest.mark.skipif(os.name != "posix", reason="POSIX ownership")
def test_a_folder_open_to_others_is_refused(place):
    build_cache.folder().chmod(0o770)
    with pytest.raises(CompilationError, match="chmod 700"):
        build_cache.store_library(WHAT, WITH, b"library")


def test_a_folder_that_cannot_be_made_is_an_error_if_asked_for_and_replaced_if_not(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(CompilationError, match="cannot be made"):
        build_cache.folder()
    monkeypatch.delenv("GRISAILLE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(cache_folder.sys, "platform", "linux")
    path = build_cache.store_library(WHAT, WITH, b"library")
    assert build_cache.find(WHAT, WITH) == path and tmp_path not in path.parents
