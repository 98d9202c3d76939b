"""``python -m tests.bench.coding``: bytes and CPU of responses, plain, gzip and zstd.

The pages are those of the demo lake. The CPU of a coding is the cost of compressing the body once,
as for a computed response; a cached response is compressed the first time only.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median

from litestar.testing import TestClient

from tests.bench.blocks import unpack_demo
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.http.content.coding import PREFERRED, pack
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span

PAGES = {
    "100 transactions": "/api/v3/transactions?limit=100",
    "10 traces": "/api/v3/traces?limit=10",
    "100 actions": "/api/v3/actions?limit=100",
    "100 blocks": "/api/v3/blocks?limit=100",
    "explorer, first page": "/",
    "OpenAPI document": "/openapi.json",
}
SAMPLES = 15


def _time_ms(coding: str, body: bytes) -> float:
    began_s = time.process_time()
    pack(coding, body).seal(b"")
    return (time.process_time() - began_s) * 1000


def measure_codings(lake_dir: Path) -> dict[str, dict[str, float]]:
    """Return the size of each page, plain and in each coding, and the CPU ms to compress it."""
    found: dict[str, dict[str, float]] = {}
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        for name, path in PAGES.items():
            answer = client.get(path, headers={"Accept-Encoding": "identity"}).raise_for_status()
            found[name] = {"bytes plain": len(answer.content)}
            for coding in PREFERRED:
                times = [_time_ms(coding, answer.content) for _ in range(SAMPLES)]
                size = len(pack(coding, answer.content).seal(b""))
                found[name] |= {
                    f"bytes {coding}": size,
                    f"CPU ms {coding}": round(median(times), 2),
                }
    return found


def main() -> None:
    """Ingest the demo node and print the figures as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder) / "lake"
        with closing(open_node(unpack_demo(Path(folder)))) as source:
            ingest(source, lake, Span(1, source.last_mc_seqno()), PATIENT)
        sys.stdout.write(json.dumps(measure_codings(lake), indent=1) + "\n")


if __name__ == "__main__":
    main()
