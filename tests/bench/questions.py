"""The questions: the methods that answer them, their arguments and their targets."""

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any, NamedTuple

from tests.bench.access import Access
from tests.bench.arguments import Draw
from tests.bench.clock import Samples, sample
from tests.bench.figure import Figure, Target, at_least, at_most
from tests.bench.peer.asker import Peer
from tests.ingest.simulator.model import encode_hash

LOOKUP = {"value": at_most(0.5), "p99": at_most(3), "ratio": at_least(1)}
LARGE_LOOKUP = {"value": at_most(5), "ratio": at_least(1)}
FASTER, ANALYSIS = {"ratio": at_least(1)}, {"ratio": at_least(5)}
CHECKED_ANSWERS = 5
_CREATED_LT = 14
"""Column of the peer's messages."""

Keys = list[Any]
KeysOf = Callable[[Any], Keys]
Sides = tuple[KeysOf, KeysOf]
"""What must be equal in the answers of lake and peer, as functions of each side's rows."""


class Question(NamedTuple):
    """One kind of question: the method that answers it on both sides, and its arguments."""

    name: str
    method: str
    arguments: Sequence[Any]
    targets: dict[str, Target]
    keys: Sides


def _names(column: str) -> KeysOf:
    return lambda rows: [encode_hash(row[column]) for row in rows]


def _column(at: int) -> KeysOf:
    return lambda rows: [row[at] for row in rows]


def _set(keys: KeysOf) -> KeysOf:
    return lambda rows: sorted(set(keys(rows)))


def _numbers(rows: Sequence[tuple[Any, ...]]) -> Keys:
    return sorted(tuple(-1 if value is None else int(value) for value in row) for row in rows)


def _totals(rows: Sequence[tuple[Any, ...]]) -> Keys:
    return [int(row[-1]) for row in rows]


def list_questions(draw: Draw, count: int) -> list[Question]:
    """Return all questions with ``count`` arguments each, or as many as exist."""
    hot, cold = _repeat(draw.hot, count), draw.cold
    hash_of, peer_hash = _names("hash"), _column(1)
    transactions: Sides = hash_of, peer_hash
    sets: Sides = _set(hash_of), _set(peer_hash)
    messages: Sides = _set(_names("msg_hash")), _set(_column(3))
    # The peer has two rows per message, and orders messages of one logical time differently.
    newest_message: Sides = (
        lambda rows: [row["created_lt"] for row in rows[:1]],
        lambda rows: [row[_CREATED_LT] for row in rows[:1]],
    )
    pages = [
        Question(
            f"account, last {limit}, {kind}",
            "account_page",
            [(account, limit) for account in accounts],
            LOOKUP if limit <= 100 else FASTER,
            transactions,
        )
        for limit, kind, accounts in (
            *((10, "hot", hot), (10, "cold", cold), (100, "hot", hot), (100, "cold", cold)),
            (1000, "hot", hot),
        )
    ]
    thousand = [draw.accounts[at : at + 1000] for at in range(0, len(draw.accounts), 250)]
    states: Sides = _set(hash_of), _set(_column(3))
    totals: Sides = _totals, _totals
    balances: Sides = (lambda rows: [int(row.balance) for row in rows]), _column(1)
    anything = [None] * count
    opcodes = _repeat(draw.opcodes, count)
    single = [[account] for account in draw.accounts[:count]]
    thousands = _repeat([part for part in thousand if len(part) == 1000] or thousand, count)
    kinds: list[tuple[str, str, Sequence[Any], dict[str, Target], Sides]] = [
        ("transaction by hash", "transaction", draw.transactions, LOOKUP, transactions),
        ("message by hash", "message", draw.messages, LOOKUP, messages),
        ("messages by body hash", "body", draw.bodies, LOOKUP, newest_message),
        ("messages by opcode, last 100", "opcode", opcodes, LOOKUP, newest_message),
        ("transactions of a masterchain block", "block", draw.blocks, LOOKUP, sets),
        ("trace by any transaction", "trace", draw.transactions, LOOKUP, sets),
        ("top 100 by balance", "top_balances", anything, LOOKUP, balances),
        ("latest state of 1 account", "states", single, LOOKUP, states),
        ("latest states of 1,000 accounts", "states", thousands, LARGE_LOOKUP, states),
        ("all by hour and exit code", "by_hour", anything, ANALYSIS, (_numbers, _numbers)),
        ("top 100 destinations by value, all", "destinations", anything, ANALYSIS, totals),
    ]
    first, *others = (Question(*kind) for kind in kinds)
    return [first, *pages, *others]


def _repeat(values: Sequence[Any], count: int) -> list[Any]:
    return list(islice(cycle(values), count)) if values else []


def ask_questions(
    questions: Sequence[Question], lake: Access, peer: Peer | None, *, area: str, budget_s: float
) -> list[Figure]:
    """Ask every question on both sides, check that the answers agree, and return the figures."""
    figures = []
    for question in questions:
        if not question.arguments:
            continue
        ask_lake = getattr(lake, question.method)
        ask_peer = None if peer is None else getattr(peer, question.method)
        if ask_peer is not None:
            check_answers(question, ask_lake, ask_peer)
        ours = sample(ask_lake, question.arguments, budget_s=budget_s)
        theirs = None
        if peer is not None and ask_peer is not None:
            theirs = sample(ask_peer, question.arguments, pids=[peer.pid], budget_s=budget_s)
        figures.append(_compare(question, area, ours, theirs))
    return figures


def check_answers(
    question: Question, ask_lake: Callable[[Any], Any], ask_peer: Callable[[Any], Any]
) -> None:
    """Compare a sample of answers."""
    for argument in question.arguments[:CHECKED_ANSWERS]:
        of_lake, of_peer = question.keys
        ours, theirs = of_lake(ask_lake(argument)), of_peer(ask_peer(argument))
        if ours != theirs:
            raise AssertionError(
                f"{question.name} of {str(argument)[:100]}: the lake answers {len(ours)} "
                f"{str(ours)[:100]}, the peer {len(theirs)} {str(theirs)[:100]}"
            )


def _compare(question: Question, area: str, ours: Samples, theirs: Samples | None) -> Figure:
    figure = Figure(
        area=area,
        name=question.name,
        unit="ms",
        value=ours.median_ms,
        p99=ours.p99_ms,
        wall=ours.median_wall_ms,
        peer_p99=None if theirs is None else theirs.p99_ms,
        peer_wall=None if theirs is None else theirs.median_wall_ms,
        targets=question.targets,
    )
    return figure.beside(None if theirs is None else theirs.median_ms)
