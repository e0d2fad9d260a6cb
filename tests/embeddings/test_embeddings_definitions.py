from collections.abc import Callable
from pathlib import Path

import pytest
from catalogs import catalog_of

from assets.settings import EMBEDDER, value
from judgeline.judges.embeddings.definition import EmbedderDefinition
from judgeline.judges.embeddings.embedder import open_embedder
from judgeline.paths import ROOT
from resources.config.catalog import Catalog
from resources.config.corpora import load_corpora
from resources.config.embeddings import load_embedders

KEY = "sk-secret-0123456789abcdef"


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], dict[str, EmbedderDefinition]]:
    def read(text: str) -> dict[str, EmbedderDefinition]:
        file = tmp_path / "embeddings.yaml"
        file.write_text(text, encoding="utf-8")
        return load_embedders(file)

    return read


def test_shipped_entries_open_once_the_variables_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("EMBEDDINGS_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    shipped = load_embedders(ROOT / "config" / "embeddings.yaml")
    opened = {slug: open_embedder(definition) for slug, definition in shipped.items()}
    assert opened["hashed"].identity["dimensions"] == "256"
    assert opened["text-embedding-3-small"].identity["endpoint"] == "https://api.openai.com/v1"
    assert opened["minilm"].identity["endpoint"] == "minilm"


def test_shipped_corpora_name_shipped_embeddings() -> None:
    corpora = load_corpora(ROOT / "config" / "corpora.yaml")
    named = {corpus.embeddings for corpus in corpora.values()} - {None}
    assert corpora["arena"].embeddings == "hashed"
    assert named <= set(load_embedders(ROOT / "config" / "embeddings.yaml"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("e:\n  kind: hash\n", "line 2: embedding 'e', key 'kind', is wrong"),
        ("e:\n  kind: openai\n", "line 1: embedding 'e' is wrong: .*needs the name of its 'model'"),
        ("e:\n  kind: vllm\n", "line 1: embedding 'e' is wrong: .*needs the name of its 'model'"),
        ("e:\n  kind: openai\n  model: m\n  vllm: {dtype: half}\n", r"has no \['vllm'\]"),
        ("e:\n  kind: vllm\n  model: m\n  base_url: http://h/v1\n", r"has no \['base_url'\]"),
        ("e:\n  kind: hashed\n  model: m\n", r"asks no endpoint: remove \['model'\]"),
        ("e:\n  kind: hashed\n  dimension: 64\n", "line 3: .*did you mean 'dimensions'"),
        ("e:\n  kind: hashed\n  dimensions: 1\n", "line 3: .*'dimensions'.*found 1"),
        ("e:\n  kind: openai\n  model: m\n  batch_size: 5000\n", "line 4: .*found 5000"),
        ("E F:\n  kind: hashed\n", "a slug is lower-case"),
        ("e: hashed\n", "line 1: embedding 'e' is 'hashed'; expected kind"),
        ("e:\n  slug: f\n  kind: hashed\n", "has a key 'slug'"),
        ("e:\n  model: m\n", "lacks the key 'kind'"),
        ("", "holds no embeddings"),
    ],
)
def test_mistakes_are_told_with_their_line(load, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        load(text)


@pytest.mark.parametrize("key", ["api_key_env", "base_url"])
def test_a_key_in_the_wrong_place_is_not_repeated(load, key: str) -> None:
    with pytest.raises(ValueError, match=key) as caught:
        load(f"e:\n  kind: openai\n  model: m\n  {key}: {KEY}\n")
    assert KEY not in str(caught.value)


def test_an_unknown_embedding_of_a_corpus_is_told_with_those_like_it() -> None:
    catalog = Catalog(embeddings_file=str(ROOT / "config" / "embeddings.yaml"))
    with pytest.raises(ValueError, match=r"unknown embedding 'hashd'; did you mean 'hashed'"):
        catalog.embedder("hashd")


HASHES = {  # as recorded by the version before embedders of kind vllm
    "{kind: hashed}": "ed7db647508cc4ae55fac6c5d9f3d82f06a510d0f699b96a53a1423499aef9e6",
    "{kind: openai, model: m, base_url: 'http://h/v1'}":
    "13f42ec47f9e2501109a2c274b475534f99ab5dd556bf3e2560c0bf4f096ac82",
}  # fmt: skip


def _recorded(folder: Path, entry: str) -> str:
    slug = "hashed" if "hashed" in entry else "served"
    catalog = catalog_of(
        folder, corpora=f"c: {{reader: arena, embeddings: {slug}}}", embeddings=f"{slug}: {entry}"
    )
    return str(value(catalog, "c", None, EMBEDDER))


def test_an_embedder_that_starts_no_server_has_the_settings_that_it_had(tmp_path):
    assert {entry: _recorded(tmp_path, entry) for entry in HASHES} == HASHES
    of_vllm = "{kind: vllm, model: m, vllm: {dtype: half}}"
    assert _recorded(tmp_path, of_vllm) != _recorded(tmp_path, of_vllm.replace("half", "float"))


def test_a_missing_variable_is_told_with_the_file_to_change(monkeypatch):
    monkeypatch.delenv("EMBEDDINGS_BASE_URL", raising=False)
    shipped = load_embedders(ROOT / "config" / "embeddings.yaml")
    with pytest.raises(
        ValueError, match=r"embedding 'minilm' reads its 'base_url'.*config/embeddings\.yaml"
    ):
        open_embedder(shipped["minilm"])
