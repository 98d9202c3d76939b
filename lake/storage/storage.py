"""Reads and writes a folder on a local file system or in object storage, through Arrow.

A read-only folder may also be on any web server that serves static files: a download that breaks
off is resumed by a range request; if the server does not support ranges, the beginning is read
again and skipped. The reader verifies the content.
"""

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from queue import LifoQueue
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyarrow import fs

from tonlake.lake.errors import (
    LakeCorrupt,
    LakeNotFound,
    QueryError,
    SnapshotNotFound,
    StorageError,
)
from tonlake.lake.log.disk import make_folder, open_temporary, seal_file, sync_folder
from tonlake.lake.log.snapshot import SELECTION_FILE, Snapshot, list_lacking
from tonlake.lake.log.state import LOG_FOLDER, checkpoint_name, entry_name, number_names, read_state

if TYPE_CHECKING:
    import httpx

_NO_BUCKET = (
    "there is no such bucket at {endpoint}: create it, or correct the URL or AWS_ENDPOINT_URL"
)
_REGION = "the bucket is in another region: set AWS_REGION"
_REFUSED = (
    "{endpoint} refuses: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, "
    "if they come with one), or AWS_PROFILE, of a user that may list, read and write there"
)
_CUT = (
    "{endpoint} cannot be reached, or broke off: check AWS_ENDPOINT_URL and the network, and run "
    "the same command again"
)
_ADVICE = {
    r"NO_SUCH_BUCKET|NoSuchBucket|InvalidBucketName": _NO_BUCKET,
    r"PermanentRedirect|AuthorizationHeaderMalformed|HTTP status 301": _REGION,
    r"ACCESS_DENIED|ACCESS_KEY|SIGNATURE|TOKEN|HTTP status 40[13]|[Cc]redentials": _REFUSED,
    r"NETWORK_CONNECTION|REQUEST_TIMEOUT|curlCode|HTTP status 5\d\d|SLOW_DOWN": _CUT,
}
"""Advice by pattern of the error text; the first match applies."""

_AWS = re.compile(r"AWS Error|curlCode|NoSuchBucket")


def find_endpoint(environment: Mapping[str, str]) -> str | None:
    """Return the server URL from Amazon's environment variables; None: Amazon itself."""
    return environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or None


def explain(name: str, text: str, environment: Mapping[str, str]) -> StorageError | None:
    """Return the error to report for a failure at ``name``; None if storage is not the cause."""
    if _AWS.search(text) is None:
        return None
    advice = next(
        (advice for words, advice in _ADVICE.items() if re.search(words, text)), "it failed"
    )
    endpoint = find_endpoint(environment) or "Amazon S3"
    return StorageError(f"{name}: {advice.format(endpoint=endpoint)} ({text.strip()})")


_REGIONS = {"AWS_REGION", "AWS_DEFAULT_REGION"}
_ACCOUNT = {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"}
_URL = re.compile(r"s3a?://(?P<bucket>[^/]*)/*(?P<prefix>.*?)/*")
_NO_FILE = {fs.FileType.Directory, fs.FileType.Unknown}
_CONNECT_S, _REQUEST_S = 10, 60
_CHUNK_BYTES = 8 << 20
_THREADS = 8
"""Concurrent requests to object storage: each takes tens of milliseconds, whatever its size."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Storage:
    """A folder; the paths of its files are relative to it, with forward slashes."""

    def __init__(self, filesystem: fs.FileSystem, root: str, name: str) -> None:
        """Take a file system, a path on it, and its name in errors; see ``open_storage``."""
        self.filesystem = filesystem
        self.root = root
        self.name = name
        self.is_local = isinstance(filesystem, fs.LocalFileSystem)

    def find(self, path: str) -> fs.FileInfo:
        """Return type and size of a path, which may not exist."""
        with self.naming_faults():
            return self.filesystem.get_file_info(self._locate(path))

    def list_files(self, folders: Iterable[str]) -> dict[str, fs.FileInfo]:
        """Return all files and folders below ``folders``, by path."""
        found = {}
        with self.naming_faults():
            for folder in folders:
                below = fs.FileSelector(self._locate(folder), allow_not_found=True, recursive=True)
                for info in self.filesystem.get_file_info(below):
                    found[info.path[len(self.root) + 1 :]] = info
        return found

    @contextmanager
    def open(self, path: str) -> Iterator[pa.NativeFile]:
        """Open a regular file for reading, or raise OSError or StorageError; never block."""
        if self.is_local and self.find(path).type in _NO_FILE:
            raise OSError(f"not a regular file: {self.name}/{path}")
        with self.naming_faults(), self.filesystem.open_input_file(self._locate(path)) as stream:
            yield stream

    def chunks(self, path: str) -> Generator[bytes]:
        """Yield the bytes of a file in pieces; raises as ``open``."""
        with self.open(path) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk

    def read(self, path: str) -> bytes:
        """Return the bytes of a file; raises as ``open``."""
        with self.open(path) as stream:
            data: bytes = stream.read()
        return data

    def write(self, path: str, chunks: Iterable[bytes], sha256: str) -> None:
        """Write a file, which becomes visible, durably, once its bytes match the digest."""
        if not self.is_local:
            with self.naming_faults():
                self._upload(path, chunks, sha256)
            return
        final = Path(self._locate(path))
        folder = final.parent
        make_folder(folder)
        with open_temporary(folder, "file") as (copy, temporary):
            copy.writelines(chunks)
            _compare(path, seal_file(copy, "file"), sha256)
            temporary.replace(final)
        sync_folder(folder)

    def replace(self, path: str, data: bytes) -> None:
        """Write a small file, durably."""
        self.write(path, [data], hashlib.sha256(data).hexdigest())

    def _upload(self, path: str, chunks: Iterable[bytes], sha256: str) -> None:
        """Write an object, which gets its full size only if its bytes match the digest."""
        digest = hashlib.sha256()
        held = b""
        try:
            with self.filesystem.open_output_stream(self._locate(path)) as stream:
                for chunk in chunks:
                    digest.update(chunk)
                    stream.write(held)
                    held = chunk
                _compare(path, digest.hexdigest(), sha256)
                stream.write(held)
        except BaseException:
            # Leaving the stream closes it, which creates an object of the bytes written so far.
            with suppress(OSError):
                self.filesystem.delete_file(self._locate(path))
            raise

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        with self.naming_faults(), suppress(FileNotFoundError):
            self.filesystem.delete_file(self._locate(path))

    @contextmanager
    def naming_faults(self) -> Iterator[None]:
        """Turn errors of the object storage client, raised by a query too, into StorageError."""
        try:
            yield
        except (OSError, pa.ArrowException, QueryError) as error:
            fault = explain(self.name, str(error), os.environ)
            if fault is None:
                raise
            raise fault from error

    def _locate(self, path: str) -> str:
        return f"{self.root}/{path}"


def _compare(path: str, digest: str, sha256: str) -> None:
    if digest != sha256:
        raise LakeCorrupt(path, "its bytes do not match its digest")


def is_url(place: str) -> bool:
    """Whether ``place`` is a URL of object storage."""
    return place.startswith(("s3://", "s3a://"))


def open_storage(place: str | Path, *, public: bool = False) -> Storage:
    """Open a local folder, or object storage by ``s3://bucket/prefix``, or raise StorageError.

    Server, region and credentials come from Amazon's variables: AWS_ENDPOINT_URL, AWS_REGION,
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE. A ``public`` bucket is
    asked for without an account unless they name one, and for its region.
    """
    text = str(place)
    if not is_url(text):
        return Storage(fs.LocalFileSystem(), str(Path(place).absolute()), text)
    match = _URL.fullmatch(text)
    if match is None or not match["bucket"]:
        raise StorageError(f"{text} names no bucket: write s3://bucket/prefix")
    bucket, prefix = match["bucket"], match["prefix"]
    root = f"{bucket}/{prefix}" if prefix else bucket
    is_amazon = not find_endpoint(os.environ) and os.environ.keys().isdisjoint(_REGIONS)
    try:
        filesystem = fs.S3FileSystem(
            anonymous=public and os.environ.keys().isdisjoint(_ACCOUNT),
            region=fs.resolve_s3_region(bucket) if public and is_amazon else None,
            endpoint_override=find_endpoint(os.environ),
            connect_timeout=_CONNECT_S,
            request_timeout=_REQUEST_S,
            allow_delayed_open=True,  # one request per small file instead of three
        )
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{text}: the variables AWS_... are wrong: {error}") from error
    except ImportError as error:
        raise StorageError(
            f"{text}: the one-file binary has no S3 client: install tonlake with pip"
        ) from error
    storage = Storage(filesystem, root, f"s3://{root}")
    with storage.naming_faults():
        if filesystem.get_file_info(bucket).type == fs.FileType.NotFound:
            raise OSError(f"NoSuchBucket: {bucket}")
    return storage


_CONNECTIONS = 5
"""Python's own server has a backlog of five: further connections retry after a second."""

_ATTEMPTS, _LIMITED_ATTEMPTS = 5, 120
"""Attempts without progress before a request fails, and the same while it is rate-limited."""

_PAUSE_S, _MAX_PAUSE_S = 0.1, 30.0
_GONE = {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
_BUSY = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_WEB_URL = re.compile(r"https?://[^/?#]+[^?#]*")


def is_web(place: str) -> bool:
    """Whether ``place`` is a URL of a web server."""
    return place.startswith(("http://", "https://"))


class WebFolder:
    """A folder at a URL; any number of threads may read its files."""

    is_local = False

    def __init__(self, url: str, key: str = "") -> None:
        """Take the URL and the API key, if the service needs one; nothing is requested yet."""
        # The import takes a tenth of a second; only commands that contact a server pay for it.
        import httpx  # noqa: PLC0415 - as above

        if _WEB_URL.fullmatch(url) is None:
            raise StorageError(f"{url} is not the URL of a folder: write https://host/path")
        headers = {"Accept-Encoding": "identity", "User-Agent": "tonlake"}
        if key:
            headers["X-API-Key"] = key
        try:
            self._base = httpx.URL(url.rstrip("/") + "/")
        except httpx.InvalidURL as error:
            raise StorageError(f"{url} is not a valid URL ({error})") from error
        self.name = str(self._base.copy_with(userinfo=b""))[:-1]
        self._transport_error = httpx.TransportError
        # A pool that threads share may close a connection that another one has begun to use.
        context, timeout = httpx.create_ssl_context(), httpx.Timeout(_REQUEST_S, connect=_CONNECT_S)
        self._clients = [
            httpx.Client(headers=headers, timeout=timeout, verify=context)
            for _ in range(_CONNECTIONS)
        ]
        self._idle = LifoQueue[httpx.Client]()
        for client in self._clients:
            self._idle.put(client)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def chunks(self, path: str) -> Generator[bytes]:
        """Yield the bytes of a file, resuming a response that breaks off.

        Raises FileNotFoundError, PermissionError; StorageError: no answer, or not to the end.
        """
        client = self._idle.get()
        try:
            yield from self._read(client, path)
        finally:
            self._idle.put(client)

    def _read(self, client: "httpx.Client", path: str) -> Generator[bytes]:
        """Yield the bytes of a file through one client; as ``chunks``."""
        at, attempts = 0, 0
        while True:
            wait_s = min(_PAUSE_S * 2 ** min(attempts, 9), _MAX_PAUSE_S)
            attempts, most = attempts + 1, _ATTEMPTS
            try:
                headers = {"Range": f"bytes={at}-"} if at else {}
                with client.stream("GET", self._base.join(path), headers=headers) as answer:
                    status = answer.status_code
                    if status not in _BUSY:
                        passed = self._find_begin(path, answer, at)
                        if passed is None:
                            return
                        for part in answer.iter_raw():
                            new = part[max(0, at - passed) :]
                            passed += len(part)
                            if new:
                                at, attempts = at + len(new), 0
                                yield new
                        return
                    if status == HTTPStatus.TOO_MANY_REQUESTS:
                        most = _LIMITED_ATTEMPTS
                    reason = f"it responds with {status}"
                    after = answer.headers.get("retry-after", "")
                    wait_s = min(float(after), _MAX_PAUSE_S) if after.isdecimal() else wait_s
            except self._transport_error as error:
                reason = str(error) or type(error).__name__
            if attempts >= most:
                raise StorageError(
                    f"{self.name} cannot be reached, or broke off ({path}: {reason}): check the "
                    "URL and the network, and run the same command again"
                )
            time.sleep(wait_s)

    def _find_begin(self, path: str, answer: "httpx.Response", at: int) -> int | None:
        """Return the offset at which a response begins; None: complete. Raises as ``chunks``."""
        status = answer.status_code
        if status == HTTPStatus.OK:
            return 0
        begin = f"bytes {at}-"
        if status == HTTPStatus.PARTIAL_CONTENT and at:
            if answer.headers.get("content-range", "").startswith(begin):
                return at
            raise StorageError(f"{self.name} sent a part of {path} that was not requested")
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and at:
            return None
        if status in _GONE:
            raise FileNotFoundError(f"{self.name}/{path}: the server responds with {status}")
        if status == HTTPStatus.FORBIDDEN:
            raise PermissionError(f"{self.name}/{path}: the server responds with {status}")
        if status == HTTPStatus.UNAUTHORIZED:
            raise StorageError(
                f"{self.name} requires an API key: set [pull] key, or TONLAKE_PULL_KEY in the "
                "environment"
            )
        if answer.has_redirect_location:
            where = answer.headers["location"].removesuffix(path)
            raise StorageError(f"{self.name} has moved: use {where} instead")
        raise StorageError(f"{self.name} responds with {status} for {path}")


Source = Storage | WebFolder
"""A folder to read."""


def work_through(
    work: Callable[[_Item], _Result], items: Sequence[_Item], *storages: Source
) -> Iterator[_Result]:
    """Yield the result for each item, in order, up to an error; remote ones run concurrently."""
    if all(storage.is_local for storage in storages):
        yield from map(work, items)
        return
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            yield from pool.map(work, items)
        finally:
            pool.shutdown(cancel_futures=True)


def list_log_names(storage: Storage) -> list[str]:
    """Return the names of the files of a log; none if there is no lake."""
    return [path.rpartition("/")[2] for path in storage.list_files([LOG_FOLDER])]


def list_needed(names: Collection[str], number: int | None) -> list[str]:
    """Return the log files that a state needs: the newest checkpoint, and the entries after it."""
    entries, checkpoints = number_names(names)
    last = max(entries, default=0) if number is None else number
    newest = max((at for at in checkpoints if at <= last), default=0)
    found = [entry_name(at) for at in entries if newest <= at <= last]
    return [checkpoint_name(newest), *found] if newest else found


def fetch_log(storage: Storage, names: Collection[str], number: int, folder: Path) -> None:
    """Copy into a folder what ``read_state`` and ``read_selection`` need of a log."""
    (folder / LOG_FOLDER).mkdir(exist_ok=True)
    needed = [f"{LOG_FOLDER}/{name}" for name in list_needed(names, number)]
    needed += [SELECTION_FILE] if SELECTION_FILE.rpartition("/")[2] in names else []
    for path, data in zip(needed, work_through(storage.read, needed, storage), strict=True):
        (folder / path).write_bytes(data)


def open_remote(storage: Storage, number: int | None = None) -> Snapshot:
    """Open a lake in storage as of a commit, the newest by default; its files are not verified.

    Raises LakeNotFound, SnapshotNotFound, LakeCorrupt, StorageError.
    """
    names = list_log_names(storage)
    entries = number_names(names)[0]
    if not entries:
        raise LakeNotFound(f"{storage.name} holds no lake: no commit in {LOG_FOLDER}/")
    number = entries[-1] if number is None else number
    if number > entries[-1]:
        raise SnapshotNotFound(f"{storage.name} has commits 1 to {entries[-1]}, and no {number}")
    with tempfile.TemporaryDirectory(prefix="tonlake-log-") as name:
        folder = Path(name)
        fetch_log(storage, names, number, folder)
        return Snapshot(Path(storage.root), read_state(folder, number), list_lacking(folder))
