"""Tells what a person typed from what hosts and chat clients wrote around it.

A document may forge a template's headings and tags. So a template counts only if its marks occur exactly as often as
the host writes them; otherwise nobody can tell who wrote what, and nothing counts as typed.

Clients and their users word the tasks of clients freely: a title, tags or follow-up questions for a chat, a summary of
it. So these are recognised by their kind: at its beginning or end, a text tells the model to make one of these things
of a conversation.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Open WebUI puts its template for files and knowledge before what was typed. Up to version 0.6 the template also ends
# with what was typed.
_OPEN_WEBUI = "### Task:\nRespond to the user query using the provided context"
_CONTEXT, _CONTEXT_END = "<context>\n", "</context>"
_QUERY, _QUERY_END = "<user_query>\n", "\n</user_query>\n"
# The turns of LiteLLM's `ollama/` template.
_LITELLM = re.compile(r"\s*### (?:User|System):\n")
_TURN = re.compile(r"^[ \t]*#{1,6}[ \t]*(user|system|assistant)[ \t]*:[ \t]*\n?", re.IGNORECASE | re.MULTILINE)
# The beginnings of LangChain's templates with `Question: `, and the labels behind the question that a text may follow.
# Behind any other label there is nothing, or the question is a document's and the host's own has another label.
_LANGCHAIN: dict[str, tuple[str, ...]] = {
    "Question:": ("Helpful Answer:", "Answer:", "Context:", "Thought:"),
    "Answer the question based only on the following context:": (),
    "Use the following pieces of context to answer": (),
    "You are an assistant for question-answering tasks.": ("Context:",),
}
_QUESTION = re.compile(r"^[ \t]*question[ \t]*:[ \t]*", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(r"^[ \t]*([A-Za-z][A-Za-z ]{0,30}:)(?=\s|\Z)", re.MULTILINE)
_CONTEXT_LABEL = re.compile(r"^[ \t]*context[ \t]*:", re.IGNORECASE | re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
# Open WebUI begins its own requests in the user's name with these texts: tasks (titles, tags, follow-up questions,
# search queries, completions), an emoji for a message, one answer from several models' answers.
_HOSTS_OWN = (
    "### Task:",
    "Your task is to reflect the speaker's likely facial expression",
    "You have been provided with a set of responses from various models to the latest user query",
)
# A part that a host wrote is in a tag: `<system-reminder>`, `<file name="...">`.
_TAGGED = re.compile(r"\s*<[A-Za-z][\w.:-]{0,60}[\s>/]")
_TEXT_PARTS = (None, "text", "input_text")


@dataclass(frozen=True, slots=True)
class Typed:
    """The text that a person typed. `frame` is the host's text around it, in pieces: it may repeat what was typed."""

    text: str
    frame: tuple[str, ...] = ("", "")

    def with_text(self, text: str, last: str | None = None) -> str:
        """Put another text in the place of the typed one. `last` is for the last place, by default the same text."""
        *before, behind = self.frame
        return text.join(before) + (text if last is None else last) + behind


def typed_in(text: str, *, prompt: bool = False) -> Typed | None:
    """Find what a person typed; None if a host wrote all of it, or if that cannot be told.

    `prompt`: the text is a whole prompt rather than a message, so it may have turns.
    """
    start = text.lstrip()
    if start.startswith(_OPEN_WEBUI):
        return _behind_context(text)
    if start.startswith(_HOSTS_OWN):
        return None
    if prompt and _LITELLM.match(text):
        return _only_turn(text)
    for opening, followed in _LANGCHAIN.items():
        if start.startswith(opening):
            return _only_question(text, followed)
    return Typed(text)


def typed_part(parts: Sequence[Any]) -> int | None:
    """Return the index of the part that a person typed: the last text that is not in a tag."""
    return next((i for i in reversed(text_parts(parts)) if not _TAGGED.match(parts[i]["text"])), None)


def text_parts(parts: Sequence[Any]) -> list[int]:
    """Return the indices of the parts with text."""
    return [
        i
        for i, part in enumerate(parts)
        if isinstance(part, dict) and part.get("type") in _TEXT_PARTS and isinstance(part.get("text"), str)
    ]


def _behind_context(text: str) -> Typed | None:
    before, end, behind = text.partition(_CONTEXT_END)
    if not end or _CONTEXT_END in behind or text.count(_CONTEXT) != 1 or _CONTEXT not in before:
        return None
    if not behind.lstrip().startswith(_QUERY):
        return _framed(text, len(before) + len(end), len(text)) if behind.startswith("\n\n") else None
    opening = behind.index(_QUERY) + len(_QUERY)
    between = f"{_QUERY_END}\n"
    twice = behind[opening:]
    half = (len(twice) - len(between)) // 2
    typed = twice[: max(half, 0)]
    if not typed.strip() or twice != f"{typed}{between}{typed}":
        return None
    return Typed(typed, (before + end + behind[:opening], between, ""))


def _only_turn(text: str) -> Typed | None:
    """Return the user's only turn. LiteLLM writes the system's turn before it, and no document can add one unseen."""
    turns = list(_TURN.finditer(text))
    if [turn[1] for turn in turns] not in (["User"], ["System", "User"]):
        return None
    return _framed(text, turns[-1].end(), len(text))


def _only_question(text: str, followed: tuple[str, ...]) -> Typed | None:
    """Return the only question of a template, unless a document may have written it.

    Documents stand before the question, and labels behind it.
    """
    questions = list(_QUESTION.finditer(text))
    if len(questions) != 1:
        return None
    start = questions[0].end()
    first = not text[: questions[0].start()].strip()
    label = _label(text, start, followed, first=first)
    end = len(text) if label is None else label.start()
    documents = label is not None and _are_documents_before(text, label, followed)
    if documents or (not first and _PARAGRAPH.search(text[start:end].strip())):
        return None
    return _framed(text, start, end)


def _are_documents_before(text: str, label: re.Match[str], followed: tuple[str, ...]) -> bool:
    if label[1] not in followed:
        return bool(text[label.end() :].strip())
    return label[1] == "Context:" and _CONTEXT_LABEL.search(text, 0, label.start()) is not None


def _label(text: str, start: int, followed: tuple[str, ...], *, first: bool) -> re.Match[str] | None:
    """Return the label behind a question. If the question begins the text, only known labels count."""
    labels = _LABEL.finditer(text, start)
    return next((label for label in labels if not first or label[1] in followed), None)


def _framed(text: str, start: int, end: int) -> Typed | None:
    """Return the text from `start` to `end`, without the blanks around it."""
    typed = text[start:end]
    inner = typed.strip()
    if not inner:
        return None
    start += len(typed) - len(typed.lstrip())
    return Typed(inner, (text[:start], text[start + len(inner) :]))


_LOOKED_AT = 500  # characters at each end of a text
_NEAR = 260  # characters for the rest of the instruction
# The instruction is a sentence of its own, or depends on what the model is told to be or has before it.
_BEGINNING = (
    r"(?:^|[.!?:;。：\n]|\b(?:please|bitte|veuillez|por favor|per favore|si prega di|пожалуйста"
    r"|(?:task|job|goal|role|aufgabe) (?:is|ist|besteht)[^.\n]{0,20}?(?:to)?"
    r"|you (?:will|must|should|need to|have to|are asked to|are tasked with)|want you to|need you to|and"
    r"|(?:based on|given|considering|from|using|anhand|à partir|a partir|in base) [^.,\n]{0,80},))\W{0,12}+"
)
_VERBS = (
    r"(?:generat|creat|writ|provid|giv(?!en\b)|suggest|produc|craft|compos|return|output|mak|propos|summari[sz]|analy[sz]"
    r"|extract|assign|determin|respond|reply|devis|draft|identif|reflect|interpret|com(?=[a-z]{1,4} up with)"
    r"|erzeug|erstell|generier|schreib|gib|formulier|schlag|fass|analysier|nenn"
    r"|gén[eéè]r|cré|donn|rédig|propos|résum"
    r"|ger|gener|escrib|crea|crie|redact|resum|suger|sugir|sugier|scrivi|suggerisci|riassum"
    r"|сгенерир|созда|придума|напиши|предложи|сформулир)\w{0,6}+"
)
_INSTRUCTION = re.compile(rf"{_BEGINNING}(?P<order>{_VERBS})\b", re.IGNORECASE)
# Titles for these works are questions of people.
_WORK = (
    r"(?! (?:for|of|to|für|zu|pour|para|per|для) (?:\w+ ){0,3}(?:reports?|documents?|books?|papers?|articles?|essay"
    r"|story|minutes|meeting|release|presentation|slides?|pages?|posts?|blog|e?-?mails?|letter|memo|notes?|files?|project"
    r"|berichts?|artikel|buch|rapport|livre|informe|libro|relatório|relazione|отчёта|отчета)\b)"
)
_THING = re.compile(
    r"(?<!\bthe )(?<!\bden )(?<!\bdie )\b(?:titles?|headline|(?:hash)?tags?|emojis?|keywords?"
    r"|follow[ -]?up (?:questions?|prompts?|suggestions?|queries|replies)|follow[ -]?ups"
    r"|search quer(?:y|ies)|titel|überschrift|schlagwörter|schlagworte|anschlussfragen|folgefragen|suchanfragen"
    r"|titre|étiquettes|título|etiquetas|titolo|заголовок|название|теги"
    r"|questions de suivi|preguntas de seguimiento|perguntas de (?:acompanhamento|seguimento)"
    r"|domande di (?:approfondimento|follow-up)|уточняющ\w{1,3} вопрос\w{0,3})\b" + _WORK,
    re.IGNORECASE,
)
# These words behind it show a talk between people.
_OF_PEOPLE = (
    r"(?! (?:guides?|services?|servers?|systems?|software|apps?|teams?|rooms?|clients?|tools?|platforms?|protocols?)\b)"
    r"(?! (?:with|about|on|of|from|regarding|concerning"
    r"|mit|über|von|vom|avec|sur|du|con|com|sobre|su|с|о|об|про)\b(?! *$|[.!?\n]|(?: an?| the| your| einem| dem)?"
    r" (?:ai|assistant|user|model|llm|bot|chatbot|nutzer|ki|following|above|messages|turns)\b))"
)
# In English and French, German, Spanish, Portuguese, Italian, Russian: a line for each.
_CONVERSATION = (
    r"(?:conversations?|chats?|chat[ _]history|dialog(?:ue)?s?|threads?|discussions?|échanges?"
    r"|gesprächs?|unterhaltung|chatverlaufs?|diskussion"
    r"|conversación|discusión|diálogo"
    r"|conversa|conversação|discussão"
    r"|conversazione|discussione|dialogo"
    r"|(?:разговор|диалог|чат|бесед(?!к)|дискусси)\w{0,3})"
)
_TALK = re.compile(
    rf"\b(?:{_CONVERSATION}|messages)\b{_OF_PEOPLE}"
    r"|\b(?:for|from|to|is) (?:this|the|the following|the previous|the user'?s) (?:first )?"
    r"(?:message|prompt|query|question|request)\b|\blast (?:assistant )?(?:message|answer|reply|response)\b"
    r"|\bthe user (?:might|may|could|would|will)\b",
    re.IGNORECASE,
)
# The talk that the model has before it.
_THIS_CHAT = (
    r"(?:this|our|the(?= \w{1,20} (?:so far|above|below))"
    r"|the (?:above|preceding|previous|following|given|current|entire|whole)|diese[sn]?|die bisherige|unsere?|cette"
    r"|notre|nos|esta|nuestra|nossa|questa|(?:la )?nostra|эт\w{1,2}|наш\w{0,2}) "
    rf"(?:{_CONVERSATION}|session)\b{_OF_PEOPLE}"
)
_SUMS_UP = r"(?:summari[sz]e|fasse?n?|résum\w{1,3}|resum\w{1,3}|riassum\w{1,3}|изложи\w{0,2}|обобщи\w{0,2})"
_NAMED = re.compile(
    rf"\b(?:name|title|label|tag|summary of|zusammenfassung|{_SUMS_UP}(?: sie)?) {_THIS_CHAT}"
    rf"|\b(?:give|call) {_THIS_CHAT} an? |\ban? (?:[\w-]+ ){{0,3}}(?:name|title|headline|description|header|heading"
    rf"|label|topic|phrase) (?:for|of|to|describing|summari[sz]ing) {_THIS_CHAT}",
    re.IGNORECASE,
)
# A summary that takes the place of what was said.
_RECAP = re.compile(
    rf"\b{_SUMS_UP}[^.\n]{{0,25}}? {_CONVERSATION}\b{_OF_PEOPLE}[^\n]{{0,120}}?"
    r"\b(?:prompt|(?:future|later|further) use|context|kontext\w{0,2}|contexte|contexto|contesto|контекст\w{0,2}"
    r"|futur[aeo]s? (?:usos?|conversa\w{1,6}))\b",
    re.IGNORECASE,
)
_REPHRASING = re.compile(
    r"\b(?:rephras|formulat|reformulat|rewrit|rewrot|convert|turn|umformulier|reformul|переформулир)\w{0,6}[^.\n]{0,160}?"
    r"\b(?:(?:stand-?alone|self-contained|eigenständige|самостоятельный)\W{1,3}(?:search )?"
    r"(?:question|quer(?:y|ies)|frage|вопрос)|question (?:indépendante|autonome)"
    r"|pregunta independiente|pergunta independente|domanda indipendente)\b",
    re.IGNORECASE,
)
_CJK_TALK = (
    r"(?:(?:(?<![的のや])(?<!의 )|(?:以下|上記|上述|以上|用户|用戶|我们|我們|之间|ユーザー?"
    r"|間|우리|사용자)(?:的|の|의 ?)|この|その)"
    r"(?:对话|會話|会话|對話|聊天记录|聊天|会話|チャット|やりとり|대화|채팅)|这句话|這句話|この文章)"
)
_CJK_THING = (
    "(?:标题|標題|题目|主题|主題|タイトル|제목|标签|標籤|名称|名前|后续问题|追问|フォローアップ|関連する質問|후속 질문)"
)
_CJK = re.compile(
    rf"{_CJK_TALK}[^\n]{{0,80}}?{_CJK_THING}|{_CJK_THING}[^。\n]{{0,60}}?{_CJK_TALK}"
    rf"|(?:{_CJK_TALK}[^\n]{{0,40}}?(?:总结|總結|概括|要約|まとめ|요약)|(?:总结|總結|概括|要約|요약)[^\n]{{0,40}}?{_CJK_TALK})"
    r"[^\n]{0,80}?(?:上下文|コンテキスト|プロンプト|컨텍스트|프롬프트|맥락|문맥)"
)
_CJK_ORDER = re.compile(
    r"总结|總結|概括|生成|取|起|考え|给出|提出|作成|要約|付け|つけ|返|まとめ|생성|요약|만들|지어|命名|輸出|输出"
)
_ROLE = re.compile(
    r"^\W{0,4}(?:you(?:'re| are)?|act as) (?:an? |the )?(?:"
    r"[^.\n]{0,60}?\b(?:title|tag|summary)s? (?:generat|creat|writ|mak|assist|expert|special|bot)"
    rf"|[^.\n]{{0,60}}?\b(?:{_CONVERSATION}|session)[ -](?:title|tag|nam|summar|label)"
    r"|[^.\n]{0,60}?\b(?:question|query) (?:rephras|rewrit|reformulat)"
    r"|[^.\n]{0,60}?\b(?:generat|creat|writ)\w{1,3} [^.\n]{0,40}?\b(?:title|tag|follow[ -]up question)s?\b"
    rf"[^.\n]{{0,30}}?\b(?:{_CONVERSATION}|session)\b)",
    re.IGNORECASE,
)
# A task beside each answer is not the only task.
_BESIDE = re.compile(
    r"\b(?:(?:each|every)|(?:after|behind|below|end of) (?:all )?your) (?:answers?|repl(?:y|ies)|responses?|turns?)\b",
    re.IGNORECASE,
)
# Open WebUI writes the turns of a chat so into templates of its users, and its own into this tag.
_USER_TURN = re.compile(r"^USER: ", re.MULTILINE)
_ASSISTANT_TURN = re.compile(r"^ASSISTANT: *\S", re.MULTILINE)
_HISTORY = "<chat_history>", "</chat_history>"


def is_client_task(text: str) -> bool:
    """Tell if a client, and no person, wrote the last message of a chat."""
    ends = (text,) if len(text) <= 2 * _LOOKED_AT else (text[:_LOOKED_AT], text[-_LOOKED_AT:])
    return any(map(_asks_for_a_thing, ends)) or _has_turns(text)


def sets_a_client_task(system: str) -> bool:
    """Tell if a system message asks a model for nothing but a task of a chat client, such as a title."""
    beginning = system[:_LOOKED_AT]
    if _BESIDE.search(beginning):
        return False
    return _ROLE.match(beginning) is not None or _asks_for_a_thing(beginning)


def _asks_for_a_thing(text: str) -> bool:
    if any(rule.search(text) for rule in (_NAMED, _RECAP, _REPHRASING)):
        return True
    if _CJK_ORDER.search(text) and _CJK.search(text):
        return True
    for found in _INSTRUCTION.finditer(text):
        # What it is made of may stand before the order, as in "Given this chat, write a title".
        near = text[found.start() : found.start("order") + _NEAR]
        if _THING.search(near, found.start("order") - found.start()) and _TALK.search(near):
            return True
    return False


def _has_turns(text: str) -> bool:
    if all(mark in text for mark in _HISTORY):
        return True
    return _USER_TURN.search(text) is not None and _ASSISTANT_TURN.search(text) is not None
