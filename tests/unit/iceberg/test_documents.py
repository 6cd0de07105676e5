# SPDX-License-Identifier: Apache-2.0
"""Parts of documents: stored as text, parsed on demand, never shared."""

import json

import pytest
from msgspec import Raw

from gateway.iceberg.codec import Parts
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.snapshots import MetadataLogEntry, SnapshotLogEntry, log_entry


def entries(text: bytes) -> Parts[SnapshotLogEntry]:
    return Parts(SnapshotLogEntry, Raw(text))


ONE = b'{"snapshot-id":1,"timestamp-ms":5}'


def test_appending_does_not_change_the_old_array() -> None:
    base = entries(b"[" + ONE + b"]")
    new = base.append(log_entry(2, 6))
    assert (len(base), len(new)) == (1, 2)
    assert [e["snapshot-id"] for e in json.loads(bytes(new.json))] == [1, 2]
    assert new.append(log_entry(3, 7)).json != new.json


@pytest.mark.parametrize("empty", [b"[]", b"[ ]", b" [\n] ", b"[" + b" " * 5000 + b"]"])
def test_appending_to_an_empty_array_adds_no_comma(empty: bytes) -> None:
    assert json.loads(bytes(entries(empty).append(log_entry(2, 6)).json)) == [{"snapshot-id": 2, "timestamp-ms": 6}]


def test_an_array_is_the_same_before_and_after_parsing() -> None:
    fresh, parsed = entries(b"[" + ONE + b"]"), entries(b"[" + ONE + b"]")
    assert len(parsed) == 1
    assert fresh == parsed
    assert fresh.append(log_entry(2, 6)) == parsed.append(log_entry(2, 6))
    assert parsed.append(log_entry(2, 6))[1].snapshot_id == 2


def test_a_filter_that_keeps_all_entries_returns_the_same_array() -> None:
    base = entries(b"[" + ONE + b"]")
    assert base.only(lambda entry: True) is base
    assert base.only(lambda entry: False).json == Raw(b"[]")


def test_an_id_in_the_stored_text_is_always_found() -> None:
    base = entries(b"[" + ONE + b"]").append(log_entry(12345, 6))
    assert base.may_mention(1) and base.may_mention(12345)
    assert not base.may_mention(777)


def test_a_member_named_text_is_read_as_a_member() -> None:
    part = SnapshotLogEntry.read(b'{"snapshot-id":1,"timestamp-ms":5,"text":{"a":1}}')
    assert part.members()["text"] == {"a": 1}


def test_a_malformed_part_is_refused_with_its_path() -> None:
    with pytest.raises(BadRequestException, match=r"`metadata-file` at `\$\.log`"):
        MetadataLogEntry.read(b'{"timestamp-ms":5}', at="$.log")
