"""``/lake``: serves the files of the lake, for ``tonlake pull`` and other tools that copy files.

Data files and index segments never change and have part of their digest in their names; log
entries never change either. No other file of the lake's folder is served.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from litestar import Response, get
from litestar.exceptions import NotFoundException
from litestar.response import Stream

from tonlake.api.http.gate import check_key
from tonlake.api.request.call import ApiRequest
from tonlake.api.settings import Settings
from tonlake.lake.duck.own import DEFINITIONS_FILE
from tonlake.lake.index.builder.plan import range_of
from tonlake.lake.log.place import describe_pack, is_data_path
from tonlake.lake.log.snapshot import SELECTION_FILE
from tonlake.lake.log.state import FIRST_FILE, LOG_FOLDER, PACK_FOLDER, SEGMENT_FOLDER, DataFile
from tonlake.lake.schema import TABLES

PREFIX = "/lake"
_ENTRY = re.compile(rf"{LOG_FOLDER}/[1-9][0-9]*(\.checkpoint)?\.json")
_DIGEST = re.compile(r"-([0-9a-f]+)\.\w+")
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{0,18})")
"""The ranges that are honoured; for any other the whole file is sent, as HTTP allows."""

_CHUNK_BYTES = 256 << 10
_LASTING = "private, max-age=31536000, immutable"


@get(PREFIX + "/{path:path}", sync_to_thread=True)
def answer_file(request: ApiRequest) -> Response[bytes] | Stream:
    """Return a file of the lake, or the requested range of it."""
    settings: Settings = request.app.state.settings
    if not settings.access.publish:
        raise NotFoundException
    check_key(request.scope, settings.http.host)
    name = request.scope["path"].removeprefix(f"{PREFIX}/")
    file = request.app.state.lake_dir / name
    if not is_published(name) or not file.is_file():
        raise NotFoundException
    found = _DIGEST.search(name.rpartition("/")[2])
    version = hashlib.sha256(file.read_bytes()).hexdigest() if found is None else found[1]
    tag = f'"{version}"'
    lasts = "no-cache" if name in {FIRST_FILE, DEFINITIONS_FILE} else _LASTING
    headers = {"ETag": tag, "Cache-Control": lasts, "Accept-Ranges": "bytes"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, headers=headers)
    size = file.stat().st_size
    first, last, status = 0, size - 1, 200
    wanted = _RANGE.fullmatch(request.headers.get("range", ""))
    if wanted is not None and request.headers.get("if-range", tag) == tag:
        end = min(int(wanted[2] or last), last)
        if int(wanted[1]) <= end:
            first, last, status = int(wanted[1]), end, 206
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    return Stream(
        _read(file, first, last - first + 1),
        status_code=status,
        headers=headers,
        media_type="application/json" if name.endswith(".json") else "application/octet-stream",
    )


def is_published(name: str) -> bool:
    """Whether ``name`` is a data file, index segment, of the log, or file of definitions."""
    if _ENTRY.fullmatch(name) or name in {FIRST_FILE, SELECTION_FILE, DEFINITIONS_FILE}:
        return True
    folder = name.partition("/")[0]
    try:
        if folder == PACK_FOLDER:
            describe_pack(name)
        elif folder == SEGMENT_FOLDER:
            range_of(DataFile(name, folder, 0, 0, "", 0))
        else:
            return folder in TABLES and is_data_path(name)
    except ValueError:
        return False
    return True


def _read(file: Path, first: int, count: int) -> Iterator[bytes]:
    with file.open("rb") as stream:
        stream.seek(first)
        while count and (chunk := stream.read(min(count, _CHUNK_BYTES))):
            count -= len(chunk)
            yield chunk


routes = [answer_file]
