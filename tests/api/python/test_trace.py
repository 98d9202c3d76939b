"""A trace in Python: actions, tree and picture equal those of the API and the explorer."""

import base64
import html
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from litestar.testing import TestClient

import tonlake
from tonlake.api.errors import AnswerNotFound, RequestInvalid
from tonlake.api.python.trace import Trace


@pytest.fixture(scope="module")
def transfer(lake: tonlake.Lake) -> Trace:
    """A jetton transfer of several transactions."""
    ((trace_id,),) = lake.sql(
        "select trace_id from actions join traces using (trace_id)"
        " where type = 'jetton_transfer' and state = 'complete'"
        " order by transactions desc, trace_id limit 1"
    ).fetchall()
    return lake.trace(trace_id)


def test_any_hash_of_it_leads_to_a_trace(lake: tonlake.Lake, transfer: Trace) -> None:
    for transaction in transfer.transactions:
        assert lake.trace(transaction.hash).trace_id == transfer.trace_id
        assert lake.trace(base64.b64decode(transaction.hash).hex()).trace_id == transfer.trace_id
        assert lake.trace(transaction.in_msg.hash).trace_id == transfer.trace_id  # type: ignore[union-attr]
    assert transfer.trace_id in repr(transfer)
    with pytest.raises(AnswerNotFound, match="77777777"):
        lake.trace(b"w" * 32)
    with pytest.raises(RequestInvalid, match="is not a hash"):
        lake.trace("77")
    with pytest.raises(RequestInvalid, match="7777 is not a hash of 32 bytes"):
        lake.trace(b"ww")


def test_actions_are_those_of_the_api(client: TestClient[Any], transfer: Trace) -> None:
    hexadecimal = base64.b64decode(transfer.trace_id).hex()
    shown = client.get(f"/api/v3/actions?trace_id={hexadecimal}&sort=asc").json()["actions"]
    assert [(each.type, each.details) for each in transfer.actions] == [
        (each["type"], each["details"]) for each in shown
    ]
    page = client.get(f"/trace/{hexadecimal}").text
    written = re.findall(r'<span class="what">(.*?)</span>\n', page)
    plain = [html.unescape(re.sub(r"<[^>]*>", "", one)) for one in written]
    assert [each.text for each in transfer.actions] == plain
    assert str(transfer.actions[0]).startswith(transfer.actions[0].text)


def test_the_tree_has_every_transaction_below_its_sender(transfer: Trace) -> None:
    lines = transfer.tree().splitlines()
    assert len(lines) == len(transfer.transactions)
    depths = [(len(line) - len(line.lstrip())) // 2 for line in lines]
    assert depths[0] == 0
    assert all(later <= earlier + 1 for earlier, later in pairwise(depths))
    assert any("jetton_transfer" in line and "TON" in line for line in lines)


def test_the_picture_is_that_of_the_explorer(client: TestClient[Any], transfer: Trace) -> None:
    hexadecimal = base64.b64decode(transfer.trace_id).hex()
    page = client.get(f"/trace/{hexadecimal}").text
    picture = transfer.picture()
    for pattern in (r'<path class="edge[^>]*>', r"<rect[^>]*>", r'<text class="faint"[^>]*>[^<]*'):
        assert re.findall(pattern, picture) == re.findall(pattern, page)
    assert re.findall(r"<rect", picture)
    assert "<a " not in picture  # it leads nowhere in a notebook
    assert "<a " in page
    shown = transfer._repr_html_()
    assert shown is not None
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', shown)[1]) == picture  # type: ignore[index]


def test_any_number_of_threads_may_ask(transfer: Trace) -> None:
    def read(number: int) -> tuple[str, int, str]:
        asked = (transfer.tree, transfer.picture, lambda: str(transfer.actions))
        asked[number % 3]()
        return transfer.tree(), len(transfer.actions), transfer.picture()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(read, range(24)))) == 1
