"""What the demo asks, one prompt for each route."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """A prompt and what it shows; a commanded one gets the command prefix in front."""

    shows: str
    text: str
    commanded: bool = True


PROMPTS = (
    DemoPrompt("a local hit, told apart from its namesakes", "Why did Mercury's orbit puzzle astronomers?"),
    DemoPrompt("one answer from two documents", "What did Armstrong build at Cragside?"),
    DemoPrompt("German", "Brauche ich für eine Wärmepumpe eine Fußbodenheizung?"),
    DemoPrompt(
        "a question in two steps",
        "Whose lamps lit the house of the man who invented the hydraulic crane?",
    ),
    DemoPrompt("a question that the corpus cannot answer", "Who won the football World Cup in 2022?"),
    DemoPrompt("a plain prompt, which stays as it is", "Write a haiku about rain.", commanded=False),
    DemoPrompt("evidence with an injection attempt", "How do I read a tide table before crossing a causeway?"),
)
