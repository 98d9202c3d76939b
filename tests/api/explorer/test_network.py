"""Configuration, validators and lists: the pages agree with the lake."""

import base64
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.explorer.page import Walker
from tests.api.v3.scene import Scene
from tests.patience import patient
from tonlake.api.app import create_app
from tonlake.api.explorer.network import NAMES, compare_params, decode_data, decode_param
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc


@pytest.fixture(scope="module")
def params(client: TestClient[Any]) -> dict[int, bytes]:
    """The parameters of the demo network."""
    found = {}
    for number in NAMES:
        answer = client.get("/api/v2/getConfigParam", params={"config_id": number}).json()
        if answer["ok"]:
            found[number] = base64.b64decode(answer["result"]["config"]["bytes"])
    return found


def _wrap(builder: CellBuilder) -> bytes:
    return serialize_boc(builder.tree, [builder.end()])


def test_every_parameter_of_a_genuine_network_is_decoded(params: dict[int, bytes]) -> None:
    assert len(params) > 20
    assert [number for number, boc in params.items() if decode_param(number, boc) is None] == []


def test_unknown_forms_are_not_guessed(params: dict[int, bytes]) -> None:
    assert decode_param(15, params[8]) is None
    assert decode_param(999, params[8]) is None
    assert decode_param(8, b"") is None
    assert decode_data("ElectorData", params[8]) is None


def test_changes_are_by_value(params: dict[int, bytes]) -> None:
    times = CellBuilder().store_uint(1, 32).store_uint(2, 32).store_uint(3, 32)
    changed = params | {15: _wrap(times.store_uint(4, 32)), 999: params[8]}
    del changed[8]
    found = compare_params(params, changed)
    assert {each.number for each in found} == {8, 15, 999}
    (elected,) = (each for each in found if each.path == "validators_elected_for")
    assert elected.after == "1 s"
    assert elected.before.endswith(" h)")
    assert all(not each.after for each in found if each.number == 8)
    assert compare_params(params, params) == []


def test_a_nominator_pool_is_read() -> None:
    config = CellBuilder().store_uint(7, 256).store_uint(3000, 16).store_uint(40, 16)
    config.store_coins(5).store_coins(6)
    inner = config.end()
    pool = CellBuilder(config.tree).store_uint(2, 8).store_uint(0, 16).store_coins(10**9)
    pool.store_coins(2 * 10**9).store_ref(inner).store_bit(0).store_bit(0)
    pool.store_uint(1, 32).store_uint(2, 256).store_uint(3, 8).store_uint(4, 32)
    found: Any = decode_data("NominatorPool", _wrap(pool.store_uint(5, 32).store_bit(0)))
    assert found["config"]["max_nominators_count"] == "40"
    assert found["validator_amount"]["amount"]["value"] == str(2 * 10**9)


def test_configuration_and_validators_are_pages(walk: Walker) -> None:
    for path, texts in (
        ("/config", ("Election timing", "validators_elected_for", "Workchains", "zero state")),
        ("/validators", ("Current validators (", "100.00 %", "No election is open", "min_stake")),
    ):
        assert [text for text in texts if text not in walk(path).words] == []


def test_a_lake_without_blocks_says_so(tmp_path: Path) -> None:
    scene = Scene(2)
    scene.rows["blocks"].clear()
    with TestClient(create_app(scene.commit(tmp_path / "lake"), patient())) as client:
        assert "Age of newest block0 s" not in client.get("/").text
        for path in ("/config", "/validators"):
            answer = client.get(path)
            assert answer.status_code == 404
            assert "the configuration is not in the lake" in answer.text.lower()


@pytest.mark.parametrize("path", ["/accounts", "/api/v3/topAccountsByBalance?limit=5"])
def test_no_account_state_is_not_no_account(path: str, tmp_path: Path) -> None:
    lake_dir = Scene(9, first_mc_seqno=8).commit(tmp_path / "lake")
    with TestClient(create_app(lake_dir, patient())) as client:
        answer = client.get(path)
    assert answer.status_code == 404
    assert "this lake covers only masterchain 8..9" in answer.text


@pytest.mark.parametrize(
    "path", ["/accounts", "/jettons", "/jettons?sort=volume", "/collections?sort=transfers"]
)
def test_lists_lead_to_their_entries(walk: Walker, path: str) -> None:
    page = walk(path)
    assert [link for link in page.links if link.startswith(("/account/", "/jetton/", "/nft/"))]


def test_holders_are_counted_as_the_api_does(client: TestClient[Any], walk: Walker) -> None:
    page = walk("/jettons")
    master = next(link for link in page.links if link.startswith("/jetton/")).rpartition("/")[2]
    query = {"jetton_address": master, "exclude_zero_balance": "true", "limit": "1000"}
    wallets = client.get("/api/v3/jetton/wallets", params=query).json()["jetton_wallets"]
    row = client.get("/jettons").text.partition("<tbody>")[2].partition("</tr>")[0]
    assert f'data-label="Holders">{len(wallets)}</td>' in row


def test_a_masterchain_block_is_a_picture(walk: Walker) -> None:
    page = walk("/block/-1:8000000000000000:100")
    boxes = [attrs for _tag, attrs in page.tags if (attrs.get("class") or "").startswith("shard")]
    assert boxes
    assert "Workchain 0, from the lowest" in page.words
