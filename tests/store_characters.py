# SPDX-License-Identifier: Apache-2.0
"""The table of the characters that each store of the S3 family allows in locations, from the profiles themselves.

`docs/storage-s3.md` contains the table between two markers. Run `python -m tests.store_characters` to write it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gateway.scope.errors import InvalidLocation
from gateway.scope.location import Location
from gateway.storage.s3.confinement import TRAITS, StoreKind
from gateway.storage.s3.profile import SCHEME, Flavor, S3Profile

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "storage-s3.md"
START: Final = "<!-- characters: written by tests/store_characters.py -->\n"
END: Final = "<!-- end of characters -->\n"

PROFILES: Final = {
    StoreKind.AWS: S3Profile(bucket="lake", region="eu-west-1", key_prefix="base"),
    StoreKind.COMPATIBLE: S3Profile(
        bucket="lake", region="r", key_prefix="base", flavor=Flavor.S3_COMPAT, endpoint="https://store.example.org"
    ),
    StoreKind.R2: S3Profile(
        bucket="lake",
        region="auto",
        key_prefix="base",
        flavor=Flavor.S3_COMPAT,
        endpoint="https://0123456789abcdef0123456789abcdef.r2.cloudflarestorage.com",
    ),
    StoreKind.OSS: S3Profile(
        bucket="lake",
        region="cn-hangzhou",
        key_prefix="base",
        flavor=Flavor.S3_COMPAT,
        endpoint="https://s3.oss-cn-hangzhou.aliyuncs.com",
    ),
}

#: (text in the table, segments with the characters)
ROWS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("letters and digits of every script", ("aZ9", "zürich", "表", "данные")),
    ("`-` `_` `.` `~`", ("a-b", "a_b", "a.b", "a~b")),
    (
        "`!` `'` `(` `)` `,` `;` `:` `@` `&` `=` `+`",
        ("a!b", "a'b", "a(b)", "a,b", "a;b", "a:b", "a@b", "a&b", "a=b", "a+b"),
    ),
    ('`"` `<` `>` `^`, the vertical bar and the grave accent', ('a"b', "a<b", "a>b", "a^b", "a|b", "a`b")),
    ("`%`, also in encodings such as `%20` and `%2A`", ("a%b", "a%20b", "a%2Ab", "a%C3%BCb")),
    ("`*` `$` `{` `}` `[` `]`", ("a*b", "a$b", "a{b", "a}b", "a[b", "a]b")),
    ("`?` `#` and the backslash", ("a?b", "a#b", "a\\b")),
    (
        "encodings of a slash, backslash, dot or control character (`%2F`, `%252e`)",
        ("a%2Fb", "a%5Cb", "a%2Eb", "a%252eb"),
    ),
    ("white space, control and invisible characters", ("a b", "a\tb", "a\u00a0b", "a\u200bb", "a\x00b")),
    ("empty segments, `.` and `..`", ("", ".", "..")),
)


def allowed(profile: S3Profile, segment: str) -> bool:
    """Return True if the profile accepts a location with this segment, and its policy can be built."""
    try:
        location = profile.parse_location(f"s3://lake/base/{segment}/t")
        assert location == Location(SCHEME, "lake", ("base", segment, "t")), "the key is the text of the location"
    except InvalidLocation:
        return False
    return True


def table() -> str:
    """Return the table. Every segment of a row has the same answer."""
    lines = [
        "| in a path segment | " + " | ".join(TRAITS[kind].label for kind in PROFILES) + " |",
        "|---|" + "---|" * len(PROFILES),
    ]
    for text, segments in ROWS:
        answers = []
        for profile in PROFILES.values():
            found = {allowed(profile, segment) for segment in segments}
            assert len(found) == 1, (text, profile.kind, found)
            answers.append("allowed" if found == {True} else "refused")
        lines.append(f"| {text} | " + " | ".join(answers) + " |")
    sources = ", ".join(f"[{TRAITS[kind].label}]({TRAITS[kind].source})" for kind in PROFILES)
    return "\n".join([*lines, "", f"The rules of the stores' policies: {sources}."]) + "\n"


def main() -> None:
    """Write the table into the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(START)
    PAGE.write_text(before + START + "\n" + table() + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
