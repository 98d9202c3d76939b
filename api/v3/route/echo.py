"""For people who write clients: values as they were understood, and the way to the documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from litestar import get
from litestar.response import Redirect

from tonlake.api.request.params import Addresses, Converter, Hashes, Query, parse_shard
from tonlake.api.text.encoding import encode_bytes, encode_shard
from tonlake.api.v3.page.operation import operation

if TYPE_CHECKING:
    from tonlake.api.request.call import Call

Shards = Annotated[
    tuple[int, ...], Converter(parse_shard, {"type": "string"}, many=True, commas=True)
]


MOVED: Final = 301
"""Moved for good."""


class EchoQuery(Query, frozen=True, kw_only=True):
    """Hashes, addresses and shards in any of their forms."""

    my_hash: Hashes = ()
    my_addr: Addresses = ()
    my_shard: Shards = ()


class Echo(msgspec.Struct):
    """The same values in response format."""

    my_hash: list[str]
    my_addr: list[str]
    my_shard: list[str]


def get_echo(call: Call, query: EchoQuery) -> Echo:
    """Echo hashes, addresses and shards in response format."""
    del call
    return Echo(
        my_hash=[encode_bytes(item) for item in query.my_hash],
        my_addr=[str(address) for address in query.my_addr],
        my_shard=[encode_shard(shard) for shard in query.my_shard],
    )


@get("/index.html", status_code=MOVED, sync_to_thread=False)
def answer_index() -> Redirect:
    """Redirect to /docs."""
    return Redirect("/docs", status_code=MOVED)


@get("/doc.json", status_code=MOVED, sync_to_thread=False)
def answer_document() -> Redirect:
    """Redirect to /openapi.json."""
    return Redirect("/openapi.json", status_code=MOVED)


routes = [operation("/__testMethod", EchoQuery, get_echo), answer_index, answer_document]
