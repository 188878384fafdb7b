"""The environments of tools/zoo.py and tools/clients.py: tools/environment.py."""
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import environment

    # pip is not asked: what matters here is which folder is written to
    monkeypatch.setattr(environment.venv, "create", made)
    monkeypatch.setattr(environment.subprocess, "run", lambda *args, **kwargs: Said())
    monkeypatch.setattr(environment.Path, "write_text", write_if_there(environment.Path.write_text))
    return environment


class Said:
    stdout = "/nowhere"


def write_if_there(write):
    return lambda self, text: write(self, text) if self.parent.exists() else None


def made(folder, with_pip, clear):
    """As venv.create: what is in the folder is removed, a link to a folder is followed."""
    for entry in [*folder.iterdir()] if clear and folder.exists() else ():
        entry.unlink()
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").touch()


def test_a_linked_environment_is_not_emptied(environment, tmp_path):
    other, folder = tmp_path / "other", tmp_path / "folder"
    for path in (other, folder):
        path.mkdir()
    (other / "precious").touch()
    (folder / "venv").symlink_to(other)
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("einops==0.8.2\n")
    assert environment.make_environment(folder, wanted).exists()
    assert (other / "precious").exists()
    assert not (folder / "venv").is_symlink()


def test_one_that_fits_is_used_again_whatever_path_python_was_called_by(
    environment, tmp_path, monkeypatch
):
    site, link = tmp_path / "site", tmp_path / "link"
    site.mkdir()
    link.symlink_to(site)
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("einops==0.8.2\n")
    for path in (site, link):
        monkeypatch.setattr(environment.sysconfig, "get_path", lambda name, path=path: str(path))
        python = environment.make_environment(tmp_path, wanted)
        (python.parents[1] / "kept").touch()
        monkeypatch.setattr(environment.venv, "create", never)
    assert (tmp_path / "venv/kept").exists()


def never(*args, **kwargs):
    raise AssertionError("the environment is made anew")
