# SPDX-License-Identifier: Apache-2.0
"""The manual pages describe every command, option and example, without warnings of groff."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import click
import pytest

from iolab.cli.base.installation import find_shipped
from iolab.cli.examples import DOCUMENTS, EXAMPLES
from iolab.cli.main import COMMANDS, EXIT_CODES, group

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import dist
import manual

PAGES = manual.pages("2026-01-31")


def rendered(name: str, width: int = 400) -> str:
    """A page as plain text in one line; AssertionError on a warning."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", "-P-cbou", f"-rLL={width}n"],
        input=PAGES[name],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return re.sub(r"\s+", " ", done.stdout)


def options(command: click.Command) -> set[str]:
    """Names of the options of a command and its subcommands."""
    below = getattr(command, "commands", {}).values() if command is not group else ()
    own = {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in parameter.opts
    }
    return own.union(*(options(each) for each in below))


def test_each_command_has_a_page() -> None:
    assert set(PAGES) == {"iolab.1", *(f"iolab-{name}.1" for name in COMMANDS)}


def test_the_first_page_lists_commands_and_exit_codes() -> None:
    text = rendered("iolab.1")
    assert all(f"iolab-{name}(1)" in text for name in COMMANDS)
    assert all(f" {code} {meaning} " in text for code, meaning in EXIT_CODES.items())


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_fits_a_terminal(name: str) -> None:
    assert rendered(name, width=80)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_page_has_every_option_and_example(name: str) -> None:
    text = rendered(f"iolab-{name}.1")
    with click.Context(group) as context:
        command = group.get_command(context, name)
    assert command is not None
    sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "EXIT STATUS", "SEE ALSO"]
    places = [text.index(f" {section} ") for section in sections]
    assert places == sorted(places)
    assert [option for option in options(command) if option not in text] == []
    for path, examples in EXAMPLES.items():
        if path.split()[0] == name:
            assert [line for _, line in examples if line not in text] == []


def test_a_page_is_ascii_and_a_text_is_no_request() -> None:
    assert all(page.isascii() for page in PAGES.values())
    assert manual._escape(".so /etc/passwd\n-x '~'\\ µ") == (
        r"\&.so /etc/passwd" + "\n" + r"\-x \(aq\(ti\(aq\e \[u00B5]"
    )


@pytest.mark.parametrize("document", sorted(set(DOCUMENTS.values())))
def test_a_document_that_help_names_exists(document: str) -> None:
    path = find_shipped(Path(document))
    assert path is not None
    assert path.is_file()


def test_a_wheel_without_manual_pages_or_documents_is_refused(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/live.md").write_text("# Live")
    completion = tmp_path / "build/share/zsh/site-functions/_iolab"
    completion.parent.mkdir(parents=True)
    completion.write_text("")
    wheel = tmp_path / "iolab-1.0-py3-none-any.whl"
    parts = [
        "iolab-1.0.data/data/share/man/man1/iolab.1",
        "iolab-1.0.data/data/share/zsh/site-functions/_iolab",
        "iolab/shipped/docs/live.md",
    ]
    for count in range(len(parts) + 1):
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in parts[:count]:
                archive.writestr(name, "")
        assert dist.missing_parts(wheel, tmp_path) == parts[count:]
