"""Questions in Chinese, Japanese, Korean and Thai, and the endings of Korean words."""

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.adapters.embedded.words import korean_stem, without_asking

WEAK = 0.31
QUESTIONS = {
    "泳池几点开门？": "游泳池每天早上六点半开门，周一关闭。",
    "谁保管地下室的钥匙？": "地下室的钥匙由看门人老周保管。",
    "这台水泵是哪个工厂制造的？": "二号水泵是海河工厂在一九八二年制造的。",
    "會議在哪裡舉行？": "下次會議在二樓的會議室舉行，請帶年報。",
    "図書館は何時に閉まりますか。": "図書館は平日の八時に閉まり、土曜は五時です。",
    "倉庫の鍵は誰が持っていますか。": "倉庫の鍵は守衛の中村が持っている。",
    "수영장은 몇 시에 문을 여나요?": "수영장이 여섯 시 반에 문을 연다. 월요일에는 쉰다.",
    "지하실 열쇠를 누가 보관합니까?": "지하실의 열쇠는 경비원 주 씨가 보관한다.",
    "회의는 어디에서 열리나요?": "다음 회의가 이층 회의실에서 열린다. 연보를 가져온다.",
    "ใครเก็บกุญแจห้องใต้ดิน": "กุญแจห้องใต้ดินเก็บโดยยามชื่อสมชาย",
    "สระว่ายน้ำเปิดกี่โมง": "สระว่ายน้ำเปิดหกโมงครึ่งทุกวัน",
}


@pytest.fixture(scope="module")
def grader():
    return EmbeddedGrader(WordLlamaEmbedder())


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_note_that_answers_is_evidence_and_the_others_are_not(grader, question):
    scores = dict(zip(QUESTIONS, grader.scores(question, [("", note) for note in QUESTIONS.values()]), strict=True))
    answering = scores.pop(question)
    assert answering >= WEAK
    assert max(scores.values()) < answering


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("食堂由谁负责", "食堂 负责"),
        ("几何学是什么时候开始的", "几何学是 开始的"),
        ("幾何学は何年に始まった", "幾何学は に始まった"),
        ("누가복음은 언제 쓰였나", "누가복음은   쓰였나"),
        ("왜곡은 왜 생기나", "왜곡은   생기나"),
        ("what is it", "what is it"),
    ],
)
def test_only_question_words_are_left_out(question, left):
    assert without_asking(question) == left


STEMS = {
    "버스는": "버스",
    "공장으로": "공장",
    "와이어로프를": "와이어로프",
    "교체하였다": "교체",
    "교체한": "교체",
    "맡는가": "맡",
    "열린다": "열리",
    "열리나요": "열리",
    "보관합니까": "보관",
    "바다": "바다",
    "문을": "문을",
    "pump": "pump",
    "": "",
}


@pytest.mark.parametrize(("word", "stem"), STEMS.items(), ids=STEMS)
def test_a_korean_word_is_compared_without_its_ending(word, stem):
    assert korean_stem(word) == stem
