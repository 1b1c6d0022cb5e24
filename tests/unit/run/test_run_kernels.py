# SPDX-License-Identifier: Apache-2.0
"""Studies of kernels: each session begins with a restart into the kernel of its variant."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.errors import RunError, StudyError
from iolab.hosts.kinds.fake import FakeHost
from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.file.load import load_study
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.run.dry_run import preview
from iolab.studies.run.resuming.interrupts import Interrupts
from iolab.studies.run.resuming.sessions import session_events
from support.acting import Listener, study_text
from support.resuming import BOOT, Do

RELEASE = "/proc/sys/kernel/osrelease"
ONE_CELL = Changes(only={"numjobs": ("1",)})
VARIANTS = """
[variants.old]
target.kernel = "default"
[variants.new]
target.kernel = "backport"
"""


def kernel_study(variants: str = VARIANTS, order: str = "sessions", more: str = "") -> str:
    text = study_text(order=order)
    return text[: text.index("[variants.plain]")] + variants + more


SESSIONS = kernel_study(more="\n[session]\ncount = 2\n")


class Kernels:
    """Makes a fake host one that can be started with two kernels. `boots`: those that it was
    started with."""

    def __init__(self, host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host, self.boots, self.now = host, list[str](), "default"
        self.fail = False
        host.files |= {BOOT: "boot-0\n", RELEASE: "6.1-default\n"}
        monkeypatch.setattr(host, "kernel", lambda: self.now, raising=False)
        monkeypatch.setattr(host, "kernels", lambda: ("default", "backport"), raising=False)
        monkeypatch.setattr(host, "boot", self.boot, raising=False)

    def boot(self, kernel: str) -> None:
        if self.fail:
            raise RunError("the machine ended while it started", where="rig:small")
        self.boots.append(kernel)
        self.now = kernel
        self.host.files[BOOT] = f"boot-{len(self.boots)}\n"
        self.host.files[RELEASE] = f"6.1-{kernel}\n"


@pytest.fixture
def kernels(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    return Kernels(host, monkeypatch)


def variants(out: Path) -> list[str]:
    return [read_plan(run).variant for run in run_directories(out)]


def boots(out: Path) -> list[tuple[int, str | None]]:
    """Session and boot of each session that was measured."""
    events = session_events(read_journal(out)[0])
    return [(event.number, event.boot) for event in events if event.state == "begun"]


def test_each_session_has_a_boot_with_the_kernel_of_its_variant(
    do: Do, kernels: Kernels, heard: Listener, study: Path
) -> None:
    study.write_text(SESSIONS)
    out = do(changes=ONE_CELL)
    # The first session takes the boot that exists; its kernel runs already.
    assert kernels.boots == ["backport", "backport", "default"]
    assert variants(out) == ["old"] * 2 + ["new"] * 4 + ["old"] * 2
    assert boots(out) == [(1, "boot-0"), (2, "boot-1"), (3, "boot-2"), (4, "boot-3")]
    assert heard.end is not None
    assert (heard.end.finished, heard.end.remaining) == (8, 0)
    do(resume=True)
    assert kernels.boots == ["backport", "backport", "default"]


def test_a_study_continues_after_ctrl_c_and_after_a_failed_start(
    do: Do, kernels: Kernels, study: Path
) -> None:
    study.write_text(SESSIONS)
    stops = Interrupts()
    stops.press()
    do(changes=ONE_CELL, interrupts=stops)
    assert kernels.boots == []
    kernels.fail = True
    with pytest.raises(RunError, match="ended while it started"):
        do(resume=True)
    kernels.fail = False
    out = do(resume=True)
    assert variants(out) == ["old"] * 2 + ["new"] * 4 + ["old"] * 2
    assert kernels.boots == ["backport", "backport", "default"]


def test_one_kernel_is_booted_once(do: Do, kernels: Kernels, study: Path) -> None:
    study.write_text(
        kernel_study('[target]\nkernel = "backport"\n[variants.a]\n[variants.b]\n', "balanced")
    )
    out = do(changes=ONE_CELL)
    assert kernels.boots == ["backport"]
    assert sorted(variants(out)) == ["a", "a", "b", "b"]
    assert {read_plan(run).extra["kernel"] for run in run_directories(out)} == {"backport"}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (kernel_study(order="balanced"), "study.order"),
        (kernel_study("[variants.a]\ntarget.kernel = 'x'\n[variants.b]\n"), "target.kernel"),
        (kernel_study("[variants.a]\ntarget.kernel = '../x'\n"), "target.kernel"),
        (kernel_study("[variants.a]\ntarget.kernel = 6\n"), "target.kernel"),
        (kernel_study(more="\n[session]\nbegin = 'restart'\n"), "session.begin"),
    ],
)
def test_what_does_not_go_with_kernels_is_refused(study: Path, text: str, wrong: str) -> None:
    study.write_text(text)
    with pytest.raises(StudyError) as error:
        load_study(study)
    assert wrong in str(error.value)


def test_an_unknown_kernel_and_a_host_without_kernels_are_refused_before_anything_is_written(
    do: Do, host: FakeHost, study: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    study.write_text(SESSIONS)
    with pytest.raises(RunError, match="names a kernel"):
        do()
    plan = preview(load_study(study, host=host), tmp_path / "out", host)
    assert any("names a kernel" in problem for problem in plan.problems)
    request.getfixturevalue("kernels")
    study.write_text(SESSIONS.replace("backport", "other"))
    with pytest.raises(RunError, match="no kernel 'other'"):
        do()
    assert not (tmp_path / "out").exists()
