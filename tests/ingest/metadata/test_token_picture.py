"""Token pictures on pages: fetched where allowed, once, and served by the service itself."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from litestar.testing import TestClient

from tests.api.v3.scene import Scene, make_raw
from tests.ingest.metadata.conftest import Host, be_silent, send
from tests.ingest.metadata.test_download import make_png
from tests.ingest.metadata.test_fetching import GET_JETTON_DATA, _put
from tests.patience import compose
from tonlake.api.app import create_app
from tonlake.api.errors import ServiceBusy
from tonlake.api.explorer import token as token_picture
from tonlake.api.explorer.token import Pictures
from tonlake.ingest.settings import MetadataSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import trustme


GOLD = make_png(64, 64)


@pytest.fixture(autouse=True)
def _trust(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))


@pytest.fixture
def lake(host: Host, tmp_path: Path) -> Path:
    """Jettons that name pictures of the host."""
    scene = Scene(3)
    scene.put("interfaces", code_hash="c", mc_seqno=1, methods=[GET_JETTON_DATA], names=None)
    for name in ("gold", "script", "gone"):
        content = {"name": name, "image": host.url(f"/{name}")}
        _put(scene, "jetton_masters", name, 1, "c", content)
    _put(scene, "jetton_masters", "plain", 1, "c", {"name": "plain"})
    host.answers |= {"/gold": send(GOLD, "image/png"), "/script": send(b"<svg/>", "image/png")}
    return scene.commit(tmp_path / "lake")


def serve(lake: Path, *, enabled: bool) -> TestClient[Any]:
    metadata = {"enabled": enabled, "networks": "127.0.0.1/32"}
    return TestClient(create_app(lake, compose(metadata=metadata)))


@pytest.fixture
def client(lake: Path) -> Iterator[TestClient[Any]]:
    with serve(lake, enabled=True) as asker:
        yield asker


def test_a_picture_is_ours_and_fetched_once(client: TestClient[Any], host: Host) -> None:
    page = client.get(f"/jetton/{make_raw('gold')}").text
    (path,) = re.findall(r'<img class="token large" src="(/picture/[^"]+)"', page)
    for _ in range(3):
        answer = client.get(path)
        assert (answer.content, answer.headers["content-type"]) == (GOLD, "image/png")
    assert host.count == {"/gold": 1}
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert str(host.port) not in page.replace(host.url("/gold"), "")


@pytest.mark.parametrize("name", ["script", "gone", "plain", "nobody"])
def test_what_cannot_be_shown_is_not_found(client: TestClient[Any], host: Host, name: str) -> None:
    for _ in range(2):
        assert client.get(f"/picture/{make_raw(name)}").status_code == 404
    assert host.count[f"/{name}"] <= 1
    assert client.get("/picture/https:%2F%2Flocalhost%2Fgold").status_code == 404


def test_nothing_is_fetched_unless_allowed(lake: Path, host: Host) -> None:
    with serve(lake, enabled=False) as client:
        assert "<img class=" not in client.get(f"/jetton/{make_raw('gold')}").text
        assert client.get(f"/picture/{make_raw('gold')}").status_code == 404
    assert host.connections == 0


def make_pictures(now_s: list[float]) -> Pictures:
    settings = MetadataSettings(enabled=True, networks="127.0.0.1/32")
    return Pictures(settings, clock=lambda: now_s[0])


async def test_many_wait_for_one_fetch_and_failures_are_tried_again(host: Host) -> None:
    now_s = [0.0]
    pictures = make_pictures(now_s)
    host.answers["/gold"] = send(GOLD)

    async def ask(count: int, path: str) -> list[Any]:
        return await asyncio.gather(*(pictures.find(host.url(path)) for _ in range(count)))

    assert {each.body for each in await ask(9, "/gold")} == {GOLD}
    assert await ask(2, "/gone") == [None, None]
    host.answers["/gone"] = send(GOLD)
    assert await ask(1, "/gone") == [None]
    now_s[0] += token_picture.RETRY_S
    assert (await ask(1, "/gone"))[0].body == GOLD
    assert host.count == {"/gold": 1, "/gone": 2}


async def test_the_oldest_make_room(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_picture, "CACHE_BYTES", 3 * (token_picture.ENTRY_BYTES + 100))
    pictures = make_pictures([0.0])
    paths = [f"/{number}" for number in range(4)]
    host.answers |= {path: send(GOLD) for path in paths}

    for path in [*paths[:3], paths[0], paths[3], paths[0], paths[1]]:
        assert await pictures.find(host.url(path)) is not None
    assert host.count == {"/0": 1, "/1": 2, "/2": 1, "/3": 1}


async def test_slow_hosts_hold_few_requests(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_picture, "MAX_WAITING", 2)
    monkeypatch.setattr("tonlake.ingest.metadata.download.TIMEOUT_MS", 300)
    pictures = make_pictures([0.0])
    host.answers |= {f"/{number}": be_silent for number in range(9)}

    asked = (pictures.find(host.url(f"/{number}")) for number in range(9))
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in found] == [type(None)] * 2 + [ServiceBusy] * 7
    assert host.count.total() <= 2
