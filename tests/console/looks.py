"""Look of the console for a person."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext


@dataclass(frozen=True)
class Look:
    """The system's colours and language, and the size of the window."""

    scheme: Literal["light", "dark"] = "light"
    width: int = 1280
    height: int = 800
    locale: str = "en-GB"

    def context(self, browser: "Browser") -> "BrowserContext":
        """A fresh context of the browser with this look, and without motion."""
        return browser.new_context(
            viewport={"width": self.width, "height": self.height},
            color_scheme=self.scheme,
            locale=self.locale,
            reduced_motion="reduce",
        )

    def __str__(self) -> str:
        return f"{self.scheme}-{self.width}-{self.locale}"


LIGHT = Look()
DARK = Look(scheme="dark")
NARROW = Look(width=360, height=740)
NARROW_DARK = replace(NARROW, scheme="dark")
GERMAN = Look(locale="de-DE")
EVERY_LOOK = (LIGHT, DARK, NARROW, NARROW_DARK, GERMAN)
