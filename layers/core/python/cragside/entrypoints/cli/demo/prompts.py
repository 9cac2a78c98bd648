"""What the demo asks, one prompt for each route."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """A prompt and what it shows; a commanded one gets the command prefix in front."""

    shows: str
    text: str
    commanded: bool = True


PROMPTS = (
    DemoPrompt("a local hit, told apart from its namesakes", "Why do sea otters matter to kelp forests?"),
    DemoPrompt(
        "a local hit across documents that the graph joins",
        "Whose lamps lit the house of the man who invented the hydraulic crane?",
    ),
    DemoPrompt("a question that the corpus cannot answer", "Who won the football World Cup in 2022?"),
    DemoPrompt("a plain prompt, which stays as it is", "Write a haiku about rain.", commanded=False),
    DemoPrompt("evidence that carries an injection attempt", "How do I read a tide table before crossing a causeway?"),
)
