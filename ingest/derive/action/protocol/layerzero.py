"""LayerZero: packets between chains, sent, committed, verified and received.

Its contracts exchange records: cells that describe the positions of their fields. A record begins
with its name (80 bits) and 15 field descriptors of 18 bits: type, cell, offset and reference. Data
follow at bit 350 of the root; a field may also be in one of the root's references. Source: the
class library of LayerZero's contracts for TON, as observed in their messages.
"""

from typing import NamedTuple

from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.pattern import Match, built, call, jettons, relay
from tonlake.ingest.derive.action.rule import TRANSFER, WAY, Block, Columns, rule
from tonlake.ingest.errors import BodyError

_NAME_BITS, _FIELDS = 80, 15
_NO_FIELD, _REFERENCE = 15, 9
_WIDTHS = {0: 1, 3: 8, 4: 16, 5: 32, 6: 64, 7: 128, 8: 256}
"""Width of a field in bits by its type."""


class _Field(NamedTuple):
    kind: int
    cell: int
    offset: int
    reference: int


class PacketRecord:
    """A record; fields are numbered from 0."""

    def __init__(self, body: Body) -> None:
        """Read the header of a record at the start of a cell."""
        self._root = body.copy()
        head = body.copy()
        self.name = head.uint(_NAME_BITS).to_bytes(_NAME_BITS // 8, "big").lstrip(b"\0")
        self._fields = [
            _Field(head.uint(4), head.uint(2), head.uint(10), head.uint(2)) for _ in range(_FIELDS)
        ]

    def uint(self, number: int) -> int:
        """Return the number in a field; raise BodyError if there is none."""
        field = self._find(number)
        bits = _WIDTHS.get(field.kind)
        if bits is None:
            raise BodyError(f"field {number} of record {self.name!r} is not a number")
        return self._place(field).skip(field.offset).uint(bits)

    def cell(self, number: int) -> Body:
        """Return the start of the cell that a field refers to; raises like ``uint``."""
        field = self._find(number)
        if field.kind != _REFERENCE:
            raise BodyError(f"field {number} of record {self.name!r} is not a cell")
        return _child(self._place(field), field.reference)

    def record(self, number: int) -> "PacketRecord":
        """Return the record that a field refers to; raises like ``uint``."""
        return PacketRecord(self.cell(number))

    def _find(self, number: int) -> _Field:
        field = self._fields[number]
        if field.kind == _NO_FIELD:
            raise BodyError(f"record {self.name!r} has no field {number}")
        return field

    def _place(self, field: _Field) -> Body:
        """Return the start of the cell that contains a field."""
        return _child(self._root, field.cell) if field.cell else self._root.copy()


def _child(body: Body, number: int) -> Body:
    """Return the start of a child cell, counted from 0."""
    child: Body = body.copy().take(*["child"] * (number + 1))[-1]
    return child


def read_record(body: Body) -> PacketRecord:
    """Return the record in the first reference of a message."""
    return PacketRecord(body.copy().child())


def read_packet(packet: PacketRecord) -> Columns:
    """Return the fields of a ``Packet``: path, message, nonce and guid."""
    path = packet.record(0)
    return {
        "src_oapp": hex(path.uint(1)),
        "dst_oapp": hex(path.uint(3)),
        "src_eid": path.uint(0),
        "dst_eid": path.uint(2),
        "nonce": packet.uint(2),
        "guid": hex(packet.uint(3)),
        "message": _show(packet.cell(1).snake()),
    }


def read_encoded_packet(body: Body) -> Columns:
    """Return the fields of a packet in wire format.

    Version (1 byte), nonce (8), source endpoint (4) and application (32), destination endpoint (4)
    and application (32), guid (32), message.
    """
    wire = body.snake()
    sizes = {"nonce": 8, "src_eid": 4, "src_oapp": 32, "dst_eid": 4, "dst_oapp": 32, "guid": 32}
    shown: Columns = {}
    at = 1
    for name, size in sizes.items():
        part, at = wire[at : at + size], at + size
        if len(part) < size:
            raise BodyError("a packet of LayerZero is truncated")
        number = int.from_bytes(part, "big")
        shown[name] = number if name in {"nonce", "src_eid", "dst_eid"} else hex(number)
    return shown | {"message": _show(wire[at:])}


def _show(data: bytes) -> str:
    return "0x" + data.hex()


ENDPOINT_SEND, CHANNEL_SEND, CONNECTION_SEND = 0xDD4EA3B4, 0x536FEB09, 0x4002B790
ULN_SEND, SEND_CALLBACK, OAPP_CALLBACK = 0x5DE68393, 0x421C1A25, 0xA2B5FBAE
EVENT = 0xE33B9873
RECEIVE_PREPARE, OAPP_PREPARE, RECEIVE_LOCK = 0x22F3AC09, 0x97DF404C, 0xB7680BC6
RECEIVE_EXECUTE, EXECUTE_CALLBACK = 0x0C7B8418, 0xCAAE25A1
COMMIT, CONNECTION_COMMIT, ENDPOINT_COMMIT = 0x28B97077, 0xF9D37B80, 0x5DAB749A
CHANNEL_COMMIT, COMMIT_CALLBACK = 0x5388CD88, 0x5E178F33
VERIFY, PROXY_CALL, ULN_VERIFY = 0xA0D51A8D, 0x09F047D9, 0x994AAF4E
CONNECTION_VERIFY, VERIFY_CALLBACK = 0x4EC8F80A, 0x3CB38090

_STATUSES = {0x3BBC306B: "succeeded"}
"""Status of a verification by its code."""


_EXCESSES = built(TRANSFER).maybe
_EVENT = call(EVENT).maybe


@rule(
    relay(
        *(call(ENDPOINT_SEND), call(CHANNEL_SEND, name="channel"), call(CONNECTION_SEND)),
        call(ULN_SEND, name="uln"),
        call(SEND_CALLBACK, name="callback").then(call(EVENT, name="event"), *(_EXCESSES,) * 5),
        call(OAPP_CALLBACK).then(_EVENT, _EXCESSES),
    )
)
def send(match: Match) -> Block:
    """Draft the sending of a packet through endpoint, channel and message library."""
    block = match.block
    sent = read_record(match["callback"].arguments()).record(2)
    event = read_record(match["event"].arguments()).record(1)
    columns = {
        "source": block["source"],
        "layerzero_send_data": {
            "send_request_id": sent.uint(0),
            "msglib_manager": hex(sent.uint(1)),
            "msglib": hex(sent.uint(2)),
            "uln": match["uln"]["destination"],
            "native_fee": sent.uint(5),
            "zro_fee": sent.uint(6),
            "endpoint": block["destination"],
            "channel": match["channel"]["destination"],
        },
        "layerzero_packet_data": read_encoded_packet(event.cell(4)),
    }
    return Block("layerzero_send", columns)


@rule(built("layerzero_send").after(jettons("jettons").then(call(EVENT))))
def send_tokens(match: Match) -> Block:
    """Draft the sending of jettons to another chain through an application."""
    sent = match.block.pick("layerzero_send_data", "layerzero_packet_data")
    return Block("layerzero_send_tokens", match["jettons"].pick(*WAY, "asset", "amount") | sent)


@rule(
    relay(
        *(call(RECEIVE_PREPARE).then(_EXCESSES), call(OAPP_PREPARE, name="prepare")),
        *(call(RECEIVE_LOCK), call(RECEIVE_EXECUTE).then(_EVENT)),
        call(EXECUTE_CALLBACK).then(_EVENT, _EXCESSES),
    )
)
def receive(match: Match) -> Block:
    """Draft the delivery of a packet to its application."""
    block, prepare = match.block, match["prepare"]
    columns = block.pick("source", destination_secondary="destination") | {
        "destination": prepare["destination"],
        "layerzero_packet_data": read_packet(read_record(prepare.arguments())),
    }
    return Block("layerzero_receive", columns)


@rule(
    relay(
        *(call(COMMIT), call(CONNECTION_COMMIT, name="connection")),
        *(
            call(ENDPOINT_COMMIT, name="endpoint"),
            call(CHANNEL_COMMIT, name="channel").then(_EVENT),
        ),
        call(COMMIT_CALLBACK).then(_EXCESSES),
    )
)
def commit_packet(match: Match) -> Block:
    """Draft the commit of a verified packet."""
    block, connection = match.block, match["connection"]["destination"]
    packet = PacketRecord(read_record(block.arguments()).cell(0))
    columns = {
        "source": block["source"],
        "source_secondary": match["endpoint"]["destination"],
        "destination": connection,
        "destination_secondary": connection,
        "asset": match["channel"]["destination"],
        "asset_secondary": connection,
        "layerzero_packet_data": read_packet(packet),
    }
    return Block("layerzero_commit_packet", columns)


@rule(
    relay(
        *(call(VERIFY), call(PROXY_CALL, name="proxy"), call(ULN_VERIFY, name="uln")),
        call(CONNECTION_VERIFY, name="connection").then(_EVENT),
        call(VERIFY_CALLBACK, name="callback").then(_EXCESSES),
    )
)
def dvn_verify(match: Match) -> Block:
    """Draft the verification of a packet by a verifier (DVN)."""
    block = match.block
    verdict = read_record(match["callback"].arguments()).record(0)
    nonce, code = verdict.uint(0), verdict.uint(1)
    data = {
        "nonce": nonce,
        "status": _STATUSES.get(code, f"0x{code:08x}"),
        "dvn": block["destination"],
        "proxy": match["proxy"]["destination"],
        "uln": match["uln"]["destination"],
        "uln_connection": match["connection"]["destination"],
    }
    columns = {"source": block["source"], "layerzero_dvn_verify_data": data}
    return Block("layerzero_dvn_verify", columns)


RULES = (send, send_tokens, receive, commit_packet, dvn_verify)
