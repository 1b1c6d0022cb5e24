# SPDX-License-Identifier: Apache-2.0
"""What contract tests share: a far side for hosts that are elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iolab.hosts.ssh.host import SshOptions
from support.sshd import sshd


@pytest.fixture(scope="session")
def far_side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshOptions]:
    """How to reach an sshd of ours, which leads back to this machine."""
    with sshd(tmp_path_factory.mktemp("sshd")) as options:
        yield options
