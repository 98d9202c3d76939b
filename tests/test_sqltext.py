"""The search finds composed SQL text wherever it is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sqltext import find_composed

ROOT = Path(__file__).resolve().parent.parent

COMPOSED = {
    "an f-string": 'c.execute(f"select {x}")',
    "a sum": 'c.sql("select " + x)',
    "a format": 'c.execute("select {}".format(x))',
    "a local variable": 'def f(c, x):\n    text = f"select {x}"\n    c.execute(text)',
    "a variable of the module": 'A = "select {}".replace("{}", x)\ndef f(c):\n    c.execute(A)',
    "a variable of a variable": 'a = "-".join(x)\nb = a\nc.execute(b)',
    "an appended variable": 'a = "select 1"\na += x\nc.execute(a)',
    "one of two values": 'a = "select 1" if x else f"select {x}"\nc.execute(a)',
    "a loop": 'for a in ["select 1", f"select {x}"]:\n    c.execute(a)',
    "a method of the text": 'a = f"select {x}"\nc.execute(a.strip())',
    "an assignment within": 'c.execute(a := f"select {x}")',
    "a dict": 'a = {1: f"select {x}"}\nc.execute(a[1])',
    "a function's result": 'def f(x):\n    return f"select {x}"\nc.execute(f(1))',
    "a method's result": 'class A:\n    def f(self):\n        return "a" % x\n'
    "    def g(self, c):\n        c.execute(self.f())",
    "an attribute": 'class A:\n    def __init__(self, x):\n        self.a = f"select {x}"\n'
    "    def g(self, c):\n        c.execute(self.a)",
    "a function around": 'def f(c, x):\n    a = f"{x}"\n    def g():\n        c.execute(a)',
    "an imported function": "from tonlake.lake.duck.connection import render_view\n"
    "c.execute(render_view(x))",
    "a composed template": 'c.execute(fill_statement(f"select {x}"))',
    "a keyword": 'c.sql(query=f"select {x}")',
}

CONSTANT = {
    "a constant": 'c.execute("select $x", {"x": f"{x}"})',
    "a variable": 'A = "select 1"\nc.execute(A)',
    "a parameter": "def f(c, text):\n    c.execute(text)",
    "a parameter of the name of a variable": 'a = f"{x}"\ndef f(c, a):\n    c.execute(a)',
    "another variable": 'def f(x):\n    a = f"{x}"\ndef g(c):\n    a = "b"\n    c.sql(a)',
    "an SQL file": 'a = files("x").joinpath("a.sql").read_text()\nc.execute(a)',
    "the audited functions": 'c.sql(fill_statement("use {x}", x=x))\nc.sql(join_scripts([a % x]))',
    "itself": "def f():\n    return f()\nc.execute(f())",
}


@pytest.mark.parametrize("source", COMPOSED.values(), ids=COMPOSED)
def test_composed_text_is_found(source: str) -> None:
    assert len(find_composed(source, ROOT)) == 1


@pytest.mark.parametrize("source", CONSTANT.values(), ids=CONSTANT)
def test_other_text_is_not(source: str) -> None:
    assert find_composed(source, ROOT) == []
