"""Applies the rules to the blocks of one trace.

Blocks and rules are both indexed by opcode and type: a rule whose anchor does not occur is never
tried, and the work grows only with the number of messages.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.block import Block, walk
from tonlake.ingest.derive.action.pattern import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from tonlake.ingest.derive.action.block import Head
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match
    from tonlake.ingest.derive.action.rule import Draft, Rule


class Index:
    """The top blocks, by the heads of patterns."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        """Index all top blocks."""
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
        """Return the blocks with one of the heads (all if ``heads`` is empty), breadth first.

        Blocks of equal depth and logical time keep the order in which they were added.
        """
        found: Collection[Block] = self._all
        if heads:
            present = heads & self._by_head.keys()
            found = {block for head in present for block in self._by_head[head]}
        return sorted(found, key=self._place) if len(found) > 1 else list(found)

    def has(self, demands: Iterable[AbstractSet[Head]]) -> bool:
        """Return whether each set of heads has a block."""
        by_head = self._by_head
        return all(any(by_head.get(head) for head in heads) for heads in demands)

    def _place(self, block: Block) -> tuple[int, int, int]:
        return block.depth, block.min_lt, self._all[block]


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
    index = Index(blocks)
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


def _apply(rule: Rule, block: Block, interfaces: Interfaces, index: Index) -> Block | None:
    """Return the merged block of a rule that matches ``block``; None if it does not match."""
    match = rule.pattern.match(block)
    if match is None:
        return None
    match.interfaces = interfaces
    try:
        draft = rule.make(match)
    except UNREADABLE:
        block.is_broken = True
        return None
    if draft is None:
        return None
    merged = _merge(rule, match, draft)
    for taken in merged.children:
        index.remove(taken)
    index.add(merged)
    return merged


def _merge(rule: Rule, match: Match, draft: Draft) -> Block:
    block = Block(
        draft.type, (), draft.columns, served=draft.served, failed=draft.failed, rule=rule.name
    )
    block.notes = draft.notes or block.notes
    block.extra_accounts = draft.extra_accounts
    block.is_broken = draft.is_broken
    block.merge([*match.blocks, *draft.more])
    return block
