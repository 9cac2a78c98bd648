"""The control tokens of known chat templates. Add new families here and nowhere else."""

import re

# `<name>` and `</name>`. Names that documents use as placeholders (`<filename>`, `<answer>`) are left out.
_ANGLED = (
    # Llama 2, Mistral, Gemma, T5, GLM, InternLM, Command R, Jamba: begin and end of a text, and padding
    "s", "sop", "eop", "bos", "eos", "eoh", "eoa", "pad", "unk", "mask", "cls", "sep",
    r"(?:bos|eos|pad|unk|cls|sep|mask|eop)_token", r"extra_id_\d+", r"unused_?\d+", r"reserved_\d+", r"special_\d+",
    r"mask:\d+", "begin_of_text", "end_of_text", "end_of_utterance", "endoftext",
    # Gemma: turns, pictures, sounds, functions
    r"(?:start|end)_of_(?:turn|image|audio|video)", r"(?:image|audio)_soft_token",
    r"(?:start|end)_function_(?:call|response|declaration)", "escape",
    # Qwen, Hermes, GLM, Nemotron, Granite, Kimi: thoughts and tools
    "think", "thinking", "scratch_pad", r"tool_(?:calls?|response|responses|result|results|list|outputs?)", "tools",
    "toolcall", "available_tools", "arg_key", "arg_value", r"function=[^<>\n]{1,64}", r"parameter=[^<>\n]{1,64}",
    # Seed, MiniMax, Ling, Command R
    r"seed:[a-z_]{1,40}", r"minimax:[a-z_]{1,40}", r"role(?=>\s*(?:SYSTEM|HUMAN|USER|ASSISTANT|OBSERVATION))",
    r"co: ?[\d,]{1,20}",
    # StarCoder, SmolLM, Granite, Seed-Coder: code
    r"fim_(?:prefix|middle|suffix|pad)", "fim-(?:prefix|middle|suffix|pad)", "reponame", "repo_name", "file_sep",
    "gh_stars", r"issue_(?:start|comment|closed)", r"jupyter_(?:start|text|code|output|script)", "empty_output",
    r"commit_(?:before|msg|after)", "code_(?:prefix|middle|suffix)",
)  # fmt: skip
# `[NAME]` and `[/NAME]`, in any case.
_SQUARE = (
    # Mistral, in all versions of its tokenizer
    "INST", "SYSTEM_PROMPT", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS", "TOOL_CONTENT", "CALL_ID",
    "MODEL_SETTINGS", "IMG_BREAK", "IMG_END", "BEGIN_AUDIO", r"control_\d+",
    # GLM, InternLM, Kimi
    "gMASK", "sMASK", r"UNUSED_TOKEN_\d+", r"extra_id_\d+", "(?:start|end)_header_id",
)  # fmt: skip
# As in `_SQUARE`, but only in capitals: in lower case they occur in usage texts, such as `[args]`.
_SQUARE_CAPITALS = (
    "THINK", "ARGS", "PREFIX", "MIDDLE", "SUFFIX", "IMG", "AUDIO", "TRANSCRIBE", "MASK", "PAD", "UNK", "CLS", "SEP",
    "BOS", "EOS", "EOT", "EOD", "SYS",
)  # fmt: skip
_OTHERS = (
    r"<<\s?/?SYS\s?>>",  # Llama 2
    r"<\|[^<>\n]{0,64}\|?>?",  # ChatML, Llama 3 and 4, Phi, DeepSeek, Qwen, gpt-oss, Granite, Falcon, ...
    r"<[\w/ ▁-]{1,40}\|>",  # what ends with a bar alone, such as Gemma's <turn|>
    r"\[\|/?\w{1,40}\|\]",  # Exaone
    r"<\[[^<>\[\]\n]{1,64}\]>",  # Seed-Coder
    r"\]~!?b\[?\]?|\[e~\[|\]![a-z]~\[|\]<\](?:[a-z_]{1,20}(?:>\[|\[>\[))?",  # MiniMax
    r">>(?-i:TITLE|ABSTRACT|INTRODUCTION|SUMMARY|COMMENT|ANSWER|QUESTION|DOMAIN|PREFIX|SUFFIX|MIDDLE)<<",  # Falcon
    r"\|\|\|(?-i:IP_ADDRESS|EMAIL_ADDRESS|PHONE_NUMBER)\|\|\|",  # OLMo
)

# It is matched against folded texts, in which full-width bars and brackets are plain ones.
CONTROL_TOKEN = re.compile(
    f"{'|'.join(_OTHERS)}|</?(?:{'|'.join(_ANGLED)})/?>"
    f"|\\[/?(?:{'|'.join(_SQUARE)})\\]|\\[/?(?-i:{'|'.join(_SQUARE_CAPITALS)})\\]",
    re.IGNORECASE,
)
