# SPDX-License-Identifier: Apache-2.0
"""The HTTP API. Only this package and the routes import Litestar.

A handler builds the operation from the request, and lets the door decide it. It then calls the use case with the
permit, the proof of the decision.
"""
