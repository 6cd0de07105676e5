# SPDX-License-Identifier: Apache-2.0
"""Selection of ports: distinct, free, below the range of outgoing connections, and reused after a restart."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpcore2
import msgspec
import pytest

from lakegate.local import ports
from lakegate.local.bootstrap import Management
from lakegate.local.errors import StackError
from lakegate.local.ports import FIRST_CHOICES, GRPC_OFFSET, Ports, without_tls


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


def test_all_ports_including_derived_store_ports_differ(all_free: set[int]) -> None:
    for _ in range(50):
        numbers = _numbers(ports.pick())
        assert len(set(numbers)) == len(numbers)
        assert max(numbers) < 32_768


def test_ports_of_the_previous_start_are_reused(all_free: set[int]) -> None:
    first = ports.pick()
    assert ports.pick(first) == first


def test_only_a_port_in_use_is_replaced(all_free: set[int]) -> None:
    first = ports.pick()
    all_free.add(first.opa)
    second = ports.pick(first)
    assert second.opa != first.opa
    assert msgspec.structs.replace(second, opa=first.opa) == first


def test_a_store_port_with_its_derived_port_in_use_is_replaced(all_free: set[int]) -> None:
    first = ports.pick()
    all_free.add(first.s3 + GRPC_OFFSET)
    assert ports.pick(first).s3 != first.s3


def test_a_search_without_a_free_port_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(StackError, match="no free loopback port"):
        ports.pick()


def test_ports_round_trip_through_their_file(tmp_path: Path, all_free: set[int]) -> None:
    chosen = ports.pick()
    ports.save(tmp_path / "ports.json", chosen)
    assert ports.load(tmp_path / "ports.json") == chosen


@pytest.mark.parametrize("content", ["", "{}", '{"postgres": "x"}'])
def test_an_unreadable_port_file_is_ignored(content: str, tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text(content)
    assert ports.load(tmp_path / "ports.json") is None
    assert ports.load(tmp_path / "absent.json") is None


def test_a_stack_has_the_fixed_ports_while_they_are_free(all_free: set[int]) -> None:
    first = ports.pick(first=FIRST_CHOICES)
    assert first == FIRST_CHOICES
    assert first.gateway == 8181
    assert ports.replaced(first) == {}


def test_a_fixed_port_in_use_is_replaced_and_named(all_free: set[int]) -> None:
    all_free.add(8181)
    chosen = ports.pick(first=FIRST_CHOICES)
    assert msgspec.structs.replace(chosen, gateway=8181) == FIRST_CHOICES
    assert ports.replaced(chosen) == {"gateway": (8181, chosen.gateway)}
    all_free.clear()
    assert ports.pick(chosen, first=FIRST_CHOICES) == FIRST_CHOICES


def test_the_port_that_warehouses_contain_is_kept_before_the_fixed_one(all_free: set[int]) -> None:
    kept = ports.pick()
    chosen = ports.pick(kept, first=FIRST_CHOICES)
    assert chosen == msgspec.structs.replace(FIRST_CHOICES, s3=kept.s3)


def test_the_previous_port_replaces_a_fixed_port_in_use(all_free: set[int]) -> None:
    kept = ports.pick()
    all_free.add(FIRST_CHOICES.opa)
    assert ports.pick(kept, first=FIRST_CHOICES).opa == kept.opa


def test_clients_of_the_stack_read_no_certificates_and_trust_none(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    monkeypatch.setattr(httpcore2, "default_ssl_context", lambda **_: read.append(0))
    Management("http://127.0.0.1:1", "token")
    assert read == []
    assert without_tls().get_ca_certs() == []
    assert without_tls().verify_mode is ssl.CERT_REQUIRED
