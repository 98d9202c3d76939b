"""Classifies a trace into actions: applies the rules to its blocks, in order of precedence.

Blocks and rules are both indexed by opcode and type: a rule whose anchor does not occur is never
tried, and the work grows only with the number of messages.
"""

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from typing import NamedTuple

from tonlake.ingest.derive.action.basic import build_blocks, make_ghosts
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Trace, build_nodes
from tonlake.ingest.derive.action.pattern import UNREADABLE
from tonlake.ingest.derive.action.precedence import RULES
from tonlake.ingest.derive.action.protocol import dedust, dedust_v2, exchange
from tonlake.ingest.derive.action.row import ActionRow, make_actions, make_unknown
from tonlake.ingest.derive.action.rule import (
    DEPLOY,
    GASLESS,
    MARKERS,
    Block,
    Head,
    Rule,
    unlink,
    walk,
)


class TopBlocks:
    """The top blocks, by the heads of patterns."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._by_head: dict[Head, dict[Block, None]] = {}
        self._all: dict[Block, int] = {}
        self._numbers = count()
        for block in blocks:
            self.add(block)

    def add(self, block: Block) -> None:
        """Add a block."""
        self._all[block] = next(self._numbers)
        for head in block.heads:
            self._by_head.setdefault(head, {})[block] = None

    def remove(self, block: Block) -> None:
        """Remove a block that is no longer on top."""
        self._all.pop(block, None)
        for head in block.heads:
            self._by_head.get(head, {}).pop(block, None)

    def find(self, heads: AbstractSet[Head]) -> list[Block]:
        """Return the blocks with one of the heads (all if there are none), breadth first."""
        found: Collection[Block] = self._all
        if heads:
            present = heads & self._by_head.keys()
            found = {block for head in present for block in self._by_head[head]}
        if len(found) < 2:  # noqa: PLR2004 - nothing to sort
            return list(found)
        return sorted(found, key=lambda block: (block.depth, block.min_lt, self._all[block]))

    def has(self, demands: Iterable[AbstractSet[Head]]) -> bool:
        """Return whether each set of heads has a block."""
        by_head = self._by_head
        return all(any(by_head.get(head) for head in heads) for heads in demands)


class RuleBook:
    """Rules in order, indexed by the heads of their patterns; sets of rules are bit masks."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Index the rules in order of precedence."""
        self.rules = rules
        self.demands = [frozenset(rule.pattern.demands) for rule in rules]
        self._always = 0
        self._by_head: dict[Head, int] = {}
        for place, rule in enumerate(rules):
            if not rule.pattern.heads:
                self._always |= 1 << place
            for head in rule.pattern.heads:
                self._by_head[head] = self._by_head.get(head, 0) | 1 << place

    def find(self, blocks: Iterable[Block]) -> int:
        """Return the bit mask of the rules that may apply to some blocks."""
        found = self._always
        for block in blocks:
            for head in block.heads:
                found |= self._by_head.get(head, 0)
        return found


def run_rules(roots: Sequence[Block], book: RuleBook, interfaces: Interfaces) -> list[Block]:
    """Apply the rules in order; return the top blocks, breadth first."""
    blocks = list(walk(roots))
    index = TopBlocks(blocks)
    due = book.find(blocks)
    while due:
        place = (due & -due).bit_length() - 1
        rule = book.rules[place]
        for block in index.find(rule.pattern.heads) if index.has(book.demands[place]) else ():
            merged = _apply(rule, block, interfaces, index) if block.container is None else None
            if merged is not None:
                due |= book.find((merged,))
        due &= -1 << place + 1  # Clear the bits of this rule and of those before it.
    return index.find(frozenset())


def _apply(rule: Rule, block: Block, interfaces: Interfaces, index: TopBlocks) -> Block | None:
    """Return the merged block of a rule that matches ``block``; None if it does not match."""
    match = rule.pattern.match(block)
    if match is None:
        return None
    match.interfaces = interfaces
    try:
        merged = rule.make(match)
    except UNREADABLE:
        block.is_broken = True
        return None
    if merged is None:
        return None
    merged.rule = rule.name
    merged.merge([*match.blocks, *merged.more])
    merged.more = ()  # they are children now: a second reference would close a cycle
    for taken in merged.children:
        index.remove(taken)
    index.add(merged)
    return merged


MAX_NODES = 4000
"""Maximum nodes of a trace to which rules apply; larger traces have only basic actions."""

_BOOK = RuleBook(RULES)


class Classified(NamedTuple):
    """Actions; ``state`` is broken if a part or a fact is unknown, or jettons went astray."""

    state: str
    actions: list[ActionRow]


def classify(trace: Trace, interfaces: Interfaces) -> Classified:
    """Return the actions of a trace. Never raises for a message."""
    transactions = trace.transactions
    if len(transactions) == 1 and transactions[0].is_tick_tock:
        return Classified("ok", [])
    blocks = find_blocks(trace, interfaces)
    actions = list(make_actions(blocks))
    unlink(blocks)
    actions = actions or make_ghosts(trace, interfaces) or [make_unknown(trace)]
    is_broken = trace.state != "complete" or any(action.is_broken for action in actions)
    return Classified("broken" if is_broken else "ok", actions)


def find_blocks(trace: Trace, interfaces: Interfaces) -> list[Block]:
    """Return the top blocks of a trace, and the deployments and gasless requests inside them."""
    roots = build_blocks(build_nodes(trace))
    blocks = list(walk(roots))
    if len(blocks) <= MAX_NODES:
        blocks = run_rules(roots, _BOOK, interfaces)
        for protocol in (dedust, dedust_v2):
            sides = {protocol.WHOLE, protocol.PARTIAL}
            blocks = exchange.merge_sides(blocks, sides, protocol.merge_deposit)
    markers, todo = [], list(blocks)
    while todo:
        block = todo.pop()
        if block.type in MARKERS:
            markers.append(block)
        todo += block.children
    lifted = [block for kind in (DEPLOY, GASLESS) for block in markers if block.type == kind]
    return [*blocks, *lifted]
