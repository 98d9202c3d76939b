"""The shipped table of layouts, compiled into codecs once, on first use."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from tonlake.ingest.derive.body import codec as codecs
from tonlake.ingest.derive.body import composite
from tonlake.ingest.derive.body.grammar import (
    AT_MOST,
    BELOW,
    REPEATED,
    Conditional,
    Constraint,
    Constructor,
    Field,
    Group,
    Linked,
    Named,
    Type,
    parse_scheme,
)
from tonlake.ingest.derive.body.record import (
    OPCODE_BITS,
    Condition,
    End,
    Part,
    RawCell,
    Record,
    Rest,
    Union,
)
from tonlake.ingest.errors import BodyError

_SCHEME_FILE = "layouts.tlb"
OWN_BODY, WHOLE_BODY = "OwnBody", "WholeBody"
"""Result types of the bodies that a user defines, and of those of which nothing may be left."""
BODY_TYPES = (OWN_BODY, "InternalBody", "ExternalOutBody", "ForwardPayload", WHOLE_BODY)
"""Result types of the statements that are selected by opcode, in the order they are tried."""
MIN_HASHED, _MIN_OWN = 1 << 16, 1 << 8
"""Lower opcodes are not hashes of a name but numbers, which contracts share: a body has their
layout only if nothing is left of it. Below 256 a field that takes any rest does not count."""
_SIMPLE: dict[str, codecs.Codec] = {
    "Bool": codecs.Flag(),
    "Bit": codecs.Unsigned(1),
    "Cell": Rest(),
    "Any": Rest(),
    "RawCell": RawCell(),
    "End": End(),
    "MsgAddress": codecs.Address(),
    "SnakeText": codecs.SnakeText(),
    "CommentText": codecs.CommentText(),
    "SnakeBytes": codecs.SnakeBytes(),
    "ShortText": codecs.ShortText(),
    "Text": codecs.ChunkedText(),
    "Unreadable": codecs.Unreadable(),
}
_WIDTH = re.compile(r"(uint|int|bits)(\d+)")
_WIDTHS: dict[str, type[codecs.Unsigned | codecs.Signed | codecs.Bits]] = {
    "uint": codecs.Unsigned,
    "int": codecs.Signed,
    "bits": codecs.Bits,
}
_RAW_NAMES, _LIST = ("Cell", "RawCell"), "Chunks"


class Scheme:
    """The layouts of one table.

    ``layouts`` maps each opcode to its layouts in the order in which they are tried.
    """

    def __init__(self, constructors: Iterable[Constructor]) -> None:
        """Compile the layouts; raise BodyError for a type that the table does not define."""
        self.constructors = tuple(constructors)
        self._types: dict[str, list[Constructor]] = {}
        for constructor in self.constructors:
            self._types.setdefault(constructor.result, []).append(constructor)
        self._unions: dict[str, Union] = {}
        self.layouts: dict[int, list[Record]] = {}
        for constructor in self._bodies():
            self.layouts.setdefault(constructor.tag, []).append(self._layout(constructor))

    def union(self, name: str) -> Union:
        """Return the codec of a type that the table defines."""
        if name not in self._types:
            raise BodyError(f"no type {name} is defined")
        if name not in self._unions:
            union = self._unions[name] = Union()
            union.fill([(of.tag, of.tag_bits, self._record(of)) for of in self._types[name]])
        return self._unions[name]

    def _bodies(self) -> Iterable[Constructor]:
        """Yield the statements of bodies, by kind and then by line."""
        for kind in BODY_TYPES:
            for constructor in self._types.get(kind, ()):
                if constructor.tag_bits != OPCODE_BITS:
                    raise BodyError(f"{constructor.name} has no {OPCODE_BITS}-bit opcode")
                yield constructor

    def _layout(self, constructor: Constructor) -> Record:
        """Compile a statement of bodies."""
        if constructor.result == OWN_BODY:
            return self._record(constructor)
        if constructor.tag < _MIN_OWN:
            constructor = constructor._replace(fields=_without_rest(constructor.fields))
        is_whole = constructor.tag < MIN_HASHED or constructor.result == WHOLE_BODY
        return self._record(constructor, is_whole=is_whole)

    def _record(self, constructor: Constructor, *, is_whole: bool = False) -> Record:
        """Compile the fields of a statement."""
        parts = [self._part(field) for field in constructor.fields]
        return Record(constructor.name, parts, is_whole=is_whole)

    def _part(self, field: Field) -> Part:
        """Compile a field."""
        if isinstance(field.type, Conditional):
            optional = field.type
            return Part(field.name, self._codec(optional.of), optional.field, optional.bit)
        if isinstance(field.type, Constraint):
            condition = field.type
            return Part("", Condition(condition.op, condition.left, condition.right))
        if isinstance(field.type, Named) and field.type.name in {_LIST, REPEATED}:
            count, item = field.type.arguments
            if isinstance(count, Named) and not count.name.isdecimal():
                codec = self._codec(item)
                is_chunked = field.type.name == _LIST
                items = composite.Chunks(codec) if is_chunked else composite.Repeat(None, codec)
                return Part(field.name, items, length=count.name)
        return Part(field.name, self._codec(field.type))

    def _codec(self, of: Type) -> codecs.Codec:
        """Compile a type."""
        if isinstance(of, Linked):
            return composite.Reference(self._codec(of.of))
        if isinstance(of, Group):
            return Record("", [self._part(field) for field in of.fields])
        if isinstance(of, Named):
            if of.arguments:
                return self._applied(of)
            match = _WIDTH.fullmatch(of.name)
            if match:
                return _WIDTHS[match[1]](int(match[2]))
            return _SIMPLE.get(of.name) or self.union(of.name)
        if isinstance(of, Constraint):
            raise BodyError(f"a condition on {of.left} stands in place of a type")
        raise BodyError(f"a condition on {of.field} is nested inside another type")

    def _applied(self, of: Named) -> codecs.Codec:
        """Compile a type with arguments."""
        name, arguments = of
        if name in {"Maybe", "Either"}:
            inner = [self._argument(each) for each in arguments]
            return composite.Maybe(inner[0]) if name == "Maybe" else composite.Either(*inner)
        if name in {"HashmapE", "Hashmap"}:
            bits, value = _read_number(arguments[0]), self._argument(arguments[1])
            kind = composite.MaybeHashmap if name == "HashmapE" else composite.Hashmap
            return kind(bits, value)
        if name == REPEATED:
            return self._repeated(_read_number(arguments[0]), arguments[1])
        if name not in {"VarUInteger", "VarInteger", AT_MOST, BELOW}:
            raise BodyError(f"type {name} takes no arguments")
        number = _read_number(arguments[0])
        if name in {"VarUInteger", "VarInteger"}:
            return codecs.VarUnsigned(number, is_signed=name == "VarInteger")
        return codecs.Bounded(number - (name == BELOW))

    def _repeated(self, count: int, of: Type) -> codecs.Codec:
        """Compile ``(count * T)``, of bits as a bit string."""
        if of == Named("Bit"):
            return codecs.Bits(count)
        return composite.Repeat(count, self._codec(of))

    def _argument(self, of: Type) -> codecs.Codec:
        """Compile an argument: a reference is shown as such, unless it is a plain ``^Cell``."""
        codec = self._codec(of)
        is_plain = of in [Linked(Named(name)) for name in _RAW_NAMES]
        return composite.Wrapped(codec) if isinstance(of, Linked) and not is_plain else codec


def _without_rest(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return fields of which none takes whatever is left of a cell."""
    return tuple(Field(field.name, _end_instead(field.type)) for field in fields)


def _end_instead(of: Type) -> Type:
    if isinstance(of, Linked) and isinstance(of.of, Group):
        return Linked(_end_instead(of.of))
    if isinstance(of, Group):
        return Group(_without_rest(of.fields))
    is_rest = isinstance(of, Named) and isinstance(_SIMPLE.get(of.name), Rest)
    return Named("End") if is_rest else of


def _read_number(argument: Type) -> int:
    """Return an argument that must be a number."""
    if isinstance(argument, Named) and argument.name.isdecimal():
        return int(argument.name)
    raise BodyError(f"{argument} is not a number")


@cache
def load_scheme() -> Scheme:
    """Return the shipped layouts, parsed and compiled on the first call."""
    text = files("tonlake.ingest.derive.body").joinpath(_SCHEME_FILE).read_text(encoding="utf-8")
    scheme = Scheme(parse_scheme(text))
    for name in {constructor.result for constructor in scheme.constructors}.difference(BODY_TYPES):
        scheme.union(name)  # threads share the table: none may see a type before it is complete
    return scheme
