# SPDX-License-Identifier: Apache-2.0
"""Directories that PostgreSQL's account can reach, and the copies of those that it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakegate.local import account
from lakegate.local.account import Account

_STRANGER = Account(uid=54_321, gid=54_321)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "shared"
    directory.mkdir()
    monkeypatch.setattr(account, "_shared_place", lambda: directory)
    monkeypatch.setattr(Account, "own", lambda self, path: None)
    return directory


def test_the_own_account_reaches_every_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert account.can_reach(tmp_path / "x", Account(None, None))


def test_a_private_ancestor_directory_is_unreachable_for_another_account(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0o700)
    assert not account.can_reach(closed / "inner" / "x", _STRANGER)


def test_a_reachable_data_directory_is_used_as_requested(tmp_path: Path, shared: Path) -> None:
    directory = account.reachable_data(tmp_path / "postgres", Account(None, None))
    assert directory == tmp_path / "postgres" and directory.is_dir() and not directory.is_symlink()


def test_an_unreachable_data_directory_becomes_a_symlink_that_is_found_again(tmp_path: Path, shared: Path) -> None:
    tmp_path.chmod(0o700)
    requested = tmp_path / "postgres"
    first = account.reachable_data(requested, _STRANGER)
    (first / "PG_VERSION").write_text("18")
    assert first.parent == shared and requested.is_symlink()
    again = account.reachable_data(requested, _STRANGER)
    assert (again, (again / "PG_VERSION").read_text()) == (first, "18")


def test_data_of_a_removed_directory_of_the_same_name_is_not_reused(tmp_path: Path, shared: Path) -> None:
    tmp_path.chmod(0o700)
    first = account.reachable_data(tmp_path / "postgres", _STRANGER)
    (first / "PG_VERSION").write_text("18")
    (tmp_path / "postgres").unlink()
    assert list(account.reachable_data(tmp_path / "postgres", _STRANGER).iterdir()) == []


def test_removing_data_removes_the_target_of_the_symlink(tmp_path: Path, shared: Path) -> None:
    tmp_path.chmod(0o700)
    account.reachable_data(tmp_path / "postgres", _STRANGER)
    account.remove_data(tmp_path / "postgres")
    assert list(shared.iterdir()) == [] and not (tmp_path / "postgres").is_symlink()


def test_unreachable_programs_are_copied_once_with_their_libraries(tmp_path: Path, shared: Path) -> None:
    site = tmp_path / "closed"
    programs = site / "package" / "pginstall"
    (programs / "bin").mkdir(parents=True)
    (programs / "bin" / "postgres").write_text("#!")
    (programs / "bin" / "postgres").chmod(0o755)
    (site / "package.libs").mkdir()
    (site / "package.libs" / "libpq.so").touch()
    site.chmod(0o700)
    copy = account.reachable_programs(programs, _STRANGER)
    assert copy.is_relative_to(shared) and os.access(copy / "bin" / "postgres", os.X_OK)
    assert (copy / "../../package.libs/libpq.so").exists()
    assert account.reachable_programs(programs, _STRANGER) == copy
    assert len(list(shared.iterdir())) == 1
