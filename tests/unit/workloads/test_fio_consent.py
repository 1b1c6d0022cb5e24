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

from iolab.base.errors import StudyError
from iolab.cli.main import run
from iolab.studies.plan.file.load import Study, load_study
from iolab.studies.plan.file.trust import is_trusted, remember, require_trust
from iolab.studies.workloads.fio.names import CHECKED, HARMLESS, KNOWN, RESERVED, TRUSTED
from iolab.studies.workloads.fio.options import consent_to, problems
from iolab.studies.workloads.fio.sections import FioOptions

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
