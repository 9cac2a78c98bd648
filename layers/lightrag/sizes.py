"""Measure the room that layers take in a function."""

from collections.abc import Sequence
from pathlib import Path

from layers.lightrag.target import Target
from layers.lightrag.tree import files, size

MIB = 2**20
BUDGET = 150 * MIB
LIMIT = 250 * MIB
# The functions of each kind of deployment, with their layers. Lambda allows five, of `LIMIT` together; `BUDGET` is that
# of the first.
FUNCTIONS = {
    "enrich, baked store (without it)": ("core", "lightrag"),
    "enrich, writable store": ("core", "lightrag", "drivers", "parsers"),
    "enrich, writable store, traced": ("core", "lightrag", "drivers", "parsers", "traces"),
    "index": ("core", "lightrag", "drivers"),
}
_ROWS = 32


def tables(target: Target, out: Path, function: Path) -> str:
    """The unzipped sizes of what is in the layers, and of all layers of each function."""
    layers = dict.fromkeys(layer for used in FUNCTIONS.values() for layer in used)
    rows = [row for layer in layers for row in _items(layer, out / target.named(layer) / "python")]
    rows.sort(key=lambda row: -row[1] - row[2])
    shown, rest = rows[:_ROWS], rows[_ROWS:]
    shown.append((f"{len(rest)} smaller ones", sum(row[1] for row in rest), sum(row[2] for row in rest)))
    lines = [f"| {target.python}, {target.arch} | files, MiB | bytecode, MiB | MiB |", "|---|---:|---:|---:|"]
    lines += [f"| {name} | {a / MIB:.2f} | {b / MIB:.2f} | {(a + b) / MIB:.2f} |" for name, a, b in shown]
    lines += ["", "| function | layers | MiB |", "|---|---|---:|"]
    for name, used in FUNCTIONS.items():
        total = size(function, caches=False) + sum_of(target, out, used)
        lines.append(f"| {name} | {', '.join(used)} | {total / MIB:.1f} |")
    limits = f"The budget of the first is {BUDGET // MIB} MiB, Lambda's limit for each {LIMIT // MIB} MiB."
    return "\n".join([*lines, "", limits])


def sum_of(target: Target, out: Path, layers: Sequence[str]) -> int:
    """The bytes of these layers."""
    return sum(size(out / target.named(layer)) for layer in layers)


def _items(layer: str, folder: Path) -> list[tuple[str, int, int]]:
    """The packages of a layer, each with the bytes of its files and of its bytecode."""
    items: dict[str, tuple[int, int]] = {}
    for path in files(folder):
        item = "metadata and licences" if path.parts[0].endswith(".dist-info") else path.parts[0]
        plain, bytecode = items.get(item, (0, 0))
        weight = (folder / path).stat().st_size
        compiled_file = path.suffix == ".pyc"
        items[item] = (plain, bytecode + weight) if compiled_file else (plain + weight, bytecode)
    return [(f"{layer}: {item}", plain, bytecode) for item, (plain, bytecode) in items.items()]
