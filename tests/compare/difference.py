"""Compares two recordings: equal responses by route, and the first differences."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.compare.ask import Answer, Exchange

SHOWN = 3
"""Differences that are shown of each route."""

AROUND = 100
"""Characters on each side of the first one that differs."""


REORDERED = "the same values: "


class Route(msgspec.Struct):
    """Results of the requests to one route."""

    equal: int = 0
    statuses: dict[int, int] = {}
    differences: list[str] = []
    reordered: list[str] = []
    """Answers with the same values, in another order of the names."""


def compare(before: Sequence[Exchange], after: Sequence[Exchange]) -> dict[str, Route]:
    """Return the results by route; both sides have the same requests."""
    routes: dict[str, Route] = defaultdict(Route)
    for one, other in zip(before, after, strict=True):
        if one.request != other.request:
            raise ValueError(f"other requests: {one.request} and {other.request}")
        route = routes[one.request.route]
        status = one.answers[0].status
        route.statuses[status] = route.statuses.get(status, 0) + 1
        difference = next(find_differences(one.answers, other.answers), None)
        if difference is None:
            route.equal += 1
        else:
            found = route.reordered if difference.startswith(REORDERED) else route.differences
            found.append(f"{one.request}\n{difference}")
    return dict(routes)


def find_differences(before: Sequence[Answer], after: Sequence[Answer]) -> Iterator[str]:
    """Yield descriptions of the differences of two responses and of their following pages."""
    for number, (one, other) in enumerate(zip_longest(before, after)):
        page = f"page {number + 1}: " if number else ""
        if one is None or other is None:
            yield f"{page}only {'after' if one is None else 'before'}"
            return
        if one.status != other.status:
            yield f"{page}status {one.status} -> {other.status}: {other.body[:AROUND]!r}"
        for name in sorted(one.headers.keys() | other.headers.keys()):
            values = one.headers.get(name), other.headers.get(name)
            if values[0] != values[1]:
                yield f"{page}{name}: {values[0]!r} -> {values[1]!r}"
        if one.body != other.body:
            yield f"{page}{_describe(one.body, other.body)}"


def _describe(one: bytes, other: bytes) -> str:
    """Return where bodies differ: the path in a JSON document, or the place in the text."""
    prefix = ""
    try:
        sides = json.loads(one), json.loads(other)
    except ValueError:
        pass
    else:
        texts = {json.dumps(side, sort_keys=True) for side in sides}
        if len(texts) > 1 and (found := _find_path(*sides, "$")):
            return found
        prefix = REORDERED if len(texts) == 1 else ""
    at = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    parts = [side[max(0, at - AROUND) : at + AROUND] for side in (one, other)]
    return f"{prefix}byte {at} of {len(one)} -> {len(other)}: {parts[0]!r} -> {parts[1]!r}"


def _find_path(one: Any, other: Any, path: str) -> str | None:
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = ((f"{path}.{name}", one[name], other[name]) for name in one)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = ((f"{path}[{at}]", left, other[at]) for at, left in enumerate(one))
    else:
        sides = [json.dumps(side)[: 2 * AROUND] for side in (one, other)]
        return f"{path}: {sides[0]} -> {sides[1]}"
    found = (_find_path(left, right, at) for at, left, right in pairs)
    return next(filter(None, found), None)


def report(routes: dict[str, Route]) -> Iterator[str]:
    """Yield lines to print: a line for each route, the first differences, and the sums."""
    yield f"{'equal':>6} {'order':>6} {'other':>6}  route (statuses before)"
    for name, route in sorted(routes.items()):
        statuses = ", ".join(f"{code}: {count}" for code, count in sorted(route.statuses.items()))
        counts = f"{route.equal:6} {len(route.reordered):6} {len(route.differences):6}"
        yield f"{counts}  {name} ({statuses})"
    for name, route in sorted(routes.items()):
        for difference in [*route.differences[:SHOWN], *route.reordered[:1]]:
            yield f"\n{name}\n  {difference}".replace("\n", "\n  ")
    equal = sum(route.equal for route in routes.values())
    order = sum(len(route.reordered) for route in routes.values())
    other = sum(len(route.differences) for route in routes.values())
    yield (
        f"\n{equal + order + other} requests to {len(routes)} routes: {equal} equal,"
        f" {order} with the same values in another order, {other} different"
    )
