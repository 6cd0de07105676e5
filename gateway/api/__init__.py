# SPDX-License-Identifier: Apache-2.0
"""The HTTP API. Only this package and the routes import Litestar.

A handler builds the operation, lets the door admit it, and calls the use case with the permit.
"""
