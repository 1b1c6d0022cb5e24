# SPDX-License-Identifier: Apache-2.0
"""The whole page from results of every kind: nothing odd breaks it, nothing in it can break out of
it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from iolab.base.errors import IolabError
from iolab.base.verdict import Level, Reason
from iolab.output.report.assemble import assemble, stall_spans
from iolab.output.report.build import build_report
from iolab.output.report.headline import main_comparisons
from iolab.output.report.model.metric_selection import chosen_metrics
from iolab.output.report.model.payload import Details, Payload
from iolab.output.report.model.schema import SCHEMA_FILE, TYPES_FILE, write
from iolab.output.report.page import html
from iolab.studies.compare.model import Comparison
from iolab.studies.results.evidence.model import Histogram, Run, Series
from support.report_data import HandMade, invalid, run, seconds, suspect, sweep
from support.report_page import page_data

ROOT = Path(__file__).parents[3]
HOSTILE = "</script><script>alert(1)</script><!-- \N{PILE OF POO} & \"'"


@pytest.fixture
def bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page script that stands in for the built one."""
    monkeypatch.setattr(html, "bundle_file", lambda name: f"/* {name} */")


def test_the_page_carries_both_documents(bundle: None) -> None:
    runs = sweep()
    page = build_report(
        HandMade(runs, series={run.id: seconds() for run in runs}, description="what it is")
    )
    payload = Payload.model_validate(page_data(page, "iolab-report"))
    details = Details.model_validate(page_data(page, "iolab-details"))
    assert payload.description == "what it is"
    assert [section.name for section in payload.sections if section.headline][:2] == [
        "write.iops",
        "write.bw",
    ]
    assert "write.throughput-latency" in [section.name for section in payload.sections]
    assert len(details.runs) == len(payload.runs.ids) == len(runs)
    assert details.runs[0].job == "[global]\nrw=write\n"
    assert details.runs[0].command == "fio job.fio"
    assert details.times == [list(range(1, 31))]
    metric, value, file, field, original = (
        details.texts[place] for place in details.runs[0].observations[0]
    )
    assert (metric, file, field) == (
        "write.iops",
        "runs/0001-00000000/fio.json",
        "jobs[0].write.iops",
    )
    assert float(original.removesuffix(" 1/s")) == runs[0].value("write.iops")
    assert value.endswith(" 1/s")


def test_every_chart_finds_its_data(bundle: None) -> None:
    payload, _ = assemble(HandMade(sweep(more={"disks": [1, 2]})))
    charts = [chart for section in payload.sections for chart in section.charts]
    assert len(charts) > 4
    for chart in charts:
        named = set(re.findall(r'"data": \{"name": "([^"]+)"', json.dumps(chart.spec)))
        assert named <= set(chart.data) <= set(payload.datasets)
        table = payload.datasets[chart.table]
        assert set(chart.table_columns) == table.columns.keys() | table.constants.keys()
        assert all(len(column) == table.length for column in table.columns.values())


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([], id="no runs"),
        pytest.param([run(1, "only", {}, {"write.iops": 5.0})], id="one run, no factor"),
        pytest.param(sweep(variants=("only",)), id="one variant"),
        pytest.param(
            [
                run(1, "a", {"n": 1}, {}, reasons=[invalid()]),
                run(2, "b", {"n": 1}, {}, reasons=[invalid()]),
            ],
            id="all invalid, no metric",
        ),
        pytest.param(
            [
                run(1, "a", {"n": 1}, {"write.iops": 1.0}, reasons=[invalid()]),
                run(2, "b", {"n": 1}, {"write.iops": 2.0}, reasons=[invalid()]),
            ],
            id="all invalid, with numbers",
        ),
        pytest.param([run(1, "?", {}, {}, reasons=[invalid("no-plan")])], id="killed run"),
        pytest.param(
            [run(1, "a", {"n": 1}, {"write.iops": 1.0}, judged=False, status="published")],
            id="published",
        ),
        pytest.param(
            [
                run(1, "a", {"n": 1}, {"write.iops": 0.0}),
                run(2, "b", {"n": 1}, {"write.iops": 0.0}),
            ],
            id="zeros",
        ),
        pytest.param(
            [run(1, "a", {"n": 1}, {"my.metric": 1.0}), run(2, "b", {"n": 1}, {"my.metric": 2.0})],
            id="a metric nobody knows",
        ),
        pytest.param(
            [
                run(1, HOSTILE, {HOSTILE: HOSTILE}, {"write.iops": 1.0}),
                run(2, "b", {HOSTILE: "x"}, {"write.iops": 2.0}),
            ],
            id="markup in names",
        ),
        pytest.param(
            [
                run(1, "a", {"n": 1}, {"write.iops": 1.0}),
                run(2, "b", {"n": "one"}, {"write.iops": 2.0}),
            ],
            id="levels of two kinds",
        ),
        pytest.param(
            [run(1, "a", {"n": 1}, {"write.iops": 1.0}), run(2, "b", {}, {"write.iops": 2.0})],
            id="a factor that one lacks",
        ),
        pytest.param(
            [run(1, "a", {"n": True}, {"write.iops": 1.0}, reasons=[suspect()])],
            id="truth as a level",
        ),
    ],
)
def test_odd_results_make_a_page(runs: list[Run], bundle: None) -> None:
    page = build_report(HandMade(runs))
    payload = Payload.model_validate(page_data(page, "iolab-report"))
    assert len(payload.runs.ids) == len(runs)
    assert sum(level.runs for level in payload.levels) == len(runs)
    assert payload.summary
    assert all(sentence.text for part in payload.summary for sentence in part.sentences)


def test_a_baseline_that_has_no_run_gives_way(bundle: None) -> None:
    payload, _ = assemble(HandMade(sweep(), baseline="gone"))
    assert [variant.name for variant in payload.variants if variant.baseline] == ["master"]


def test_a_page_holds_no_control_character_of_names(bundle: None) -> None:
    evil = "bl\x1b[32mock\x9b2J\u202e"
    runs = [
        run(
            1,
            evil,
            {evil: evil},
            {"write.iops": 1.0},
            reasons=[suspect(text=evil)],
            extra={"job": f"[global]\n# {evil}\n"},
        ),
        run(2, "b", {evil: "x"}, {"write.iops": 2.0}),
    ]
    series = {entry.id: seconds() for entry in runs}
    page = build_report(
        HandMade(runs, series=series, name=evil, description=evil, reproduce=[evil])
    )
    assert all(line.isprintable() for line in page.split("\n"))
    for name in ("iolab-report", "iolab-details"):
        # a no-break space is the page's own, between a number and its unit
        texts = json.dumps(page_data(page, name), ensure_ascii=False, indent=1).replace("\xa0", " ")
        assert all(line.isprintable() for line in texts.split("\n")), name
        assert "bl\\\\x1b[32mock\\\\x9b2J\\\\u202e" in texts


def test_nothing_in_the_results_can_break_out_of_the_page(bundle: None) -> None:
    runs = [
        run(
            1,
            HOSTILE,
            {"n": 1},
            {"write.iops": 1.0},
            reasons=[suspect(text=HOSTILE)],
            extra={"job": HOSTILE},
        )
    ]
    page = build_report(HandMade(runs, name=HOSTILE, description=HOSTILE, reproduce=[HOSTILE]))
    assert "alert(1)" not in page.replace("&lt;script&gt;alert(1)&lt;/script&gt;", "")
    assert page.count("<script") == 3
    assert page.count("</script>") == 3


def test_only_the_pages_own_script_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "console.log('é')"
    monkeypatch.setattr(
        html, "bundle_file", lambda name: script if name.endswith(".js") else "body{}"
    )
    page = build_report(HandMade(sweep(blocks=1)))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert f"script-src 'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none';")
    assert f"<script>{script}</script>" in page


def test_a_script_that_would_end_its_element_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "bundle_file", lambda name: "'</Script>'")
    with pytest.raises(IolabError, match="make setup"):
        build_report(HandMade(sweep(blocks=1)))


def test_a_page_that_was_not_built_is_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    html.bundle_file.cache_clear()
    with pytest.raises(IolabError, match="has not been built") as caught:
        build_report(HandMade(sweep(blocks=1)))
    assert "make setup" in (caught.value.hint or "")


def test_evidence_is_linked_relative_to_the_report(tmp_path: Path, bundle: None) -> None:
    evidence = tmp_path / "results" / "runs" / "0001-00000000"
    evidence.mkdir(parents=True)
    (evidence / "fio.json").write_text("{}")
    (evidence / "odd name#1.log").write_text("")
    (evidence / ".hidden").write_text("")
    runs = [run(1, "a", {"n": 1}, {"write.iops": 1.0}, evidence=evidence)]
    _, beside = assemble(HandMade(runs, path=tmp_path / "results"), tmp_path / "results")
    assert [(link.text, link.href) for link in beside.runs[0].links] == [
        ("runs/0001-00000000/fio.json", "runs/0001-00000000/fio.json"),
        ("runs/0001-00000000/odd name#1.log", "runs/0001-00000000/odd%20name%231.log"),
    ]
    _, elsewhere = assemble(HandMade(runs, path=tmp_path / "results"), tmp_path / "out")
    assert elsewhere.runs[0].links[0].href == "../results/runs/0001-00000000/fio.json"
    _, unknown = assemble(HandMade(runs, path=tmp_path / "results"), None)
    assert unknown.runs[0].links[0].href is None


def test_every_stall_of_a_run_is_a_span() -> None:
    time = np.arange(1.0, 31)
    moved = np.full(30, 1e6)
    moved[4:8] = moved[20:29] = 0
    one = run(1, "a", {}, {"write.iops": 1.0}, reasons=[suspect()])
    assert stall_spans(one, [Series("device.bw", "B/s", time, moved)]) == [(4.0, 8.0), (20.0, 29.0)]
    assert stall_spans(one, [Series("load.bw", "B/s", time, moved)]) == [(4.0, 8.0), (20.0, 29.0)]
    assert stall_spans(one, []) == [(20.0, 24.0)]


def test_stalls_are_spans_and_environment_names_what_differs(bundle: None) -> None:
    runs = [
        run(1, "a", {"n": 1}, {"write.iops": 1.0}, reasons=[suspect()]),
        run(2, "b", {"n": 1}, {"write.iops": 1.0}),
    ]
    payload, details = assemble(
        HandMade(
            runs,
            environment={
                "fingerprint": {"kernel": "ignored"},
                "facts": {"cpu": {"count": 8}, "disks": ["sda", "sdb"], "none": None},
            },
        )
    )
    assert details.runs[0].spans == [(20.0, 24.0)]
    facts = {fact.name: fact.values for fact in payload.environment}
    assert facts == {
        "host": ["local"],
        "kernel": ["6.1"],
        "cpu.count": ["8"],
        "disks": ["sda, sdb"],
    }
    assert [(reason.code, reason.runs) for reason in payload.reasons] == [("stall", [0])]
    assert [(one.text, one.runs) for one in payload.assumptions] == [("columns were guessed", 2)]


def test_percentiles_are_drawn_where_histograms_were_kept(bundle: None) -> None:
    runs = sweep(blocks=2, loads=(1, 4))
    kept = {
        one.id: (
            Histogram(
                "write.clat",
                6,
                np.array([100, 120, 140], np.uint32),
                np.array([900, 90, 10], np.uint64),
            ),
        )
        for one in runs
    }
    payload, _ = assemble(HandMade(runs, histograms=kept))
    section = next(section for section in payload.sections if section.name == "write.percentiles")
    titles = ["latency histogram, writes", "latency percentiles, writes"]
    assert [chart.title for chart in section.charts] == titles * 2
    assert "every cell" in section.lead


def test_which_metrics_lead() -> None:
    observed = [
        "write.iops",
        "write.bw",
        "write.clat.p50",
        "write.clat.p10",
        "write.lat.stddev",
        "runtime",
        "device.queue",
    ]
    assert chosen_metrics(observed) == (
        ["write.iops", "write.bw"],
        ["device.queue", "write.clat.p50"],
    )
    assert chosen_metrics(["made.up"]) == (["made.up"], [])
    comparisons = assemble_comparisons()
    assert [comparison.metric.name for comparison in main_comparisons(comparisons)] == [
        "write.iops"
    ]


def test_metrics_that_a_gate_spoke_of_come_first_and_single_devices_never_take_their_place() -> (
    None
):
    devices = [f"device.util[sd{letter}]" for letter in "abcdefghijklmnopqrstuvwx"]
    percentiles = [f"write.clat.p{percent}" for percent in (50, 90, 95, 99.5, 99.95, 99.99)]
    observed = [
        "write.iops",
        *percentiles,
        *devices,
        "device.await",
        "host.cpu.busy",
        "host.cpu.user",
        "zfs.arc.hit_ratio",
        "target.compression",
        "stall.seconds",
        "runtime",
        "write.ios",
    ]
    plain = run(1, "a", {}, {})
    assert chosen_metrics(observed, [plain])[1] == [
        "zfs.arc.hit_ratio",
        "target.compression",
        "stall.seconds",
        "device.await",
        *percentiles,
        "host.cpu.busy",
        "host.cpu.user",
    ]
    slow = Reason(
        "slow-device", Level.SUSPECT, "sdq was slow", {"device": "sdq", "quantity": "util"}
    )
    spoken = [
        run(
            1,
            "a",
            {},
            {},
            reasons=[
                suspect("cpu-bound", "97 % busy"),
                Reason("ended-by-size", Level.OK, "done after 3 s"),
            ],
        ),
        run(2, "a", {}, {}, reasons=[suspect("stall"), slow]),
    ]
    further = chosen_metrics(observed, spoken)[1]
    assert further[:5] == [
        "host.cpu.busy",
        "stall.seconds",
        "device.util[sdq]",
        "runtime",
        "zfs.arc.hit_ratio",
    ]
    assert [name for name in further if name in devices] == ["device.util[sdq]"]


def test_what_has_no_table_is_named(bundle: None) -> None:
    values = {
        "write.iops": 5.0,
        "stall.seconds": 0.0,
        "device.util[sda]": 0.5,
        "device.util[sdb]": 0.4,
        "write.ios": 9.0,
    }
    payload, _ = assemble(HandMade([run(1, "a", {"n": 1}, values), run(2, "b", {"n": 1}, values)]))
    assert [section.name for section in payload.sections] == ["write.iops", "stall.seconds"]
    assert payload.elsewhere == ["device.util[sda]", "device.util[sdb]", "write.ios"]


def assemble_comparisons() -> list[Comparison]:
    from iolab.studies.compare.compare import compare

    return [compare(sweep(blocks=1), name) for name in ("write.iops", "write.bw")]


def test_a_large_study_stays_small_and_quick(bundle: None) -> None:
    runs = sweep(
        blocks=8, loads=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), more={"disks": [1, 2]}
    )
    assert len(runs) == 352
    random = np.random.default_rng(2)
    lines = {}
    for one in runs:
        made = seconds(60, devices=("sda", "sdb", "sdc", "sdd"))
        lines[one.id] = [
            type(series)(series.name, series.unit, series.time, series.values * random.random(60))
            for series in made
        ]
    began = time.process_time()
    page = build_report(HandMade(runs, series=lines))
    assert len(page) < 2_100_000, "with the page's script of 0.9 MB this must stay below 3 MB"
    assert time.process_time() - began < 5


def test_series_that_are_too_many_leave_their_devices_out_and_say_so(
    bundle: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = sweep(blocks=1)
    lines = {one.id: seconds() for one in runs}
    _, whole = assemble(HandMade(runs, series=lines))
    assert whole.left_out == ""
    monkeypatch.setattr("iolab.output.report.assemble.MOST_READINGS", 500)
    _, cut = assemble(HandMade(runs, series=lines))
    assert "left out" in cut.left_out
    assert {line.device for one in cut.runs for strip in one.strips for line in strip.lines} == {""}


def test_schema_and_types_are_up_to_date(tmp_path: Path) -> None:
    write(tmp_path)
    for file in (SCHEMA_FILE, TYPES_FILE):
        assert (ROOT / file).read_text() == (tmp_path / file).read_text(), (
            f"{file} is stale: make generate"
        )
