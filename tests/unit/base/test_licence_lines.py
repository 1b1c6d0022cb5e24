# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence, and the script adds the line where it is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import spdx


@pytest.mark.parametrize(
    ("text", "suffix", "expected"),
    [
        ("x = 1\n", ".py", "# SPDX-License-Identifier: Apache-2.0\nx = 1\n"),
        ("#!/bin/sh\ntrue\n", "", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\ntrue\n"),
        ("//! Docs\n", ".rs", "// SPDX-License-Identifier: Apache-2.0\n//! Docs\n"),
        ("a {}\n", ".css", "/* SPDX-License-Identifier: Apache-2.0 */\na {}\n"),
    ],
)
def test_a_licence_line_is_a_comment_at_the_begin(text: str, suffix: str, expected: str) -> None:
    assert not spdx.has_line(text)
    assert spdx.with_line(text, suffix) == expected
    assert spdx.has_line(expected)


def test_source_files_without_a_licence_line_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "notes.txt").write_text("words\n")
    monkeypatch.setattr(spdx, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["spdx.py"])
    assert spdx.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["a.py", "tool"]
    monkeypatch.setattr(sys, "argv", ["spdx.py", "--add"])
    assert spdx.main() == 0
    monkeypatch.setattr(sys, "argv", ["spdx.py"])
    assert spdx.main() == 0
