# SPDX-License-Identifier: Apache-2.0
"""Compare a file of desired objects and grants with a running catalog, and make the changes over HTTP.

`document` and `source` read the file, `desired` turns it into a `State`, and `reader` reads the present `State` over
HTTP. `planner` is pure: it compares the two. `executor` makes the changes of a plan. `export` writes a state as a file.
"""
