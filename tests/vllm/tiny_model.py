"""Writes a tiny Llama with random weights: python tiny_model.py FOLDER TEXT_FILE.
The tokenizer learns from the text; heads have 64 dimensions, vLLM's least on a CPU."""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CONTEXT = 8192
VOCABULARY = 2048
CHAT = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MARKS = ["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]


def write_tokenizer(folder: Path, text: str) -> None:
    bytes_of_pairs = Tokenizer(models.BPE())
    bytes_of_pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_of_pairs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=MARKS, initial_alphabet=alphabet
    )
    bytes_of_pairs.train_from_iterator(text.splitlines(keepends=True), trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_of_pairs, eos_token=MARKS[0])
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)


def write_model(folder: Path) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=CONTEXT,
        eos_token_id=0, bos_token_id=None,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)


if __name__ == "__main__":
    target, source = Path(sys.argv[1]), Path(sys.argv[2])
    write_tokenizer(target, source.read_text(encoding="utf-8"))
    write_model(target)
