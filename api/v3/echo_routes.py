"""The operation that echoes values as they were understood: for people who write clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from api.encoding import encode_bytes, encode_shard
from api.params import Addresses, Converter, Hashes, Query, parse_shard
from api.v3.operation import operation

if TYPE_CHECKING:
    from api.call import Call

Shards = Annotated[
    tuple[int, ...], Converter(parse_shard, {"type": "string"}, many=True, commas=True)
]


class EchoQuery(Query, frozen=True, kw_only=True):
    """Hashes, addresses and shards in any of their forms."""

    my_hash: Hashes = ()
    my_addr: Addresses = ()
    my_shard: Shards = ()


class Echo(msgspec.Struct):
    """The same values as answers write them."""

    my_hash: list[str]
    my_addr: list[str]
    my_shard: list[str]


def get_echo(call: Call, query: EchoQuery) -> Echo:
    """Write hashes, addresses and shards as answers do."""
    del call
    return Echo(
        my_hash=[encode_bytes(item) for item in query.my_hash],
        my_addr=[str(address) for address in query.my_addr],
        my_shard=[encode_shard(shard) for shard in query.my_shard],
    )


routes = [operation("/__testMethod", EchoQuery, get_echo)]
