"""Bodies that SDKs from npm build: each decodes to its layout, and gives the same bag again."""

import csv
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tests.clients.packages import NODE, RUN_S, provide_packages
from tests.commands import run_program
from tests.ingest.derive.body.encode import rebuild, show, show_bag
from tests.ingest.derive.body.recordings import TRACES, read_messages, read_traces, walk
from tests.ingest.derive.body.test_wholesale import SDK_BODIES
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.body.scheme import load_scheme

LISTED = Path(__file__).parents[1] / "ingest" / "derive" / "body" / "unproven.csv"


@pytest.fixture(scope="module")
def bodies() -> list[tuple[str, str, str, dict[str, Any]]]:
    """Bodies by SDK and the name of their layout, which is empty for those of no known layout."""
    command = [provide_packages(), "bodies.mjs"]
    done = run_program(*command, cwd=NODE, timeout=RUN_S)
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


def test_layouts_without_a_genuine_body_are_listed(bodies: list[Any], shared: Path) -> None:
    """A layout leaves the list once a package builds it, or a recording has it; none joins it."""
    values = [show_bag(b64decode(bag))[1] for _sdk, _layout, bag, _fields in bodies]
    values += [show_bag(b64decode(message.body))[1] for message in read_messages(shared)]
    values += [value for name in TRACES for _opcode, value in read_traces(shared, name)]
    proven = {node["@type"] for value in values for node in walk(value) if "@type" in node}
    proven |= {name for _body, name in SDK_BODIES}
    names = {record.name for found in load_scheme().layouts.values() for record in found}
    with LISTED.open() as file:
        listed = {row["layout"] for row in csv.DictReader(file) if row["reason"]}
    assert {name for name in names - proven if name and "," not in name} == listed
