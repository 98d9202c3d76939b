"""Sales and auctions as they are deployed: their terms out of the StateInit of a message.

TL-B: ``_ fixed_prefix_length:(Maybe (## 5)) special:(Maybe TickTock) code:(Maybe ^Cell)
data:(Maybe ^Cell) library:(Maybe ^Cell) = StateInit``. The data are read as the contract's
get-method would answer from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.action.account.facts import show_sale
from tonlake.ingest.derive.contract.layout import Subject, make_maybe_cell
from tonlake.ingest.derive.contract.reader import find_reader
from tonlake.ingest.derive.contract.stack import Mismatch, parse_address
from tonlake.ingest.derive.contract.standard.sale import (
    detect_auction_v4,
    detect_sale,
    detect_sale_v4,
)
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tonlake.ingest.derive.action.interface import Facts
    from tonlake.ingest.derive.contract.stack import Detector, Finding

_PREFIX_BITS, _TICK_TOCK_BITS = 5, 2
_DETECTORS = (detect_sale, detect_sale_v4, detect_auction_v4)
SALE_V4_CODE = bytes.fromhex("6b95a6418b9c9d2359045d1e7559b8d549ae0e506f24caab58fa30c8fb1feb86")
"""A sale of Getgems, version 4, whose data have fees as shares of the price."""


class Deployment(NamedTuple):
    """A code, and what it is with its first data, by interface; nothing if they have no reader."""

    code_hash: bytes
    interfaces: Mapping[str, Facts]


def read_deployment(address: str, init_state: bytes) -> Deployment | None:
    """Return what a StateInit deploys at an account; None where it has no code or no data.

    Raises:
        BocError: it is no StateInit.
    """
    tree = parse_boc(init_state)
    start = tree.slice(tree.roots[0])
    for bits in (_PREFIX_BITS, _TICK_TOCK_BITS):
        if start.load_bit():
            start.skip(bits)
    code, data = make_maybe_cell(start), make_maybe_cell(start)
    if code is None or data is None:
        return None
    subject = Subject(parse_address(address), code, data, ())
    return Deployment(
        code.hash,
        {
            interface: facts
            for detector in _DETECTORS
            for finding in _detect(detector, subject)
            for interface, facts in show_sale(finding.fields, finding.fields["details"], address)
        },
    )


def _detect(detector: Detector, subject: Subject) -> list[Finding]:
    """Return what a detector finds in data; nothing where it asks what they do not answer."""
    detection = detector(subject.address)
    try:
        question = next(detection)
        while True:
            reader = find_reader(subject.code.hash, question.method)
            if reader is None:
                return []
            question = detection.send(reader(subject._replace(arguments=question.arguments)))
    except StopIteration as end:
        found: list[Finding] = end.value
        return found
    except (BocError, Mismatch):
        return []
