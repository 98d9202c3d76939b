"""The configuration of the network, and the public libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.cells import read_cell_trees
from api.errors import LiteServerError
from api.v2.place import STATE_UNKNOWN, find_configuration_seqno, find_master, name_ranges
from api.v2.value import render_base64, render_boc
from ingest.cell.boc import parse_boc
from ingest.cell.build import graft
from ingest.cell.dictionary_writer import build_hashmap
from ingest.cell.tree import CellTree
from ingest.cell.writer import serialize_boc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.call import Call
    from api.v2.arguments import ConfigParamParams, ConfigParams, LibraryParams

_KEY_BITS = 32


def answer_config_param(call: Call, params: ConfigParamParams) -> dict[str, Any]:
    """getConfigParam: the cell of one parameter."""
    found = read_params(call, find_master(call, params.seqno))
    if params.number not in found:
        raise LiteServerError(
            f"LITE_SERVER_UNKNOWN: configuration parameter {params.number} is not set"
        )
    return _render(found[params.number])


def answer_config_all(call: Call, params: ConfigParams) -> dict[str, Any]:
    """getConfigAll: the root of the dictionary of all parameters (Hashmap 32 ^Cell)."""
    return _render(join_params(read_params(call, find_master(call, params.seqno))))


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


def _render(boc: bytes) -> dict[str, Any]:
    return {"@type": "configInfo", "config": {"@type": "tvm.cell", "bytes": render_boc(boc)}}


def answer_libraries(call: Call, params: LibraryParams) -> dict[str, Any]:
    """getLibraries: public libraries by hash; unknown ones are omitted."""
    rows = call.reader.rows(
        "v2/libraries",
        hashes=list(params.libraries),
        mc_seqno=call.reader.snapshot.last_mc_seqno,
    )
    cells = read_cell_trees(call.reader, [row["hash"] for row in rows])
    return {
        "@type": "smc.libraryResult",
        "result": [
            {
                "@type": "smc.libraryEntry",
                "hash": render_base64(library),
                "data": render_boc(cells[library]),
            }
            for library in dict.fromkeys(params.libraries)
            if library in cells
        ],
    }
