"""Vectors of words, summed from WordLlama's token vectors and cached."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.ports.embedder import Vectors

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
        """The row of each word."""
        known = self._rows
        return np.fromiter((known[w] if w in known else self._learn(w) for w in words), dtype=np.int32)

    def direction(self, words: Iterable[str]) -> Vectors:
        """The direction of a text with these words, of length 1; of length 0 if they have none."""
        rows = self.rows(words)  # may replace the vectors
        total: Vectors = self.vectors[rows].sum(axis=0)
        length = float(np.linalg.norm(total))
        return total / length if length > 1e-9 else total

    def pieces(self, word: str) -> int:
        """The number of tokens that the model spells the word with."""
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
