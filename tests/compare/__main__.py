"""``make compare``: compares the responses of two running services over all routes.

    python -m tests.compare BEFORE AFTER --lake LAKE

BEFORE and AFTER are addresses of services over the same blocks, of any two versions; requests take
their values from LAKE.
"""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import httpx
import msgspec

from tests.compare.ask import Answer, Request, ask_all, find_difference
from tests.compare.draw import FULL, Draw, read_rows

SHOWN = 3
"""Differences that are shown of each route."""


class Route(msgspec.Struct):
    """Results of the requests to one route."""

    statuses: dict[int, int] = {}
    differences: list[str] = []


def compare(
    requests: Sequence[Request], before: Sequence[list[Answer]], after: Sequence[list[Answer]]
) -> dict[str, Route]:
    """Return the results by route."""
    routes: dict[str, Route] = defaultdict(Route)
    for request, one, other in zip(requests, before, after, strict=True):
        route = routes[request.route]
        status = one[0].status
        route.statuses[status] = route.statuses.get(status, 0) + 1
        difference = find_difference(one, other)
        if difference is not None:
            route.differences.append(f"{request}\n    {difference}")
    return dict(routes)


def report(routes: dict[str, Route]) -> Iterator[str]:
    """Yield lines to print: a line for each route with its first differences, then the sums."""
    for name, route in sorted(routes.items()):
        statuses = ", ".join(f"{code}: {count}" for code, count in sorted(route.statuses.items()))
        yield f"{len(route.differences):6} {name} ({statuses})"
        yield from (f"  {difference}" for difference in route.differences[:SHOWN])
    requests = sum(sum(route.statuses.values()) for route in routes.values())
    differences = sum(len(route.differences) for route in routes.values())
    yield f"{requests} requests to {len(routes)} routes: {differences} differences"


@click.command()
@click.argument("before")
@click.argument("after")
@click.option("--lake", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--seed", default=18, show_default=True)
@click.option("--draws", default=FULL, show_default=True, help="Drawn requests for each route.")
def main(*, before: str, after: str, lake: Path, seed: int, draws: int) -> None:
    """Ask both services the same, and print where their responses differ."""
    description = httpx.get(f"{before}/openapi.json", timeout=60, trust_env=False).json()
    requests = Draw(read_rows(lake, seed), description, seed, draws).requests()
    answers = [asyncio.run(ask_all(url.rstrip("/"), requests)) for url in (before, after)]
    routes = compare(requests, *answers)
    click.echo("\n".join(report(routes)))
    sys.exit(any(route.differences for route in routes.values()))


if __name__ == "__main__":
    main()
