"""Rules, and the blocks of a trace that they merge into actions.

Initially every node is a block. A rule whose pattern matches merges the matched blocks into one,
which takes their place in the tree and keeps them as hidden children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.model import Message, Node, Transaction

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.pattern import Match, Pattern


_by_lt = attrgetter("min_lt")
Columns = dict[str, Any]
"""Columns of an action: source, destination, source_secondary, destination_secondary, asset,
asset2, asset_secondary, asset2_secondary, amount, value, opcode and the ``*_data`` of its type."""

WAY = ("source", "source_secondary", "destination", "destination_secondary")
"""Columns of the owners at both ends of a transfer, and of their wallets."""

Head = int | str | tuple[str, str]
"""A lookup key of rules for blocks: type, opcode of a call, or comment of a transfer."""

CALL, TRANSFER, DEPLOY, CLOCK = "call_contract", "ton_transfer", "contract_deploy", "tick_tock"
JETTON_TRANSFER = "jetton_transfer"
GASLESS = "gasless_request"
MARKERS = frozenset((DEPLOY, GASLESS))
"""Types of blocks that are inside others, but are shown as separate actions."""
EXTRA = "extra"
"""Column of facts added by later rules, by name."""
DEPLOYING = "deploying"
"""Head of blocks in which an account was deployed."""


_NO_NOTES: Mapping[str, Any] = MappingProxyType({})


class Block:
    """A step of a trace: a call, or what a rule recognized in several of them.

    ``type`` is the name in action ids, ``served`` the type of the action. ``columns`` are copied to
    the action, ``notes`` are facts for other rules only. ``extra_accounts`` are accounts of the
    action that are in no column. ``initiator`` is the node that sent the first message. ``opcode``
    is that of a call, None for any other block. ``more`` are blocks that belong to one made by a
    rule in addition to the matched ones. ``is_broken`` marks a block that contradicts itself or did
    something other than what was requested, or for which a rule lacked a fact.
    """

    __slots__ = (
        *("_heads", "children", "columns", "container", "deployments", "depth", "extra_accounts"),
        *("failed", "initiator", "is_broken", "min_lt", "more", "next", "nodes", "notes", "opcode"),
        *("previous", "rule", "served", "type"),
    )

    def __init__(
        self,
        block_type: str,
        columns: Columns | None = None,
        nodes: Sequence[Node] = (),
        *,
        served: str | None = None,
        failed: bool = False,
        notes: Mapping[str, Any] = _NO_NOTES,
        more: Sequence[Block] = (),
        extra_accounts: Sequence[str] = (),
    ) -> None:
        self.type = block_type
        self.served = served or block_type
        self.nodes = nodes
        self.columns = columns or {}
        self.opcode: int | None = self.columns.get("opcode") if block_type == CALL else None
        self.notes, self.more = notes, more
        self.extra_accounts = extra_accounts
        self.failed, self.is_broken = failed, False
        self.rule = ""
        self.children: list[Block] = []
        self.next: dict[Block, None] = {}
        self.previous: Block | None = None
        self.container: Block | None = None
        self.deployments: frozenset[str] = frozenset()
        self.initiator: Node | None = None
        self.min_lt = self.depth = 0
        if nodes:
            first = nodes[0]
            self.initiator, self.min_lt, self.depth = first.parent, first.start_lt, first.depth
        self._heads: tuple[Head, ...] = ()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - columns are of any type
        """Return a column or a note; None if the block has neither."""
        return self.columns.get(name, self.notes.get(name))

    def pick(self, *names: str, **others: str) -> Columns:
        """Return columns or notes under their own names, and those of ``others`` under new ones."""
        return {name: self[name] for name in names} | {
            name: self[other] for name, other in others.items()
        }

    @property
    def heads(self) -> tuple[Head, ...]:
        """Lookup keys for rules; read them only when all deployments of the block are known."""
        if not self._heads:
            heads: list[Head] = [self.type]
            if self.opcode is not None:
                heads.append(self.opcode)
            if self.comment is not None:
                heads.append((TRANSFER, self.comment))
            if self.deployments:
                heads.append(DEPLOYING)
            self._heads = tuple(heads)
        return self._heads

    @property
    def comment(self) -> str | None:
        """Comment of a TON transfer; None for any other block."""
        if self.type != TRANSFER:
            return None
        comment = (self.columns.get("ton_transfer_data") or {}).get("content")
        return comment if isinstance(comment, str) else None

    @property
    def message(self) -> Message:
        """Message of a block of one node."""
        message = self.nodes[0].message
        if message is None:
            raise LookupError("the block of a tick-tock transaction has no message")
        return message

    def arguments(self) -> Body:
        """Return a reader of the message after its opcode."""
        return self.message.arguments()

    def fields(self) -> Body:
        """Return a reader of the message after its opcode and its query id."""
        return self.message.arguments().skip(64)

    @property
    def transaction(self) -> Transaction:
        """Transaction of the block's first node."""
        return self.nodes[0].transaction

    @property
    def following(self) -> list[Block]:
        """Child blocks, by logical time."""
        return sorted(self.next, key=_by_lt) if len(self.next) > 1 else list(self.next)

    @property
    def siblings(self) -> list[Block]:
        """Other children of the same parent block."""
        if self.previous is None:
            return []
        return [block for block in self.previous.following if block is not self]

    def connect(self, block: Block) -> None:
        """Make another block a child of this one."""
        self.next[block] = None
        block.previous = self

    def all_nodes(self) -> Iterator[Node]:
        """Yield the nodes of the block and of all blocks inside it."""
        todo = [self]
        while todo:
            block = todo.pop()
            yield from block.nodes
            todo += block.children

    def merge(self, blocks: Iterable[Block]) -> None:
        """Replace blocks in the tree; the first of them in time determines the position."""
        mine = dict.fromkeys(blocks)
        first = min(mine, key=lambda each: (each.previous in mine, each.min_lt))
        self.initiator, self.min_lt, self.depth = first.initiator, first.min_lt, first.depth
        self.children += sorted(mine, key=_by_lt)
        previous = first.previous
        for block in mine:
            block.container = self
            self.deployments |= block.deployments
            self.min_lt = min(self.min_lt, block.min_lt)
            if block.previous is not None and block.previous not in mine:
                del block.previous.next[block]
            for after in block.next:
                if after not in mine:
                    self.connect(after)
        if previous is not None:
            previous.connect(self)


def unlink(blocks: Iterable[Block]) -> None:
    """Unlink blocks and nodes: collecting cycles would take a quarter of classification."""
    todo = list(blocks)
    while todo:
        block = todo.pop()
        todo += block.children
        todo += block.next
        block.children.clear()
        block.next.clear()
        for node in block.nodes:
            node.children.clear()


def walk(roots: Iterable[Block]) -> Iterator[Block]:
    """Yield all blocks of the trees under ``roots``, roots included, breadth first."""
    level = list(roots)
    while level:
        yield from level
        level = [after for block in level for after in block.following]


class Rule(NamedTuple):
    """A rule; ``make`` returns None if it does not apply, and raises UNREADABLE without a fact."""

    name: str
    pattern: Pattern
    make: Callable[[Match], Block | None]


def rule(pattern: Pattern, name: str = "") -> Callable[[Callable[[Match], Block | None]], Rule]:
    """Make a rule of the function below, which drafts the action of a match.

    By default it is named after its module and the function, such as ``dedust.swap``.
    """

    def make(draft: Callable[[Match], Block | None]) -> Rule:
        module = draft.__module__.rpartition(".")[2]
        return Rule(name or f"{module}.{draft.__name__}", pattern, draft)

    return make
