"""Operations that run contracts, with the errors of version 2, as in TON Center."""

from __future__ import annotations

from typing import Any

import msgspec

from tonlake.api.chain.arguments import EstimateParams, GetMethodParams
from tonlake.api.chain.emulation import estimate_fees
from tonlake.api.chain.get_method import run_get_method
from tonlake.api.chain.param import read_params
from tonlake.api.errors import GetMethodFailed, ResultDeep, StackTypeUnknown
from tonlake.api.text.stack import encode_v3
from tonlake.api.v3.page.coverage import describe_gaps
from tonlake.api.v3.page.request_body import Posted, posted


class RunRequest(msgspec.Struct, frozen=True):
    """A get-method by name, its arguments, and the masterchain block as of which it runs."""

    address: str = ""
    method: str = ""
    stack: list[Any] | None = None
    seqno: int | None = None


class RunAnswer(msgspec.Struct, frozen=True):
    """Result of a get-method; stack entries have a ``type`` and a ``value``."""

    gas_used: int
    exit_code: int
    stack: list[dict[str, Any]]


class EstimateRequest(msgspec.Struct, frozen=True):
    """An external message in parts; unlike in version 2 signatures are checked by default."""

    address: str = ""
    body: str = ""
    init_code: str | None = None
    init_data: str | None = None
    ignore_chksig: bool | int = False


class Fees(msgspec.Struct, frozen=True):
    """What the message costs, in nanoton."""

    in_fwd_fee: int
    storage_fee: int
    gas_fee: int
    fwd_fee: int


class EstimateAnswer(msgspec.Struct, frozen=True):
    """Fees of the account; fees of the receivers of its messages are not estimated."""

    source_fees: Fees
    destination_fees: list[Fees]


def answer_run(request: Posted, asked: RunRequest) -> RunAnswer:
    """Run a get-method.

    Raises:
        CredentialMissing: no address, or no method.
        RequestInvalid: the body cannot be read.
        GetMethodFailed: an argument has an unknown type, or the result is nested too deeply.
    """
    params = read_params(GetMethodParams, msgspec.structs.asdict(asked))
    params.check(request.settings.max_limit)
    call = request.open()
    if gaps := describe_gaps(call.reader.snapshot.ranges):
        call.warn(gaps)
    try:
        _state, outcome = run_get_method(call, params, params.method, params.stack)
    except StackTypeUnknown as error:
        raise GetMethodFailed(f"unsupported stack parameter type: {error.kind}") from error
    except ResultDeep as error:
        raise GetMethodFailed(str(error)) from error
    stack = [encode_v3(value) for value in outcome.stack]
    return RunAnswer(outcome.gas_used, outcome.exit_code, stack)


def answer_estimate(request: Posted, asked: EstimateRequest) -> EstimateAnswer:
    """Estimate the fees of an external message.

    Raises:
        CredentialMissing: no address.
        RequestInvalid: the body cannot be read.
        LiteServerError: a part of the message is not a bag of cells, or execution failed.
    """
    params = read_params(EstimateParams, msgspec.structs.asdict(asked))
    fees = estimate_fees(request.open(), params)
    return EstimateAnswer(Fees(**msgspec.structs.asdict(fees)), [])


routes = [
    posted(
        "/runGetMethod",
        RunRequest,
        answer_run,
        ("address", "method"),
        body=RunRequest,
        answers=RunAnswer,
    ),
    posted("/estimateFee", EstimateRequest, answer_estimate, ("address",)),
]
