"""Rules: a pattern, and what the action is that its blocks make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.pattern import Match, Pattern


class Draft(NamedTuple):
    """What a rule makes of a match.

    ``type`` is the name in action ids; ``served`` the type of the action where that is another.
    ``more`` are blocks beside those of the match that belong to it. ``is_broken`` marks an action
    that did something else than it was asked for.
    """

    type: str
    columns: Columns
    failed: bool = False
    served: str | None = None
    notes: Mapping[str, Any] | None = None
    more: Sequence[Block] = ()
    extra_accounts: Sequence[str] = ()
    is_broken: bool = False


class Rule(NamedTuple):
    """One matcher; ``make`` returns None when the match is none after all.

    It raises one of ``pattern.UNREADABLE`` where it is one, but lacks a fact.
    """

    name: str
    pattern: Pattern
    make: Callable[[Match], Draft | None]
