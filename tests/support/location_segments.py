# SPDX-License-Identifier: Apache-2.0
"""Random segments of locations."""

from __future__ import annotations

from hypothesis import strategies as st

LETTERS = st.characters(categories=["Ll", "Lu", "Lo", "Nd"], exclude_characters="\u115f\u1160\u3164\uffa0")
SEGMENT = st.text(st.one_of(st.sampled_from("abtT10._-=%+~'\"&<>|^`"), LETTERS), min_size=1, max_size=12)
