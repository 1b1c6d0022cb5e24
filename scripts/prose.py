# SPDX-License-Identifier: Apache-2.0
"""Check the prose of the project: private words and long sentences, in documentation, Python and
the pages.

    prose.py            compare the counts with scripts/prose.json; exit code 1 if one grew
    prose.py --list N   also print the N most frequent words with places and replacements
    prose.py --renew    lower the limits to the counts; a count that grew keeps its limit

The limits are a ratchet: a count may fall and may not grow. An area is a page group of docs/, a
package of python/iolab, or web/src.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = Path("scripts/prose.json")
LONGEST = 30
"""Words of a sentence."""
LONG = "long sentence"
REPLACEMENTS = {
    r"anew": "again; rebuilt",
    r"beside": "next to, with",
    r"by itself": "alone",
    r"go(?:es|ne)? on": "continues",
    r"gone": "deleted, missing",
    r"has it that": "says",
    r"in place of": "instead of",
    r"is content": "passes",
    r"is no (?:file|directory|number|device|pool|name)": "is not a ...",
    r"let go": "released, dropped",
    r"lies": "is in",
    r"nobody": "no user; name who",
    r"of others": "other people's",
    r"one that": "a ... that",
    r"(?:a |its )own go|second go": "retry",
    r"spelt": "escaped",
    r"stands?": "is, is shown",
    r"taken up": "accepted",
    r"tells": "reports, says",
    r"there is no more": "does not exist",
    r"told": "reported, named",
    r"what is (?:asked|left|there)": "name it",
    r"whose": "of which; name the owner",
}
"""Private word to the word of manual pages."""
_WORDS = {word: re.compile(rf"\b(?:{word})\b", re.IGNORECASE) for word in REPLACEMENTS}
_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_SENTENCE = re.compile(
    r"(?<=[.!?:])\s+(?=[A-Z*`'\"(\[{])|\n\s*\n|\n\s*(?:[-*|#]|\d+\.)\s*|\s\|\s|\n\s+(?=[\w, *`]+:\s)"
)
_TYPESCRIPT = re.compile(r"\"[^\"\n]* [^\"\n]*\"|`[^`\n]* [^`\n]*`|[>}][^<>{}=;]* [^<>{}=;]*[<{]")


@dataclass(frozen=True)
class Problem:
    """A private word, or `LONG`, at a line of a file."""

    word: str
    path: str
    line: int


def main() -> int:
    """Exit code."""
    parser = argparse.ArgumentParser(description="Check the prose of the project.")
    parser.add_argument("--list", type=int, default=0, metavar="N")
    parser.add_argument("--renew", action="store_true")
    options = parser.parse_args()
    problems = list(find_problems(ROOT))
    counts = count_areas(problems)
    limits = json.loads((ROOT / LIMITS).read_text("utf-8")) if (ROOT / LIMITS).exists() else None
    if options.renew:
        lowered = counts if limits is None else lower(limits, counts)
        (ROOT / LIMITS).write_text(json.dumps(lowered, indent=1, sort_keys=True) + "\n", "utf-8")
        return 0
    for word, number in Counter(problem.word for problem in problems).most_common(options.list):
        places = [f"{each.path}:{each.line}" for each in problems if each.word == word]
        print(f"{word} x{number} -> {REPLACEMENTS.get(word, 'split it')}: {', '.join(places[:5])}")
    grown = compare(limits or {}, counts)
    changed = changed_files(ROOT)
    for area, kind, number, limit in grown:
        print(f"{area}: {number} {kind}, limit {limit}; in files that changed since the limits:")
        here = [each for each in problems if area_of(each.path) == area and _kind(each) == kind]
        for each in (each for each in here if each.path in changed):
            replacement = REPLACEMENTS.get(each.word, f"at most {LONGEST} words")
            print(f"  {each.path}:{each.line}: '{each.word}' -> {replacement}")
    return 1 if grown else 0


def find_problems(root: Path) -> Iterator[Problem]:
    """Problems of every file that git knows or would add."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in sorted(set(listed.split("\0"))):
        path = root / name
        if not path.is_file() or name == "CHANGELOG.md":
            continue
        if name.endswith(".md") and (name.startswith("docs/") or "/" not in name):
            yield from of_markdown(path.read_text("utf-8"), name)
        elif name.startswith("python/iolab/") and name.endswith(".py"):
            yield from of_python(path.read_text("utf-8"), name)
        elif re.fullmatch(r"web/src/(?!generated/).*\.tsx?", name):
            yield from of_typescript(path.read_text("utf-8"), name)


def changed_files(root: Path) -> set[str]:
    """Files that differ from the commit of the limits."""
    git = ["git", "-C", str(root)]

    def run(*words: str) -> str:
        return subprocess.run([*git, *words], capture_output=True, text=True).stdout

    commit = run("log", "-1", "--format=%H", "--", str(LIMITS)).strip() or "HEAD"
    listed = run("diff", "--name-only", commit), run("ls-files", "--others", "--exclude-standard")
    return {name for output in listed for name in output.splitlines()}


def of_markdown(text: str, path: str) -> Iterator[Problem]:
    """Problems of a page, without its blocks of code and the targets of its links."""
    text = _CODE.sub(lambda block: "\n" * block[0].count("\n"), text)
    text = re.sub(r"`[^`\n]*`", "`code`", text)
    text = re.sub(r"\]\([^)\n]*\)", "]", text)
    yield from of_prose(text, path, 1)


def of_python(text: str, path: str) -> Iterator[Problem]:
    """Problems of docstrings and other strings with a space."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from of_prose(node.value, path, node.lineno)


def of_typescript(text: str, path: str) -> Iterator[Problem]:
    """Problems of strings and of text between tags."""
    for match in _TYPESCRIPT.finditer(text):
        yield from of_prose(match[0], path, text.count("\n", 0, match.start()) + 1)


def of_prose(text: str, path: str, line: int) -> Iterator[Problem]:
    """Problems of a text that begins at `line`."""
    for word, pattern in _WORDS.items():
        for match in pattern.finditer(text):
            yield Problem(word, path, line + text.count("\n", 0, match.start()))
    begin = 0
    for end in [*(match.start() for match in _SENTENCE.finditer(text)), len(text)]:
        sentence = text[begin:end]
        if len(re.findall(r"[^\W\d_][\w'-]*", sentence)) > LONGEST:
            start = begin + len(sentence) - len(sentence.lstrip())
            yield Problem(LONG, path, line + text.count("\n", 0, start))
        begin = end


def area_of(path: str) -> str:
    """`docs/guides`, `python/iolab/cli`, `web/src`, or `.` for pages of the root."""
    parts = path.split("/")
    depth = {"docs": 2, "python": 3, "web": 2}.get(parts[0], 0)
    return "/".join(parts[:depth][: len(parts) - 1]) or "."


def count_areas(problems: list[Problem]) -> dict[str, dict[str, int]]:
    """Area to its number of private words and of long sentences."""
    counts: dict[str, dict[str, int]] = {}
    for problem in problems:
        kinds = counts.setdefault(area_of(problem.path), {})
        kinds[_kind(problem)] = kinds.get(_kind(problem), 0) + 1
    return counts


def compare(
    limits: dict[str, dict[str, int]], counts: dict[str, dict[str, int]]
) -> list[tuple[str, str, int, int]]:
    """(area, kind, count, limit) of each count beyond its limit; an area without limits has 0."""
    return [
        (area, kind, number, limits.get(area, {}).get(kind, 0))
        for area, kinds in sorted(counts.items())
        for kind, number in sorted(kinds.items())
        if number > limits.get(area, {}).get(kind, 0)
    ]


def lower(
    limits: dict[str, dict[str, int]], counts: dict[str, dict[str, int]]
) -> dict[str, dict[str, int]]:
    """Limits that are the counts where these are lower; areas without a problem have none."""
    return {
        area: {
            kind: min(limit, counts[area][kind])
            for kind, limit in kinds.items()
            if counts[area].get(kind)
        }
        for area, kinds in limits.items()
        if area in counts
    }


def _kind(problem: Problem) -> str:
    return "long sentences" if problem.word == LONG else "private words"


if __name__ == "__main__":
    sys.exit(main())
