"""The pattern language in which rules describe shapes of message trees.

``call(op)`` is a message with an opcode, ``comment(text)`` a TON transfer with a comment,
``built(type)`` a block that an earlier rule made (or a ``ton_transfer``), ``one_of(a, b)`` the
first that fits. A shape grows from its anchor:

* ``a.then(b)``: a message sent by ``a`` fits ``b``. ``a.then(b, c)``: a different block for each.
* ``a.after(p)``: the parent of ``a`` fits ``p``.
* ``a.maybe``: it may be missing. ``a.named("pay")``: the name of the block in the match.
* ``a.where(test)``: the block also passes a test.
* ``repeat(a, until=b)``: a chain of ``a`` that ends with ``b``.
* ``a.apart``: it must be present, but is not part of the action.

Excesses (d53276db) and bounces that a part of the shape sent back belong to it too; those of the
anchor only if the pattern names them, or is ``a.with_excesses``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Self

from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.rule import CALL, JETTON_TRANSFER, TRANSFER, Block, Head
from tonlake.ingest.errors import IngestError

EXCESS_OPCODE = 0xD53276DB
BOUNCE_OPCODE, NEW_BOUNCE_OPCODE = 0xFFFFFFFF, 0xFFFFFFFE
"""Bounced messages; the new form is TEP-503's, since global version 12."""
BOUNCES = (BOUNCE_OPCODE, NEW_BOUNCE_OPCODE)
_ABSORBED = {EXCESS_OPCODE, *BOUNCES}

UNREADABLE = (IngestError, LookupError, ValueError, TypeError, AttributeError)
"""Errors raised by a body or an interface that does not follow the protocol."""


class Match:
    """The blocks of a shape, some of them with names."""

    interfaces: Interfaces
    """Facts of accounts, for the rule that matched."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.blocks: list[Block] = [block]
        self.names: dict[str, list[Block]] = {}

    def add(self, other: Match, *, apart: bool = False) -> None:
        """Add the names of another match, and its blocks unless they stay apart."""
        if not apart:
            self.blocks += other.blocks
        for name, blocks in other.names.items():
            self.names.setdefault(name, []).extend(blocks)

    def absorb(self, block: Block) -> None:
        """Add the excesses and bounces that a block sent."""
        self.blocks += [after for after in block.next if after.opcode in _ABSORBED]

    def __getitem__(self, name: str) -> Block:
        """Return the block with a name; raise KeyError if there is none."""
        return self.names[name][0]

    def get(self, name: str) -> Block | None:
        """Return the block with a name; None if there is none."""
        blocks = self.names.get(name)
        return blocks[0] if blocks else None

    def column(self, name: str, column: str) -> Any:  # noqa: ANN401 - columns are of any type
        """Return a column of the block with a name; None if there is no such block."""
        blocks = self.names.get(name)
        return blocks[0][column] if blocks else None

    def all(self, name: str) -> list[Block]:
        """Return all blocks with a name."""
        return self.names.get(name, [])

    def __contains__(self, name: str) -> bool:
        return name in self.names


class Pattern:
    """A block of a shape with its relatives; methods return changed copies."""

    def __init__(self, *heads: Head) -> None:
        """Match blocks with one of the heads; without heads, any block."""
        self.heads = frozenset(heads)
        self.optional = False
        self._name = ""
        self._children: tuple[Pattern, ...] = ()
        self._parent: Pattern | None = None
        self._test: Callable[[Block], bool] | None = None
        self._is_apart = False
        self._has_excesses = False

    def then(self, *children: Pattern) -> Self:
        """Require child blocks, a different one for each pattern."""
        return self._change(_children=(*self._children, *children))

    def after(self, parent: Pattern) -> Self:
        """Require the parent block."""
        return self._change(_parent=parent)

    def where(self, test: Callable[[Block], bool]) -> Self:
        """Require that the block passes a test."""
        return self._change(_test=test)

    def named(self, name: str) -> Self:
        """Name the block in the match."""
        return self._change(_name=name)

    @property
    def with_excesses(self) -> Self:
        """A copy that includes its excesses and bounces even as the anchor."""
        return self._change(_has_excesses=True)

    @property
    def apart(self) -> Self:
        """A copy that is required but remains a separate block."""
        return self._change(_is_apart=True)

    @property
    def maybe(self) -> Self:
        """A copy that may be missing."""
        return self._change(optional=True)

    @property
    def demands(self) -> Iterator[frozenset[Head]]:
        """Heads of the other required blocks: at least one block of each set must exist."""
        beside = (*self._children, *(() if self._parent is None else (self._parent,)))
        for part in beside:
            if part.optional:
                continue
            if part.heads:
                yield part.heads
            yield from part.demands

    def has_head(self, block: Block) -> bool:
        """Return whether the block has one of the heads."""
        return not self.heads or not self.heads.isdisjoint(block.heads)

    def fits(self, block: Block) -> bool:
        """Return whether the block itself fits, regardless of its relatives."""
        return self.has_head(block) and (self._test is None or passes(self._test, block))

    def match(self, block: Block) -> Match | None:
        """Return the blocks of the shape around one; None if it does not fit."""
        if not self.fits(block) or not self._may_hang(block):
            return None
        found = Match(block)
        if self._name:
            found.names[self._name] = [block]
        if not self._match_children(block, found) or not self._match_parent(block, found):
            return None
        if self._has_excesses:
            found.absorb(block)
        return found

    def take(self, block: Block, found: Match) -> bool:
        """Match a part and add it to ``found``; return whether it fits."""
        part = self.match(block)
        if part is None:
            return False
        part.absorb(block)
        found.add(part, apart=self._is_apart)
        return True

    def _may_hang(self, block: Block) -> bool:
        """Return whether the parent of the block has the right head.

        This is checked first: each message of a long chain may be an anchor whose descendants form
        a chain just as long.
        """
        parent = self._parent
        if parent is None or parent.optional:
            return True
        return block.previous is not None and parent.has_head(block.previous)

    def _match_children(self, block: Block, found: Match) -> bool:
        left = list(self._children)
        for after in block.following if left else ():
            for child in left:
                if child.take(after, found):
                    left.remove(child)
                    break
            if not left:
                break
        return all(child.optional for child in left)

    def _match_parent(self, block: Block, found: Match) -> bool:
        if self._parent is None:
            return True
        before = block.previous
        return (before is not None and self._parent.take(before, found)) or self._parent.optional

    def _change(self, **changes: object) -> Self:
        twin = copy.copy(self)
        for name, value in changes.items():
            setattr(twin, name, value)
        return twin


class Choice(Pattern):
    """The first of several patterns that fits; each option has its own requirements."""

    def __init__(self, *options: Pattern) -> None:
        """Set the options in the order of trial."""
        super().__init__(*(head for option in options for head in option.heads))
        if not all(option.heads for option in options):
            self.heads = frozenset()
        self._options = options

    def match(self, block: Block) -> Match | None:
        """Return the match of the first option that fits, with the parts required of all."""
        for option in self._options:
            found = option.match(block)
            if found is None:
                continue
            if self._name:
                found.names.setdefault(self._name, []).append(block)
            if self._test is not None and not passes(self._test, block):
                return None
            if self._match_children(block, found) and self._match_parent(block, found):
                return found
        return None


class Chain(Pattern):
    """A chain of blocks of one pattern, each the child of the previous, with another at the end."""

    def __init__(self, link: Pattern, *, until: Pattern) -> None:
        super().__init__(*link.heads, *until.heads)
        self._link, self._end = link, until

    def match(self, block: Block) -> Match | None:
        """Return the match of the whole chain, however long it is."""
        found = Match(block)
        found.blocks.clear()
        while True:
            if self._end.take(block, found):
                return found
            if not self._link.take(block, found):
                return None
            after = self._choose(block)
            if after is None:
                return found if self._end.optional else None
            block = after

    def _choose(self, block: Block) -> Block | None:
        """Return the next block of the chain: the end if present, else the next link."""
        following = block.following
        for pattern in (self._end, self._link):
            for after in following:
                if pattern.match(after) is not None:
                    return after
        return None


def passes(test: Callable[[Block], bool], block: Block) -> bool:
    """Return whether a block passes a test; False if the message is not as the test expects."""
    try:
        return test(block)
    except UNREADABLE:
        return False


def call(*opcodes: int, name: str = "") -> Pattern:
    """Return the pattern of a message with one of the opcodes; without opcodes, of any call."""
    return Pattern(*(opcodes or (CALL,))).named(name)


def built(*types: str, name: str = "") -> Pattern:
    """Return the pattern of a block of one of the types."""
    return Pattern(*types).named(name)


def jettons(name: str = "", *, carrying: int | None = None) -> Pattern:
    """Return the pattern of a transfer of jettons, by the opcode that they carry."""
    pattern = built(JETTON_TRANSFER, name=name)
    if carrying is None:
        return pattern
    return pattern.where(
        lambda block: bool(block["payload"]) and block["payload"].peek_opcode() == carrying
    )


def comment(*comments: str) -> Pattern:
    """Return the pattern of a TON transfer with one of the comments."""
    return Pattern(*((TRANSFER, comment) for comment in comments))


anything, one_of, repeat = Pattern, Choice, Chain
"""What the classes are called in rules."""


def relay(*links: Pattern) -> Pattern:
    """Return the pattern of messages of which each causes the next."""
    return reduce(lambda later, earlier: earlier.then(later), reversed(links))
