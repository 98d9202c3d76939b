"""Operations that run contracts, in the words of version 2 as the peer passes them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from litestar import Response  # noqa: TC002 - Litestar reads the annotations
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody  # noqa: TC002 - Litestar reads the annotations

from tonlake.api.chain.arguments import EstimateParams, GetMethodParams
from tonlake.api.chain.emulation import estimate_fees
from tonlake.api.chain.get_method import run_get_method
from tonlake.api.chain.param import read_params
from tonlake.api.errors import GetMethodFailed, ResultDeep, StackTypeUnknown
from tonlake.api.http.lane import in_lane
from tonlake.api.request.call import (
    SHARED_PARAMETERS,
    ApiRequest,
    answer_json,
    note_warnings,
    open_call,
    read_arguments,
)
from tonlake.api.text.stack import encode_v3
from tonlake.api.v3.page.coverage import describe_gaps
from tonlake.api.v3.page.request_body import read_body

if TYPE_CHECKING:
    from tonlake.api.settings import HttpSettings


class RunRequest(msgspec.Struct, frozen=True):
    """A get-method by name, its arguments, and the masterchain block to run after."""

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
    """An external message in parts; unlike in version 2 signatures count unless it says so."""

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
    """Fees of the account; those of accounts that it writes to are not foreseen."""

    source_fees: Fees
    destination_fees: list[Fees]


def answer_run(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Run a get-method.

    Raises:
        CredentialMissing: no address, or no method.
        RequestInvalid: the body cannot be read.
        GetMethodFailed: an argument of an unknown type, or a result nested too deep.
    """
    settings: HttpSettings = request.app.state.settings.http
    arguments = read_arguments(request)
    note_warnings(request, arguments.warnings({}, SHARED_PARAMETERS), settings)
    params = _read_params(body, settings)
    call = open_call(request, arguments)
    if gaps := describe_gaps(call.reader.snapshot.ranges):
        call.warn(gaps)
    try:
        _state, outcome = run_get_method(call, params, params.method, params.stack)
    except StackTypeUnknown as error:
        raise GetMethodFailed(f"unsupported stack parameter type: {error.kind}") from error
    except ResultDeep as error:
        raise GetMethodFailed(str(error)) from error
    stack = [encode_v3(value) for value in outcome.stack]
    answer = RunAnswer(outcome.gas_used, outcome.exit_code, stack)
    return answer_json(msgspec.json.encode(answer), settings)


def answer_estimate(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Estimate the fees of an external message.

    Raises:
        CredentialMissing: no address.
        RequestInvalid: the body cannot be read.
        LiteServerError: a part of the message is no bag of cells, or it cannot be run.
    """
    settings: HttpSettings = request.app.state.settings.http
    arguments = read_arguments(request)
    note_warnings(request, arguments.warnings({}, SHARED_PARAMETERS), settings)
    asked = read_body(body, EstimateRequest, ("address",))
    params = read_params(EstimateParams, msgspec.structs.asdict(asked))
    fees = estimate_fees(open_call(request, arguments), params)
    answer = EstimateAnswer(Fees(**msgspec.structs.asdict(fees)), [])
    return answer_json(msgspec.json.encode(answer), settings)


def _read_params(body: bytes, settings: HttpSettings) -> GetMethodParams:
    asked = read_body(body, RunRequest, ("address", "method"))
    params = read_params(GetMethodParams, msgspec.structs.asdict(asked))
    params.check(settings.max_limit)
    return params


routes = [
    HTTPRouteHandler(
        "/runGetMethod",
        http_method="POST",
        status_code=200,
        opt={"body": RunRequest, "answers": RunAnswer},
    )(in_lane(answer_run)),
    HTTPRouteHandler("/estimateFee", http_method="POST", status_code=200)(in_lane(answer_estimate)),
]
