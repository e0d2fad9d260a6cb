"""Configuration files: what YAML makes of a value is told by its place, never in its words."""

from pathlib import Path

import pytest

from resources.config.entries import read_entries

BEFORE = "first: 1\nsecond:\n  inner: [2024-01-02, 7]\n"


def chain(error: BaseException) -> list[BaseException | None]:
    return [error.__cause__, error.__context__]


@pytest.mark.parametrize(
    "value",
    [
        "!!int sk-secret",
        "!!int ''",
        "!!float sk-secret",
        "!!bool sk-secret",
        "!!timestamp sk-secret",
        "2024-13-45",
        "2024-01-02 03:04:05 +99:99",
        '"sk-secret \\UFFFFFFFF"',
        "9" * 5000,
    ],
)
@pytest.mark.parametrize(
    ("form", "line"),
    [("third: {}\n", 4), ("third:\n  sk-key: [1, {}]\n", 5), ("? {}\n: 3\n", 4)],
)
def test_a_value_that_is_not_what_it_is_written_as_is_told_by_its_line(
    tmp_path: Path, value: str, form: str, line: int
) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(BEFORE + form.format(value), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"some\.yaml, line {line}: a value here") as caught:
        read_entries(file, "things")
    assert chain(caught.value) == [None, None]
    assert "sk-" not in str(caught.value)
    assert "month" not in str(caught.value)


def test_values_and_lines_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(BEFORE + "third: &a {x: 0x1F}\nfourth: *a\n", encoding="utf-8")
    entries = read_entries(file, "things")
    assert entries.values["fourth"] == {"x": 31}
    assert entries.line("third", "x") == 4
    assert entries.line("second", "inner", "0") == 3


def test_a_file_that_holds_itself_is_nested_too_deeply(tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text("a: &a {b: *a}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="nested too deeply") as caught:
        read_entries(file, "things")
    assert chain(caught.value) == [None, None]
