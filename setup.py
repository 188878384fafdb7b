"""Builds cfx._core from the same sources as the Makefile; everything else is in pyproject.toml."""
import re
import shutil
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

POSIX = ("_POSIX_C_SOURCE", "200809L")
HEADERS = sorted(glob("include/**/*.h", recursive=True))
GENERATOR = sorted(glob("tools/generate/*.c"))
SOURCES = sorted(glob("src/script/*/*.py"))


class BuildCore(build_ext):
    """First runs the generator, which makes headers from the operator tables. All public headers
    go into the package."""

    def build_extensions(self):
        folder = Path(self.build_temp)
        objects = self.compiler.compile(GENERATOR, output_dir=self.build_temp, macros=[POSIX],
                                        include_dirs=["include", "src"],
                                        extra_postargs=["-std=c11"])
        self.compiler.link_executable(objects, "cfx-generate", output_dir=self.build_temp)
        self.spawn([str(folder / "cfx-generate"), self.build_temp, *SOURCES, *HEADERS])
        for extension in self.extensions:
            extension.include_dirs += [str(folder / "include"), str(folder / "generated")]
        super().build_extensions()
        if not self.inplace:  # for `cfx trace model.c`, and for programs in C
            for include in ("include", folder / "include"):
                shutil.copytree(include, Path(self.build_lib, "cfx", "include"),
                                dirs_exist_ok=True)


base_h = Path("include/cfx/base.h").read_text()
version = ".".join(
    re.search(rf"#define CFX_VERSION_{part}\s+(\d+)", base_h)[1]
    for part in ("MAJOR", "MINOR", "PATCH")
)
core = Extension(
    "cfx._core",
    sources=sorted([*glob("src/**/*.c", recursive=True), *glob("python/src/*/*.c"),
                    *set(glob("cli/*.c")) - {"cli/main.c"}]),
    depends=[path for pattern in ("include/**/*.*", "src/**/*.h", "src/**/*.def", "src/**/*.inc",
                                  "src/**/*.py", "python/src/*/*.h", "cli/*.h", "cli/*.def",
                                  "tools/generate/*")
             for path in glob(pattern, recursive=True)],
    include_dirs=["include", "src", "python/src", "."],
    define_macros=[("NDEBUG", None), POSIX],
    extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-fno-semantic-interposition",
                        "-pthread", "-Werror=implicit-function-declaration",
                        "-Werror=int-conversion"],
    extra_link_args=["-Wl,-Bsymbolic-functions", "-pthread"],
    libraries=["m"],
)
setup(version=version, ext_modules=[core], cmdclass={"build_ext": BuildCore})
