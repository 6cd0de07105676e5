# SPDX-License-Identifier: Apache-2.0
"""The adapter to OpenFGA, which judges who is related to what.

`relationships` is the door's port; `client` under it is the hot path and the writer, over plain HTTP (`wire`) with a
pinned model; `model` finds or pushes the compiled model of `fga_model/` (`model.json`, made by `compile`); `names` is
the only place where ids become tuple text.
"""
