from pathlib import Path

import pytest

from judgeline.outcomes import CRITERIA
from judgeline.rubric import RESPONSES
from resources.judges.catalog import read_template
from resources.judges.definitions import load_judges
from resources.paths import ROOT

RECORDED = "r: {display_name: R, family: f, kind: recorded}\n"


def complaint(tmp_path: Path, text: str) -> str:
    file = tmp_path / "judges.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"judges\.yaml") as caught:
        load_judges(file)
    return str(caught.value)


def test_the_shipped_judges_load() -> None:
    judges = load_judges(ROOT / "config" / "judges.yaml")
    assert list(judges)[:3] == ["careful", "hasty", "recorded"]
    assert {judge.kind for judge in list(judges.values())[3:]} == {"openai", "vllm"}
    assert all(judge.slug == slug for slug, judge in judges.items())
    careful, hasty = judges["careful"].builtin, judges["hasty"].builtin
    assert careful is not None
    assert hasty is not None
    for trait in ("noise", "mood", "position_bias", "verbosity_bias", "family_bias"):
        assert getattr(careful, trait) < getattr(hasty, trait)
    assert careful.malformed_rate == 0 < hasty.malformed_rate
    simulated = [judge for judge in judges.values() if judge.kind == "builtin"]
    assert all("simulated" in judge.display_name for judge in simulated)


def test_the_template_asks_for_what_the_parser_reads() -> None:
    template = read_template(ROOT / "config" / "prompts" / "rubric.txt")
    for word in (*CRITERIA, *RESPONSES, "{instruction}", "{first_completion}"):
        assert word in template


def test_files_are_found_through_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGELINE_CONFIG", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="JUDGELINE_CONFIG"):
        load_judges()
    with pytest.raises(FileNotFoundError, match=r"rubric\.txt"):
        read_template()
    (tmp_path / "judges.yaml").write_text(RECORDED)
    assert load_judges()["r"].display_name == "R"


def test_served_judges_validate(tmp_path: Path) -> None:
    file = tmp_path / "judges.yaml"
    file.write_text("s: {display_name: S, family: f, kind: openai, model: m, base_url: 'http://x'}")
    assert load_judges(file)["s"].model == "m"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("r: {display_name: R, family: f, kind: recoded}", ["'r'", "'kind'", "'recoded'"]),
        ("r: {display_name: R, kind: recorded}", ["'r' lacks the key 'family'"]),
        ("r: {display_name: R, family: f, kind: recorded, famly: g}", ["'famly'", "mean 'family'"]),
        (
            "r: {display_name: R, family: f, kind: recorded, zz: 1}",
            ["'zz'", "display_name, family"],
        ),
        (
            "r: {display_name: R, family: f, kind: builtin, builtin: {noize: 1}}",
            ["'builtin.noize'", "mean 'noise'"],
        ),
        ("r: {display_name: R, family: f, kind: builtin}", ["'builtin'", "traits"]),
        (
            "r: {display_name: R, family: f, kind: builtin, builtin: {seed: 1}}",
            ["lacks the key 'builtin.noise'"],
        ),
        ("r: {display_name: R, family: f, kind: openai}", ["needs the name of its 'model'"]),
        ("r: {display_name: R, family: f, kind: recorded, model: m}", ["remove ['model']"]),
        ("Big/Judge: {display_name: R, family: f, kind: recorded}", ["'Big/Judge'", "slug"]),
        ("7: {display_name: R, family: f, kind: recorded}", ["judge 7", "slug"]),
        ("r: {slug: x, display_name: R, family: f, kind: recorded}", ["its key above"]),
        ("r: recorded", ["'r' is 'recorded'"]),
        ("- r", ["mapping"]),
        ("", ["no judges"]),
        ("r: [", ["valid YAML"]),
        (RECORDED + RECORDED, ["'r' occurs twice"]),
        ("r: !!python/object/apply:os.getcwd []", ["valid YAML"]),
    ],
)
def test_mistakes_name_file_key_and_remedy(tmp_path: Path, text: str, parts: list[str]) -> None:
    message = complaint(tmp_path, text)
    for part in parts:
        assert part in message
