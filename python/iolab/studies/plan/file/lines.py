# SPDX-License-Identifier: Apache-2.0
"""The line of each key of a TOML file, which the standard library's reader does not report.

The text must already have been accepted by `tomllib`: this scanner finds keys, it judges nothing.
"""

from __future__ import annotations

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """Key path to line (from 1): tables, dotted and quoted keys, keys of inline tables, elements of
    arrays of tables.

    Elements of `[[name]]` have their index in the path, `("name", "0", "key")`. The first place of
    a key counts.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0
        self._line = 1
        self._found: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip_blank():
            if self._peek() == "[":
                table = self._header()
            else:
                self._assignment(table)
        return self._found

    def _header(self) -> Path:
        double = self._text.startswith("[[", self._at)
        self._step(2 if double else 1)
        path = self._through_arrays(self._key(), last=not double)
        if double:
            index = self._arrays.get(path, -1) + 1
            self._arrays[path] = index
            self._note(path)
            path = (*path, str(index))
        # [variant.xfs] is the first place of "variant", too
        for length in range(1, len(path) + 1):
            self._note(path[:length])
        self._skip_line()
        return path

    def _through_arrays(self, key: Path, *, last: bool) -> Path:
        """A header below an array of tables means its latest element."""
        path: Path = ()
        for number, part in enumerate(key):
            path = (*path, part)
            if path in self._arrays and (last or number < len(key) - 1):
                path = (*path, str(self._arrays[path]))
        return path

    def _assignment(self, table: Path) -> None:
        key = self._key()
        for length in range(1, len(key) + 1):
            self._note((*table, *key[:length]))
        self._step()  # '='
        self._value((*table, *key))

    def _key(self) -> Path:
        parts = []
        while True:
            self._skip_spaces()
            if self._peek() in "\"'":
                parts.append(self._string())
            else:
                start = self._at
                while self._peek() and self._peek() not in ".=] \t\n":
                    self._step()
                parts.append(self._text[start : self._at])
            self._skip_spaces()
            if self._peek() != ".":
                return tuple(parts)
            self._step()

    def _value(self, path: Path) -> None:
        self._skip_spaces()
        char = self._peek()
        if char and char in "\"'":
            self._string()
        elif char == "[":
            self._array(path)
        elif char == "{":
            self._inline_table(path)
        else:
            while self._peek() and self._peek() not in ",]}#\n":
                self._step()

    def _array(self, path: Path) -> None:
        self._step()
        index = 0
        while self._skip_blank() and self._peek() != "]":
            if self._peek() == ",":
                self._step()
                continue
            self._note((*path, str(index)))
            self._value((*path, str(index)))
            index += 1
        self._step()

    def _inline_table(self, path: Path) -> None:
        self._step()
        while self._skip_blank() and self._peek() != "}":
            if self._peek() == ",":
                self._step()
                continue
            self._assignment(path)
        self._step()

    def _string(self) -> str:
        quote = self._peek()
        if self._text.startswith(quote * 3, self._at):
            return self._long_string(quote)
        self._step()
        parts = []
        while self._peek() and self._peek() != quote:
            if quote == '"' and self._peek() == "\\":
                self._step()
            parts.append(self._peek())
            self._step()
        self._step()
        return "".join(parts)

    def _long_string(self, quote: str) -> str:
        self._step(3)
        start = self._at
        while self._peek() and not self._text.startswith(quote * 3, self._at):
            self._step(2 if quote == '"' and self._peek() == "\\" else 1)
        inside = self._text[start : self._at]
        self._step(3)
        while self._peek() == quote:  # up to two quotes may stand right before the closing three
            self._step()
        return inside

    def _note(self, path: Path) -> None:
        self._found.setdefault(path, self._line)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _step(self, count: int = 1) -> None:
        self._line += self._text.count("\n", self._at, self._at + count)
        self._at += count

    def _skip_spaces(self) -> None:
        while self._peek() and self._peek() in " \t":
            self._step()

    def _skip_line(self) -> None:
        while self._peek() and self._peek() != "\n":
            self._step()

    def _skip_blank(self) -> bool:
        """Skip white space and comments; whether anything is left."""
        while self._peek():
            if self._peek() == "#":
                self._skip_line()
            elif self._peek() in " \t\n\r":
                self._step()
            else:
                return True
        return False
