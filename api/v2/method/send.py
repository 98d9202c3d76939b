"""Methods with a message: send it to the network, or estimate its fees."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.emulation import estimate_fees
from tonlake.api.chain.upstream import (
    PARTS,
    ask_upstream,
    check_parts,
    keep_pending,
    send_bag,
    sends_by_liteserver,
)
from tonlake.api.v2.value import render_base64
from tonlake.ingest.derive.tvm.message import build_external_message
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.api.chain.arguments import EstimateCellParams, EstimateParams
    from tonlake.api.request.call import Call
    from tonlake.api.v2.arguments import BagParams, CellParams


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
