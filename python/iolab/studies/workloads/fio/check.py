# SPDX-License-Identifier: Apache-2.0
"""Having fio itself look at jobs without doing I/O."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from iolab.base.errors import RunError
from iolab.hosts.base.host import Host

from .jobfile import Section
from .names import KNOWN
from .options import job_text

_MOST_CHECKED = 1000


def check_jobs(host: Host, jobs: Mapping[str, Sequence[Section]]) -> None:
    """Have fio parse every distinct section of these jobs (a name for messages to each), all in one
    file.

    Of options that iolab does not know only the names are looked up: what parsing their values does
    is unknown, and the user may not have agreed to them yet. RunError names the first job that fio refuses.
    """
    _check_engines(host, jobs)
    _check_names(host, jobs)
    names: list[str] = []
    sections: list[str] = []
    section_names: set[str] = set()
    for name, section in ((name, section) for name, listed in jobs.items() for section in listed):
        # fio counts numjobs against its limit of jobs per file even when it only parses.
        options = {
            key: value
            for key, value in section.options.items()
            if key in KNOWN and (key != "numjobs" or not str(value).isdigit())
        }
        body = job_text(options, section=f"cell{len(names)}")
        if body.partition("\n")[2] in section_names:
            continue
        section_names.add(body.partition("\n")[2])
        names.append(name)
        sections.append(body)
        if len(names) == _MOST_CHECKED:
            break
    # A file in memory: nothing of it is left when iolab is killed meanwhile (memfd_create(2)).
    with open(os.memfd_create("job.fio"), "w", encoding="utf-8") as file:  # noqa: PTH123 - it has no path but its descriptor's
        file.write("\n".join(sections))
        file.flush()
        answer = host.run(
            ["fio", "--parse-only", f"/proc/{os.getpid()}/fd/{file.fileno()}"], timeout=300
        )
    if answer.exit_code:
        raise RunError(
            _refusal(answer.stdout + "\n" + answer.stderr, names),
            hint="`fio --cmdhelp` lists what this fio knows",
        )


def _check_engines(host: Host, jobs: Mapping[str, Sequence[Section]]) -> None:
    """RunError for an engine that this fio was built without, which it only finds out when it runs."""
    engines = {
        line.strip()
        for line in host.run(["fio", "--enghelp"]).stdout.splitlines()
        if line[:1].isspace()
    }
    for name, section in ((name, section) for name, listed in jobs.items() for section in listed):
        engine = str(section.options.get("ioengine", ""))
        if (
            engines
            and engine
            and engine not in engines
            and host.run(["fio", f"--enghelp={engine}"]).exit_code
        ):
            raise RunError(
                f"this fio has no ioengine '{engine}' (of {name})",
                where=host.name,
                hint="`fio --enghelp` lists those it has; some come in packages of their own",
            )


def _check_names(host: Host, jobs: Mapping[str, Sequence[Section]]) -> None:
    """RunError for an option that iolab does not know and this fio does not have."""
    looked_up: set[tuple[str, str]] = set()
    for job, section in ((name, section) for name, listed in jobs.items() for section in listed):
        engine = str(section.options.get("ioengine", "psync"))
        for option in section.options.keys() - KNOWN:
            if (engine, option) in looked_up:
                continue
            looked_up.add((engine, option))
            answers = [
                host.run(["fio", f"--cmdhelp={option}"]).stdout,
                host.run(["fio", f"--enghelp={engine},{option}"]).stdout,
            ]
            # of an unknown name fio describes the closest one
            described = re.compile(rf"^\s*(alias: )?{re.escape(option)}(: |$)", re.MULTILINE)
            if not any(described.search(answer) for answer in answers):
                raise RunError(
                    f"this fio has no option '{option}' (of {job})",
                    where=host.name,
                    hint="`fio --cmdhelp` lists what this fio knows",
                )


def _refusal(output: str, names: list[str]) -> str:
    """fio's complaint with the cell it is about, from `Bad option <rwx=3>`, `fio: job cell3
    dropped`."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    dropped = re.search(r"job cell(\d+) dropped", output)
    cell = f" of {names[int(dropped[1])]}" if dropped and int(dropped[1]) < len(names) else ""
    words = [
        line
        for line in lines
        if "dropped" not in line and "valid values" not in line and not line.startswith(":")
    ]
    return f"fio refuses the job{cell}: {'. '.join(words[:3]) or 'no reason given'}"
