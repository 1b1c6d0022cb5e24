# SPDX-License-Identifier: Apache-2.0
"""Builds of programs: what is compiled and when, what runs, what is recorded, and every failure.

The program is a small C program in a git tree, compiled by the machine's own cc.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from iolab.base.errors import RunError, StudyError, UsageError
from iolab.base.verdict import Level
from iolab.cli.main import run as run_iolab
from iolab.hosts.facts.program_identity import program_identity
from iolab.hosts.kinds.fake import FakeHost
from iolab.hosts.rigs.source_tree import tree_digest
from iolab.hosts.ssh.host import SshHost
from iolab.studies.compare.compare import compare
from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.file.load import load_study
from iolab.studies.results.evidence.files import read_plan, run_directories
from iolab.studies.results.evidence.model import RunPlan
from iolab.studies.results.open.results import Results
from iolab.studies.run.builds import build_places as module
from iolab.studies.run.builds.build_places import ProgramWatch
from iolab.studies.run.dry_run import preview
from iolab.studies.run.resuming.interrupts import Interrupts
from iolab.studies.run.study import How, run_study
from support.acting import Listener, split_how
from support.sshd import sshd
from support.waiting import until

SOURCE = """#include <stdio.h>
#include <unistd.h>
#define PAUSE 5000
int main(int arguments, char **words) {
  if (arguments > 1) { puts("tool 1.0"); return 0; }
  FILE *file = fopen("data", "w");
  for (int number = 0; number < 100; number++) fputs("some text", file);
  fclose(file);
  usleep(PAUSE);
  return 0;
}
"""
PATCH = """--- a/tool.c
+++ b/tool.c
@@ -3,1 +3,1 @@
-#define PAUSE 5000
+#define PAUSE 30000
"""
COMPILE = 'commands = [["cc", "-o", "{prefix}/bin/tool", "tool.c"]]\n'
BUILDS = {
    "old": f'sources = "tree@v1"\n{COMPILE}version = ["tool", "--version"]\n',
    "new": f'sources = "tree@v2"\n{COMPILE}',
}
VARIANTS = '[variants.old]\nbuild = "old"\n[variants.new]\nbuild = "new"\n'


def text_of(
    builds: Mapping[str, str] = BUILDS, rest: str = VARIANTS, command: str = '["tool"]'
) -> str:
    tables = "".join(f"[builds.{name}]\n{table}" for name, table in builds.items())
    head = "[study]\nrepetitions = 4\n[sources]\ndiskstats = {}\n"
    return f'{head}{tables}[workload]\nkind = "program"\ncommand = {command}\n{rest}'


def git(tree: Path, *words: str) -> None:
    user = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *user, *words], cwd=tree, check=True, capture_output=True)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git tree of two revisions, a tarball, patches; and a cache that all tests share."""
    place = tmp_path_factory.mktemp("sources")
    tree = place / "tree"
    tree.mkdir()
    (tree / "tool.c").write_text(SOURCE)
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    git(tree, "tag", "v1")
    (tree / "tool.c").write_text(SOURCE.replace("PAUSE 5000", "PAUSE 30000"))
    git(tree, "commit", "-qam", "two")
    git(tree, "tag", "v2")
    (place / "plain").mkdir()
    (place / "plain/tool.c").write_text(SOURCE)
    with tarfile.open(place / "tool.tar.gz", "w:gz") as archive:
        archive.add(place / "plain", "tool-1.0")
    (place / "slow.patch").write_text(PATCH)
    (place / "stale.patch").write_text(PATCH.replace("PAUSE 5000", "PAUSE 7"))
    (place / "outside.patch").write_text(PATCH.replace("tool.c", "../../tool.c"))
    return place


@pytest.fixture
def shared_cache(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(sources / "cache"))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/iolab/builds"


Do = Callable[..., list[RunPlan]]


@pytest.fixture
def do(sources: Path, tmp_path: Path) -> Do:
    """Run a study, given as text, next to the sources; its runs."""

    def run(text: str, out: str = "out", **changes: Any) -> list[RunPlan]:
        path = sources / "study.toml"
        path.write_text(text)
        how = split_how(changes := {"trusted": True, **changes})
        output = run_study(path, tmp_path / out, how, **changes)
        return [read_plan(place) for place in run_directories(output)]

    return run


def build_of(plan: RunPlan) -> dict[str, Any]:
    build: dict[str, Any] = plan.extra["build"]
    return build


@pytest.mark.usefixtures("shared_cache")
def test_two_revisions_are_compared(do: Do, sources: Path, tmp_path: Path) -> None:
    listener = Listener()
    plans = do(text_of(), listener=listener)
    assert [plan.status for plan in plans] == ["finished"] * 8
    for plan in plans:
        build = build_of(plan)
        assert build["asked"] == plan.variant
        program = build["programs"]["tool"]
        prefix = sources / "cache/iolab/builds"
        assert Path(program["path"]).is_relative_to(prefix)
        assert program["path"].endswith("/prefix/bin/tool")
        assert build["expected"]["tool"] == program_identity(program["path"])
        assert len(build["record"]["revision"]) == 40
        assert build["record"]["version"] == ("tool 1.0" if plan.variant == "old" else "")
    results = Results(tmp_path / "out")
    assert {run.verdict.level for run in results.runs} == {Level.OK}
    changes = [cell.change for cell in compare(results.runs, "time").cells if cell.change]
    assert [change.improves for change in changes] == [False]
    made = [text for text in listener.notes if "compiled" in text]
    assert len(made) == 2

    again = Listener()
    do_again = run_study(
        sources / "study.toml", tmp_path / "again", listener=again, how=How(trusted=True)
    )
    assert do_again.is_dir()
    assert not [text for text in again.notes if "compil" in text]


@pytest.mark.usefixtures("shared_cache")
def test_the_factor_build_selects_the_build(do: Do) -> None:
    hooks = '[hooks.run]\nbefore = "tool --version > $IOLAB_RUN_DIR/hook.txt; echo $IOLAB_BUILD >> $IOLAB_RUN_DIR/hook.txt"\n'
    factors = '[factors]\nbuild = ["old", "new"]\n'
    plans = do(text_of(rest=factors + hooks), changes=Changes(repetitions=1))
    assert sorted(build_of(plan)["asked"] for plan in plans) == ["new", "old"]
    assert sorted(plan.factors["build"] for plan in plans) == ["new", "old"]


@pytest.mark.usefixtures("shared_cache")
def test_hooks_have_the_build_in_their_path(do: Do, tmp_path: Path) -> None:
    setup = 'setup = "command -v tool > $0.path; echo $IOLAB_BUILD"\n'.replace(
        "$0", str(tmp_path / "$IOLAB_BUILD")
    )
    do(text_of(rest=VARIANTS.replace('"old"\n', f'"old"\n{setup}')), changes=Changes(repetitions=1))
    assert (tmp_path / "old.path").read_text().strip().endswith("/prefix/bin/tool")


@pytest.mark.usefixtures("shared_cache")
@pytest.mark.parametrize(
    "words",
    [
        "tree@v1+slow.patch",
        "plain+slow.patch",
        "tool.tar.gz+slow.patch",
        "tree@v2",
    ],
)
def test_equal_content_is_one_build(do: Do, words: str) -> None:
    builds = {"new": f'sources = "{words}"\n{COMPILE}', "old": BUILDS["old"]}
    plans = do(text_of(builds), changes=Changes(repetitions=1, variants=("new",)))
    record = build_of(plans[0])["record"]
    content = hashlib.sha256(SOURCE.replace("PAUSE 5000", "PAUSE 30000").encode()).hexdigest()
    assert record["digest"] == tree_digest({"tool.c": content[:32]})
    assert list(record["patches"]) == (["slow.patch"] if "+" in words else [])


@pytest.mark.usefixtures("shared_cache")
def test_builds_are_given_on_the_command_line(do: Do, sources: Path) -> None:
    words = (f"base={sources}/tree@v1", f"patched={sources}/tree@v1+{sources}/slow.patch")
    builds = {"any": BUILDS["old"]}
    plans = do(text_of(builds, ""), changes=Changes(builds=words, repetitions=1))
    assert {plan.variant for plan in plans} == {"base", "patched"}
    assert len({str(build_of(plan)["programs"]) for plan in plans}) == 2
    with pytest.raises(UsageError, match="the study has no build 'other'"):
        do(text_of(builds, ""), changes=Changes(builds=("other",)))


def reasons(directory: Path) -> dict[str, set[str]]:
    """Variant to codes of reasons of its runs."""
    codes: dict[str, set[str]] = {}
    for run in Results(directory).runs:
        codes.setdefault(run.plan.variant, set()).update(
            reason.code
            for reason in run.verdict.reasons
            if reason.code.endswith(("build", "sources"))
        )
    return codes


@pytest.mark.usefixtures("shared_cache")
def test_a_variant_that_ran_another_program_is_invalid(do: Do, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong/tool"
    wrong.parent.mkdir()
    wrong.write_text("#!/bin/sh\nsleep 0.05\n")
    wrong.chmod(0o755)
    rest = VARIANTS.replace('"new"\n', f'"new"\nworkload.command = ["{wrong}"]\n')
    do(text_of(rest=rest), changes=Changes(repetitions=1))
    assert reasons(tmp_path / "out") == {"old": set(), "new": {"wrong-build"}}
    run = next(run for run in Results(tmp_path / "out").runs if run.plan.variant == "new")
    assert run.verdict.level == Level.INVALID
    text = next(reason.text for reason in run.verdict.reasons if reason.code == "wrong-build")
    assert str(wrong) in text
    assert "\n" not in text


@pytest.mark.usefixtures("shared_cache")
def test_variants_of_equal_builds_are_invalid_unless_their_sources_are_equal(
    do: Do, tmp_path: Path
) -> None:
    comment = {**BUILDS, "new": 'sources = "tree@v1"\n' + COMPILE.replace('"-o"', '"-DX", "-o"')}
    do(text_of(comment), changes=Changes(repetitions=1))
    assert reasons(tmp_path / "out") == {"old": {"same-sources"}, "new": {"same-sources"}}


def test_a_program_without_build_id_and_a_script_have_digests(
    do: Do, tmp_path: Path, own_cache: Path
) -> None:
    script = "commands = [\"printf '#!/bin/sh\\nsleep 0.05\\n' > $PREFIX/bin/tool; chmod +x $PREFIX/bin/tool\"]\n"
    bare = COMPILE.replace('"-o"', '"-Wl,--build-id=none", "-o"')
    builds = {"old": f'sources = "tree@v1"\n{bare}', "new": f'sources = "tree@v1"\n{script}'}
    plans = do(text_of(builds), changes=Changes(repetitions=1))
    for plan in plans:
        build = build_of(plan)
        # "seen" is added where the program ended before it was looked at, on a loaded machine
        assert set(build["programs"]["tool"]) - {"seen"} == {"path", "sha256"}
        assert build["programs"]["tool"]["sha256"] == build["expected"]["tool"]["sha256"]
    assert reasons(tmp_path / "out") == {"old": set(), "new": set()}


def test_a_program_that_ended_at_once_is_that_of_its_path(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_text("text")
    with subprocess.Popen(["true"]) as process:
        process.wait()
        watch = ProgramWatch("tool", str(path))
        watch.look(process.pid)
    program = watch.programs()["tool"]
    assert program == {"path": str(path), **program_identity(path), "seen": "before the start"}
    assert ProgramWatch("other", str(path)).programs() == {}


def test_a_program_that_is_started_by_a_shell_is_identified() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & wait"], process_group=0, stdout=subprocess.DEVNULL
    ) as process:
        watch = ProgramWatch("sleep")

        def look() -> bool:
            watch.look(process.pid)
            return bool(watch._files)

        until(look, "sleep")
        os.killpg(process.pid, signal.SIGKILL)
    path = shutil.which("sleep")
    assert path is not None
    identity = program_identity(path)
    assert watch.programs() == {"sleep": {"path": str(Path(path).resolve()), **identity}}


FAILURES = {
    "a patch that does not apply": (
        f'sources = "tree@v1+stale.patch"\n{COMPILE}',
        RunError,
        r"build old: .*stale\.patch: does not apply to tool\.c: Hunk #1 FAILED",
    ),
    "a patch that leaves the tree": (
        f'sources = "tree@v1+outside.patch"\n{COMPILE}',
        RunError,
        r"build old: .*outside\.patch: does not apply",
    ),
    "a patch that does not exist": (
        f'sources = "tree@v1+none.patch"\n{COMPILE}',
        UsageError,
        r"none\.patch: is not a file",
    ),
    "a tree that does not compile": (
        'sources = "tree@v1"\ncommands = [["cc", "-DPAUSE=)", "-include", "none.h", "tool.c"]]\n',
        RunError,
        r"build old: 'cc .*' failed with exit code 1: .*none\.h: No such file",
    ),
    "a full disk": (
        'sources = "tree@v1"\ncommands = ["cat tool.c > /dev/full"]\n',
        RunError,
        r"the disk is full",
    ),
    "a tool that is missing": (
        'sources = "tree@v1"\ncommands = [["no-such-compiler"]]\n',
        RunError,
        r"build old: needs 'no-such-compiler', which is not installed",
    ),
    "sources that do not exist": (
        f'sources = "nowhere"\n{COMPILE}',
        UsageError,
        r"nowhere: is neither a directory nor a tarball",
    ),
    "a revision that does not exist": (
        f'sources = "tree@--output=x"\n{COMPILE}',
        UsageError,
        r"has no revision '--output=x'",
    ),
    "a file that is no tarball": (
        f'sources = "slow.patch.txt"\n{COMPILE}',
        RunError,
        r"build old: .*slow\.patch\.txt: can't be unpacked",
    ),
    "nothing installed": (
        'sources = "tree@v1"\ncommands = [["true"]]\n',
        RunError,
        r"build old: installed no program into its bin",
    ),
    "another program installed": (
        'sources = "tree@v1"\nprogram = "tool"\n'
        'commands = [["cc", "-o", "{prefix}/bin/other", "tool.c"]]\n',
        RunError,
        r"build old: has no program 'tool' in its bin, which has other",
    ),
    "a build that takes too long": (
        'sources = "tree@v1"\ntimeout = "300ms"\ncommands = [["sleep", "60"]]\n',
        RunError,
        r"build old: 'sleep 60' was ended: the build took more than 0\.3 s",
    ),
}


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_one_line_and_leaves_nothing(
    do: Do, sources: Path, tmp_path: Path, case: str
) -> None:
    (sources / "slow.patch.txt").write_text("no archive")
    table, kind, pattern = FAILURES[case]
    with pytest.raises(kind, match=pattern) as caught:
        do(text_of({**BUILDS, "old": table}))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert not list((tmp_path / "cache/iolab").glob("builds/fresh-*"))
    assert not list((tmp_path / "cache/iolab").glob(f"builds/*/{module.RECORD_FILE}")) or (
        case == "another program installed"
    )


@pytest.mark.usefixtures("own_cache")
def test_a_tarball_that_leaves_its_directory_is_refused(
    do: Do, sources: Path, tmp_path: Path
) -> None:
    with tarfile.open(sources / "outside.tar", "w") as archive:
        archive.add(sources / "plain/tool.c", "../../escaped.c")
    with pytest.raises(RunError, match=r"outside\.tar: can't be unpacked"):
        do(text_of({**BUILDS, "old": f'sources = "outside.tar"\n{COMPILE}'}))
    assert not list(tmp_path.rglob("escaped.c"))


@pytest.mark.parametrize(
    ("head", "key"),
    [
        ('[builds."../up"]', "builds.../up"),
        ('[builds."a\\nb"]', "builds.a\\nb"),
        ('[builds.""]', "builds."),
    ],
)
def test_a_hostile_name_of_a_build_is_refused(tmp_path: Path, head: str, key: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text_of({}, f"{head}\n{BUILDS['old']}"))
    with pytest.raises(StudyError, match="is not a name for a build"):
        load_study(path)


@pytest.mark.parametrize(
    ("table", "rest", "pattern"),
    [
        (BUILDS["old"], '[variants.a]\nbuild = "odl"\n', "no build is called 'odl'.*old"),
        (BUILDS["old"], '[variants.a]\nbuild = "{none}"\n', "mentions {none}"),
        ('sources = "tree\\nx"\n' + COMPILE, VARIANTS, "builds.old.sources"),
        ('sources = "tree"\ncommands = []\n', VARIANTS, "has no command"),
        (
            f'sources = "tree"\nprogram = "../tool"\n{COMPILE}',
            VARIANTS,
            "not the name of a program",
        ),
        (f'sources = "tree"\ntimeout = 0\n{COMPILE}', VARIANTS, "timeout"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(
    tmp_path: Path, table: str, rest: str, pattern: str
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text_of({"old": table, "new": BUILDS["new"]}, rest))
    with pytest.raises(StudyError, match=pattern) as caught:
        load_study(path)
    assert "study.toml" in str(caught.value)


def test_commands_of_builds_and_of_the_load_need_trust(sources: Path) -> None:
    path = sources / "untrusted.toml"
    path.write_text(text_of())
    with pytest.raises(StudyError, match=r"runs commands or sets options that need trust: 'cc "):
        run_study(path)
    places = [place for place, _ in load_study(path).consent]
    assert places[:2] == ["builds.old.commands", "builds.old.version"]
    assert "workload.command" in places


def test_another_host_is_refused(sources: Path, tmp_path: Path, host: FakeHost) -> None:
    path = sources / "study.toml"
    path.write_text(text_of())
    with pytest.raises(RunError, match=r"build old: builds: host .* makes no builds"):
        run_study(path, tmp_path / "out", host=host, clock=host.clock, how=How(trusted=True))


def test_another_host_makes_its_builds(
    sources: Path, tmp_path: Path, do: Do, capsys: pytest.CaptureFixture[str]
) -> None:
    builds = tmp_path / "opt/builds"
    listeners = [Listener(), Listener()]
    with sshd(tmp_path / "sshd", f"SetEnv IOLAB_BUILDS={builds}") as options:
        changes = Changes(repetitions=1)
        with SshHost(options) as host:
            address = host.words
            for number, listener in enumerate(listeners):
                plans = do(
                    text_of(), f"out-{number}", listener=listener, changes=changes, host=host
                )
            broken = {"old": BUILDS["old"], "new": BUILDS["new"].replace("tool.c", "no.c")}
            with pytest.raises(RunError, match=r"build new: 'cc .*no\.c") as error:
                do(text_of(broken), "out-broken", host=host)
        assert str(builds) in str(error.value)
        compiled = [sum("compiled" in note for note in listener.notes) for listener in listeners]
        assert compiled == [2, 0]
        assert [plan.status for plan in plans] == ["finished"] * 2
        for plan in plans:
            program = build_of(plan)["programs"]["tool"]
            assert Path(program["path"]).is_relative_to(builds / ".programs")
            identity = {key: program[key] for key in ("build_id", "sha256") if key in program}
            assert identity == build_of(plan)["expected"]["tool"]
            assert build_of(plan)["record"]["version"] == ("tool 1.0" * (plan.variant == "old"))
        assert run_iolab(["rig", "builds", "--host", address]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[1] for line in lines] == ["tool", "tool"]
        for path in (builds / ".programs").iterdir():
            assert run_iolab(["rig", "builds", "--host", address, "--delete", path.name]) == 0
    assert not builds.parent.exists()


def test_the_dry_run_lists_builds_and_makes_none(
    sources: Path, own_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = sources / "dry.toml"
    path.write_text(text_of())
    plan = preview(load_study(path), sources / "unused")
    assert plan.problems == ()
    assert plan.as_data()["builds"] == {"old": "tree@v1", "new": "tree@v2"}
    assert run_iolab(["run", str(path), "--dry-run"]) == 0
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("build ")]
    assert [line.split(":")[0] for line in lines] == ["build old", "build new"]
    assert not own_cache.exists()
    path.write_text(text_of({**BUILDS, "old": FAILURES["a tool that is missing"][0]}))
    assert "no-such-compiler" in preview(load_study(path), sources / "unused").problems[0]


def test_an_interrupt_ends_the_compiler_and_the_next_call_builds(
    do: Do, tmp_path: Path, own_cache: Path
) -> None:
    gate = tmp_path / "gate"
    wait = (
        f'commands = ["[ -e {gate} ] || sleep 60", ["cc", "-o", "{{prefix}}/bin/tool", "tool.c"]]\n'
    )
    text = text_of({"old": f'sources = "tree@v1"\n{wait}'}, '[variants.old]\nbuild = "old"\n')
    interrupts = Interrupts()
    pressed = threading.Timer(0.3, interrupts.press)
    pressed.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        do(text, interrupts=interrupts)
    assert time.monotonic() - begin < 30
    assert not (tmp_path / "out").exists()
    gate.touch()
    assert [plan.status for plan in do(text, changes=Changes(repetitions=1))] == ["finished"]


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("damage", ["program", "record", "no record"])
def test_a_damaged_build_is_made_again(do: Do, own_cache: Path, damage: str) -> None:
    text = text_of({"old": BUILDS["old"]}, '[variants.old]\nbuild = "old"\n')
    listeners = [Listener(), Listener(), Listener()]
    for listener in listeners:
        do(text, f"out-{id(listener)}", listener=listener, changes=Changes(repetitions=1))
        record = next(own_cache.glob(f"*/{module.RECORD_FILE}"))
        if listener is not listeners[1]:
            continue
        if damage == "program":
            (record.parent / "prefix/bin/tool").write_bytes(b"changed")
        elif damage == "record":
            record.write_text('{"schema": 1, "programs": 7}')
        else:
            record.unlink()
    compiled = [sum("compiled" in note for note in listener.notes) for listener in listeners]
    assert compiled == [1, 0, 1]


def test_sources_that_a_killed_iolab_left_are_deleted(do: Do, own_cache: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    leftover, in_use = own_cache / f"fresh-{process.pid}-x", own_cache / f"fresh-{os.getppid()}-x"
    for path in (leftover, in_use):
        (path / "source").mkdir(parents=True)
    text = text_of({"old": BUILDS["old"]}, '[variants.old]\nbuild = "old"\n')
    do(text, changes=Changes(repetitions=1))
    assert not leftover.exists()
    assert in_use.exists()


@pytest.mark.fio
@pytest.mark.usefixtures("own_cache")
def test_builds_of_fio_are_a_factor(do: Do, tmp_path: Path) -> None:
    fio = shutil.which("fio")
    remove = f'["objcopy", "--remove-section=.note.gnu.build-id", "{fio}", "{{prefix}}/bin/fio"]'
    builds = {
        "installed": f'sources = "plain"\ncommands = [["install", "-t", "{{prefix}}/bin", "{fio}"]]\n',
        "bare": f'sources = "plain"\ncommands = [{remove}]\nversion = ["fio", "--version"]\n',
    }
    tables = "".join(f"[builds.{name}]\n{table}" for name, table in builds.items())
    load = '[workload]\nkind = "fio"\nruntime = "1s"\noptions = { rw = "write", bs = "4k", size = "1m" }\n'
    factors = '[factors]\nbuild = ["installed", "bare"]\n'
    plans = do(
        f"[sources]\ndiskstats = {{}}\n{tables}{load}{factors}", changes=Changes(repetitions=1)
    )
    programs = {build_of(plan)["asked"]: build_of(plan)["programs"]["fio"] for plan in plans}
    assert "build_id" in programs["installed"]
    assert "sha256" in programs["bare"]
    assert reasons(tmp_path / "out") == {"baseline": set()}
    assert {plan.tools["fio"] for plan in plans} == {plans[0].tools["fio"]}
