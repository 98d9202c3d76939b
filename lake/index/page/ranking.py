"""Accounts of several runs by balance, as if they were sorted together."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.lake.index.segment.segment import Run

_KEPT = 200
"""So many accounts are kept as they were read: it is the first page that is asked for."""

Ranked = tuple[int, int, bytes]
"""Balance, workchain and account."""


class Ranking:
    """The largest run's order, with places that other runs changed left out and put in."""

    def __init__(self, runs: Sequence[Run]) -> None:
        """Take runs in the order of their ranges."""
        self._base = max(runs, key=lambda run: len(run.richest))
        newest: dict[tuple[bytes, int], Ranked | None] = {}
        for run in reversed(runs):
            if run is self._base:
                self._skip_known(newest, runs)
                continue
            for number in run.richest:
                account, workchain = run.account_of(number)
                ranked = (run.balance[number], workchain, account)
                newest.setdefault((account, workchain), ranked)
        self._out = sorted(
            place
            for account, workchain in newest
            if (place := self._place_of(account, workchain)) is not None
            and newest[account, workchain] is not None
        )
        self._in = sorted(filter(None, newest.values()), key=_order)
        self._first: list[Ranked] | None = None

    def page(self, offset: int, limit: int) -> list[Ranked]:
        """Return a page, the richest first; equal balances by workchain and account."""
        if not self._in:
            return self._rank(offset, offset + limit)
        spare = len(self._in)
        first = max(0, offset - spare)
        last = offset + limit + len(self._out)
        left_out = set(self._out)
        ranked = enumerate(self._rank(first, last), first)
        kept = [account for at, account in ranked if at not in left_out]
        if not first:
            return sorted(kept + self._in, key=_order)[offset : offset + limit]
        edge = _order(self._ranked(first)) if first < len(self._base.richest) else None
        before = len(self._in) if edge is None else bisect_left(self._in, edge, key=_order)
        passed = first - bisect_left(self._out, first) + before
        merged = sorted(kept + self._in[before:], key=_order)
        return merged[offset - passed : offset - passed + limit]

    def _rank(self, first: int, last: int) -> list[Ranked]:
        """Return accounts of the largest run."""
        if last > _KEPT:
            return self._base.rank_accounts(first, last)
        if self._first is None:
            self._first = self._base.rank_accounts(0, _KEPT)
        return self._first[first:last]

    def _skip_known(
        self, newest: dict[tuple[bytes, int], Ranked | None], runs: Sequence[Run]
    ) -> None:
        """Note accounts of earlier runs whose place in the base is newer."""
        earlier = runs[: [run is self._base for run in runs].index(True)]
        for run in earlier:
            for number in run.richest:
                account, workchain = run.account_of(number)
                if self._base.newest_states([(workchain, account)])[0] is not None:
                    newest.setdefault((account, workchain), None)

    def _ranked(self, place: int) -> Ranked:
        number = self._base.richest[place]
        account, workchain = self._base.account_of(number)
        return self._base.balance[number], workchain, account

    def _place_of(self, account: bytes, workchain: int) -> int | None:
        number = self._base.find_account(account, workchain)
        if number is None:
            return None
        wanted = _order((self._base.balance[number], workchain, account))
        places = range(len(self._base.richest))
        place = bisect_left(places, wanted, key=lambda at: _order(self._ranked(at)))
        known = place < len(places) and self._base.richest[place] == number
        return place if known else None


def _order(ranked: Ranked) -> Ranked:
    balance, workchain, account = ranked
    return -balance, workchain, account
