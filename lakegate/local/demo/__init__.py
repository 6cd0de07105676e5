# SPDX-License-Identifier: Apache-2.0
"""The demonstration: run a pipeline through the gateway, then show requests that the gateway permits and refuses.

`main` starts the stack and runs everything. `story` contains the trials (the shown requests) in order, and `keys` the
calls with a vended storage key. `spark` contains the pipeline job and the SQL worker, `world` the callers of the HTTP
API and the state that the trials share, and `board` the output at the terminal.
"""

from lakegate.local.demo.main import run

__all__ = ["run"]
