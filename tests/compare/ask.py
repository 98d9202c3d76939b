"""Requests, and the responses of a service."""

from __future__ import annotations

import asyncio
import re
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING

import httpx
import msgspec
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

AT_ONCE = 4
KEPT_S = 2
TRIES = 5
BUSY = 503
PAGES = 2
"""How many more pages are asked for where an answer names the next one."""

CURSOR = "x-tonlake-cursor"
HEADERS = frozenset(
    {
        *("content-type", "x-tonlake-snapshot", "x-tonlake-warning", CURSOR, "x-tonlake-rows"),
        *("x-api-version", "x-content-type-options", "allow", "location", "cache-control"),
        *("retry-after", "vary", "etag", "set-cookie", "content-disposition"),
        *("content-security-policy", "access-control-allow-origin"),
    }
)
"""What is compared of the head; how long an answer took, and who made it, is not."""

RULES = (
    # Volatile fields: when a request was answered, and how far the newest block is behind the
    # clock.
    (re.compile(rb'("@extra":")\d+:[^"]*:[\d.]+'), rb"\1moment"),
    (re.compile(rb'("@type":"ext.blocks.consensusBlock".*"timestamp":)\d+'), rb"\1 0"),
    (re.compile(rb'("lag":)(\{[^}]*\}|[^,}]*)'), rb"\1 0"),
    (re.compile(rb"(<h2>[^<]* rows?</h2>\n<p>)[\d.,]+ ms"), rb"\1time"),
    (re.compile(rb'( data-nonce=")[^"]*'), rb"\1nonce"),
    (re.compile(rb"(Behind the clock by</span><strong>)[^<]*"), rb"\1moment"),
)
_NONCE = re.compile(r"'nonce-[^']*'")
MEASURED = frozenset({"/metrics"})
"""Routes whose whole text are measurements."""


class Request(msgspec.Struct, frozen=True):
    """One request; differences are counted by ``route``."""

    route: str
    method: str
    target: str
    headers: dict[str, str] = {}
    body: bytes = b""

    def __str__(self) -> str:
        """Return it as a line to read."""
        headers = "".join(f" {name}={value}" for name, value in self.headers.items())
        body = f" {self.body.decode('utf-8', 'replace')[:400]}" if self.body else ""
        return f"{self.method} {self.target[:600]}{headers}{body}"


class Answer(msgspec.Struct, frozen=True):
    """A response, without what differs between two runs."""

    status: int
    headers: dict[str, str]
    body: bytes


class Exchange(msgspec.Struct, frozen=True):
    """A request with its answer and the pages that follow it."""

    request: Request
    answers: list[Answer]


async def ask_all(url: str, requests: Sequence[Request]) -> list[Exchange]:
    """Send requests to a service; SQL one by one, and stateful ones after all others."""
    found: dict[int, Exchange] = {}
    queues: dict[str, list[int]] = {"usual": [], "sql": [], "sending": []}
    for number, request in enumerate(requests):
        name = "sending" if is_sending(request) else "usual"
        queues["sql" if "/sql" in request.route else name].append(number)
    async with httpx.AsyncClient(
        base_url=url,
        timeout=120,
        # Shorter than the service's idle timeout, which may cross a request.
        limits=httpx.Limits(max_connections=AT_ONCE + 1, keepalive_expiry=KEPT_S),
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    ) as client:

        async def work(numbers: Iterator[int]) -> None:
            for number in numbers:
                try:
                    found[number] = await ask(client, requests[number])
                except httpx.HTTPError as error:
                    raise RuntimeError(f"no answer to {requests[number]}: {error}") from error

        usual = iter(queues["usual"])
        await asyncio.gather(work(iter(queues["sql"])), *(work(usual) for _ in range(AT_ONCE)))
        await work(iter(queues["sending"]))
    return [found[number] for number in range(len(requests))]


def is_sending(request: Request) -> bool:
    """Return whether a request may change the answers to later ones."""
    return "/send" in request.route or request.route.endswith("/api/v3/message")


async def ask(client: httpx.AsyncClient, request: Request) -> Exchange:
    """Send one request, and follow its pages."""
    answers: list[Answer] = []
    target: str | None = request.target
    while target is not None and len(answers) <= PAGES:
        answers.append(await _ask_once(client, request, target))
        target = None
        if cursor := answers[-1].headers.get(CURSOR):
            bare = re.sub(r"&?\b(cursor|offset)=[^&]*", "", request.target)
            target = f"{bare}{'&' if '?' in bare else '?'}cursor={cursor}"
    return Exchange(request, answers)


async def _ask_once(client: httpx.AsyncClient, request: Request, target: str) -> Answer:
    for attempt in range(TRIES):
        response = await client.request(
            request.method, target, headers=request.headers, content=request.body or None
        )
        if response.status_code != BUSY or is_sending(request):
            break
        await asyncio.sleep(0.2 * 2**attempt)
    headers = {
        name: _NONCE.sub("'nonce-'", text)
        for name, text in response.headers.items()
        if name in HEADERS
    }
    body = b"" if request.route in MEASURED else response.content
    for pattern, replacement in RULES:
        body = pattern.sub(replacement, body)
    return Answer(response.status_code, headers, body)


def write_recording(path: Path, exchanges: Sequence[Exchange]) -> None:
    """Save exchanges to a compressed file."""
    with pa.output_stream(str(path), compression="zstd") as stream:
        stream.write(msgspec.msgpack.encode(exchanges))


def read_recording(path: Path) -> list[Exchange]:
    """Return the saved exchanges."""
    with pa.input_stream(str(path), compression="zstd") as stream:
        return msgspec.msgpack.decode(stream.read(), type=list[Exchange])
