# SPDX-License-Identifier: Apache-2.0
"""Deliveries: identified by content, located, and unpacked if compressed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from lakegate.spark.errors import SourceError
from lakegate.spark.schemas import DELIVERED
from lakegate.spark.sources import FILES, default_directory, delivery_id, discover, readable


def deliver(directory: Path, **content: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name in DELIVERED:
        (directory / f"{name}.csv").write_text(content.get(name, f"{name}\n"))
    return directory


def test_equal_files_have_the_same_delivery_id_in_any_directory(tmp_path: Path) -> None:
    first = delivery_id(discover(deliver(tmp_path / "a")))
    found = discover(deliver(tmp_path / "b"))
    assert delivery_id(dict(reversed(found.items()))) == first


def test_one_changed_byte_changes_the_delivery_id(tmp_path: Path) -> None:
    first = delivery_id(discover(deliver(tmp_path / "a")))
    assert delivery_id(discover(deliver(tmp_path / "b", planes="planes\n\n"))) != first


def test_swapped_file_contents_change_the_delivery_id(tmp_path: Path) -> None:
    first = delivery_id(discover(deliver(tmp_path / "a", planes="x", weather="y")))
    assert delivery_id(discover(deliver(tmp_path / "b", planes="y", weather="x"))) != first


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_error_names_a_missing_file(tmp_path: Path, name: str) -> None:
    deliver(tmp_path)
    (tmp_path / f"{name}.csv").unlink()
    with pytest.raises(SourceError, match=FILES[name].replace(".", r"\.")):
        discover(tmp_path)


def packed(directory: Path, members: dict[str, str]) -> Path:
    deliver(directory)
    (directory / "flights.csv").unlink()
    with zipfile.ZipFile(directory / "flights.csv.zip", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return directory


def test_a_packed_file_is_unpacked_into_the_work_directory(tmp_path: Path) -> None:
    source = discover(packed(tmp_path / "in", {"flights.csv": "a,b\n1,2\n"}))["flights"]
    unpacked = readable(source, tmp_path)
    assert unpacked.read_text() == "a,b\n1,2\n"
    assert unpacked.parent == tmp_path


def test_an_archive_cannot_write_outside_the_work_directory(tmp_path: Path) -> None:
    source = discover(packed(tmp_path / "in", {"../../outside.csv": "a\n"}))["flights"]
    assert readable(source, tmp_path).parent == tmp_path


@pytest.mark.parametrize("members", [{}, {"a.csv": "", "b.csv": ""}], ids=["none", "two"])
def test_an_archive_must_hold_exactly_one_file(tmp_path: Path, members: dict[str, str]) -> None:
    source = discover(packed(tmp_path / "in", members))["flights"]
    with pytest.raises(SourceError, match="exactly one"):
        readable(source, tmp_path)


def test_the_installed_data_have_the_expected_columns() -> None:
    for name, file_name in FILES.items():
        path = default_directory() / file_name
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as stream:
                header = stream.readline().decode()
        else:
            with path.open() as text:
                header = text.readline()
        assert tuple(header.strip().split(",")) == DELIVERED[name]
