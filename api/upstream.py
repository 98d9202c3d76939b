"""Another service of version 2, where one is set: what needs the network is handed on to it."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import msgspec

from api.errors import SendingUnavailable, UpstreamRefusal

if TYPE_CHECKING:
    from lake.settings import Settings

NO_NETWORK = "sending is not available: this server has no network connection"
_MOST_BYTES = 1 << 20


class _Answer(msgspec.Struct, frozen=True):
    """The envelope of version 2."""

    ok: bool
    result: Any = None
    error: str = ""


def ask_upstream(settings: Settings, method: str, params: dict[str, Any]) -> object:
    """Return the result that the upstream gives for a method by POST.

    Raises:
        SendingUnavailable: none is set, it cannot be reached, or what it says is no answer.
        UpstreamRefusal: it refuses; status and text are its own.
    """
    if not settings.upstream_url:
        raise SendingUnavailable(NO_NETWORK)
    headers = {"Content-Type": "application/json"}
    if settings.upstream_key:
        headers["X-API-Key"] = settings.upstream_key
    # The setting admits http and https alone.
    request = urllib.request.Request(  # noqa: S310
        f"{settings.upstream_url.rstrip('/')}/{method}", msgspec.json.encode(params), headers
    )
    status, body = _exchange(request, settings.upstream_timeout_ms / 1000)
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SendingUnavailable(f"the upstream answered {status} and no JSON object") from error
    if not answer.ok:
        raise UpstreamRefusal(status, answer.error)
    return answer.result


def _exchange(request: urllib.request.Request, timeout_s: float) -> tuple[int, bytes]:
    """Return status and body, whatever the status."""
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310 - as above
            return answer.status, answer.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_MOST_BYTES)
    except OSError as error:
        raise SendingUnavailable(f"the upstream cannot be reached: {error}") from error
