"""The page of a trace: what it did in words, its tree, and its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.api.chain.trace import find_trace_ids
from tonlake.api.errors import AnswerNotFound, RequestInvalid
from tonlake.api.explorer.chart import draw_tree
from tonlake.api.explorer.frame import Question, Shown, ask_or_say, read_hash
from tonlake.api.explorer.sentence import tell_actions
from tonlake.api.v3.page.coverage import check_no_gap
from tonlake.api.v3.route.action import ActionsQuery, get_actions
from tonlake.api.v3.route.trace import TracesQuery, answer_traces

if TYPE_CHECKING:
    from tonlake.api.explorer.sentence import Told
    from tonlake.api.request.call import Call
    from tonlake.api.v3.resource.trace import Traces

MOST_ACTIONS = 100


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
        "told": ask_or_say(lambda: _tell(question, trace_id)),
        "transactions": transactions,
        "tree": draw_tree(transactions, question.names) if transactions else None,
    }
    return Shown("trace.html", f"Trace {trace_id.hex()[:8]}", values)


def _tell(question: Question, trace_id: bytes) -> list[Told]:
    query = ActionsQuery(trace_id=(trace_id,), limit=MOST_ACTIONS, offset=0, sort="asc")
    found = get_actions(question.call, query)
    question.names.learn(found.address_book, found.metadata)
    return tell_actions(found.actions, question.names)
