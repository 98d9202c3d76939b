"""Addresses: which belong to one client, and which to this machine."""

import pytest

from tonlake.api.http.address import is_own_machine, name_address


@pytest.mark.parametrize(
    ("host", "asker"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_addresses_of_one_asker(host: str, asker: str) -> None:
    assert name_address(host) == asker


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *(("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("192.0.2.1", False), ("example.org", False)),  # noqa: S104
    ],
)
def test_own_machine(host: str, own: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert is_own_machine(host) is own
