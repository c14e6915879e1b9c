"""Tables as text: that they are aligned, and fit the terminal."""

from __future__ import annotations

import sys

import pytest

from ftrans.base.tables import aligned, wrapped

ROWS = [("line", "calls", "seconds"), ("model.py:12: a long line of code", "1", "0.25"), ("model.py:3: x", "12", "10")]


def terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(columns))


def test_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    assert aligned(ROWS) == [
        "line                              calls  seconds",
        "model.py:12: a long line of code      1     0.25",
        "model.py:3: x                        12       10",
    ]
    assert wrapped("one two three four") == ["one two three four"]


def test_texts_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, 40)
    assert aligned(ROWS) == [
        "line                      calls  seconds",
        "model.py:12: a long l...      1     0.25",
        "model.py:3: x                12       10",
    ]


def test_columns_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, 34)
    assert aligned(ROWS) == [
        "line                    calls  ...",
        "model.py:12: a long...      1",
        "model.py:3: x              12",
    ]


def test_sentences_are_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, 12)
    assert wrapped("one two three four") == ["one two", "  three four"]
