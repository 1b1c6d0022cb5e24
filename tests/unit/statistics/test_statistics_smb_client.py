# SPDX-License-Identifier: Apache-2.0
"""Statistics of SMB mounts: growth of /proc/fs/cifs/Stats by server, share and command."""

from __future__ import annotations

import pytest

from iolab.recordings.store.read.recording import Recording
from support.counters import disk, kept, stack

READ = {"ops": [10, 12, 20], "errors": [0, 0, 1], "read_bytes": [0, 8192, 40_960]}
WRITE = {"ops": [0, 0, 5], "errors": [0, 0, 0], "written_bytes": [0, 0, 500]}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Two shares of one server and one of another."""
    rows = [row for field in READ for row in disk("", field, [0, 0, 0])]
    rows += disk("", "written_bytes", [0, 0, 0])
    for name, fields in (
        ("fs1\tdata\tREAD", READ),
        ("fs1\tmy files\tWRITE", WRITE),
        ("fs2\tdata\tREAD", READ),
    ):
        for field, values in fields.items():
            rows += disk(name, field, values)
    return kept(tmp_path_factory.mktemp("smb") / "r", {"smb-client": rows})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("smb.client.ops[server]", {"fs1": 15, "fs2": 10}),
        ("smb.client.ops[server=fs1][share]", {"data": 10, "my files": 5}),
        ("smb.client.ops[share=data][procedure]", {"READ": 20}),
        ("smb.client.bytes[op]", {"read": 81_920, "write": 500}),
        ("smb.client.bytes[op=read][share]", {"data": 81_920}),
        ("smb.client.errors[procedure]", {"READ": 2}),
    ],
)
def test_growth_by_server_share_and_command(
    recording: Recording, name: str, expected: dict[str, int]
) -> None:
    found = stack(recording, name, (0, 2))
    totals = dict(zip(found.keys, found.totals, strict=True))
    assert {key: total for key, total in totals.items() if total} == expected
