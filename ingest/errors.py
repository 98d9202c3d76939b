"""Errors of the ingest package."""


class IngestError(Exception):
    """Root of every error of this package."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without calling ``__init__``, whose parameters differ from ``args``."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class BocError(IngestError):
    """Bytes are not a valid bag of cells; ``offset`` is the byte at which that shows, if known."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        """Append ``offset`` to the message, if it is known."""
        self.offset = offset
        super().__init__(message if offset is None else f"{message} (byte {offset})")


class CellUnderflow(BocError):
    """A cell has fewer bits or references than its type needs."""


class MissingCell(IngestError):
    """A cell that a tree refers to is not available; ``hash`` is its representation hash."""

    def __init__(self, cell_hash: bytes) -> None:
        self.hash = cell_hash
        super().__init__(f"cell {cell_hash.hex()} is missing")


class DecodeError(IngestError):
    """Valid cells that do not follow the TL-B of a block."""


class BodyError(IngestError):
    """A message body does not match its layout, in the body table or of its protocol."""


class BodyLimit(IngestError):
    """Decoding a message body would take more work than is allowed; the message names the limit."""


class ChainUnproven(IngestError):
    """The available proofs do not lead from a trusted block to a block of the lake."""


class SignatureInvalid(IngestError):
    """A user-defined message layout cannot be parsed or used."""


class FetchError(IngestError):
    """Off-chain content could not be fetched."""


class FetchRefused(FetchError):
    """The address is not allowed: its scheme is not supported, or its host is internal."""


class FetchFailed(FetchError):
    """There was no successful response; a retry may succeed."""


class ContentInvalid(FetchError):
    """The response is not valid content: too large, of another type, or no JSON object."""


class SourceError(IngestError):
    """A source cannot be opened or read as a whole."""


class SourceForeign(SourceError):
    """A source belongs to another network or chain than the lake."""


class EntryFlaw(SourceError):
    """An entry of a package is not the one expected at its offset.

    ``file`` is relative to the source's folder, ``offset`` the byte at which the entry begins.
    ``cut`` means that the file ends too early, as it does while it is written or copied, and
    nothing else is wrong.
    """

    def __init__(self, reason: str, *, file: str, offset: int, cut: bool = False) -> None:
        self.reason = reason
        self.file = file
        self.offset = offset
        self.cut = cut
        super().__init__(f"{file} at byte {offset}: {reason}")


class ServerFault(SourceError):
    """A lite server cannot be reached, or sends a wrong answer."""

    def __init__(self, reason: str, *, name: str, is_wrong: bool = False) -> None:
        self.is_wrong = is_wrong
        super().__init__(f"{name}: {reason}")


class ServerRefusal(SourceError):
    """A lite server answers with an error; ``code`` is the node's (common/errorcode.h)."""

    NOT_READY = 651

    def __init__(self, server: str, code: int, message: str) -> None:
        """Describe the error that ``server`` (host:port) sent."""
        self.code = code
        self.message = message
        self.is_unknown = code == self.NOT_READY
        super().__init__(f"{server} refuses with code {code}: {message}")


class TvmError(IngestError):
    """A get-method could not be run, or its result could not be returned."""


class TvmMissing(TvmError):
    """No TVM is installed on this machine, or it cannot be loaded."""


class TvmBusy(TvmError):
    """Too many calls are waiting for a TVM; a later retry may succeed."""


class TvmTimeout(TvmError):
    """The run exceeded its time limit; its process was killed."""


class TvmCrash(TvmError):
    """The process that ran the call died during it."""


class TvmRefusal(TvmError):
    """The TVM does not accept the call: it cannot read one of its cells."""


class TvmOutdated(TvmError):
    """The run may have met an instruction of a later global version than the TVM's."""


class TvmStackDeep(TvmError):
    """The resulting stack is nested too deep to be returned."""


class TvmStackLarge(TvmError):
    """The resulting stack is too large to be returned."""


class BlockUnavailable(IngestError):
    """One block is unavailable; the message names it, and the file and offset where known."""

    def __init__(
        self, reason: str, *, block: object, file: str | None = None, offset: int | None = None
    ) -> None:
        self.block = block
        self.file = file
        self.offset = offset
        where = f" in {file}" if file else ""
        at = f" at byte {offset}" if offset is not None else ""
        super().__init__(f"block {block}{where}{at}: {reason}")


class BlockNotYet(BlockUnavailable):
    """The node has not finished writing the block; a later retry may succeed."""


class BlockPruned(BlockUnavailable):
    """The node has deleted the block."""


class BlockNeverHad(BlockUnavailable):
    """The node never stored the block."""


class BlockCorrupt(BlockUnavailable):
    """The block is stored, but its bytes are wrong."""
