# SPDX-License-Identifier: Apache-2.0
"""Write the manual pages of iolab, from the commands themselves, into build/man (`make man`).

One page for iolab and one for each command; a command with subcommands describes them in its page.
Texts are those of `--help`.

    manual.py [DIRECTORY]
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from iolab import __version__
from iolab.cli.examples import DOCUMENTS, EXAMPLES
from iolab.cli.main import COMMANDS, EXIT_CODES, HEADINGS, group

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {
    "IOLAB_PROBE": "The probe to start, instead of the one that is installed.",
    "NO_COLOR": "No colour on the terminal.",
}
"""Environment variables that every command reads."""


def main() -> int:
    """Exit code."""
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/man"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    for name, text in pages(_day()).items():
        (output / name).write_text(text, "ascii")
    return 0


def pages(day: str) -> dict[str, str]:
    """Name of a file to its page in man(7); `day` is printed at its foot."""
    context = click.Context(group, info_name="iolab", **group.context_settings)
    written = {"iolab.1": "".join(_overview(context, day))}
    for name, (_, _, about) in COMMANDS.items():
        command = group.get_command(context, name)
        assert command is not None
        written[f"iolab-{name}.1"] = "".join(_command(context, name, command, about, day))
    return written


def _overview(context: click.Context, day: str) -> Iterator[str]:
    yield _head("iolab", "storage performance laboratory", day)
    yield _section("SYNOPSIS") + _paragraph(
        r"\fBiolab\fR [\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]..."
    )
    yield _section("DESCRIPTION") + _prose(group.help or "")
    for place, title in HEADINGS.items():
        yield _section(f"COMMANDS: {title.upper()}")
        for name, (_, heading, about) in COMMANDS.items():
            if heading == place:
                yield _item(rf"\fBiolab\-{_escape(name)}\fR(1)", _escape(about))
    yield _section("OPTIONS") + _options(group, context)
    yield _section("EXIT STATUS")
    yield from (_item(rf"\fB{code}\fR", _escape(meaning)) for code, meaning in EXIT_CODES.items())
    yield _section("ENVIRONMENT")
    yield from (_item(rf"\fB{name}\fR", _escape(text)) for name, text in ENVIRONMENT.items())
    yield _section("DOCUMENTATION")
    yield _prose("iolab catalog documents lists the guides and references that are installed.")
    yield _section("SEE ALSO")
    yield _paragraph(", ".join(rf"\fBiolab\-{_escape(name)}\fR(1)" for name in COMMANDS))


def _command(
    parent: click.Context, name: str, command: click.Command, about: str, day: str
) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    below = getattr(command, "commands", {})
    yield _head(f"iolab-{name}", about.rstrip(".")[:1].lower() + about.rstrip(".")[1:], day)
    yield _section("SYNOPSIS")
    if below:
        yield from (_synopsis(each, _below(context, each, word)) for word, each in below.items())
    else:
        yield _synopsis(command, context)
    yield _section("DESCRIPTION") + _prose(command.help or "")
    if below:
        yield _section("COMMANDS")
        for word, each in below.items():
            yield f'.SS "{_escape(word)}"\n' + _prose(each.help or "")
            yield _options(each, _below(context, each, word))
    else:
        yield _section("OPTIONS") + _options(command, context)
    yield _section("EXAMPLES")
    for path in (name, *(f"{name} {word}" for word in below)):
        for purpose, line in EXAMPLES.get(path, ()):
            yield _paragraph(_escape(f"{purpose[:1].upper()}{purpose[1:]}:")) if purpose else ""
            yield f".nf\n.RS 4\n{_escape(line)}\n.RE\n.fi\n"
    yield _section("EXIT STATUS")
    yield _prose("0 where it succeeded. All codes are in iolab(1).")
    yield _section("SEE ALSO")
    yield _paragraph(r"\fBiolab\fR(1)")
    if name in DOCUMENTS:
        yield _prose(f"{DOCUMENTS[name]}, as listed by iolab catalog documents.")


def _below(context: click.Context, command: click.Command, word: str) -> click.Context:
    return click.Context(command, info_name=word, parent=context)


def _head(name: str, about: str, day: str) -> str:
    title = _escape(name.upper())
    return (
        f'.TH "{title}" "1" "{day}" "iolab {__version__}" "User Commands"\n.nh\n.ad l\n'
        + _section("NAME")
        + f"{_escape(name)} \\- {_escape(about)}\n"
    )


def _synopsis(command: click.Command, context: click.Context) -> str:
    words = [_flowing(word) for word in command.collect_usage_pieces(context)]
    return _paragraph(rf"\fB{_escape(context.command_path)}\fR {' '.join(words)}")


def _options(command: click.Command, context: click.Context) -> str:
    records = [each.get_help_record(context) for each in command.get_params(context)]
    return "".join(
        _item(rf"\fB{_flowing(names)}\fR", _flowing(text))
        for names, text in filter(None, records)
        if text
    )


def _flowing(text: str) -> str:
    """Plain text in roff, with places for a line break in words of 40 characters and more."""
    return re.sub(r"\S{40,}", lambda word: re.sub(r"[|/]", r"\g<0>\\:", word[0]), _escape(text))


def _prose(text: str) -> str:
    """Paragraphs; of one that begins with a line of \\b the lines stay, as on a terminal."""
    parts = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "".join(
        f".PP\n.nf\n{_escape(part[1:].strip(chr(10)))}\n.fi\n"
        if part.startswith("\b")
        else _paragraph(_escape(" ".join(part.split())))
        for part in parts
    )


def _section(title: str) -> str:
    return f'.SH "{title}"\n'


def _paragraph(text: str) -> str:
    return f".PP\n{text}\n"


def _item(name: str, text: str) -> str:
    return f".TP\n{name}\n{text}\n"


def _escape(text: str) -> str:
    """Plain text in roff: nothing of it is a request, and what is copied from a page is ASCII."""
    for character, name in (("\\", "\\e"), ("-", "\\-"), ("^", "\\(ha"), ("~", "\\(ti")):
        text = text.replace(character, name)
    text = text.replace("'", "\\(aq").replace("`", "\\(ga").replace('"', "\\(dq")
    text = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", text)
    return re.sub(r"(?m)^\.", r"\\&.", text)


def _day() -> str:
    """The day of the commit, so that two builds of it are equal."""
    moment = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not moment:
        done = subprocess.run(
            ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True
        )
        moment = done.stdout.strip() or "0"
    return time.strftime("%Y-%m-%d", time.gmtime(int(moment)))


if __name__ == "__main__":
    sys.exit(main())
