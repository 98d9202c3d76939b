"""The page of figures matches the saved results."""

from __future__ import annotations

from tests.figures.__main__ import PAGE, flatten, read_printed, read_results, render


def test_the_page_is_made_of_the_results() -> None:
    assert read_results()
    assert PAGE.read_text(encoding="utf-8") == render(read_results()), "run make figures"


def test_what_runs_print_is_read() -> None:
    assert read_printed('{"a": {"b": [1, 2]},\n "c": []}') == {"a": {"b": [1, 2]}, "c": []}
    assert read_printed('{"a": 1}\n{"a": 2}\n') == [{"a": 1}, {"a": 2}]
    assert read_printed("1 case\n2 cases, 0 findings\n") == {"printed": "2 cases, 0 findings"}


def test_figures_have_their_path() -> None:
    found = flatten({"a": {"b": 12345, "c": []}, "d": [{"e": True}, {"e": 0.5}]})
    assert found == [("a.b", "12,345"), ("a.c", "none"), ("d.1.e", "True"), ("d.2.e", "0.5")]
