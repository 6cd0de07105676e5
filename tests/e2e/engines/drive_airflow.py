# SPDX-License-Identifier: Apache-2.0
"""Run the DAG of docs/examples in this process with `dag.test()`, and print the state of each task as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "airflow_lakegate.py"


def main() -> None:
    """Prepare the database of Airflow, run the DAG for one day, and write the states to the file in RESULT."""
    airflow = Path(sys.executable).with_name("airflow")
    subprocess.run([str(airflow), "db", "migrate"], check=True, timeout=300)
    from airflow.models.dagbag import DagBag

    bag = DagBag(dag_folder=str(EXAMPLE), include_examples=False)
    if bag.import_errors:
        raise SystemExit(str(bag.import_errors))
    dag = bag.dags["lakegate_daily_words"]
    run = dag.test()
    states = {each.task_id: str(each.state) for each in run.get_task_instances()}
    Path(os.environ["RESULT"]).write_text(json.dumps({"run": str(run.state), "tasks": states}))


if __name__ == "__main__":
    main()
