# SPDX-License-Identifier: Apache-2.0
"""`[load]` of a study: client hosts, their number as a factor, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.base.errors import StudyError
from iolab.studies.plan.adapt import Changes
from iolab.studies.plan.file.load import Study, load_study, target_host
from iolab.studies.plan.file.problems import StudyProblems

WORKLOAD = """
[workload]
kind = "fio"
runtime = "2s"
options = {rw = "read", size = "1m"}
"""


def read(tmp_path: Path, text: str, changes: Changes | None = None) -> Study:
    path = tmp_path / "s.toml"
    path.write_text(WORKLOAD + text, "utf-8")
    return load_study(path, changes)


def test_the_number_of_clients_is_a_factor(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        """
[load]
hosts = ["root@a", "local", "local", "ssh:b:2222"]
path = "/mnt/{protocol}"
[factors]
clients = [1, 3, 4]
protocol = ["nfs", "smb"]
""",
    )
    loads = [cell.load for cell in study.cells]
    assert [load and load.clients for load in loads] == [1, 1, 3, 3, 4, 4]
    assert [load and load.path for load in loads] == ["/mnt/nfs", "/mnt/smb"] * 3
    assert loads[-1] is not None
    assert dict(loads[-1].taking_part()) == {
        "root@a": "root@a",
        "local": "local",
        "local-2": "local",
        "b:2222": "ssh:b:2222",
    }
    assert study.cells[0].as_data()["load"]["hosts"][0] == "root@a"


def test_a_study_without_client_hosts_is_as_before(tmp_path: Path) -> None:
    study = read(tmp_path, "")
    assert [cell.load for cell in study.cells] == [None]
    assert "load" not in study.cells[0].as_data()


def test_variants_have_their_own_mounts(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        '[load]\nhosts = ["local"]\npath = "/a"\n[variants.x]\n[variants.y]\nload.path = "/b"',
    )
    assert [cell.load and cell.load.path for cell in study.cells] == ["/a", "/b"]


def test_hosts_may_be_given_on_the_command_line(tmp_path: Path) -> None:
    changes = Changes(load={"hosts": '["root@a", "root@b"]', "path": "/mnt/lab"})
    study = read(tmp_path, "[factors]\nclients = [1, 2]\n[load]\nhosts = ['local']", changes)
    assert [cell.load and len(cell.load.taking_part()) for cell in study.cells] == [1, 2]
    assert Changes.from_data(changes.as_data()) == changes
    assert changes.arguments() == [
        "--load",
        'hosts=["root@a", "root@b"]',
        "--load",
        "path=/mnt/lab",
    ]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('[load]\nhosts = ["nix"]', {"load.hosts.0"}),
        ("[load]\nhosts = []", {"load.hosts"}),
        ('[load]\npath = "/x"', {"load.hosts"}),
        ('[load]\nhosts = ["local"]\npath = "mnt"', {"load.path"}),
        ('[load]\nhosts = ["local"]\npath = "/a/../b"', {"load.path"}),
        ('[load]\nhosts = ["local"]\nexport = "x"', {"load.export"}),
        ('[load]\nhosts = ["local"]\nsources = ["block"]', {"load.sources.0"}),
        ('[load]\nhosts = ["local"]\nclients = 0', {"load.clients"}),
        ('[load]\nhosts = ["local"]\nhost = 1', {"load.host"}),
        ('[load]\nhosts = ["local"]\n[factors]\nclients = [1, 2]', {"factors.clients"}),
        ('[load]\nhosts = ["local"]\nclients = 1\n[factors]\nclients = [1]', {"factors.clients"}),
        ("[factors]\nclients = [1, 2]", {"factors.clients"}),
        (f"[load]\nhosts = {['local'] * 65}", {"load.hosts"}),
        (
            '[load]\nhosts = [\'{"kind": "ssh", "address": "a", "name": "../x"}\']',
            {"load.hosts.0"},
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, keys: set[str]) -> None:
    with pytest.raises(StudyProblems) as caught:
        read(tmp_path, text)
    found = {problem.key for problem in caught.value.problems}
    assert keys <= found or {key.replace("factors.", "load.") for key in keys} <= found


def test_the_host_of_the_target_is_no_option_of_its_plugin(tmp_path: Path) -> None:
    study = read(tmp_path, '[target]\nhost = "root@server"\npath = "/tank"')
    assert study.cells[0].as_data()["target"]["path"] == "/tank"
    assert target_host(study.file) == "root@server"
    assert target_host(study.file, Changes(target={"host": "local"})) == "local"
    study.file.write_text("[target]\nhost = 7\n" + WORKLOAD)
    with pytest.raises(StudyError, match=r"target\.host is not a text"):
        target_host(study.file)
    study.file.write_text("target = 3\n")
    assert target_host(study.file) is None
