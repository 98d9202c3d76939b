"""Messages handed to the network: checked here, then handed on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.upstream import send_message
from tonlake.api.errors import LiteServerError
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from tonlake.api.chain.arguments import EstimateCellParams, EstimateParams
    from tonlake.api.request.call import Call

BAD_BAG = "INVALID_BAG_OF_CELLS"
PARTS = ("body", "init_code", "init_data")


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
    for name in PARTS:
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
