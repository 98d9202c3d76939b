"""The methods of version 2, and their routes: GET and POST under the own path of each, and jsonRPC.

A handler raises errors as exceptions, and ``answer_error`` writes them. The fields that a jsonRPC
response echoes are kept in the scope's state, for both results and errors.
"""

import time
from collections.abc import Callable
from typing import Any, Literal, NoReturn

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody

from tonlake.api.chain import arguments
from tonlake.api.chain.arguments import read_params
from tonlake.api.errors import AnswerNotFound, RequestInvalid
from tonlake.api.http.admission import in_queue
from tonlake.api.request.call import (
    STARTED_S,
    ApiRequest,
    Written,
    answer_body,
    converters_of,
    keep_answer,
    measure_ms,
    open_call,
    read_arguments,
    read_known,
)
from tonlake.api.settings import HttpSettings
from tonlake.api.v2 import account, block, token, transaction, value


class Method(msgspec.Struct, frozen=True):
    """One method: the struct of its parameters, and its handler.

    A ``pure`` method needs only its parameters, the others also a `Call`. A ``post_only`` method
    has parameters that a query string cannot hold. The response of a ``lasting`` method depends
    only on the snapshot and the parameters, so it is valid until the next commit. An ``unwaiting``
    method, as all pure ones are, waits only for its reader.
    """

    params: type[arguments.Params]
    answer: Callable[..., Any]
    pure: bool = False
    post_only: bool = False
    lasting: bool = True
    unwaiting: bool = False


METHODS: dict[str, Method] = {
    "detectAddress": Method(arguments.TextParams, value.answer_detect_address, pure=True),
    "detectHash": Method(arguments.HashParams, value.answer_detect_hash, pure=True),
    "packAddress": Method(arguments.TextParams, value.answer_pack_address, pure=True),
    "unpackAddress": Method(arguments.TextParams, value.answer_unpack_address, pure=True),
    "healthcheck": Method(arguments.Params, value.answer_healthcheck, pure=True),
    "getAddressInformation": Method(
        arguments.AccountParams, account.answer_information, unwaiting=True
    ),
    "getExtendedAddressInformation": Method(
        arguments.AccountParams, account.answer_extended_information
    ),
    "getWalletInformation": Method(arguments.AccountParams, account.answer_wallet_information),
    "getAddressBalance": Method(arguments.AccountParams, account.answer_balance, unwaiting=True),
    "getAddressState": Method(arguments.AccountParams, account.answer_state, unwaiting=True),
    "getShardAccountCell": Method(arguments.AccountParams, account.answer_shard_account),
    "getTokenData": Method(arguments.AccountParams, token.answer_token),
    "dnsResolve": Method(arguments.ResolveParams, token.answer_resolve),
    "getTransactions": Method(arguments.HistoryParamsZero, transaction.answer_transactions),
    "getTransactionsStd": Method(arguments.HistoryParams, transaction.answer_transactions_std),
    "tryLocateTx": Method(arguments.LocateParams, transaction.answer_receiver),
    "tryLocateResultTx": Method(arguments.LocateParams, transaction.answer_receiver),
    "tryLocateSourceTx": Method(arguments.LocateParams, transaction.answer_sender),
    "getMasterchainInfo": Method(arguments.Params, block.answer_masterchain_info, unwaiting=True),
    "getConsensusBlock": Method(arguments.Params, block.answer_consensus_block, lasting=False),
    "lookupBlock": Method(arguments.LookupParams, block.answer_lookup),
    "shards": Method(arguments.MasterParams, block.answer_shards),
    "getShards": Method(arguments.MasterParams, block.answer_shards),
    "getBlockHeader": Method(arguments.BlockParams, block.answer_header),
    "getMasterchainBlockSignatures": Method(arguments.MasterParams, block.answer_signatures),
    "getShardBlockProof": Method(arguments.ProofParams, block.answer_shard_proof),
    "getOutMsgQueueSize": Method(arguments.Params, block.answer_queue_sizes),
    "getOutMsgQueueSizes": Method(arguments.Params, block.answer_queue_sizes),
    "getBlockTransactions": Method(arguments.BlockPageParams, block.answer_block_transactions),
    "getBlockTransactionsExt": Method(
        arguments.BlockPageParams, block.answer_block_transactions_ext
    ),
    "getConfigParam": Method(arguments.ConfigParamParams, block.answer_config_param),
    "getConfigAll": Method(arguments.ConfigParams, block.answer_config_all),
    "getLibraries": Method(arguments.LibraryParams, block.answer_libraries),
    "runGetMethod": Method(arguments.GetMethodParams, account.answer_run, post_only=True),
    "runGetMethodStd": Method(arguments.GetMethodParams, account.answer_run_std, post_only=True),
    "estimateFee": Method(arguments.EstimateParams, block.answer_estimate, post_only=True),
    "estimateFeeSimple": Method(
        arguments.EstimateCellParams, block.answer_estimate, post_only=True
    ),
    "sendQuery": Method(arguments.EstimateParams, block.answer_send_query, post_only=True),
    "sendQuerySimple": Method(
        arguments.EstimateCellParams, block.answer_send_query, post_only=True
    ),
    "sendCellSimple": Method(arguments.CellParams, block.answer_send_cell, post_only=True),
    **{
        name: Method(arguments.BagParams, block.answer_with(name), post_only=True)
        for name in ("sendBoc", "sendBocReturnHash", "sendBocReturnHashNoError", "sendBocUnsafe")
    },
}
"""Methods by name; each has its own path and is a method of jsonRPC."""


Verb = Literal["GET", "HEAD", "POST"]

JSON_RPC = "jsonRPC"
_PREFIX = "/api/v2/"
_METHOD_NOT_ALLOWED = 405
_ECHO = "v2_echo"
_NO_EXTRA = "_"


def answer_get(request: ApiRequest) -> Written:
    """Answer a method with parameters in the query string; the last of repeated ones counts."""
    method = _method_of(request)
    known = converters_of(method.params)
    arguments = read_known(request, known)
    values = {
        name: texts if name in known and known[name].many else texts[-1]
        for name, texts in arguments.values.items()
    }
    return _answer(request, method, values, "get")


def answer_post(request: ApiRequest, body: RawBody) -> Written:
    """Answer a method with parameters in a JSON object; unknown ones are ignored."""
    return _answer(request, _method_of(request), _read_object(body or b"{}"), "post")


def answer_rpc(request: ApiRequest, body: RawBody) -> Written:
    """Answer the method named in a jsonRPC request, like a POST to its own path."""
    request.scope["state"][_ECHO] = {"jsonrpc": "2.0"}
    envelope = _read_object(body)
    if "id" in envelope:
        request.scope["state"][_ECHO]["id"] = envelope["id"]
    method = METHODS.get(name) if isinstance(name := envelope.get("method"), str) else None
    if method is None:
        raise AnswerNotFound("Unknown method")
    values = envelope.get("params")
    if values in (None, []):
        values = {}
    if not isinstance(values, dict):
        raise RequestInvalid("params must contain an object")
    return _answer(request, method, values, "post")


def answer_unknown(request: ApiRequest) -> NoReturn:
    """Refuse the path of an unknown method."""
    request.scope["state"]["v2_unknown"] = True
    raise AnswerNotFound("Not Found")


def answer_error(request: ApiRequest, status: int, text: str) -> Response[bytes]:
    """Write an error in the form of version 2."""
    state = request.scope["state"]
    if status == _METHOD_NOT_ALLOWED:
        is_rpc = request.url.path == _PREFIX + JSON_RPC
        text = (
            f"method {request.method} is not supported"
            if is_rpc
            else f"unsupported http method: {request.method}"
        )
    plain = status == _METHOD_NOT_ALLOWED or "v2_unknown" in state or _ECHO in state
    body = {
        "ok": False,
        "error": text,
        "code": status,
        "@extra": _NO_EXTRA if plain else _write_extra(request),
        **state.get(_ECHO, {}),
    }
    return Response(
        content=msgspec.json.encode(body), status_code=status, media_type="application/json"
    )


def _method_of(request: ApiRequest) -> Method:
    return METHODS[request.scope["path"].removeprefix(_PREFIX).strip("/")]


def _read_object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = "failed to parse post request: the body is not a JSON object"
        raise RequestInvalid(text) from error


def _answer(request: ApiRequest, method: Method, values: dict[str, Any], verb: str) -> Written:
    """Check the parameters, call the handler, and wrap the result in the envelope."""
    settings: HttpSettings = request.app.state.settings.http
    try:
        params = read_params(method.params, values)
    except RequestInvalid as error:
        raise RequestInvalid(f"failed to parse {verb} request: {error}") from error
    try:
        params.check(settings.max_limit)
    except RequestInvalid as error:
        raise RequestInvalid(f"failed to validate request: {error}") from error
    call = None if method.pure else open_call(request, read_arguments(request))
    result = method.answer(params) if call is None else method.answer(call, params)
    if verb == "get" and method.lasting and call is not None and not call.passing:
        keep_answer(request)
    body = {
        "ok": True,
        "result": result,
        "@extra": _write_extra(request),
        **request.scope["state"].get(_ECHO, {}),
    }
    return answer_body(msgspec.json.encode(body), settings)


def _write_extra(request: ApiRequest) -> str:
    """Return Unix seconds, the worker (none), and milliseconds since the request arrived.

    A cached response repeats it: no known client reads it.
    """
    elapsed_ms = measure_ms(request.scope["state"].get(STARTED_S, time.perf_counter()))
    return f"{int(time.time())}:_:{elapsed_ms:.3f}"


def _route(
    paths: list[str], verbs: list[Verb], handle: Callable[..., Any], *, unwaiting: bool = False
) -> HTTPRouteHandler:
    """Return one route for some paths."""
    route = HTTPRouteHandler([_PREFIX + path for path in paths], http_method=verbs, status_code=200)
    return route(in_queue(handle, unwaiting=unwaiting))


_GET = {name: method for name, method in METHODS.items() if not method.post_only}
_UNWAITING = [name for name, method in _GET.items() if method.pure or method.unwaiting]

routes: list[HTTPRouteHandler] = [
    _route(_UNWAITING, ["GET", "HEAD"], answer_get, unwaiting=True),
    _route([name for name in _GET if name not in _UNWAITING], ["GET", "HEAD"], answer_get),
    _route([*METHODS], ["POST"], answer_post),
    _route([JSON_RPC], ["POST"], answer_rpc),
    _route(["", "{rest:path}"], ["GET", "HEAD", "POST"], answer_unknown),
]
