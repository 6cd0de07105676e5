# SPDX-License-Identifier: Apache-2.0
"""Names of metadata files, and bounded decompression."""

import gzip
import zlib
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.iceberg.errors import BadRequestException, UnsupportedCompressionCodec
from gateway.iceberg.metadata_file import (
    MAX_MEMBERS,
    compress,
    decompress,
    metadata_version,
    next_metadata_location,
    uses_gzip,
)

ID = UUID(int=1)


@pytest.mark.parametrize(
    ("previous", "number"),
    [
        (None, "00000"),
        ("s3://b/t/metadata/00000-x.metadata.json", "00001"),
        ("s3://b/t/metadata/00041-x.gz.metadata.json", "00042"),
        ("s3://b/t/metadata/99999-x.metadata.json", "100000"),
        ("s3://b/t/metadata/v7.metadata.json", "00008"),
        ("s3://b/12-t/metadata/named.json", "00000"),
        ("s3://b/t/metadata/3rd.json", "00000"),
    ],
)
def test_metadata_file_numbers_increase(previous: str | None, number: str) -> None:
    location = next_metadata_location("s3://b/t", previous, uuid=ID, gzip=False)
    assert location == f"s3://b/t/metadata/{number}-{ID}.metadata.json"


def test_the_file_name_shows_compression_and_has_no_double_slash() -> None:
    assert (
        next_metadata_location("s3://b/t/", None, uuid=ID, gzip=True)
        == f"s3://b/t/metadata/00000-{ID}.gz.metadata.json"
    )


def test_a_configured_metadata_path_is_used() -> None:
    location = next_metadata_location("s3://b/t", None, uuid=ID, gzip=False, metadata_path="s3://b/t/meta/")
    assert location == f"s3://b/t/meta/00000-{ID}.metadata.json"


def test_a_name_without_number_has_no_version() -> None:
    assert metadata_version("s3://b/metadata/x.json") == -1
    assert metadata_version("00012-a.json") == 12


def test_the_metadata_codec_is_none_or_gzip() -> None:
    assert uses_gzip({"write.metadata.compression-codec": "GZIP"})
    assert not uses_gzip({"write.metadata.compression-codec": "none"}, default=True)
    assert uses_gzip({}, default=True) and not uses_gzip({})
    with pytest.raises(UnsupportedCompressionCodec, match="'zstd'"):
        uses_gzip({"write.metadata.compression-codec": "zstd"})


@given(st.binary(max_size=2000), st.integers(min_value=1, max_value=40))
def test_compressed_metadata_round_trips(data: bytes, times: int) -> None:
    document = b"{" + data * times
    assert decompress(compress(document)) == document
    assert gzip.decompress(compress(document)) == document
    assert decompress(document) == document


def test_equal_documents_give_equal_files() -> None:
    assert compress(b"abc") == compress(b"abc")


@pytest.mark.parametrize("size", [1, 1000, 1024 * 1024, 3 * 1024 * 1024 + 1])
def test_the_size_limit_is_exact(size: int) -> None:
    packed = compress(b"a" * size)
    assert len(decompress(packed, max_bytes=size)) == size
    with pytest.raises(BadRequestException, match="when decompressed"):
        decompress(packed, max_bytes=size - 1)


def test_a_decompression_bomb_uses_no_more_than_the_limit() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(b"\0" * 1024 * 1024) for _ in range(64)) + packer.flush()
    with pytest.raises(BadRequestException):
        decompress(bomb, max_bytes=1000)


def test_many_gzip_members_are_refused_and_a_few_are_accepted() -> None:
    assert decompress(compress(b"a") + compress(b"b")) == b"ab"
    with pytest.raises(BadRequestException, match="gzip members"):
        decompress(compress(b"") * (MAX_MEMBERS + 1))


def test_a_large_plain_file_is_refused() -> None:
    with pytest.raises(BadRequestException, match="has 5 bytes"):
        decompress(b"{    ", max_bytes=4)


@pytest.mark.parametrize(
    "damage", [lambda p: p[:-9], lambda p: p[:12], lambda p: p[:20] + b"xx" + p[22:], lambda p: p + b"junk"]
)
def test_damaged_files_are_refused(damage: Any) -> None:
    with pytest.raises(BadRequestException, match="damaged"):
        decompress(damage(compress(bytes(range(256)) * 20)))
