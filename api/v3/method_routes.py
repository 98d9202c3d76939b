"""The operation that runs get-methods, in the words of version 2 as the peer passes them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from litestar import Response  # noqa: TC002 - Litestar reads the annotations
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody  # noqa: TC002 - Litestar reads the annotations

from api.call import (
    SHARED_PARAMETERS,
    ApiRequest,
    answer_json,
    note_warnings,
    open_call,
    read_arguments,
)
from api.errors import (
    CredentialMissing,
    GetMethodFailed,
    RequestInvalid,
    ResultDeep,
    StackTypeUnknown,
)
from api.stack import encode_v3
from api.v2.arguments import GetMethodParams
from api.v2.get_method import run_get_method
from api.v2.param import read_params
from api.v3.coverage import describe_gaps

if TYPE_CHECKING:
    from lake.settings import Settings


class RunRequest(msgspec.Struct, frozen=True):
    """A get-method by name, its arguments, and the masterchain block after which it runs."""

    address: str = ""
    method: str = ""
    stack: list[Any] | None = None
    seqno: int | None = None


class RunAnswer(msgspec.Struct, frozen=True):
    """How it ended; entries of the stack have a ``type`` and a ``value``."""

    gas_used: int
    exit_code: int
    stack: list[dict[str, Any]]


def answer_run(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Run a get-method.

    Raises:
        CredentialMissing: no address, or no method.
        RequestInvalid: the body cannot be read.
        GetMethodFailed: an argument of an unknown type, or a result nested too deep.
    """
    settings: Settings = request.app.state.settings
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


def _read_params(body: bytes, settings: Settings) -> GetMethodParams:
    try:
        asked = msgspec.json.decode(body, type=RunRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"failed to parse the request: {error}") from error
    for name in ("address", "method"):
        if not getattr(asked, name):
            raise CredentialMissing(f"{name} is required")
    params = read_params(GetMethodParams, msgspec.structs.asdict(asked))
    params.check(settings)
    return params


routes = [
    HTTPRouteHandler("/runGetMethod", http_method="POST", status_code=200, sync_to_thread=True)(
        answer_run
    ),
]
