# SPDX-License-Identifier: Apache-2.0
"""Names of statements in traces: the verb and the tables, never values or names of common table expressions."""

from __future__ import annotations

import pytest

from gateway.db.pools.statement_hooks import summary


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id from warehouses join namespaces on true join unnest($1) u on true", "SELECT warehouses namespaces"),
        ("INSERT INTO audit_log (id) VALUES ($1)", "INSERT audit_log"),
        ("insert into pending_files(id) select id from tables where name = 'secret'", "INSERT pending_files tables"),
        ("with held as (select 1 from tables for update of tables) select * from held", "SELECT tables"),
        ("with swapped as (update tables set a = 1 returning id) select * from swapped", "UPDATE tables"),
        ("delete from grants where id = $1", "DELETE grants"),
        ("select 1", "SELECT"),
        ("select name from users_of_somebody where a = 'from'", "SELECT"),
    ],
)
def test_a_statement_is_named_by_its_verb_and_tables(sql: str, expected: str) -> None:
    assert summary(sql) == expected
