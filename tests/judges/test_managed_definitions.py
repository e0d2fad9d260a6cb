"""A judge of kind vllm in judges.yaml: what it may say, and what is said about the rest."""

from pathlib import Path

import pytest
import yaml

from resources.config.judges import JudgeDefinition, load_judges
from resources.judges.managed.command import server_command, server_environment
from resources.judges.managed.options import VllmOptions

SECRET = "hf_" + "Secret" * 5


def load(tmp_path: Path, **fields: object) -> JudgeDefinition:
    file = tmp_path / "judges.yaml"
    entry = {"display_name": "Tiny", "family": "none", "kind": "vllm", "model": "m", **fields}
    file.write_text(yaml.safe_dump({"tiny": entry}), encoding="utf-8")
    return load_judges(file)["tiny"]


def test_a_model_is_enough(tmp_path):
    assert load(tmp_path).vllm is None
    options = {"tensor_parallel_size": 2, "extra_args": ["--reasoning-parser", "qwen3"]}
    assert load(tmp_path, vllm=options).vllm == VllmOptions(**options)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"base_url": "http://127.0.0.1:8000/v1"}, r"server of its own.*remove \['base_url'\]"),
        ({"api_key_env": "VLLM_API_KEY"}, r"key of its own: remove \['api_key_env'\]"),
        ({"kind": "openai", "vllm": {}}, "only judges of kind 'vllm'"),
        ({"kind": "recorded", "model": None, "vllm": {}}, "only judges of kind 'vllm'"),
        ({"vllm": {"tensor_paralel_size": 2}}, "did you mean 'tensor_parallel_size'"),
        ({"vllm": {"data_parallel_size": 0}}, r"'vllm.data_parallel_size'.*greater than"),
        ({"vllm": {"extra_args": ["--dtype=half"]}}, "has a key of its own, 'vllm.dtype'"),
        ({"vllm": {"extra_args": ["--max_model_len", "9"]}}, "'vllm.max_model_len'; use that"),
        ({"vllm": {"extra_args": ["--revision", "x"]}}, "has a key of its own, 'revision'"),
        ({"vllm": {"extra_args": ["--port=80"]}}, "--port is chosen for each start; remove it"),
        ({"vllm": {"extra_args": ["--max-num-seqs", 4]}}, r"'vllm.extra_args.1'.*valid string"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_remedy(tmp_path, fields, told):
    with pytest.raises(ValueError, match=told):
        load(tmp_path, **fields)


def test_a_key_in_the_extra_arguments_is_refused_and_not_repeated(tmp_path):
    with pytest.raises(ValueError, match="--api-key is chosen for each start") as raised:
        load(tmp_path, vllm={"extra_args": ["--api-key", "sk-secret"]})
    assert "sk-secret" not in str(raised.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--hf-token", SECRET],
        [f"--hf-token={SECRET}"],
        ["--hf_token", SECRET],
        [f"--hf-token {SECRET}"],
        ["--hf-tok", SECRET],  # a beginning is enough for the server
        ["--api-k", SECRET],
        ["--model-loader-extra-config.api_key", SECRET],
        ["--model-loader-extra-config", f'{{"auth": "{SECRET}"}}'],
        ["--max-num-seqs", "4", SECRET],
    ],
)
def test_a_token_in_the_extra_arguments_is_refused_and_not_repeated(tmp_path, arguments):
    with pytest.raises(ValueError, match=r"'vllm.extra_args'.*set HF_TOKEN") as raised:
        load(tmp_path, vllm={"extra_args": arguments})
    with pytest.raises(ValueError, match="set HF_TOKEN in the environment") as direct:
        VllmOptions(extra_args=arguments)
    assert SECRET not in f"{raised.value} {direct.value}"


def test_arguments_about_tokens_that_are_no_secrets_are_taken(tmp_path):
    arguments = ["--tokenizer", "x", "--max-num-batched-tokens=9", "--ssl-keyfile", "/k.pem"]
    arguments += ["--return-tokens-as-token-ids", "--long-prefill-token-threshold", "4"]
    assert load(tmp_path, vllm={"extra_args": arguments}).vllm.extra_args == tuple(arguments)


def test_the_users_arguments_come_last_so_that_they_win(tmp_path):
    judge = load(tmp_path, vllm={"extra_args": ["--structured-outputs-config", "{}"]})
    command = server_command("python", judge, judge.vllm, 1)
    assert command[-2:] == ["--structured-outputs-config", "{}"]
    assert command.count("--structured-outputs-config") == 2
    assert "--max-model-len" not in command
    assert "--revision" not in command


def test_a_model_in_a_folder_is_found_from_everywhere_and_named_as_written(tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    judge = load(tmp_path, model="weights")
    command = server_command("python", judge, VllmOptions(), 1)
    assert command[command.index("--model") + 1] == str(tmp_path / "weights")
    assert command[command.index("--served-model-name") + 1] == "weights"


def test_the_server_gets_its_key_and_its_interpreters_tools():
    given = {"PATH": "/usr/bin", "HF_HUB_OFFLINE": "1"}
    variables = server_environment("/env/bin/python", "k", given)
    assert variables["VLLM_API_KEY"] == "k"
    assert variables["PATH"] == "/env/bin:/usr/bin"
    assert variables["HF_HUB_OFFLINE"] == "1"
