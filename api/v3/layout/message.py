"""Messages in version 3."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET

from tonlake.api.v3.layout.field import (
    Bag,
    Base64,
    Column,
    Currencies,
    Decimal,
    Kind,
    Omitted,
    RawAddress,
    account,
    inner,
)

INTERNAL, EXTERNAL = "int", "ext_in"
"""Kinds of messages: only internal ones have extra currencies, and bodies of external ones may be
decoded although their opcode is unknown.
"""


class MessageContent(msgspec.Struct, gc=False):
    """The body or initial state of a message as a bag of cells."""

    hash: Base64 | None
    body: Bag | None
    decoded: dict[str, object] | None = None


class Message(msgspec.Struct, gc=False):
    """A message; amounts, lt and time are decimal text."""

    # in_tx_hash and out_tx_hash, the transactions at both ends, may be missing from the row.

    hash: Annotated[Base64, Column("msg_hash")]
    source: Annotated[RawAddress, account("source")] | None
    destination: Annotated[RawAddress, account("destination")] | None
    value: Decimal | None
    value_extra_currencies: (
        Annotated[Currencies, Kind.CURRENCIES, Column("value_extra_currencies", "kind", INTERNAL)]
        | None
    )
    fwd_fee: Decimal | None
    ihr_fee: Decimal | None
    extra_flags: Decimal | None
    created_lt: Decimal | None
    created_at: Decimal | None
    opcode: Annotated[str | int | None, Kind.OPCODE]
    decoded_opcode: Annotated[str, Kind.OPCODE_NAME, Column("body", "kind", EXTERNAL)] | None
    ihr_disabled: bool | None
    bounce: bool | None
    bounced: bool | None
    import_fee: Decimal | None
    message_content: (
        Annotated[MessageContent, Kind.BODY, inner(hash="body_hash", body="body")] | None
    )
    init_state: (
        Annotated[
            MessageContent, inner("init_state_hash", hash="init_state_hash", body="init_state")
        ]
        | None
    )
    in_msg_tx_hash: Annotated[Base64, Column("in_tx_hash")] | Omitted = UNSET
    out_msg_tx_hash: Annotated[Base64, Column("out_tx_hash")] | Omitted = UNSET
    hash_norm: Annotated[str, Kind.BASE64_UNLESS, Column("hash_norm", "msg_hash")] | Omitted = UNSET
