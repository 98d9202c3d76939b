"""Downloads from a real TLS server: accepted and refused documents."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING
from unittest import mock

import msgspec
import pytest

from tests.ingest.metadata.conftest import be_silent, drip, redirect, send
from tonlake.ingest.errors import ContentInvalid, FetchError, FetchFailed, FetchRefused
from tonlake.ingest.metadata import download
from tonlake.ingest.metadata.download import Downloader, Guard, parse_networks
from tonlake.ingest.settings import MetadataSettings

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tests.ingest.metadata.conftest import Answer, Host

HERE = "127.0.0.1/32"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
ENDLESS = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

_patient = mock.patch.object(download, "TIMEOUT_MS", 60_000)


def make_downloader(trust: ssl.SSLContext, **settings: str) -> Downloader:
    """Return a downloader that may only connect to this machine's first address."""
    return Downloader(
        msgspec.convert({"networks": HERE, **settings}, MetadataSettings), trust=trust
    )


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"name": "Gold", "decimals": 9}'),
        ("application/json; charset=utf-8", b'\xef\xbb\xbf{"name":"Gold","decimals":9}'),
        ("APPLICATION/LD+JSON", b'{"name":"Gold","decimals":9}\n'),
        ("text/plain", b' {"name":"Gold", "decimals":9}'),
    ],
)
def test_documents(host: Host, trust: ssl.SSLContext, kind: str, body: bytes) -> None:
    host.answers["/gold?x=1"] = send(body, kind)
    found = make_downloader(trust).fetch(host.url("/gold?x=1#part"))
    assert found == ('{"name":"Gold","decimals":9}', host.url("/gold?x=1#part"))
    assert host.seen[0][1]["Accept-Encoding"] == "identity"
    assert host.seen[0][1]["Host"] == f"localhost:{host.port}"


def test_redirects_one_by_one(host: Host, trust: ssl.SSLContext) -> None:
    host.answers |= {
        "/1": redirect("2", 301),
        "/2": redirect("/3", 307),
        "/3": redirect(host.url("/4"), 308),
        "/4": send(b"{}"),
    }
    assert make_downloader(trust).fetch(host.url("/1")) == ("{}", host.url("/4"))
    with (
        mock.patch.object(download, "REDIRECTS", 2),
        pytest.raises(ContentInvalid, match="more than 2 redirects"),
    ):
        make_downloader(trust).fetch(host.url("/1"))
    assert host.count == {"/1": 2, "/2": 2, "/3": 2, "/4": 1}


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://localhost/x", "only https"),
        ("file:///etc/passwd", "only https"),
        ("gopher://localhost/", "only https"),
        ("//ann:secret@localhost/", "with a user"),
        ("https://10.0.0.1/", "not a public address"),
        ("https://169.254.169.254/latest/meta-data/", "not a public address"),
        ("https://[::1]/", "not a public address"),
        ("https://[::ffff:169.254.169.254]/", "not a public address"),
        ("https://[fe80::1]/", "not a public address"),
        ("https://127.0.0.2/", "not a public address"),
        ("https://0x7f000002/", "not a public address"),
        ("https://[zz]/", "an invalid URL"),
    ],
)
def test_redirects_to_forbidden_addresses(
    host: Host, trust: ssl.SSLContext, target: str, reason: str
) -> None:
    host.answers["/1"] = redirect(target)
    with pytest.raises((FetchRefused, ContentInvalid), match=reason):
        make_downloader(trust).fetch(host.url("/1"))


def test_nothing_reaches_an_internal_server(
    host: Host, make_host: Callable[[str], Host], trust: ssl.SSLContext
) -> None:
    inner = make_host("127.0.0.2")
    inner.answers["/secret"] = send(b'{"secret":1}')
    host.answers["/1"] = redirect(f"https://127.0.0.2:{inner.port}/secret")
    with pytest.raises(FetchRefused):
        make_downloader(trust).fetch(host.url("/1"))
    for name in ("127.0.0.2", "2130706434", "[::ffff:127.0.0.2]"):
        with pytest.raises(FetchError):
            make_downloader(trust).fetch(f"https://{name}:{inner.port}/secret")
    with pytest.raises(FetchRefused, match="not a public address"):
        Downloader(MetadataSettings(), trust=trust).fetch(host.url("/1"))
    assert (inner.connections, host.connections) == (0, 1)


def test_a_name_that_changes_its_mind(
    host: Host, make_host: Callable[[str], Host], trust: ssl.SSLContext
) -> None:
    inner = make_host("127.0.0.2")
    answers = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1", "127.0.0.2"]]
    asked: list[str] = []

    def resolve(name: str, _port: int) -> list[str]:
        asked.append(name)
        return answers[len(asked) - 1]

    host.answers["/1"] = send(b"{}")
    downloader = Downloader(
        MetadataSettings(), guard=Guard(parse_networks(HERE), resolve), trust=trust
    )
    assert downloader.fetch(host.url("/1", "meta.example")).content == "{}"
    assert asked == ["meta.example"]
    for _ in range(2):
        with pytest.raises(FetchRefused, match=r"127\.0\.0\.2 is not a public"):
            downloader.fetch(host.url("/1", "meta.example"))
    assert (host.connections, inner.connections) == (1, 0)


def test_the_next_address_is_tried(host: Host, trust: ssl.SSLContext) -> None:
    host.answers["/1"] = send(b"{}")
    guard = Guard(parse_networks("127.0.0.0/8"), lambda _name, _port: ["127.0.0.3", "127.0.0.1"])
    found = Downloader(MetadataSettings(), guard=guard, trust=trust).fetch(
        host.url("/1", "meta.example")
    )
    assert found.content == "{}"


def test_proxies_of_the_environment_play_no_part(
    host: Host, trust: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    host.answers["/1"] = send(b"{}")
    assert make_downloader(trust).fetch(host.url("/1")).content == "{}"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (send(b"<html>", "text/html"), "content of type 'text/html'"),
        (send(b"{}", "image/png"), "content of type"),
        (send(b"{}", ""), "content of type ''"),
        (send(b"{}", Content_Encoding="gzip"), "compressed"),
        (send(b"[1]"), "no JSON object"),
        (send(b'"text"'), "no JSON object"),
        (send(b"null"), "no JSON object"),
        (send(b""), "no JSON object"),
        (send(b'{"a":'), "no JSON object"),
        (send(b'{"a":"\xff"}'), "no JSON object"),
        (send(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"), "no JSON object"),
        (send(b'{"a":1e999}'), "no JSON object"),
        (send(b'{"a":"' + b"x" * 200_000 + b'"}'), "more than 150000 bytes"),
        (drip(ENDLESS, b"1000\r\n" + b" " * 4096 + b"\r\n"), "more than 150000 bytes"),
    ],
)
@_patient
@mock.patch.object(download, "OBJECT", download.OBJECT._replace(max_bytes=150_000))
def test_answers_that_are_no_content(
    host: Host, trust: ssl.SSLContext, answer: Answer, reason: str
) -> None:
    host.answers["/1"] = answer
    with pytest.raises(ContentInvalid, match=reason):
        make_downloader(trust).fetch(host.url("/1"))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (send(b"", status=404), "answered 404"),
        (send(b"{}", status=500), "answered 500"),
        (send(b"{}", status=206), "answered 206"),
        (send(b"", status=302), "answered 302"),
        (lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n"), "request to .* failed"),
        (drip(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 4096), "request to .* failed"),
        (lambda handler: handler.connection.shutdown(socket.SHUT_RDWR), "request to .* failed"),
    ],
)
@_patient
def test_answers_that_are_none(
    host: Host, trust: ssl.SSLContext, answer: Answer, reason: str
) -> None:
    host.answers["/1"] = answer
    with pytest.raises(FetchFailed, match=reason):
        make_downloader(trust).fetch(host.url("/1"))


@pytest.mark.parametrize("answer", [be_silent, drip(ENDLESS, b"1\r\n \r\n")])
@mock.patch.object(download, "TIMEOUT_MS", 300)
@mock.patch.object(download, "OBJECT", download.OBJECT._replace(max_bytes=1 << 40))
def test_no_answer_lasts_for_ever(host: Host, trust: ssl.SSLContext, answer: Answer) -> None:
    host.answers["/1"] = answer
    with pytest.raises(FetchFailed):
        make_downloader(trust).fetch(host.url("/1"))


@mock.patch.object(download, "TIMEOUT_MS", 50)
def test_a_resolver_that_never_answers(trust: ssl.SSLContext) -> None:
    never = threading.Event()

    def resolve(_name: str, _port: int) -> list[str]:
        never.wait()
        return []

    downloader = Downloader(MetadataSettings(), guard=Guard((), resolve), trust=trust)
    with pytest.raises(FetchFailed, match="not resolved in time"):
        downloader.fetch("https://meta.example/")
    never.set()


@pytest.mark.parametrize(
    "uri",
    [
        *("http://localhost/x", "ftp://localhost/x", "javascript:alert(1)", "tonstorage://AB/x"),
        *("data:application/json,{}", "gold.json", "", "https://", "https:///x"),
        *("https://ann@localhost/", "https://ann:pw@localhost/"),
        *("https://[::1/", "https://localhost/\n", "https://\x00/"),
        f"https://localhost/{'x' * 2048}",
    ],
)
def test_addresses_that_are_not_asked(trust: ssl.SSLContext, uri: str) -> None:
    with pytest.raises(FetchRefused):
        make_downloader(trust).fetch(uri)


def test_ipfs_by_the_gateway(host: Host, trust: ssl.SSLContext) -> None:
    host.answers["/ipfs/bafy/1.json"] = send(b"{}")
    downloader = make_downloader(trust, ipfs_gateway=host.url("/ipfs/"))
    for uri in ("ipfs://bafy/1.json", "IPFS://bafy/1.json", "ipfs://ipfs/bafy/1.json"):
        assert downloader.fetch(uri) == ("{}", host.url("/ipfs/bafy/1.json"))
    with pytest.raises(FetchRefused, match="no IPFS gateway"):
        make_downloader(trust, ipfs_gateway="").fetch("ipfs://bafy/1.json")


def test_certificates_count(host: Host, trust: ssl.SSLContext) -> None:
    host.answers["/1"] = send(b"{}")
    guard = Guard(parse_networks(HERE), lambda _name, _port: ["127.0.0.1"])
    downloader = Downloader(MetadataSettings(), guard=guard, trust=trust)
    assert downloader.fetch(host.url("/1", "meta.example")).content == "{}"
    with pytest.raises(FetchFailed, match="certificate verify failed"):
        downloader.fetch(host.url("/1", "stranger.example"))
    with pytest.raises(FetchFailed, match="certificate verify failed"):
        Downloader(MetadataSettings(networks=HERE)).fetch(host.url("/1"))
    assert host.count["/1"] == 1
