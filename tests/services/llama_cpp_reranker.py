"""Writes a model that ranks, as a GGUF file: a tiny BERT with random weights, always the same.

It runs in the environment of `llama_cpp`. Its scores mean nothing: it shows what a server answers, not how well.
"""

import sys

import gguf  # type: ignore[import-not-found,unused-ignore]
import numpy as np

_WIDTH, _INNER, _CONTEXT = 32, 64, 512
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,;:?!'\"()-"
# llama.cpp marks the begin of a word, BERT's own files mark what continues one.
_TOKENS = (*_SPECIAL, *(f"\u2581{letter}" for letter in _LETTERS), *_LETTERS)
_SQUARE = (_WIDTH, _WIDTH)
_SHAPES = {
    "token_embd.weight": (len(_TOKENS), _WIDTH),
    "token_types.weight": (2, _WIDTH),
    "position_embd.weight": (_CONTEXT, _WIDTH),
    **{f"blk.0.attn_{part}.weight": _SQUARE for part in ("q", "k", "v", "output")},
    "blk.0.ffn_up.weight": (_INNER, _WIDTH),
    "blk.0.ffn_down.weight": (_WIDTH, _INNER),
    "cls.weight": _SQUARE,
    "cls.output.weight": (1, _WIDTH),
}
_NORMS = ("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm")


def main() -> None:
    """Write the file that the argument names."""
    writer = gguf.GGUFWriter(sys.argv[1], "bert")
    _describe(writer)
    _add_tokens(writer)
    random = np.random.default_rng(7)
    for name, shape in _SHAPES.items():
        writer.add_tensor(name, random.normal(0, 0.5, shape).astype(np.float32))
        if not name.endswith(("embd.weight", "types.weight")):
            writer.add_tensor(name.replace("weight", "bias"), np.zeros(shape[0], np.float32))
    for name in _NORMS:
        writer.add_tensor(f"{name}.weight", np.ones(_WIDTH, np.float32))
        writer.add_tensor(f"{name}.bias", np.zeros(_WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: gguf.GGUFWriter) -> None:
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_INNER)
    writer.add_block_count(1)
    writer.add_head_count(2)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.RANK)


def _add_tokens(writer: gguf.GGUFWriter) -> None:
    kinds = [gguf.TokenType.CONTROL] * len(_SPECIAL) + [gguf.TokenType.NORMAL] * (len(_TOKENS) - len(_SPECIAL))
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(list(_TOKENS))
    writer.add_token_types(kinds)
    writer.add_token_type_count(2)
    pad, unknown, begin, separator, mask = range(len(_SPECIAL))
    writer.add_pad_token_id(pad)
    writer.add_unk_token_id(unknown)
    writer.add_bos_token_id(begin)
    writer.add_eos_token_id(separator)
    writer.add_sep_token_id(separator)
    writer.add_mask_token_id(mask)


if __name__ == "__main__":
    main()
