"""A virtual environment for a tool, beside the torch of the Python that runs this."""
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


def make_environment(folder, requirements):
    """Its Python. It is made in `folder` with the pinned packages of a file, without their
    dependencies; torch and what else the running Python has can be imported in it. One that was
    made of the same file, for the same Python, is used again. A link is removed, never followed:
    what it leads to belongs to somebody else."""
    python = folder / "venv/bin/python"
    # of this Python, whose version the packages are for; by whatever path it was called
    torch = str(Path(sysconfig.get_path("purelib")).resolve())
    wanted = f"# {sys.version} {torch}\n{requirements.read_text()}"
    stamp = folder / "installed.txt"
    if stamp.exists() and stamp.read_text() == wanted and python.exists():
        return python
    if python.parents[1].is_symlink():  # venv.create would empty the folder behind it
        python.parents[1].unlink()
    venv.create(folder / "venv", with_pip=True, clear=True)
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    Path(site, "torch_from_here.pth").write_text(f"{torch}\n")
    command = [python, "-m", "pip", "install", "-q", "--no-deps", "-r", str(requirements)]
    subprocess.run(command, check=True)
    stamp.write_text(wanted)
    return python
