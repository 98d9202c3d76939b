"""The configuration of the network, public libraries and message queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.chain.get_method import read_params
from tonlake.api.chain.place import find_master
from tonlake.api.errors import LiteServerError
from tonlake.api.v2.value import render_base64, render_block_of, render_boc
from tonlake.ingest.derive.tvm.context import join_params

if TYPE_CHECKING:
    from tonlake.api.request.call import Call
    from tonlake.api.v2.arguments import ConfigParamParams, ConfigParams, LibraryParams, NoParams


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


EXT_MSG_QUEUE_SIZE_LIMIT = 8000
"""Limit of queued external messages in a shard (``ValidatorManagerImpl``)."""


def answer_queue_sizes(call: Call, params: NoParams) -> dict[str, Any]:
    """getOutMsgQueueSizes: current outbound queue size of the masterchain and every shard.

    Raises:
        LiteServerError: a size is unknown, which differs from an empty queue.
    """
    del params
    master = find_master(call)
    rows = call.reader.rows("v2/queue_sizes", mc_seqno=master["seqno"])
    for row in rows:
        if row["out_queue_size"] is None:
            raise LiteServerError(
                f"LITE_SERVER_ERROR: the size of the queue after block ({row['workchain']},"
                f"{row['shard'] & (1 << 64) - 1:016x},{row['seqno']}) is not known: the lake was "
                "made before sizes were kept, or the state has none"
            )
    return {
        "@type": "blocks.outMsgQueueSizes",
        "shards": [
            {
                "@type": "blocks.outMsgQueueSize",
                "id": render_block_of(row),
                "size": row["out_queue_size"],
            }
            for row in rows
        ],
        "ext_msg_queue_size_limit": EXT_MSG_QUEUE_SIZE_LIMIT,
    }
