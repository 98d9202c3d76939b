"""Groups client addresses into clients, and recognises addresses of this machine."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

V6_PREFIX = 64
"""An IPv6 client is identified by its /64 network, since it controls every address in it."""


@lru_cache(4096)
def name_address(host: str) -> str:
    """Return the key of a client: its IPv4 address or its IPv6 network."""
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
    """Return whether a service listening on ``host`` is reachable only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
