"""Restricts SQL requests from browsers to pages of the service itself, under its own host name.

A browser lets any page send requests, and a page whose host name resolves to this service (DNS
rebinding) could read the responses. Other clients send neither Origin nor a foreign host name.
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
"""Domains that public name servers do not resolve (RFC 6761, 6762, 8375)."""

_PORT = re.compile(r":\d*$")
_DEFAULT_PORTS = (":80", ":443")
_OWN_SITES = ("same-origin", "none")


def check_origin(request: ApiRequest, hosts: str) -> None:
    """Refuse a request from a page of another origin, or under a foreign host name.

    Args:
        request: The request. Links from other sites pass: they show a statement without running it.
        hosts: Host names allowed besides IP addresses and private names, separated by commas.

    Raises:
        OriginForbidden: the request is refused.
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
    """Refuse a request that another site initiates, even by a link.

    Raises:
        OriginForbidden: the request is refused.
    """
    if is_foreign(request):
        raise OriginForbidden("SQL requests from pages of other web origins are refused")


def is_foreign(request: ApiRequest) -> bool:
    """Return whether a browser reports that another site initiated the request."""
    return any(site not in _OWN_SITES for site in _read_header(request, b"sec-fetch-site"))


def _read_header(request: ApiRequest, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in request.scope["headers"] if key == name]


def _is_own(host: str, names: set[str]) -> bool:
    """Return whether ``host`` is a name that no third party can serve pages under."""
    host = host.rstrip(".")
    if "." not in host or host.endswith(PRIVATE_DOMAINS) or host in names:
        return True
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _find_authority(origin: str) -> str | None:
    """Return host and port of an origin; None for ``null`` and invalid origins."""
    try:
        return _shorten(urlsplit(origin).netloc) or None
    except ValueError:
        return None


def _shorten(authority: str) -> str:
    """Return host and port in lower case, without a default port."""
    authority = authority.lower()
    for port in _DEFAULT_PORTS:
        authority = authority.removesuffix(port)
    return authority
