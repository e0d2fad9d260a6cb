"""`panel` and `gate` of a corpus: what a person may write, and what an error tells them."""

from pathlib import Path

import pytest

from judgeline.reliability.gate import CRITERIA, WITHHOLD
from resources.config.corpora import CorpusDefinition, load_corpora
from resources.config.gate_options import GateOptions, PanelOptions


@pytest.fixture
def load(tmp_path: Path):
    def loaded(lines: str) -> CorpusDefinition:
        path = tmp_path / "corpora.yaml"
        path.write_text(f"t:\n  reader: battles\n  location: x.csv\n{lines}", encoding="utf-8")
        return load_corpora(path)["t"]

    return loaded


def test_every_criterion_can_be_set_and_has_the_limit_of_the_core() -> None:
    assert GateOptions().thresholds == {name: limit for name, (_, limit) in CRITERIA.items()}
    assert set(GateOptions.model_fields) == {*CRITERIA, "withhold"}
    assert tuple(GateOptions().withhold) == WITHHOLD


def test_a_corpus_has_no_panel_unless_it_says_so(load) -> None:
    assert load("").panel is None
    assert load("  panel: {}\n").panel == PanelOptions(battles=50, runs=3)
    assert load("  panel: {battles: 0}\n").panel.battles == 0


def test_the_built_in_arena_has_one() -> None:
    assert load_corpora()["arena"].panel == PanelOptions(battles=50, runs=3)


def test_thresholds_are_set_one_by_one_and_null_is_none(load) -> None:
    gate = load("  gate: {kappa: 0.3, icc_average: null, withhold: [kappa]}\n").gate
    assert (gate.kappa, gate.icc_average, gate.withhold) == (0.3, None, ["kappa"])
    assert gate.parse_rate == CRITERIA["parse_rate"].threshold


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("  gate: {kapa: 0.3}\n", "did you mean 'kappa'"),
        ("  gate: {kappa: 1.3}\n", "less than or equal to 1"),
        ("  gate: {icc_average: .nan}\n", "finite"),
        ("  gate: {withhold: [parse_rat]}\n", "did you mean 'parse_rate'"),
        ("  gate: {withhold: [9]}\n", "valid string"),
        ("  panel: {battle: 20}\n", "did you mean 'battles'"),
        ("  panel: {runs: 1}\n", "greater than or equal to 2"),
        ("  panel: {battles: -1}\n", "greater than or equal to 0"),
    ],
)
def test_mistakes_name_file_line_key_and_remedy(load, lines: str, told: str) -> None:
    with pytest.raises(ValueError, match=r"line 4, corpus 't', key '(gate|panel)") as error:
        load(lines)
    assert told in str(error.value)
