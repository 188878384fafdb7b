"""Where oneDNN and the folder for measurements are looked for."""
import sys

import pytest

from cfx._glue import places


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    """An environment without variables of ours, whose Python is in an empty folder."""
    for name in (places.ONEDNN, places.CACHE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_onednn_of_the_package(tmp_path):
    assert places.onednn() is None
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libdnnl.so.3").write_bytes(b"")
    assert places.onednn() == str(tmp_path / "lib/libdnnl.so.3")


def test_onednn_of_the_environment(monkeypatch, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libdnnl.so.3").write_bytes(b"")
    monkeypatch.setenv(places.ONEDNN, "/somewhere/libdnnl.so")
    assert places.onednn() == "/somewhere/libdnnl.so"
    assert places.onednn(tmp_path / "own.so") == str(tmp_path / "own.so")
    monkeypatch.setenv(places.ONEDNN, "")
    assert places.onednn() is None


def test_cache(monkeypatch, tmp_path):
    assert places.cache() == str(tmp_path / "home/.cache/cfx")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert places.cache() == str(tmp_path / "caches/cfx")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the convention says to ignore
    assert places.cache() == str(tmp_path / "home/.cache/cfx")
    monkeypatch.setenv(places.CACHE, str(tmp_path / "mine"))
    assert places.cache() == str(tmp_path / "mine")
    assert places.cache(tmp_path) == str(tmp_path)
    monkeypatch.setenv(places.CACHE, "")
    assert places.cache() is None
