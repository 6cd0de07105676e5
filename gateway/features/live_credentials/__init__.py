# SPDX-License-Identifier: Apache-2.0
"""Live credentials: a register of issued credentials that have not expired."""
