import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archfit.sweep.toml_file import TomlFile, lines_of_keys, overlong_key_line

HARD = '''name = "a # [[grid]]"   # [base]
base.heads = 2
seeds = [0,
  # 5, ]
  1, 7]
"qu[o]ted.key" = """
[[grid]]
depth = 3
"""""
[[grid]] # the first [[grid]]
depth = [[3, 4], {a = [1,
  2]},
  5]
"wid\\u0074h" = 'it]s # 3'
[grid.inner]
deep = \'\'\'
[[grid]]\'\'\'
[[ grid ]]
depth = 1
list = [
  {depth = 3},
  {depth = 4, width = "}"},
]
'''


def test_keys_are_found_past_comments_strings_dots_and_inline_tables() -> None:
    tomllib.loads(HARD)
    lines = lines_of_keys(HARD)
    assert lines == {
        ("name",): 1,
        ("base",): 2,
        ("base", "heads"): 2,
        ("seeds",): 3,
        ("seeds", 0): 3,
        ("seeds", 1): 5,
        ("seeds", 2): 5,
        ("qu[o]ted.key",): 6,
        ("grid",): 10,
        ("grid", 0): 10,
        ("grid", 0, "depth"): 11,
        ("grid", 0, "depth", 0): 11,
        ("grid", 0, "depth", 1): 11,
        ("grid", 0, "depth", 2): 13,
        ("grid", 0, "width"): 14,
        ("grid", 0, "inner"): 15,
        ("grid", 0, "inner", "deep"): 16,
        ("grid", 1): 18,
        ("grid", 1, "depth"): 19,
        ("grid", 1, "list"): 20,
        ("grid", 1, "list", 0): 21,
        ("grid", 1, "list", 1): 22,
    }
    file = TomlFile(name="a.toml", tables={}, lines=lines)
    assert str(file.refusal(("grid", 1, "list", 1, "width"), "no")) == "a.toml line 22: no"
    assert str(file.refusal(("unheard",), "no")) == "a.toml line 1: no"


noise = st.sampled_from(
    ["# [[grid]]", 'x{} = "[["', "x{} = '''\n[base]\n'''", 'x{} = """a\n\\""" [[grid]]"""', "",
     "x{} = [1, [2, # ]\n 3]]", "x{} = {{a = ']', b.c = [1]}}", "  "]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(noise, st.just("[[grid]]"), st.just("wanted = 1"))))
def test_each_key_stands_where_its_text_is(pieces: list[str]) -> None:
    """The oracle knows the line because it put the text together itself."""
    text, line, table, expected = "", 1, -1, {}
    for number, piece in enumerate(pieces):
        written = piece.format(number) if piece.startswith("x") else piece
        if piece == "[[grid]]":
            table += 1
            expected[("grid", table)] = line
        if piece == "wanted = 1":
            written = f"wanted{number} = 1"
            expected[(*(("grid", table) if table >= 0 else ()), f"wanted{number}")] = line
        text += written + "\n"
        line += written.count("\n") + 1
    tomllib.loads(text)
    found = lines_of_keys(text)
    assert {path: found.get(path) for path in expected} == expected
    assert not [path for path in found if "base" in path]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1.5\nb.c = '1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18'", 0),
        ("a = [" + "1.5, " * 50 + "]  # " + "a." * 50, 0),
        (".".join("a" * 16) + " = 1", 0),
        ("\n" + ".".join("a" * 17) + " = 1", 2),
        ("a = {" + " . ".join(["'b'"] * 17) + " = 1}", 1),
    ],
)
def test_only_keys_of_very_many_parts_are_overlong(text: str, line: int) -> None:
    assert overlong_key_line(text) == line


@given(st.text(alphabet="[]{}=.,\"'#\\\n a1", max_size=60))
def test_any_text_is_read_without_an_error(text: str) -> None:
    lines = lines_of_keys(text)
    assert all(1 <= line <= len(re.findall("\n", text)) + 1 for line in lines.values())
