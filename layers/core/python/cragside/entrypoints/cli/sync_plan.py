"""What `cragside sync --dry-run` prints."""

from typing import TYPE_CHECKING, Any

from cragside.entrypoints.cli.terminal import output, printable

if TYPE_CHECKING:
    from cragside.entrypoints.cli.comparing import Comparison

_VERBS = ("add", "change", "move", "remove")


def show_plan(found: "Comparison") -> None:
    """Print a line for each difference, and the counts."""
    console, made = output(), found.plan
    lines = [("add", file.name) for file in made.added]
    lines += [("change", file.name) for file in made.changed]
    lines += [("move", f"{found.earlier_name(move)} -> {move.to.name}") for move in made.moved]
    lines += [("remove", document.name) for document in made.removed]
    lines += [("skip" if each.skipped else "fail", f"{each.name}  ({each.reason})") for each in found.refused]
    for what, name in lines:
        console.print(f"{what:<10}{printable(name)}", soft_wrap=True)
    counts = (made.added, made.changed, made.moved, made.removed)
    changes = ", ".join(f"{verb} {len(some)}" for verb, some in zip(_VERBS, counts, strict=True) if some)
    failing = f" {len(found.failing)} would fail;" if found.failing else ""
    summary = f"Would {changes or 'do nothing'};{failing} {len(made.unchanged)} unchanged. Nothing was done."
    console.print(summary, soft_wrap=True)


def plan_body(found: "Comparison") -> dict[str, Any]:
    """The plan as JSON."""
    made = found.plan
    return {
        "added": [file.source for file in made.added],
        "changed": [file.source for file in made.changed],
        "moved": [{"from": move.document.source, "to": move.to.source} for move in made.moved],
        "removed": [document.source for document in made.removed],
        "unchanged": [file.source for file in made.unchanged],
        "refused": [{"name": each.name, "reason": each.reason} for each in found.refused],
        "needs_consent": bool(found.losses),
    }
