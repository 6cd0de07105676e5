# SPDX-License-Identifier: Apache-2.0
"""An Airflow DAG that appends rows to an Iceberg table in Lakegate and checks them, with TaskFlow and PyIceberg.

The host of Airflow's connection `lakegate` is the address of the catalog. Its login and password are the id and the
secret of a client of the identity provider. Its extra fields are `warehouse` and `token_url`. This file has no secret.
PyIceberg gets a token with the client credentials and renews it, so that long tasks work too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import Connection, dag, task

NAMESPACE, TABLE = "airflow", "daily_words"


def catalog() -> Any:
    """Return the catalog as the client of the connection."""
    # Airflow parses this file often, so the task imports the large library.
    from pyiceberg.catalog import load_catalog

    connection = Connection.get("lakegate")
    extra = connection.extra_dejson
    oauth2 = {"client_id": connection.login, "client_secret": connection.password, "token_url": extra["token_url"]}
    return load_catalog(
        "lake",
        type="rest",
        uri=connection.host,
        warehouse=extra["warehouse"],
        auth={"type": "oauth2", "oauth2": oauth2},
    )


@dag(
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
    tags=["lakegate"],
)
def lakegate_daily_words() -> None:
    """Append the words of a day and check that the table has them once."""

    @task
    def prepare() -> None:
        """Create the namespace and the table if they are missing."""
        import pyarrow as pa

        lake = catalog()
        lake.create_namespace_if_not_exists(NAMESPACE)
        schema = pa.schema([("day", pa.string()), ("word", pa.string())])
        lake.create_table_if_not_exists((NAMESPACE, TABLE), schema=schema)

    @task
    def load(ds: str | None = None) -> int:
        """Replace the rows of this day, so that a retry writes no row twice. Return the number of rows."""
        import pyarrow as pa
        from pyiceberg.expressions import EqualTo

        rows = pa.table({"day": [ds, ds], "word": ["ada", "bob"]})
        catalog().load_table((NAMESPACE, TABLE)).overwrite(rows, overwrite_filter=EqualTo("day", ds))
        return rows.num_rows

    @task
    def check(written: int, ds: str | None = None) -> None:
        """Fail if the table has another number of rows for this day."""
        from pyiceberg.expressions import EqualTo

        found = catalog().load_table((NAMESPACE, TABLE)).scan(row_filter=EqualTo("day", ds)).count()
        if found != written:
            raise ValueError(f"the table has {found} rows for {ds}, not {written}")

    loaded = load()
    prepare() >> loaded
    check(loaded)


lakegate_daily_words()
