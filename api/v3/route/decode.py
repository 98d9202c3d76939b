"""Operations without a lake: decode bodies, name opcodes, echo values."""

import base64
import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from litestar.handlers import HTTPRouteHandler

from tonlake.api.errors import RequestInvalid
from tonlake.api.http.admission import in_queue
from tonlake.api.request.call import (
    Addresses,
    ApiRequest,
    Call,
    ConversionError,
    Converter,
    Hashes,
    Query,
    Texts,
    Written,
    answer_body,
    converters_of,
    parse_opcode,
    parse_shard,
    read_known,
    read_query,
)
from tonlake.api.settings import HttpSettings
from tonlake.api.text.encoding import encode_bytes, encode_shard
from tonlake.api.v3.page.operation import Posted, operation, posted
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.body.body import decode_body, name_opcode
from tonlake.ingest.errors import BocError

DECODE_LIMIT = 1000
"""Limit of opcodes, and of bodies, in one request."""

PATH = "/decode"
UNKNOWN = "unknown"
_UINT32 = 1 << 32
_HEX = re.compile(r"(0x)?(?:[0-9a-fA-F]{2})+")


class DecodeQuery(Query, frozen=True, kw_only=True):
    """Opcodes (hex or decimal) and bodies (bags of cells in base64 or hex), repeatable."""

    opcodes: Texts = ()
    bodies: Texts = ()


class DecodeRequest(msgspec.Struct, frozen=True):
    """Opcodes and bodies to decode."""

    opcodes: list[str | int] | None = None
    bodies: list[str] | None = None


class DecodeAnswer(msgspec.Struct, frozen=True):
    """A name or "unknown" per opcode, an object or an error per body, in request order."""

    opcodes: list[str]
    bodies: list[dict[str, Any]]


def answer_get(request: ApiRequest) -> Written:
    """Decode opcodes and message bodies (query parameters)."""
    query = read_query(DecodeQuery, read_known(request, converters_of(DecodeQuery)))
    settings: HttpSettings = request.app.state.settings.http
    return answer_body(msgspec.json.encode(_answer(query.opcodes, query.bodies)), settings)


def answer_post(_request: Posted, asked: DecodeRequest) -> DecodeAnswer:
    """Decode opcodes and message bodies (JSON)."""
    opcodes = [
        # Text may be hex without 0x; a number is taken as is.
        hex(opcode) if isinstance(opcode, int) and opcode >= 0 else str(opcode)
        for opcode in asked.opcodes or ()
    ]
    return _answer(opcodes, asked.bodies or ())


def name_opcode_text(text: str) -> str:
    """Return the name of an opcode, or "unknown"."""
    try:
        opcode = parse_opcode(text)
    except ConversionError as error:
        raise RequestInvalid('schema: error converting value for "opcodes"') from error
    return name_opcode(opcode % _UINT32) or UNKNOWN


def decode_text(text: str) -> dict[str, Any]:
    """Return the object of a body, or one with the key ``error``."""
    try:
        tree = parse_boc(read_cells(text))
    except (BocError, ValueError) as error:
        return {"error": f"{UNKNOWN}: {error}"}
    found = decode_body(tree, tree.roots[0])
    if found.value is not None:
        return found.value
    if found.limit is not None:
        return {"error": f"{UNKNOWN} body: {found.limit}"}
    if found.name is None:
        return {"error": f"{UNKNOWN} opcode, or no opcode at all"}
    return {"error": f"{UNKNOWN} body: no layout of {found.name} fits"}


def read_cells(text: str) -> bytes:
    """Return the bytes of base64 (either alphabet) or hex; raises ValueError for other text.

    A space counts as ``+``, since an unescaped ``+`` in a URL decodes to a space.
    """
    if _HEX.fullmatch(text):
        return bytes.fromhex(text.removeprefix("0x"))
    plain = text.replace(" ", "+").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _answer(opcodes: Sequence[str], bodies: Sequence[str]) -> DecodeAnswer:
    """Check the lengths, and decode the items one by one."""
    most = DECODE_LIMIT
    for name, items in (("opcodes", opcodes), ("bodies", bodies)):
        if len(items) > most:
            raise RequestInvalid(f"{name} list exceeds maximum length of {most}")
    return DecodeAnswer(
        [name_opcode_text(opcode) for opcode in opcodes], [decode_text(body) for body in bodies]
    )


routes = [
    HTTPRouteHandler(
        PATH, http_method=["GET", "HEAD"], opt={"query": DecodeQuery, "answers": DecodeAnswer}
    )(in_queue(answer_get)),
    posted(PATH, DecodeRequest, answer_post, body=DecodeRequest, answers=DecodeAnswer),
]


Shards = Annotated[
    tuple[int, ...], Converter(parse_shard, {"type": "string"}, many=True, commas=True)
]


class EchoQuery(Query, frozen=True, kw_only=True):
    """Hashes, addresses and shards in any format."""

    my_hash: Hashes = ()
    my_addr: Addresses = ()
    my_shard: Shards = ()


class Echo(msgspec.Struct):
    """The same values in response format."""

    my_hash: list[str]
    my_addr: list[str]
    my_shard: list[str]


def get_echo(_call: Call, query: EchoQuery) -> Echo:
    """Echo hashes, addresses and shards in response format."""
    return Echo(
        my_hash=[encode_bytes(item) for item in query.my_hash],
        my_addr=[str(address) for address in query.my_addr],
        my_shard=[encode_shard(shard) for shard in query.my_shard],
    )


hidden_routes = [operation("/__testMethod", EchoQuery, get_echo)]
"""For authors of clients; not in the OpenAPI document."""
