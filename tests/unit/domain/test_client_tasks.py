import pytest

from cragside.domain.client_tasks import is_client_task, sets_a_client_task
from tests.bounds import read_within

TURNS = "USER: How deep is the lake?\nASSISTANT: Very deep."
TASKS = {
    "LibreChat, structured": "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. "
    "A concise title in the detected language (5 words or less)\n\nUser: How deep?\nAI: Very.",
    "LibreChat, plain": "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. "
    "Only return the title itself.\n\nConversation:\nUser: How deep?\nAI: Very.",
    "LibreChat, old": "Please generate a concise, 5-word-or-less title for the conversation, using its same language.",
    "LobeChat, old": "user: 湖有多深\nassistant: 很深\n\n请总结上述对话为10个字以内的标题，不需要包含标点符号",
    "Zed": "Generate a concise 3-7 word title for this conversation, omitting punctuation.\nGo straight to the title.",
    "Zed's summary": "Generate a detailed summary of this conversation. Include:\n1. An overview",
    "behind the turns": f"Conversation:\n{'x ' * 900}\n\nReply with a short title for this chat.",
    "tags": "Generate 1-3 broad tags categorizing the main themes of the chat history, in JSON.",
    "follow-ups": "Suggest 3-5 relevant follow-up questions that the user might ask next in this conversation.",
    "search": "Analyze the chat history to determine the necessity of generating search queries.",
    "role": "You are a chat assistant. Your task is to come up with a title for the following chat:\nhow deep?",
    "bullets": "- create a short title (max 6 words)\n- it sums up the chat below\n\nhow deep?",
    "German": "Erstelle einen kurzen Titel für dieses Gespräch. Antworte nur mit dem Titel.",
    "French": "Génère un titre court pour cette conversation.",
    "Spanish": "Genera un título breve para esta conversación.",
    "Russian": "Придумай короткий заголовок для этого разговора.",
    "Japanese": "以下の会話に短いタイトルを付けてください。",
    "a template of one's own": f"In drei Wörtern, was ist das Thema?\n\n{TURNS}",
    "history in its tag": "Worum geht es?\n<chat_history>\nUSER: How deep?\n</chat_history>",
    "from the prompt": "Create a concise title for the user's prompt and the conversation it starts: how deep?",
}
QUESTIONS = [
    "How deep is the lake?",
    "What is the title of Anna's thread on the lake?",
    "Which tags does the conversation with the harbour master have?",
    "How do I generate a title for a chat in Open WebUI?",
    "Give me the title of the book on the discussion of 1994.",
    "Summarise the discussion on the weir in the minutes of March.",
    "Write an essay on conversation. It needs no notes.",
    "Suggest a restaurant near the lake where we can hold a conversation.",
    "Generate a title for my report on the weir.",
    "Write a follow-up to the discussion with Anna about the dam",
    "Please draft a headline for the thread on boiler prices",
    "Provide tags and serial numbers of the pumps named in the discussion of 3 March",
    "Analyse our chat with the supplier: which tags of the pump did he name?",
    "Who led the dialogue with the town, and what was the follow-up?",
    "The chat with Anna was long. What did she say on the weir?",
    "Fasse das Gespräch mit dem Bauamt vom 11. März zusammen.",
    "User: is a column of the table. What does it hold?",
    "会话的记录在哪里？",
    "",
]
SYSTEMS = [
    "You are a professional conversation summarizer. Generate a concise title that captures the essence of the "
    "conversation.\n\nRules:\n- Output ONLY the title text",
    "你是一名擅长会话的助理，你需要将用户的会话总结为 10 个字以内的标题，不需要包含标点符号",
    "You are a title generator. You output ONLY a thread title. Nothing else.",
    "Generate a short title based on the first message a user begins a conversation with.",
]
OTHER_SYSTEMS = [
    "You are a helpful assistant. Answer in the language of the conversation.",
    "You are an editor. You know the titles of all books of the library.",
    "Be polite. Never write emojis.",
    "",
]


@pytest.mark.parametrize("text", TASKS.values(), ids=TASKS)
def test_what_a_client_asks_by_itself_is_no_persons(text):
    assert is_client_task(text)


@pytest.mark.parametrize("text", QUESTIONS)
def test_what_a_person_asks_is_no_clients(text):
    assert not is_client_task(text)


@pytest.mark.parametrize("text", SYSTEMS)
def test_a_system_message_may_set_the_task(text):
    assert sets_a_client_task(text)


@pytest.mark.parametrize("text", OTHER_SYSTEMS)
def test_other_system_messages_set_none(text):
    assert not sets_a_client_task(text)


@pytest.mark.parametrize(
    "piece", ["USER: ", "\nUSER: a", "please ", "generate ", ". and ", "title ", " ", "\n", "总结"]
)
def test_long_texts_are_read_in_time(piece):
    read_within(2, is_client_task, lambda length: piece * (length // len(piece)))
    read_within(2, sets_a_client_task, lambda length: piece * (length // len(piece)))
