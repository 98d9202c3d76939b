"""Addresses that may be connected to."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.ingest.errors import FetchFailed, FetchRefused
from tonlake.ingest.metadata.download import Guard, is_public, parse_networks
from tonlake.lake.errors import SettingsError

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
