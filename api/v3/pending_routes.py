"""Operations about what is not in a block yet: pending lists, and handing in a message.

Nobody tells this service of messages on their way, so the lists are empty; they check what they
are asked like all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from litestar import Response  # noqa: TC002 - Litestar reads the annotations
from litestar.handlers import HTTPRouteHandler
from litestar.params import RawBody  # noqa: TC002 - Litestar reads the annotations
from msgspec import UNSET

from api.call import (
    SHARED_PARAMETERS,
    ApiRequest,
    answer_json,
    note_warnings,
    open_call,
    read_arguments,
)
from api.errors import CredentialMissing, LiteServerError, RequestInvalid
from api.params import Addresses, Flag, Hashes, OneAddress, Query, Texts
from api.v2.send import send_bag
from api.v3.answer import AddressBook, Metadata, Transactions
from api.v3.decode import read_cells
from api.v3.model import Omitted
from api.v3.operation import operation
from api.v3.trace import Traces

if TYPE_CHECKING:
    from api.call import Call


class TransactionsQuery(Query, frozen=True, kw_only=True):
    """Accounts, or traces, whose pending transactions are wanted."""

    account: Addresses = ()
    trace_id: Hashes = ()


class TracesQuery(Query, frozen=True, kw_only=True):
    """An account, or the messages that began the traces."""

    account: OneAddress = None
    ext_msg_hash: Hashes = ()
    supported_action_types: Texts = ()


class ActionsQuery(TracesQuery, frozen=True, kw_only=True):
    """The same, and whether transactions are wanted with the actions."""

    include_transactions: Flag = None


class PendingActions(msgspec.Struct):
    """Actions of pending traces."""

    actions: list[dict[str, object]]
    address_book: AddressBook
    metadata: Metadata


class MessageRequest(msgspec.Struct, frozen=True):
    """A message as bag of cells."""

    boc: str = ""


class MessageAnswer(msgspec.Struct, frozen=True):
    """Hashes under which the message will be found."""

    message_hash: str | Omitted = UNSET
    message_hash_norm: str | Omitted = UNSET


class _SentMessage(msgspec.Struct, frozen=True):
    """What the upstream answers to sendBocReturnHash."""

    hash: str | Omitted = UNSET
    hash_norm: str | Omitted = UNSET


def get_transactions(call: Call, query: TransactionsQuery) -> Transactions:
    """List transactions that are not in a block yet.

    Raises:
        RequestInvalid: neither account nor trace.
    """
    del call
    if not (query.account or query.trace_id):
        raise RequestInvalid("at least 1 account address required")
    return Transactions(transactions=[], address_book={})


def get_traces(call: Call, query: TracesQuery) -> Traces:
    """List traces that are not in blocks yet.

    Raises:
        RequestInvalid: neither account nor message.
    """
    del call
    _check(query)
    return Traces(traces=[], address_book={}, metadata={})


def get_actions(call: Call, query: ActionsQuery) -> PendingActions:
    """List actions of traces that are not in blocks yet.

    Raises:
        RequestInvalid: neither account nor message.
    """
    del call
    _check(query)
    return PendingActions(actions=[], address_book={}, metadata={})


def _check(query: TracesQuery) -> None:
    if query.account is None and not query.ext_msg_hash:
        raise RequestInvalid("account or ext_msg_hash should be specified")


def answer_message(request: ApiRequest, body: RawBody) -> Response[bytes]:
    """Hand a message to the network.

    Raises:
        CredentialMissing: no message.
        RequestInvalid: it is no bag of one root.
        SendingUnavailable, UpstreamRefusal: it could not be handed on, or was refused.
    """
    arguments = read_arguments(request)
    note_warnings(request, arguments.warnings({}, SHARED_PARAMETERS), request.app.state.settings)
    boc = _read_message(body)
    call = open_call(request, arguments)
    try:
        sent = msgspec.convert(send_bag(call, boc, "sendBocReturnHash"), _SentMessage)
    except LiteServerError as error:
        raise RequestInvalid(str(error)) from error
    answer = MessageAnswer(sent.hash, sent.hash_norm)
    return answer_json(msgspec.json.encode(answer), call.settings)


def _read_message(body: bytes) -> bytes:
    try:
        asked = msgspec.json.decode(body, type=MessageRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"failed to parse the request: {error}") from error
    if not asked.boc:
        raise CredentialMissing("boc is required")
    try:
        return read_cells(asked.boc)
    except ValueError as error:
        raise RequestInvalid("boc is neither base64 nor hex") from error


routes = [
    operation("/pendingTransactions", TransactionsQuery, get_transactions, lasting=False),
    operation("/pendingTraces", TracesQuery, get_traces, lasting=False),
    operation("/pendingActions", ActionsQuery, get_actions, lasting=False),
    HTTPRouteHandler("/message", http_method="POST", status_code=200, sync_to_thread=True)(
        answer_message
    ),
]
