"""The subset of TL-B that layouts are written in."""

import pytest

from tonlake.ingest.derive.body.grammar import (
    Constructor,
    Field,
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


@pytest.mark.parametrize(("tag", "bits"), [("#0201_", (1 << 8, 15)), ("#8_", (0, 0))])
def test_a_tag_may_end_inside_a_digit(tag: str, bits: tuple[int, int]) -> None:
    [found] = parse_scheme(f"one{tag} = Type;")
    assert (found.tag, found.tag_bits) == bits


@pytest.mark.parametrize("gap", [" " * 60_000, "\n" * 60_000, "/* " * 20_000 + "*/"])
def test_long_gaps_take_no_quadratic_time(gap: str) -> None:
    text = f"one{gap} a :(Maybe{gap}Bool ) {gap}= Type;"
    assert parse_scheme(text) == parse_scheme("one a:(Maybe Bool) = Type;")


def test_a_comment_without_an_end_lasts_to_the_end() -> None:
    assert parse_scheme("one#01 = Type;" + "/* " * 20_000) == parse_scheme("one#01 = Type;")


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
