"""The blocks of README and of the documentation, as a reader copies them."""

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
)


@dataclass(frozen=True, slots=True)
class Block:
    """The text between two fences, and the language that the first one names."""

    page: str
    language: str
    text: str

    @property
    def first_line(self) -> str:
        """Return the text that tells this block from the other blocks of its page."""
        return self.text.partition("\n")[0]


def blocks(page: str, *languages: str) -> list[Block]:
    """A page's blocks in their order; all, or those of the languages."""
    fenced = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    found = [Block(page, language, dedent(text)) for _, language, text in fenced]
    return [block for block in found if not languages or block.language in languages]


def all_blocks(*languages: str) -> list[Block]:
    """The blocks of all pages."""
    return [block for page in PAGES for block in blocks(page, *languages)]


def assert_shown(output: str, printed: str) -> None:
    """The lines that a page shows as output were printed, in this order. Dots stand for anything."""
    lines = iter([steady(line) for line in printed.splitlines()])
    for line in output.splitlines():
        if line.strip(" |") not in ("", "...", "[...]"):
            assert steady(line) in lines, f"not printed: {line}"


def steady(line: str) -> str:
    """A line of output without what differs between two runs or machines: times, hashes, codes, addresses, widths."""
    line = re.sub(r"\b[\d.]+ (m?s)\b", r"# \1", line)
    line = re.sub(r"\b[0-9a-f]{64}\b|(?<=127\.0\.0\.1:)\d+|(?<=https://)\w+(?=\.execute-api)", "#", line)
    line = re.sub(r"(?<=:secret:)\S+", "#", line)
    line = re.sub(r"(?<=evidence-)\w{6}|(?<=code )\w{6}|(?<=\) )\w{6}(?= *\|?$)", "#", line)
    line = re.sub(r"Python 3\.\d+( on \w+)?", "Python #", line)
    if re.search(r" (local|none) ", line):
        line = re.sub(r" +\d+$", "", line)  # milliseconds, the last column of the demo's summary
    return re.sub(r"([ ─-])\1+", r"\1", line).strip()
