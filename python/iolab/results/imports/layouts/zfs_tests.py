# SPDX-License-Identifier: Apache-2.0
"""Names of files of OpenZFS's performance suite (tests/zfs-tests/tests/perf, perf.shlib).

`perf_data` has a fio result for each run, `TEST.fio.sync.8k-ios.16-threads.1-filesystems`, and the
output of each collector with its tag in the place of `fio`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = re.compile(
    r"(?P<test>\w+?(?:\.ksh)?)\.(?P<tag>[\w.-]+?)\."
    r"(?P<run>(?:sync|async)?\.[^./]+-ios\.\d+-threads\.\d+-filesystems)"
)
_RUN = "{sync_type}.{bs}-ios.{numjobs:int}-threads.{filesystems:int}-filesystems"


def suite_layout(names: Sequence[str]) -> str | None:
    """The layout of names of results; None unless all of them are of the suite."""
    matches = [_NAME.fullmatch(name) for name in names]
    tests = [match["test"] for match in matches if match is not None and match["tag"] == "fio"]
    if not tests or len(tests) < len(names):
        return None
    are_scripts = all(test.endswith(".ksh") for test in tests)
    return f"{{test}}{'.ksh' if are_scripts else ''}.fio.{_RUN}"


def result_name(name: str) -> str | None:
    """The name of the result that the file of a collector belongs to."""
    match = _NAME.fullmatch(name)
    return None if match is None else f"{match['test']}.fio.{match['run']}"
