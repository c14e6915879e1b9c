"""The switch for rewrites: programs made inside of `without_rewrites` are what they are without the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ftrans.core.trie import trie
from ftrans.rewrites import table
from ftrans.rewrites.rule import Rule, Stage


def _forget_programs() -> None:
    trie.roots, trie.count = {}, 0


@contextmanager
def with_rules(rules: dict[Stage, Any]) -> Iterator[None]:
    """Have these rules in place of those of the table; programs that are known are forgotten before and after."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "rules", rules)
        _forget_programs()
        try:
            yield
        finally:
            _forget_programs()


def without_rewrites() -> Any:
    """No rewrites are applied while the block runs."""
    return with_rules({stage: {} for stage in Stage})


@contextmanager
def counting_rewrites() -> Iterator[Counter[str]]:
    """Yields how often each rule was applied while the block ran, by name."""
    count: Counter[str] = Counter()

    def counting(rule: Rule) -> Rule:
        def apply(*args: Any) -> Any:
            result = rule.apply(*args)
            count[rule.name] += result is not None
            return result

        return rule._replace(apply=apply)

    wrapped = {stage: {p: tuple(map(counting, rs)) for p, rs in by.items()} for stage, by in table.rules.items()}
    with with_rules(wrapped):
        yield count
