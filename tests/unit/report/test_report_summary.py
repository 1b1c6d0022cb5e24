# SPDX-License-Identifier: Apache-2.0
"""The summary says what the numbers say, no more and no less."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.base.verdict import Level
from iolab.output.report.words.credibility import reason_counts, verdict_sentences
from iolab.output.report.words.summary import against_baseline, summarise
from iolab.studies.compare.axes import Layout
from iolab.studies.compare.compare import compare
from iolab.studies.compare.model import Comparison
from iolab.studies.results.evidence.model import Run
from support.golden import Golden
from support.report_data import invalid, run, suspect, sweep


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def told(runs: Sequence[Run], metric: str = "write.iops", variant: str = "project") -> str:
    return plain(
        " ".join(sentence.text for sentence in against_baseline(compare(runs, metric), variant))
    )


def everything(runs: Sequence[Run], *metrics: str) -> str:
    comparisons: list[Comparison] = [compare(runs, metric) for metric in metrics]
    return plain(
        "\n".join(
            f"{part.title}\n" + "\n".join(one.text for one in part.sentences)
            for part in summarise(comparisons, runs)
        )
    )


def test_a_real_change_is_told_with_counts_mean_and_interval(golden: Golden) -> None:
    text = told(sweep(1.5))
    assert "3 of 3" in text
    golden("report/real-change", text)


def test_a_fall_is_told_as_a_fall_and_judged_by_the_metrics_direction(golden: Golden) -> None:
    runs = sweep(1.5)
    latency = against_baseline(compare(runs, "write.lat.mean"), "project")[0]
    golden("report/fall", plain(latency.text))
    assert latency.tone == "better"
    assert against_baseline(compare(sweep(0.7), "write.iops"), "project")[0].tone == "worse"


def test_no_change_is_not_told_as_a_change(golden: Golden) -> None:
    sentence = against_baseline(compare(sweep(1.0, noise=0.02), "write.iops"), "project")[0]
    golden("report/no-change", plain(sentence.text))
    assert sentence.tone == "plain"


def test_single_pairs_are_estimates_and_say_so(golden: Golden) -> None:
    runs = sweep(1.5, blocks=1)
    text = everything(runs, "write.iops")
    assert "significant" not in text
    golden("report/single-pairs", text)


def test_a_change_that_is_written_as_zero_is_neither_higher_nor_lower() -> None:
    runs = [
        run(1, "a", {"n": 1}, {"write.iops": 1000.0}),
        run(2, "b", {"n": 1}, {"write.iops": 1000.1}),
    ]
    assert ": the same in 1 of 1 cell" in told(runs, variant="b")


def test_shares_change_by_points() -> None:
    runs = [
        run(1, "a", {"n": 1}, {"device.util": 0.25}),
        run(2, "b", {"n": 1}, {"device.util": 0.5}),
        run(3, "a", {"n": 2}, {"device.util": 0.0}),
        run(4, "b", {"n": 2}, {"device.util": 0.0}),
    ]
    text = told(runs, "device.util", "b")
    assert "mean difference +12.5 points" in text
    assert "%" not in text


def test_tables_are_told_one_by_one(golden: Golden) -> None:
    sentences = against_baseline(
        compare(
            sweep(1.5, more={"media": ["hdd", "ssd"]}),
            "write.iops",
            layout=Layout(rows=["numjobs"], tables=["media"]),
        ),
        "project",
    )
    assert [sentence.under for sentence in sentences] == [False, True, True]
    golden("report/tables", plain("\n".join(sentence.text for sentence in sentences)))


def test_every_variant_gets_its_own_part() -> None:
    runs = sweep(1.5, variants=("master", "one", "two"))
    titles = [part.title for part in summarise([compare(runs, "write.iops")], runs)]
    assert titles == ["one against master", "two against master", "How far to trust this"]


def test_one_variant_has_its_span_and_nothing_to_compare_with(golden: Golden) -> None:
    text = everything(sweep(variants=("master",), blocks=1, noise=0), "write.iops")
    assert {"100.0", "696.4"} <= set(text.split())
    golden("report/one-variant", text)


def test_verdicts_are_counted_with_their_reasons(golden: Golden) -> None:
    runs = [
        *sweep(blocks=2),
        run(90, "project", {"numjobs": 1}, {}, block=3, reasons=[invalid()]),
        run(91, "master", {"numjobs": 1}, {"write.iops": 99.0}, block=3, reasons=[suspect()]),
    ]
    text = "\n".join(sentence.text for sentence in verdict_sentences(runs))
    assert {"(0090-00000000).", "(0091-00000000)."} <= set(text.split())
    golden("report/verdicts", plain(text))


def test_all_invalid_says_that_nothing_is_left(golden: Golden) -> None:
    runs = [
        run(1, "a", {"n": 1}, {}, reasons=[invalid()]),
        run(2, "b", {"n": 1}, {}, reasons=[invalid("runtime", "too short")]),
    ]
    text = "\n".join(
        plain(sentence.text) for part in summarise([], runs) for sentence in part.sentences
    )
    golden("report/nothing-left", plain(text))


def test_published_numbers_are_unjudged() -> None:
    runs = [run(1, "a", {"n": 1}, {"write.iops": 5.0}, judged=False, status="published")]
    assert "published numbers" in verdict_sentences(runs)[0].text
    other = [run(1, "a", {"n": 1}, {"write.iops": 5.0}, judged=False)]
    assert "published" not in verdict_sentences(other)[0].text


def test_a_gate_that_speaks_twice_counts_a_run_once() -> None:
    twice = [run(1, "a", {}, {}, reasons=[suspect(), suspect(text="again")])]
    assert reason_counts(twice, Level.SUSPECT) == "stall in 1 run (0001-00000000)"


def test_no_runs_at_all() -> None:
    assert [part.title for part in summarise([], [])] == ["No runs", "How far to trust this"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=1, max_size=8))
def test_the_counts_of_estimates_add_up(pairs: list[tuple[float, float]]) -> None:
    runs = []
    for place, (before, after) in enumerate(pairs):
        runs += [
            run(2 * place, "a", {"n": place}, {"write.iops": before}),
            run(2 * place + 1, "b", {"n": place}, {"write.iops": after}),
        ]
    words = told(runs, variant="b").partition(" of ")[0].split()
    counts = [int(word.rstrip(",")) for word in words if word.rstrip(",").isdigit()]
    assert sum(counts) == len(pairs)


@pytest.mark.parametrize("metric", ["write.iops", "write.lat.mean", "device.util"])
def test_sentences_are_whole(metric: str) -> None:
    for part in summarise([compare(sweep(1.2), metric)], sweep(1.2)):
        for sentence in part.sentences:
            assert sentence.text.endswith((".", ":"))
            assert "  " not in sentence.text
            assert "None" not in sentence.text
            assert "nan" not in sentence.text.split()


def test_what_is_missing_of_the_study_stands_with_the_verdicts() -> None:
    parts = summarise([], [], ["3 of 12 planned runs are there, 9 to come"])
    assert [sentence.text for sentence in parts[-1].sentences][1:] == [
        "3 of 12 planned runs are there, 9 to come."
    ]
    assert parts[-1].sentences[1].tone == "caution"


def test_pairs_left_out_name_their_reason_and_their_metric() -> None:
    runs = [
        run(
            2 * block + place,
            variant,
            {},
            {"write.iops": 100.0 + place} | ({"device.util": 0.5} if block > 1 + place else {}),
            block=block,
        )
        for block in (1, 2, 3, 4)
        for place, variant in enumerate(("a", "b"))
    ]
    parts = summarise([compare(runs, "write.iops"), compare(runs, "device.util")], runs)
    told = [sentence.text for sentence in parts[-1].sentences]
    assert "device.util: 2 pairs left out, without the metric." in told
    assert not any("INVALID" in text for text in told)


def test_a_warning_about_several_metrics_is_one_sentence() -> None:
    names = ("device.util", "device.await", "host.cpu.busy")
    runs = [
        run(
            2 * block + place,
            variant,
            {},
            {"write.iops": 100.0 + place} | (dict.fromkeys(names, 0.5) if block > 1 else {}),
            block=block,
        )
        for block in (1, 2, 3, 4)
        for place, variant in enumerate(("a", "b"))
    ]
    parts = summarise([compare(runs, name) for name in ("write.iops", *names)], runs)
    texts = [sentence.text for sentence in parts[-1].sentences if "without" in sentence.text]
    assert len(texts) == 1
    assert all(name in texts[0] for name in names)
