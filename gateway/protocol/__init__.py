# SPDX-License-Identifier: Apache-2.0
"""The request and response bodies of the management API, a module for each noun. Types only: no I/O, no decision."""
