"""Which pages may ask for SQL: those of the service itself, under a name that is its own.

A browser lets any page send requests, and a page whose host name was made to point at this service
(DNS rebinding) read the answers. Programs send neither an origin nor a foreign name.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tonlake.api.errors import OriginForbidden

if TYPE_CHECKING:
    from tonlake.api.request.call import ApiRequest

PRIVATE_DOMAINS = (".localhost", ".local", ".internal", ".home.arpa")
"""Domains that no public name server answers for (RFC 6761, 6762, 8375)."""

_PORT = re.compile(r":\d*$")
_DEFAULT_PORTS = (":80", ":443")
_OWN_SITES = ("same-origin", "none")


def check_origin(request: ApiRequest, hosts: str) -> None:
    """Refuse a request that a page of another origin, or under a foreign host name, sends.

    Args:
        request: The request; a link elsewhere passes: it may show a statement, and run none.
        hosts: Host names that are allowed beside addresses and private names, with commas.

    Raises:
        OriginForbidden: it is such a request.
    """
    own = _read_header(request, b"host")
    names = {part.strip().lower() for part in hosts.split(",")}
    if not all(_is_own(_PORT.sub("", host).lower(), names) for host in own):
        raise OriginForbidden(
            "SQL is not answered under this host name: add it to [sql] hosts if it is the service's"
        )
    origins = _read_header(request, b"origin")
    if not {_find_authority(origin) for origin in origins} <= {_shorten(host) for host in own}:
        raise OriginForbidden("SQL requests from pages of other web origins are refused")
    mode = _read_header(request, b"sec-fetch-mode")
    by_link = request.method == "GET" and (
        mode == ["navigate"] or not request.scope["query_string"]
    )
    if not by_link:
        check_own(request)


def check_own(request: ApiRequest) -> None:
    """Refuse a request that another site causes, be it by a link.

    Raises:
        OriginForbidden: it is such a request.
    """
    if is_foreign(request):
        raise OriginForbidden("SQL requests from pages of other web origins are refused")


def is_foreign(request: ApiRequest) -> bool:
    """Return whether a browser reports that another site causes the request."""
    return any(site not in _OWN_SITES for site in _read_header(request, b"sec-fetch-site"))


def _read_header(request: ApiRequest, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in request.scope["headers"] if key == name]


def _is_own(host: str, names: set[str]) -> bool:
    """Return whether no stranger can have a page under a host name."""
    host = host.rstrip(".")
    if "." not in host or host.endswith(PRIVATE_DOMAINS) or host in names:
        return True
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _find_authority(origin: str) -> str | None:
    """Return host and port of an origin; None for ``null`` and what is none."""
    try:
        return _shorten(urlsplit(origin).netloc) or None
    except ValueError:
        return None


def _shorten(authority: str) -> str:
    """Return host and port in small letters, without a default port."""
    authority = authority.lower()
    for port in _DEFAULT_PORTS:
        authority = authority.removesuffix(port)
    return authority
