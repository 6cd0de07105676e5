# SPDX-License-Identifier: Apache-2.0
"""Generated secrets: stored privately, distinct, and kept over restarts."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest

from lakegate.local import ready
from lakegate.local.errors import StackError


def _values(made: ready.Secrets) -> list[str]:
    plain = [value for value in msgspec.structs.asdict(made).values() if isinstance(value, str)]
    return [*plain, *made.store_jwt_keys, *made.clients.values()]


def test_all_generated_secrets_differ() -> None:
    values = _values(ready.generate()) + _values(ready.generate())
    assert len(set(values)) == len(values)
    assert min(map(len, values)) >= 20


def test_the_second_start_uses_the_secrets_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    assert ready.load_or_generate(path) == ready.load_or_generate(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_secrets_of_an_earlier_version_are_kept_and_completed(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    made = ready.load_or_generate(path)
    clients = {name: secret for name, secret in made.clients.items() if "trino" not in name}
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(made, clients=clients, bridge_key="")))
    completed = ready.load_or_generate(path)
    assert completed.clients.items() > clients.items() and completed.clients.keys() == made.clients.keys()
    assert completed.bridge_key and completed.postgres_gateway == made.postgres_gateway
    assert ready.load_or_generate(path) == completed


def test_unreadable_secrets_are_an_error_and_are_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text("{}")
    with pytest.raises(StackError, match="remove the whole directory"):
        ready.load_or_generate(path)
    assert path.read_text() == "{}"


def test_representations_contain_no_secret() -> None:
    made = ready.generate()
    assert not [value for value in _values(made) if value in f"{made} {made!r}"]


def test_a_private_file_is_replaced_atomically_with_owner_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    ready.write_private(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_database_passwords_need_no_escaping() -> None:
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    made = ready.generate()
    for value in (made.postgres_superuser, made.postgres_gateway, made.postgres_openfga):
        assert set(value) <= allowed
