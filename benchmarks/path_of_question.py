# SPDX-License-Identifier: Apache-2.0
"""The path of a question through the code: modules of iolab that run, and calls from one of them into
another.

A recording of three segments is made in a temporary directory. Each question is asked once before,
so that modules are loaded, and then of another span, so that its answer is not remembered.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from bench_query import MINUTE_NS, SMALL, START_NS, write_recording

import iolab
from iolab.recordings.ask.query import query
from iolab.recordings.store.read.recording import Recording

ROOT = str(Path(iolab.__file__).parent)
QUESTIONS = ("io.ops", "io.ops[latency]", "io.ops[process]")


def trace(recording: Recording, question: str) -> tuple[int, int]:
    """(modules, calls into another module) of a question."""
    modules: set[str] = set()
    moves = 0

    def called(frame: FrameType, event: str, _: Any) -> None:
        nonlocal moves
        module = frame.f_code.co_filename
        if event != "call" or not module.startswith(ROOT):
            return
        modules.add(module)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(ROOT):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != module:
            moves += 1

    query(recording, question, from_ns=START_NS)
    sys.setprofile(called)
    try:
        query(recording, question, from_ns=START_NS + MINUTE_NS)
    finally:
        sys.setprofile(None)
    return len(modules), moves


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        path = Path(folder) / "recording"
        write_recording(path, 3, SMALL, MINUTE_NS // SMALL)
        for question in QUESTIONS:
            modules, moves = trace(Recording(path), question)
            print(f"{question}: {modules} modules, {moves} calls into another module")


if __name__ == "__main__":
    main()
