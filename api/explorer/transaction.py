"""Renders the page of a transaction, with its phases, fees and messages, and of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tonlake.api.chain.block import find_trace_ids
from tonlake.api.errors import AnswerNotFound, NotDerived, RequestInvalid
from tonlake.api.explorer import chart
from tonlake.api.explorer.frame import Question, Redirect, Shown, ask_or_say, read_hash
from tonlake.api.explorer.tree import draw_tree, list_outline
from tonlake.api.explorer.words.outcome import BAD, judge_with
from tonlake.api.explorer.words.phase import COINS, list_phases, list_postings, split_fees
from tonlake.api.explorer.words.sentence import write_actions
from tonlake.api.text.encoding import encode_bytes, parse_address
from tonlake.api.v2.transaction import read_bags
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import check_no_gap
from tonlake.api.v3.page.transaction_page import answer_transactions, read_records
from tonlake.api.v3.route.trace import ActionsQuery, TracesQuery, answer_actions, answer_traces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.api.explorer.words.names import Names
    from tonlake.api.explorer.words.outcome import Outcome
    from tonlake.api.explorer.words.sentence import WrittenAction
    from tonlake.api.request.call import Call
    from tonlake.api.v3.layout.transaction import Transaction
    from tonlake.api.v3.resource.answer import Traces, Transactions

Row = dict[str, Any]


def show_transaction(question: Question) -> Shown | Redirect:
    """Show a transaction by its hash.

    Raises:
        AnswerNotFound: no transaction has this hash.
        NotCovered: the lake has gaps that may contain it.
    """
    tx_hash = read_hash(question)
    keys = question.call.reader.rows("v3/transaction_keys_by_hash", hashes=[tx_hash])
    if not keys:
        check_no_gap(question.call.reader)
        raise AnswerNotFound(f"transaction {tx_hash.hex()} not found in this lake")
    found = ask_transactions(question, keys)
    transaction = found.transactions[0]
    values = {
        "each": transaction,
        "phases": list_phases(transaction, question.names),
        "postings": list_postings(transaction),
        "bag": _read_bag(question, tx_hash, keys),
        "fees": chart.slice_bar(split_fees(transaction)),
        "forward": sum(int(message.fwd_fee or 0) for message in transaction.out_msgs),
        "coins": COINS,
        "result": judge_with(transaction, question.names),
    }
    return Shown("transaction.html", f"Transaction {tx_hash.hex()[:8]}", values)


def ask_transactions(question: Question, keys: list[Row]) -> Transactions:
    """Return the transactions with ``keys`` and collect the names of their accounts."""
    found = question.ask(answer_transactions, keys)
    named = map(parse_address, found.address_book)
    question.names.learn({}, read_metadata(question.call, named))
    return found


def _read_bag(question: Question, tx_hash: bytes, keys: list[Row]) -> str:
    """Return the transaction as a base64 bag of cells; "" if an earlier version left it out."""
    try:
        bags = read_bags(question.call.reader, read_records(question.call, keys))
    except NotDerived:
        return ""
    return encode_bytes(bags[tx_hash])


MAX_ACTIONS = 100
MAX_FAILURES = 100


def show_trace(question: Question) -> Shown:
    """Show a trace by its id, or by a transaction or message in it.

    Raises:
        AnswerNotFound: there is no such trace.
        NotCovered: the lake has gaps that may contain it.
    """
    trace_id = find_trace(question.call, read_hash(question))
    try:
        found = answer_traces(question.call, TracesQuery(trace_id=(trace_id,), limit=1, offset=0))
    except RequestInvalid as error:
        text = {"text": f"This trace is too large to show: {error}"}
        return Shown("error.html", "Trace", text, status=422)
    return _describe(question, found, trace_id)


def find_trace(call: Call, any_hash: bytes) -> bytes:
    """Return the id of the trace that contains a transaction or message.

    Raises:
        AnswerNotFound, NotCovered: as for ``show_trace``.
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
    is_open = question.argument("open") == "all"
    values = {
        "trace": trace,
        "actions": ask_or_say(lambda: _list_actions(question, trace_id)),
        "transactions": transactions,
        "failures": list_failures(transactions, question.names),
        "tree": draw_tree(transactions, question.names, fold=not is_open) if transactions else None,
        "is_open": is_open,
        "here": f"/trace/{trace_id.hex()}",
        "outline": list_outline(transactions, question.names),
    }
    return Shown("trace.html", f"Trace {trace_id.hex()[:8]}", values)


def list_failures(
    transactions: Sequence[Transaction], names: Names
) -> list[tuple[Transaction, Outcome]]:
    """Return the failed transactions with their outcomes."""
    judged = [(each, judge_with(each, names)) for each in transactions]
    return [(each, outcome) for each, outcome in judged if outcome.kind == BAD][:MAX_FAILURES]


def _list_actions(question: Question, trace_id: bytes) -> list[WrittenAction]:
    query = ActionsQuery(trace_id=(trace_id,), limit=MAX_ACTIONS, offset=0, sort="asc")
    found = question.ask(answer_actions, query)
    return write_actions(found.actions, question.names)
