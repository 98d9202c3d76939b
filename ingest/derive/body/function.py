"""Writes the Python functions that read cells: one reads all values of a cell without their cells.

A call for each value would take most of the time of decoding. A codec adds statements to a function
and returns the JSON of its value as a part of an f-string, in which locals are named.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from tonlake.ingest.decode.cell.build import MAX_REFS
from tonlake.ingest.decode.cell.slice import TAG_BITS, CellSlice
from tonlake.ingest.errors import BocError, BodyError, CellUnderflow

MAX_LEVELS = 48
"""Maximum depth of cells that are decoded, including nested payloads; a list is one level."""
LONG_TEXT = 4096
"""Characters of a cell above which a mark stands for them."""

if TYPE_CHECKING:
    from tonlake.ingest.derive.body.codec import Codec, Work

Read: TypeAlias = "Callable[[CellSlice, Work], str]"
"""Reads a value from a slice."""
ReadCell: TypeAlias = "Callable[..., str]"
"""Reads the value that fills a cell of a tree: ``CellTree``, ``int`` and ``Work``. Within a place
(``Work.place``) a cell is read once, however often it is shared or tried."""
LEVEL_SHIFT = 4
"""Bits of a place (``Work.place``) below the level: how many more payloads may be nested."""
_TYPES = count(1)
_MAX_INLINED = 4
"""Maximum types with a choice that are read inside each other by one function."""
_BODY = """
def read(tree, cell, value, left, ref, work):
 links = tree.links[cell]
 try:
%s
  return %s, left, ref
 except (IndexError, ValueError) as error:
  raise explain(error, cell, left, len(links) - ref)
"""
_CELL_BODY = f"""
def read(tree, cell, work%s):
 head = tree.cells[cell]
 %s
 place = work.place
 key = cell, place, %s
 text = work.known.get(key)
 if text is not None:
  return work.recall(text)
 work.visits_left = visits = work.visits_left - 1
 if visits < 0 or place >= {MAX_LEVELS << LEVEL_SHIFT}:
  work.refuse_visit()
 links = tree.links[cell]
 ref = 0
 refs, size = head[0], head[1]
 value = from_bytes(head, "big")
 left = size << 2
 if size & 1:
  tag = tags[head[-1]]
  value >>= tag
  left += 4 - tag
 work.place = place + {1 << LEVEL_SHIFT}
 try:
  if refs > {MAX_REFS}:
   refs = tree.slice(cell).refs_left
%s
  if left or ref < refs:
   refuse_rest(cell)
  text = %s
 except errors as error:
  error = explain(error, cell, left, len(links) - ref)
  work.known[key] = copy(error)
  raise error
 finally:
  work.place = place
 if len(text) > {LONG_TEXT}:
  text = work.set_aside(text)
 work.known[key] = text
 return text
"""


def escape(text: str) -> str:
    """Return text as a part of an f-string."""
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    return text.replace("{", "{{").replace("}", "}}")


def explain(error: Exception, cell: int, left: int, refs_left: int) -> Exception:
    """Return why a cell cannot be read: CellUnderflow if it lacks bits or references.

    Functions do not compare ``left`` before they read: a shift by fewer than no bits fails.
    """
    if left < 0 or (refs_left <= 0 and isinstance(error, IndexError)):
        return CellUnderflow(f"cell {cell} ends before its value")
    return BodyError("invalid UTF-8 text") if isinstance(error, UnicodeDecodeError) else error


def refuse_rest(cell: int) -> None:
    """Raise BodyError."""
    raise BodyError(f"cell {cell} has data after its value")


_NAMES: dict[str, Any] = {
    "copy": copy,
    "errors": (BocError, BodyError, IndexError, ValueError),
    "explain": explain,
    "from_bytes": int.from_bytes,
    "refuse_rest": refuse_rest,
    "start": CellSlice.at,
    "tags": TAG_BITS,
}


class Function:
    """A function that reads a cell: ``left`` bits of its ``value`` are not read yet.

    ``ref`` is how many of its ``links`` were read. Adjacent numbers are cut out of one.
    """

    def __init__(self) -> None:
        self._lines: list[tuple[int, str]] = []
        self._depth = 2
        self._names = dict(_NAMES)
        self._locals = 0
        self._numbers: list[tuple[str, int]] = []
        self._inlined: list[Codec] = []

    def name(self, thing: object) -> str:
        """Return a name for an object outside of the function."""
        name = f"g{len(self._names)}"
        self._names[name] = thing
        return name

    def local(self) -> str:
        """Return a new name of a variable."""
        self._locals += 1
        return f"v{self._locals}"

    def add(self, *lines: str) -> None:
        """Add statements, after the numbers before them were read."""
        self._read_numbers()
        self._lines += [(self._depth, line) for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a statement; what is added inside stands in its block."""
        self.add(head)
        self._depth += 1
        yield
        self._read_numbers()
        self._depth -= 1

    def number(self, bits: int) -> str:
        """Return the variable of an unsigned integer, which is read before the next statement."""
        name = self.local()
        self._numbers.append((name, bits))
        return name

    def _read_numbers(self) -> None:
        numbers, self._numbers = self._numbers, []
        if not numbers:
            return
        rest = sum(bits for _name, bits in numbers)
        self.add(f"left -= {rest}")
        run = "value >> left"
        if len(numbers) > 1:
            self.add(f"run = value >> left & {(1 << rest) - 1}")
            run = "run"
        for place, (name, bits) in enumerate(numbers):
            rest -= bits
            shifted = f"{run} >> {rest}" if rest else run
            is_masked = run == "run" and not place
            self.add(f"{name} = {shifted}" + ("" if is_masked else f" & {(1 << bits) - 1}"))

    def bit(self) -> str:
        """Read one bit; return the condition that it is one."""
        self.add("left -= 1")
        return "value >> left & 1"

    def ref(self, read: str, *arguments: str) -> str:
        """Read a reference by a function of its tree, cell and the work; return the variable."""
        name = self.following()
        self.add(f"{name} = {read}({', '.join(['tree', name, 'work', *arguments])})")
        return name

    def following(self) -> str:
        """Read a reference; return the variable of its cell."""
        name = self.local()
        self.add(f"{name} = links[ref]", "ref += 1")
        return name

    def call(self, read: Read) -> str:
        """Read a value by a call; return it as a part of an f-string."""
        name = self.local()
        self.add("source = start(tree, cell, value, left, ref)")
        self.add(f"{name} = {self.name(read)}(source, work)")
        self.add("left, ref = source.bits_left, source.ref")
        return f"{{{name}}}"

    def inline(self, codec: "Codec", write: "Callable[[Function], str]") -> str:
        """Write the value of a type in place; call it if it is nested inside itself, or deeply."""
        if codec in self._inlined or len(self._inlined) >= _MAX_INLINED:
            return self.call(codec.load)
        self._inlined.append(codec)
        text = write(self)
        self._inlined.pop()
        return text

    def finish(self, *values: str) -> Callable[..., Any]:
        """Return the function of a tree, a cell, its bits, a position in it, and the work.

        It returns the values of expressions, and the position after them.
        """
        self._read_numbers()
        return self._compile(_BODY % (self._join(), ", ".join(values)))

    def finish_cell(self, value: str, *, has_width: bool = False, start: str = "") -> ReadCell:
        """Return the function of a tree, a cell, which must be consumed, and the work.

        With ``has_width`` it takes the bits of a key that are left, too; ``start`` comes before
        the cell is counted.
        """
        width = ", width" if has_width else ""
        key = f"{next(_TYPES)}{width}"
        self._read_numbers()
        return self._compile(_CELL_BODY % (width, start, key, self._join(), value))

    def _join(self) -> str:
        return "\n".join([" " * depth + line for depth, line in self._lines])

    def _compile(self, text: str) -> Callable[..., Any]:
        # Names and numbers are ours; the texts of a user's layouts are escaped.
        exec(text, self._names)  # noqa: S102
        read: Callable[..., Any] = self._names["read"]
        return read
