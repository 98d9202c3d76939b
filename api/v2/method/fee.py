"""estimateFee: what an external message would cost its account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.emulation import estimate_fees

if TYPE_CHECKING:
    from tonlake.api.chain.arguments import EstimateCellParams, EstimateParams
    from tonlake.api.request.call import Call


def answer_estimate(call: Call, params: EstimateParams | EstimateCellParams) -> dict[str, Any]:
    """estimateFee: fees of a message for its account, without later messages."""
    fees = estimate_fees(call, params)
    return {
        "@type": "query.fees",
        "source_fees": {"@type": "fees", **msgspec.structs.asdict(fees)},
        "destination_fees": [],
    }
