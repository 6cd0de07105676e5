# SPDX-License-Identifier: Apache-2.0
"""Events of the catalog: their storage, their delivery, and the sinks that receive them."""
