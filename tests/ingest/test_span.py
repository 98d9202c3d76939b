"""Ranges of masterchain seqnos."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.ingest.span import Span, SpanError, missing_spans, parse_span

SEQNOS = st.integers(min_value=1, max_value=60)
SPANS = st.tuples(SEQNOS, SEQNOS).map(lambda ends: Span(min(ends), max(ends)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000:2000", Span(1000, 2000)),
        ("1000:", Span(1000, 5000)),
        (":2000", Span(10, 2000)),
        ("1500", Span(1500, 1500)),
        ("-1000:", Span(4001, 5000)),
        ("-9000:", Span(10, 5000)),
        (" 7:7 ", Span(7, 7)),
    ],
)
def test_parse_span(text: str, expected: Span) -> None:
    assert parse_span(text, oldest=10, newest=5000) == expected


@pytest.mark.parametrize(
    "text", ["", ":", "a:b", "1:2:3", "20:10", "1.5:2", "0x10:", "6000:", "9" * 5000]
)
def test_parse_span_refuses(text: str) -> None:
    with pytest.raises(SpanError, match="range"):
        parse_span(text, oldest=10, newest=5000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("20:10", "ends before it begins: write 10:20"),
        ("-5:20", "ends before it begins: -5 is block 4996"),
        ("6000:", "begins after the newest block of the source, 5000"),
        ("0:20", ": masterchain blocks have numbers from 1 on"),
        ("-0:", ": masterchain blocks have numbers from 1 on"),
        (":0", ": masterchain blocks have numbers from 1 on"),
        (":9", "ends before the oldest block of the source, 10"),
    ],
)
def test_an_empty_range_is_explained(text: str, reason: str) -> None:
    with pytest.raises(SpanError, match=f"^range '{text}' ?{reason}$"):
        parse_span(text, oldest=10, newest=5000)


@given(wanted=SPANS, covered=st.lists(SPANS, max_size=6))
def test_missing_spans_are_the_set_difference(wanted: Span, covered: list[Span]) -> None:
    missing = list(missing_spans(wanted, covered))
    have = {seqno for span in covered for seqno in range(span.first, span.last + 1)}
    expected = [seqno for seqno in range(wanted.first, wanted.last + 1) if seqno not in have]
    assert [seqno for span in missing for seqno in range(span.first, span.last + 1)] == expected
    assert all(before.last + 1 < after.first for before, after in pairwise(missing))
    assert sum(map(len, missing)) == len(expected)


@given(span=SPANS)
def test_text_round_trip(span: Span) -> None:
    assert parse_span(str(span), oldest=1, newest=100) == span
