# SPDX-License-Identifier: Apache-2.0
"""HTTP: the only room that knows Litestar. Handlers are a few lines: build the operation, admit it, call the use
case.
"""
