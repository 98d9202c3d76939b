"""Fetches pictures of tokens if the operator allows it, caches and serves them.

A browser never contacts another host, and a client cannot choose the URL to fetch: it comes from a
token in the lake.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from tonlake.api.errors import AnswerNotFound, ServiceBusy
from tonlake.api.explorer.frame import HEADERS
from tonlake.api.http.admission import in_queue
from tonlake.api.request.call import (
    ApiRequest,
    ConversionError,
    open_call,
    parse_any_address,
    read_arguments,
)
from tonlake.api.v3.page.metadata import describe_tokens
from tonlake.ingest.errors import FetchError
from tonlake.ingest.metadata.download import Downloader

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.metadata.download import Picture
    from tonlake.ingest.settings import MetadataSettings

CACHE_BYTES = 1 << 26
"""Size of the cache in memory; the least recently used pictures are evicted."""

ENTRY_BYTES = 1 << 10
"""Added to the size of each entry, so that failures do not fill the memory either."""

RETRY_S = 600
"""Seconds before a failed fetch is retried."""

FETCHES = 4
"""Concurrent fetches; further ones wait."""

MAX_WAITING = 64
"""Requests that may wait for pictures; more are refused, so that no slow host blocks the server."""

PICTURE_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "public, max-age=86400",
    "Vary": "Accept-Encoding",
}


class Pictures:
    """A cache of pictures by URI, for one event loop."""

    def __init__(
        self, settings: MetadataSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the fetch settings and a clock in seconds."""
        self._settings, self._clock = settings, clock
        self._kept: OrderedDict[str, tuple[float, Picture | None]] = OrderedDict()
        self._size = 0
        self._fetched: dict[str, asyncio.Task[Picture | None]] = {}
        self._waiting = 0

    @property
    def is_allowed(self) -> bool:
        """Whether the operator allows fetching."""
        return self._settings.enabled

    async def find(self, uri: str) -> Picture | None:
        """Return the picture at ``uri``; None if it could not be fetched.

        Concurrent requests share one fetch. A failed fetch is retried after ``RETRY_S``.

        Raises:
            ServiceBusy: too many requests wait for pictures.
        """
        kept = self._kept.get(uri)
        if kept is not None and (kept[1] is not None or self._clock() < kept[0] + RETRY_S):
            self._kept.move_to_end(uri)
            return kept[1]
        if self._waiting >= MAX_WAITING:
            raise ServiceBusy("too many requests wait for pictures")
        task = self._fetched.get(uri)
        if task is None:
            task = self._fetched[uri] = asyncio.create_task(self._fetch(uri))
            task.add_done_callback(lambda _: self._fetched.pop(uri))
        self._waiting += 1
        try:
            # Other requests wait for the task, too, if the first one is cancelled.
            return await asyncio.shield(task)
        finally:
            self._waiting -= 1

    async def _fetch(self, uri: str) -> Picture | None:
        async with self._turns:
            try:
                found = await asyncio.to_thread(self._downloader.fetch_picture, uri)
            except FetchError:
                found = None
        self._keep(uri, found)
        return found

    def _keep(self, uri: str, found: Picture | None) -> None:
        if uri in self._kept:
            self._size -= _weigh(uri, self._kept.pop(uri)[1])
        self._kept[uri] = self._clock(), found
        self._size += _weigh(uri, found)
        while self._size > CACHE_BYTES:
            old, (_, picture) = self._kept.popitem(last=False)
            self._size -= _weigh(old, picture)

    @cached_property
    def _turns(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(FETCHES)

    @cached_property
    def _downloader(self) -> Downloader:
        return Downloader(self._settings)


def _weigh(uri: str, picture: Picture | None) -> int:
    return ENTRY_BYTES + len(uri) + (len(picture.body) if picture else 0)


def find_address(request: ApiRequest) -> str:
    """Return the picture URI of a token in the lake.

    Raises:
        AnswerNotFound: the account is not a token, or has no picture.
    """
    call = open_call(request, read_arguments(request))
    try:
        account = parse_any_address(request.path_params["address"])
    except ConversionError as error:
        raise AnswerNotFound("not an address") from error
    for known in describe_tokens(call, [account]).values():
        for info in known.token_info:
            if isinstance(info.image, str) and info.image:
                return info.image
    raise AnswerNotFound("this account has no picture")


def make_route(pictures: Pictures) -> HTTPRouteHandler:
    """Return the route that serves pictures by token address."""
    look_up = in_queue(find_address)

    async def show_picture(request: ApiRequest) -> Response[bytes]:
        """Return the picture of a token."""
        found = await pictures.find(await look_up(request=request)) if pictures.is_allowed else None
        if found is None:
            raise AnswerNotFound("no picture")
        return Response(found.body, media_type=found.kind, headers=PICTURE_HEADERS)

    return HTTPRouteHandler("/picture/{address:str}", http_method="GET")(show_picture)
