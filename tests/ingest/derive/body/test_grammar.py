"""The subset of TL-B that layouts are written in."""

import pytest

from tonlake.ingest.derive.body.grammar import (
    Conditional,
    Constructor,
    Field,
    Group,
    Linked,
    Named,
    apply,
    parse_scheme,
)
from tonlake.ingest.errors import BodyError


def test_a_statement_has_name_tag_fields_and_result() -> None:
    text = """
    // a comment; with a semicolon
    one#0000000a a:uint8 _:^Cell // and another
      = Body;
    two$01 = Type;
    """
    assert parse_scheme(text) == [
        Constructor(
            "one", 10, 32, (Field("a", apply("uint", 8)), Field("", Linked(Named("Cell")))), "Body"
        ),
        Constructor("two", 1, 2, (), "Type"),
    ]


@pytest.mark.parametrize("tag", ["#_", "$_"])
def test_a_constructor_may_have_no_tag(tag: str) -> None:
    assert parse_scheme(f"one{tag} = Type;") == [Constructor("one", 0, 0, (), "Type")]


def test_a_constructor_without_a_tag_has_that_of_its_text() -> None:
    [found] = parse_scheme("refund  query_id:uint64\n amount:( VarUInteger 16 ) = Body;")
    assert (found.tag, found.tag_bits) == (0x4DC0933A, 32)


@pytest.mark.parametrize(("tag", "bits"), [("#0201_", (1 << 8, 15)), ("#8_", (0, 0))])
def test_a_tag_may_end_inside_a_digit(tag: str, bits: tuple[int, int]) -> None:
    [found] = parse_scheme(f"one{tag} = Type;")
    assert (found.tag, found.tag_bits) == bits


def test_a_constructor_may_have_no_name() -> None:
    assert parse_scheme("_ a:Bool = Type;")[0].name == ""


def test_a_name_may_join_several() -> None:
    assert parse_scheme("one,two#01 = Type;")[0].name == "one,two"


LENGTH = Named("+", (Named("1"), Named("*", (Named("n"), Named("8")))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bool", Named("Bool")),
        ("^Bool", Linked(Named("Bool"))),
        ("(Maybe ^Bool)", Named("Maybe", (Linked(Named("Bool")),))),
        ("(HashmapE 8 uint8)", Named("HashmapE", (Named("8"), apply("uint", 8)))),
        ("(Maybe (Maybe X))", Named("Maybe", (Named("Maybe", (Named("X"),)),))),
        ("[ a:X ]", Group((Field("a", Named("X")),))),
        ("^[ a:X b:Y ]", Linked(Group((Field("a", Named("X")), Field("b", Named("Y")))))),
        ("flag?X", Conditional("flag", None, Named("X"))),
        ("#", apply("uint", 32)),
        ("(## 8)", apply("uint", 8)),
        ("(#<= 30)", Named("#<=", (Named("30"),))),
        ("(512 * Bit)", Named("*", (Named("512"), Named("Bit")))),
        ("(## n)", Named("uint", (Named("n"),))),
        ("(Unary ~(n + 1))", Named("Unary", (Named("+", (Named("n"), Named("1"))),))),
        ("(bits (1 + n * 8))", Named("bits", (LENGTH,))),
        ("(flags . 0)?Bool", Conditional("flags", 0, Named("Bool"))),
        ("(^X)", Linked(Named("X"))),
        ("(flags.3?X)", Conditional("flags", 3, Named("X"))),
        ("flags.3?^X", Conditional("flags", 3, Linked(Named("X")))),
    ],
)
def test_types(text: str, expected: object) -> None:
    assert parse_scheme(f"one field:{text} = Type;")[0].fields == (Field("field", expected),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "one a:Bool",
        "one#xyz a:Bool = Type;",
        "one a:(Maybe Bool = Type;",
        "one a:[ b:Bool = Type;",
        "one a:Bool ] = Type;",
        "one a:{Bool} = Type;",
        "= Type;",
    ],
)
def test_invalid_statements_are_rejected(text: str) -> None:
    with pytest.raises(BodyError, match=r"statement|expected|unexpected"):
        parse_scheme(text)
