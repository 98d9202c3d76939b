"""Operations about messages that are not in a block yet: sending, and pending lists.

The lists have the messages sent through this service that an upstream accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from tonlake.api.chain.upstream import check_bag, send_bag
from tonlake.api.errors import LiteServerError, RequestInvalid, SendingUnavailable
from tonlake.api.request.params import Addresses, Flag, Hashes, OneAddress, Query, Texts
from tonlake.api.text.encoding import encode_bytes
from tonlake.api.v3.layout.field import Omitted
from tonlake.api.v3.page.book import read_address_book
from tonlake.api.v3.page.classified import choose_types
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import operation
from tonlake.api.v3.page.request_body import Posted, posted
from tonlake.api.v3.page.transaction_page import list_addresses
from tonlake.api.v3.resource.action import Action
from tonlake.api.v3.resource.answer import AddressBook, Metadata, Transactions
from tonlake.api.v3.resource.trace import Traces
from tonlake.api.v3.route.action import list_addresses as list_action_addresses
from tonlake.api.v3.route.decode import read_cells

if TYPE_CHECKING:
    from tonlake.api.request.call import Call
    from tonlake.api.text.address import Address
    from tonlake.api.v3.resource.pending_trace import PendingTrace


class TransactionsQuery(Query, frozen=True, kw_only=True):
    """Accounts, or traces, whose pending transactions are requested."""

    account: Addresses = ()
    trace_id: Hashes = ()


class TracesQuery(Query, frozen=True, kw_only=True):
    """An account, or the messages that started the traces."""

    account: OneAddress = None
    ext_msg_hash: Hashes = ()
    supported_action_types: Texts = ()


class ActionsQuery(TracesQuery, frozen=True, kw_only=True):
    """The same, and whether transactions are requested with the actions."""

    include_transactions: Flag = None


class PendingActions(msgspec.Struct):
    """Actions of pending traces."""

    actions: list[Action]
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
    """The upstream's response to sendBocReturnHash."""

    hash: str | Omitted = UNSET
    hash_norm: str | Omitted = UNSET


def get_transactions(call: Call, query: TransactionsQuery) -> Transactions:
    """List emulated transactions of pending messages.

    Raises:
        RequestInvalid: neither account nor trace.
    """
    if not (query.account or query.trace_id):
        raise RequestInvalid("at least 1 account address required")
    accounts = {str(address) for address in query.account}
    shown = [
        transaction
        for trace in _list_traces(call)
        if not query.trace_id or {trace.row["trace_id"], trace.norm} & set(query.trace_id)
        for transaction in trace.transactions.values()
        if not accounts or transaction.account in accounts
    ]
    return Transactions(
        transactions=shown, address_book=read_address_book(call, list_addresses(shown))
    )


def get_traces(call: Call, query: TracesQuery) -> Traces:
    """List emulated traces of pending messages.

    Raises:
        RequestInvalid: neither account nor message.
    """
    found = _find(call, query)
    types = choose_types(call, query.supported_action_types)
    shown = [one for trace in found for one in trace.transactions.values()]
    addresses = list_addresses(shown)
    addresses.update(list_action_addresses(row for trace in found for row in trace.action_rows))
    return Traces(
        traces=[trace.render(types) for trace in found],
        address_book=read_address_book(call, addresses),
        metadata=read_metadata(call, addresses),
    )


def get_actions(call: Call, query: ActionsQuery) -> PendingActions:
    """List actions of emulated traces of pending messages.

    Raises:
        RequestInvalid: neither account nor message.
    """
    types = choose_types(call, query.supported_action_types)
    account = None if query.account is None else str(query.account)
    actions = []
    addresses: set[Address] = set()
    for trace in _find(call, query):
        by_id = {encode_bytes(row["action_id"]): row for row in trace.action_rows}
        for action in trace.render_actions(types):
            row = by_id[action.action_id]
            if account is not None and account not in row["accounts"]:
                continue
            addresses.update(list_action_addresses([row]))
            if query.include_transactions:
                action.transactions_full = [trace.transactions[one] for one in action.transactions]
            actions.append(action)
    actions.sort(
        key=lambda one: (int(one.trace_end_lt), int(one.end_lt), int(one.start_lt)), reverse=True
    )
    return PendingActions(
        actions=actions,
        address_book=read_address_book(call, addresses),
        metadata=read_metadata(call, addresses),
    )


def _list_traces(call: Call) -> list[PendingTrace]:
    if call.pending is None:
        return []
    return call.pending.list_traces()


def _find(call: Call, query: TracesQuery) -> list[PendingTrace]:
    """Return the requested traces, latest first."""
    _check(query)
    account = None if query.account is None else str(query.account)
    found = [
        trace
        for trace in _list_traces(call)
        if (account is None or account in trace.accounts)
        and (
            not query.ext_msg_hash
            or {trace.row["external_hash"], trace.norm} & set(query.ext_msg_hash)
        )
    ]
    return sorted(found, key=lambda trace: trace.row["end_lt"], reverse=True)


def _check(query: TracesQuery) -> None:
    if query.account is None and not query.ext_msg_hash:
        raise RequestInvalid("account or ext_msg_hash should be specified")


def answer_message(request: Posted, asked: MessageRequest) -> MessageAnswer:
    """Send a message to the network.

    Raises:
        CredentialMissing: no message.
        RequestInvalid: the message is not a bag with one root.
        SendingUnavailable: it could not be sent, or the upstream returned no hashes.
        LiteServerError, UpstreamRefusal: it was refused.
    """
    boc = _read_message(asked.boc)
    try:
        sent = send_bag(request.open(), boc, "sendBocReturnHash")
        hashes = msgspec.convert(sent, _SentMessage)
    except msgspec.ValidationError as error:
        raise SendingUnavailable(f"the upstream returned no hashes: {error}") from error
    return MessageAnswer(hashes.hash, hashes.hash_norm)


def _read_message(text: str) -> bytes:
    try:
        boc = read_cells(text)
    except ValueError as error:
        raise RequestInvalid("boc is neither base64 nor hex") from error
    try:
        check_bag(boc, "body")
    except LiteServerError as error:
        raise RequestInvalid(str(error)) from error
    return boc


routes = [
    operation("/pendingTransactions", TransactionsQuery, get_transactions, lasting=False),
    operation("/pendingTraces", TracesQuery, get_traces, lasting=False),
    operation("/pendingActions", ActionsQuery, get_actions, lasting=False),
    posted("/message", MessageRequest, answer_message, ("boc",)),
]
