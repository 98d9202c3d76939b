"""The configuration of the network after a masterchain block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.place import STATE_UNKNOWN, find_configuration_seqno, name_ranges
from tonlake.api.errors import LiteServerError
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import graft
from tonlake.ingest.decode.cell.dictionary_writer import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.call import Call

_KEY_BITS = 32


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


def join_params(params: dict[int, bytes]) -> bytes:
    """Return the dictionary of parameters as bag of cells; equal to the chain's own."""
    tree = CellTree()
    by_key = {number & (1 << _KEY_BITS) - 1: boc for number, boc in params.items()}
    entries = [(key, graft(tree, parse_boc(boc))) for key, boc in sorted(by_key.items())]
    return serialize_boc(tree, [build_hashmap(tree, entries, _KEY_BITS)])
