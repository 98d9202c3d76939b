"""Classifies a trace into actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.derive.action.basic import build_blocks
from tonlake.ingest.derive.action.block import DEPLOY, GASLESS, MARKERS, unlink, walk
from tonlake.ingest.derive.action.engine import RuleBook, run_rules
from tonlake.ingest.derive.action.ghost import make_ghosts
from tonlake.ingest.derive.action.node import build_nodes
from tonlake.ingest.derive.action.precedence import RULES
from tonlake.ingest.derive.action.protocol.dedust_deposit import merge_deposits
from tonlake.ingest.derive.action.protocol.dedust_v2_liquidity import merge_sides
from tonlake.ingest.derive.action.row import Action, make_actions, make_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.model import Trace
    from tonlake.ingest.derive.action.rule import Rule

MAX_NODES = 4000
"""Maximum nodes of a trace to which rules apply; larger traces have only basic actions."""

_BOOK = RuleBook(RULES)


class Classified(NamedTuple):
    """The classification of a trace.

    ``state`` is ok, or broken: a part of the trace or a fact that a rule needs is unknown, or
    jettons arrived at an owner other than the intended one.
    """

    state: str
    actions: list[Action]


def classify(
    trace: Trace, interfaces: Interfaces, rules: Sequence[Rule] | None = None
) -> Classified:
    """Return the actions of a trace; ``rules`` defaults to all. Never raises for a message."""
    transactions = trace.transactions
    if len(transactions) == 1 and transactions[0].is_tick_tock:
        return Classified("ok", [])
    blocks = find_blocks(trace, interfaces, rules)
    actions = list(make_actions(blocks))
    unlink(blocks)
    actions = actions or make_ghosts(trace, interfaces) or [make_unknown(trace)]
    is_broken = trace.state != "complete" or any(action.is_broken for action in actions)
    return Classified("broken" if is_broken else "ok", actions)


def find_blocks(
    trace: Trace, interfaces: Interfaces, rules: Sequence[Rule] | None = None
) -> list[Block]:
    """Return the top blocks of a trace, and the deployments and gasless requests inside them."""
    roots = build_blocks(build_nodes(trace))
    blocks = list(walk(roots))
    if len(blocks) <= MAX_NODES:
        book = _BOOK if rules is None else RuleBook(rules)
        blocks = merge_sides(merge_deposits(run_rules(roots, book, interfaces)))
    markers = list(_lift_markers(blocks))
    lifted = [block for kind in (DEPLOY, GASLESS) for block in markers if block.type == kind]
    return [*blocks, *lifted]


def _lift_markers(blocks: Sequence[Block]) -> Iterator[Block]:
    todo = list(blocks)
    while todo:
        block = todo.pop()
        if block.type in MARKERS:
            yield block
        todo += block.children
