"""A real server on loopback over the demo lake, and client programs for it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.growth import serve
from tests.clients.packages import NODE, RUN_S, provide_packages
from tests.commands import run_program


@pytest.fixture(scope="session")
def server(demo_lake: Path) -> Iterator[str]:
    """Serve the demo lake on a free port; yield the base URL."""
    with serve(demo_lake) as served:
        yield served.url


@pytest.fixture(scope="session")
def run_node(server: str) -> Callable[[str, dict[str, Any]], Any]:
    """Run a script of ``node/`` with a plan and return the JSON it prints; skipped without npm."""
    node = provide_packages()

    def run(script: str, plan: dict[str, Any]) -> Any:
        plan["endpoint"] = f"{server}/api/v2/jsonRPC"
        done = run_program(node, script, cwd=NODE, input=json.dumps(plan), timeout=RUN_S)
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout)

    return run
