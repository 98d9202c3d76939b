"""One request: its parameters, which one struct per operation declares, settings, and a reader.

Each field's annotation carries a `Converter`. Keys are case-insensitive, ``key[]`` means ``key``,
and the last of repeated scalars wins; unknown keys and repeated scalars are reported as warnings.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeVar, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from litestar import Request
from litestar.types import Send

from tonlake.api.errors import AddressInvalid, RequestInvalid
from tonlake.api.request.snapshot import SnapshotHolder
from tonlake.api.request.table_format import CSV, JSON, MEDIA_TYPES, SAFE_CSV
from tonlake.api.settings import HttpSettings, Settings
from tonlake.api.text.encoding import Address, WrittenAddress, read_address
from tonlake.ingest.derive.tvm.pool import TvmPool
from tonlake.lake.account import read_hash, read_shard
from tonlake.queries.reader import Reader

INT64_MAX = (1 << 63) - 1
_UINT32, _UINT64 = 1 << 32, 1 << 64
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_UNSIGNED = re.compile(r"[0-9]{1,40}")
_FRACTION = re.compile(
    r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
)
_HEX_32 = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,8})")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True", "on"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False", ""})
_SORTS = {"asc": "asc", "a": "asc", "desc": "desc", "d": "desc"}


class ConversionError(ValueError):
    """The text does not have the format of its parameter."""


class NoAddress(msgspec.Struct, frozen=True):
    """The literal ``null`` instead of an address: messages without one."""


class Converter(msgspec.Struct, frozen=True):
    """Converts one parameter; ``many``: it may be repeated, ``commas``: or comma-separated."""

    parse: Callable[[str], Any]
    schema: dict[str, Any]
    many: bool = False
    commas: bool = False
    raw: bool = False
    """Whether a JSON value is converted as is, not as text."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parameters of an operation; the field ``x`` is the parameter ``x``."""

    mandatory: ClassVar[tuple[str, ...]] = ()
    """Parameters that a request is refused without, by an error of the operation's own."""


Q = TypeVar("Q", bound=Query)
T = TypeVar("T")


def parse_int32(text: str) -> int:
    """Signed decimal of 32 bits; empty is 0."""
    return _bounded(text, _INTEGER, -(_UINT32 >> 1), (_UINT32 >> 1) - 1)


def parse_lt(text: str) -> int:
    """Unsigned 64-bit decimal; values above 2^63-1 mean "after everything"."""
    return min(_bounded(text, _UNSIGNED, 0, _UINT64 - 1), INT64_MAX)


def parse_utime(text: str) -> int:
    """Unix seconds; a fraction is cut off, and a negative number wraps around as in TON Center."""
    if _UNSIGNED.fullmatch(text) and int(text) < _UINT32:
        return int(text)
    if _FRACTION.fullmatch(text) is None:
        raise ConversionError(text)
    try:
        return min(int(float(text)) % _UINT64, INT64_MAX)
    except OverflowError as error:
        raise ConversionError(text) from error


def parse_bool(text: str) -> bool:
    """The words that Go's ``strconv.ParseBool`` accepts, and ``on``; empty is false."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ConversionError(text)


def parse_hash(text: str) -> bytes:
    """Return 32 bytes from hex or base64; a space is a ``+`` that was not escaped."""
    try:
        return read_hash(text.replace(" ", "+"))
    except ValueError as error:
        raise ConversionError(f"invalid hash: '{text}'") from error


def parse_written_address(text: str) -> WrittenAddress:
    """Read an address in any form, with the flags of that form."""
    try:
        return read_address(text.replace(" ", "+"))
    except AddressInvalid as error:
        raise ConversionError(f"Failed to parse ton_addr: '{text}'") from error


def parse_any_address(text: str) -> Address:
    """Read an address in any form."""
    return parse_written_address(text).address


def parse_if_address(text: str) -> Address | None:
    """Read an address in any form; None if the text is none."""
    try:
        return parse_any_address(text)
    except ConversionError:
        return None


def parse_address_or_null(text: str) -> Address | NoAddress:
    """Read an address in any form, or the word ``null``."""
    return NoAddress() if text == "null" else parse_any_address(text)


def parse_shard(text: str) -> int:
    """Hex digits, else a decimal; the signed 64-bit id."""
    try:
        return read_shard(text)
    except ValueError as error:
        raise ConversionError(text) from error


def parse_opcode(text: str) -> int:
    """Hex digits even without ``0x``, else a decimal; the signed 32-bit number."""
    match = _HEX_32.fullmatch(text)
    number = (
        int(match[1], 16)
        if match
        else _bounded(text, _INTEGER, -(_UINT32 >> 1), _UINT32 - 1, empty=None)
    )
    return number - _UINT32 if number >= _UINT32 >> 1 else number


def parse_sort(text: str) -> str:
    """``asc``, ``a``, ``desc`` or ``d`` in any letter case; "" for anything else."""
    return _SORTS.get(text.lower(), "")


def _bounded(
    text: str, form: re.Pattern[str], low: int, high: int, *, empty: int | None = 0
) -> int:
    if text == "" and empty is not None:
        return empty
    if form.fullmatch(text) is None or not low <= int(text) <= high:
        raise ConversionError(text)
    return int(text)


_INT32 = Converter(parse_int32, {"type": "integer", "format": "int32"})
_UTIME = Converter(parse_utime, {"type": "number"})
_LT = Converter(parse_lt, {"type": "integer", "minimum": 0, "maximum": _UINT64 - 1})
_HASH = Converter(parse_hash, {"type": "string", "pattern": "^(0x)?[0-9a-fA-F]{64}$|^.{43}=?$"})
_ADDRESS = Converter(parse_any_address, {"type": "string", "minLength": 1})
_TEXT = Converter(str, {"type": "string"})

Int32 = Annotated[int | None, _INT32]
Utime = Annotated[int | None, _UTIME]
Lt = Annotated[int | None, _LT]
Flag = Annotated[bool | None, Converter(parse_bool, {"type": "boolean"})]
Hash = Annotated[bytes | None, _HASH]
Hashes = Annotated[tuple[bytes, ...], msgspec.structs.replace(_HASH, many=True, commas=True)]
OneAddress = Annotated[Address | None, _ADDRESS]
Addresses = Annotated[
    tuple[Address, ...], msgspec.structs.replace(_ADDRESS, many=True, commas=True)
]
AddressOrNull = Annotated[
    Address | NoAddress | None, Converter(parse_address_or_null, _ADDRESS.schema)
]
Shard = Annotated[int | None, Converter(parse_shard, {"type": "string"})]
Opcode = Annotated[int | None, Converter(parse_opcode, {"type": "string"})]
Text = Annotated[str | None, _TEXT]
Texts = Annotated[tuple[str, ...], msgspec.structs.replace(_TEXT, many=True, commas=True)]
Sort = Annotated[str | None, Converter(parse_sort, {"type": "string", "enum": sorted(_SORTS)})]


class Arguments:
    """The keys and values of one request, and warnings about them."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Collect the pairs, ignoring the case of keys and a trailing ``[]``."""
        self.values: dict[str, list[str]] = {}
        for key, value in pairs:
            self.values.setdefault(key.lower().removesuffix("[]"), []).append(value)

    def last(self, name: str) -> str | None:
        """Return the last value of a scalar, or None."""
        found = self.values.get(name)
        return found[-1] if found else None

    def warnings(self, known: Mapping[str, Converter], shared: frozenset[str]) -> list[str]:
        """Return warnings of unknown keys and repeated scalars."""
        lines = []
        for name, texts in self.values.items():
            if name not in known and name not in shared:
                lines.append(f"unknown parameter {name!a}")
            elif len(texts) > 1 and not (name in known and known[name].many):
                lines.append(f"repeated parameter {name!a}, the last one counts")
        return lines


@cache
def converters_of(kind: type[Query]) -> Mapping[str, Converter]:
    """Return the converters of an operation's parameters, in order of declaration."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in kind.__struct_fields__}


def read_query(kind: type[Q], arguments: Arguments) -> Q:
    """Convert the arguments that ``kind`` takes; RequestInvalid names the first bad one."""
    found: dict[str, Any] = {}
    errors: list[str] = []
    for name, converter in converters_of(kind).items():
        texts = arguments.values.get(name)
        if texts is None:
            continue
        try:
            found[name] = (
                _convert_all(converter, texts, name)
                if converter.many
                else _convert(converter.parse, texts[-1], name)
            )
        except RequestInvalid as error:
            errors.append(str(error))
    if errors:
        more = len(errors) - 1
        others = f" (and {more} other error{'s' * (more > 1)})" if more else ""
        raise RequestInvalid(errors[0] + others)
    return kind(**found)


def _convert(parse: Callable[[str], T], text: str, name: str) -> T:
    try:
        return parse(text)
    except ConversionError as error:
        raise RequestInvalid(f'schema: error converting value for "{name}"') from error


def _convert_all(converter: Converter, texts: list[str], name: str) -> tuple[object, ...]:
    parts = [part for text in texts for part in (text.split(",") if converter.commas else [text])]
    values = []
    for index, part in enumerate(parts):
        try:
            values += [converter.parse(part)] if part else []
        except ConversionError as error:
            text = f'schema: error converting value for index {index} of "{name}"'
            raise RequestInvalid(text) from error
    return tuple(values)


SHARED_PARAMETERS = frozenset(
    {
        *("api_key", "snapshot", "x_no_address_book", "x_no_metadata", "x_timeout"),
        *("x_debug_request", "csv_safe"),
    }
)
"""Parameters of every operation; all but ``snapshot`` and ``csv_safe`` replace headers."""

ANSWER_HEADERS = frozenset({b"x-no-address-book", b"x-no-metadata", b"x-actions-version"})
"""Request headers that responses depend on; they are part of the cache key."""

LASTING = "lasting"
"""Key in the scope's state: the response lasts until the next commit."""

TAGGED, PINNED = "tagged", "pinned"
"""Keys in the scope's state: the digest of the snapshot, and whether the request names it."""

AT_ONCE = "at_once"
"""Key in the scope's state: only the index may answer, since the event loop must not block."""

STARTED_S = "started_s"
"""Key in the scope's state: when the request arrived; streams have none."""

MAX_NOTES, MAX_NOTE_CHARACTERS = 10, 500
"""Limits of the warning header; further warnings are only counted."""

ApiRequest = Request[Any, Any, Any]


class PendingMessages(Protocol):
    """Sent messages that are not in a block yet, as ``api.pending`` keeps them."""

    def add(self, call: "Call", boc: bytes) -> None:
        """Add a message that the upstream accepted."""

    def list_traces(self) -> list[Any]:
        """Return the emulated traces."""


class ChainFetcher(Protocol):
    """Fetches data missing from the lake; accounts as ``api.chain.account.FetchedAccount``."""

    def recall(self, address: Address, first: int, mc_seqno: int) -> Any:  # noqa: ANN401
        """Return an account fetched earlier as of a block; None if there is none."""

    def fetch(self, call: "Call", address: Address) -> Any:  # noqa: ANN401
        """Return an account as of the newest block, or raise SourceError."""

    def fetch_config(self, call: "Call", master: Mapping[str, Any]) -> dict[int, bytes]:
        """Return the configuration after a masterchain block, or raise SourceError."""


class Call(msgspec.Struct, frozen=True):
    """The context in which an operation answers one request."""

    settings: Settings
    reader: Reader
    tvm: TvmPool | None = None
    """Runs get-methods; None outside the service."""
    pending: PendingMessages | None = None
    """Messages that are not in a block yet; None outside the service."""
    fetcher: ChainFetcher | None = None
    """Fetches accounts missing from the lake; None without lite servers."""
    no_address_book: bool = False
    no_metadata: bool = False
    actions_version: str = ""
    """Header X-Actions-Version: the version of action types that the client knows."""

    notes: list[str] = msgspec.field(default_factory=list)
    """Lines of the response's warning header."""

    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Other headers of the response."""

    codes: dict[tuple[int, bytes], bytes | None] = msgspec.field(default_factory=dict)
    """Newest code hashes read so far, by workchain and account; ``b""`` of unknown accounts."""

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
        network = self.reader.snapshot.state.network
        return network is not None and network.global_id == TESTNET_GLOBAL_ID


TESTNET_GLOBAL_ID = -3


def read_arguments(request: ApiRequest) -> Arguments:
    """Return the request's query parameters, with undecodable bytes replaced."""
    query = request.scope["query_string"]
    return Arguments(parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else ())


def open_call(request: ApiRequest, arguments: Arguments, mc_seqno: int | None = None) -> Call:
    """Choose the snapshot, note it for the response headers, and return the call.

    With ``mc_seqno``, it sees the lake as after that masterchain block. Raises RequestInvalid,
    NotCovered, LakeError, QueryNeeded.
    """
    # Litestar's State finds keys in a fifth of the time of attributes.
    service, state = request.app.state, request.scope["state"]
    holder: SnapshotHolder = service["holder"]
    settings: Settings = service["settings"]
    wishes = _read_wishes(request, arguments)
    text = arguments.last("snapshot")
    pinned = None if text is None else _convert(parse_int32, text, "snapshot")
    holder.expect()
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
        settings,
        reader,
        tvm=service["tvm"],
        pending=service["pending"],
        fetcher=service["fetcher"],
        no_address_book=_read_wish(wishes, "x_no_address_book", parse_bool, otherwise=False),
        no_metadata=_read_wish(wishes, "x_no_metadata", parse_bool, otherwise=False),
        actions_version=wishes.get(_ACTIONS_VERSION, ""),
        notes=state.setdefault("notes", []),
        headers=state.setdefault("headers", {}),
    )


def keep_answer(request: ApiRequest) -> None:
    """Mark a response as cacheable: it depends only on the snapshot and the request."""
    state = request.scope["state"]
    state[LASTING] = state["snapshot_number"]


def measure_ms(started_s: float) -> float:
    """Return the milliseconds since a reading of the performance counter."""
    return (time.perf_counter() - started_s) * 1000


def read_known(request: ApiRequest, known: Mapping[str, Converter]) -> Arguments:
    """Return the query parameters; others than ``known`` ones are reported, or refused."""
    arguments = read_arguments(request)
    note_warnings(request, arguments.warnings(known, SHARED_PARAMETERS))
    return arguments


def note_warnings(request: ApiRequest, lines: list[str]) -> None:
    """Report odd parameters in a response header, or refuse them."""
    if lines and request.app.state.settings.http.strict_parameters:
        raise RequestInvalid(join_notes(lines))
    request.scope["state"].setdefault("notes", []).extend(lines)


def join_notes(notes: list[str]) -> str:
    """Return the text of the warning header; long lists are truncated."""
    shown = [note[:MAX_NOTE_CHARACTERS] for note in notes[:MAX_NOTES]]
    if len(notes) > MAX_NOTES:
        shown.append(f"and {len(notes) - MAX_NOTES} more")
    return "; ".join(shown)


Header = tuple[bytes, bytes]


class Written(NamedTuple):
    """A complete response: an ASGI application, so that the framework has nothing to render."""

    status: int
    headers: list[Header]
    body: bytes

    async def __call__(self, _scope: object, _receive: object, send: Send) -> None:
        """Send it."""
        status, headers, body = self
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})


def answer_body(
    body: bytes, settings: HttpSettings, kind: str = MEDIA_TYPES[JSON], *headers: Header
) -> Written:
    """Return a body as a response, unless it is too large."""
    check_size(body, settings)
    kind = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    measured = (b"content-type", kind.encode()), (b"content-length", b"%d" % len(body))
    return Written(200, [*headers, *measured], body)


def check_size(body: bytes, settings: HttpSettings) -> None:
    """Check the size of a response against the limit in the settings."""
    if len(body) > settings.response_bytes:
        raise RequestInvalid(
            f"the answer has {len(body)} bytes, more than {settings.response_bytes}: "
            "ask for fewer rows"
        )


def refine_format(form: str, arguments: Arguments) -> str:
    """Return the format as refined by parameters: CSV that is safe in spreadsheets."""
    text = arguments.last(SAFE_CSV)
    is_safe = form == CSV and text is not None and _convert(parse_bool, text, SAFE_CSV)
    return SAFE_CSV if is_safe else form


_ACTIONS_VERSION = "x_actions_version"
_TWINS = ("x_timeout", "x_no_address_book", "x_no_metadata")
"""Parameters that are also headers; the header takes precedence."""

_WISHES = {name.replace("_", "-").encode(): name for name in (*_TWINS, _ACTIONS_VERSION)}
"""Headers that control the response, in lower case, with the names of their parameters."""


def _read_wishes(request: ApiRequest, arguments: Arguments) -> dict[str, str]:
    """Return the response options from headers, or from the parameters of the same names."""
    wishes: dict[str, str] = {}
    for header, value in request.scope["headers"]:
        if header in _WISHES:  # of repeated headers the first one counts
            wishes.setdefault(_WISHES[header], value.decode("latin-1"))
    for name in _TWINS:
        if name in arguments.values:
            wishes.setdefault(name, arguments.values[name][-1])
    return wishes


def _read_wish(wishes: dict[str, str], name: str, parse: Callable[[str], T], otherwise: T) -> T:
    """Return a response option; ``otherwise`` if it is absent or malformed."""
    if name not in wishes:
        return otherwise
    try:
        return parse(wishes[name])
    except ConversionError:
        return otherwise


def _read_timeout_ms(wishes: dict[str, str], settings: HttpSettings) -> int:
    """Return the smaller of the requested and the server's timeout."""
    limit_ms, asked_ms = settings.query_timeout_ms, _read_wish(wishes, "x_timeout", parse_int32, 0)
    if asked_ms <= 0:
        return limit_ms
    return min(asked_ms, limit_ms) if limit_ms else asked_ms
