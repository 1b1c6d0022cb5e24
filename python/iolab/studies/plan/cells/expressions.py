# SPDX-License-Identifier: Apache-2.0
"""Sizes as expressions: `"0.25 * memory"`, `"2 * memory / numjobs"`, `"(1g + 512m) * cpus"`.

Numbers, sizes with fio's units, `memory` (bytes), `cpus`, and factors of the study, joined by + - *
/ and parentheses. A recursive descent over a handful of tokens; nothing is executed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from iolab.base.errors import UsageError
from iolab.base.units import parse_fio_size

FACTS = ("memory", "cpus")
"""Names of the host's facts that an expression may use."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*|\.\d+)(?P<unit>[A-Za-z]+)?|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[-+*/()]))"
)
_WORD = re.compile(r"(?<![A-Za-z0-9_.{])[A-Za-z_][A-Za-z0-9_]*")
_SIZE_KEYS = {"offset", "offset_increment", "io_limit"}
_DEEPEST = 50
_WHOLE = 2**20


class ExpressionError(ValueError):
    """What is wrong with an expression, and what is allowed: `wrong`, `allowed`."""

    def __init__(self, wrong: str, allowed: str) -> None:
        super().__init__(f"{wrong}; {allowed}")
        self.wrong, self.allowed = wrong, allowed


def takes_size(key: str) -> bool:
    """Whether an option of that name is a size, so that it may be an expression."""
    return key in _SIZE_KEYS or key.endswith(("size", "_bytes"))


def is_expression(text: str, names: Mapping[str, Any]) -> bool:
    """Whether a size is to be computed: it has an operator or names something.

    A minus alone doesn't count: `4k-64k` is fio's range.
    """
    if any(sign in text for sign in "*/+("):
        return True
    return any(word in FACTS or word in names for word in names_in(text))


def names_in(text: str) -> list[str]:
    """Words of an expression that are no units of a number."""
    return _WORD.findall(text)


def size_of(text: str, names: Mapping[str, Any]) -> int:
    """The expression's value in whole bytes: rounded down to MiB from one on, below that to whole
    bytes.

    Args:
        names: facts and factors to numbers, or to sizes as fio writes them; None for what the host
        doesn't tell.

    Raises ExpressionError where it can't be computed, or comes to nothing.
    """
    value = _Parser(text, names).value()
    if not math.isfinite(value) or value >= 2**63:
        raise ExpressionError(f"'{text}' is too large", "below 8 EiB")
    if value < 1:
        raise ExpressionError(f"'{text}' comes to {value:g} bytes", "one byte at least")
    return int(value) // _WHOLE * _WHOLE if value >= _WHOLE else int(value)


class _Parser:
    """sum = product {(+|-) product}; product = part {(*|/) part}; part = number | name | ( sum ) |
    - part."""

    def __init__(self, text: str, names: Mapping[str, Any]) -> None:
        self._text, self._names = text, names
        self._tokens = self._split(text)
        self._at = 0
        self._depth = 0

    def value(self) -> float:
        result = self._sum()
        if self._at < len(self._tokens):
            raise self._error(f"has '{self._tokens[self._at][0].strip()}' where it should end")
        return result

    def _split(self, text: str) -> list[re.Match[str]]:
        tokens, at, end = [], 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(f"has '{text[at:].strip()[:1]}', which is nothing here")
            tokens.append(match)
            at = match.end()
        return tokens

    def _sum(self) -> float:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("is nested too deeply")
        result = self._product()
        while (sign := self._sign("+", "-")) is not None:
            right = self._product()
            result = result + right if sign == "+" else result - right
        self._depth -= 1
        return result

    def _product(self) -> float:
        result = self._part()
        while (sign := self._sign("*", "/")) is not None:
            right = self._part()
            if sign == "/" and right == 0:
                raise self._error("divides by zero")
            result = result * right if sign == "*" else result / right
        return result

    def _part(self) -> float:
        negative = False
        while self._sign("-") is not None:
            negative = not negative
        if self._sign("(") is not None:
            result = self._sum()
            if self._sign(")") is None:
                raise self._error("lacks a ')'")
        else:
            result = self._operand()
        return -result if negative else result

    def _operand(self) -> float:
        if self._at >= len(self._tokens):
            raise self._error("ends too early")
        token = self._tokens[self._at]
        self._at += 1
        if token["name"]:
            return self._value_of(token["name"])
        if token["number"]:
            return float(token["number"]) * (self._unit(token["unit"]) if token["unit"] else 1)
        raise self._error(f"has '{token['sign']}' where a number should be")

    def _unit(self, unit: str) -> int:
        try:
            return parse_fio_size(f"1{unit}")
        except UsageError:
            raise self._error(f"has the unknown unit '{unit}'") from None

    def _value_of(self, name: str) -> float:
        if name not in self._names:
            raise ExpressionError(
                f"'{self._text}' names '{name}', which is neither a fact nor a factor",
                f"there are: {', '.join(dict.fromkeys((*FACTS, *self._names)))}",
            )
        value = self._names[name]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        try:
            return float(parse_fio_size(value))
        except UsageError:
            pass
        if value is None:
            raise ExpressionError(
                f"'{self._text}' needs the host's {name}, which it doesn't tell", "write a size"
            )
        raise ExpressionError(
            f"'{self._text}' needs a number, and {name} is {value!r}",
            "a factor with numbers or sizes as levels",
        )

    def _sign(self, *signs: str) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at]["sign"] in signs:
            self._at += 1
            return self._tokens[self._at - 1]["sign"]
        return None

    def _error(self, wrong: str) -> ExpressionError:
        return ExpressionError(
            f"'{self._text}' {wrong}", 'such as "0.25 * memory" or "2 * memory / numjobs"'
        )
