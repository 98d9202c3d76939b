"""Contracts as of now or of a masterchain block, and transfers of their assets."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any

from tonlake.api.errors import NotDerived
from tonlake.api.request.call import Call
from tonlake.api.text.encoding import Address, name_ranges
from tonlake.api.v3.page.book import pair_addresses, read_accounts
from tonlake.api.v3.page.operation import SpanPage, check_mc_seqno, check_no_contract_missing
from tonlake.ingest.derive.tvm.support import compare_versions, find_detector, name_remedy
from tonlake.lake.log.place import read_place
from tonlake.lake.log.snapshot import Snapshot
from tonlake.lake.schema import INTERFACES, UNANSWERED_METHODS
from tonlake.lake.unanswered import count_unanswered
from tonlake.queries.reader import Row

REMEDY = "run 'tonlake rebuild contracts'"
"""What a user can do if contracts were not detected."""


def name_addresses(prefix: str, addresses: Sequence[Address]) -> dict[str, Any]:
    """Return the two list parameters ``<prefix>_workchains`` and ``<prefix>s`` of a query."""
    pairs = pair_addresses(addresses)
    return {f"{prefix}_workchains": pairs["workchains"], f"{prefix}s": pairs["accounts"]}


def read_contracts(
    call: Call,
    name: str,
    addresses: Sequence[Address] = (),
    *,
    mc_seqno: int | None = None,
    **filters: object,
) -> list[Row]:
    """Return contracts at these addresses (empty: any) as of a block, from the query ``name``.

    Raises NotDerived if contracts of this lake were not detected, NotCovered if the lake does not
    cover the block, or the result is empty and a gap may be the cause.
    """
    check_derived(call, name)
    check_mc_seqno(call.reader, mc_seqno)
    rows = call.reader.rows(f"v3/{name}", **pair_addresses(addresses), mc_seqno=mc_seqno, **filters)
    if not rows and not filters.get("offset"):
        newest = call.reader.snapshot.known_ranges[-1][0]
        states = read_accounts(call, addresses)
        current = [address for address, row in states.items() if row["mc_seqno"] >= newest]
        # Accounts whose newest states the lake knows are no such contracts.
        if not addresses or len(current) < len(set(addresses)):
            _check_all_searched(call)
            check_no_contract_missing(call.reader, mc_seqno)
    return rows


def read_moves(call: Call, name: str, query: SpanPage, **filters: object) -> list[Row]:
    """Return a page of transfers within the spans of a query; raises as `read_contracts`."""
    check_derived(call, name)
    rows = call.reader.rows(f"v3/{name}", by_time=query.by_time, **query.filters(), **filters)
    if not rows:
        query.check_covered(call.reader, may_lie_in_gap=False)
        if not query.offset:
            _check_all_searched(call)
            query.check_covered(call.reader)
    return rows


_DEPENDS_ON = {
    "dns_records": "nft_items",
    "jetton_transfers": "jetton_wallets",
    "jetton_burns": "jetton_wallets",
    "nft_transfers": "nft_items",
}
"""The table whose contracts must be known for all rows of another one."""


def check_derived(call: Call, *tables: str) -> None:
    """Check that contracts were detected; ``tables`` are those of a list (none: all).

    Warns of contracts detected in part, of get-methods that could not be run and of a network
    newer than the engine. Raises NotDerived; TableLacking: a copy without these tables.
    """
    snapshot = call.reader.snapshot
    if INTERFACES.name in snapshot.lacking:
        raise snapshot.damaged[INTERFACES.name]
    if not is_derived(call):
        raise NotDerived(f"this lake has no contract detection; {REMEDY}")
    if ranges := call.reader.lasting("unsearched", partial(find_unsearched, snapshot)):
        call.warn(f"masterchain {name_ranges(ranges)} was not searched for contracts; {REMEDY}")
    if warn_of_unanswered(call, "contracts may be missing", *tables):
        return
    if gap := compare_versions(snapshot, [find_detector(call.settings.tvm)]).gap:
        call.warn(f"contracts may be missing: {gap}")


def warn_of_unanswered(call: Call, consequence: str, *tables: str) -> bool:
    """Warn if get-methods could not be run whose contracts rows of some tables need (none: any)."""
    snapshot = call.reader.snapshot
    if damage := snapshot.damaged.get(UNANSWERED_METHODS.name):
        if UNANSWERED_METHODS.name not in snapshot.lacking:
            call.warn(f"{consequence}: {damage}")
        return False
    wanted = {_DEPENDS_ON.get(name, name) for name in tables}
    unanswered = count_unanswered(snapshot, wanted)
    if unanswered:
        states, reason = sum(each.states for each in unanswered), unanswered[0].reason
        call.warn(
            f"{consequence}: get-methods of {states} states could not be run; "
            f"{reason}; {name_remedy(reason)}"
        )
    return bool(unanswered)


def is_derived(call: Call) -> bool:
    """Return whether contracts of this lake were detected, at least in part."""
    files = call.reader.snapshot.files
    return bool(files["interfaces"]) or not files["account_states"]


def find_unsearched(snapshot: Snapshot) -> tuple[tuple[int, int], ...]:
    """Return the ranges of masterchain blocks in which no contracts were detected."""
    searched = sorted(read_place(file.path)[:2] for file in snapshot.files["interfaces"])
    reach = list(accumulate((last for _, last in searched), max))
    unsearched: set[tuple[int, int]] = set()
    for file in snapshot.files["account_states"]:
        place = read_place(file.path)
        before = bisect_right(searched, place.last, key=itemgetter(0))
        if before == 0 or reach[before - 1] < place.first:
            unsearched.add((place.first, place.last))
    return tuple(sorted(unsearched))


def _check_all_searched(call: Call) -> None:
    """Refuse an empty result if contracts of some range were not detected."""
    search = partial(find_unsearched, call.reader.snapshot)
    if ranges := call.reader.lasting("unsearched", search):
        raise NotDerived(
            f"nothing found, and masterchain {name_ranges(ranges)} was not searched for "
            f"contracts; {REMEDY}"
        )
