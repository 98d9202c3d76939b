"""A user-supplied emulator: the same interface, and the same transactions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.ingest.derive.tvm.replay import Replay, replay_all
from tests.patience import compose
from tonlake.ingest.derive.tvm.call import EmulationCall
from tonlake.ingest.derive.tvm.libemulator import LibraryEmulator
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.errors import TvmMissing
from tonlake.ingest.settings import TvmSettings

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE = "TONLAKE_TVM_EMULATOR_LIBRARY"


@pytest.fixture
def library() -> str:
    """Return the path of the library in the settings."""
    path = os.environ.get(VARIABLE, "")
    if not path:
        pytest.skip(f"no libemulator is named by {VARIABLE}")
    return path


@pytest.mark.usefixtures("tvm")
def test_transactions_of_the_demo_node(library: str, demo_lake: Path) -> None:
    limits = compose(tvm={"wall_ms": 60_000, "memory_mib": 2048, "emulator_library": library})
    pool = TvmPool(limits.tvm)
    try:
        verdict = replay_all(Replay(demo_lake), pool.emulate, "descr = 'ord' or mc_seqno < 30")
    finally:
        pool.close()
    assert verdict.others == []
    assert verdict.equal["external"] == 300


@pytest.mark.usefixtures("tvm")
def test_a_path_to_nothing_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "libemulator.so")
    pool = TvmPool(TvmSettings(emulator_library=path))
    call = EmulationCall(account=b"", message=None, config=b"", now=0, lt=0)
    with pytest.raises(TvmMissing, match=r"libemulator\.so"):
        pool.emulate(call)
    pool.close()


def test_a_library_without_the_interface() -> None:
    import _ctypes  # noqa: PLC0415 - any shared library does

    with pytest.raises(OSError, match="not a libemulator"):
        LibraryEmulator(_ctypes.__file__)
