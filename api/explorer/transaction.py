"""Renders a transaction, with its phases, fees and messages, and a trace, drawn as a tree."""

from collections.abc import Mapping, Sequence

import msgspec

from tonlake.api.chain.block import find_trace_ids
from tonlake.api.errors import AnswerNotFound, NotDerived, RequestInvalid
from tonlake.api.explorer.frame import PageRequest, Redirect, Shown, ask_or_say, read_hash
from tonlake.api.explorer.words.form import clip, name_call, write_brief, write_kind, write_opcode
from tonlake.api.explorer.words.names import Names
from tonlake.api.explorer.words.outcome import (
    BAD,
    COINS,
    ShownOutcome,
    judge,
    list_phases,
    list_postings,
    split_fees,
)
from tonlake.api.explorer.words.sentence import WrittenAction, write_actions
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import encode_bytes, parse_address
from tonlake.api.v2.transaction import read_bags
from tonlake.api.v3.layout.transaction import Message, Transaction
from tonlake.api.v3.page.metadata import read_metadata
from tonlake.api.v3.page.operation import check_no_gap
from tonlake.api.v3.page.transaction_page import answer_transactions, read_records
from tonlake.api.v3.resource.answer import Transactions
from tonlake.api.v3.route.trace import ActionsQuery, TracesQuery, answer_traces, get_actions
from tonlake.queries.reader import Row

BOX_WIDTH, BOX_HEIGHT = 176, 48
COLUMN, ROW = 296, 66
"""Distance between boxes, across and down."""

MARGIN = 8
MAX_BOXES = 400
"""Maximum transactions in the tree; a larger trace shows its first ones."""

MAX_BRANCHES = 12
"""Maximum branches of one transaction when folded; branches with failures are always drawn."""

TURN, CORNER = 12, 6
"""Distance at which a line turns down, and the radius of its corners."""

MAX_LABEL_CHARACTERS = 23


class TreeBox(msgspec.Struct, frozen=True):
    """A transaction and its position in the tree."""

    x: int
    y: int
    tx_hash: str
    label: str
    call: str
    outcome: ShownOutcome
    returned: bool
    """Whether its incoming message bounced."""

    folded: int
    """Transactions after it that are folded away."""

    @property
    def kind(self) -> str:
        """Style of the box: bad if it failed, returned if its message bounced, else plain."""
        return BAD if self.outcome.kind == BAD else "returned" if self.returned else "plain"


class Edge(msgspec.Struct, frozen=True):
    """A message from one box to another: the line and the position of its labels."""

    path: str
    x: int
    y: int
    value: str
    opcode: str
    kind: str
    """bounced, bad if the transaction it caused failed, or plain."""


class Tree(msgspec.Struct, frozen=True):
    """A drawn trace; ``folded`` transactions are in fan-outs, ``hidden`` ones did not fit."""

    boxes: list[TreeBox]
    edges: list[Edge]
    width: int
    height: int
    hidden: int
    folded: int


Placed = list[tuple["Transaction", int, int]]
"""Transactions with their column and row."""


def draw_tree(transactions: Sequence[Transaction], names: Names, *, fold: bool = False) -> Tree:
    """Draw a trace, sorted by logical time; with ``fold`` only some branches of wide fan-outs."""
    outcomes = {each.hash: judge(each, names) for each in transactions}
    folded = fold_fans(transactions, outcomes) if fold else {}
    gone = _list_branch(transactions, [branch for cut in folded.values() for branch in cut])
    kept = [each for each in transactions if each.hash not in gone]
    shown = kept[:MAX_BOXES]
    placed = place_tree(shown)
    counts = {parent: len(_list_branch(transactions, cut)) for parent, cut in folded.items()}
    boxes = {
        each.hash: _draw_box(each, (column, row), names, outcomes[each.hash], counts)
        for each, column, row in placed
    }
    parents = _find_parents(shown)
    edges = [
        _draw_edge(boxes[parents[each.hash]], boxes[each.hash], each.in_msg)
        for each, _column, _row in placed
        if each.hash in parents and each.in_msg is not None
    ]
    return Tree(
        list(boxes.values()),
        edges,
        width=max(box.x for box in boxes.values()) + BOX_WIDTH + MARGIN,
        height=max(box.y for box in boxes.values()) + BOX_HEIGHT + MARGIN,
        hidden=len(kept) - len(shown),
        folded=len(transactions) - len(kept),
    )


def fold_fans(
    transactions: Sequence[Transaction], outcomes: Mapping[str, ShownOutcome]
) -> dict[str, list[str]]:
    """Return the branches to leave out, all without failure or bounce, by their parent."""
    parents = _find_parents(transactions)
    notable: set[str] = set()
    for each in transactions:
        at: str | None = each.hash
        is_notable = outcomes[each.hash].kind == BAD or (each.in_msg and each.in_msg.bounced)
        while is_notable and at is not None and at not in notable:
            notable.add(at)
            at = parents.get(at)
    branches: dict[str, list[str]] = {}
    for child, parent in parents.items():
        branches.setdefault(parent, []).append(child)
    return {
        parent: cut
        for parent, found in branches.items()
        if len(found) > MAX_BRANCHES
        and (cut := [each for each in found[MAX_BRANCHES - 2 :] if each not in notable])
    }


def _list_branch(transactions: Sequence[Transaction], starts: Sequence[str]) -> set[str]:
    """Return the hashes in ``starts`` and of all their descendants."""
    found = set(starts)
    parents = _find_parents(transactions)
    for each in transactions:  # sorted by logical time: parents come first
        if parents.get(each.hash) in found:
            found.add(each.hash)
    return found


class OutlineEntry(msgspec.Struct, frozen=True):
    """A transaction in a foldable list, followed by its descendants."""

    transaction: Transaction
    outcome: ShownOutcome
    size: int
    """Number of its descendants."""

    closes: int
    """Lists that end after it."""


def list_outline(transactions: Sequence[Transaction], names: Names) -> list[OutlineEntry]:
    """Return the transactions of a trace, parents before children, as a foldable list."""
    placed = place_tree(transactions)
    depths = [column for _each, column, _row in placed] + [0]
    sizes = [0] * len(placed)
    ends: list[tuple[int, int]] = []  # depth and index of the nearest later one that is no deeper
    for at in reversed(range(len(placed))):
        while ends and ends[-1][0] > depths[at]:
            ends.pop()
        sizes[at] = (ends[-1][1] if ends else len(placed)) - at - 1
        ends.append((depths[at], at))
    return [
        OutlineEntry(each, judge(each, names), sizes[at], max(0, depth - depths[at + 1]))
        for at, (each, depth, _row) in enumerate(placed)
    ]


def place_tree(transactions: Sequence[Transaction]) -> Placed:
    """Return each transaction with its column (depth) and row, parents before children.

    The first child is in the row of its parent, each further one in a new row.
    """
    parents = _find_parents(transactions)
    children: dict[str, list[Transaction]] = {each.hash: [] for each in transactions}
    for each in transactions:
        if each.hash in parents:
            children[parents[each.hash]].append(each)
    placed: Placed = []
    rows = -1
    todo = [(each, 0, False) for each in reversed(transactions) if each.hash not in parents]
    while todo:
        each, column, beside = todo.pop()
        rows += 0 if beside else 1
        placed.append((each, column, rows))
        kids = children[each.hash]
        todo += [(kid, column + 1, at == 0) for at, kid in reversed(list(enumerate(kids)))]
    return placed


def _find_parents(transactions: Sequence[Transaction]) -> dict[str, str]:
    """Map each transaction to the one that sent its message, if that is in ``transactions``."""
    senders = {message.hash: each.hash for each in transactions for message in each.out_msgs}
    return {
        each.hash: senders[each.in_msg.hash]
        for each in transactions
        if each.in_msg is not None and each.in_msg.hash in senders
    }


def _draw_box(
    transaction: Transaction,
    place: tuple[int, int],
    names: Names,
    outcome: ShownOutcome,
    folded: Mapping[str, int],
) -> TreeBox:
    column, row = place
    message = transaction.in_msg
    kind = write_kind(transaction.description.type)
    call = name_call(transaction.in_msg) or ("no opcode" if transaction.in_msg else kind)
    return TreeBox(
        x=MARGIN + column * COLUMN,
        y=MARGIN + row * ROW,
        tx_hash=transaction.hash,
        label=clip(names.label(transaction.account), MAX_LABEL_CHARACTERS),
        call=clip(call, MAX_LABEL_CHARACTERS),
        outcome=outcome,
        returned=message is not None and bool(message.bounced),
        folded=folded.get(transaction.hash, 0),
    )


def _draw_edge(start: TreeBox, end: TreeBox, message: Message) -> Edge:
    x1, y1 = start.x + BOX_WIDTH, start.y + BOX_HEIGHT // 2
    x2, y2 = end.x, end.y + BOX_HEIGHT // 2
    path = f"M{x1} {y1}H{x2}"
    if y1 != y2:
        turn = x1 + TURN
        path = f"M{x1} {y1}H{turn - CORNER}Q{turn} {y1} {turn} {y1 + CORNER}"
        path += f"V{y2 - CORNER}Q{turn} {y2} {turn + CORNER} {y2}H{x2}"
    return Edge(
        path,
        x=x2 - MARGIN,
        y=y2 - MARGIN // 2,
        value="" if message.value is None else write_brief(int(message.value)),
        opcode=write_opcode(message.opcode),
        kind="bounced" if message.bounced else BAD if end.outcome.kind == BAD else "plain",
    )


class BarSlice(msgspec.Struct, frozen=True):
    """A segment of a stacked bar; ``start`` and ``width`` in percent."""

    name: str
    number: int
    start: float
    width: float
    shade: int


def slice_bar(numbers: Mapping[str, int]) -> list[BarSlice]:
    """Return the segments of a stacked bar, in percent of the sum; zeros are left out."""
    total = sum(numbers.values())
    slices: list[BarSlice] = []
    start = 0.0
    for shade, (name, number) in enumerate(numbers.items(), 1):
        if number > 0:
            width = 100 * number / total
            slices.append(BarSlice(name, number, round(start, 3), round(width, 3), shade))
            start += width
    return slices


def show_transaction(question: PageRequest) -> Shown | Redirect:
    """Show a transaction by its hash, or raise AnswerNotFound, of a lake with gaps NotCovered."""
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
        "fees": slice_bar(split_fees(transaction)),
        "forward": sum(int(message.fwd_fee or 0) for message in transaction.out_msgs),
        "coins": COINS,
        "result": judge(transaction, question.names),
    }
    return Shown("transaction.html", f"Transaction {tx_hash.hex()[:8]}", values)


def ask_transactions(question: PageRequest, keys: list[Row]) -> Transactions:
    """Return the transactions with ``keys`` and collect the names of their accounts."""
    found = question.ask(answer_transactions, keys)
    named = map(parse_address, found.address_book)
    question.names.learn({}, read_metadata(question.call, named))
    return found


def _read_bag(question: PageRequest, tx_hash: bytes, keys: list[Row]) -> str:
    """Return the transaction as a base64 bag of cells; "" if an earlier version left it out."""
    try:
        bags = read_bags(question.call.reader, list(read_records(question.call, keys)))
    except NotDerived:
        return ""
    return encode_bytes(bags[tx_hash])


MAX_ACTIONS = 100
MAX_FAILURES = 100


def show_trace(question: PageRequest) -> Shown:
    """Show a trace by its id, or by a transaction or message in it; raises as ``find_trace``."""
    trace_id = find_trace(question.call, read_hash(question))
    try:
        found = question.ask(answer_traces, TracesQuery(trace_id=(trace_id,), limit=1, offset=0))
    except RequestInvalid as error:
        text = {"text": f"This trace is too large to show: {error}", "again": ""}
        return Shown("error.html", "Trace", text, status=422)
    trace = found.traces[0]
    known = trace.transactions or {}
    transactions = [known[each] for each in trace.transactions_order or ()]
    judged = [(each, judge(each, question.names)) for each in transactions]
    query = ActionsQuery(trace_id=(trace_id,), limit=MAX_ACTIONS, offset=0, sort="asc")
    is_open = question.argument("open") == "all"
    values = {
        "trace": trace,
        "actions": ask_or_say(lambda: list_actions(question, query)),
        "transactions": transactions,
        "failures": [pair for pair in judged if pair[1].kind == BAD][:MAX_FAILURES],
        "tree": draw_tree(transactions, question.names, fold=not is_open) if transactions else None,
        "is_open": is_open,
        "here": f"/trace/{trace_id.hex()}",
        "outline": list_outline(transactions, question.names),
    }
    return Shown("trace.html", f"Trace {trace_id.hex()[:8]}", values)


def find_trace(call: Call, any_hash: bytes) -> bytes:
    """Return the id of the trace of a hash, or raise AnswerNotFound or NotCovered."""
    ids = find_trace_ids(call.reader, tx_hashes=[any_hash])
    ids = ids or find_trace_ids(call.reader, msg_hashes=[any_hash])
    if not ids:
        check_no_gap(call.reader)
        raise AnswerNotFound(f"no trace with transaction or message {any_hash.hex()}")
    return ids[0]


def list_actions(question: PageRequest, query: ActionsQuery) -> list[WrittenAction]:
    """Return actions as sentences, after learning the names in them."""
    return write_actions(question.ask(get_actions, query).actions, question.names)
