# SPDX-License-Identifier: Apache-2.0
"""Runs that are made for profiles: after the measured ones, apart from them, and never in their
way."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from iolab.base.errors import RunError
from iolab.hosts.base.host import Completed
from iolab.hosts.kinds.fake import FakeHost, FakeProgram
from iolab.studies.plan.file.load import load_study
from iolab.studies.results.evidence.files import profile_directories, read_plan, run_directories
from iolab.studies.results.open.profiles import read_profiles
from iolab.studies.results.open.results import Results
from iolab.studies.run.dry_run import preview
from support.acting import Listener, study_text

Do = Callable[..., Path]

SCRIPT = """fio 1 10.000000: cpu-clock:
\tffffffff821ef691 vfs_read ([kernel.kallsyms])
\t           938c8 main (/usr/bin/fio)

swapper 0 10.500000: cpu-clock:
\tffffffff821ef691 default_idle ([kernel.kallsyms])

"""
REFUSED = "Error:\nAccess to performance monitoring and observability operations is limited.\nperf_event_paranoid setting is 2:\n"


def perf(
    *, refuses: str = "", prints: str = SCRIPT, fails: Callable[[Sequence[str]], int] | None = None
) -> FakeProgram:
    """A perf that samples for half a second and has two samples to tell."""

    def answer(command: Sequence[str]) -> Completed:
        if refuses and "record" in command:
            return Completed(tuple(command), 255, "", refuses)
        return Completed(
            tuple(command), 0, "perf version 6.1\n" if "--version" in command else "", ""
        )

    return FakeProgram(seconds=0.5, output=answer, prints=lambda passed: prints, fails=fails)


@pytest.fixture
def profiled(study: Path, host: FakeHost) -> FakeHost:
    study.write_text(
        study_text(extra="[profile]\ncells = [{numjobs = 4}]\nfrequency = 49\n"), "utf-8"
    )
    host.programs["perf"] = perf()
    return host


def perf_commands(host: FakeHost) -> list[tuple[str, ...]]:
    return [command for command, _ in host.started if command[0] == "perf"]


def test_profiles_are_made_after_the_measured_runs_and_lie_apart(
    do: Do, profiled: FakeHost, heard: Listener
) -> None:
    out = do()
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed, heard.end.remaining) == (10, 0, 0)
    assert [path.name[:4] for path in run_directories(out)] == [
        f"{number:04d}" for number in range(1, 9)
    ]
    made = list(profile_directories(out))
    assert [path.name[:4] for path in made] == ["0009", "0010"]
    plan = read_plan(made[0])
    assert (plan.extra["profile"], plan.factors, plan.block) == (True, {"numjobs": 4}, 3)
    assert len(Results(out).runs) == 8
    found, notes = read_profiles(out)
    assert not notes
    assert {one.variant for one in found} == {"plain", "synced"}
    one = found[0]
    assert one.stacks == {"fio;main;vfs_read_[k]": 1, "swapper;default_idle_[k]": 1}
    assert (one.samples, one.busy_samples, one.kernel_samples) == (2, 1, 1)
    assert (one.frequency, one.seconds, one.cpus, one.event, one.tool) == (
        49,
        0.5,
        2,
        "cpu-clock",
        "perf version 6.1",
    )


def test_perf_samples_the_whole_host_within_the_window_without_a_shell(
    do: Do, profiled: FakeHost
) -> None:
    out = do()
    scratch = f"{out.absolute()}/profile-data"
    record, script = perf_commands(profiled)[:2]
    assert record == (
        "perf",
        "record",
        "-F",
        "49",
        "-a",
        "-g",
        "-o",
        f"{scratch}/perf.data",
        "--",
        "sleep",
        "0.8",
    )
    assert script[:4] == ("perf", "script", "-i", f"{scratch}/perf.data")
    facts = json.loads((next(profile_directories(out)) / "profile.json").read_text())
    assert facts["commands"] == [list(record), list(script)]
    assert facts["after"] == pytest.approx(0.2)


def test_nothing_of_it_stays_on_the_host_nor_its_text_in_the_evidence(
    do: Do, profiled: FakeHost
) -> None:
    out = do()
    assert f"{out.absolute()}/profile-data" in profiled.removed
    assert not any("profile-data" in name for name in profiled.directories)
    assert not list(out.glob("*.made"))
    assert [path.name for path in sorted(out.glob("profiles/0009-*/hooks/*"))] == [
        "01.err",
        "01.out",
        "02.err",
    ]


def test_without_perf_the_measured_runs_are_all_made(
    do: Do, study: Path, profiled: FakeHost, heard: Listener
) -> None:
    del profiled.programs["perf"]
    out = do()
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed, heard.end.remaining) == (8, 0, 0)
    assert [
        note
        for note in heard.notes
        if note.startswith(
            "profiles are left out: perf is not installed on host 'fake': apt install"
        )
    ]
    assert not (out / "profiles").exists()
    assert read_profiles(out) == ([], [])
    profiled.programs["perf"] = perf()
    do(resume=True)
    assert len(read_profiles(out)[0]) == 2
    assert heard.end.finished == 10


def test_a_perf_that_may_not_sample_is_told_with_what_to_do(
    do: Do, study: Path, profiled: FakeHost, heard: Listener
) -> None:
    profiled.programs["perf"] = perf(refuses=REFUSED)
    profiled.files["/proc/sys/kernel/perf_event_paranoid"] = "2\n"
    told = (
        "perf may not sample all CPUs of host 'fake', where kernel.perf_event_paranoid is 2: measure there as root, or have root say "
        "sysctl kernel.perf_event_paranoid=-1 kernel.kptr_restrict=0"
    )
    plan = preview(load_study(study, host=profiled), Path("results/small"), profiled)
    assert (plan.no_profiles, len(plan.plan.runs), plan.problems) == (told, 8, ())
    do()
    assert [note for note in heard.notes if told in note]


def test_the_plan_shows_profiles(study: Path, profiled: FakeHost) -> None:
    from iolab.cli.study.plan_text import plan_lines

    plan = preview(load_study(study, host=profiled), Path("results/small"), profiled)
    lines = list(plan_lines(plan))
    assert lines[0].startswith("small: 8 runs in 2 blocks, 2 runs for profiles, about ")
    assert lines[lines.index("profiles:") + 1].split()[0] == "9"
    assert [run["profile"] for run in plan.as_data()["runs"]] == [False] * 8 + [True] * 2
    assert not profiled.started


def test_a_profile_without_samples_fails_alone_and_is_made_again(
    do: Do, profiled: FakeHost, heard: Listener
) -> None:
    profiled.programs["perf"] = perf(prints="")
    out = do()
    assert heard.end is not None
    assert (heard.end.finished, heard.end.failed) == (8, 2)
    found, notes = read_profiles(out)
    assert not found
    assert len(notes) == 2
    assert "no profile" in notes[0]
    assert len(Results(out).runs) == 8
    profiled.programs["perf"] = perf()
    do(resume=True)
    assert (heard.end.finished, heard.end.failed) == (10, 0)
    assert len(read_profiles(out)[0]) == 2
    assert len(list((out / "aside").iterdir())) == 2


def test_a_script_that_fails_is_named(do: Do, profiled: FakeHost, heard: Listener) -> None:
    profiled.programs["perf"] = perf(fails=lambda command: 3 if "script" in command else 0)
    do()
    assert [reason for _, status, reason in heard.runs if status == "failed"] == [
        "no profile: perf script: exit code 3"
    ] * 2


def test_results_say_that_profiles_are_missing(do: Do, profiled: FakeHost) -> None:
    import shutil

    out = do()
    shutil.rmtree(out / "profiles")
    standing = Results(out).standing
    assert standing is not None
    assert (standing.planned, len(standing.gone)) == (10, 2)


def test_a_host_where_perf_cannot_be_started_is_a_problem_in_words(
    study: Path, profiled: FakeHost
) -> None:
    def breaks(command: Sequence[str]) -> Completed:
        raise RunError("'perf' did not end within 30 s")

    profiled.programs["perf"] = FakeProgram(output=breaks)
    plan = preview(load_study(study, host=profiled), Path("results/small"), profiled)
    assert plan.no_profiles == "perf can't be used on host 'fake': 'perf' did not end within 30 s"
