"""Forwards requests that need the network to another v2 service or to lite servers."""

import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import msgspec

from tonlake.api.chain.arguments import EstimateParams
from tonlake.api.errors import LiteServerError, SendingUnavailable, UpstreamRefusal
from tonlake.api.request.call import Call
from tonlake.api.settings import UpstreamSettings
from tonlake.api.text.encoding import encode_bytes
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.tvm.trace import build_external_message, read_message
from tonlake.ingest.errors import BocError, DecodeError, ServerRefusal, SourceError

TIMEOUT_MS = 10_000

NO_NETWORK = "sending is not available: this server has no network connection"
_MAX_BYTES = 1 << 20


_ERRORS = range(400, 600)
_NO_STATUS = 500
"""Used if the upstream gives no error status."""


class _UpstreamAnswer(msgspec.Struct, frozen=True):
    """The response envelope of v2."""

    ok: bool
    result: Any = None
    error: Any = None
    code: Any = None


def sends_by_liteserver(settings: UpstreamSettings) -> bool:
    """Return whether messages go to lite servers."""
    return bool(settings.liteserver) and not settings.url


def send_message(settings: UpstreamSettings, method: str, boc: bytes) -> object:
    """Send a message and return the result of the v2 method ``method``."""
    if not sends_by_liteserver(settings):
        return ask_upstream(settings, method, {"boc": encode_bytes(boc)})
    try:
        message = read_message(boc)
    except (BocError, DecodeError) as error:
        raise LiteServerError(f"LITE_SERVER_UNKNOWN: {error}") from error
    # Imported here because it takes half a second to load.
    from tonlake.ingest.source.liteserver import pool  # noqa: PLC0415

    try:
        pool.send_message(Path(settings.liteserver), boc, TIMEOUT_MS)
    except ServerRefusal as error:
        kind = pool.ERROR_KINDS.get(error.code, "UNKNOWN")
        raise LiteServerError(f"LITE_SERVER_{kind}: {error.message}") from error
    except SourceError as error:
        raise SendingUnavailable(f"no lite server can be reached: {error}") from error
    if not method.startswith("sendBocReturnHash"):
        return {"@type": "ok"}
    hashes = {"hash": message["msg_hash"], "hash_norm": message["hash_norm"]}
    written = {name: encode_bytes(value) for name, value in hashes.items() if value is not None}
    return {"@type": "raw.extMessageInfo"} | written


def ask_upstream(settings: UpstreamSettings, method: str, params: dict[str, Any]) -> object:
    """Call a method of the upstream by POST and return its result."""
    if not settings.url:
        raise SendingUnavailable(NO_NETWORK)
    headers = {"Content-Type": "application/json"}
    if settings.key:
        headers["X-API-Key"] = settings.key
    # The setting allows only http and https.
    request = urllib.request.Request(  # noqa: S310
        f"{settings.url.rstrip('/')}/{method}", msgspec.json.encode(params), headers
    )
    status, body = _exchange(request, TIMEOUT_MS / 1000)
    try:
        answer = msgspec.json.decode(body, type=_UpstreamAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SendingUnavailable(f"the upstream responded {status} without JSON") from error
    if not answer.ok:
        # Some servers refuse with status 200 and the code only in the envelope, and gateways in
        # front of them put the text into ``result``.
        stated = (status, answer.code, _NO_STATUS)
        code = next(one for one in stated if isinstance(one, int) and one in _ERRORS)
        texts = (answer.error, answer.result)
        text = next((one for one in texts if one and isinstance(one, str)), None)
        raise UpstreamRefusal(code, text or f"the upstream refuses with {code} and no message")
    if answer.result is None:
        raise SendingUnavailable(f"the upstream responded {status} without a result")
    return answer.result


def _exchange(request: urllib.request.Request, timeout_s: float) -> tuple[int, bytes]:
    """Send a request; return status and body, also for error statuses."""
    try:
        try:
            answer = urllib.request.urlopen(request, timeout=timeout_s)  # noqa: S310 - as above
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, answer.read(_MAX_BYTES)
    except (OSError, HTTPException) as error:
        reason = str(error) or type(error).__name__
        raise SendingUnavailable(f"the upstream cannot be reached: {reason}") from error


BAD_BAG = "INVALID_BAG_OF_CELLS"
PARTS = ("body", "init_code", "init_data")


def check_bag(boc: bytes, name: str) -> None:
    """Check that ``boc`` is a bag of one whole tree; the error text is that of node clients."""
    try:
        tree = parse_boc(boc)
        tree.hash_all(tree.roots)  # Merkle cells may store wrong hashes
    except BocError as error:
        raise LiteServerError(f"{BAD_BAG}: {name}") from error
    if len(tree.roots) != 1 or tree.level_mask(tree.roots[0]):
        raise LiteServerError(f"{BAD_BAG}: {name}")


def build_message(params: EstimateParams) -> bytes | None:
    """Check the parts and return their message; None if it is too deep, or of a large workchain."""
    for name in PARTS:
        boc = getattr(params, name)
        if boc or name == "body":
            check_bag(boc, name)
    target = params.address.address
    init = (params.init_code or None, params.init_data or None)
    with suppress(BocError):
        return build_external_message(target.workchain, target.account, params.body, init)
    return None


def send_bag(call: Call, boc: bytes, method: str = "sendBoc") -> Any:  # noqa: ANN401 - as it came
    """Send a message and return the result of the upstream."""
    check_bag(boc, "body")
    answer = send_message(call.settings.upstream, method, boc)
    keep_pending(call, boc)
    return answer


def keep_pending(call: Call, boc: bytes) -> None:
    """Keep a sent message as pending until a block contains it."""
    if call.pending is not None:
        call.pending.add(call, boc)
