"""Compares the network's global version (ConfigParam 8) with those that the engines support."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec
import pyarrow.compute as pc

from tonlake.ingest.decode.cell.writer import serialize_single
from tonlake.ingest.derive.tvm.call import VERSION_PARAM, GetMethodCall, NetworkConfig, make_context
from tonlake.ingest.derive.tvm.machine.fault import Exit
from tonlake.ingest.derive.tvm.machine.run import VERSION
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.ingest.errors import TvmError
from tonlake.ingest.settings import TvmSettings
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.file.rows import iter_tuples, read_rows
from tonlake.lake.log.place import read_place
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.log.state import DataFile
from tonlake.lake.schema import CONFIG_PARAMS

TONPY_VERSION = 11
"""The highest global version that tonpy supports."""

EMULATOR_REMEDY = (
    "upgrade tonlake, or name the libemulator of the node's release in the setting "
    "[tvm] emulator_library"
)
REMEDY = f"{EMULATOR_REMEDY}; then run 'tonlake rebuild contracts'"
"""What an operator can do about an engine that is older than the network."""


LIBRARY_MISSING = "the lake lacks the library that the code refers to"


def name_remedy(reason: str) -> str:
    """Return what an operator can do about a get-method that was not run for a reason."""
    if reason.startswith(LIBRARY_MISSING):
        return "read the state of the chain with 'tonlake ingest-state'"
    return REMEDY


class Support(msgspec.Struct, frozen=True):
    """An engine, its use and its highest global version, None if it cannot be loaded."""

    use: str
    name: str
    version: int | None

    def explain(self, exit_code: int, network: int) -> str | None:
        """Return why the end of a get-method is unknown, None if it is the contract's own.

        Exit code 6 on a network of a later version may come from an instruction of that version.
        """
        gap = self.find_gap(network)
        if exit_code != Exit.INVALID_OPCODE or gap is None:
            return None
        return f"{gap}: the get-method met an instruction that it does not know"

    def find_gap(self, network: int) -> str | None:
        """Describe both versions if that of the network is later; None if the engine knows it."""
        if self.version is None or network <= self.version:
            return None
        return f"{self._limit}, and the network has {network}"

    def may_answer(self, reason: str) -> bool:
        """Return whether the engine may run a get-method that was not run for a reason.

        The reason may be of an earlier engine, but not that of this one, or a missing library.
        """
        return not reason.startswith((LIBRARY_MISSING, self._limit))

    @property
    def _limit(self) -> str:
        return f"{self.name} supports global version {self.version}"


OWN_ENGINE = Support("get-methods", "tonlake", VERSION)


class Versions(msgspec.Struct, frozen=True):
    """The network's global version, None if the lake does not have it, and the engines.

    ``gap`` names the engines that are older, and what to do, or the file that cannot be read; "" if
    all is well.
    """

    network: int | None
    engines: tuple[Support, ...]
    gap: str


_networks: WeakKeyDictionary[Snapshot, int | None] = WeakKeyDictionary()
"""Versions by snapshot, while the snapshot is in use."""


def compare_versions(snapshot: Snapshot, engines: Sequence[Support]) -> Versions:
    """Return the version of a snapshot's newest configuration beside those of some engines."""
    try:
        if snapshot not in _networks:
            _networks[snapshot] = read_network_version(snapshot)
    except LakeCorrupt as error:
        return Versions(None, tuple(engines), f"the network's global version is unknown: {error}")
    network = _networks[snapshot]
    return Versions(network, tuple(engines), _describe_gap(network, engines))


def list_engines(settings: TvmSettings) -> tuple[Support, ...]:
    """Return the engines of get-methods and of emulation."""
    return find_engine(settings), find_emulator(settings)


def find_engine(settings: TvmSettings) -> Support:
    """Return the engine that runs get-methods for the API: a library that is set, else our own."""
    return _find_library("get-methods", settings) or OWN_ENGINE


def find_emulator(settings: TvmSettings) -> Support:
    """Return the engine that emulates messages."""
    return _find_library("emulation", settings) or Support("emulation", "tonpy", TONPY_VERSION)


def _find_library(use: str, settings: TvmSettings) -> Support | None:
    library = settings.emulator_library
    return Support(use, library, find_library_version(settings)) if library else None


def find_detector(settings: TvmSettings) -> Support:
    """Return the engine that decides what contracts are: our own, or a library that knows more."""
    library = _find_library("get-methods", settings)
    is_newer = library is not None and (library.version or 0) > VERSION
    return library if library is not None and is_newer else OWN_ENGINE


def read_network_version(snapshot: Snapshot) -> int | None:
    """Return the global version after the newest key block, if any; raise LakeCorrupt."""
    files = snapshot.files[CONFIG_PARAMS.name]
    newest = sorted(files, key=lambda file: read_place(file.path).last, reverse=True)
    found = filter(None, (_read_newest(snapshot.lake_dir, file) for file in newest))
    return next((NetworkConfig(b"", {VERSION_PARAM: boc}).version for boc in found), None)


@lru_cache(64)
def _read_newest(lake_dir: Path, file: DataFile) -> bytes | None:
    """Return the newest ConfigParam 8 in a file; None if it has none."""
    rows = read_rows(lake_dir, file, ("mc_seqno", "boc"), pc.field("param") == VERSION_PARAM)
    bocs = dict(iter_tuples(rows, rows.column_names))
    return bocs[max(bocs)] if bocs else None


def _describe_gap(network: int | None, engines: Sequence[Support]) -> str:
    if network is None:
        return ""
    older = [each for each in engines if each.version is not None and each.version < network]
    if not older:
        return ""
    named = ", ".join(f"{each.use} by {each.name} support {each.version}" for each in older)
    return f"the network has global version {network}, and {named}: {REMEDY}"


_PROBES = {
    4: ("f807", 0),  # GASCONSUMED
    6: ("c8c9d766", 0),  # NEWC ENDC CLEVEL
    9: ("7070f913", 0),  # ZERO ZERO SECP256K1_XONLY_PUBKEY_TWEAK_ADD
    10: ("70f880", 0),  # GETEXTRABALANCE
    11: ("f890", 0),  # INMSG_BOUNCE
    12: ("c8cf50", 0),  # NEWC BTOS
    13: ("83ff70b0", 4),  # PUSHNAN ZERO AND: an integer overflow
    14: ("83ffaa6e", 4),  # PUSHNAN 111 LSHIFT: likewise
}
"""By global version: code, and the exit code that it has since then and not before."""

_NEWEST = 15
"""It has no instruction of its own: an engine that passes all probes is taken to support it."""

_START_MS = 60_000
"""Milliseconds for a large library to load from a slow disk."""


@lru_cache(8)
def find_library_version(settings: TvmSettings) -> int | None:
    """Return the highest global version whose probes succeed, 0 for one before 4.

    None if the library cannot be loaded. It is tried once, in a process of its own.
    """
    pool = TvmPool(msgspec.structs.replace(settings, workers=1, wall_ms=_START_MS))
    try:
        passed = [
            pool.run_get_method(_make_call(code)).exit_code == exit_code
            for code, exit_code in _PROBES.values()
        ]
    except TvmError:
        return None
    finally:
        pool.close()
    count = len(list(takewhile(bool, passed)))
    return _NEWEST if count == len(passed) else [0, *_PROBES][count]


def _make_call(code: str) -> GetMethodCall:
    """Return a get-method with the code in hex, on a network of the newest version."""
    boc = serialize_single(bytes((0, len(code))) + bytes.fromhex(code))
    context = make_context(0, bytes(32), _NEWEST)
    return GetMethodCall(code=boc, data=None, stack=(0,), context=context, gas_limit=100_000)
