"""Pictures of tokens: fetched where the operator allows it, kept in memory, served as our own.

A reader's browser never asks another host, and no reader chooses an address to fetch: it is the one
that a token in the lake names.
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
from tonlake.api.http.lane import in_lane
from tonlake.api.request.call import ApiRequest, open_call, read_arguments
from tonlake.api.request.params import ConversionError, parse_any_address
from tonlake.api.v3.page.metadata import describe_tokens
from tonlake.ingest.errors import FetchError
from tonlake.ingest.metadata.download import Downloader

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.metadata.picture import Picture
    from tonlake.ingest.settings import MetadataSettings

CACHE_BYTES = 1 << 26
"""Of pictures kept in memory; those that were asked for longest ago make room."""
ENTRY_BYTES = 1 << 10
"""What an entry counts beside its bytes, so that failures fill no memory either."""
RETRY_S = 600
"""Seconds before a picture that could not be fetched is tried again."""
FETCHES = 4
"""Pictures that are fetched at the same time; further requests wait."""

MOST_WAITING = 64
"""Requests that wait for pictures; those beyond are refused: no slow host fills the server."""

PICTURE_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "public, max-age=86400",
    "Vary": "Accept-Encoding",
}


class Pictures:
    """Pictures by the address that a token names; one event loop asks."""

    def __init__(
        self, settings: MetadataSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take from where may be fetched, and a clock in seconds."""
        self._settings, self._clock = settings, clock
        self._kept: OrderedDict[str, tuple[float, Picture | None]] = OrderedDict()
        self._size = 0
        self._fetched: dict[str, asyncio.Task[Picture | None]] = {}
        self._waiting = 0

    @property
    def is_allowed(self) -> bool:
        """Whether the operator lets this server fetch."""
        return self._settings.enabled

    async def find(self, uri: str) -> Picture | None:
        """Return the picture behind an address, fetched once for all who wait; None: there is none.

        One that failed is tried again after a while.

        Raises:
            ServiceBusy: too many requests wait for pictures.
        """
        kept = self._kept.get(uri)
        if kept is not None and (kept[1] is not None or self._clock() < kept[0] + RETRY_S):
            self._kept.move_to_end(uri)
            return kept[1]
        if self._waiting >= MOST_WAITING:
            raise ServiceBusy("too many requests wait for pictures")
        task = self._fetched.get(uri)
        if task is None:
            task = self._fetched[uri] = asyncio.create_task(self._fetch(uri))
            task.add_done_callback(lambda _: self._fetched.pop(uri))
        self._waiting += 1
        try:
            # Others wait for it, too, when the one who asked first goes away.
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
    """Return the address of the picture that a token in the lake names.

    Raises:
        AnswerNotFound: the account is no token, or names no picture.
    """
    call = open_call(request, read_arguments(request))
    try:
        account = parse_any_address(request.path_params["address"])
    except ConversionError as error:
        raise AnswerNotFound("no address") from error
    for known in describe_tokens(call, [account]).values():
        for info in known.token_info:
            if isinstance(info.image, str) and info.image:
                return info.image
    raise AnswerNotFound("this account names no picture")


def make_route(pictures: Pictures) -> HTTPRouteHandler:
    """Return the route of pictures by the address of their token."""
    look_up = in_lane(find_address)

    async def show_picture(request: ApiRequest) -> Response[bytes]:
        """Return the picture of a token."""
        found = await pictures.find(await look_up(request=request)) if pictures.is_allowed else None
        if found is None:
            raise AnswerNotFound("no picture")
        return Response(found.body, media_type=found.kind, headers=PICTURE_HEADERS)

    return HTTPRouteHandler("/picture/{address:str}", http_method="GET")(show_picture)
