# SPDX-License-Identifier: Apache-2.0
"""Errors of PyIceberg, its catalog, its store and Arrow as one line each: what failed, why, and what
to do."""

from __future__ import annotations

import contextlib
import errno
import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from iolab.base.errors import ResultsError

LONGEST = 300
"""Characters of the words of a library that a message repeats."""

_LIBRARIES = frozenset(
    (
        "pyiceberg",
        "sqlalchemy",
        "sqlite3",
        "requests",
        "urllib3",
        "boto3",
        "botocore",
        "fsspec",
        "pydantic",
    )
)


@dataclass(frozen=True)
class Fault:
    """A kind of failure of a store.

    Attributes:
        pattern: matches the words of the libraries for it. message: what it means.
        hint: what to do.
    """

    pattern: re.Pattern[str]
    message: str
    hint: str


def _fault(pattern: str, message: str, hint: str) -> Fault:
    return Fault(re.compile(pattern, re.IGNORECASE), message, hint)


_FAULTS = (
    _fault(
        r"no space left|disk is full|quota exceeded|file too large|storagefull|insufficientstorage",
        "the store is full",
        "make room and push again: no row is lost or doubled",
    ),
    _fault(
        r"accessdenied|access_denied|access denied|invalidaccesskeyid|invalid_access_key_id|access key id"
        r"|signaturedoesnotmatch|signature_does_not_match|expiredtoken|invalidtoken"
        r"|unable to locate credentials|partialcredentials|forbidden|\b403\b",
        "the store refuses the credentials",
        "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ~/.aws, or the role of the machine",
    ),
    _fault(
        r"invalid endpoint",
        "the address of the store is not a URL",
        "AWS_ENDPOINT_URL is such as https://s3.example.com",
    ),
    _fault(
        r"nosuchbucket|no_such_bucket|bucket does not exist",
        "the store has no such bucket",
        "create the bucket, or name another one",
    ),
    _fault(
        r"connection was closed|could not connect|connect timeout|read timeout|timed out"
        r"|network_connection|connection refused|connection reset|connection aborted|curlcode"
        r"|name resolution|slowdown|slow_down|serviceunavailable|service_unavailable",
        "the store does not answer",
        "check its address and the network; no row is lost or doubled",
    ),
    _fault(
        r"no such file|does not exist|nosuchkey|no_such_key|path not found",
        "a file of the archive is missing",
        "where 'iolab archive expire' deleted it meanwhile, repeat the command",
    ),
)


def fault_of(error: BaseException) -> Fault | None:
    """What failed in the store; None where the error is of another kind."""
    words = _words_of(error)
    return next((fault for fault in _FAULTS if fault.pattern.search(words)), None)


def explain(error: BaseException, url: str, doing: str) -> ResultsError:
    """An error of a library as one of this package."""
    words = _first_line(error)
    fault = fault_of(error)
    if fault is None:
        return ResultsError(f"can't {doing}: {words}", where=url)
    return ResultsError(f"can't {doing}: {fault.message} ({words})", where=url, hint=fault.hint)


@contextlib.contextmanager
def explain_errors(url: str, doing: str) -> Iterator[None]:
    """Errors of PyIceberg, its catalog, its store and Arrow become a ResultsError of one line."""
    import pyarrow as pa
    from pyiceberg.exceptions import (
        CommitFailedException,
        CommitStateUnknownException,
        RESTError,
    )

    try:
        yield
    except CommitFailedException as error:
        raise ResultsError(
            f"can't {doing}: other writers committed to it at the same time ({_first_line(error)})",
            where=url,
            hint="push again: what is archived already is not pushed twice",
        ) from error
    except CommitStateUnknownException as error:
        raise ResultsError(
            f"can't {doing}: the store did not confirm the commit ({_first_line(error)})",
            where=url,
            hint="push again: what is archived already is not pushed twice",
        ) from error
    except (RESTError, OSError, pa.ArrowException, ValueError, KeyError) as error:
        raise explain(error, url, doing) from error
    except Exception as error:
        # catalogs raise errors of their own libraries (SQL, HTTP, cloud)
        if type(error).__module__.partition(".")[0] in _LIBRARIES:
            raise explain(error, url, doing) from error
        if isinstance(error, AttributeError | TypeError) and _is_raised_by_library(error):
            # PyIceberg computes with fields of a table's metadata before it checks them
            raise ResultsError(
                f"can't {doing}: the metadata of a table is damaged ({_first_line(error)})",
                where=url,
            ) from error
        raise


def _is_raised_by_library(error: BaseException) -> bool:
    """Whether the innermost frame of an error is code of a library."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__")).partition(".")[0] in _LIBRARIES


def _words_of(error: BaseException) -> str:
    """All that an error says: its code and its message."""
    number = getattr(error, "errno", None)
    code = errno.errorcode.get(number, "") if isinstance(number, int) else ""
    return f"{code} {type(error).__name__} {error}"


def _first_line(error: BaseException) -> str:
    """The first line of an error, without the class that SQLAlchemy puts before it and the step of
    DuckDB that failed."""
    text = str(error).strip() or type(error).__name__
    line = re.sub(r"^(\([\w.]+\) |.* failed: \w+: )", "", text.splitlines()[0]).rstrip(".")
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
