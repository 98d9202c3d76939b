"""What a process of ours need not load, though it is installed."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

_NAME = "pandas"


@contextmanager
def without_pandas() -> Iterator[None]:
    """Let pandas look as if it were not installed while the block runs, unless it is loaded.

    Arrow loads it as soon as it is given a Python list or number, in case that is one of pandas':
    0.7 s of CPU and 40 MiB in every process, and one that keeps a lake up is begun every few
    seconds. Nothing of tonlake takes or gives what is pandas'.
    """
    finder = _Hiding()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Hiding(MetaPathFinder, Loader):
    """Finds pandas before others do, and cannot load it.

    To find nothing would leave it to them, and to raise here would fail who only asks whether it
    is there (``importlib.util.find_spec``).
    """

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == _NAME else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        raise ModuleNotFoundError(f"{spec.name} is left out here", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Never reached; a loader without it is taken for one of an older kind."""
