"""What a contract sees of the network after a masterchain block: the same for all accounts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.chain.place import STATE_UNKNOWN, find_configuration_seqno, name_ranges
from tonlake.api.errors import LiteServerError
from tonlake.ingest.derive.tvm.context import MasterId, PreviousBlocks, join_config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tonlake.api.request.call import Call
    from tonlake.ingest.derive.tvm.context import NetworkConfig

LIBRARIES = 256
"""Most public libraries that are read for one get-method."""

_LAST, _STEP = 16, 100
_LIBRARY_CELL = re.compile(rb"(?=\x08\x42\x02(.{32}))", re.DOTALL)
"""A library cell in a bag: exotic without references, 33 bytes, of kind 2, and the hash. Other
bytes may look so, too; no library has their hash."""


def read_network_config(call: Call, master: Mapping[str, Any]) -> NetworkConfig:
    """Return the configuration after a masterchain block.

    Raises:
        LiteServerError: the lake lacks the key block.
    """
    return join_config(tuple(read_params(call, master).items()))


def find_previous(call: Call, master: Mapping[str, Any]) -> PreviousBlocks:
    """Return the masterchain blocks that a contract can ask for, as far as the lake has them."""
    seqno: int = master["seqno"]
    last = range(seqno, max(-1, seqno - _LAST), -1)
    newest = seqno // _STEP * _STEP
    hundredths = range(newest, max(-1, newest - _LAST * _STEP), -_STEP)
    key = find_configuration_seqno(master)
    rows = call.reader.rows("v2/master_ids", seqnos=sorted({*last, *hundredths, key}))
    known = {row["seqno"]: MasterId(**row) for row in rows}
    zero = _identify_zero_state(call)
    if zero is not None:
        known[0] = zero
    return PreviousBlocks(_pick(known, last), known.get(key), _pick(known, hundredths))


def _identify_zero_state(call: Call) -> MasterId | None:
    network = call.reader.snapshot.network
    if network is None or not (network.zero_state_root_hash and network.zero_state_file_hash):
        return None
    hashes = (network.zero_state_root_hash, network.zero_state_file_hash)
    return MasterId(0, *map(bytes.fromhex, hashes))


def _pick(known: dict[int, MasterId], seqnos: Iterable[int]) -> list[MasterId] | None:
    """Return the blocks of these seqnos, or None unless all are known."""
    found = [known.get(seqno) for seqno in seqnos]
    return None if None in found else [block for block in found if block is not None]


def read_libraries(
    call: Call, mc_seqno: int, bags: Iterable[bytes]
) -> tuple[set[bytes], dict[bytes, bytes]]:
    """Return the hashes that library cells may name, in libraries too, and those public ones."""
    named: set[bytes] = set()
    found: dict[bytes, bytes] = {}
    fresh = _find_library_hashes(bags)
    while fresh and len(found) < LIBRARIES:
        named |= fresh
        hashes = sorted(fresh)[: LIBRARIES - len(found)]
        rows = call.reader.rows("v2/libraries", hashes=hashes, mc_seqno=mc_seqno)
        brought = read_cell_trees(call.reader, [row["hash"] for row in rows])
        found |= brought
        fresh = _find_library_hashes(brought.values()) - named
    return named, found


def _find_library_hashes(bags: Iterable[bytes]) -> set[bytes]:
    return {match for boc in bags for match in _LIBRARY_CELL.findall(boc)}


def read_params(call: Call, master: Mapping[str, Any]) -> dict[int, bytes]:
    """Return the configuration after a masterchain block: that of its newest key block.

    Raises:
        LiteServerError: the lake lacks the key block.
    """
    key_seqno = find_configuration_seqno(master)
    rows = call.reader.rows("v2/config_params", mc_seqno=key_seqno)
    if not rows:
        raise LiteServerError(
            f"{STATE_UNKNOWN}: {name_ranges(call)}, "
            f"and the configuration after {master['seqno']} is that of key block {key_seqno}"
        )
    return {row["param"]: row["boc"] for row in rows}
