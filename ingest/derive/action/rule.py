"""Rules: a pattern, and a function that makes an action from the matched blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tonlake.ingest.derive.action.block import Block, Columns
    from tonlake.ingest.derive.action.pattern import Match, Pattern


class Draft(NamedTuple):
    """The result of a rule for a match.

    ``type`` is the name in action ids; ``served`` the type of the action if it differs. ``more``
    are blocks that belong to the action in addition to the matched ones. ``is_broken`` marks an
    action that did something other than what was requested.
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
    """A rule; ``make`` returns None if the match turns out not to apply.

    It raises one of ``pattern.UNREADABLE`` if it applies, but a fact is missing.
    """

    name: str
    pattern: Pattern
    make: Callable[[Match], Draft | None]
