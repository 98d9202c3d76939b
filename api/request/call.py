"""The context of one request: arguments, settings, and a reader of one snapshot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl

import msgspec
from litestar import Request, Response

from tonlake.api.errors import RequestInvalid
from tonlake.api.request.params import Arguments, ConversionError, parse_bool, parse_int32
from tonlake.api.settings import HttpSettings, Settings
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.queries.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.api.request.snapshot import SnapshotHolder
    from tonlake.api.text.address import Address

SHARED_PARAMETERS = frozenset(
    {
        *("api_key", "snapshot", "x_no_address_book", "x_no_metadata", "x_timeout"),
        *("x_debug_request", "csv_safe"),
    }
)
"""Parameters of every operation; all but ``snapshot`` and ``csv_safe`` replace headers."""

ANSWER_HEADERS = frozenset({b"x-no-address-book", b"x-no-metadata", b"x-actions-version"})
"""Request headers that responses depend on; they are part of the cache key."""

LASTING, VARYING = "lasting", "varying"
"""Keys in the scope's state: the response lasts until the next commit, except for one part."""

TAGGED, PINNED = "tagged", "pinned"
"""Keys in the scope's state: the digest of the snapshot, and whether the request names it."""

AT_ONCE = "at_once"
"""Key in the scope's state: only the index may answer, since the event loop must not block."""

STARTED_S = "started_s"
"""Key in the scope's state: when the request arrived; streams have none."""

MAX_NOTES, MAX_NOTE_CHARACTERS = 10, 300
"""Limits of the warning header; further warnings are only counted."""

ApiRequest = Request[Any, Any, Any]


class PendingMessages(Protocol):
    """Sent messages that are not in a block yet."""

    def add(self, call: Call, boc: bytes) -> None:
        """Add a message that the upstream accepted."""

    def list_traces(self) -> list[Any]:
        """Return the emulated traces, as in ``api.v3.resource.pending_trace``."""


class Fetcher(Protocol):
    """Fetches data missing from the lake; accounts as ``api.chain.fetched.FetchedAccount``."""

    def recall(self, address: Address, first: int, mc_seqno: int) -> Any:  # noqa: ANN401
        """Return an account fetched earlier as of a block; None if there is none."""

    def fetch(self, call: Call, address: Address) -> Any:  # noqa: ANN401
        """Return an account as of the newest block, or raise SourceError."""

    def fetch_config(self, call: Call, master: Mapping[str, Any]) -> dict[int, bytes]:
        """Return the configuration after a masterchain block, or raise SourceError."""


class Call(msgspec.Struct, frozen=True):
    """The context in which an operation answers one request."""

    arguments: Arguments
    settings: Settings
    reader: Reader
    tvm: TvmPool | None = None
    """Runs get-methods; None outside the service."""
    pending: PendingMessages | None = None
    """Messages that are not in a block yet; None outside the service."""
    fetcher: Fetcher | None = None
    """Fetches accounts missing from the lake; None without lite servers."""
    no_address_book: bool = False
    no_metadata: bool = False
    actions_version: str = ""
    """Header X-Actions-Version: the version of action types that the client knows."""

    notes: list[str] = msgspec.field(default_factory=list)
    """Lines of the response's warning header."""

    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Other headers of the response."""

    states: dict[tuple[int, bytes], Any] = msgspec.field(default_factory=dict)
    """Newest states read so far, by workchain and account; None for accounts not in the lake."""

    passing: list[str] = msgspec.field(default_factory=list)
    """What could not be fetched; such a response is not cached, since it may soon change."""

    def warn(self, note: str) -> None:
        """Add a line to the response's warning header."""
        self.notes.append(note)

    @property
    def test_only(self) -> bool:
        """Whether friendly addresses have the test-only flag: set, or by the network."""
        if self.settings.http.testnet is not None:
            return self.settings.http.testnet
        network = self.reader.snapshot.network
        return network is not None and network.global_id == TESTNET_GLOBAL_ID


TESTNET_GLOBAL_ID = -3


def read_arguments(request: ApiRequest) -> Arguments:
    """Return the request's query parameters, with undecodable bytes replaced."""
    query = request.scope["query_string"]
    return Arguments(parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else ())


def read_header(request: ApiRequest, name: bytes) -> str | None:
    """Return the first header with this lower-case name; None if there is none."""
    for header, value in request.scope["headers"]:
        if header == name:
            return value.decode("latin-1")
    return None


def open_call(request: ApiRequest, arguments: Arguments, mc_seqno: int | None = None) -> Call:
    """Choose the snapshot, note it for the response headers, and return the call.

    With ``mc_seqno``, the call sees the lake as it was after that masterchain block.

    Raises:
        RequestInvalid: ``snapshot`` is not a number.
        NotCovered: the lake does not have the masterchain block.
        LakeError: no commit yet, no such snapshot, or a damaged file.
        QueryNeeded: waiting is not allowed, and the snapshot is not open.
    """
    service, state = request.app.state, request.scope["state"]
    holder: SnapshotHolder = service.holder
    settings: Settings = service.settings
    wishes = _read_wishes(request, arguments)
    pinned = _read_snapshot_number(arguments)
    reader = holder.reader(
        pinned,
        timeout_ms=_read_timeout_ms(wishes, settings.http),
        at_once=AT_ONCE in state,
        mc_seqno=mc_seqno,
    )
    snapshot = reader.snapshot
    state["snapshot"] = f"{snapshot.number}:{snapshot.last_mc_seqno}"
    state["snapshot_number"], state[PINNED] = snapshot.number, pinned is not None
    state[TAGGED] = snapshot.state.digest
    if settings.http.debug_headers:
        state["answered_by"] = reader.answered_by
    if snapshot.lacking:
        lacking = ", ".join(snapshot.lacking)
        state.setdefault("notes", []).append(f"this lake is a copy without the tables {lacking}")
    for first, last in snapshot.state.reported_ranges:
        state.setdefault("notes", []).append(
            f"masterchain blocks {first} to {last} are as the public data set reports them:"
            " not verified"
        )
    return Call(
        arguments,
        settings,
        reader,
        tvm=service.tvm,
        pending=service.pending,
        fetcher=service.fetcher,
        no_address_book=_read_flag(wishes, "x_no_address_book"),
        no_metadata=_read_flag(wishes, "x_no_metadata"),
        actions_version=wishes.get(_ACTIONS_VERSION, ""),
        notes=state.setdefault("notes", []),
        headers=state.setdefault("headers", {}),
    )


def keep_answer(request: ApiRequest, varying: str | None = None) -> None:
    """Mark a response as cacheable: it depends only on the snapshot and the request.

    Args:
        request: The request; ``open_call`` has chosen its snapshot.
        varying: The part of the text that ``write_moment`` rewrites for every request.
    """
    state = request.scope["state"]
    state[LASTING], state[VARYING] = state["snapshot_number"], varying


def measure_ms(started_s: float) -> float:
    """Return the milliseconds since a reading of the performance counter."""
    return (time.perf_counter() - started_s) * 1000


def write_moment(started_s: float) -> str:
    """Return Unix seconds, the worker (none), and milliseconds since the request arrived."""
    return f"{int(time.time())}:_:{measure_ms(started_s):.3f}"


def note_warnings(request: ApiRequest, lines: list[str], settings: HttpSettings) -> None:
    """Report odd parameters in a response header, or refuse them.

    Raises:
        RequestInvalid: the setting ``strict_parameters`` is on.
    """
    if lines and settings.strict_parameters:
        raise RequestInvalid(join_notes(lines))
    request.scope["state"].setdefault("notes", []).extend(lines)


def join_notes(notes: list[str]) -> str:
    """Return the text of the warning header; long lists are truncated."""
    shown = [note[:MAX_NOTE_CHARACTERS] for note in notes[:MAX_NOTES]]
    if len(notes) > MAX_NOTES:
        shown.append(f"and {len(notes) - MAX_NOTES} more")
    return "; ".join(shown)


def answer_json(body: bytes, settings: HttpSettings) -> Response[bytes]:
    """Return JSON text as a response.

    Raises:
        RequestInvalid: the text is larger than the settings allow.
    """
    check_size(body, settings)
    return Response(content=body, media_type="application/json")


def check_size(body: bytes, settings: HttpSettings) -> None:
    """Check the size of a response against the limit in the settings.

    Raises:
        RequestInvalid: it is too large.
    """
    if len(body) > settings.response_bytes:
        raise RequestInvalid(
            f"the answer has {len(body)} bytes, more than {settings.response_bytes}: "
            "ask for fewer rows"
        )


def _read_snapshot_number(arguments: Arguments) -> int | None:
    text = arguments.last("snapshot")
    if text is None:
        return None
    try:
        return parse_int32(text)
    except ConversionError as error:
        raise RequestInvalid('schema: error converting value for "snapshot"') from error


_ACTIONS_VERSION = "x_actions_version"
_TWINS = ("x_timeout", "x_no_address_book", "x_no_metadata")
"""Parameters that are also headers; the header takes precedence."""

_WISHES = {name.replace("_", "-").encode(): name for name in (*_TWINS, _ACTIONS_VERSION)}
"""Headers that control the response, in lower case, with the names of their parameters."""


def _read_wishes(request: ApiRequest, arguments: Arguments) -> dict[str, str]:
    """Return the response options from headers, or from the parameters of the same names."""
    wishes = {name: text for name in _TWINS if (text := arguments.last(name)) is not None}
    headers = request.scope["headers"]
    found = [(_WISHES[name], value) for name, value in headers if name in _WISHES]
    # Of repeated headers the first one counts.
    wishes.update((name, value.decode("latin-1")) for name, value in reversed(found))
    return wishes


def _read_timeout_ms(wishes: dict[str, str], settings: HttpSettings) -> int:
    """Return the smaller of the requested and the server's timeout; a bad value is ignored."""
    limit_ms = settings.query_timeout_ms
    if "x_timeout" not in wishes:
        return limit_ms
    try:
        asked_ms = parse_int32(wishes["x_timeout"])
    except ConversionError:
        return limit_ms
    if asked_ms <= 0:
        return limit_ms
    return min(asked_ms, limit_ms) if limit_ms else asked_ms


def _read_flag(wishes: dict[str, str], name: str) -> bool:
    """Return the boolean of a header or of its parameter; a bad value is ignored."""
    if name not in wishes:
        return False
    try:
        return parse_bool(wishes[name])
    except ConversionError:
        return False
