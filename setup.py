"""Builds cfx._core from the same sources as the Makefile; everything else is in pyproject.toml."""
import re
from glob import glob
from pathlib import Path

from setuptools import Extension, setup

base_h = Path("include/cfx/base.h").read_text()
version = ".".join(
    re.search(rf"#define CFX_VERSION_{part}\s+(\d+)", base_h)[1]
    for part in ("MAJOR", "MINOR", "PATCH")
)
core = Extension(
    "cfx._core",
    sources=sorted(glob("src/**/*.c", recursive=True) + glob("python/src/*/*.c")),
    depends=(glob("include/cfx/**/*.*", recursive=True) + glob("src/**/*.h", recursive=True)
             + glob("python/src/*/*.h")),
    include_dirs=["include", "src", "python/src"],
    define_macros=[("NDEBUG", None), ("_POSIX_C_SOURCE", "200809L")],
    extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-fno-semantic-interposition",
                        "-pthread", "-Werror=implicit-function-declaration",
                        "-Werror=int-conversion"],
    extra_link_args=["-Wl,-Bsymbolic-functions", "-pthread"],
    libraries=["m"],
)
setup(version=version, ext_modules=[core])
