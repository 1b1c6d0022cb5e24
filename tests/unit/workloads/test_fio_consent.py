# SPDX-License-Identifier: Apache-2.0
"""Options of fio that read files, run programs or are unknown: refused, or named for the user's
consent, in every place where a study may write an option."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from iolab.base.errors import RunError, StudyError
from iolab.cli.main import run
from iolab.cli.study.hosts import run_all
from iolab.hosts.base.host import Place
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.plan.file.trust import is_trusted, remember, require_trust
from iolab.studies.run.study import How, run_study
from iolab.studies.workloads.fio.names import CHECKED, HARMLESS, KNOWN, RESERVED, TRUSTED
from iolab.studies.workloads.fio.options import LONGEST_LINE, consent_to, problems
from iolab.studies.workloads.fio.sections import FioOptions
from iolab.studies.workloads.fio.workload import FioWorkload

SECRET = "root-only-secret"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def study_of(tmp_path: Path, workload: str, extra: str = "") -> Path:
    path = tmp_path / "s.toml"
    path.write_text(
        f'[study]\nname = "s"\n[workload]\nkind = "fio"\nruntime = "1s"\n{workload}\n'
        f"[variants.a]\n{extra}",
        "utf-8",
    )
    return path


OPTIONS = '[workload.options]\nsize = "1m"\n'
INCLUDES = {
    "option": f'{OPTIONS}include = "FILE"',
    "other case": f'{OPTIONS}INCLUDE = "FILE"',
    "letters behind it": f'{OPTIONS}includes = "FILE"',
    "blank before it": f'{OPTIONS}" include" = "FILE"',
    "blank behind it": f'{OPTIONS}"include " = "FILE"',
    "job": 'job = """[j]\nsize=1m\ninclude FILE\n"""',
    "job with equals": 'job = """[j]\nsize=1m\ninclude=FILE\n"""',
    "job with blanks": 'job = """[j]\nsize=1m\n \t include = FILE\n"""',
    "job with tab": 'job = """[j]\nsize=1m\ninclude\tFILE\n"""',
    "job, letters behind it": 'job = """[j]\nsize=1m\nincludeFILE\n"""',
    "job, global": 'job = """[global]\ninclude FILE\n[j]\nsize=1m\n"""',
    "job, before a section": 'job = """include FILE\n[j]\nsize=1m\n"""',
    "job, unusual end of line": 'job = """[j]\nsize=1m\\u2028include FILE\n"""',
    "steps": f'{OPTIONS}[workload.steps]\nfactor = "include"\nlevels = ["FILE", "x"]\nevery = "2s"',
    "factor": f'{OPTIONS}[factors]\ninclude = ["FILE"]',
    "variant": f'{OPTIONS}[variants.b]\nworkload.options.include = "FILE"',
}


@pytest.mark.parametrize("workload", INCLUDES.values(), ids=INCLUDES)
def test_no_file_is_included(workload: str, tmp_path: Path) -> None:
    included = tmp_path / "x.inc"
    included.write_text(f"{SECRET}=1\nexec_prerun=touch {tmp_path}/ran\n")
    with pytest.raises(StudyError) as caught:
        load_study(study_of(tmp_path, workload.replace("FILE", str(included))))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("buffer_pattern", "'/etc/passwd'"),
        ("verify_pattern", "0xff'/etc/passwd'"),
        ("buffer_pattern", "'x'"),
        ("filename", "/etc/passwd"),
        ("filename", "a:/etc/passwd"),
        ("filename", "../x"),
        ("filename", "a b"),
        ("filename", "\\/x"),
        ("filename", "'x'"),
        ("filename_format", "../$jobnum"),
        ("mem", "mmaphuge:/huge/x"),
        ("iomem", "mmapshared:/x"),
        ("ioengine", "external:/tmp/x.so"),
        ("ioengine", "./x.so"),
        ("ioengine", "libaio:/x"),
        ("ioengine", "exec"),
        ("ioengine", "http"),
        ("write_lat_log", "../x"),
        ("write_hist_log", "/x"),
        ("size", "${HOME}"),
        ("description", "$ncpus"),
        ("numjobs", "$ncpus*2"),
        ("bs", "4k\nexec_prerun=id"),
        ("bs", "4k\x00"),
        ("bs", "4k\r"),
        ("description", "x\x7f"),
        # fio takes what follows 8,191 bytes of a line as a line
        ("description", "x" * (8191 - len("description=")) + "exec_prerun=id"),
        ("description", "é" * 2000),
        ("filename", " /etc/passwd"),
        ("filename", "x\n"),
        ("ioengine", " psync"),
        ("ioengine", "'psync'"),
        ("ioengine", "PSYNC"),
        ("mem", "mmapshared:x"),
        ("iomem", "mmaphuge: x"),
        *((name, "1") for name in sorted(RESERVED)),
    ],
)
def test_what_reaches_beyond_the_target_is_refused(name: str, value: str) -> None:
    assert problems({"size": "1m", name: value})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"size": "1m", "bs": "4k"}, []),
        ({"buffer_pattern": "0xdeadbeef"}, []),
        ({"cgroup": "slow"}, ["cgroup"]),
        ({"uid": 0, "gid": 0}, ["uid", "gid"]),
        ({"dp_scheme": "/etc/passwd"}, ["dp_scheme"]),
        ({"an_option_of_tomorrow": 1, "rw": "read"}, ["an_option_of_tomorrow"]),
        ({"Size": "1m"}, ["Size"]),
    ],
)
def test_unknown_options_need_consent(options: dict[str, Any], named: list[str]) -> None:
    assert [key for key, _ in consent_to(options)] == [f"options.{name}" for name in named]


def load(tmp_path: Path, workload: str, extra: str = "") -> Study:
    return load_study(study_of(tmp_path, workload, extra))


@pytest.mark.parametrize(
    ("workload", "extra"),
    [
        (f'{OPTIONS}dp_scheme = "x"', ""),
        ('job = """[j]\nsize=1m\ndp_scheme=x\n"""', ""),
        ('job = """[global]\ndp_scheme=x\n[j]\nsize=1m\n"""', ""),
        ('job_file = "j.fio"', ""),
        (OPTIONS, 'workload.options.dp_scheme = "x"\n'),
    ],
)
def test_consent_is_asked_wherever_the_option_is_written(
    tmp_path: Path, workload: str, extra: str
) -> None:
    (tmp_path / "j.fio").write_text("[j]\nsize=1m\ndp_scheme=x\n")
    study = load(tmp_path, workload, extra)
    with pytest.raises(StudyError, match="dp_scheme=x"):
        require_trust(study, False)
    require_trust(study, True)
    assert remember(study)
    assert is_trusted(study)


def test_consent_to_a_study_ends_with_a_change_of_its_job_file(tmp_path: Path) -> None:
    (tmp_path / "j.fio").write_text("[j]\nsize=1m\ndp_scheme=x\n")
    assert remember(load(tmp_path, 'job_file = "j.fio"'))
    (tmp_path / "j.fio").write_text("[j]\nsize=1m\ndp_scheme=y\n")
    assert not is_trusted(load(tmp_path, 'job_file = "j.fio"'))


def test_a_file_that_is_no_job_file_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (
        f"{SECRET}:x:0\n",
        f"[a]\n{SECRET} x=1\n",
        f"[a]\n[{SECRET}",
        f"[a]\nx=${{{SECRET}}}",
    ):
        (tmp_path / "shadow").write_text(text)
        assert run(["run", str(study_of(tmp_path, 'job_file = "shadow"')), "--dry-run"]) == 4
        captured = capsys.readouterr()
        assert SECRET not in captured.out + captured.err
        assert "line 1" in captured.err or "line 2" in captured.err


@pytest.mark.parametrize("name", ["../j.fio", "link", "ABSOLUTE"])
def test_a_job_file_lies_below_the_study(name: str, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "j.fio").write_text(f"[{SECRET}]\nsize=1m\n")
    (tmp_path / "study/link").symlink_to(tmp_path / "j.fio")
    name = name.replace("ABSOLUTE", str(tmp_path / "j.fio"))
    with pytest.raises(StudyError, match="is not below the study") as caught:
        load_study(study_of(tmp_path / "study", f'job_file = "{name}"'))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "..", "a\x7f", "x" * 256])
def test_a_section_names_no_files_outside_of_the_target(name: str) -> None:
    with pytest.raises(ValidationError, match="is not a name for a section"):
        FioOptions(job=f"[{name}]\nsize=1m\n", runtime=1, options={})


def test_a_second_name_of_an_option_is_that_option() -> None:
    with pytest.raises(ValidationError, match="fill_device"):
        FioOptions(job="[a]\nsize=1m\nfill_fs=1\n", runtime=1, options={})
    with pytest.raises(ValidationError, match="runs after the others"):
        FioOptions(job="[a]\nsize=1m\n[b]\nsize=1m\nwait_for_previous\n", runtime=1, options={})


@pytest.mark.parametrize(
    "path", ["/x\nexec_prerun=id", "/x;y", "/x#y", "/${HOME}", "/$ncpus", "/" + "x" * LONGEST_LINE]
)
@pytest.mark.parametrize("kind", ["directory", "device"])
def test_a_path_that_fio_reads_otherwise_is_refused(path: str, kind: Any) -> None:
    load = FioWorkload(FioOptions(runtime=1, options={"size": "1m", "rw": "read"}))
    with pytest.raises(RunError, match="fio would read"):
        load.job(Place(path, kind))


def test_what_differs_by_host_is_asked_about_on_each(tmp_path: Path) -> None:
    studies = {name: load(tmp_path, f"{OPTIONS}uid = {name}") for name in ("1", "2")}
    questions: list[Study] = []

    def ask(study: Study) -> bool:
        questions.append(study)
        require_trust(study, len(questions) == 1)
        return True

    with pytest.raises(StudyError, match="uid=2"):
        run_all(tmp_path / "s.toml", studies, {}, tmp_path / "out", {}, How(), ask)
    assert questions == list(studies.values())


@pytest.mark.fio
def test_an_included_file_or_the_rest_of_a_line_does_not_run(fio: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "x.inc").write_text(f"exec_prerun=touch {ran}\n{SECRET}\n")
    option = "x" * (8191 - len("description=")) + f"exec_prerun=touch {ran}"
    (tmp_path / "line.fio").write_text(f"[a]\nsize=4k\nrw=read\ndescription={option}\n")
    for workload in (
        f'{OPTIONS}include = "{tmp_path}/x.inc"',
        f'job = "[a]\\nsize=4k\\n  include={tmp_path}/x.inc"',
        f'{OPTIONS}description = "{option}"',
        'job_file = "line.fio"',
    ):
        study = study_of(tmp_path, f"{workload}\n[target]\npath = '{tmp_path}'")
        with pytest.raises(StudyError) as caught:
            run_study(study, tmp_path / "out", How(trusted=True))
        assert SECRET not in str(caught.value)
        assert not ran.exists()


@pytest.mark.fio
@pytest.mark.parametrize("length", [LONGEST_LINE, 8191])
def test_fio_takes_the_longest_line_whole_and_a_longer_one_as_two(
    fio: str, tmp_path: Path, length: int
) -> None:
    ran = tmp_path / "ran"
    option = f"exec_prerun=touch {ran}"
    text = "description=".ljust(length - len(option) if length == LONGEST_LINE else length, "x")
    (tmp_path / "j.fio").write_text(f"[a]\nsize=4k\nioengine=null\nrw=read\n{text}{option}\n")
    version = subprocess.run([fio, "--version"], capture_output=True, text=True, check=True).stdout
    if length > LONGEST_LINE and version.strip() != "fio-3.33":
        pytest.skip("measured with fio 3.33")
    subprocess.run([fio, "j.fio"], cwd=tmp_path, capture_output=True, check=True)
    assert ran.exists() == (length > LONGEST_LINE)


@pytest.mark.fio
@pytest.mark.parametrize("name", ["exec_preru", "exec_pr", "EXEC_PRERUN", "Exec_prerun", "includ"])
def test_fio_takes_no_abbreviations_and_no_other_case(fio: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "j.fio").write_text(f"[a]\nsize=4k\nioengine=null\n{name}=id\n")
    command = [fio, "--parse-only", str(tmp_path / "j.fio")]
    assert subprocess.run(command, capture_output=True, check=False).returncode


def test_each_option_has_one_kind() -> None:
    kinds = (HARMLESS, CHECKED, frozenset(TRUSTED), frozenset(RESERVED))
    assert sum(map(len, kinds)) == len(KNOWN)


@pytest.mark.fio
def test_every_option_of_this_fio_has_a_kind_or_needs_consent() -> None:
    """An option of type string can name a file or a program: each was looked up."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")

    def ask(*words: str) -> str:
        return subprocess.run(["fio", *words], capture_output=True, text=True, check=False).stdout

    names = re.findall(r"^\s*([\w-]+)\s*: ", ask("--cmdhelp=all"), re.MULTILINE)
    assert len(names) > 150
    strings = {
        name for name in names if re.search(r"type: string \(opt=bla\)", ask(f"--cmdhelp={name}"))
    }
    assert {"exec_prerun", "read_iolog", "buffer_pattern", "cgroup"} <= strings
    texts_that_name_nothing = {
        "bssplit", "clocksource", "continue_on_error", "cpus_allowed", "cpus_allowed_policy",
        "dedupe_mode", "description", "exit_what", "fadvise_hint", "fallocate",
        "file_service_type", "filesize", "thinktime_blocks_type",
        "ignore_error", "io_submit_mode", "kb_base", "lockfile", "lockmem", "log_compression_cpus",
        "number_ios", "numa_cpu_nodes", "numa_mem_policy", "random_distribution",
        "random_generator", "randseed", "rate_process", "replay_skip", "rw", "rw_sequencer",
        "steadystate", "sync", "trim_backlog", "unified_rw_reporting", "unit_base", "verify",
        "verify_backlog", "wait_for", "write_hint", "zonecapacity", "zonemode", "zonerange",
        "zonesize",
    }  # fmt: skip
    assert strings & HARMLESS <= texts_that_name_nothing
    unknown = set(names) - KNOWN
    assert {key.removeprefix("options.") for key, _ in consent_to(dict.fromkeys(unknown, 1))} == (
        unknown
    )


@pytest.mark.fio
def test_fio_includes_by_the_letters_of_include_alone(tmp_path: Path) -> None:
    """Why every name that begins so is refused; later fio may differ, and refusing stays right."""
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    (tmp_path / "j.fio").write_text(f"[j]\nincludeX{tmp_path}/none\nsize=4k\n")
    answer = subprocess.run(
        ["fio", "--parse-only", str(tmp_path / "j.fio")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode
    assert f"{tmp_path}/none" in answer.stdout + answer.stderr


def test_consent_of_a_workload_has_each_option_once() -> None:
    options = FioOptions(job="[global]\ncgroup=g\nsize=1m\n[a]\n[b]\n", runtime=1, options={})
    assert options.consent() == (
        ("options.cgroup", "cgroup=g (changes control groups of the machine)"),
    )
