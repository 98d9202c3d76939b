"""``python -m tests.compare.bodies``: compares the responses of two versions of the service.

Each side is a checkout, which then serves the lake, the address of a running service, or a file
recorded by an earlier run. Only HTTP is used, so that any two versions can be compared.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
import httpx

from tests.compare.ask import Request, ask_all, read_recording, write_recording
from tests.compare.derive import FULL, Derived
from tests.compare.difference import compare, report
from tests.compare.sample import read_sample
from tests.compare.service import ROOT, make_lake, serve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.compare.ask import Exchange

DEMO = ROOT / "tests" / "data" / "node-demo" / "demo-node.tar.zst"
LAKE = ROOT / "build" / "compare" / "demo"


def derive_requests(lake_dir: Path, url: str, seed: int, draws: int) -> list[Request]:
    """Return requests over all routes that a service describes, with values of a lake."""
    description = httpx.get(f"{url}/openapi.json", timeout=60, trust_env=False).json()
    return Derived(read_sample(lake_dir, seed), description, seed, draws).derive()


class Side:
    """One side of the comparison."""

    def __init__(self, name: str, lake_dir: Path, environment: dict[str, str]) -> None:
        """Take a checkout, an address, or a file with a recording."""
        self._name, self._lake_dir, self._environment = name, lake_dir, environment

    @property
    def checkout(self) -> Path | None:
        """The checkout whose code is run, if the side is one."""
        folder = Path(self._name)
        return folder if folder.is_dir() else None

    def ask(self, requests: Sequence[Request] | None, seed: int, draws: int) -> list[Exchange]:
        """Return this side's exchanges, deriving the requests if there are none yet."""
        if Path(self._name).is_file():
            return read_recording(Path(self._name))
        with ExitStack() as stack:
            url = self._name.rstrip("/")
            if self.checkout is not None:
                service = serve(self.checkout, self._lake_dir, self._environment)
                url = stack.enter_context(service)
            began_s = time.monotonic()
            requests = requests or derive_requests(self._lake_dir, url, seed, draws)
            exchanges = asyncio.run(ask_all(url, requests))
            answers = sum(len(one.answers) for one in exchanges)
            took_s = time.monotonic() - began_s
            click.echo(f"{self._name}: {answers} answers in {took_s:.1f} s", err=True)
        return exchanges


@click.command()
@click.option("--before", help="Checkout, address or recording; without: nothing is compared.")
@click.option("--after", default=str(ROOT), help="The same of the other side; this checkout.")
@click.option("--lake", "lake_dir", type=click.Path(path_type=Path), default=LAKE)
@click.option("--archive", type=click.Path(path_type=Path), default=DEMO)
@click.option("--record", type=click.Path(path_type=Path), help="Keep what AFTER answers here.")
@click.option("--seed", default=18)
@click.option("--draws", default=FULL, help="Requests with drawn parameters for each route.")
def main(
    *,
    before: str | None,
    after: str,
    lake_dir: Path,
    archive: Path,
    record: Path | None,
    seed: int,
    draws: int,
) -> None:
    """Compare two versions over LAKE, which is ingested from ARCHIVE if it does not exist."""
    sides = [Side(name, lake_dir, {}) for name in (before, after) if name is not None]
    if not lake_dir.exists():
        makers = [side.checkout for side in sides if side.checkout is not None]
        make_lake(makers[0] if makers else ROOT, archive, lake_dir)
    found: list[list[Exchange]] = []
    for side in sides:
        requests = [one.request for one in found[0]] if found else None
        found.append(side.ask(requests, seed, draws))
    if record is not None:
        write_recording(record, found[-1])
    if before is not None:
        routes = compare(*found)
        click.echo("\n".join(report(routes)))
        sys.exit(any(route.differences or route.reordered for route in routes.values()))


if __name__ == "__main__":
    main()
