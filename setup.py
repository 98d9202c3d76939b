"""The native decoder, an optional part: without a C compiler tonlake decodes in Python."""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = Path("ingest/native")
FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers"]


class BuildOptional(build_ext):
    """Build what can be built, and say what cannot."""

    def run(self) -> None:
        """Build, and tell in plain words when the decoder stays pure Python."""
        super().run()
        for extension in self.extensions:
            if not Path(self.get_ext_fullpath(extension.name)).exists():
                self.warn("the native decoder was not built: tonlake will decode in Python")


setup(
    ext_modules=[
        Extension(
            "ingest.native._core",
            sources=sorted(str(source) for source in FOLDER.glob("*.c")),
            depends=sorted(str(header) for header in FOLDER.glob("*.h")),
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    cmdclass={"build_ext": BuildOptional},
)
