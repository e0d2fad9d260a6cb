"""What identifies the content of a corpus: it changes when that does, and never otherwise."""

import functools
import json
import os
import socket

import pytest

from resources.config.corpora import CorpusDefinition
from resources.config.options import RefreshOptions
from resources.corpora import revision
from resources.corpora.revision import content_revision

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LINE = json.dumps({"model_a": "a", "model_b": "b", "human_outcome": 1.0}) + "\n"


def of_file(path, **options):
    return CorpusDefinition(slug="c", reader="battles", location=str(path), **options)


@pytest.fixture
def file(home, tmp_path):
    place = tmp_path / "battles.jsonl"
    place.write_text(LINE)
    return place


def test_a_file_has_the_revision_of_its_content(file):
    first = content_revision(of_file(file))
    os.utime(file, ns=(1, 1))
    assert content_revision(of_file(file)) == first
    file.write_text(LINE + LINE)
    second = content_revision(of_file(file))
    assert second != first
    file.write_text(LINE)
    assert content_revision(of_file(file)) == first


def test_what_does_not_change_content_does_not_change_the_revision(file):
    first = content_revision(of_file(file))
    changed = of_file(file, sample_size=7, judges=["x"], refresh=RefreshOptions(extend_by=3))
    assert content_revision(changed) == first


def test_a_file_more_in_a_folder_is_new_content(file):
    folder = of_file(file.parent)
    first = content_revision(folder)
    (file.parent / "more.jsonl").write_text(LINE)
    assert content_revision(folder) != first


def test_a_file_that_did_not_change_is_not_read_again(file, monkeypatch):
    first = content_revision(of_file(file))
    monkeypatch.setattr(revision, "_file_hash", lambda _: pytest.fail("read again"))
    assert content_revision(of_file(file)) == first


@pytest.mark.parametrize("torn", ["", "[]", "{"])
def test_a_torn_cache_costs_a_reading_and_nothing_else(home, file, torn):
    first = content_revision(of_file(file))
    (home / "revisions.json").write_text(torn)
    assert content_revision(of_file(file)) == first


def test_the_arena_has_the_revision_of_its_options():
    def arena(**options):
        return content_revision(CorpusDefinition(slug="arena", reader="arena", **options))

    assert arena() == arena(sample_size=5)
    assert len({arena(), arena(seed=1), arena(arena={"n_prompts": 9})}) == 3


def test_a_pinned_commit_is_its_own_revision_and_needs_no_network():
    def hub(commit, path="data/*.parquet"):
        location = f"hf://datasets/owner/name/{path}"
        return content_revision(
            CorpusDefinition(slug="c", reader="lmarena-100k", location=location, revision=commit)
        )

    assert hub(COMMIT).startswith(f"commit {COMMIT} ")
    assert len({hub(COMMIT), hub(COMMIT[::-1]), hub(COMMIT, "other.parquet")}) == 3


def test_a_branch_is_resolved_to_its_commit(monkeypatch):
    import huggingface_hub

    asked = []

    class Api:
        def dataset_info(self, repo, revision, timeout):
            assert 0 < timeout <= 10
            asked.append((repo, revision))
            return type("Info", (), {"sha": COMMIT})

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    found = content_revision(
        CorpusDefinition(
            slug="c", reader="lmarena-100k", location="hf://datasets/o/n/a.parquet", revision="main"
        )
    )
    assert found.startswith(f"commit {COMMIT} ")
    assert asked == [("o/n", "main")]


def test_a_hub_that_is_silent_is_given_up(monkeypatch):
    """It takes the connection and never answers."""
    import huggingface_hub

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(revision, "_HUB_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        own = functools.partial(huggingface_hub.HfApi, endpoint=url)
        monkeypatch.setattr(huggingface_hub, "HfApi", own)
        corpus = CorpusDefinition(
            slug="c", reader="lmarena-100k", location="hf://datasets/o/n/a.parquet", revision="main"
        )
        with pytest.raises(ConnectionError, match="does not say which commit 'main' of o/n is"):
            content_revision(corpus)


def test_a_look_that_is_cut_short_is_taken_up_where_it_was(home, tmp_path, monkeypatch):
    """As where a tick has no time for all files: those that were read are not read again."""
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_text(LINE + name)
    whole = revision._file_hash
    read = []

    def interrupted(file):
        if len(read) == 2 and "cut" not in read:
            read.append("cut")
            raise TimeoutError
        read.append(file.name)
        return whole(file)

    monkeypatch.setattr(revision, "_file_hash", interrupted)
    with pytest.raises(TimeoutError):
        content_revision(of_file(tmp_path / "*.jsonl"))
    content_revision(of_file(tmp_path / "*.jsonl"))
    assert read == ["a.jsonl", "b.jsonl", "cut", "c.jsonl"]
