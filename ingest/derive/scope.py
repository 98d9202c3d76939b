"""Which ranges of a lake a rebuild derives again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tonlake.ingest.span import Span
    from tonlake.lake.log.place import Place


def _ignore(_done: int, _total: int) -> None:
    """Show no progress."""


class Scope(NamedTuple):
    """The ranges of a rebuild; by default all that are not up to date."""

    everything: bool = False
    """Whether ranges that this version has derived already are derived again."""

    within: Sequence[Span] | None = None
    """Masterchain blocks whose ranges, and no others, are derived again; None for all."""

    on_range: Callable[[int, int], None] = _ignore
    """Called after each range with the number of ranges done and of all."""

    def covers(self, place: Place) -> bool:
        """Tell whether a range begins in the masterchain blocks of ``within``."""
        return self.within is None or any(
            span.first <= place.first <= span.last for span in self.within
        )
