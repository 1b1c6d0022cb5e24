# SPDX-License-Identifier: Apache-2.0
"""The catalog of an archive in an object store: an SQLite file there, next to the tables.

A change downloads the file where it is newer, changes it, and uploads it on the condition that it
is still the downloaded one. Where another writer was first, the change fails as a
commit does, and is made again. Credentials, region and endpoint come from the usual chain
(environment variables, `~/.aws`, the machine's role).
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from iolab.base.errors import ResultsError

CONNECT_S = 10
REQUEST_S = 60
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_CHANGED = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_MISSING = ("NoSuchKey", "404")

T = TypeVar("T")


def _first(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


class ObjectCatalog(SqlCatalog):
    """The catalog at `s3://BUCKET/PREFIX`."""

    def __init__(self, name: str, url: str, database: str, *, create: bool) -> None:
        """`database`: name of the file. ResultsError where there is none and `create` is false."""
        import boto3
        from botocore.config import Config

        parts = urlsplit(url)
        self._bucket = parts.netloc
        self._key = f"{parts.path.strip('/')}/{database}".lstrip("/")
        endpoint = _first(ENDPOINTS)
        self._client = boto3.client(
            "s3",
            config=Config(
                connect_timeout=CONNECT_S,
                read_timeout=REQUEST_S,
                retries={"mode": "standard", "max_attempts": 3},
                s3={"addressing_style": "path" if endpoint else "auto"},
            ),
        )
        self._guard = threading.RLock()
        self._version: str | None = None
        self._directory = tempfile.TemporaryDirectory(prefix="iolab-archive-")
        self._file = Path(self._directory.name) / database
        if not self._download() and not create:
            raise ResultsError(
                "is not an archive", where=url, hint="iolab archive push creates one"
            )
        properties = {
            "uri": f"sqlite:///{self._file}",
            "warehouse": f"{url.rstrip('/')}/tables",
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            "s3.connect-timeout": str(CONNECT_S),
            "s3.request-timeout": str(REQUEST_S),
        }
        region = _first(REGIONS) or self._client.meta.region_name
        # without one, boto3 has a name that is no region
        region = None if region == "aws-global" else region
        if endpoint:
            properties |= {"s3.endpoint": endpoint, "s3.region": region or "us-east-1"}
        elif region:
            properties["s3.region"] = region
        super().__init__(name, **properties)

    def close(self) -> None:
        """Delete the copy of the file."""
        super().close()
        self._directory.cleanup()

    def load_table(self, identifier: Any) -> Any:
        """The table as the store has it now."""
        with self._guard:
            self._download()
            return super().load_table(identifier)

    def create_namespace(self, namespace: Any, properties: Any = None) -> None:
        """As the catalog of a directory, on the condition that nothing changed."""
        self._change(
            lambda: super(ObjectCatalog, self).create_namespace(namespace, properties or {})
        )

    def create_table(self, *arguments: Any, **named: Any) -> Any:
        """As the catalog of a directory, on the condition that nothing changed."""
        return self._change(lambda: super(ObjectCatalog, self).create_table(*arguments, **named))

    def commit_table(self, *arguments: Any, **named: Any) -> Any:
        """As the catalog of a directory. CommitFailedException where another writer was first."""
        return self._change(lambda: super(ObjectCatalog, self).commit_table(*arguments, **named))

    def _change(self, change: Callable[[], T]) -> T:
        with self._guard:
            self._download()
            result = change()
            self._upload()
            return result

    def _download(self) -> bool:
        """Get the file where it is newer than the copy; whether there is one."""
        from botocore.exceptions import ClientError

        condition = {"IfNoneMatch": self._version} if self._version else {}
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._key, **condition)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code in ("304", "NotModified"):
                return True
            if code in _MISSING:
                return False
            raise
        content = answer["Body"].read()
        if hasattr(self, "engine"):
            self.engine.dispose()
        self._file.write_bytes(content)
        self._version = answer["ETag"]
        return True

    def _upload(self) -> None:
        """Put the copy in the place of the version that it was made of."""
        from botocore.exceptions import BotoCoreError, ClientError

        self.engine.dispose()
        condition = {"IfMatch": self._version} if self._version else {"IfNoneMatch": "*"}
        # whatever happens, the next read takes what the store has
        self._version = None
        try:
            answer = self._client.put_object(
                Bucket=self._bucket, Key=self._key, Body=self._file.read_bytes(), **condition
            )
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code"))
            if code in _CHANGED:
                raise CommitFailedException("another writer changed the catalog") from error
            raise
        except BotoCoreError as error:
            raise CommitStateUnknownException(str(error)) from error
        self._version = answer["ETag"]
