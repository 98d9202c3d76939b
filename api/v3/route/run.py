"""Operations that run contracts or send messages, and lists of what is not in a block yet.

Get-methods have the errors of version 2, as in TON Center. The lists have the messages sent through
this service that an upstream accepted.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from tonlake.api.chain.arguments import EstimateParams, GetMethodParams, read_params
from tonlake.api.chain.run import estimate_fees, run_get_method
from tonlake.api.chain.upstream import check_bag, send_bag
from tonlake.api.errors import (
    GetMethodFailed,
    LiteServerError,
    RequestInvalid,
    ResultDeep,
    SendingUnavailable,
    StackTypeUnknown,
)
from tonlake.api.request.call import Addresses, Call, Flag, Hashes, OneAddress, Query, Texts
from tonlake.api.text.encoding import Address, encode_bytes, encode_v3
from tonlake.api.v3.layout.field import Omitted
from tonlake.api.v3.page.book import write_address_book
from tonlake.api.v3.page.listed import describe
from tonlake.api.v3.page.operation import Posted, describe_gaps, operation, posted
from tonlake.api.v3.page.transaction_page import list_addresses
from tonlake.api.v3.resource.action import Action
from tonlake.api.v3.resource.answer import Described, Traces, Transactions
from tonlake.api.v3.route.decode import read_cells
from tonlake.api.v3.route.trace import choose_types, list_action_addresses
from tonlake.ingest.derive.tvm.trace import Fees


class RunRequest(msgspec.Struct, frozen=True):
    """A get-method by name, its arguments, and the masterchain block as of which it runs."""

    address: str = ""
    method: str = ""
    stack: list[Any] | None = None
    seqno: int | None = None


class RunAnswer(msgspec.Struct, frozen=True):
    """Result of a get-method; stack entries have a ``type`` and a ``value``."""

    gas_used: int
    exit_code: int
    stack: list[dict[str, Any]]


class EstimateRequest(msgspec.Struct, frozen=True):
    """An external message in parts; unlike in version 2 signatures are checked by default."""

    address: str = ""
    body: str = ""
    init_code: str | None = None
    init_data: str | None = None
    ignore_chksig: bool | int = False


class EstimateAnswer(msgspec.Struct, frozen=True):
    """Fees of the account; fees of the receivers of its messages are not estimated."""

    source_fees: Fees
    destination_fees: list[Fees]


def answer_run(request: Posted, asked: RunRequest) -> RunAnswer:
    """Run a get-method."""
    params = read_params(GetMethodParams, msgspec.structs.asdict(asked))
    params.check(request.settings.max_limit)
    call = request.open()
    if gaps := describe_gaps(call.reader.snapshot.ranges):
        call.warn(gaps)
    try:
        _state, outcome = run_get_method(call, params, params.method, params.stack)
    except StackTypeUnknown as error:
        raise GetMethodFailed(f"unsupported stack parameter type: {error.kind}") from error
    except ResultDeep as error:
        raise GetMethodFailed(str(error)) from error
    stack = [encode_v3(value) for value in outcome.stack]
    return RunAnswer(outcome.gas_used, outcome.exit_code, stack)


def answer_estimate(request: Posted, asked: EstimateRequest) -> EstimateAnswer:
    """Estimate the fees of an external message."""
    params = read_params(EstimateParams, msgspec.structs.asdict(asked))
    fees = estimate_fees(request.open(), params)
    return EstimateAnswer(fees, [])


class PendingTransactionsQuery(Query, frozen=True, kw_only=True):
    """Accounts, or traces, whose pending transactions are requested."""

    account: Addresses = ()
    trace_id: Hashes = ()


class PendingTracesQuery(Query, frozen=True, kw_only=True):
    """An account, or the messages that started the traces."""

    account: OneAddress = None
    ext_msg_hash: Hashes = ()
    supported_action_types: Texts = ()


class PendingActionsQuery(PendingTracesQuery, frozen=True, kw_only=True):
    """The same, and whether transactions are requested with the actions."""

    include_transactions: Flag = None


class PendingActions(Described):
    """Actions of pending traces."""

    actions: list[Action]


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


def get_pending_transactions(call: Call, query: PendingTransactionsQuery) -> Transactions:
    """List emulated transactions of pending messages."""
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
        transactions=shown, address_book=write_address_book(call, list_addresses(shown))
    )


def get_pending_traces(call: Call, query: PendingTracesQuery) -> Traces:
    """List emulated traces of pending messages."""
    found = _find(call, query)
    types = choose_types(call, query.supported_action_types)
    shown = [one for trace in found for one in trace.transactions.values()]
    addresses = list_addresses(shown)
    addresses.update(list_action_addresses(row for trace in found for row in trace.action_rows))
    return Traces([trace.render(types) for trace in found], **describe(call, addresses))


def get_pending_actions(call: Call, query: PendingActionsQuery) -> PendingActions:
    """List actions of emulated traces of pending messages."""
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
    return PendingActions(actions, **describe(call, addresses))


def _list_traces(call: Call) -> list[Any]:
    return [] if call.pending is None else call.pending.list_traces()


def _find(call: Call, query: PendingTracesQuery) -> list[Any]:
    """Return the requested traces, latest first."""
    if query.account is None and not query.ext_msg_hash:
        raise RequestInvalid("account or ext_msg_hash should be specified")
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


def answer_message(request: Posted, asked: MessageRequest) -> MessageAnswer:
    """Send a message to the network."""
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
        check_bag(boc, "body")
    except ValueError as error:
        raise RequestInvalid("boc is neither base64 nor hex") from error
    except LiteServerError as error:
        raise RequestInvalid(str(error)) from error
    return boc


routes = [
    posted(
        "/runGetMethod",
        RunRequest,
        answer_run,
        ("address", "method"),
        body=RunRequest,
        answers=RunAnswer,
    ),
    posted("/estimateFee", EstimateRequest, answer_estimate, ("address",)),
    operation(
        "/pendingTransactions", PendingTransactionsQuery, get_pending_transactions, lasting=False
    ),
    operation("/pendingTraces", PendingTracesQuery, get_pending_traces, lasting=False),
    operation("/pendingActions", PendingActionsQuery, get_pending_actions, lasting=False),
    posted("/message", MessageRequest, answer_message, ("boc",)),
]
