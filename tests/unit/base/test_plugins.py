# SPDX-License-Identifier: Apache-2.0
"""Plugins of installed packages: registered by entry point, they run like the built-in ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iolab.base import metrics, registry
from iolab.base.errors import PluginError, UsageError
from iolab.base.verdict import Level
from iolab.studies.results.derive.derive import derive
from iolab.studies.results.evidence.model import RunPlan
from iolab.studies.results.open.cache import evidence_key
from support.acting import fake_host
from support.fio_files import job, output, write_run
from support.plugin_package import NAME, install_package

Install = Callable[..., None]

PLAN = RunPlan(
    run="0001-aaaaaaaa", variant="master", factors={"numjobs": 4}, jobs=4, runtime=10.0, exit_code=0
)

MODULE = '''
from iolab.formats.host.counter_set import CounterSet, Measured
from iolab.formats.host.host_columns import Column, gauge, whole_numbers
from iolab.base.metrics import Metric
from iolab.studies.results.gates.base import suspect


class Weekday:
    """No measurement on a Sunday."""

    name = "weekday"

    def judge(self, facts):
        yield suspect("sunday", f"measured on a Sunday, {facts.plan.run}")


class Broken:
    """Fails."""

    name = "broken"

    def judge(self, facts):
        raise KeyError("queue depth")


class Misnamed:
    """Has a name of its own."""

    name = "other"


class Descriptors(CounterSet):
    """File descriptors that are open."""

    name = "descriptors"
    line = "a line of /proc/sys/fs/file-nr"
    metrics = (Measured(Metric("host.descriptors", "open file descriptors", "", None), "descriptors", "max", True),)

    def lines(self, files):
        return files.read_text("/proc/sys/fs/file-nr").splitlines(keepends=True)

    def parse(self, line):
        numbers = whole_numbers(line.split())
        return None if numbers is None else ("descriptors", numbers)

    def columns(self, readings):
        return [Column("descriptors", gauge(readings, "descriptors"), "", "allocated")]


class Renderer:
    """A comparison in one word."""

    name = "word"

    def render(self, comparison):
        return comparison.metric
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    def do(module: str = MODULE, **groups: dict[str, str]) -> None:
        monkeypatch.syspath_prepend(
            install_package(
                tmp_path / "site",
                module,
                {f"iolab.{kind}": names for kind, names in groups.items()},
            )
        )
        forget()

    def forget() -> None:
        registry._entry_points.cache_clear()
        metrics._declare.cache_clear()
        metrics.find.cache_clear()

    forget()
    yield do
    monkeypatch.undo()
    forget()
    sys.modules.pop(NAME, None)


def test_a_gate_of_a_package_judges_every_run(tmp_path: Path, install: Install) -> None:
    write_run(tmp_path / "run", output(job()), plan=PLAN)
    assert derive(tmp_path / "run", PLAN).verdict.level is Level.OK
    install(gate={"weekday": "Weekday"})
    verdict = derive(tmp_path / "run", PLAN).verdict
    assert (verdict.level, [reason.text for reason in verdict.blames]) == (
        Level.SUSPECT,
        ["measured on a Sunday, 0001-aaaaaaaa"],
    )


def test_a_gate_that_fails_makes_the_run_suspect(tmp_path: Path, install: Install) -> None:
    write_run(tmp_path / "run", output(job()), plan=PLAN)
    install(gate={"broken": "Broken", "missing": "Nothing"})
    verdict = derive(tmp_path / "run", PLAN).verdict
    assert {reason.text for reason in verdict.blames} == {
        "the gate 'broken' failed: KeyError: 'queue depth'",
        f"the gate 'missing' of {NAME} 1.2 can't be loaded: AttributeError: module '{NAME}' has no attribute 'Nothing'",
    }


def test_a_counter_set_of_a_package_is_a_source_a_format_and_its_metrics(
    tmp_path: Path, install: Install
) -> None:
    install(**{"counter-set": {"descriptors": "Descriptors"}})
    assert (registry.names("source")[-1], registry.names("format")[-1]) == (
        "descriptors",
        "descriptors",
    )
    host = fake_host()
    host.files["/proc/sys/fs/file-nr"] = "2048\t0\t999999\n"
    kind = registry.load("source", "descriptors")
    source = kind(kind.options(), host, host.clock, [])
    assert source.unfit() is None
    write_run(tmp_path / "run", output(job()), plan=PLAN)
    source.start(tmp_path / "run")
    for number in (1024, 3072):
        host.files["/proc/sys/fs/file-nr"] = f"{number}\t0\t999999\n"
        host.clock.sleep(1.0)
        source.poll()
    source.stop()
    derived = derive(tmp_path / "run", PLAN)
    value = next(one for one in derived.observations if one.metric == "host.descriptors")
    assert (value.value, value.source_file) == (3072.0, "descriptors.log")
    assert [one.values.tolist() for one in derived.series if one.name == "host.descriptors"] == [
        [1024.0, 3072.0]
    ]
    known = metrics.find("host.descriptors")
    assert known is not None
    assert known.title == "open file descriptors"


def test_plugins_are_listed_after_the_built_in_ones(install: Install) -> None:
    install(renderer={"word": "Renderer"})
    assert registry.names("renderer")[-1] == "word"
    assert registry.load_all("renderer")[-1].__doc__ == "A comparison in one word."
    assert registry.third_parties() == [f"renderer word {NAME}:Renderer {NAME} 1.2"]


def test_a_plugin_never_replaces_a_built_in_one(install: Install) -> None:
    install(gate={"errors": "Weekday"})
    assert registry.load("gate", "errors").__module__ == "iolab.studies.results.gates.errors"
    assert registry.third_parties() == []


def test_a_plugin_must_bear_the_name_of_its_entry_point(install: Install) -> None:
    install(gate={"misnamed": "Misnamed"})
    with pytest.raises(
        PluginError, match=r"the gate 'misnamed' of iolab_thirdparty 1\.2 names itself 'other'"
    ):
        registry.load("gate", "misnamed")


def test_an_unknown_name_lists_plugins_as_well(install: Install) -> None:
    install(renderer={"word": "Renderer"})
    with pytest.raises(UsageError, match="did you mean 'word'"):
        registry.load("renderer", "words")


def test_cached_observations_depend_on_the_plugins(tmp_path: Path, install: Install) -> None:
    (tmp_path / "runs").mkdir()
    before = evidence_key(tmp_path)
    install(gate={"weekday": "Weekday"})
    assert evidence_key(tmp_path) != before
