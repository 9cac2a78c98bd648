"""Recognises what chat clients ask by themselves: a title, tags or follow-up questions for a chat, a summary of it.

Clients and their users word these tasks freely, so this goes by their kind: at its beginning or end, a text tells the
model to make one of these things of a conversation.
"""

import re

_LOOKED_AT = 500  # characters at each end of a text
_NEAR = 260  # characters for the rest of the instruction
# The instruction is a sentence of its own, or depends on what the model is told to be.
_BEGINNING = (
    r"(?:^|[.!?:;。：\n]|\b(?:please|bitte|(?:task|job|goal|role|aufgabe) (?:is|ist|besteht)[^.\n]{0,20}?(?:to)?"
    r"|you (?:will|must|should|are asked to|are tasked with)|want you to|need you to|and)\b)\W{0,12}+"
)
_VERBS = (
    r"(?:generat|creat|writ|provid|giv|suggest|produc|craft|compos|return|output|mak|propos|summari[sz]|analy[sz]|extract"
    r"|assign|determin|respond|reply|devis|draft|identif|com(?=[a-z]{1,4} up with)"
    r"|erzeug|erstell|generier|schreib|gib|formulier|schlag|fass|analysier|nenn"
    r"|gén[eéè]r|cré|donn|rédig|propos|résum"
    r"|gener|escrib|crea|crie|redact|resum|sugier|scrivi|suggerisci"
    r"|сгенерир|созда|придума|напиши|предложи|сформулир)\w{0,6}+"
)
_INSTRUCTION = re.compile(rf"{_BEGINNING}{_VERBS}\b", re.IGNORECASE)
_THING = re.compile(
    r"(?<!\bthe )(?<!\bden )(?<!\bdie )\b(?:titles?|headline|(?:hash)?tags?|emojis?|follow[ -]?ups?"
    r"|search quer(?:y|ies)|titel|überschrift|schlagwörter|schlagworte|anschlussfragen|folgefragen|suchanfragen"
    r"|titre|étiquettes|título|etiquetas|titolo|заголовок|название|теги)\b",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"\b(?:conversations?|chats?|chat[ _]history|dialog(?:ue)?s?|thread|messages|discussion"
    r"|gesprächs?|unterhaltung|chatverlaufs?|dialogs|échange|discussion|conversación|conversa|conversazione|diálogo"
    r"|разговор\w{0,3}|диалог\w{0,3}|чат\w{0,3}|бесед\w{0,3})\b(?! (?:with|about|on|of|from|regarding|concerning"
    r"|mit|über|von|vom|avec|sur|du|con|sobre|с|о|об|про)\b(?! *$|[.!?\n]|(?: an?| the| your| einem| dem)?"
    r" (?:ai|assistant|user|model|llm|bot|chatbot|nutzer|ki|following|above|messages|turns)\b))"
    r"|\b(?:for|to) (?:this|the following|the user'?s) (?:first )?(?:message|prompt|query|question|request)\b",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"\b(?:summari[sz]e|summary of) (?:this|our|the (?:above|preceding|following|current|entire|whole|))[ ]?"
    r"(?:conversation|chat|dialogue|thread)\b",
    re.IGNORECASE,
)
_CJK = re.compile(
    r"(?:总结|總結|概括|生成|取|起|作成|要約|付け|생성|요약|만들)[^。\n]{0,60}?(?:标题|標題|题目|主题|タイトル|제목|标签|標籤)"
    r"|(?:对话|會話|会话|對話|会話|チャット|대화)[^。\n]{0,60}?(?:标题|標題|题目|タイトル|제목|标签|標籤)"
)
_ROLE = re.compile(r"^\W{0,4}you(?:'re| are) (?:an? |the )?[^.\n]{0,60}\b(?:title|tag)s?\b", re.IGNORECASE)
# Open WebUI writes the turns of a chat so into templates of its users, and its own into this tag.
_USER_TURN = re.compile(r"^USER: ", re.MULTILINE)
_ASSISTANT_TURN = re.compile(r"^ASSISTANT: *\S", re.MULTILINE)
_HISTORY = "<chat_history>", "</chat_history>"


def is_client_task(text: str) -> bool:
    """Tell if a client, and no person, wrote the last message of a chat."""
    ends = (text,) if len(text) <= 2 * _LOOKED_AT else (text[:_LOOKED_AT], text[-_LOOKED_AT:])
    return any(_asks_for_a_thing(end) or _SUMMARY.search(end) for end in ends) or _has_turns(text)


def sets_a_client_task(system: str) -> bool:
    """Tell if a system message makes a model do nothing but such a task."""
    beginning = system[:_LOOKED_AT]
    return _ROLE.match(beginning) is not None or _asks_for_a_thing(beginning)


def _asks_for_a_thing(text: str) -> bool:
    if _CJK.search(text):
        return True
    for found in _INSTRUCTION.finditer(text):
        near = text[found.start() : found.start() + _NEAR]
        if _THING.search(near) and _TALK.search(near):
            return True
    return False


def _has_turns(text: str) -> bool:
    if all(mark in text for mark in _HISTORY):
        return True
    return _USER_TURN.search(text) is not None and _ASSISTANT_TURN.search(text) is not None
