# SPDX-License-Identifier: Apache-2.0
"""Whether a study's commands and unknown options may be used: someone has read them, or says so.

A study file may come from anywhere, and its hooks run with the rights of whoever starts it. So the
commands of a text that is new here are shown first. What was agreed to is remembered by a hash of the
text and of what was shown. One changed character asks again, also in a job file. The same holds for
other machines that a text names.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from iolab.base.errors import StudyError
from iolab.base.untrusted_text import visible

from .load import Study


def trust_file(environment: Mapping[str, str] | None = None) -> Path:
    """Where hashes of trusted studies are kept: `$XDG_STATE_HOME/iolab/trusted`, by default below
    `~/.local/state`."""
    variables = os.environ if environment is None else environment
    state = variables.get("XDG_STATE_HOME", "")
    base = (
        Path(state)
        if state.startswith("/")
        else Path(variables.get("HOME") or Path.home()) / ".local" / "state"
    )
    return base / "iolab" / "trusted"


def is_trusted(study: Study) -> bool:
    """Whether the study has no commands and names no other machine, or its very text was agreed to
    before."""
    if not study.consent and not study.hosts:
        return True
    try:
        return _hash(study) in trust_file().read_text("utf-8").split()
    except (OSError, UnicodeDecodeError):
        return False


def remember(study: Study) -> bool:
    """Keep that the study's text was agreed to; False where that can't be written, and will be
    asked again."""
    path = trust_file()
    if is_trusted(study):
        return True
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{_hash(study)}\n")
    except OSError:
        return False
    return True


def require_trust(study: Study, trusted: bool) -> None:
    """StudyError, naming the first commands or hosts, if the study has any that were not confirmed."""
    if trusted or is_trusted(study):
        return
    if not study.consent:
        raise StudyError(
            f"puts load on other hosts: {', '.join(study.hosts[:3])}",
            where=study.file,
            hint="if that is right, say --trust (trusted=True from Python)",
        )
    texts = list(dict.fromkeys(text for _, text in study.consent))
    examples = ", ".join(f"'{text}'" for text in texts[:3]) + (
        f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    )
    raise StudyError(
        f"runs commands or sets options that need trust: {examples}",
        where=study.file,
        hint="read them; then say --trust (trusted=True from Python)",
    )


def describe_commands(study: Study) -> list[str]:
    """`hooks.run.before: sync`, a line for every command and option, then `hosts: ssh:c1` for other machines;
    control characters are escaped, so that what is shown is what runs."""
    lines = [f"{place}: {visible(text)}" for place, text in study.consent]
    return [*lines, *(f"hosts: {visible(word)}" for word in study.hosts)]


def _hash(study: Study) -> str:
    shown = "\n".join(f"{place}: {text}" for place, text in study.consent)
    return hashlib.sha256(f"{study.text}\0{shown}".encode()).hexdigest()
