"""Bodies that SDKs from npm build: each decodes to its layout, and gives the same bag again."""

import json
import subprocess
from base64 import b64decode
from typing import Any

import pytest

from tests.clients.packages import NODE, RUN_S, provide_packages
from tests.ingest.derive.body.encode import rebuild, show
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder


@pytest.fixture(scope="module")
def bodies() -> list[tuple[str, str, str, dict[str, Any]]]:
    """Bodies by SDK and the name of their layout, which is empty for those of no known layout."""
    command = [provide_packages(), "bodies.mjs"]
    done = subprocess.run(
        command, cwd=NODE, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [tuple(body) for body in json.loads(done.stdout)]


def read_field(value: Any) -> str:
    """Return a number or an address as an SDK is given it."""
    if isinstance(value, dict):
        return read_field(value.get("address", value.get("amount", value.get("value"))))
    return str(value).lower()


def test_bodies_decode_to_their_layouts_and_give_the_same_bag(bodies: list[Any]) -> None:
    assert len(bodies) > 250
    for sdk, layout, bag, fields in bodies:
        tree = parse_boc(b64decode(bag))
        value = show(tree, tree.roots[0])[1]
        assert (value or {}).get("@type", "") == layout, sdk
        for name, expected in fields.items():
            assert read_field(value[name]) == str(expected), (sdk, layout, name)
        if value:
            again = CellBuilder().tree
            assert again.hash(rebuild(value, again)) == tree.hash(tree.roots[0]), (sdk, value)
