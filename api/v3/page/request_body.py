"""The frame of operations with a JSON body, which is parsed as TON Center parses it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from litestar import Response
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody

from tonlake.api.errors import CredentialMissing, RequestInvalid
from tonlake.api.http.admission import in_queue
from tonlake.api.request.call import ApiRequest, Call, answer_json, open_call, read_known
from tonlake.api.settings import HttpSettings

R = TypeVar("R", bound=msgspec.Struct)


def read_body(body: bytes, kind: type[R], required: Sequence[str] = ()) -> R:
    """Return the object of a body; a field that is null counts as absent.

    Clients write null for omitted fields, and TON Center accepts that.

    Raises:
        RequestInvalid: the body is not such an object.
        CredentialMissing: a required field is absent or empty.
    """
    try:
        fields = msgspec.json.decode(body)
        if isinstance(fields, dict):
            fields = {name: value for name, value in fields.items() if value is not None}
        asked = msgspec.convert(fields, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"failed to parse the request: {error}") from error
    for name in required:
        if not getattr(asked, name):
            raise CredentialMissing(f"{name} is required")
    return asked


class Posted(NamedTuple):
    """A request with a body: the settings, and the call, which is opened when needed."""

    settings: HttpSettings
    open: Callable[[], Call]


def posted(
    path: str,
    kind: type[R],
    answer: Callable[[Posted, R], Any],
    required: Sequence[str] = (),
    **described: object,
) -> HTTPRouteHandler:
    """Return the route that answers POST requests, with a body of a kind, on ``path``.

    ``described`` are keys of the route for the OpenAPI document.
    """

    def handle(request: ApiRequest, body: RawBody) -> Response[bytes]:
        settings: HttpSettings = request.app.state.settings.http
        arguments = read_known(request, {})
        asked = read_body(body, kind, required)
        answered = answer(Posted(settings, lambda: open_call(request, arguments)), asked)
        return answer_json(msgspec.json.encode(answered), settings)

    handle.__doc__ = answer.__doc__
    route = HTTPRouteHandler(path, http_method="POST", status_code=200, opt=described)
    return route(in_queue(handle))
