# SPDX-License-Identifier: Apache-2.0
"""The HTTP API, the only room that imports Litestar. A handler builds the operation, admits it and calls the use
case.
"""
