"""Addresses of clients: which belong together, and which are this machine's own."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

V6_PREFIX = 64
"""An address of version 6 stands for its network: one client has all addresses of it."""


@lru_cache(4096)
def name_address(host: str) -> str:
    """Return what the addresses of one client have in common."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address), V6_PREFIX), strict=False))


def is_own_machine(host: str) -> bool:
    """Return whether a service that listens on ``host`` is reached from its own machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
