"""What can go wrong while reading a node's bytes.

IngestError
├── BocError             the bytes are no valid bag of cells, or a cell ends too early
│   └── CellUnderflow    a cell has fewer bits or references than its type needs
├── MissingCell          a cell that a tree needs is not among the cells at hand
├── DecodeError          valid cells that do not follow the TL-B of a block
├── TraceImpossible      messages that no chain can hold
├── TracesMissing        the lake has transactions without traces
├── ChainUnproven        a lake's block that the proofs at hand do not lead to
├── WorkerLost           a worker process of an ingest died
├── ActionUnreadable     a message that no reader of its protocol can take apart
├── RecordingMalformed   a line of recorded traces that cannot be read as rows
├── TvmError             a get-method could not be run
│   ├── TvmMissing       no TVM is installed on this machine
│   ├── TvmBusy          more calls wait than may
│   ├── TvmTimeout       the run took longer than it may
│   ├── TvmCrash         the machine's process died of the call
│   ├── TvmRefusal       the machine does not take the call
│   ├── TvmStackDeep     the resulting stack is nested too deep to be shown
│   └── TvmStackLarge    the resulting stack is too large to be shown
├── BodyError            a message body and a layout of the body table that do not fit together
├── SignatureInvalid     a layout that a person gives, and that cannot be used
├── FetchError           content outside of the chain that was not had
│   ├── FetchRefused     its address is not asked
│   ├── FetchFailed      there was no answer
│   └── ContentInvalid   the answer is not what it should be
├── SourceError          a source cannot be opened or read as a whole
│   ├── EntryFlaw        an entry of a package is not what its place promises
│   ├── ServerFault      a lite server cannot be reached, or its answer is not what was asked for
│   └── ServerRefusal    a lite server answers with an error
└── BlockUnavailable     one block is unavailable
    ├── BlockNotYet      the node has not written it completely yet
    ├── BlockPruned      the node had it and deleted it
    ├── BlockNeverHad    the node never stored it
    └── BlockCorrupt     stored, but the bytes are wrong
"""

from __future__ import annotations


class IngestError(Exception):
    """Root of every error of this package."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it as it is: a constructor takes other values than the text that it makes."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class BocError(IngestError):
    """Bytes that are no valid bag of cells; ``offset`` is the byte where that shows."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        """Take what is wrong and, where known, at which byte."""
        self.offset = offset
        super().__init__(message if offset is None else f"{message} (byte {offset})")


class CellUnderflow(BocError):
    """A cell has fewer bits or references than its type needs."""


class MissingCell(IngestError):
    """A cell that a tree needs is not among the cells at hand; ``hash`` names it."""

    def __init__(self, cell_hash: bytes) -> None:
        """Name the cell."""
        self.hash = cell_hash
        super().__init__(f"cell {cell_hash.hex()} is needed, but is not among the cells at hand")


class DecodeError(IngestError):
    """Valid cells that do not follow the TL-B of a block."""


class BodyError(IngestError):
    """A message body and a layout of the body table that do not fit together."""


class TraceImpossible(IngestError):
    """Messages that no chain can hold: in a ring, or consumed in a block before the sender's."""


class ChainUnproven(IngestError):
    """A block of a lake that its proofs do not lead to, from a block that is certain."""


class TracesMissing(IngestError):
    """The lake has transactions without traces."""


class WorkerLost(IngestError):
    """A worker process of an ingest died; names it and how it ended."""


class ActionUnreadable(IngestError):
    """A message that the reader of its protocol cannot take apart."""


class RecordingMalformed(IngestError):
    """A line of recorded traces that cannot be read as rows; names the file and the line."""


class SignatureInvalid(IngestError):
    """A layout of bodies that a person gives cannot be read or used."""


class FetchError(IngestError):
    """Content outside of the chain that was not had."""


class FetchRefused(FetchError):
    """An address that is not asked: of another scheme, or internal."""


class FetchFailed(FetchError):
    """There was no answer, or none of success; another try may have one."""


class ContentInvalid(FetchError):
    """The answer is not what it should be: too large, of another type, no JSON object."""


class SourceError(IngestError):
    """A source cannot be opened or read as a whole."""


class SourceForeign(SourceError):
    """A source is of another network, or of another chain, than the lake."""


class EntryFlaw(SourceError):
    """An entry of a package is not what its place promises.

    ``file`` is relative to the source's folder, ``offset`` the byte of the file at which the
    entry begins; ``cut`` means that the file ends too early, as it does while it is written or
    copied, and nothing else is wrong.
    """

    def __init__(self, reason: str, *, file: str, offset: int, cut: bool = False) -> None:
        """Take what is wrong with the entry at ``offset`` of ``file``."""
        self.reason = reason
        self.file = file
        self.offset = offset
        self.cut = cut
        super().__init__(f"{file} at byte {offset}: {reason}")


class ServerFault(SourceError):
    """A lite server cannot be reached, or its answer is not what was asked for.

    ``is_wrong`` means that it sent a wrong answer.
    """

    def __init__(self, reason: str, *, name: str, is_wrong: bool = False) -> None:
        """Take what is wrong with the answer to the query ``name``."""
        self.is_wrong = is_wrong
        super().__init__(f"{name}: {reason}")


class ServerRefusal(SourceError):
    """A lite server answers with an error; ``code`` is the node's (common/errorcode.h).

    ``is_unknown`` means that the server does not have the block, or not yet.
    """

    NOT_READY = 651

    def __init__(self, server: str, code: int, message: str) -> None:
        """Take the server's name, and its code and message."""
        self.code = code
        self.message = message
        self.is_unknown = code == self.NOT_READY
        super().__init__(f"{server} refuses with code {code}: {message}")


class TvmError(IngestError):
    """A get-method could not be run, or its result not be returned."""


class TvmMissing(TvmError):
    """No TVM is installed on this machine, or it cannot be loaded."""


class TvmBusy(TvmError):
    """More calls wait for a TVM than may: ask again later."""


class TvmTimeout(TvmError):
    """The run took longer than it may; its process is gone."""


class TvmCrash(TvmError):
    """The process that ran the call died of it."""


class TvmRefusal(TvmError):
    """The machine does not take the call: a cell that it cannot read."""


class TvmStackDeep(TvmError):
    """The resulting stack is nested too deep to be shown."""


class TvmStackLarge(TvmError):
    """The resulting stack is too large to be shown."""


class BlockUnavailable(IngestError):
    """One block is unavailable; names the block, and the file and offset where known."""

    def __init__(
        self, reason: str, *, block: object, file: str | None = None, offset: int | None = None
    ) -> None:
        """Take why ``block`` is unavailable, and the place of the damage."""
        self.block = block
        self.file = file
        self.offset = offset
        where = f" in {file}" if file else ""
        at = f" at byte {offset}" if offset is not None else ""
        super().__init__(f"block {block}{where}{at}: {reason}")


class BlockNotYet(BlockUnavailable):
    """The node has not written the block completely yet: ask again later."""


class BlockPruned(BlockUnavailable):
    """The node had the block and deleted it."""


class BlockNeverHad(BlockUnavailable):
    """The node never stored the block."""


class BlockCorrupt(BlockUnavailable):
    """The block is stored, but its bytes are wrong."""
