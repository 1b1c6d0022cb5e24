# SPDX-License-Identifier: Apache-2.0
"""A sink that adds share and user to the system calls of Samba's processes: what smbstatus and
testparm print on the recorded host.

They are in the columns `job` and `device`, which system calls do not have otherwise. Samba has a
process for each connection. `smbstatus --json` (Samba 4.17) has the users and the shares of each
process. `testparm -s` has the paths of shares, so that a file's name implies its share even where
the connection ended before smbstatus was called."""

from __future__ import annotations

import ipaddress
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from .host_shell import HostShell
from .intake import Sink

SCRIPT = r"""PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/samba/bin; export PATH LC_ALL=C

while read -r pid; do
  file=

  # A server that runs already: any of its processes.

  if [ "$pid" = any ]; then
    pid=

    for process in /proc/[0-9]*; do
      name=
      [ ! -r "$process/comm" ] || read -r name <"$process/comm"
      [ "$name" != smbd ] || { pid=${process#/proc/}; break; }
    done

    [ -n "$pid" ] || { echo =end; continue; }
  fi

  # Only a server that root started chooses the configuration: programs of root read it here.

  exe=$(readlink "/proc/$pid/exe" 2>/dev/null)
  mounts=$(readlink "/proc/$pid/ns/mnt" 2>/dev/null)
  user=$(sed -n 's/^Uid:[[:space:]]*\([0-9]*\)[[:space:]].*/\1/p' "/proc/$pid/status" 2>/dev/null)

  case ${exe##*/} in smbd | "smbd (deleted)")
    if [ "$user" = 0 ] && [ "$mounts" = "$(readlink /proc/self/ns/mnt)" ]; then
      file=$(tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n \
        -e 's/^--configfile=//p' -e 's/^-s\(.\)/\1/p' -e '/^-s$/{n;p;}' -e '/^--configfile$/{n;p;}' | sed -n 1p)
    fi
  esac
  case $file in /*) ;; *) file= ;; esac

  printf '=config %s\n' "$file"

  if ! command -v smbstatus >/dev/null; then echo =missing
  elif [ "$(id -u)" != 0 ]; then echo =denied
  else
    echo =status
    if [ -n "$file" ]; then set -- -s "$file"; else set --; fi

    timeout -k 1 10 smbstatus "$@" --json 2>/dev/null
    printf '\n=exit %s\n' $?
  fi

  if command -v testparm >/dev/null; then
    if [ -n "$file" ]; then set -- "$file"; else set --; fi

    shares=$(timeout -k 1 10 testparm -s "$@" 2>/dev/null)
    printf '=shares %s\n' $?
    printf '%s\n' "$shares" | while IFS= read -r line; do
      printf '%s\n' "$line"
      path=${line#"	path = "}
      case $path in /*%*) ;; /*) printf '\treal = %s\n' "$(readlink -m -- "$path")" ;; esac
    done
  fi
  echo =end
done
"""
"""Run by a shell on the host: each line of input, the number of a process of Samba, has one answer.
It ends with its input. The answer to `ANY` is empty where no server runs."""
ANY = "any"

LONGEST = 1 << 24
"""Bytes of an answer; a longer one is not understood."""
MOST_SHARES = 4096
_LONGEST_NAME = 256
_LATE = ("124", "137")
"""Exit codes of `timeout` for a command that did not end."""
_USERS = "users of Samba's connections are unknown"
_SHARES = "shares of Samba's files are unknown"
_TRY = "run 'smbstatus --json' as root on the recorded host to see why"
MISSING = f"smbstatus is not installed: {_USERS}; install samba-common-bin or samba"
DENIED = f"smbstatus needs root: {_USERS}; record as root, without sudo"
LATE = f"smbstatus did not end within 10 s: {_USERS}; {_TRY}"
FAILED = f"smbstatus failed (exit code %s): {_USERS}; {_TRY} (iolab needs Samba 4.17 or later)"
FOREIGN = f"the output of smbstatus is not understood: {_USERS}; Samba 4.17 or later prints JSON"
SILENT = f"smbstatus does not answer: {_USERS}, and {_SHARES}; {_TRY}"
NO_SHELL = f"the shell for smbstatus cannot be started (%s): {_USERS}, and {_SHARES}"
SHARES_MISSING = f"testparm is not installed: {_SHARES}; install samba-common-bin"
SHARES_LATE = f"testparm did not end within 10 s: {_SHARES}; run 'testparm -s' to see why"
SHARES_FAILED = f"testparm failed (exit code %s): {_SHARES}; run 'testparm -s' to see why"
_IPC = "IPC$"
_VARIABLE = re.compile(r"%(\$\([^)]*\)|.)")
_NOT_SHARES = ("global", "printers", "print$")


@dataclass
class Connection:
    """A process of Samba: its client's address ("" where unknown), its users, its shares."""

    client: str = ""
    users: set[str] = field(default_factory=set)
    shares: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Answer:
    """What the script printed for a process.

    Attributes:
        config: the configuration file. It is "" for the usual one.
        connections: by process number.
        paths: (share, path). A path may have Samba's variables, such as %U.
        trouble: why users are unknown; None where they are known.
        share_trouble: why shares are unknown; None where they are known.
    """

    config: str
    connections: Mapping[int, Connection]
    paths: tuple[tuple[str, str], ...]
    trouble: str | None
    share_trouble: str | None = None


def parse_answer(text: str) -> Answer:
    """Parse an answer without its last line. Text that is not understood is a trouble, no error."""
    parts: dict[str, list[str]] = {}
    words: dict[str, str] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word in ("=config", "=missing", "=denied", "=status", "=exit", "=shares"):
            words[word] = rest
            lines = parts.setdefault(word, [])
        else:
            lines.append(line)
    connections: dict[int, Connection] = {}
    paths = list(_share_paths(parts.get("=shares", ())))
    share_trouble = None if paths else _share_trouble(words.get("=shares"))
    exit_code = words.get("=exit", "0")
    trouble = MISSING if "=missing" in parts else DENIED if "=denied" in parts else None
    if trouble is None and exit_code in _LATE:
        trouble = LATE
    if trouble is None:
        try:
            status = json.loads("\n".join(parts.get("=status", ())))
            connections = _connections(status)
            paths += _open_paths(status, connections)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            connections = {}
            trouble = FOREIGN if exit_code == "0" else FAILED % exit_code
    unique = tuple(dict.fromkeys(paths))[:MOST_SHARES]
    return Answer(words.get("=config", ""), connections, unique, trouble, share_trouble)


def _share_trouble(exit_code: str | None) -> str | None:
    """Why testparm printed no shares, by its exit code."""
    if exit_code is None:
        return SHARES_MISSING
    if exit_code in _LATE:
        return SHARES_LATE
    return None if exit_code in ("", "0") else SHARES_FAILED % exit_code


def _name(value: object) -> str:
    """A name that Arrow can store: JSON may have surrogates, and names of any length."""
    return str(value).encode("utf-8", "backslashreplace").decode()[:_LONGEST_NAME]


def _connections(status: Mapping[str, Any]) -> dict[int, Connection]:
    connections: dict[int, Connection] = {}
    for session in status["sessions"].values():
        connection = connections.setdefault(_pid(session), Connection())
        connection.users.add(_name(session["username"]))
        connection.client = _address(str(session.get("hostname", "")))
    for tree in status.get("tcons", {}).values():
        if tree["service"] != _IPC:
            connections.setdefault(_pid(tree), Connection()).shares.add(_name(tree["service"]))
    return connections


def _pid(of: Mapping[str, Any]) -> int:
    return int(of["server_id"]["pid"])


def _address(text: str) -> str:
    """`ipv4:10.0.0.7:50000`, `ipv6:fd00::7:50000`: the address, as the probe prints it."""
    _, _, rest = text.partition(":")
    try:
        address = ipaddress.ip_address(rest.rpartition(":")[0].strip("[]"))
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _open_paths(
    status: Mapping[str, Any], connections: Mapping[int, Connection]
) -> Iterator[tuple[str, str]]:
    """Paths of shares of processes that have one share: paths of homes have no other source."""
    for file in status.get("open_files", {}).values():
        for use in file["opens"].values():
            connection = connections.get(_pid(use))
            if connection is not None and len(connection.shares) == 1:
                [share] = connection.shares
                yield share, str(file["service_path"])


def _share_paths(lines: Any) -> Iterator[tuple[str, str]]:
    share = ""
    for line in lines:
        if line.startswith("[") and line.endswith("]"):
            share = _name(line[1:-1])
        elif share and share.lower() not in _NOT_SHARES:
            name, equals, path = line.strip("\t").partition(" = ")
            if equals and name in ("path", "real") and path.startswith("/"):
                yield share, path


class Sessions:
    """What is known of Samba's connections and shares, from answers as they come."""

    def __init__(self) -> None:
        self._by_config: dict[str, tuple[Answer, Mapping[int, Connection]]] = {}
        self._patterns: list[tuple[str, re.Pattern[str]]] = []

    def learn(self, answer: Answer) -> None:
        """Take an answer; the one before stays for processes that ended since."""
        before = self._by_config.get(answer.config)
        self._by_config[answer.config] = (answer, {} if before is None else before[0].connections)
        patterns = (
            (share, _pattern(path))
            for answer, _ in self._by_config.values()
            for share, path in answer.paths
        )
        self._patterns = [(share, pattern) for share, pattern in patterns if pattern is not None]

    def _connection(self, pid: int, client: str) -> Connection | None:
        """A process's connection; None for a process that had this number before."""
        for answer, before in self._by_config.values():
            connection = answer.connections.get(pid) or before.get(pid)
            if connection is not None:
                return connection if connection.client in ("", client) else None
        return None

    def user(self, pid: int, client: str) -> str | None:
        """The only user of a process's connection with this client."""
        connection = self._connection(pid, client)
        if connection is None or len(connection.users) != 1:
            return None
        return next(iter(connection.users))

    def share(self, pid: int, client: str, file: str) -> str | None:
        """The share with the longest path to a file; of several with this path the connected one."""
        longest, shares = 0, set[str]()
        for share, pattern in self._patterns:
            match = pattern.match(file)
            if match is not None and match.end() >= longest:
                shares = shares if match.end() == longest else set()
                longest = match.end()
                shares.add(share)
        if len(shares) > 1:
            connection = self._connection(pid, client)
            shares &= set() if connection is None else connection.shares
        return shares.pop() if len(shares) == 1 else None


def _pattern(path: str) -> re.Pattern[str] | None:
    """Of a share's path, for the begin of a file's name: a variable is a part of a name.

    None with more than two variables in a name: a match could take very long."""
    head, *rest = _VARIABLE.split(path.rstrip("/"))[::2]
    # adjacent variables are the same as a single variable
    literals = [head, *filter(None, rest[:-1]), *rest[-1:]]
    if any(name.count("\0") > 2 for name in "\0".join(literals).split("/")):
        return None
    return re.compile("[^/]+".join(map(re.escape, literals)) + "(?=/|$)")


SOURCE, PROCESS = "syscall", "smbd"
_WAIT_S = 0.3
"""The longest wait for the answer on a new connection: its first calls have its user too."""
_SOON_S, _LATER_S = 1.0, 30.0
"""Between two calls of smbstatus: for connections without a user, and for the others."""
_PATIENCE_S = 25.0
"""Without an answer for this time the shell is ended."""
_MOST = 1 << 14
"""Processes without a user that are remembered."""


class SmbSink(Sink):
    """Adds share and user to events. The shell on the host starts at the first event of Samba."""

    def __init__(
        self,
        sink: Sink,
        begin: Callable[[], Sequence[str]],
        notice: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`begin`: the argument list of a shell that runs `SCRIPT` on the recorded
        host; `notice`: takes what a user should know, each once."""
        super().__init__(sink)
        self._begin, self._notice, self._now = begin, notice, now
        self._sessions = Sessions()
        self._shell: HostShell | None = None
        self._text = b""
        self._waits = True
        self._asked_at: float | None = None
        """When the question was sent that has no answer yet."""
        self._again_at = self._refresh_at = 0.0
        self._is_early = False
        """Whether the question without an answer was `ANY`."""
        self._retries: dict[int, tuple[float, float]] = {}
        """By number of a process without a user: when to ask again, and the wait after that."""
        self._said: set[str] = set()

    def prepare(self) -> None:
        """Ask for the shares of a server that runs already, without waiting: its next connection has
        them from its first call."""
        self._is_early = self._send(ANY)

    def tick(self, now_ns: int) -> None:
        """Take the answer to `prepare`, then see `Sink`."""
        if self._is_early:
            self._take()
        self._sink.tick(now_ns)

    def append_events(self, batch: pa.RecordBatch) -> None:
        """Add share and user where the batch has calls of Samba, then see `Sink`."""
        self._sink.append_events(self._fill(batch))

    def close(self) -> None:
        """End the shell, then see `Sink`."""
        try:
            self._end()
        finally:
            self._sink.close()

    def _fill(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        processes = batch["process"].dictionary.to_pylist()
        if PROCESS not in processes or batch["source"].dictionary.to_pylist() != [SOURCE]:
            return batch
        numbers = batch["process"].indices.fill_null(-1).to_numpy()
        rows = np.flatnonzero(numbers == processes.index(PROCESS))
        if not len(rows):
            return batch
        pids, pid = np.unique(
            batch["pid"].fill_null(0).to_numpy()[rows].astype(np.int64), return_inverse=True
        )
        clients, client = _names(batch["client"], rows)
        files, file = _names(batch["file"], rows)
        kinds, place = np.unique(
            (pid * len(clients) + client) * len(files) + file, return_inverse=True
        )
        calls = [
            (int(pids[kind // len(files) // len(clients)]),
             clients[kind // len(files) % len(clients)],
             files[kind % len(files)])
            for kind in kinds.tolist()
        ]  # fmt: skip
        self._ask({(number, address) for number, address, _ in calls if address})
        for name, values in (
            ("job", [self._sessions.share(*call) for call in calls]),
            ("device", [self._sessions.user(*call[:2]) if call[1] else None for call in calls]),
        ):
            at = batch.schema.get_field_index(name)
            column = _column(batch.num_rows, rows, place, values)
            batch = batch.set_column(at, batch.schema.field(at), column)
        return batch

    def _ask(self, connections: set[tuple[int, str]]) -> None:
        """Ask about a process where it is unanswered, and take the answer if it comes soon."""
        self._take()
        now = self._now()
        unanswered = [
            pid
            for pid, client in connections
            if self._sessions.user(pid, client) is None
            and max(self._again_at, self._retries.get(pid, (0.0, 0.0))[0]) <= now
        ]
        if (
            self._asked_at is not None
            or not connections
            or not (unanswered or now >= self._refresh_at)
        ):
            return
        if not self._send(str(min(unanswered or [pid for pid, _ in connections]))):
            return
        self._again_at, self._refresh_at = now + _SOON_S, now + _LATER_S
        if len(self._retries) > _MOST:
            self._retries = {}
        for other in unanswered:
            # a process may have no session for long: questions about it become rarer
            wait_s = self._retries.get(other, (0.0, _SOON_S))[1]
            self._retries[other] = (now + wait_s, min(2 * wait_s, _LATER_S))
        if unanswered and self._waits:
            self._take(_WAIT_S)

    def _send(self, line: str) -> bool:
        """Send a question; False where the shell is not there."""
        now = self._now()
        try:
            if self._shell is None:
                self._shell = HostShell(self._begin(), has_input=True)
            self._shell.send(line)
        except OSError as error:
            self._say((NO_SHELL % error.strerror) if self._shell is None else SILENT)
            self._end()
            self._again_at = self._refresh_at = now + _LATER_S
            return False
        self._asked_at = now
        return True

    def _take(self, patience_s: float = 0.0) -> None:
        """Take what the shell printed."""
        if self._shell is None or self._asked_at is None:
            return
        until = self._now() + patience_s
        while True:
            data = self._shell.read(max(0.0, until - self._now()))
            if data is None:
                if self._now() < until:
                    continue
                break
            if not data or len(self._text) > LONGEST:
                self._fail(FOREIGN if data else SILENT)
                return
            self._text += data
            if self._text == b"=end\n":
                self._end()  # no server runs
                return
            if self._text.endswith(b"\n=end\n"):
                self._learn()
                return
        if self._now() - self._asked_at > _PATIENCE_S:
            self._fail(SILENT)

    def _learn(self) -> None:
        answer = parse_answer(self._text.decode("utf-8", "replace").removesuffix("\n=end\n"))
        is_early, self._is_early = self._is_early, False
        self._text, self._asked_at = b"", None
        self._sessions.learn(answer)
        if is_early:
            return  # troubles are named when Samba is used
        # without users there is nothing to wait for; shares may change
        self._waits = answer.trouble is None
        if answer.trouble is not None:
            self._again_at = self._refresh_at
            self._say(answer.trouble)
        if answer.share_trouble is not None:
            self._say(answer.share_trouble)

    def _fail(self, trouble: str) -> None:
        """The shell ended, does not answer, or prints without end."""
        self._end()
        self._again_at = self._refresh_at = self._now() + _LATER_S
        self._say(trouble)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._notice(text)

    def _end(self) -> None:
        shell, self._shell, self._text, self._asked_at = self._shell, None, b"", None
        self._is_early = False
        if shell is not None:
            shell.end(1.0)


def _names(column: pa.DictionaryArray, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """(names, the place of each row's name); the first name is "", of rows without a name."""
    indices = column.indices.fill_null(-1).to_numpy()[rows].astype(np.int64) + 1
    return ["", *column.dictionary.to_pylist()], indices


def _column(
    length: int, rows: np.ndarray, place: np.ndarray, values: Sequence[str | None]
) -> pa.DictionaryArray:
    """A column of names: `values[place]` at these rows, null elsewhere."""
    names = sorted({value for value in values if value is not None})
    numbers = np.array([-1 if value is None else names.index(value) for value in values])
    indices = np.full(length, -1, dtype=np.int32)
    indices[rows] = numbers[place.ravel()]
    return pa.DictionaryArray.from_arrays(
        pa.array(np.maximum(indices, 0), mask=indices < 0), pa.array(names, pa.string())
    )
