"""What the demo asks, one prompt for each route."""

from dataclasses import dataclass

from cragside.entrypoints.samples.documents import QUESTIONS


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """A prompt and what it shows; a commanded one gets the command prefix in front."""

    shows: str
    text: str
    commanded: bool = True


_MERCURY, _ARMSTRONG, _GERMAN = QUESTIONS

PROMPTS = (
    DemoPrompt("a local hit, told apart from its namesakes", _MERCURY),
    DemoPrompt("one answer from two documents", _ARMSTRONG),
    DemoPrompt("German", _GERMAN),
    DemoPrompt(
        "a question in two steps",
        "Whose lamps lit the house of the man who invented the hydraulic crane?",
    ),
    DemoPrompt("a question that the corpus cannot answer", "Who won the football World Cup in 2022?"),
    DemoPrompt("a plain prompt, which stays as it is", "Write a haiku about rain.", commanded=False),
    DemoPrompt("evidence with an injection attempt", "How do I read a tide table before crossing a causeway?"),
)
