# SPDX-License-Identifier: Apache-2.0
"""Files of OpenZFS's performance suite (tests/zfs-tests/tests/perf, perf.shlib).

`perf_data` has a fio result for each run, `TEST.fio.sync.8k-ios.16-threads.1-filesystems`. The output of
a collector has its tag in the place of `fio`. `config.json` describes the machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

CONFIG = "config.json"
MOST_CONFIG = 1 << 20
"""Bytes of a `config.json` beyond which it is of another program."""
_MOST_FACTS = 256
"""Disks and parameters of modules that are read."""
_TEXT = 200

_NAME = re.compile(
    r"(?P<test>\w+?(?:\.ksh)?)\.(?P<tag>[\w.-]+?)\."
    r"(?P<run>(?:sync|async)?\.[^./]+-ios\.\d+-threads\.\d+-filesystems)(?:\.log)?"
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


def read_config(data: bytes) -> dict[str, Any] | None:
    """The environment that a `config.json` describes, as `environment.json` has it; None for a
    damaged file, and for one of another program.

    Parameters of modules are part of the fingerprint.
    """
    try:
        config = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(config, dict) or not {"ncpus", "physmem", "kernel version"} <= config.keys():
        return None
    fingerprint: dict[str, str] = {}
    if kernel := _text(config["kernel version"]):
        fingerprint["kernel"] = kernel.removeprefix("Linux ")
    if cpus := _number(config["ncpus"]):
        fingerprint["cpu"] = f"{cpus} CPUs"
    if memory := _number(config["physmem"]):
        fingerprint["memory"] = f"{memory / 2**30:.0f} GiB"
    fingerprint |= _texts(config.get("tunables"))
    facts: dict[str, Any] = {}
    if host := _text(config.get("hostname")):
        facts["host name"] = host
    if limit := _number(config.get("c_max")):
        facts["zfs"] = {"limit of the ARC": f"{limit} bytes"}
    if disks := _texts(config.get("disks")):
        facts["disks"] = disks
    return {"schema": 1, "fingerprint": fingerprint, "facts": facts}


def _text(value: object) -> str:
    return value[:_TEXT] if isinstance(value, str) else ""


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    texts = {str(name)[:_TEXT]: _text(text) for name, text in value.items()}
    return {name: text for name, text in list(texts.items())[:_MOST_FACTS] if text}


def _number(value: object) -> int:
    """A number that awk or DTrace printed; 0 for anything else."""
    text = str(value) if type(value) in (int, str) else ""
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) else 0
