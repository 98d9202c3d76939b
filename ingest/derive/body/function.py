"""Writes the Python functions that read cells: one reads all values of a cell without their cells.

A call for each value would take most of the time of decoding. A codec adds statements to a function
and returns the JSON of its value as a part of an f-string, in which locals are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.errors import CellUnderflow

if TYPE_CHECKING:
    from tonlake.ingest.derive.body.codec import Codec, Work

Read: TypeAlias = "Callable[[CellSlice, Work], str]"
"""Reads a value from a slice."""
_MAX_INLINED = 4
"""Maximum types with a choice that are read inside each other by one function."""
_SAVE, _SAVE_REF = "source.bits_left = left", "source.ref = ref"
_LOAD, _LOAD_REF = "left = source.bits_left", "ref = source.ref"
_REFUSED = " refuse(source)"


def refuse(source: CellSlice) -> None:
    """Raise CellUnderflow."""
    raise CellUnderflow(f"cell {source.cell} ends before its value")


def escape(text: str) -> str:
    """Return text as a part of an f-string."""
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    return text.replace("{", "{{").replace("}", "}}")


class Function:
    """A function of a slice ``source`` and ``work``.

    ``value`` is all bits of the cell as a number, ``left`` how many of them are not read yet,
    ``ref`` how many references were read. Adjacent numbers are cut out of one.
    """

    def __init__(self) -> None:
        """Start an empty function."""
        self._lines: list[tuple[int, str]] = []
        self._depth = 1
        self._names: dict[str, Any] = {"refuse": refuse}
        self._locals = 0
        self._numbers: list[tuple[str, int]] = []
        self._inlined: list[Codec] = []
        self._has_refs = False

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
        self.add(f"left -= {rest}", "if left < 0:", _REFUSED)
        run = "value >> left"
        if len(numbers) > 1:
            self.add(f"run = value >> left & {(1 << rest) - 1}")
            run = "run"
        for name, bits in numbers:
            rest -= bits
            self.add(f"{name} = {f'{run} >> {rest}' if rest else run} & {(1 << bits) - 1}")

    def bit(self) -> str:
        """Read one bit; return the condition that it is one."""
        self.add("left -= 1", "if left < 0:", _REFUSED)
        return "value >> left & 1"

    def ref(self, read: Callable[..., object]) -> str:
        """Read a reference by a function of its tree, cell and the work; return the variable."""
        name = self.following()
        self.add(f"{name} = {self.name(read)}(tree, {name}, work)")
        return name

    def following(self) -> str:
        """Read a reference; return the variable of its cell."""
        self._has_refs = True
        name = self.local()
        self.add("if ref >= len(links):", _REFUSED, f"{name} = links[ref]", "ref += 1")
        return name

    def call(self, read: Read) -> str:
        """Read a value by a call; return it as a part of an f-string."""
        name = self.local()
        self.add(_SAVE, _SAVE_REF, f"{name} = {self.name(read)}(source, work)", _LOAD, _LOAD_REF)
        return f"{{{name}}}"

    def inline(self, codec: Codec, write: Callable[[Function], str]) -> str:
        """Write the value of a type in place; call it if it is nested inside itself, or deeply."""
        if codec in self._inlined or len(self._inlined) >= _MAX_INLINED:
            return self.call(codec.load)
        self._inlined.append(codec)
        text = write(self)
        self._inlined.pop()
        return text

    def finish(self, *values: str) -> Callable[..., Any]:
        """Return the function; its result is the value of an expression, or a tuple of several."""
        self.add(_SAVE, _SAVE_REF, f"return {', '.join(values)}")
        lines = ["def read(source, work):", " value, left = source.value, source.bits_left"]
        if self._has_refs:
            lines.append(" tree, ref = source.tree, source.ref")
            lines.append(" links = tree.links[source.cell]")
        skipped = () if self._has_refs else (_SAVE_REF, _LOAD_REF)
        lines += [" " * depth + line for depth, line in self._lines if line not in skipped]
        # Names and numbers are ours; the texts of a user's layouts are escaped.
        exec("\n".join(lines), self._names)  # noqa: S102
        read: Callable[..., Any] = self._names["read"]
        return read
