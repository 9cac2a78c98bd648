"""WordLlama's static vectors, read from the files that its wheel carries: of texts, and of single words."""

import asyncio
import importlib.util
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
from typing_extensions import override

from cragside.domain.characters import encodable
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.embedder import Embedder, Vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer


EMBEDDED_MODEL = "wordllama-256"
EMBEDDED_DIMENSIONS = 256

_TOKENIZER_FILE = "tokenizers/l2_supercat_tokenizer_config.json"
_WEIGHTS_FILE = "weights/l2_supercat_256.safetensors"
# About 10 ms of work. More runs in a thread, so that it does not block the event loop.
_INLINE_CHARACTERS = 20_000
_BATCH = 256
# So few texts, as those of a question, are encoded before other threads would have woken up for them.
_FEW = 4


class _Model(NamedTuple):
    tokenizer: "Tokenizer"
    table: npt.NDArray[np.float16]


@cache
def _load() -> _Model:
    """Return the model of the process. The table (16 MB) is mapped from its file, so that processes share the memory.

    The package `wordllama` is located but not imported. Its import takes a second, loads `requests` and adds a handler
    to the root logger, and only its two files are needed.
    """
    from tokenizers import Tokenizer

    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ServiceUnavailable("embedder", "The package wordllama is not installed.")
    folder = Path(spec.submodule_search_locations[0])
    try:
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER_FILE))
        table = _mapped(folder / _WEIGHTS_FILE)
    except Exception as error:  # both readers raise various exceptions for a damaged file
        raise ServiceUnavailable("embedder", "The files of the package wordllama are damaged or missing.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return _Model(tokenizer, table)


def _mapped(file: Path) -> npt.NDArray[np.float16]:
    """The only tensor of a safetensors file: the length of the header in eight bytes, the header, the numbers."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        described = orjson.loads(opened.read(length))["embedding.weight"]
    if described["dtype"] != "F16" or described["data_offsets"][0] != 0:
        raise ValueError("The table of token vectors has an unknown form.")
    shape = (int(described["shape"][0]), EMBEDDED_DIMENSIONS)
    return np.asarray(np.memmap(file, dtype="<f2", mode="r", offset=8 + length, shape=shape))


class WordLlamaEmbedder(Embedder):
    """WordLlama with 256 dimensions: offline, 0.05 ms a question, no limit on the length of a text.

    A vector is the mean over all tokens of the text, at unit length; text without tokens gets the zero vector.
    """

    @property
    @override
    def name(self) -> str:
        return EMBEDDED_MODEL

    @property
    @override
    def dimensions(self) -> int:
        return EMBEDDED_DIMENSIONS

    @property
    @override
    def in_process(self) -> bool:
        return True

    @staticmethod
    def load() -> None:
        """Read the model before the first text. Raises `ServiceUnavailable("embedder", ...)`."""
        _load()

    @override
    async def embed(self, texts: Sequence[str]) -> Vectors:
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return self.encode(texts)
        return await asyncio.to_thread(self.encode, texts)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """`embed` without an event loop. Raises `ServiceUnavailable("embedder", ...)` if wordllama is missing."""
        model = _load()
        vectors = np.zeros((len(texts), EMBEDDED_DIMENSIONS), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = [encodable(text) for text in texts[start : start + _BATCH]]
            if len(batch) > _FEW:
                encodings = model.tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            else:
                encodings = [model.tokenizer.encode(text, add_special_tokens=False) for text in batch]
            for offset, encoding in enumerate(encodings):
                if encoding.ids:
                    vectors[start + offset] = _widened(model.table[encoding.ids]).mean(axis=0)
        return unit(vectors)

    def token_ids(self, text: str) -> list[int]:
        """Return the text's tokens as rows of the table."""
        return list(_load().tokenizer.encode(encodable(text), add_special_tokens=False).ids)

    def token_vectors(self, text: str) -> Vectors:
        """Return the vectors of the text's tokens, one per row and not normalised."""
        return _load().table[self.token_ids(text)].astype(np.float32)


# Sign, exponent and mantissa of a half, 13 bits further left, and the difference of the exponents' biases.
_HALF_BITS, _HALF_SCALE = np.int32(-0x70002000), np.float32(2.0**112)


def _widened(halves: npt.NDArray[np.float16]) -> Vectors:
    """Return finite halves as floats, bit by bit: numpy's own conversion takes twice as long."""
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _HALF_BITS
    wide = bits.view(np.float32)
    wide *= _HALF_SCALE
    return wide


def unit(vectors: Vectors) -> Vectors:
    """Rows at unit length; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-12)
    return scaled


Rows = npt.NDArray[np.int32]

# With more words, the memory (1 KB a word) is released. A corpus of 1,000 passages has about 10,000 words.
_MOST_WORDS = 40_000
# Room for the words of one more comparison. Rows that no word has yet take no memory.
_CAPACITY = _MOST_WORDS + 10_000


class Lexicon:
    """Words as rows of `vectors` (not normalised) and of their lengths `norms`. Only rows from `rows` are valid.

    The length of a vector is the weight of its word: WordLlama learnt short vectors for words with little meaning.
    """

    def __init__(self, model: WordLlamaEmbedder) -> None:
        self._model = model
        self.clear()

    def clear(self) -> None:
        """Forget every word. Rows from earlier calls become invalid."""
        self._rows: dict[str, int] = {}
        self._pieces: dict[str, int] = {}
        self.vectors: Vectors = np.zeros((_CAPACITY, self._model.dimensions), dtype=np.float32)
        self.norms: Vectors = np.zeros(_CAPACITY, dtype=np.float32)

    @property
    def full(self) -> bool:
        """Tell if it is time to `clear`."""
        return len(self._rows) + len(self._pieces) > _MOST_WORDS

    def rows(self, words: Iterable[str]) -> Rows:
        """Return the row of each word."""
        known = self._rows
        return np.fromiter((known[w] if w in known else self._learn(w) for w in words), dtype=np.int32)

    def direction(self, words: Iterable[str]) -> Vectors:
        """Return the direction of a text with these words, of length 1; of length 0 if they have none."""
        rows = self.rows(words)  # may replace the vectors
        total: Vectors = self.vectors[rows].sum(axis=0)
        length = float(np.linalg.norm(total))
        return total / length if length > 1e-9 else total

    def pieces(self, word: str) -> int:
        """Return the number of tokens that the model spells the word with."""
        if word not in self._pieces:
            self._pieces[word] = len(self._model.token_vectors(word[:64]))
        return self._pieces[word]

    def _learn(self, word: str) -> int:
        row = len(self._rows)
        if row == len(self.norms):
            self.vectors = np.concatenate([self.vectors, np.zeros_like(self.vectors)])
            self.norms = np.concatenate([self.norms, np.zeros_like(self.norms)])
        self.vectors[row] = self._model.token_vectors(word[:64]).sum(axis=0)
        self.norms[row] = np.linalg.norm(self.vectors[row])
        self._rows[word] = row
        return row
