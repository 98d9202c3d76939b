"""The shipped table of layouts, compiled into codecs once, on first use.

Codecs of types that depend on numbers are made when a value is read: then the numbers are known.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache, partial
from importlib.resources import files

from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.derive.body import codec as codecs
from tonlake.ingest.derive.body import composite
from tonlake.ingest.derive.body.codec import Codec, Work
from tonlake.ingest.derive.body.grammar import (
    AT_MOST,
    BELOW,
    REPEATED,
    SIZED,
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
from tonlake.ingest.derive.body.number import MAX_BITS, Numbers, NumberScope, evaluate, match
from tonlake.ingest.derive.body.record import (
    OPCODE_BITS,
    Condition,
    End,
    RawCell,
    Record,
    RecordField,
    Rest,
    Union,
)
from tonlake.ingest.errors import BocError, BodyError

MAX_USES = 64
"""Maximum depth of types with numbers, and of types inside themselves."""
_MAX_MADE = 1024
"""How many codecs of a type are kept, by number."""


class Late(Codec):
    """A type with a number that is not a constant, such as ``(bits n)``.

    An unknown number is that of the bits that are left, if ``is_open``.
    """

    def __init__(self, make: Callable[[int], Codec], number: Type, *, is_open: bool) -> None:
        self._make = lru_cache(_MAX_MADE)(make)
        self._number, self._is_open = number, is_open

    def load(self, source: CellSlice, work: Work) -> str:
        """Read a value; raise BodyError if there is no such type."""
        number = evaluate(self._number, work.numbers)
        if number is None:
            number = source.bits_left
            if not self._is_open or not match(self._number, number, work.numbers):
                raise BodyError("the number of a type is unknown")
        return self._make(number).read(source, work)


class Use(Codec):
    """A use of a type with numbers, or of a type inside itself, which counts as one more cell.

    Numbers that are unknown before the value is read are known after it.
    """

    def __init__(self, union: Union, arguments: Sequence[Type] = ()) -> None:
        self.union, self._arguments = union, arguments

    def load(self, source: CellSlice, work: Work) -> str:
        """Read the first constructor that consumes the cell, else the first that can be read."""
        work.visit()
        work.uses += 1
        if work.uses > MAX_USES:
            work.refuse(f"more than {MAX_USES} types of the body are nested in each other")
        try:
            text, results = self._read(source, work)
        finally:
            work.uses -= 1
        for argument, number in zip(self._arguments, results, strict=True):
            if number is not None and not match(argument, number, work.numbers):
                raise BodyError(f"a type has the number {number}, which is not that of its use")
        return text

    def _read(self, source: CellSlice, work: Work) -> tuple[str, list[int | None]]:
        given = [evaluate(each, work.numbers) for each in self._arguments]
        found = None
        for choice in self.union.choices:
            numbers: Numbers = {}
            pairs = zip(choice.record.parameters, given, strict=True)
            if not all(number is None or match(each, number, numbers) for each, number in pairs):
                continue
            attempt = source.copy()
            try:
                if attempt.load_uint(choice.tag_bits) != choice.tag:
                    continue
                text = choice.record.load(attempt, work, numbers)
            except (BocError, BodyError):
                continue
            is_whole = not (attempt.bits_left or attempt.refs_left)
            if is_whole or found is None:
                results = [evaluate(each, numbers) for each in choice.record.parameters]
                found = text, results, attempt
            if is_whole:
                break
        if found is None:
            raise BodyError("no constructor of the type fits")
        text, results, end = found
        source.bits_left, source.ref = end.bits_left, end.ref
        return text, results


_SCHEME_FILE = "layouts.tlb"
OWN_BODY, WHOLE_BODY = "OwnBody", "WholeBody"
"""Result types of the bodies that a user defines, and of those of which nothing may be left."""
BODY_TYPES = (OWN_BODY, "InternalBody", "ExternalOutBody", "ForwardPayload", WHOLE_BODY)
"""Result types of the statements that are selected by opcode, in the order they are tried."""
MIN_HASHED, _MIN_OWN = 1 << 16, 1 << 8
"""Lower opcodes are not hashes of a name but numbers, which contracts share: a body has their
layout only if nothing is left of it. Below 256 a field that takes any rest does not count."""


def _read_rare_address(source: CellSlice, work: codecs.Work) -> str:
    return load_scheme().union("MsgAddress").read(source, work)


ADDRESS = codecs.Address(_read_rare_address)
"""Reads any address."""
_SIMPLE: dict[str, codecs.Codec] = {
    "Bool": codecs.Flag(),
    "Bit": codecs.Unsigned(1),
    "Cell": Rest(),
    "Any": Rest(),
    "RawCell": RawCell(),
    "End": End(),
    "MsgAddress": ADDRESS,
    "SnakeText": codecs.SnakeText(),
    "CommentText": codecs.CommentText(),
    "CommentBytes": codecs.CommentBytes(),
    "SnakeBytes": codecs.SnakeBytes(),
    "ShortText": codecs.ShortText(),
    "Text": codecs.ChunkedText(),
}
_LIST = "Chunks"
_MakeCodec = Callable[[int, codecs.Codec], codecs.Codec]
"""Makes the codec of a type with a number, and with the codec of its other argument."""
_NUMBERED: dict[str, tuple[range, _MakeCodec]] = {
    "uint": (range(257), lambda bits, _inner: codecs.Unsigned(bits)),
    "int": (range(258), lambda bits, _inner: codecs.Signed(bits)),
    "bits": (range(1024), lambda bits, _inner: codecs.Bits(bits)),
    AT_MOST: (range(1, 1 << 64), lambda most, _inner: codecs.Bounded(most)),
    BELOW: (range(1, 1 << 64), lambda limit, _inner: codecs.Bounded(limit - 1)),
    "VarUInteger": (range(2, 33), lambda limit, _inner: codecs.VarUnsigned(limit)),
    "VarInteger": (range(2, 33), lambda limit, _inner: codecs.VarUnsigned(limit, is_signed=True)),
    "Hashmap": (range(1, 1024), composite.Hashmap),
    "HashmapE": (range(1, 1024), composite.MaybeHashmap),
    REPEATED: (range(1024), lambda count, inner: composite.RepeatedValue(inner, count)),
    _LIST: (range(1024), lambda count, inner: composite.Chunks(inner, count)),
}
"""Types whose first argument is a number: those that it may have, and their codecs."""
_ARGUMENTS = dict.fromkeys((*_NUMBERED, "Maybe"), 1)
_ARGUMENTS |= dict.fromkeys(("Either", "Hashmap", "HashmapE", REPEATED, _LIST), 2)
BUILT_IN = {"Maybe", "Either", *_NUMBERED, *_SIMPLE}
"""Types that no table has to define."""
_RAW_NAMES = ("Cell", "RawCell")


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
        self._scope = NumberScope(Constructor("", 0, 0, (), ""))
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

    def _record(self, of: Constructor, *, is_whole: bool = False) -> Record:
        """Compile the fields of a statement."""
        around, self._scope = self._scope, NumberScope(of)
        parts = [self._part(field) for field in of.fields]
        scope, self._scope = self._scope, around
        return Record(
            of.name, parts, is_whole=is_whole, parameters=of.parameters, is_late=scope.is_late
        )

    def _part(self, field: Field) -> RecordField:
        """Compile a field."""
        of = field.type
        if isinstance(of, Conditional):
            self._scope.check(Named(of.field))
            if of.bit is not None and of.bit >= self._scope.bits[of.field]:
                raise BodyError(f"{of.field} has no bit {of.bit}")
            return RecordField(field.name, self._codec(of.of), of.field, of.bit)
        if isinstance(of, Constraint):
            for side in (of.left, of.right):
                self._scope.check(side, is_open=of.op == "=")
            return RecordField("", Condition(of.op, of.left, of.right))
        codec = self._codec(of)
        if isinstance(codec, codecs.Unsigned | codecs.Flag) and codec.bits <= MAX_BITS:
            self._scope.bits[field.name] = codec.bits
        elif isinstance(codec, Late) and of[0] in {"uint", AT_MOST, BELOW}:
            self._scope.bits[field.name] = MAX_BITS
        return RecordField(field.name, codec)

    def _codec(self, of: Type, *, is_linked: bool = False) -> codecs.Codec:
        """Compile a type, that of a cell of its own if it ``is_linked``."""
        if isinstance(of, Linked):
            return composite.Reference(self._codec(of.of, is_linked=True))
        if isinstance(of, Group):
            return self._group(of)
        if isinstance(of, Named):
            return _SIMPLE.get(of.name) or self._named(of, is_linked=is_linked)
        if isinstance(of, Constraint):
            raise BodyError("a condition stands in place of a type")
        raise BodyError(f"a condition on {of.field} is nested inside another type")

    def _group(self, of: Group) -> codecs.Codec:
        """Compile a group, whose fields may depend on those around it."""
        scope = self._scope
        bits, is_late = scope.bits.copy(), scope.is_late
        scope.is_late = False
        parts = [self._part(field) for field in of.fields]
        group = Record("", parts, parameters=None, is_late=scope.is_late)
        scope.bits, scope.is_late = bits, is_late or not group.is_plain
        return group

    def _named(self, of: Named, *, is_linked: bool) -> codecs.Codec:
        """Compile a type with a name, and with arguments if it has some."""
        name, arguments = of
        own = self._types.get(name)
        expected = len(own[0].parameters) if own else _ARGUMENTS.get(name, len(arguments))
        if len(arguments) != expected:
            raise BodyError(f"{name} takes {expected or 'no'} arguments, in parentheses")
        if name in {"Maybe", "Either"}:
            inner = [self._argument(each) for each in arguments]
            return composite.Maybe(inner[0]) if name == "Maybe" else composite.Either(*inner)
        if name in _NUMBERED:
            return self._numbered(of)
        union = self.union(name)
        if not arguments:  # each way from a type to itself meets one that is not complete yet
            return union if union.choices or is_linked else Use(union)
        for each in arguments:
            self._scope.is_late |= evaluate(each, {}) is None
            self._scope.add(each)
        return Use(union, arguments)

    def _numbered(self, of: Named) -> codecs.Codec:
        """Compile a type with a number, which earlier fields may give."""
        name, (number, *others) = of
        inner = _SIMPLE["Cell"]
        if name == REPEATED and others == [Named("Bit")]:
            name = "bits"
        elif others:
            compiled = self._codec if name in {REPEATED, _LIST} else self._argument
            inner = compiled(others[0])
        make, known = partial(_make, name, inner), evaluate(number, {})
        if known is not None:
            return make(known)
        is_open = name in SIZED
        self._scope.check(number, is_open=is_open)
        self._scope.is_late = True
        return Late(make, number, is_open=is_open)

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


def _make(name: str, inner: codecs.Codec, number: int) -> codecs.Codec:
    """Return the codec of a type with a number; raise BodyError if it has no such number."""
    numbers, make = _NUMBERED[name]
    if number not in numbers:
        raise BodyError(f"{name} takes a number from {numbers[0]} to {numbers[-1]}, not {number}")
    return make(number, inner)


@cache
def load_scheme() -> Scheme:
    """Return the shipped layouts, parsed and compiled on the first call."""
    text = files("tonlake.ingest.derive.body").joinpath(_SCHEME_FILE).read_text(encoding="utf-8")
    scheme = Scheme(parse_scheme(text))
    for name in {constructor.result for constructor in scheme.constructors}.difference(BODY_TYPES):
        scheme.union(name)  # threads share the table: none may see a type before it is complete
    return scheme
