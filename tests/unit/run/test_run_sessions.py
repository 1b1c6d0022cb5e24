# SPDX-License-Identifier: Apache-2.0
"""Studies over several boots. Each boot is another boot id of the fake host; nothing is restarted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from iolab.api import Opened
from iolab.base.clock import FakeClock
from iolab.base.errors import RunError, StudyError, UsageError
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.studies.compare.model import CONFOUNDED
from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.cells.plan import plan_runs
from iolab.studies.plan.file.load import load_study
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.journal import read_journal
from iolab.studies.run.resuming.interrupts import Interrupts
from iolab.studies.run.resuming.sessions import session_events
from iolab.studies.run.resuming.unit import ResumeUnit, resume_arguments
from support.acting import Listener, set_rates, study_text
from support.resuming import BOOT, Do, Killed, names, stop_after

BY_HAND = study_text(order="sessions", extra="\n[session]\ncount = 3\n")
RESTARTS = study_text(
    order="sessions",
    extra='\n[session]\ncount = 2\nbegin = "restart $IOLAB_VARIANT"\nreboot = true\n',
)
REMOUNTS = study_text(order="sessions", extra='\n[session]\ncount = 2\nbegin = "remount"\n')
KERNEL = "/proc/sys/kernel/osrelease"
ONE_CELL = Changes(only={"numjobs": ("1",)})
ORDER = ["plain", "synced", "synced", "plain", "synced", "plain"]


def boot(host: FakeHost, number: int, kernel: str = "6.1.0-fake") -> None:
    """Start the host again, on this kernel."""
    host.files[BOOT] = f"boot-{number}\n"
    host.files[KERNEL] = f"{kernel}\n"


def steps(out: Path) -> list[tuple[int, str, str | None]]:
    return [(step.number, step.state, step.boot) for step in session_events(read_journal(out)[0])]


def variants(out: Path) -> list[str]:
    return [read_plan(run).variant for run in run_directories(out)]


@pytest.fixture
def shell(host: FakeHost) -> FakeProgram:
    """What runs the study's commands."""
    host.programs["sh"] = FakeProgram(seconds=0.1)
    return host.programs["sh"]


def commands(host: FakeHost) -> list[str]:
    return [command[-1] for command, _ in host.started if command[0] == "sh"]


def test_sessions_are_planned_in_turn(study: Path) -> None:
    study.write_text(BY_HAND)
    plan = plan_runs(load_study(study), lambda cell: 1.0)
    sessions = {run.session: run.cell.variant for run in plan.runs}
    assert list(sessions.items()) == list(enumerate(ORDER, 1))
    assert len(plan.runs) == 6 * 2 * 2
    assert [run.number for run in plan.runs] == list(range(1, 25))
    blocks: dict[str, list[int]] = {"plain": [], "synced": []}
    for run in plan.runs:
        blocks[run.cell.variant].append(run.block)
    assert blocks["plain"] == blocks["synced"] == sorted([1, 2, 3, 4, 5, 6] * 2)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (study_text(extra="\n[session]\ncount = 3\n"), "is not used"),
        (study_text(order="sessions", extra="\n[session]\nreboot = true\n"), "no command"),
        (study_text(order="sessions", extra="\n[session]\ncount = 0\n"), "session.count"),
        (study_text(order="sessions", extra="\n[session]\nbegin = 3\n"), "session.begin"),
        (study_text(order="sessions", extra='\n[until]\nrules = "write.iops 5 %"\n'), "until"),
    ],
)
def test_what_does_not_go_with_sessions_is_refused(study: Path, text: str, wrong: str) -> None:
    study.write_text(text)
    with pytest.raises(StudyError) as refused:
        load_study(study)
    assert wrong in str(refused.value)


def test_a_session_for_each_boot_by_hand(
    do: Do, host: FakeHost, heard: Listener, study: Path
) -> None:
    study.write_text(BY_HAND)
    boot(host, 1)
    out = do(changes=ONE_CELL)
    assert variants(out) == ["plain"] * 2
    assert heard.end is not None
    assert heard.end.remaining == 10
    assert any("session 2 of 6 (synced) is next" in note for note in heard.notes)
    with pytest.raises(UsageError, match="nothing shows that session 2"):
        do(resume=True)
    for number in range(2, 7):
        boot(host, number)
        do(resume=True)
    assert variants(out) == [variant for variant in ORDER for _ in range(2)]
    assert steps(out) == [(number, "begun", f"boot-{number}") for number in range(1, 7)]
    assert heard.end.remaining == 0
    assert read_journal(out)[0][-1]["event"] == "closed"
    do(resume=True)
    assert heard.notes[-1] == "all 12 runs are there; nothing is left to do"


def test_a_variant_that_is_named_needs_no_restart(
    do: Do, host: FakeHost, heard: Listener, study: Path
) -> None:
    """`--variant plain`, then `--variant synced --resume`."""
    study.write_text(BY_HAND)
    boot(host, 1)
    out = do(changes=Changes(only={"numjobs": ("1",)}, variants=("plain",)))
    do(resume=True, changes=Changes(only={"numjobs": ("1",)}, variants=("synced",)))
    assert variants(out) == ["plain", "plain", "synced", "synced"]
    do(resume=True, changes=Changes(only={"numjobs": ("1",)}, variants=("plain",)))
    assert len(names(out)) == 4
    assert any("--variant leaves it out" in note for note in heard.notes)
    with pytest.raises(UsageError, match="no variant is called 'x'"):
        do(resume=True, changes=Changes(variants=("x",)))


def test_commands_restart_the_host_when_all_else_has_ended(
    do: Do, host: FakeHost, heard: Listener, study: Path, shell: FakeProgram
) -> None:
    study.write_text(RESTARTS + '\n[hooks.study]\nafter = "put back"\n')
    boot(host, 1)
    out = do(changes=ONE_CELL)
    assert names(out) == []
    assert commands(host)[-2:] == ["put back", "restart $IOLAB_VARIANT"]
    assert steps(out) == [(1, "begin", "boot-1")]
    for number in range(2, 6):
        boot(host, number)
        do(resume=True)
    assert variants(out) == ["plain"] * 2 + ["synced"] * 4 + ["plain"] * 2
    assert steps(out)[-2:] == [(4, "begin", "boot-4"), (4, "begun", "boot-5")]
    assert heard.end is not None
    assert heard.end.remaining == 0


def test_a_restart_that_did_not_happen_is_asked_for_again(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    study.write_text(RESTARTS)
    boot(host, 1)
    out = do(changes=ONE_CELL)
    do(resume=True)
    assert names(out) == []
    assert steps(out) == [(1, "begin", "boot-1")] * 2


def test_commands_that_do_not_restart_the_host_are_not_run_for_ever(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    study.write_text(RESTARTS)
    boot(host, 1)
    for _ in range(3):
        out = do(resume=True, changes=ONE_CELL)
    with pytest.raises(RunError, match=r"session 1 \(plain\) ran 3 times, and it did not begin"):
        do(resume=True)
    assert len(commands(host)) == 3
    do(resume=True, force=True)
    assert len(commands(host)) == 4
    assert names(out) == []


def test_without_a_boot_id_nothing_is_restarted(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    study.write_text(RESTARTS)
    assert BOOT not in host.files
    with pytest.raises(RunError, match="boot id can't be read"):
        do(changes=ONE_CELL)
    assert commands(host) == []


@pytest.mark.parametrize("text", [RESTARTS, REMOUNTS])
def test_nothing_is_measured_where_a_command_fails(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram, tmp_path: Path, text: str
) -> None:
    study.write_text(text)
    boot(host, 1)
    shell.exit_code = 3
    with pytest.raises(RunError, match=r"begin of session 1 \(plain\): .*exit code 3"):
        do(changes=ONE_CELL)
    assert names(tmp_path / "out") == []
    shell.exit_code = 0
    boot(host, 2)
    out = do(resume=True)
    assert variants(out)[:2] == ["plain"] * 2


def test_commands_without_a_restart_begin_session_after_session(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    study.write_text(REMOUNTS)
    boot(host, 1)
    out = do(changes=ONE_CELL)
    assert variants(out) == ["plain"] * 2 + ["synced"] * 4 + ["plain"] * 2
    assert commands(host).count("remount") == 4


def test_no_restart_follows_ctrl_c(do: Do, host: FakeHost, study: Path, shell: FakeProgram) -> None:
    study.write_text(RESTARTS)
    boot(host, 1)
    stops = Interrupts()
    stops.press()
    do(changes=ONE_CELL, interrupts=stops)
    assert commands(host) == []


def test_a_session_that_is_killed_goes_on_in_the_same_boot(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    study.write_text(RESTARTS)
    boot(host, 1)
    do(changes=ONE_CELL)
    boot(host, 2)
    fio = host.programs["fio"]
    work = fio.work

    def killed(command: Sequence[str], directory: Path) -> None:
        raise Killed

    fio.work = killed
    with pytest.raises(Killed):
        do(resume=True)
    fio.work = work
    before = len(commands(host))
    out = do(resume=True)
    assert variants(out) == ["plain"] * 2
    assert len(commands(host)) == before + 1  # the restart for session 2
    assert steps(out) == [(1, "begin", "boot-1"), (1, "begun", "boot-2"), (2, "begin", "boot-2")]


def test_a_host_that_crashes_in_a_session_is_not_restarted_for_ever(
    do: Do, host: FakeHost, study: Path, shell: FakeProgram
) -> None:
    study.write_text(RESTARTS)
    number = 1
    boot(host, number)
    do(changes=ONE_CELL)

    def crash(command: Sequence[str], directory: Path) -> None:
        raise Killed

    host.programs["fio"].work = crash
    for _ in range(3):
        number += 1
        boot(host, number)
        with pytest.raises(Killed):
            do(resume=True)
        number += 1
        boot(host, number)
        if number < 7:
            do(resume=True)  # the session begins again, by a restart
    with pytest.raises(RunError, match=r"session 1 \(plain\) has begun 3 times"):
        do(resume=True)


def test_failed_runs_of_a_session_that_is_over_are_not_repeated(
    do: Do, host: FakeHost, heard: Listener, study: Path
) -> None:
    study.write_text(BY_HAND)
    fio = host.programs["fio"]
    boot(host, 1)
    fio.fails = lambda command: int(len(host.started) == 2)
    out = do(changes=ONE_CELL)
    fio.fails = None
    failed = [
        read_plan(run).run for run in run_directories(out) if read_plan(run).status == "failed"
    ]
    assert len(failed) == 1
    for number in range(2, 7):
        boot(host, number)
        do(resume=True)
    assert read_plan(out / "runs" / failed[0]).status == "failed"
    assert variants(out) == [variant for variant in ORDER for _ in range(2)]
    assert heard.end is not None
    assert heard.end.remaining == 0


def test_a_session_that_a_restart_cut_off_is_not_skipped(
    do: Do, host: FakeHost, study: Path
) -> None:
    """By hand: its runs that were never attempted are measured once its variant is named."""
    study.write_text(BY_HAND)
    boot(host, 1)
    out = do(changes=ONE_CELL, interrupts=stop_after(1, host))
    assert variants(out) == ["plain"]
    boot(host, 2)
    with pytest.raises(UsageError, match=r"session 1 \(plain\) can be measured now"):
        do(resume=True)
    only = {"numjobs": ("1",)}
    do(resume=True, changes=Changes(only=only, variants=("plain",)))
    assert variants(out) == ["plain", "plain"]


def test_a_named_variant_ends_a_session_with_a_failed_run(
    do: Do, host: FakeHost, study: Path
) -> None:
    study.write_text(BY_HAND)
    fio = host.programs["fio"]
    boot(host, 1)
    fio.fails = lambda command: int(len(host.started) == 2)
    out = do(changes=ONE_CELL)
    fio.fails = None
    do(resume=True, changes=Changes(only={"numjobs": ("1",)}, variants=("synced",)))
    assert variants(out) == ["plain", "plain", "synced", "synced"]
    assert sum(read_plan(run).status == "failed" for run in run_directories(out)) == 1


def test_a_variant_is_measured_on_what_it_was_measured_on_before(
    do: Do, host: FakeHost, study: Path
) -> None:
    """The variants differ by their kernel; a third kernel is refused."""
    study.write_text(BY_HAND)
    for number, kernel in enumerate(("6.1", "6.2", "6.2", "6.1"), 1):
        boot(host, number, kernel)
        out = do(resume=True, changes=ONE_CELL)
    boot(host, 5, "6.3")
    with pytest.raises(UsageError, match=r"session 5: .*kernel: 6\.2 became 6\.3"):
        do(resume=True)
    assert len(names(out)) == 8
    do(resume=True, force=True)
    assert len(names(out)) == 10
    reasons = [reason.code for run in Opened(out).runs[:8] for reason in run.verdict.reasons]
    assert "environment-drift" not in reasons
    assert any(run.verdict.has("environment-drift") for run in Opened(out).runs[8:])


def test_sessions_are_the_unit_of_the_comparison(do: Do, host: FakeHost, study: Path) -> None:
    study.write_text(BY_HAND)
    set_rates(host, lambda text, number: (700 if "dsync" in text else 1000) + number)
    for number in (1, 2):
        boot(host, number)
        out = do(resume=True, changes=ONE_CELL)
    [change] = [cell.change for cell in Opened(out).compare("write.iops").cells if cell.change]
    assert change.reason == CONFOUNDED
    for number in (3, 4, 5, 6):
        boot(host, number)
        do(resume=True)
    [change] = [cell.change for cell in Opened(out).compare("write.iops").cells if cell.change]
    assert (change.sessions, change.reason) == ((3, 3), None)


# The unit that resumes


class Systemd:
    """A host with systemd and a systemctl that notes its arguments."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[list[str]] = []

        def answer(words: Sequence[str]) -> Completed:
            self.calls.append(list(words))
            code = int(bool(fails) and fails in words)
            return Completed(tuple(words), code, "", "Access denied\n" if code else "")

        self.host = FakeHost(
            FakeClock(),
            programs={"systemctl": FakeProgram(output=answer)},
            files={"/run/systemd/system/x": ""},
        )


def test_a_unit_is_written_enabled_and_removed(tmp_path: Path) -> None:
    systemd = Systemd()
    unit = ResumeUnit(systemd.host, tmp_path / "out", units=tmp_path / "units", is_root=True)
    words = resume_arguments(Path("s t.toml"), tmp_path / "o%t", destructive=False)
    unit.install(words, tmp_path, ["/mnt/$lab", "scratch", "/mnt/$lab"])
    text = unit.path.read_text()
    paths = (tmp_path / "out", tmp_path, "/mnt/$lab", tmp_path / "scratch")
    quoted = " ".join(f'"{path}"' for path in paths)
    assert f"RequiresMountsFor={quoted}\n" in text
    assert '"run" "' in text
    assert 's t.toml" "-o"' in text
    assert "o%%t" in text
    assert '"--resume"' in text
    assert "--destructive" not in text
    assert "WantedBy=multi-user.target" in text
    assert systemd.calls == [["systemctl", "daemon-reload"], ["systemctl", "enable", unit.name]]
    assert unit.remove()
    assert not unit.path.exists()
    assert systemd.calls[2:] == [
        ["systemctl", "disable", unit.name],
        ["systemctl", "daemon-reload"],
    ]
    assert not unit.remove()


def test_the_unit_of_a_user_is_in_the_users_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    systemd = Systemd()
    unit = ResumeUnit(systemd.host, tmp_path / "out", is_root=False)
    unit.install(["run"], tmp_path)
    assert unit.path.parent == tmp_path / "config/systemd/user"
    assert systemd.calls[1] == ["systemctl", "--user", "enable", unit.name]
    assert "WantedBy=default.target" in unit.path.read_text()


def test_without_systemd_one_line_says_so(tmp_path: Path, host: FakeHost) -> None:
    unit = ResumeUnit(host, tmp_path / "out", units=tmp_path / "units", is_root=True)
    with pytest.raises(RunError, match="no systemd") as refused:
        unit.install(["run"], tmp_path)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "units").exists()


@pytest.mark.parametrize("fails", ["daemon-reload", "enable"])
def test_a_unit_that_cannot_be_enabled_is_not_left(tmp_path: Path, fails: str) -> None:
    unit = ResumeUnit(Systemd(fails).host, tmp_path / "out", units=tmp_path / "u", is_root=True)
    with pytest.raises(RunError, match="Access denied"):
        unit.install(["run"], tmp_path)
    assert not unit.path.exists()


@pytest.mark.parametrize("content", [b"", b"[Unit]\n", b"\xff\xfe", b"# written by iolab\n"])
def test_the_file_of_another_program_is_neither_replaced_nor_removed(
    tmp_path: Path, content: bytes
) -> None:
    unit = ResumeUnit(Systemd().host, tmp_path / "out", units=tmp_path, is_root=True)
    unit.path.write_bytes(content)
    with pytest.raises(RunError, match="not a unit of this study"):
        unit.install(["run"], tmp_path)
    assert not unit.remove()
    assert unit.path.read_bytes() == content


def test_units_of_different_results_are_apart(tmp_path: Path) -> None:
    host = Systemd().host
    assert ResumeUnit(host, tmp_path / "a").name != ResumeUnit(host, tmp_path / "b").name


def test_a_word_that_a_unit_cannot_have_is_refused(tmp_path: Path) -> None:
    unit = ResumeUnit(Systemd().host, tmp_path / "out", units=tmp_path / "u", is_root=True)
    with pytest.raises(RunError, match="cannot have"):
        unit.install(["run", "a\nExecStartPre=/bin/false"], tmp_path)
    assert not unit.path.exists()


def test_a_directory_cannot_add_lines_to_the_unit(tmp_path: Path) -> None:
    results = tmp_path / "out\nExecStartPre=x"
    unit = ResumeUnit(Systemd().host, results, units=tmp_path / "u", is_root=True)
    with pytest.raises(RunError, match="has a character that a unit cannot have"):
        unit.install(["run"], tmp_path)
    assert not unit.path.exists()
