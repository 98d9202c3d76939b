"""The native parts, which are optional: without a C compiler tonlake does the same in Python."""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

EXTENSIONS = {
    "tonlake.ingest.decode._core": Path("tonlake/ingest/decode/native"),
    "tonlake.api.text._json": Path("tonlake/api/text/native"),
}
FLAGS = [
    "-std=c11",
    "-O3",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-missing-field-initializers",
]


class BuildOptional(build_ext):
    """Build what can be built, and say what cannot."""

    def run(self) -> None:
        """Build, and report which parts stay pure Python."""
        super().run()
        for extension in self.extensions:
            if not Path(self.get_ext_fullpath(extension.name)).exists():
                self.warn(f"{extension.name} was not built: tonlake will do its work in Python")


setup(
    ext_modules=[
        Extension(
            name,
            sources=sorted(str(source) for source in folder.rglob("*.c")),
            depends=sorted(str(header) for header in folder.rglob("*.h")),
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        )
        for name, folder in EXTENSIONS.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    cmdclass={"build_ext": BuildOptional},
)
