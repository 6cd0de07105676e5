# SPDX-License-Identifier: Apache-2.0
"""The HTTP API, the only package beside routes that imports Litestar. A handler builds the operation, admits it and
calls the use case.
"""
