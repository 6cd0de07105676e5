# SPDX-License-Identifier: Apache-2.0
"""The demonstration: a pipeline works through the door, and everybody else finds it closed where it should be.

`main` has the whole of it, on a running stack. `story` are the trials in their order, `keys` those with a vended key,
`people` the callers over HTTP, `spark` the two ways Spark is used, `board` what the person at the terminal sees.
"""

from gateway.embedded.demo.main import run

__all__ = ["run"]
