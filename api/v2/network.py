"""The network: its configuration, libraries and queues; sending messages and estimating fees."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from tonlake.api.chain.arguments import (
    BagParams,
    CellParams,
    ConfigParamParams,
    ConfigParams,
    EstimateCellParams,
    EstimateParams,
    LibraryParams,
    Params,
)
from tonlake.api.chain.block import find_master
from tonlake.api.chain.cells import read_cell_trees
from tonlake.api.chain.run import estimate_fees, read_params
from tonlake.api.chain.upstream import (
    PARTS,
    ask_upstream,
    check_parts,
    keep_pending,
    send_bag,
    sends_by_liteserver,
)
from tonlake.api.errors import LiteServerError
from tonlake.api.request.call import Call
from tonlake.api.v2.value import render_base64, render_block_of, render_boc
from tonlake.ingest.derive.tvm.call import join_params
from tonlake.ingest.derive.tvm.message import build_external_message
from tonlake.ingest.errors import BocError


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


def answer_queue_sizes(call: Call, _params: Params) -> dict[str, Any]:
    """getOutMsgQueueSizes: current outbound queue size of the masterchain and every shard."""
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


def answer_with(method: str) -> Callable[[Call, BagParams], Any]:
    """Return the handler of sendBoc or a variant of it; they differ only in the response."""

    def answer(call: Call, params: BagParams) -> Any:  # noqa: ANN401 - as it came
        return send_bag(call, params.boc, method)

    return answer


def answer_send_cell(call: Call, params: CellParams) -> Any:  # noqa: ANN401 - as it came
    """sendCellSimple: sendBoc of a cell in JSON."""
    return send_bag(call, params.cell)


def answer_send_query(call: Call, params: EstimateParams | EstimateCellParams) -> Any:  # noqa: ANN401
    """sendQuery, sendQuerySimple: send a message in parts."""
    check_parts(params)
    written = {name: render_base64(getattr(params, name)) for name in PARTS}
    target = params.address.address
    init = (params.init_code or None, params.init_data or None)
    message = None
    with suppress(BocError):  # no message can be sent to this workchain
        message = build_external_message(target.workchain, target.account, params.body, init)
    if message is not None and sends_by_liteserver(call.settings.upstream):
        return send_bag(call, message)
    answer = ask_upstream(call.settings.upstream, "sendQuery", {"address": str(target), **written})
    if message is not None:
        keep_pending(call, message)
    return answer


def answer_estimate(call: Call, params: EstimateParams | EstimateCellParams) -> dict[str, Any]:
    """estimateFee: fees of a message for its account, without later messages."""
    fees = estimate_fees(call, params)
    return {
        "@type": "query.fees",
        "source_fees": {"@type": "fees", **msgspec.structs.asdict(fees)},
        "destination_fees": [],
    }
