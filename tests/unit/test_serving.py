# SPDX-License-Identifier: Apache-2.0
"""The limit of open files covers the connections of clients, as far as the administrator allows."""

from __future__ import annotations

import resource

import pytest

from gateway.serving import allow_connections

_INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [
        (1024, 1_048_576, 5120),
        (1024, _INFINITE, 5120),
        (1024, 2048, 2048),
        (5120, 5120, None),
        (65_536, 1_048_576, None),
        (_INFINITE, _INFINITE, None),
    ],
)
def test_the_limit_of_open_files_is_raised_up_to_that_of_the_administrator(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: int | None
) -> None:
    changes: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: changes.append(limits))
    assert allow_connections(4096) == (soft if raised is None else raised)
    assert changes == ([] if raised is None else [(raised, hard)])
