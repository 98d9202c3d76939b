"""Running the rules over the blocks of one trace.

Blocks are found by opcode and by type, so a rule costs nothing where its anchor does not occur,
and the work grows with the number of messages alone.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from ingest.action.block import CALL, Block, walk
from ingest.action.pattern import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from ingest.action.interface import Interfaces
    from ingest.action.pattern import Head, Match
    from ingest.action.rule import Draft, Rule


class Index:
    """The blocks that are on top, by the heads of patterns."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        """Take all top blocks."""
        self._by_head: dict[Head, dict[Block, None]] = {}
        self.heads = self._by_head.keys()
        self._all: dict[Block, int] = {}
        self._numbers = count()
        for block in blocks:
            self.add(block)

    def add(self, block: Block) -> None:
        """Take one more block."""
        self._all[block] = next(self._numbers)
        for head in _list_heads(block):
            self._by_head.setdefault(head, {})[block] = None

    def remove(self, block: Block) -> None:
        """Forget a block that is not on top any more."""
        self._all.pop(block, None)
        for head in _list_heads(block):
            self._by_head.get(head, {}).pop(block, None)

    def find(self, heads: AbstractSet[Head]) -> list[Block]:
        """Return the blocks of some heads, of all without heads, breadth first.

        Blocks of one depth and one logical time stay in the order in which they were added.
        """
        found: Iterable[Block] = self._all
        if heads:
            found = {block for head in heads for block in self._by_head.get(head, ())}
        return sorted(found, key=self._place)

    def _place(self, block: Block) -> tuple[int, int, int]:
        return block.depth, block.min_lt, self._all[block]


def run_rules(roots: Sequence[Block], rules: Sequence[Rule], interfaces: Interfaces) -> list[Block]:
    """Apply the rules in their order; return the top blocks, breadth first."""
    index = Index(walk(roots))
    for rule in rules:
        heads = rule.pattern.heads
        if heads and heads.isdisjoint(index.heads):
            continue
        for block in index.find(heads):
            if block.container is None:
                _apply(rule, block, interfaces, index)
    return index.find(frozenset())


def _apply(rule: Rule, block: Block, interfaces: Interfaces, index: Index) -> None:
    match = rule.pattern.match(block)
    if match is None:
        return
    try:
        draft = rule.make(match, interfaces)
    except UNREADABLE:
        # No match, as for any shape that does not fit.
        return
    if draft is None:
        return
    merged = _merge(rule, match, draft)
    for taken in merged.children:
        index.remove(taken)
    index.add(merged)


def _merge(rule: Rule, match: Match, draft: Draft) -> Block:
    block = Block(
        draft.type, (), draft.columns, served=draft.served, failed=draft.failed, rule=rule.name
    )
    block.notes = draft.notes or {}
    block.extra_accounts = list(draft.extra_accounts)
    block.merge([*match.blocks, *draft.more])
    return block


def _list_heads(block: Block) -> list[Head]:
    heads: list[Head] = [block.type]
    if block.type == CALL and block.opcode is not None:
        heads.append(block.opcode)
    return heads
