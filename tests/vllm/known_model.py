"""Writes a Llama whose next words have known probabilities: python known_model.py FOLDER JSON.
The JSON maps what was said last to probabilities of what comes next. An embedding has an axis per
state, to which attention and layers add nothing; the head holds the log-probabilities."""

import json
import math
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

MARKS = ["<|end|>", "<|grade|>", "<|choose|>"]
CHAT = (
    "{{ messages[-1].content }}"
    "{% if 'one letter' in messages[-1].content %}<|choose|>{% else %}<|grade|>{% endif %}"
)
SIZE = 128
NEVER = -30.0


def write_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*MARKS, *alphabet])}
    bytes_alone = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    bytes_alone.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_alone.decoder = decoders.ByteLevel()
    bytes_alone.add_special_tokens(MARKS)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_alone, eos_token=MARKS[0])
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_model(folder: Path, tokenizer: PreTrainedTokenizerFast, chances: dict) -> None:
    def number(word: str) -> int:
        return tokenizer.convert_tokens_to_ids(word.replace("\n", "\u010a"))

    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=SIZE, intermediate_size=256, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=8192,
        eos_token_id=0, bos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        layer = model.model.layers[0]
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.zero_()
        model.model.embed_tokens.weight[:, 0] = 1.0
        head = torch.full((len(tokenizer), SIZE), NEVER)
        head[0, 0] = 0.0  # whatever else was said, the answer ends
        for axis, (last, nexts) in enumerate(chances.items(), start=1):
            model.model.embed_tokens.weight[number(last)] = torch.eye(SIZE)[axis]
            for token, chance in nexts.items():
                head[number(token), axis] = math.log(chance)
        # the last norm turns a unit vector into one of length sqrt(SIZE)
        model.lm_head.weight.copy_(head / math.sqrt(SIZE))
    model.save_pretrained(folder)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    write_model(target, write_tokenizer(target), json.loads(sys.argv[2]))
