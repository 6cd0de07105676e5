# SPDX-License-Identifier: Apache-2.0
"""Validation of client documents: equal results in this process and in its own, with bounded resources."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any
from uuid import UUID

import pytest

from gateway.features.metadata import metadata_validation
from gateway.features.metadata.metadata_validation import MetadataValidator
from gateway.iceberg.creation import new_table_metadata
from gateway.iceberg.errors import BadRequestException, InvalidLocation, MetadataTooLarge
from gateway.iceberg.limits import Limits
from gateway.iceberg.metadata import encode_table_metadata
from gateway.iceberg.wire import CreateTableRequest, decode
from gateway.storage.examine import Examined, Kind
from gateway.storage.s3.profile import SCHEME

PROFILE = b'{"type": "s3", "bucket": "lake", "region": "us-east-1", "key-prefix": "base"}'
FILE = SCHEME.parse("s3://lake/base/t/metadata/1.json")
HERE, ELSEWHERE = 2**30, 0


def document(location: str = "s3://lake/base/t", **more: Any) -> bytes:
    body = decode(json.dumps({"name": "t", "schema": {"type": "struct", "fields": []}}).encode(), CreateTableRequest)
    made = new_table_metadata(body, table_uuid=UUID(int=7), location=location, now_ms=1)
    return json.dumps({**json.loads(encode_table_metadata(made)), **more}, indent=1).encode()


async def examined(data: bytes, where: int, *, kind: Kind = Kind.TABLE, limits: Limits | None = None) -> Examined:
    return await MetadataValidator(limits or Limits(), small_bytes=where).validated(
        kind, data, file=FILE, profile=PROFILE
    )


async def test_validation_in_either_process_gives_the_same_document() -> None:
    data = document(x={"unknown": [1, 2]})
    here = await examined(data, HERE)
    assert here == await examined(data, ELSEWHERE)
    assert (here.location, here.uuid, here.format_version) == ("s3://lake/base/t", str(UUID(int=7)), 2)
    assert json.loads(here.document) == json.loads(data)


@pytest.mark.parametrize("where", [HERE, ELSEWHERE])
@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"{}", BadRequestException, "missing required field"),
        (document("s3://lake/base/other"), InvalidLocation, "must be inside the location that the file contains"),
        (document("s3://lake/elsewhere/t"), InvalidLocation, "base location"),
        (
            document(statistics=[{"snapshot-id": 1, "statistics-path": "s3://lake/base/t2/x"}]),
            BadRequestException,
            "file-size-in-bytes",
        ),
        (document(properties={f"k{n}": "v" for n in range(9)}), MetadataTooLarge, "9 properties; at most 8"),
        (document(x="x" * 10_000), MetadataTooLarge, "at most 9000 are"),
        (document(x=[{}] * 1_100), MetadataTooLarge, "at most 1000"),
    ],
)
async def test_validation_in_either_process_gives_the_same_error(
    where: int, data: bytes, error: type[Exception], words: str
) -> None:
    limits = Limits(properties=8, document_bytes=9_000, document_values=1_000)
    with pytest.raises(error, match=words):
        await examined(data, where, limits=limits)


def test_the_validation_process_imports_no_storage_client_or_other_adapter() -> None:
    """Its address space is bounded and its input is hostile: it must not load a client of any service."""
    script = "import sys, gateway.storage.examine; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    loaded = done.stdout.split()
    clients = ("obstore", "botocore", "boto3", "sqlalchemy", "aiohttp", "httpx", "litestar", "openfga_sdk")
    assert [module for module in loaded if module.partition(".")[0] in clients] == []
    rooms = {module.split(".")[1] for module in loaded if module.startswith("gateway.")}
    # `extensions` has only the standard library: a stored profile can be of another package's type.
    assert rooms == {"storage", "scope", "iceberg", "extensions"}


async def test_slow_validation_is_refused_and_its_process_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_validation, "SECONDS", 0)
    with pytest.raises(MetadataTooLarge, match="or too much memory"):
        await examined(document(), ELSEWHERE)


async def test_validations_run_one_at_a_time_and_a_long_wait_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_validation, "_PATIENCE_SECONDS", 0.01)
    examiner = MetadataValidator(Limits())
    async with examiner.slot(), examiner.slot():
        with pytest.raises(Exception, match="Try again") as refused:
            async with examiner.slot():
                raise AssertionError("the validation must not begin without a free slot")
    assert type(refused.value).__name__ == "TooManyRequests"
    async with examiner.slot():
        pass
