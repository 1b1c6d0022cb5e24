# SPDX-License-Identifier: Apache-2.0
"""Tests on a running rig. `make rig-test` builds it, starts it, names it in IOLAB_TEST_RIG, and
takes it down."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from iolab.hosts.kinds.rig import RigHost, RigOptions
from iolab.studies.targets.zpool.pool import PREFIX, pools

RIG = "IOLAB_TEST_RIG"
DEVICES = "/dev/disk/by-id/virtio-disk*"


@pytest.fixture(scope="session")
def host() -> Iterator[RigHost]:
    """The machine, with nothing of a test left on it afterwards."""
    if RIG not in os.environ:
        pytest.skip(f"no rig is up for tests ({RIG}): 'make rig-test' starts one")
    with RigHost(RigOptions(name=os.environ[RIG])) as host:
        # otherwise each test loads modules, and unloads them at its end
        host.run(["openzfs-use", "2.1"], timeout=300)
        yield host


@pytest.fixture(autouse=True)
def nothing_is_left(host: RigHost) -> Iterator[None]:
    yield
    assert [name for name in pools(host) if name.startswith(PREFIX)] == []
    assert (
        host.run(
            ["sh", "-c", "wipefs --no-act --noheadings /dev/disk/by-id/virtio-disk*"], timeout=120
        ).stdout
        == ""
    )
    assert host.run(["sh", "-c", "ls -d /var/tmp/iolab-*/at 2>/dev/null"]).stdout == ""
