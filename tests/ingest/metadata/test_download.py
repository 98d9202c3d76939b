"""Downloads from a real TLS server: accepted and refused documents."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.metadata.conftest import Host, be_silent, drip, redirect, send
from tonlake.ingest.errors import ContentInvalid, FetchError, FetchFailed, FetchRefused
from tonlake.ingest.metadata import download
from tonlake.ingest.metadata.download import (
    MAX_PIXELS,
    PICTURE_BYTES,
    Downloader,
    Guard,
    is_public,
    parse_networks,
    read_picture,
)
from tonlake.ingest.settings import MetadataSettings
from tonlake.lake.errors import SettingsError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tests.ingest.metadata.conftest import Answer


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
@mock.patch.object(download, "OBJECT", download.OBJECT._replace(max_bytes=150_000))
def test_answers_that_are_no_content_or_none(
    host: Host, trust: ssl.SSLContext, answer: Answer, reason: str
) -> None:
    host.answers["/1"] = answer
    error = FetchFailed if reason.startswith(("answered", "request")) else ContentInvalid
    with pytest.raises(error, match=reason):
        make_downloader(trust).fetch(host.url("/1"))


@pytest.mark.parametrize("name", ["xn--e28h.example", "xn--a"])
def test_a_host_is_shown_as_it_is_sent(host: Host, trust: ssl.SSLContext, name: str) -> None:
    """Names in Punycode need not be IDNA, such as those with emoji."""
    guard = Guard(parse_networks(HERE), lambda _name, _port: ["127.0.0.1"])
    downloader = Downloader(MetadataSettings(), guard=guard, trust=trust)
    with pytest.raises(FetchFailed, match=f"request to {name} failed: .*certificate"):
        downloader.fetch(host.url("/1", name))


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


def test_redirects_that_httpx_cannot_decode(host: Host, trust: ssl.SSLContext) -> None:
    guard = Guard(parse_networks(HERE), lambda _name, _port: ["127.0.0.1"])
    downloader = Downloader(MetadataSettings(), guard=guard, trust=trust)
    strange = host.url("/1", "xn--a")
    for target, reason in ((":x://]", "invalid URL"), (strange, "request to xn--a")):
        host.answers["/1"] = redirect(target)
        with pytest.raises(FetchError, match=reason):
            downloader.fetch(host.url("/1", "meta.example"))


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


INTERNAL = [
    *("0.1.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254"),
    *("127.0.0.1", "127.1.2.3", "169.254.169.254", "169.254.0.1", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.7", "192.88.99.1", "192.168.0.1"),
    *("192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.9"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1"),
    *("2001::1", "2001:0:7f00:1::1", "2001:10::1", "2001:20::1", "2001:db8::1"),
    *("2002:7f00:1::1", "2002:a00:1::1", "3fff::1", "4000::1", "5f00::1", "fc00::1"),
    *("fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1"),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
    *("126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.0", "172.15.255.255"),
    *("172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
    *("223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "2400:cb00::1"),
    *("::ffff:8.8.8.8", "64:ff9b::808:808"),
]


@pytest.mark.parametrize("text", INTERNAL)
def test_internal_addresses_are_refused(text: str) -> None:
    assert not is_public(ip_address(text))
    with pytest.raises(FetchRefused, match="not a public address"):
        Guard(resolve=lambda _host, _port: [text]).find_addresses("host.example", 443, 60)


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_not(text: str) -> None:
    guard = Guard(resolve=lambda _host, _port: [text])
    assert guard.find_addresses("host.example", 443, 60) == [text]
    with pytest.raises(FetchRefused, match="port 8443 is not 443"):
        guard.find_addresses("host.example", 8443, 60)


@given(st.ip_addresses(v=4))
def test_wrapped_addresses_are_as_what_they_wrap(address: IPv4Address) -> None:
    for prefix in ("::ffff:0:0", "64:ff9b::"):
        wrapped = IPv6Address(int(IPv6Address(prefix)) | int(address))
        assert is_public(wrapped) == is_public(address)
    assert not is_public(IPv6Address(int(address)))
    assert not is_public(IPv6Address(int(IPv6Address("2002::")) | int(address) << 80))


@given(st.ip_addresses())
def test_no_address_that_python_calls_internal_is_public(
    address: IPv4Address | IPv6Address,
) -> None:
    if address.is_private or address.is_multicast or address.is_reserved or address.is_loopback:
        wraps = getattr(address, "ipv4_mapped", None) or address in IPv6Network("64:ff9b::/96")
        assert wraps or not is_public(address)


@pytest.mark.parametrize("others", [["127.0.0.1", "8.8.8.8"], ["8.8.8.8", "fd00::1"]])
def test_one_internal_address_of_a_name_is_enough(others: list[str]) -> None:
    with pytest.raises(FetchRefused):
        Guard(resolve=lambda _host, _port: others).find_addresses("host.example", 443, 60)


def test_allowed_networks() -> None:
    guard = Guard(parse_networks(" 10.1.0.0/16, fd00::/8 ,"), lambda host, _port: [host])
    for text in ("10.1.2.3", "fd00::1", "::ffff:10.1.2.3"):
        assert guard.find_addresses(text, 8443, 60) == [text]
    for text in ("10.2.0.1", "127.0.0.1", "::ffff:10.2.0.1"):
        with pytest.raises(FetchRefused):
            guard.find_addresses(text, 443, 60)
    with pytest.raises(SettingsError, match=r"\[metadata\] networks"):
        parse_networks("10.1.0.0/16,internal")


@pytest.mark.parametrize("name", ["nothing.invalid", "a" * 300 + ".example", "", "\udc80.example"])
def test_names_without_addresses(name: str) -> None:
    def resolve(host: str, _port: int) -> list[str]:
        host.encode("idna")
        raise OSError("no such name")

    with pytest.raises(FetchFailed, match="cannot be resolved"):
        Guard(resolve=resolve).find_addresses(name, 443, 60)


def test_names_that_resolve_to_nothing() -> None:
    with pytest.raises(FetchFailed, match="has no address"):
        Guard(resolve=lambda _host, _port: []).find_addresses("host.example", 443, 60)


@pytest.mark.parametrize("name", ["localhost", "127.1", "2130706433", "0x7f.1", "[::1]"])
def test_ways_to_write_this_machine(name: str) -> None:
    with pytest.raises((FetchRefused, FetchFailed)):
        Guard().find_addresses(name.strip("[]"), 443, 60)


def make_png(width: int, height: int) -> bytes:
    """Return the beginning of a PNG file."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def make_jpeg(width: int, height: int) -> bytes:
    """Return the beginning of a JPEG file: a segment of an application, then the size."""
    comment = struct.pack(">HH4s", 0xFFE0, 6, b"JFIF")
    return b"\xff\xd8" + comment + struct.pack(">HHBHH", 0xFFC2, 11, 8, height, width)


def make_webp(width: int, height: int, chunk: bytes = b"VP8X") -> bytes:
    """Return the beginning of a WebP file."""
    bodies = {
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + (width - 1 | height - 1 << 14).to_bytes(4, "little"),
        b"VP8 ": bytes(6) + struct.pack("<HH", width | 0x4000, height),
    }
    return b"RIFF" + bytes(4) + b"WEBP" + chunk + bytes(4) + bodies[chunk]


PICTURES = [
    ("image/png", make_png),
    ("image/jpeg", make_jpeg),
    ("image/gif", lambda width, height: b"GIF89a" + struct.pack("<HH", width, height)),
    ("image/webp", make_webp),
    ("image/webp", lambda width, height: make_webp(width, height, b"VP8L")),
    ("image/webp", lambda width, height: make_webp(width, height, b"VP8 ")),
]


@pytest.mark.parametrize(("kind", "make"), PICTURES)
def test_types_and_sizes(kind: str, make: object) -> None:
    assert callable(make)
    assert read_picture(make(300, 200)).kind == kind
    with pytest.raises(ContentInvalid, match="16000 by 16000 pixels"):
        read_picture(make(16000, 16000))
    for end in range(6, len(make(300, 200))):
        with pytest.raises(ContentInvalid):
            read_picture(make(300, 200)[:end])


@pytest.mark.parametrize(
    "body",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<?xml version='1.0'?><svg/>",
        b"<html>",
        b"",
        b"RIFF\0\0\0\0WAVEfmt ",
        make_png(0, 5),
        make_png(MAX_PIXELS, 2),
    ],
)
def test_what_is_no_picture_is_refused(body: bytes) -> None:
    with pytest.raises(ContentInvalid):
        read_picture(body)


@given(st.sampled_from([b"\xff\xd8\xff", b"RIFF0000WEBP", b"GIF89a", b""]), st.binary(max_size=99))
def test_any_bytes_are_read_or_refused(start: bytes, rest: bytes) -> None:
    with suppress(ContentInvalid):
        assert read_picture(start + rest).body == start + rest


def test_the_bytes_decide_not_the_type(host: Host, trust: ssl.SSLContext) -> None:
    body = make_png(8, 8)
    host.answers |= {
        "/plain": send(body, "application/octet-stream"),
        "/html": send(body, "text/html"),
        "/svg": send(body, "image/svg+xml"),
        "/named": send(b"<svg/>", "image/png"),
        "/large": send(body + bytes(PICTURE_BYTES), "image/png"),
    }
    downloader = make_downloader(trust)
    assert downloader.fetch_picture(host.url("/plain")) == ("image/png", body)
    for path in ("/html", "/svg", "/named", "/large"):
        with pytest.raises(ContentInvalid):
            downloader.fetch_picture(host.url(path))
