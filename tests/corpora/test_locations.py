"""Where corpora lie, here or on the hub, and what identifies their content."""

import functools
import hashlib
import json
import os
import socket
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError

from judgeline.paths import ROOT
from resources.config.corpora import CorpusDefinition
from resources.config.options import RefreshOptions
from resources.corpora import locations as revision
from resources.corpora.locations import content_revision, corpus_files

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = "hf://datasets/owner/name/data/*.parquet"


def definition(location: object, revision: str | None = None, **options) -> CorpusDefinition:
    place = None if location is None else str(location)
    given = {"slug": "tiny", "reader": "battles", "location": place, "revision": revision}
    return CorpusDefinition(**given, **options)


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A hub that holds two shards and a card, and tells what it was asked."""
    asked: list[tuple[str, ...]] = []

    class FakeFileSystem:
        def glob(self, pattern: str) -> list[str]:
            asked.append(("glob", pattern))
            root = pattern.split("/data")[0].replace("%2F", "/")
            return [f"{root}/data/b.parquet", f"{root}/data/a.parquet"]

    def download(repo_id: str, filename: str, *, repo_type: str, revision: str) -> str:
        asked.append((repo_id, filename, repo_type, revision))
        path = tmp_path / filename
        path.parent.mkdir(exist_ok=True)
        path.touch()
        return str(path)

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub, "HfFileSystem", FakeFileSystem)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    return asked


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A hub cache made by hand, with one snapshot; the hub itself is off limits."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    store = tmp_path / "datasets--owner--name"
    blob = store / "blobs" / "aa"
    data = store / "snapshots" / COMMIT / "data"
    for folder in (blob.parent, data, store / "refs"):
        folder.mkdir(parents=True)
    blob.write_text("x")
    (data / "a.parquet").symlink_to(blob)
    (data / "a.md").symlink_to(blob)
    (store / "refs" / "v1").write_text(COMMIT)
    return data


def test_paths_folders_and_globs_give_files_in_order(tmp_path: Path) -> None:
    assert corpus_files(definition("config/judges.yaml")) == [ROOT / "config" / "judges.yaml"]
    (tmp_path / "deep").mkdir()
    for name in ("b.parquet", "a.parquet", "notes.txt", "deep/c.parquet"):
        (tmp_path / name).touch()
    found = corpus_files(definition(tmp_path))
    assert [path.name for path in found] == ["a.parquet", "b.parquet", "c.parquet"]
    assert corpus_files(definition(f"{tmp_path}/*.parquet")) == found[:2]
    with pytest.raises(FileNotFoundError, match=r"'tiny'.*b\.parqet \(is b\.parquet meant"):
        corpus_files(definition(tmp_path / "b.parqet"))
    with pytest.raises(FileNotFoundError, match="nothing to read at"):
        corpus_files(definition(tmp_path / "*.csv"))
    (tmp_path / "a.csv").touch()
    with pytest.raises(ValueError, match="holds csv and parquet files; name one kind"):
        corpus_files(definition(tmp_path))


@pytest.mark.parametrize(
    ("location", "revision", "told"),
    [
        (None, None, "has no location; set it"),
        ("${NOT_SET_ANYWHERE}/x.csv", None, "NOT_SET_ANYWHERE, which is not set"),
        (HUB, "${NOT_SET_ANYWHERE}", "the revision of .* NOT_SET_ANYWHERE"),
        (HUB, None, r"no revision.*copy the commit's hash from .*datasets/owner/name/commits/main"),
        (f"hf://datasets/owner/name@{COMMIT}/x.csv", "v1", "two revisions"),
        ("hf://owner/name/x.csv", "v1", "no address of the form hf://datasets/owner/name/path"),
        ("s3://bucket/x.csv", None, "no address of the form"),
    ],
)
def test_locations_that_cannot_be_read(location, revision, told) -> None:
    with pytest.raises(ValueError, match=told):
        corpus_files(definition(location, revision))


PINNED = f"hf://datasets/owner/name@{COMMIT}/data/*.parquet"


@pytest.mark.parametrize(
    ("location", "revision"),
    [(HUB, COMMIT), (PINNED, None), (PINNED, COMMIT), (HUB, "refs/convert/parquet")],
)
def test_hub_files_are_downloaded_at_the_revision(online, location, revision) -> None:
    found = corpus_files(definition(location, revision))
    assert [path.name for path in found] == ["a.parquet", "b.parquet"]
    pinned = revision or COMMIT
    assert online == [
        ("glob", f"datasets/owner/name@{pinned.replace('/', '%2F')}/data/*.parquet"),
        ("owner/name", "data/a.parquet", "dataset", pinned),
        ("owner/name", "data/b.parquet", "dataset", pinned),
    ]


CLIENT_ERROR = HfHubHTTPError.__mro__[1]  # of the HTTP client that this hub library uses


@pytest.mark.parametrize(
    "error", [OSError("no route"), FileNotFoundError("no repo"), CLIENT_ERROR("no name")]
)
def test_a_hub_that_does_not_answer_says_what_to_check(online, error, monkeypatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail)
    with pytest.raises(ConnectionError, match=f"'tiny': dataset owner/name .*{error}.*HF_TOKEN"):
        corpus_files(definition(HUB, COMMIT))


def test_offline_files_come_from_the_cache_or_it_says_how_to_download(cache: Path) -> None:
    for commit in (COMMIT, "v1"):
        assert corpus_files(definition(HUB, commit)) == [cache / "a.parquet"]
    for location, commit in (
        (HUB, "v2"),
        ("hf://datasets/owner/else/*.csv", COMMIT),
        ("hf://datasets/owner/name/data/*.csv", COMMIT),
    ):
        told = rf"HF_HUB_OFFLINE is set; .* hf download owner/\w+ .* --revision {commit} --include"
        with pytest.raises(FileNotFoundError, match=told):
            corpus_files(definition(location, commit))
    (cache / "a.parquet").rename(cache / "train-00000-of-00002.parquet")
    with pytest.raises(FileNotFoundError, match="not, or not all, in the hub's local cache"):
        corpus_files(definition(HUB, COMMIT))
    (cache / "train-00001-of-00002.parquet").touch()
    assert len(corpus_files(definition(HUB, COMMIT))) == 2


# What identifies the content: it changes when that does, and never otherwise

LINE = json.dumps({"model_a": "a", "model_b": "b", "human_outcome": 1.0}) + "\n"
MAIN = definition("hf://datasets/o/n/a.parquet", "main")


@pytest.fixture
def file(home, tmp_path):
    place = tmp_path / "battles.jsonl"
    place.write_text(LINE)
    return place


def test_a_file_has_the_revision_of_its_content(file):
    first = content_revision(definition(file))
    folder = content_revision(definition(file.parent))
    os.utime(file, ns=(1, 1))
    assert content_revision(definition(file)) == first
    file.write_text(LINE + LINE)
    assert content_revision(definition(file)) != first
    file.write_text(LINE)
    same = {"sample_size": 7, "judges": ["x"], "refresh": RefreshOptions(extend_by=3)}
    assert content_revision(definition(file, **same)) == first
    (file.parent / "more.jsonl").write_text(LINE)
    assert content_revision(definition(file.parent)) != folder


def test_options_of_the_arena_and_pinned_commits_need_no_network():
    def arena(**options):
        return content_revision(CorpusDefinition(slug="arena", reader="arena", **options))

    def hub(commit, path="data/*.parquet"):
        return content_revision(definition(f"hf://datasets/owner/name/{path}", commit))

    assert arena() == arena(sample_size=5)
    assert len({arena(), arena(seed=1), arena(arena={"n_prompts": 9})}) == 3
    assert hub(COMMIT).startswith(f"commit {COMMIT} ")
    assert len({hub(COMMIT), hub(COMMIT[::-1]), hub(COMMIT, "other.parquet")}) == 3


def test_a_branch_is_resolved_to_its_commit(monkeypatch):
    asked = []

    class Api:
        def dataset_info(self, repo, revision, timeout):
            assert 0 < timeout <= 10
            asked.append((repo, revision))
            return type("Info", (), {"sha": COMMIT})

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert content_revision(MAIN).startswith(f"commit {COMMIT} ")
    assert asked == [("o/n", "main")]


def test_a_hub_that_is_silent_is_given_up(monkeypatch):
    """It takes the connection and never answers."""
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(revision, "_HUB_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        own = functools.partial(huggingface_hub.HfApi, endpoint=url)
        monkeypatch.setattr(huggingface_hub, "HfApi", own)
        with pytest.raises(ConnectionError, match="does not say which commit 'main' of o/n is"):
            content_revision(MAIN)


def test_a_file_is_read_once_also_where_a_look_is_cut_short(home, tmp_path, monkeypatch):
    """As where a tick has no time for all files: those that were read are not read again."""
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_text(LINE + name)
    whole = hashlib.file_digest
    read = []

    def interrupted(source, digest):
        if len(read) == 2 and "cut" not in read:
            read.append("cut")
            raise TimeoutError
        read.append(Path(source.name).name)
        return whole(source, digest)

    monkeypatch.setattr(hashlib, "file_digest", interrupted)
    with pytest.raises(TimeoutError):
        content_revision(definition(tmp_path / "*.jsonl"))
    found = content_revision(definition(tmp_path / "*.jsonl"))
    assert content_revision(definition(tmp_path / "*.jsonl")) == found
    assert read == ["a.jsonl", "b.jsonl", "cut", "c.jsonl"]
