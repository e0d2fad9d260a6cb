"""Entries of one's own: added from examples and settings, checked before they are written."""

import subprocess
from pathlib import Path

import pytest
import yaml

from judgeline.cli import main
from judgeline.paths import ROOT
from pipelines.commands import cli  # noqa: F401 - adds the commands
from resources.config.catalog import Catalog
from resources.config.corpora import KIND as CORPORA
from resources.config.judges import KIND as JUDGES

SERVED = ("kind=openai", "model=m-1", "base_url=http://localhost:1/v1", "family=x")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder with what is shipped; returns its folder of one's own entries."""
    for kind in (CORPORA, JUDGES):
        shipped = ROOT / "config" / f"{kind.plural}.yaml"
        (tmp_path / shipped.name).write_text(shipped.read_text("utf-8"), encoding="utf-8")
    monkeypatch.setenv("JUDGELINE_CONFIG", str(tmp_path))
    return tmp_path / "local"


def settings(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


@pytest.mark.parametrize("kind", [CORPORA, JUDGES])
def test_every_example_can_be_added_and_is_copied_with_its_comments(own: Path, kind) -> None:
    shipped = list(kind.load(None))
    assert set(kind.examples()) == set(
        yaml.safe_load((ROOT / "config" / "examples" / f"{kind.plural}.yaml").read_text("utf-8"))
    )
    for slug in kind.examples():
        assert main([kind.plural, "add", slug]) == 0
    written = kind.own_file.read_text("utf-8")
    assert all(text in written for text in kind.examples().values())
    assert set(kind.load(None)) == {*shipped, *kind.examples()}
    for slug in kind.examples():
        assert main([kind.plural, "remove", slug]) == 0
    assert list(kind.load(None)) == shipped
    assert kind.own_file.is_file()  # of comments alone: what a person wrote there stays


@pytest.mark.parametrize("kind", [CORPORA, JUDGES])
def test_a_folder_begins_with_the_entry_that_is_added(
    tmp_path: Path, monkeypatch, capsys, kind
) -> None:
    monkeypatch.setenv("JUDGELINE_CONFIG", str(tmp_path / "fresh"))
    slug = next(iter(kind.examples()))
    assert main([kind.plural, "add", slug]) == 0
    assert slug in kind.load(None)
    for one in (CORPORA, JUDGES):
        one.load(None)
        assert f"judgeline {one.plural} add NAME" in one.shared_file.read_text("utf-8")
    kind.own_file.unlink()
    kind.shared_file.write_text("")
    assert kind.load(None) == {}
    capsys.readouterr()
    assert main([kind.plural]) == 0
    assert f"To add: judgeline {kind.plural} add SLUG" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [CORPORA, JUDGES])
def test_an_empty_folder_lists_none_and_a_folder_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch, capsys, kind
) -> None:
    folder = tmp_path / "empty"
    monkeypatch.setenv("JUDGELINE_CONFIG", str(folder))
    assert main([kind.plural]) == 1
    assert f"no {kind.plural} file at {folder}" in " ".join(capsys.readouterr().err.split())
    folder.mkdir()
    assert main([kind.plural]) == 0
    assert f"To add: judgeline {kind.plural} add SLUG" in capsys.readouterr().out
    assert list(folder.iterdir()) == []


def test_a_corpus_brings_the_judges_that_it_names(own: Path, capsys) -> None:
    assert main(["corpora", "add", "softelo-annotations"]) == 0
    assert set(CORPORA.load(None)["softelo-annotations"].judges) <= set(JUDGES.load(None))
    assert "judgeline run --corpus softelo-annotations --dry-run" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_named_with_the_remedy(own: Path, capsys) -> None:
    own.write_text("a file where the folder is to be")
    assert main(["judges", "add", "strict", *settings(*SERVED, "display_name=S")]) == 1
    said = capsys.readouterr().err
    assert f"cannot write {own / 'judges.yaml'} (" in said
    assert "set JUDGELINE_CONFIG" in said


def test_a_slug_fits_the_name_of_a_file(own: Path, capsys) -> None:
    assert main(["corpora", "add", "c" * 300, *settings("reader=battles", "location=x.csv")]) == 1
    assert "Nothing was written" in capsys.readouterr().err
    assert main(["corpora", "add", "c" * 100, *settings("reader=battles", "location=x.csv")]) == 0


def test_settings_are_an_entry_or_change_an_example(own: Path, monkeypatch) -> None:
    assert main(["judges", "add", "strict", *settings(*SERVED, "display_name=Strict")]) == 0
    changed = settings("decoding.max_tokens=99", "concurrency=3")
    assert main(["judges", "add", "openrouter-llama", *changed]) == 0
    judges = Catalog().judges()
    assert (judges["strict"].model, judges["strict"].display_name) == ("m-1", "Strict")
    llama = judges["openrouter-llama"]
    assert (llama.decoding.max_tokens, llama.concurrency, llama.family) == (99, 3, "llama")
    assert list(judges) == ["careful", "hasty", "recorded", "strict", "openrouter-llama"]
    where = settings("reader=battles", "location=mine.parquet", "judges=[strict]")
    assert main(["corpora", "add", "mine", *where]) == 0
    assert Catalog().corpus("mine").location == "mine.parquet"
    (own.parent / "mine.parquet").touch()
    monkeypatch.chdir(own.parent)
    assert main(["corpora", "add", "here", *where]) == 0  # a path from here, not the checkout
    assert Catalog().corpus("here").location == str(own.parent / "mine.parquet")
    assert Catalog().corpus("mine").judges == ["strict"]


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        *((name, "prefix") for name in ("gpt-4o-2024-08-06", "gpt-4-0613", "claude-x-20241022")),
        *((name, "any") for name in ("gpt-4o", "gpt-4.1", "qwen3-32b", "mixtral-8x7b-32768")),
    ],
)
def test_a_dated_model_is_the_one_that_answers(own: Path, model: str, rule: str) -> None:
    entry = settings(*SERVED, "display_name=S", f"model={model}")
    assert main(["judges", "add", "dated", *entry]) == 0
    assert main(["judges", "add", "said", *entry, *settings("expect_model=any")]) == 0
    added = Catalog().judges()
    assert (added["dated"].expect_model, added["said"].expect_model) == (rule, "any")
    assert JUDGES.load(None)["dated"].model == model


NAMED = settings(*SERVED, "display_name=S")
SECRETS = ("sk-secret", "s3://me:sk-secret@bucket/x", "https://u:sk-secret@host/x")
MISTAKES = [
    ("judges add careful", [], "'careful' comes with judgeline; take another name"),
    ("judges add gpt-5-mini", [], "already; edit it there, or take it out first"),
    ("judges add s", settings("display_name=Judge #2"), "is a comment in YAML"),
    ("judges add s", settings("family=2024-13-45"), "--set family: what follows"),
    ("judges add gpt-4o-minni", [], "did you mean 'gpt-4o-mini'"),
    ("judges add s", settings(*SERVED), "'display_name'; add it. Nothing was written"),
    ("judges add s", settings("kind"), "takes KEY=VALUE"),
    ("judges add s", settings("kind={"), "not valid YAML"),
    ("judges add s", settings("kind=a", "kind.b=1"), "has no keys under it"),
    ("judges add ../s", NAMED, "a slug is lower-case"),
    ("judges add s", [*NAMED, *settings("api_key_env=sk-secret")],
     "not the name of an environment variable"),
    *(("corpora add s", settings("reader=battles", f"location={one}"), "holds a key or a password")
      for one in SECRETS),
    ("judges remove careful", [], "comes with judgeline"),
    ("judges remove nobody", [], "unknown judge 'nobody'"),
    ("run --dry-run --corpus comparia", [], "judgeline corpora add comparia"),
    ("run --dry-run --corpus arena --judge gpt-4o-mini", [], "judgeline judges add gpt-4o-mini"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "given", "message"), MISTAKES)
def test_a_mistake_is_told_and_nothing_is_written(own, capsys, command, given, message) -> None:
    assert main(["judges", "add", "gpt-5-mini"]) == 0
    before = JUDGES.own_file.read_bytes()
    capsys.readouterr()
    assert main([*command.split(), *given]) == 1
    printed = capsys.readouterr()
    assert message in " ".join((printed.out + printed.err).split())
    assert "sk-secret" not in printed.out + printed.err
    assert JUDGES.own_file.read_bytes() == before


ENTRY = "# {0} is mine,\n# yes.\n{0}:\n  kind: recorded\n  display_name: A\n{1}  family: x\n"


@pytest.mark.parametrize(("removed", "inside"), [("a", ""), ("b", "# more\n")])
def test_removing_one_leaves_the_others_and_their_comments(own: Path, removed, inside) -> None:
    """What stands below a comment in the first column is still of the entry above it."""
    own.mkdir()
    entries = {name: ENTRY.format(name, inside) for name in ("a", "b")}
    JUDGES.own_file.write_text(f"# Head.\n\n{''.join(entries.values())}", encoding="utf-8")
    assert main(["judges", "remove", removed]) == 0
    del entries[removed]
    assert JUDGES.own_file.read_text("utf-8") == f"# Head.\n\n{''.join(entries.values())}"


def test_a_judge_that_nobody_knows_is_said_to_be_missing(own: Path, capsys) -> None:
    where = settings("reader=battles", "location=x.csv", "judges=[typoo]")
    assert main(["corpora", "add", "mine", *where]) == 0
    assert "Judge typoo is not configured yet" in capsys.readouterr().out


def test_own_entries_are_no_part_of_the_checkout() -> None:
    command = ["git", "check-ignore", "config/local/judges.yaml"]
    ignored = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if (ROOT / ".git").exists():
        assert ignored.stdout.strip() == "config/local/judges.yaml"


@pytest.mark.parametrize("wrong", ["kind=opnai", "decoding.max_tokns=3"])
def test_a_setting_that_is_wrong_is_in_no_line_of_a_file(own: Path, capsys, wrong) -> None:
    assert main(["judges", "add", "openrouter-llama", *settings(wrong)]) == 1
    told = capsys.readouterr().err
    assert all(word in told for word in ("'openrouter-llama'", wrong.split("=")[0], "Nothing was"))
    assert "line" not in told
    assert "judges.yaml" not in told
    assert not JUDGES.own_file.exists()
