"""Token content of a lake is fetched from a real server, stored, retried, and served."""

import json
import os
import ssl
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httpx
import pytest
import trustme
from litestar.testing import TestClient

from tests.api.v3.scene import Scene, make_raw
from tests.commands import run, serving
from tests.ingest.metadata.conftest import Host, redirect, send
from tests.patience import compose
from tonlake.api.app import create_app
from tonlake.api.settings import Settings
from tonlake.ingest.metadata import fetching
from tonlake.ingest.metadata.download import Downloader
from tonlake.ingest.metadata.fetching import FetchReport, fetch_metadata, keep_fetching
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import read_state
from tonlake.lake.maintenance.compact import compact_lake
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

SETTINGS = compose(metadata={"networks": "127.0.0.1/32"})
GET_JETTON_DATA, GET_COLLECTION_DATA, GET_NFT_DATA = 106029, 102491, 102351
NOW_S = 1_900_000_000
WEEK_S = 604_800
SILVER = b'{"name":"Silver","symbol":"AG","decimals":"3","social":["a","b"],"image":7}'


def build_lake(folder: Path, host: Host) -> Path:
    """Write a lake of two commits whose tokens name addresses of the host."""
    first, second = Scene(3), Scene(6, 4)
    for code, method in (
        ("master code", GET_JETTON_DATA),
        ("collection code", GET_COLLECTION_DATA),
        ("item code", GET_NFT_DATA),
    ):
        first.put("interfaces", code_hash=code, mc_seqno=1, methods=[method], names=None)
    masters = {
        "silver": {"uri": host.url("/silver")},
        "half": {"uri": host.url("/half"), "symbol": "HALF"},
        "gone": {"uri": host.url("/gone")},
        "page": {"uri": host.url("/page")},
        "plain": {"uri": "http://localhost/plain"},
        "long": {"uri": f"https://localhost/{'x' * 3000}"},
        "gold": {"name": "Gold"},
    }
    for name, content in masters.items():
        _put(first, "jetton_masters", name, 1, "master code", content)
    # Named again by a later commit: it stays with the first.
    _put(second, "jetton_masters", "silver", 4, "master code", masters["silver"])
    _put(second, "nft_collections", "birds", 4, "collection code", {"uri": host.url("/birds")})
    item = {"uri": host.url("/bird"), "name": "Jay"}
    _put(second, "nft_items", "jay", 5, "item code", item)
    first.commit(folder)
    return second.commit(folder)


def _put(
    scene: Scene, table: str, name: str, mc_seqno: int, code: str, content: dict[str, str]
) -> None:
    scene.put_state(table, name, mc_seqno, code=code, content=json.dumps(content))


@pytest.fixture
def lake(tmp_path: Path, host: Host) -> Path:
    host.answers |= {
        "/silver": send(SILVER),
        "/half": redirect("/there"),
        "/there": send(b'{"name":"Half","symbol":"OTHER"}'),
        "/page": send(b"<html>", "text/html"),
        "/birds": send(b'{"name":"Birds","description":"All of them"}'),
        "/bird": send(b'{"name":"A bird","image":"https://x.example/jay.png"}'),
    }
    return build_lake(tmp_path / "lake", host)


def ask_metadata(lake: Path, *names: str) -> dict[str, Any]:
    """Return ``/metadata`` by name."""
    with TestClient(create_app(lake, Settings())) as client:
        raw = {make_raw(name): name for name in names}
        answer = client.get("/api/v3/metadata", params={"address": list(raw)})
        assert answer.status_code == 200, answer.text
        return {raw[key]: value for key, value in answer.json().items()}


def read_rows(lake: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of the table by the last part of their address."""
    text = "from offchain_metadata"
    rows = connect(open_snapshot(lake), statement=text).sql(text).to_arrow_table()
    return {row["uri"].rpartition("/")[2]: row for row in rows.to_pylist()}


def test_from_the_chain_to_the_answer(lake: Path, host: Host, trust: ssl.SSLContext) -> None:
    names = ("silver", "half", "gone", "page", "plain", "long", "gold", "birds", "jay")
    before = ask_metadata(lake, *names)
    assert {name for name in names if before[name]["is_indexed"]} == {"gold"}
    assert before["silver"]["token_info"] == [
        {"type": "jetton_masters", "extra": {"uri": host.url("/silver")}}
    ]
    downloader = Downloader(SETTINGS.metadata, trust=trust)
    report = fetch_metadata(lake, SETTINGS, downloader=downloader, read_clock=lambda: NOW_S)
    assert report == FetchReport(fetched=4, invalid=1, failed=1, refused=1, commits=1)
    found = ask_metadata(lake, *names)
    assert {name for name in names if not found[name]["is_indexed"]} == {"gone", "long"}
    shown = {name: answer["token_info"][0] for name, answer in found.items()}
    assert shown["silver"] == {
        "type": "jetton_masters",
        "valid": True,
        "name": "Silver",
        "symbol": "AG",
        "extra": {"decimals": "3", "image": 7, "social": ["a", "b"], "uri": host.url("/silver")},
    }
    assert (shown["half"]["name"], shown["half"]["symbol"]) == ("Half", "HALF")
    assert shown["gone"] == before["gone"]["token_info"][0]
    assert shown["page"]["valid"] is False
    assert shown["plain"]["valid"] is False
    assert shown["birds"]["description"] == "All of them"
    assert (shown["jay"]["name"], shown["jay"]["image"]) == ("Jay", "https://x.example/jay.png")
    rows = read_rows(lake)
    assert {name: row["mc_seqno"] for name, row in rows.items()} == {
        **dict.fromkeys(("silver", "half", "gone", "page", "plain"), 1),
        "birds": 4,
        "bird": 5,
    }
    assert rows["half"]["url"] == host.url("/there")
    assert rows["plain"]["retry_at"] is None
    assert rows["silver"]["retry_at"] == NOW_S + WEEK_S
    assert "answered 404" in rows["gone"]["error"]
    assert not verify_lake(lake).damage
    compact_lake(lake, LakeSettings())
    assert ask_metadata(lake, *names) == found
    assert read_rows(lake) == rows


@mock.patch.object(fetching, "ATTEMPTS", 3)
def test_back_off_refresh_and_giving_up(lake: Path, host: Host, trust: ssl.SSLContext) -> None:
    clock = NOW_S

    def fetch(*, everything: bool = False) -> FetchReport:
        return fetch_metadata(
            lake,
            SETTINGS,
            everything=everything,
            downloader=Downloader(SETTINGS.metadata, trust=trust),
            read_clock=lambda: clock,
        )

    fetch()
    for wait_s in (60, 120):
        clock += wait_s - 1
        assert fetch() == FetchReport()
        clock += 1
        assert fetch() == FetchReport(failed=1, commits=1)
    assert read_rows(lake)["gone"]["retry_at"] is None
    gone = ask_metadata(lake, "gone")["gone"]
    assert (gone["is_indexed"], gone["token_info"][0]["valid"]) == (True, False)
    number = read_state(lake).number
    clock = NOW_S + WEEK_S - 1
    assert fetch() == FetchReport()
    assert read_state(lake).number == number
    clock += 1
    host.answers["/silver"] = send(b'{"name":"Other"}')
    host.answers["/birds"] = send(b"", status=500)
    assert fetch() == FetchReport(fetched=3, invalid=1, failed=1, commits=1)
    rows = read_rows(lake)
    assert json.loads(rows["silver"]["content"]) == {"name": "Other"}
    # The previous content is shown until it can be fetched again.
    assert (rows["birds"]["state"], rows["birds"]["attempts"]) == ("fetched", 1)
    assert rows["birds"]["retry_at"] == clock + 60
    assert "answered 500" in rows["birds"]["error"]
    assert ask_metadata(lake, "birds")["birds"]["token_info"][0]["name"] == "Birds"
    clock += 1
    host.answers["/gone"] = send(b'{"name":"Back"}')
    assert fetch(everything=True).fetched == 4
    assert ask_metadata(lake, "gone")["gone"]["token_info"][0]["name"] == "Back"
    assert not verify_lake(lake).damage


def test_a_batch_and_the_rest(lake: Path, host: Host, trust: ssl.SSLContext) -> None:
    downloader = Downloader(SETTINGS.metadata, trust=trust)
    for wanted in (5, 2, 0):
        report = fetch_metadata(
            lake, SETTINGS, most=5, downloader=downloader, read_clock=lambda: NOW_S
        )
        assert report.asked == wanted
    assert host.count["/silver"] == 1


def test_many_addresses_come_in_batches(
    lake: Path, host: Host, trust: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "LISTED", 5)
    monkeypatch.setattr(fetching, "BATCH", 2)
    report = fetch_metadata(
        lake,
        SETTINGS,
        downloader=Downloader(SETTINGS.metadata, trust=trust),
        read_clock=lambda: NOW_S,
    )
    assert report == FetchReport(fetched=4, invalid=1, failed=1, refused=1, commits=4)
    assert set(host.count.values()) == {1}
    assert len(read_rows(lake)) == 7


def test_on_the_command_line(
    lake: Path, host: Host, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    command = ["fetch-metadata", "--lake", str(lake), "--json"]
    done = run(*command, "--most", "1")
    assert json.loads(done.output)["refused"] == 1, done.output
    assert host.connections == 0
    monkeypatch.setenv("TONLAKE_METADATA_NETWORKS", "127.0.0.0/8")
    done = run(*command)
    assert json.loads(done.output) == {
        "fetched": 4,
        "invalid": 1,
        "failed": 1,
        "refused": 0,
        "commits": 1,
    }
    again = run(*command[:-1])
    assert again.output == "nothing is due\n"
    monkeypatch.setenv("TONLAKE_METADATA_NETWORKS", "here")
    done = run(*command)
    assert (done.exit_code, done.output.count("[metadata] networks")) == (1, 1)


class Over(Exception):
    pass


def test_again_and_again(
    lake: Path, tmp_path: Path, trust: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) % 2 == 0:
            raise Over

    monkeypatch.setattr(fetching, "time", SimpleNamespace(sleep=wait))
    monkeypatch.setattr(fetching, "write_line", lambda *line: lines.append(" ".join(line)))
    monkeypatch.setattr(fetching, "Downloader", partial(Downloader, trust=trust))
    for folder in (tmp_path / "not there yet", lake):
        with pytest.raises(Over):
            keep_fetching(str(folder), SETTINGS)
    assert lines == ["fetch 7 asked: 4 fetched, 1 invalid, 1 failed, 1 refused"]
    assert waits == [60, 60, 60, 60]


def test_beside_a_server(lake: Path, host: Host, authority: trustme.CA, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    env = os.environ | {
        "SSL_CERT_FILE": str(bundle),
        "TONLAKE_METADATA_ENABLED": "true",
        "TONLAKE_METADATA_NETWORKS": "127.0.0.1",
    }
    with serving("--lake", lake, env=env) as (base, _server):
        raw = make_raw("silver")
        found: dict[str, Any] = {"is_indexed": False}
        while not found["is_indexed"]:
            answer = httpx.get(f"{base}/api/v3/metadata", params={"address": raw}, timeout=240)
            found = answer.json()[raw]
        page = httpx.get(f"{base}/jetton/{raw}", timeout=240).text
    assert found["token_info"][0]["name"] == "Silver"
    assert host.count["/silver"] == 1
    assert "Fetched from the URI" in page
    assert "<dt>symbol</dt><dd>AG</dd>" in page
