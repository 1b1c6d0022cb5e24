# SPDX-License-Identifier: Apache-2.0
"""Hooks, set-up and tear-down, timed actions: how a study writes them, and what is said of wrong
ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.commands import Action, Command
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.plan.file.problems import StudyProblems
from support.golden import Golden

WORKLOAD = '[workload]\nkind = "fio"\nruntime = "2s"\n[workload.options]\nsize = "1m"\n'
COMMANDS = """
[variants.plain]
[variants.tuned]
setup = ["echo 1 > /proc/x", ["sysctl", "-w", "a b=1"]]
teardown = "echo 0 > /proc/x"
[hooks.study]
before = "uname -a"
[hooks.run]
before = [["true"]]
after = ["true", "false"]
[[actions]]
at = "1500ms"
command = ["fstrim", "/mnt/a b"]
[[actions]]
at = 1
mark = "half way"
"""


def shell(text: str) -> Command:
    return Command(("sh", "-c", text), text)


def read(tmp_path: Path, text: str, changes: Changes | None = None) -> Study:
    path = tmp_path / "s.toml"
    path.write_text(WORKLOAD + text, "utf-8")
    return load_study(path, changes)


def test_a_text_goes_to_the_shell_and_a_list_is_executed_as_it_stands(tmp_path: Path) -> None:
    study = read(tmp_path, COMMANDS)
    assert study.variant_hooks == {
        "tuned": (
            (shell("echo 1 > /proc/x"), Command(("sysctl", "-w", "a b=1"), "sysctl -w 'a b=1'")),
            (shell("echo 0 > /proc/x"),),
        )
    }
    assert study.hooks.before == {
        "study": (shell("uname -a"),),
        "run": (Command(("true",), "true"),),
    }
    assert study.hooks.after == {"run": (shell("true"), shell("false"))}


def test_actions_come_in_the_order_of_time_each_with_a_mark(tmp_path: Path) -> None:
    assert read(tmp_path, COMMANDS).actions == (
        Action(1.0, "half way"),
        Action(1.5, "fstrim '/mnt/a b'", Command(("fstrim", "/mnt/a b"), "fstrim '/mnt/a b'")),
    )


def test_every_command_is_listed_with_its_place(tmp_path: Path) -> None:
    assert list(read(tmp_path, COMMANDS).consent) == [
        ("hooks.study.before", "uname -a"),
        ("hooks.run.before", "true"),
        ("hooks.run.after", "true"),
        ("hooks.run.after", "false"),
        ("variants.tuned.setup", "echo 1 > /proc/x"),
        ("variants.tuned.setup", "sysctl -w 'a b=1'"),
        ("variants.tuned.teardown", "echo 0 > /proc/x"),
        ("actions, at 1.5 s", "fstrim '/mnt/a b'"),
    ]


def test_the_manifest_has_them(tmp_path: Path) -> None:
    resolved = read(tmp_path, COMMANDS).as_data()
    assert resolved["hooks"] == {
        "before": {"study": ["uname -a"], "run": ["true"]},
        "after": {"run": ["true", "false"]},
    }
    assert resolved["variants"]["tuned"]["teardown"] == ["echo 0 > /proc/x"]
    assert resolved["actions"][0] == {"at": 1.0, "mark": "half way", "command": None}


def test_the_arm_again_is_brought_about_as_the_baseline_is(tmp_path: Path) -> None:
    study = read(tmp_path, '[study]\nbaseline = "tuned"\n' + COMMANDS, Changes(again=True))
    assert study.variants == ("plain", "tuned", "tuned-again")
    assert study.variant_hooks["tuned-again"] == study.variant_hooks["tuned"]


@pytest.mark.parametrize(
    "text",
    [
        "[hooks.run]\nbefore = 3\n",
        "[hooks.run]\nbefore = ['', 'x']\n",
        "[hooks.run]\nbefore = [[]]\n",
        "[hooks.run]\nbefore = [['a', 1]]\n",
        '[hooks.run]\nbefore = "a\\u0000b"\n',
        "[hooks.run]\nbefor = 'x'\n",
        "[hooks.cell]\nbefore = 'x'\n",
        "[hooks]\nbefore = 'x'\n",
        "[variants.a]\nsetup = {a = 1}\n",
        "[[actions]]\nmark = 'x'\n",
        "[[actions]]\nat = 1\n",
        "[[actions]]\nat = 1\nmark = ' '\n",
        "[[actions]]\nat = 'soon'\nmark = 'x'\n",
        "[[actions]]\nat = 1\ncommand = []\n",
        "[[actions]]\nat = 1\nmark = 'x'\n[[actions]]\nat = '2s'\nmark = 'x'\n",
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, golden: Golden) -> None:
    with pytest.raises(StudyProblems) as caught:
        read(tmp_path, text)
    golden("study/commands-wrong", str(caught.value))
    assert all(each.line > 5 for each in caught.value.problems)
