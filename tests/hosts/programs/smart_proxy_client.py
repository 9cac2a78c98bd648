"""Ollama's library for Python, for a proxy that keeps nothing but the messages of a chat."""

from ollama import Client
from telling import ADDRESS, pieces, tell, user

client = Client(host=ADDRESS)
tell(
    chat=lambda: client.chat(model="m", messages=user()).message.content,
    stream=lambda: pieces(part.message.content for part in client.chat(model="m", messages=user(), stream=True)),
)
