"""Prints an explanation of `POST /v1/explain` for people."""

from typing import Any

from cragside.domain.explanation import DROPPED, what_to_try
from cragside.domain.neutral import as_name
from cragside.entrypoints.cli.terminal import output, printable
from cragside.entrypoints.cli.wrapping import print_prose

_LONGEST = 300


def show_explanation(explanation: dict[str, Any]) -> None:
    """Print the steps, the candidates with their reasons, and the prompt."""
    console = output()
    question = explanation["standalone_question"] or explanation["question"]
    print_prose(console, f"Question {_one_line(question)}")
    how = (
        f"with a threshold of {explanation['threshold']:g}"
        if explanation["mode"] == "corrective"
        else f"mode {explanation['mode']}"
    )
    console.print(f"Verdict  {explanation['verdict']}, {how}")
    for step in explanation["steps"]:
        facts = [f"{name} {value}" for name, value in step.items() if name not in ("name", "ms") and value is not None]
        line = ", ".join([f"{step['name']} {step['ms']:.1f} ms", *facts])
        print_prose(console, f"Step     {_one_line(line)}")
    for failed in explanation["degraded"]:
        print_prose(console, f"Degraded {failed['component']}: {_one_line(failed['reason'])}", style="yellow")
    for candidate in explanation["candidates"]:
        _show(candidate)
    if explanation["verdict"] == "none":
        advice = what_to_try(explanation["mode"], searched=explanation["search_performed"])
        print_prose(console, f"\n{advice}")
    console.print("\nThe prompt that a model would get:\n")
    print_prose(console, explanation["prompt"])


def _show(candidate: dict[str, Any]) -> None:
    console, reasons, strip = output(), candidate["reasons"], candidate["reasons"]["strip"]
    score = _figure(candidate)
    fate = f"kept as [{candidate['number']}]" if candidate["kept"] else DROPPED[candidate["dropped"]]
    place = [candidate["url"] or candidate["filename"]]
    place += [f"{name} {candidate[name]}" for name in ("page", "section") if candidate[name]]
    where = ", ".join(str(part) for part in place if part)
    title = _one_line(candidate["title"] or candidate["id"])
    print_prose(console, f"\n{score}  {title} ({candidate['source']}: {_one_line(where)})", style="bold")
    needed = "" if candidate["needed"] is None else f"; it needed more than {candidate['needed']:g}"
    print_prose(console, f"      {fate}{needed}; graded by {reasons['grader'] or 'nobody'}")
    if (judged := reasons["judgement"]) is not None:
        told = f"{judged['model']} says {judged['answers']:.2f}, where the grade was {judged['grade']:.2f}"
        print_prose(console, f"      {_one_line(told)}")
    if reasons["words"]:
        print_prose(console, f"      words: {_one_line(', '.join(reasons['words']))}")
    for word in reasons["read"]:
        told = f'read "{word["asked"]}" as "{word["read"]}"'
        print_prose(console, f"      {_one_line(told)}")
    if strip is not None:
        print_prose(console, f"      best strip, {strip['score']:.2f}: {' '.join(printable(strip['text']).split())}")


def _figure(candidate: dict[str, Any]) -> str:
    if candidate["score"] is not None:
        return f"{candidate['score']:.2f}"
    return "none" if candidate["similarity"] is None else f"cosine {candidate['similarity']:.2f}"


def _one_line(text: str) -> str:
    return as_name(printable(text), _LONGEST)
