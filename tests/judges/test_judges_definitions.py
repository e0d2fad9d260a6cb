from pathlib import Path

import pytest

from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES
from resources.config.judges import load_judges
from resources.config.paths import ROOT
from resources.judges.catalog import read_template

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
    assert {judge.kind for judge in list(judges.values())[3:]} == {"openai", "recorded", "vllm"}
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
        ("r: [", ["line 1", "valid YAML"]),
        ("r:\n  kind: recorded\n  famly: f", ["line 3: judge 'r'", "'famly'"]),
        ("r:\n  kind: recorded\n  kind: builtin", ["line 3: the key 'r.kind'", "in line 2"]),
        ("a: " + "[" * 5000, ["nested too deeply"]),
        (RECORDED + RECORDED, ["line 2: the key 'r' is there already, in line 1"]),
        ("r: !!python/object/apply:os.getcwd []", ["valid YAML"]),
    ],
)
def test_mistakes_name_file_key_and_remedy(tmp_path: Path, text: str, parts: list[str]) -> None:
    message = complaint(tmp_path, text)
    for part in parts:
        assert part in message


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    file = tmp_path / "judges.yaml"
    file.write_bytes("j: {display_name: \xe9}".encode("latin-1"))
    with pytest.raises(ValueError, match=r"judges\.yaml is not UTF-8 at byte 18"):
        load_judges(file)


SERVED = "j:\n  display_name: J\n  family: f\n  kind: openai\n  model: m\n"


@pytest.mark.parametrize(
    "text",
    [
        SERVED + "  api_key_env: hush-hush",
        SERVED + "  api_key: hush-hush",
        SERVED + "  api_key: hush-hush: x",
        SERVED + "  api_key: 'hush-hush",
        SERVED + "  api_key: *hush-hush",
        SERVED + "  api_key: !hush-hush x",
        SERVED + "  base_url: https://user:hush-hush@host/v1",
        SERVED + "  base_url: https://user:hush-hush@[host/v1",
        SERVED + "  base_url: https://host\u2100hush-hush/v1",
    ],
)
def test_a_key_in_the_file_shows_neither_in_the_error_nor_behind_it(
    text: str, tmp_path: Path
) -> None:
    file = tmp_path / "judges.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"judges\.yaml, line 6") as caught:
        load_judges(file)
    error: BaseException | None = caught.value
    while error is not None:
        assert "hush" not in f"{error}{error!r}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    "line",
    [
        "timeout_s: .inf",
        "timeout_s: true",
        "price_per_million: {prompt: .inf, completion: 1}",
        "decoding: {temperature: .nan}",
        "decoding: {seed: true}",
        "decoding: {max_tokens: 99999999999999999999}",
        "concurrency: true",
        "concurrency: '4'",
        "replicates: 2.0",
        "base_url: http://h:99999/v1",
        "base_url: 'http://h/v 1'",
        "base_url: 'http://h/v\u00e9'",
        "base_url: 'http://[::1/v1'",
    ],
)
def test_what_is_no_number_or_url_is_refused(line: str, tmp_path: Path) -> None:
    assert f"line 6: judge 'j', key '{line.partition(':')[0]}" in complaint(
        tmp_path, SERVED + "  " + line
    )


def test_whole_numbers_do_for_fractions(tmp_path: Path) -> None:
    file = tmp_path / "judges.yaml"
    file.write_text(
        SERVED + "  timeout_s: 5\n  decoding: {temperature: 1, seed: -3}\n"
        "  price_per_million: {prompt: 1, completion: 2}\n  base_url: 'http://[::1]:80/v1'\n"
    )
    judge = load_judges(file)["j"]
    assert (judge.timeout_s, judge.decoding.temperature, judge.decoding.seed) == (5.0, 1.0, -3)


def test_the_name_of_all_judges_together_is_refused(tmp_path: Path) -> None:
    told = complaint(tmp_path, RECORDED.replace("r:", "pooled:"))
    assert "line 1" in told
    assert "'pooled'" in told
    assert "another name" in told
