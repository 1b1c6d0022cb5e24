# SPDX-License-Identifier: Apache-2.0
"""Compressibility on the axis as what the target made of it."""

from __future__ import annotations

import dataclasses
import json

from iolab.base import registry
from iolab.output.charts import change, hockey_stick, over_load
from iolab.studies.compare.axes import Layout, parse_where
from iolab.studies.compare.compare import compare
from iolab.studies.compare.load.curves import curves
from iolab.studies.results.evidence.model import Observation, Run
from support.runs import run


def study() -> list[Run]:
    found = []
    for block in (1, 2):
        for percent, ratio in ((100, 60.0), (0, 1.0), (50, 1.97)):
            for jobs in (1, 2, 4, 8):
                for variant in ("off", "on"):
                    one = run(
                        variant,
                        1000.0 * jobs * (1 + percent / 100),
                        block=block,
                        numjobs=jobs,
                        compressibility=percent,
                    )
                    extra = {
                        "target.compression": Observation(
                            "target.compression", ratio, "", "target.json", "taken_bytes"
                        ),
                        "write.lat.mean": Observation(
                            "write.lat.mean", 0.001 * jobs, "s", "fio.json", "lat"
                        ),
                    }
                    found.append(
                        dataclasses.replace(one, observations={**one.observations, **extra})
                    )
    return found


def test_the_axis_names_asked_and_achieved_in_order_of_what_was_asked() -> None:
    comparison = compare(study(), "write.iops")
    assert [str(key[0]) for key in comparison.col_levels] == [
        "0 (1.00x)",
        "50 (1.97x)",
        "100 (60x)",
    ]
    assert "numjobs \\ compressibility" in registry.load("renderer", "text")().render(comparison)


def test_conditions_and_json_keep_to_what_was_asked() -> None:
    comparison = compare(study(), "write.iops", where=parse_where(["compressibility=50"]))
    assert str(comparison.fixed["compressibility"]) == "50 (1.97x)"
    document = json.loads(registry.load("renderer", "json")().render(comparison))
    assert document["fixed"] == {"compressibility": 50.0}
    assert document["cells"][0]["factors"]["compressibility"] == 50.0


def test_levels_stay_numbers_where_a_level_was_not_observed() -> None:
    runs = [
        one
        if one.factors["compressibility"]
        else dataclasses.replace(one, observations={"write.iops": one.observations["write.iops"]})
        for one in study()
    ]
    assert compare(runs, "write.iops").col_levels == ((0,), (50,), (100,))


def test_charts_take_the_achieved_axis() -> None:
    runs = study()
    by_compressibility = compare(
        runs, "write.iops", layout=Layout(rows=["compressibility"], cols=["numjobs"])
    )
    for chart in (
        over_load(by_compressibility),
        change(by_compressibility),
        hockey_stick(curves(runs)),
    ):
        assert "50 (1.97x)" in json.dumps(chart.spec)
        assert "50 (1.97x)" in chart.to_csv()
