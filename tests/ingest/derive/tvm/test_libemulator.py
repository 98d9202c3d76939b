"""A user-supplied emulator: the same interface, the same get-methods and transactions."""

import base64
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from tests.conftest import read_lines
from tests.ingest.derive.tvm.programs import CONTEXT, make_call, make_context, make_data
from tests.ingest.derive.tvm.replay import Replay, replay_all
from tests.patience import compose
from tonlake.ingest.derive.tvm.call import (
    VERSION_PARAM,
    EmulationCall,
    StackLimits,
    join_config,
    make_version_param,
)
from tonlake.ingest.derive.tvm.libemulator import LibraryEmulator
from tonlake.ingest.derive.tvm.machine.vmstack import read_stack
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.derive.tvm.support import find_library_version
from tonlake.ingest.errors import TvmMissing, TvmRefusal
from tonlake.ingest.settings import TvmSettings

VARIABLE = "TONLAKE_TVM_EMULATOR_LIBRARY"
LIMITS = StackLimits(entries=10_000, depth=1_000, boc_bytes=1 << 24)


@pytest.fixture(scope="module")
def library() -> str:
    """Return the path of the library in the settings, else of the one in pytvm."""
    path = os.environ.get(VARIABLE, "")
    if not path:
        found = find_spec("pytvm")
        if found is None or found.origin is None:
            pytest.skip(f"no libemulator is named by {VARIABLE}, and pytvm is not installed")
        path = str(Path(found.origin).parent / "engine" / "libemulator-linux-x86_64.so")
    return path


@pytest.fixture(scope="module")
def pool(library: str) -> Iterator[TvmPool]:
    limits = compose(tvm={"wall_ms": 60_000, "memory_mib": 2048, "emulator_library": library})
    made = TvmPool(limits.tvm)
    yield made
    made.close()


def test_transactions_of_the_demo_node(pool: TvmPool, demo_lake: Path) -> None:
    version = find_library_version(pool.settings)
    if version is None or version < 11:
        pytest.skip(f"the library supports version {version}, and the demo node has 11")
    verdict = replay_all(Replay(demo_lake), pool.emulate, "descr = 'ord' or mc_seqno < 30")
    assert verdict.others == []
    assert verdict.equal["external"] == 300


GAS_CONSUMED = "F807"
"""An instruction since version 4."""


def test_drawn_programs_end_as_in_the_node(pool: TvmPool, config: bytes, shared: Path) -> None:
    context = make_context(config, 11, None)
    drawn = read_lines(shared / "data" / "tvm" / "programs.jsonl.zst")
    mine = [row for row in drawn if row["v"] == 11][::5]
    different = []
    for row in mine:
        code = base64.b64decode(row["code"])
        call = make_call(code, 0, data=make_data(), context=context, gas_limit=1_000_000)
        outcome = pool.run_get_method(call)
        wanted = row["exit"], row["gas"], read_stack(base64.b64decode(row["stack"]), LIMITS)
        if (outcome.exit_code, outcome.gas_used, outcome.stack) != wanted:
            different.append((row["op"], outcome.exit_code))
    # The library of 2024 lacks instructions; others have one of these beside them.
    assert len(different) < len(mine) // 50
    others = {op for op, exit_code in different if exit_code != 6}
    assert others <= {"PREVMCBLOCKS", "PREVKEYBLOCK", "HASHEXTAR_KECCAK512"}


def test_the_version_is_found_by_trying(library: str) -> None:
    settings = TvmSettings(emulator_library=library, memory_mib=2048)
    assert find_library_version(settings) == 6 or VARIABLE in os.environ
    assert find_library_version(TvmSettings(emulator_library="/none")) is None


def test_a_lake_without_a_configuration_has_the_version(pool: TvmPool) -> None:
    alone, before = (
        msgspec.structs.replace(
            CONTEXT,
            version=version,
            config=join_config(((VERSION_PARAM, make_version_param(version)),)).root,
        )
        for version in (4, 3)
    )
    outcome = pool.run_get_method(make_call(GAS_CONSUMED, 0, data=make_data(), context=alone))
    assert (outcome.exit_code, outcome.stack) == (0, (0, 26))
    call = make_call(GAS_CONSUMED, 0, data=make_data(), context=before)
    assert pool.run_get_method(call).exit_code == 6


def test_what_the_library_does_not_accept_is_refused(pool: TvmPool) -> None:
    with pytest.raises(TvmRefusal, match="method id"):
        pool.run_get_method(make_call(GAS_CONSUMED, 1 << 31, data=make_data()))
    with pytest.raises(TvmRefusal, match="code or the data"):
        pool.run_get_method(make_call(b"none", 0, data=make_data()))


def test_a_path_to_nothing_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "libemulator.so")
    pool = TvmPool(TvmSettings(emulator_library=path))
    call = EmulationCall(account=b"", message=None, config=b"", now=0, lt=0)
    with pytest.raises(
        TvmMissing, match=r"libemulator\.so .* or remove the setting .*: cannot open"
    ):
        pool.emulate(call)
    pool.close()


def test_a_library_without_the_interface() -> None:
    import _ctypes  # noqa: PLC0415 - any shared library does

    with pytest.raises(OSError, match="not a libemulator"):
        LibraryEmulator(_ctypes.__file__, LIMITS)
