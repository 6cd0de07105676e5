# SPDX-License-Identifier: Apache-2.0
"""Everything beside the gateway: its clients, the stack for one machine, and the conformance kits for extensions."""
