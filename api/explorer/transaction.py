"""The pages of a transaction, with its phases, fees and messages, and of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tonlake.api.chain.header import find_trace_ids
from tonlake.api.errors import AnswerNotFound, RequestInvalid
from tonlake.api.explorer import chart
from tonlake.api.explorer.chart import draw_tree
from tonlake.api.explorer.frame import Elsewhere, Question, Shown, ask_or_say, read_hash
from tonlake.api.explorer.outcome import BAD, explain_phases, judge_with
from tonlake.api.explorer.sentence import write_actions
from tonlake.api.v3.page.coverage import check_no_gap
from tonlake.api.v3.page.transaction_page import answer_transactions
from tonlake.api.v3.route.action import ActionsQuery, get_actions
from tonlake.api.v3.route.trace import TracesQuery, answer_traces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.api.explorer.outcome import Outcome
    from tonlake.api.explorer.sentence import Names, WrittenAction
    from tonlake.api.request.call import Call
    from tonlake.api.v3.layout.transaction import Transaction
    from tonlake.api.v3.resource.trace import Traces

Facts = dict[str, Any]

_PHASES = (
    ("storage_ph", "Storage"),
    ("credit_ph", "Credit"),
    ("compute_ph", "Compute"),
    ("action", "Action"),
    ("bounce", "Bounce"),
    ("split_info", "Split"),
)
_COINS = frozenset(
    {
        *("storage_fees_collected", "storage_fees_due", "due_fees_collected", "credit"),
        *("gas_fees", "total_fwd_fees", "total_action_fees"),
        *("req_fwd_fees", "msg_fees", "fwd_fees"),
    }
)
"""Fields of phases that are nanoton."""


def show_transaction(question: Question) -> Shown | Elsewhere:
    """Show a transaction by its hash.

    Raises:
        AnswerNotFound: there is none of this hash.
        NotCovered: the lake has gaps, and it may lie there.
    """
    tx_hash = read_hash(question)
    keys = question.call.reader.rows("v3/transaction_keys_by_hash", hashes=[tx_hash])
    if not keys:
        check_no_gap(question.call.reader)
        raise AnswerNotFound(f"transaction {tx_hash.hex()} not found in this lake")
    found = question.ask(answer_transactions, keys)
    transaction = found.transactions[0]
    values = {
        "each": transaction,
        "phases": list_phases(transaction),
        "fees": chart.slice_bar(split_fees(transaction)),
        "forward": sum(int(message.fwd_fee or 0) for message in transaction.out_msgs),
        "coins": _COINS,
        "result": judge_with(transaction, question.names),
        "meanings": explain_phases(transaction, question.names),
    }
    return Shown("transaction.html", f"Transaction {tx_hash.hex()[:8]}", values)


def list_phases(transaction: Transaction) -> list[tuple[str, Facts]]:
    """Return the phases that a transaction went through, each with the fields that it has."""
    phases = []
    for name, title in _PHASES:
        phase = getattr(transaction.description, name)
        if phase is not msgspec.UNSET:
            fields: Facts = msgspec.to_builtins(phase)
            phases.append((title, {key: _flatten(value) for key, value in fields.items()}))
    return phases


def _flatten(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return value


def split_fees(transaction: Transaction) -> dict[str, int]:
    """Return what makes up the total fees of a transaction, in nanoton."""
    about = transaction.description
    total = int(transaction.total_fees)
    message = transaction.in_msg
    parts = {
        "Storage": _read(about.storage_ph, "storage_fees_collected"),
        "Gas": _read(about.compute_ph, "gas_fees"),
        "Actions": _read(about.action, "total_action_fees"),
    }
    # Nobody but the account pays for a message from outside; no field has that part alone.
    rest = "Message import" if message is not None and not message.source else "Other"
    return parts | {rest: max(0, total - sum(parts.values()))}


def _read(phase: object, name: str) -> int:
    return int(getattr(phase, name, None) or 0)


MOST_ACTIONS = 100
MOST_FAILURES = 100


def show_trace(question: Question) -> Shown:
    """Show a trace by its id, or by a transaction or message in it.

    Raises:
        AnswerNotFound: there is none.
        NotCovered: the lake has gaps, and it may lie there.
    """
    trace_id = find_trace(question.call, read_hash(question))
    try:
        found = answer_traces(question.call, TracesQuery(trace_id=(trace_id,), limit=1, offset=0))
    except RequestInvalid as error:
        text = {"text": f"This trace is too large to show: {error}"}
        return Shown("error.html", "Trace", text, status=422)
    return _describe(question, found, trace_id)


def find_trace(call: Call, any_hash: bytes) -> bytes:
    """Return the id of the trace of a transaction or message.

    Raises:
        AnswerNotFound, NotCovered: as for the page.
    """
    ids = find_trace_ids(call.reader, tx_hashes=[any_hash])
    ids = ids or find_trace_ids(call.reader, msg_hashes=[any_hash])
    if not ids:
        check_no_gap(call.reader)
        raise AnswerNotFound(f"no trace with transaction or message {any_hash.hex()}")
    return ids[0]


def _describe(question: Question, found: Traces, trace_id: bytes) -> Shown:
    question.names.learn(found.address_book, found.metadata)
    trace = found.traces[0]
    known = trace.transactions or {}
    transactions = [known[each] for each in trace.transactions_order or ()]
    values = {
        "trace": trace,
        "actions": ask_or_say(lambda: _list_actions(question, trace_id)),
        "transactions": transactions,
        "failures": list_failures(transactions, question.names),
        "tree": draw_tree(transactions, question.names) if transactions else None,
    }
    return Shown("trace.html", f"Trace {trace_id.hex()[:8]}", values)


def list_failures(
    transactions: Sequence[Transaction], names: Names
) -> list[tuple[Transaction, Outcome]]:
    """Return the transactions that failed, each with what became of it."""
    judged = [(each, judge_with(each, names)) for each in transactions]
    return [(each, outcome) for each, outcome in judged if outcome.kind == BAD][:MOST_FAILURES]


def _list_actions(question: Question, trace_id: bytes) -> list[WrittenAction]:
    query = ActionsQuery(trace_id=(trace_id,), limit=MOST_ACTIONS, offset=0, sort="asc")
    found = question.ask(get_actions, query)
    return write_actions(found.actions, question.names)
