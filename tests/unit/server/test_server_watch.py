# SPDX-License-Identifier: Apache-2.0
"""The watch over alerts of a growing recording: what is raised, what is then done, and what can't
be watched."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from iolab.base.clock import FakeClock
from iolab.base.errors import IolabError, UsageError
from iolab.output.server.alerts.alert import Alert, AlertLine
from iolab.output.server.alerts.commands import Commands, read_commands
from iolab.output.server.alerts.watch import LogFile, Watch
from iolab.output.server.base.json_store import JsonStore
from iolab.output.server.base.models import PercentilesAnswer
from iolab.output.server.base.store import Store
from iolab.output.server.http.actions import AppState
from iolab.output.server.queries.answers import ask
from iolab.recordings.ask.engine.engine import Halted
from iolab.recordings.ask.kept import manage
from iolab.recordings.store.write.writer import RecordingWriter
from support.golden import Golden
from support.recordings import SECOND, START, events
from support.waiting import PATIENCE, until

API = "/api/v1"


def plain(**changes: Any) -> dict[str, Any]:
    return {
        "name": "busy",
        "recording": "live",
        "statistic": "io.ops",
        "percentile": "",
        "exceeds": 500,
        "falls_below": None,
        "for_seconds": 2,
        "only_during": "",
        "repost_minutes": 0,
        "also_when_clear": True,
        "actions": [],
        **changes,
    }


class Growing:
    """A recording that is being written; `second` adds one with so many events."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = RecordingWriter.create(
            path, host="h", clock="realtime", origin={"kind": "record"}, system=FakeClock(START)
        )
        self.seconds = 0

    def second(self, many: int) -> None:
        if many:
            self._writer.append_events(
                events(many, self.seconds, start_ns=START + self.seconds * SECOND, per_s=many)
            )
        self.seconds += 1

    def close(self) -> None:
        self._writer.close()


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    found = Growing(tmp_path / "live")
    found.second(10)
    yield found
    found.close()


Watched = Callable[..., Watch]


@pytest.fixture
def watch_of(growing: Growing, tmp_path: Path) -> Watched:
    store = Store([growing.path])

    def make(commands: Commands | None = None, **options: Any) -> Watch:
        return Watch(
            store,
            JsonStore(tmp_path / "alerts", Alert, "alert", 3),
            LogFile(tmp_path / "log/alerts.jsonl"),
            commands,
            **options,
        )

    return make


def said(watch: Watch) -> list[tuple[str, str]]:
    return [(line.name, line.event) for line in watch.log.latest().lines]


def test_a_question_that_ends_with_the_service_is_no_problem_of_its_alert(
    growing: Growing, watch_of: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watch_of()
    watch.put("busy", Alert.model_validate(plain()))
    watch.look()
    for _ in range(3):
        growing.second(400)

    def halted(*_: object, **__: object) -> None:
        raise Halted("the question was given up")

    monkeypatch.setattr("iolab.output.server.alerts.watch.query", halted)
    watch.look()
    assert watch.list_alerts().alerts[0].problem == ""
    monkeypatch.undo()
    watch.look()
    assert watch.list_alerts().alerts[0].value is not None, "it was not judged before"


@pytest.mark.slow
def test_what_grows_is_judged_second_by_second(growing: Growing, watch_of: Watched) -> None:
    watch = watch_of()
    watch.put("busy", Alert.model_validate(plain()))
    watch.put("idle", Alert.model_validate(plain(name="idle", exceeds=None, falls_below=50)))
    for many in (1, 1, 1, *[400] * 6):
        growing.second(many)
        watch.look()
    assert said(watch) == [("idle", "raised"), ("busy", "raised"), ("idle", "clear")]
    busy = watch.list_alerts().alerts[0]
    assert (busy.state, busy.unit, busy.problem) == ("raised", "1/s", "")
    assert busy.value is not None
    assert busy.value > 500
    assert busy.sentence == "io.ops exceeds 500 for at least 2 s, also when clear"
    before = len(said(watch))
    watch.look()
    assert len(said(watch)) == before, "what was judged is not judged again"


def test_alerts_survive_the_service(growing: Growing, watch_of: Watched, tmp_path: Path) -> None:
    watch_of().put("busy", Alert.model_validate(plain()))
    (tmp_path / "alerts/bad.json").write_text("{")
    again = watch_of()
    assert [each.alert.name for each in again.list_alerts().alerts] == ["busy"]
    again.remove("busy")
    assert again.list_alerts().alerts == watch_of().list_alerts().alerts == []
    with pytest.raises(UsageError, match="no alert"):
        again.remove("busy")


def test_what_is_at_rest_is_not_judged(growing: Growing, watch_of: Watched) -> None:
    watch = watch_of()
    watch.put("busy", Alert.model_validate(plain(exceeds=0, for_seconds=1)))
    for _ in range(5):
        growing.second(100)
    growing.close()
    watch.look()
    [found] = watch.list_alerts().alerts
    assert (found.state, found.problem) == ("unknown", "nothing is being recorded")
    assert said(watch) == []


def test_a_command_is_told_what_happened(
    growing: Growing, watch_of: Watched, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    commands = Commands(
        {"tell": ("/bin/sh", "-c", f'env | grep ^IOLAB_ > "{out}.part" && mv "{out}.part" "{out}"')}
    )
    watch = watch_of(commands)
    evil = 'io.ops[process!="$(touch pwned)"]'
    watch.put(
        "busy",
        Alert.model_validate(
            plain(
                statistic=evil,
                for_seconds=1,
                exceeds=0,
                actions=[{"do": "command", "name": "tell"}],
            )
        ),
    )
    for _ in range(5):
        growing.second(400)
    watch.look()
    until(out.exists, "the command's words")
    facts = dict(line.split("=", 1) for line in out.read_text().splitlines())
    # the environment of the tests is inherited
    facts = {name: value for name, value in facts.items() if name not in os.environ}
    assert facts.keys() == {
        f"IOLAB_{name}" for name in ("ALERT", "EVENT", "RECORDING", "STATISTIC", "VALUE", "WORDS")
    }
    assert (facts["IOLAB_ALERT"], facts["IOLAB_EVENT"], facts["IOLAB_RECORDING"]) == (
        "busy",
        "raised",
        "live",
    )
    assert facts["IOLAB_STATISTIC"] == evil
    assert float(facts["IOLAB_VALUE"]) > 0
    commands.close()


def test_a_command_that_hangs_is_not_started_twice() -> None:
    commands = Commands({"hang": ("/bin/sleep", "1000"), "none": ("/no/such/program",)})
    assert commands.run("hang", {}) == ""
    assert commands.run("hang", {}) == "command 'hang' still runs"
    assert "can't be started" in commands.run("none", {})
    assert commands.run("other", {}) == "there is no command 'other'"
    commands.close()
    assert commands._running["hang"].poll() == -signal.SIGKILL
    assert commands.run("hang", {}) == ""
    commands.close()


def test_a_command_that_can_not_be_run_is_in_the_log(growing: Growing, watch_of: Watched) -> None:
    watch = watch_of(Commands({"none": ("/no/such/program",)}))
    watch.put(
        "busy",
        Alert.model_validate(
            plain(for_seconds=1, exceeds=0, actions=[{"do": "command", "name": "none"}])
        ),
    )
    for _ in range(5):
        growing.second(400)
    watch.look()
    assert said(watch) == [("busy", "raised"), ("busy", "problem")]


def test_a_statistic_is_kept_for_a_while(growing: Growing, watch_of: Watched) -> None:
    now = [START]
    watch = watch_of(now=lambda: now[0], wait_s=0.0)
    watch.put(
        "busy",
        Alert.model_validate(
            plain(
                for_seconds=1,
                exceeds=0,
                actions=[{"do": "record", "statistic": "io.ops[process]", "minutes": 5}],
            )
        ),
    )
    for _ in range(5):
        growing.second(400)
    watch.look()
    assert [each["statistic"] for each in manage.list_kept(growing.path)] == ["io.ops[process]"]
    [definition] = json.loads((growing.path / "histograms/keep.json").read_text())["statistics"]
    assert (definition["until_ns"], definition["pauses"]) == (START + 300 * SECOND, []), (
        "it ends though nobody watches then"
    )


def test_what_is_kept_for_good_stays_so(growing: Growing, watch_of: Watched) -> None:
    manage.add(growing.path, ["io.ops[process]"], wait_s=0.0)
    watch = watch_of(wait_s=0.0)
    watch.put(
        "busy",
        Alert.model_validate(
            plain(
                for_seconds=1,
                exceeds=0,
                actions=[{"do": "record", "statistic": "io.ops[process]", "minutes": 5}],
            )
        ),
    )
    for _ in range(5):
        growing.second(400)
    watch.look()
    assert said(watch) == [("busy", "raised")]
    [definition] = json.loads((growing.path / "histograms/keep.json").read_text())["statistics"]
    assert (definition["until_ns"], definition["pauses"]) == (None, [])


def raised(growing: Growing, watch: Watch, **changes: Any) -> None:
    """Watch for what is there at once."""
    watch.put("busy", Alert.model_validate(plain(**changes)))
    for _ in range(6):
        growing.second(600)
    watch.look()
    assert said(watch) == [("busy", "raised")]


def test_what_was_raised_goes_on_after_a_passing_problem(
    growing: Growing, watch_of: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watch_of()
    raised(growing, watch)
    with monkeypatch.context() as patched:

        def broken(*_: Any, **__: Any) -> None:
            raise IolabError("can't be read")

        patched.setattr("iolab.output.server.alerts.watch.query", broken)
        growing.second(600)
        watch.look()
        assert (watch.list_alerts().alerts[0].state, watch.list_alerts().alerts[0].problem) == (
            "unknown",
            "can't be read",
        )
    for _ in range(6):
        growing.second(1)
        watch.look()
    assert said(watch) == [("busy", "raised"), ("busy", "clear")]


def test_what_was_raised_when_recording_ended_is_said(growing: Growing, watch_of: Watched) -> None:
    now = [START]
    watch = watch_of(now=lambda: now[0])
    raised(growing, watch)
    growing.close()
    watch.look()
    assert len(said(watch)) == 1, "it may go on"
    for _ in range(3):
        now[0] += 10 * SECOND
        watch.look()
    assert said(watch) == [("busy", "raised"), ("busy", "problem")]
    assert "nothing is being recorded" in watch.log.latest().lines[-1].words
    assert watch.list_alerts().alerts[0].since_ns == START


def test_what_is_raised_when_the_watch_ends_is_said(growing: Growing, watch_of: Watched) -> None:
    watch = watch_of()
    raised(growing, watch)
    over = threading.Event()
    over.set()
    watch.run(over)
    assert said(watch) == [("busy", "raised"), ("busy", "problem")]


def test_a_second_that_is_not_looked_at_breaks_what_is_pending(
    growing: Growing, watch_of: Watched
) -> None:
    watch = watch_of()
    watch.put("busy", Alert.model_validate(plain(for_seconds=30)))
    for _ in range(9):
        growing.second(600)
    watch.look()
    assert watch.list_alerts().alerts[0].state == "pending"
    for _ in range(40):
        growing.second(600)
    watch.look()
    assert said(watch) == [("busy", "raised")]
    assert watch.log.latest().lines[0].time_ns
    assert watch.list_alerts().alerts[0].since_ns >= START + 46 * SECOND, (
        "30 s from where it was looked at again"
    )


def test_a_fault_at_one_alert_ends_no_other(
    growing: Growing, watch_of: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watch_of()
    watch.put("another", Alert.model_validate(plain(name="another", statistic="io.bytes")))
    from iolab.recordings.ask.query import query

    def faulty(opened: Any, statistic: Any, **words: Any) -> Any:
        if str(statistic) == "io.bytes":
            raise KeyError("a fault")
        return query(opened, statistic, **words)

    monkeypatch.setattr("iolab.output.server.alerts.watch.query", faulty)
    raised(growing, watch)
    assert "KeyError('a fault')" in watch.list_alerts().alerts[0].problem


def test_an_alert_that_is_removed_meanwhile_does_no_harm(
    growing: Growing, watch_of: Watched, tmp_path: Path
) -> None:
    watch = watch_of()
    alert = Alert.model_validate(plain())
    (tmp_path / "log").write_text("a file where the log's directory was")
    watch._line(alert, "raised", 1.0, "words")
    assert watch.list_alerts().alerts == []


@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (("/bin/sh", "-c", "exit 7"), "command 'page' failed with exit code 7"),
        (("/bin/sh", "-c", "kill -TERM $$"), "command 'page' was ended by signal 15"),
        (("/bin/sleep", "1000"), "command 'page' took more than 0.2 s and was ended"),
        (("/bin/true",), ""),
    ],
)
def test_a_command_that_fails_is_in_the_log(
    words: tuple[str, ...],
    said_of_it: str,
    growing: Growing,
    watch_of: Watched,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "iolab.output.server.alerts.commands.LONGEST_S", 0.2 if "sleep" in words[0] else PATIENCE
    )
    watch = watch_of(Commands({"page": words}))
    watch.put(
        "busy",
        Alert.model_validate(
            plain(for_seconds=1, exceeds=0, actions=[{"do": "command", "name": "page"}])
        ),
    )
    for _ in range(5):
        growing.second(400)
    watch.look()
    deadline = time.monotonic() + (PATIENCE if said_of_it else 0.5)
    while len(said(watch)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [line.words for line in watch.log.latest().lines[1:]] == (
        [said_of_it] if said_of_it else []
    )


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"statistic": "io.opps"}, 400),
        ({"statistic": "io.ops[latency]"}, 400),
        ({"statistic": "io.ops[op]"}, 400),
        ({"recording": "../x"}, 404),
        ({"recording": ""}, 400),
        ({"only_during": "always"}, 400),
        ({"actions": [{"do": "command", "name": "sh"}]}, 400),
        ({"actions": [{"do": "shell", "name": "sh"}]}, 400),
        ({"name": "other"}, 400),
        ({"name": "log"}, 400),
        ({"actions": [{"do": "record", "statistic": "io.opps", "minutes": 1}]}, 400),
        ({"exceeds": None}, 400),
    ],
)
def test_what_can_not_be_watched(
    changes: dict[str, Any], status: int, client: TestClient, state: AppState, golden: Golden
) -> None:
    answer = client.put(f"{API}/alerts/busy", json=plain(recording="rec") | changes)
    assert answer.status_code == status
    golden("server/watch-refused", f"{changes}\n{answer.json()['error']}")
    assert client.get(f"{API}/alerts").json() == {"schema": 1, "alerts": [], "commands": []}
    assert not (state.worksheets.directory.parent / "alerts").exists()


def test_alerts_over_the_service(client: TestClient) -> None:
    answer = client.put(f"{API}/alerts/busy", json=plain(recording="rec"))
    assert answer.status_code == 200
    assert client.get(f"{API}/alerts").json() == answer.json()
    assert answer.json()["alerts"][0]["alert"] == plain(recording="rec")
    assert client.get(f"{API}/alerts/log").json() == {"schema": 1, "lines": [], "left": 0}
    assert client.delete(f"{API}/alerts/busy").status_code == 204
    assert client.delete(f"{API}/alerts/busy").status_code == 404


def test_no_alert_is_called_as_the_log_is(client: TestClient, state: AppState) -> None:
    for method in ("PUT", "DELETE", "OPTIONS"):
        answer = client.request(
            method, f"{API}/alerts/log", json=plain(recording="rec", name="log")
        )
        assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (
            405,
            {"GET", "HEAD"},
        )
    saved = state.watch.list_alerts().alerts
    assert (
        client.put(f"{API}/alerts/Log", json=plain(recording="rec", name="Log")).status_code == 200
    )
    assert [each.alert.name for each in state.watch.list_alerts().alerts] == [
        *[each.alert.name for each in saved],
        "Log",
    ]


def test_there_are_so_many_alerts(watch_of: Watched) -> None:
    watch = watch_of()
    for name in ("a", "b", "c"):
        watch.put(name, Alert.model_validate(plain(name=name)))
    with pytest.raises(UsageError, match="are the most"):
        watch.put("d", Alert.model_validate(plain(name="d")))


def line(number: int) -> AlertLine:
    return AlertLine.model_validate(
        {"time_ns": number, "name": "a", "event": "raised", "value": None, "words": "x" * 145}
    )


def test_the_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.output.server.alerts.watch.LARGEST", 10_000)
    monkeypatch.setattr("iolab.output.server.alerts.watch.MOST_LINES", 5)
    log = LogFile(tmp_path / "state" / "alerts.jsonl")
    assert log.latest().lines == []
    for number in range(100):
        log.write(line(number))
    sizes = {path.name: path.stat().st_size for path in log.path.parent.iterdir()}
    assert set(sizes) == {"alerts.jsonl", "alerts.jsonl.1"}
    assert max(sizes.values()) < 11_000
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    found = log.latest()
    assert [each.time_ns for each in found.lines] == list(range(95, 100))
    # what has been moved aside just now is no less the latest
    held = sum(path.read_bytes().count(b"\n") for path in log.path.parent.iterdir())
    assert found.left == held - 5 > 0
    log.path.replace(log.path.with_name("alerts.jsonl.1"))
    assert [each.time_ns for each in log.latest().lines] == list(range(95, 100))


@pytest.mark.parametrize(
    "damage", [b"{\n", b"\xff\xfe\n", b'{"time_ns": 1}\n', b"null\n", b'{"time_ns": 3, "name"']
)
def test_damaged_lines_of_the_log_are_left_out(damage: bytes, tmp_path: Path) -> None:
    log = LogFile(tmp_path / "alerts.jsonl")
    log.write(line(1))
    with log.path.open("ab") as file:
        file.write(damage)
    assert [each.time_ns for each in log.latest().lines] == [1]


def test_a_log_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IolabError, match="can't be written"):
        LogFile(tmp_path / "file" / "log").write(line(1))


def test_commands_come_from_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "commands.toml"
    path.write_text('page = ["/bin/true", "now"]\n"night shift" = ["/bin/false"]\n')
    path.chmod(0o600)
    assert read_commands(path).names == ["night shift", "page"]
    path.chmod(0o622)
    with pytest.raises(UsageError, match="others could change"):
        read_commands(path)


@pytest.mark.parametrize(
    "text",
    [
        "page",
        "page = 'rm -rf'",
        "page = []",
        "page = ['true']",
        "page = ['/bin/true', 1]",
        "[page]\nx = 1",
        "'../x' = ['/bin/true']",
        "\x00",
        'page = ["/bin/\\u0000"]',
    ],
)
def test_what_is_no_file_of_commands(text: str, tmp_path: Path) -> None:
    path = tmp_path / "commands.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(UsageError):
        read_commands(path)
    with pytest.raises(UsageError, match="can't be read"):
        read_commands(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_commands_of_someone_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "commands.toml"
    path.write_text('page = ["/bin/true"]\n')
    path.chmod(0o600)
    os.chown(path, 12345, 12345)
    with pytest.raises(UsageError, match="others could change"):
        read_commands(path)


@pytest.mark.parametrize("percentile", ["p50", "p99", "max"])
def test_a_percentile_is_watched_as_the_page_draws_it(
    growing: Growing, watch_of: Watched, percentile: str
) -> None:
    """The values of the preview are the lines of the map, and the watch says what it previews."""
    for many in (200, 200, 0, 200, 200, 200, 10):
        growing.second(many)
    watch = watch_of()
    lines = ask(
        Store([growing.path]),
        {"statistic": "io.ops[latency]", "interval": "1s", "drawn": "percentiles", "from": "1s"},
    )
    assert isinstance(lines, PercentilesAnswer)
    line = next(line.values for line in lines.keys if line.key == percentile)
    low = min(value for value in line[:6] if value is not None) - 1
    alert = Alert.model_validate(
        plain(statistic="io.ops[latency]", percentile=percentile, exceeds=low)
    )
    found = watch.preview(alert, START + SECOND, START + 7 * SECOND)
    shift = (lines.t0_ns - found.t0_ns) // SECOND
    assert found.unit == "ns"
    assert found.values[shift : shift + 6] == line[: 6 - shift]
    assert found.values[2] is None
    # the second without I/O breaks what is pending: raised in the second after two more
    spans = [(span.from_ns, span.until_ns) for span in found.raised]
    assert spans == [(START + 2 * SECOND, START + 7 * SECOND)]
    watch.put("busy", alert)
    watch.look()
    (raised,) = watch.log.latest().lines
    assert (raised.event, raised.recording, raised.unit) == ("raised", "live", "ns")
    assert raised.at_ns is not None
    assert raised.value in line
    assert f"{percentile} of io.ops[latency] exceeds" in raised.words


@pytest.mark.parametrize(
    "changes",
    [
        {"percentile": "p99"},
        {"percentile": "p99", "statistic": "io.ops[offset]"},
        {"percentile": "p99", "statistic": "io.bytes[latency]"},
        {"statistic": "io.ops[latency]"},
    ],
)
def test_what_has_no_percentile(
    growing: Growing, watch_of: Watched, changes: dict[str, Any]
) -> None:
    with pytest.raises(UsageError):
        watch_of().preview(Alert.model_validate(plain(**changes)), START, START + SECOND)
