"""Families of models: names as boards print them, and the makers that everybody knows."""

import pytest

from judgeline.io import family_of
from judgeline.io.makers import MAKERS

KNOWN = {
    "google": ["gemini-1.5-pro-002", "Gemma4-26B-A4B", "google/gemma-2-27b-it", "palm-2", "bard"],
    "openai": ["gpt-4o", "GPT3.5", "chatgpt-4o-latest", "o1-preview", "o3-mini", "GPT-OSS-120B"],
    "alibaba": ["Qwen/Qwen3-8B", "qwq-32b", "qwen2.5-max"],
    "meta": ["Llama-3.3-70B", "meta-llama/Llama-3-8b", "codellama-34b"],
    "nvidia": ["llama-3.1-nemotron-70b-instruct", "nemotron-4-340b"],
    "mistral": ["mixtral-8x7b", "ministral-8b", "mistral-large"],
    "microsoft": ["phi-4", "wizardlm-70b"],
    "01.ai": ["yi-lightning"],
    "eleutherai": ["GPT-J-6B", "gpt-neox-20b"],
    "nomic": ["gpt4all-13b-snoozy"],
    "zhipu": ["glm-4-plus", "chatglm3-6b"],
}


@pytest.mark.parametrize("maker", KNOWN)
def test_two_names_of_one_maker_are_one_family(maker: str) -> None:
    assert {family_of(name) for name in KNOWN[maker]} == {maker}
    assert family_of(maker) == maker


def test_unknown_names_are_told_apart_by_their_letters() -> None:
    names = ("phind-codellama-34b", "yield-2", "sim-fern-1", "opt_out", "3po", "", "Ünit-1")
    own = [family_of(name) for name in names]
    assert own == ["phind", "yield", "sim", "meta", "", "", "ünit"]


def test_families_of_ones_own_come_first() -> None:
    own = {"sim-fern": "fern", "sim": "Sims", "our-tune": "llama", "GPT-4": "ours"}
    names = ("sim-fern-1", "sim-oak-1", "Our-Tune-7b", "gpt-4-turbo", "gpt-3.5", "simple")
    assert [family_of(name, own) for name in names] == [
        "fern", "sims", "meta", "ours", "openai", "simple",
    ]  # fmt: skip


def test_no_beginning_has_two_makers() -> None:
    assert all(key == key.lower().strip() for key in MAKERS)
    assert len(MAKERS) > 100
