"""Methods that hand a message to the network: checked here, then handed on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from api.errors import LiteServerError
from api.upstream import ask_upstream, send_message, sends_by_liteserver
from api.v2.value import render_base64
from ingest.cell.boc import parse_boc
from ingest.errors import BocError
from ingest.tvm.message import build_external_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.call import Call
    from api.v2.run_arguments import BagParams, CellParams, EstimateCellParams, EstimateParams

BAD_BAG = "INVALID_BAG_OF_CELLS"
_PARTS = ("body", "init_code", "init_data")


def check_bag(boc: bytes, name: str) -> None:
    """Refuse what is no bag of one root, in the words of the node's client library.

    Raises:
        LiteServerError: it is none.
    """
    try:
        roots = len(parse_boc(boc).roots)
    except BocError as error:
        raise LiteServerError(f"{BAD_BAG}: {name}") from error
    if roots != 1:
        raise LiteServerError(f"{BAD_BAG}: {name}")


def check_parts(params: EstimateParams | EstimateCellParams) -> None:
    """Refuse a message of which a part is no bag; code and data may be left out.

    Raises:
        LiteServerError: a part is none.
    """
    for name in _PARTS:
        boc = getattr(params, name)
        if boc or name == "body":
            check_bag(boc, name)


def send_bag(call: Call, boc: bytes, method: str = "sendBoc") -> Any:  # noqa: ANN401 - as it came
    """Hand a message on and return what the upstream says.

    Raises:
        LiteServerError: it is no bag of cells.
        SendingUnavailable, UpstreamRefusal: it could not be handed on, or was refused.
    """
    check_bag(boc, "body")
    answer = send_message(call.settings.upstream, method, boc)
    keep_pending(call, boc)
    return answer


def keep_pending(call: Call, boc: bytes) -> None:
    """Keep a message that the upstream took, until it is in a block."""
    if call.pending is not None:
        call.pending.add(call, boc)


def answer_with(method: str) -> Callable[[Call, BagParams], Any]:
    """Return what answers sendBoc or one of its kin, which differ in their answers alone."""

    def answer(call: Call, params: BagParams) -> Any:  # noqa: ANN401 - as it came
        return send_bag(call, params.boc, method)

    return answer


def answer_send_cell(call: Call, params: CellParams) -> Any:  # noqa: ANN401 - as it came
    """sendCellSimple: sendBoc of a cell that is spelt out."""
    return send_bag(call, params.cell)


def answer_send_query(call: Call, params: EstimateParams | EstimateCellParams) -> Any:  # noqa: ANN401
    """sendQuery, sendQuerySimple: a message in parts."""
    check_parts(params)
    written = {name: render_base64(getattr(params, name)) for name in _PARTS}
    target = params.address.address
    init = (params.init_code or None, params.init_data or None)
    message = None
    with suppress(BocError):  # a workchain that no message of the network can go to
        message = build_external_message(target.workchain, target.account, params.body, init)
    if message is not None and sends_by_liteserver(call.settings.upstream):
        return send_bag(call, message)
    answer = ask_upstream(call.settings.upstream, "sendQuery", {"address": str(target), **written})
    if message is not None:
        keep_pending(call, message)
    return answer
