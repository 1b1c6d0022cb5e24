# SPDX-License-Identifier: Apache-2.0
"""Help that can be followed: examples that the parsers accept, corrections of names, and the right
command for a file."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from iolab.cli.base.path_kind import find_kind
from iolab.cli.examples import EXAMPLES
from iolab.cli.main import COMMANDS, group, run
from support.fio_files import job, output
from support.golden import Golden
from support.service import recorded


def commands() -> Iterator[tuple[str, click.Command]]:
    with click.Context(group) as context:
        for name in COMMANDS:
            command = group.get_command(context, name)
            assert command is not None
            yield name, command
            for below, each in getattr(command, "commands", {}).items():
                yield f"{name} {below}", each


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda each: each if isinstance(each, str) else ""
)
def test_help_ends_with_examples(
    name: str, command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*name.split(), "--help"]) == 0
    said = capsys.readouterr().out
    for _, example in EXAMPLES[name]:
        assert f"    {example}\n" in said, "a line of its own, not joined with others"


@pytest.mark.parametrize("line", [line for examples in EXAMPLES.values() for _, line in examples])
def test_the_parser_accepts_an_example(line: str) -> None:
    _, name, *words = [each for each in shlex.split(line) if each != "sudo"]
    with click.Context(group) as context:
        command = group.get_command(context, name)
        assert command is not None
        made = command.make_context(name, list(words), parent=context)
        if isinstance(command, click.Group):
            below, words = words[0], words[1:]
            command.commands[below].make_context(below, list(words), parent=made)


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    found = capsys.readouterr()
    assert found.out.startswith("Usage: iolab")
    assert not found.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["reprot"], "'report'"),
        (["keep", "prun"], "'prune'"),
        (["query", "--intervl", "1s"], "'--interval'"),
    ],
)
def test_a_misspelt_name_is_corrected(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert f"Did you mean {meant}" in capsys.readouterr().err


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fio.json").write_text(output(job()))
    (tmp_path / "job.fio").write_text("[global]\nrw=read\n[a]\nsize=1m\n")
    shutil.copy(Path(__file__).parents[2] / "studies/quickstart.toml", tmp_path / "a study.toml")
    (tmp_path / "biosnoop.txt").write_text(
        "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n"
        "0.000000    fio            1234   sda     R 8          4096     0.25\n"
    )
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    recorded(tmp_path / "rec").close()
    assert run(["import", "fio.json", "-o", "results"]) == 0
    return tmp_path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("fio.json", "fio result"),
        ("job.fio", "fio job file"),
        ("a study.toml", "study"),
        ("biosnoop.txt", "trace"),
        ("rec", "recording"),
        ("results", "results"),
        ("notes.txt", None),
        ("absent", None),
        (".", None),
    ],
)
def test_what_a_path_is(path: str, kind: str | None, files: Path) -> None:
    assert find_kind(files / path) == kind


@pytest.mark.parametrize(
    "words",
    [
        ["run", "fio.json"],
        ["run", "job.fio"],
        ["run", "results"],
        ["show", "a study.toml"],
        ["heatmap", "results"],
        ["query", "fio.json", "io.ops"],
        ["report", "rec"],
        ["report", "biosnoop.txt"],
    ],
)
def test_a_file_of_another_kind_names_its_command(
    words: list[str], files: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    capsys.readouterr()
    assert run(words) in (2, 3, 4)
    found = capsys.readouterr()
    golden("cli/another-kind", f"$ iolab {' '.join(words)}\n{found.err}")
    assert not found.out


@pytest.mark.parametrize(
    "words",
    [
        ["query", "both", "io.ops", "--follow"],
        ["compare", "fio.json", "--published", "biosnoop.txt"],
    ],
)
def test_an_error_about_something_else_is_not_replaced(
    words: list[str], files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree("results", "both")
    for host in ("a", "b"):
        recorded(files / "both/recordings" / host).close()
    capsys.readouterr()
    assert run(words) != 0
    assert "does not take" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["show", "absent"], ["show", "notes.txt"], ["run", "notes.txt"]])
def test_an_unknown_file_keeps_its_own_error(
    words: list[str], files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(words) in (2, 3, 4)
    assert "does not take" not in capsys.readouterr().err
