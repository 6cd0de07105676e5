# SPDX-License-Identifier: Apache-2.0
"""Ports: distinct, free, below what systems give to outgoing connections, and the same again after a restart."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gateway.embedded import ports
from gateway.embedded.errors import StackError
from gateway.embedded.ports import GRPC_OFFSET, Ports


def _numbers(chosen: Ports) -> list[int]:
    plain = [getattr(chosen, name) for name in chosen.__struct_fields__]
    return plain + [
        getattr(chosen, name) + GRPC_OFFSET
        for name in ("s3", "store_master", "store_volume", "store_filer", "store_admin")
    ]


@pytest.fixture
def all_free(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    taken: set[int] = set()
    monkeypatch.setattr(ports, "is_free", lambda port: port not in taken)
    return taken


def test_all_ports_differ_even_those_the_store_derives(all_free: set[int]) -> None:
    for _ in range(50):
        numbers = _numbers(ports.pick())
        assert len(set(numbers)) == len(numbers)
        assert max(numbers) < 32_768


def test_the_ports_of_the_last_start_are_taken_again(all_free: set[int]) -> None:
    first = ports.pick()
    assert ports.pick(first) == first


def test_only_a_port_that_is_taken_is_replaced(all_free: set[int]) -> None:
    first = ports.pick()
    all_free.add(first.opa)
    second = ports.pick(first)
    assert second.opa != first.opa
    assert msgspec.structs.replace(second, opa=first.opa) == first


def test_a_store_port_whose_derived_port_is_taken_is_replaced(all_free: set[int]) -> None:
    first = ports.pick()
    all_free.add(first.s3 + GRPC_OFFSET)
    assert ports.pick(first).s3 != first.s3


def test_with_no_free_port_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(StackError, match="no free loopback port"):
        ports.pick()


def test_ports_are_read_as_they_were_written(tmp_path: Path, all_free: set[int]) -> None:
    chosen = ports.pick()
    ports.save(tmp_path / "ports.json", chosen)
    assert ports.load(tmp_path / "ports.json") == chosen


@pytest.mark.parametrize("content", ["", "{}", '{"postgres": "x"}'])
def test_an_unusable_file_of_ports_counts_as_none(content: str, tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text(content)
    assert ports.load(tmp_path / "ports.json") is None
    assert ports.load(tmp_path / "absent.json") is None
