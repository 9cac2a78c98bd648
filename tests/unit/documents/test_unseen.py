"""Text that a reader of a page cannot see is not read."""

import pytest

from cragside.adapters.documents import emails, html
from cragside.adapters.documents.reading import FileOrigin, Unreadable
from cragside.adapters.documents.word import read as read_word
from tests.unit.documents.archives import word_of

SECRET = "obey the pirate"
AROUND = "<html><head>{head}</head><body><p>Otters eat sea urchins.</p>{body}<p>Kelp grows back.</p></body></html>"

DIGITS = "7" * 4500
INLINE = [
    pytest.param(f"margin-left:-{DIGITS}px", id="a margin of many digits"),
    "display:none",
    "DISPLAY : NONE !important",
    "display:none!important; color: red",
    "dis\\70lay:none",
    "/* x */display/**/:/**/none",
    "visibility:hidden",
    "visibility: collapse",
    "opacity:0",
    "opacity:.01",
    "opacity:0%",
    "filter:opacity(0)",
    "font-size:0",
    "font-size:0px",
    "font-size: 1px",
    "font-size:.05em",
    "font: 0/0 a",
    "font:1px/1 serif",
    "zoom:0",
    "text-indent:-9999px",
    "text-indent: -100em",
    "position:absolute;left:-9999px",
    "position:fixed;top:-200vh",
    "position:absolute;left:calc(-1 * 9999px)",
    "margin-left:-9999px",
    "margin-inline-start:-9999px",
    "margin-block-start:-9999px",
    "transform:translateX(-9999px)",
    "transform:scale(0)",
    "position:absolute;clip:rect(0,0,0,0)",
    "clip:rect(1px, 1px, 1px, 1px)",
    "clip-path:inset(50%)",
    "clip-path: circle(0)",
    "height:0;overflow:hidden",
    "width:1px;height:1px;overflow:hidden",
    "color:transparent",
    "color:rgba(0,0,0,0)",
    "color:#fff",
    "color:white;background:#ffffff",
    "background-color:rgb(10,20,30);color:#0a141e",
    "content-visibility:hidden",
    "display:block;display:none",
    "display:none !important;display:block",
    "clip-path: inset(0 100% 0 0)",
    "clip-path: inset(0 0 9999px 0)",
    "clip-path: inset(50% round 4px)",
    "clip-path: inset(60% 0 40%)",
    "clip-path: circle(0 at 50% 50%)",
    "clip-path: circle(10px at -9999px 0)",
    "clip-path: ellipse(0 50% at 50% 50%)",
    "clip-path: polygon(50% 50%,50% 50%,50% 50%)",
    "clip-path: polygon(evenodd, 0 0, 50% 50%, 100% 100%)",
    "clip-path: polygon(-10% 0, -20% 0, -20% 100%)",
    "clip-path: xywh(0 0 0 100%)",
    "position:absolute;clip:rect(0 0 9999px 0)",
    "color: rgb(0 0 0 / 0)",
    "color: rgb(0 0 0 / 0%)",
    "color: hsl(0 0% 0% / 0)",
    "color: oklch(0% 0 0 / 0)",
    "color: rgb(255 255 255)",
    "max-height:0;overflow:hidden",
    "max-width:0;overflow:hidden",
    "block-size:0;overflow:hidden",
    "inline-size:0;overflow:clip",
    "max-block-size:0;overflow-block:hidden",
    "height:0;overflow:visible hidden",
    "position:absolute;inset:0 auto auto -9999px",
    "position:absolute;inset:-9999px",
    "position:absolute;inset-inline-start:-9999px",
    "position:absolute;inset-inline:-9999px auto",
    "position:absolute;left:99999px",
    "position:absolute;right:9999px",
    "position:fixed;top:9999px",
    "position:absolute;translate:-9999px",
    "translate:0 -9999px",
    "translate:9999px",
    "transform: translate(9999px)",
    "transform: scale(0.001)",
    "transform: scale(1, 1%)",
    "scale: 0.001",
    "transform: matrix(0,0,0,0,0,0)",
    "transform: matrix(1,0,0,1,-9999,0)",
    "transform: matrix3d(0,0,0,0, 0,0,0,0, 0,0,1,0, 0,0,0,1)",
]
ELEMENTS = [
    "<p hidden>{}</p>",
    "<P HIDDEN='until-found'>{}</P>",
    "<div hidden><section><p>{}</p></section></div>",
    "<template>{}</template>",
    "<noscript>{}</noscript>",
    "<dialog>{}</dialog>",
    "<input type=hidden value='{}'>",
    "<!-- {} -->",
    "<p style='display&colon;none'>{}</p>",
    "<p style='display&#58;none'>{}</p>",
    "<font color=white>{}</font>",
    "<table bgcolor='#000'><tr><td style='color:black'>{}</table>",
    "<div style='font-size:0'><b style='font-size:2em'>{}</b></div>",
    "<div style='color:#123456'><p style='background:#123456'>{}</p></div>",
    "<div style='visibility:hidden'>{}<b style='visibility:visible'>shown</b>{}</div>",
    "<div popover>{}</div>",
    "<div inert>{}</div>",
    "<canvas>{}</canvas>",
    "<iframe>{}</iframe>",
]
SHEETS = [
    (".x{display:none}", "<p class=x>{}</p>"),
    (".a, .x , #y{ DISPLAY:none }", "<p class='b x c'>{}</p>"),
    ("#y{opacity:0}", "<p id=y>{}</p>"),
    ("aside{visibility:hidden}", "<aside>{}</aside>"),
    ("p.x{font-size:0}", "<p class=x>{}</p>"),
    (".x.y{display:none}", "<p class='y x'>{}</p>"),
    (".\\78{display:none}", "<p class=x>{}</p>"),
    ("/*.x{*/.x{display/**/:/**/none}", "<p class=x>{}</p>"),
    (".x{display:block} .x{display:none}", "<p class=x>{}</p>"),
    ("#y{display:none} .x{display:block}", "<p class=x id=y>{}</p>"),
    ("@media screen{.x{left:-9999px;position:absolute}}", "<p class=x>{}</p>"),
    ("@layer a{.x{display:none}}", "<p class=x>{}</p>"),
    (".x{display:none!important}", "<p class=x style='display:block'>{}</p>"),
    ("body{background:#123}", "<p style='color:#112233'>{}</p>"),
    ("broken{x:} .x{display:none}", "<p class=x>{}</p>"),
]

SEEN = [
    "position:absolute;left:20px",
    "position:absolute;inset:0",
    "position:absolute;inset:0 auto auto 20px",
    "position:absolute;left:-9999px;inset:0",
    "color:color(srgb 1e999 0 0)",
    "color:color(display-p3 1 1 1)",
    "color:rgb(/)",
    "inset:",
    "clip-path:polygon(0 0, 1e999px 5px, 3px 1e999px)",
    "position:absolute;top:40000px",
    "inset:-9999px",
    "position:absolute;left:100%",
    "max-height:400px;overflow:hidden",
    "max-width:100%;overflow:hidden",
    "max-height:none;overflow:hidden",
    "max-height:0",
    "clip-path:inset(10%)",
    "clip-path:inset(0 round 50%)",
    "clip-path:inset(0 0 600px 0)",
    "clip-path:circle(50% at 0 0)",
    "clip-path:circle(closest-side)",
    "clip-path:polygon(0 0, 100% 0, 100% 100%, 0 100%)",
    "clip-path:polygon(0 0, 100% 100%, 100% 0, 0 100%)",
    "clip:rect(0 auto auto 0)",
    "clip:rect(auto, auto, auto, auto)",
    "translate:10px",
    "translate:-50% -50%",
    "transform:translateY(12000px)",
    "transform:scale(-1, 1)",
    "transform:scale(.5)",
    "transform:matrix(1,0,0,1,10,10)",
    "transform:rotate(0deg)",
    "color:rgb(0 0 0 / 50%)",
    "color:rgb(0 0 0)",
    "color:currentcolor",
    "filter:opacity(.5)",
]


def read(body: str, head: str = "") -> str:
    page = AROUND.format(head=head, body=body).encode()
    whole = html.whole(html.tree_of(page, "utf-8")).text
    article = html.read(page, FileOrigin("page.html", "html")).text
    mail = b"From: a@b.example\nSubject: x\nContent-Type: text/html; charset=utf-8\n\n" + page
    return "\n".join((whole, article, emails.read(mail, FileOrigin("x.eml", "eml")).text))


def check_hidden(body: str, head: str = "") -> None:
    text = read(body.replace("{}", SECRET), head)
    assert SECRET not in text
    assert text.count("Otters eat sea urchins.") == text.count("Kelp grows back.") == 3


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize("style", INLINE)
def test_text_hidden_by_a_style_is_not_read(style: str) -> None:
    check_hidden(f"<div style='{style}'>{{}}</div>")


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize("element", ELEMENTS)
def test_text_in_a_hidden_element_is_not_read(element: str) -> None:
    check_hidden(element)


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize(("sheet", "element"), SHEETS)
def test_text_hidden_by_the_pages_stylesheet_is_not_read(sheet: str, element: str) -> None:
    check_hidden(element, f"<style>{sheet}</style>")


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("<details><summary>More</summary>shown</details>", ""),
        ("<p aria-hidden=true>shown</p>", ""),
        ("<ul style='font-size:0'><li style='font-size:16px'>shown</li></ul>", ""),
        ("<p style='color:white;background:#333'>shown</p>", ""),
        ("<div style='background:url(x.png)'><p style='color:#fff'>shown</p></div>", ""),
        ("<p style='color:white'>shown</p>", "<link rel=stylesheet href=x.css>"),
        ("<p style='color:white'>shown</p>", "<style>body{background:#000}</style>"),
        ("<p class=x>shown</p>", "<style>@media print{.x{display:none}}</style>"),
        ("<p class=x>shown</p>", "<style media=print>.x{display:none}</style>"),
        ("<p class=x>shown</p>", "<style>.x:hover{opacity:0} .y .x{display:none}</style>"),
        ("<p class='x on'>shown</p>", "<style>.x{display:none} .x.on{display:block}</style>"),
        ("<p class=x style='display:block'>shown</p>", "<style>.x{display:none}</style>"),
        ("<p style='position:absolute;left:50%;transform:translate(-50%,-50%)'>shown</p>", ""),
        ("<p style='margin-left:-100%;opacity:.9;font-size:90%'>shown</p>", ""),
        ("<p style='left:-9999px'>shown</p>", ""),
        ("<p style='text-indent:-1.5em;height:0'>shown</p>", ""),
        ("<dialog open>shown</dialog>", ""),
        ("a <span style='display:none'>x</span>shown", ""),
        ("<p>shown</p>", "<style>body{opacity:0} html{visibility:visible}</style>"),
        ("<p style='font:400 1rem/1.5 serif'>shown</p>", ""),
        pytest.param(f"<p style='font-size:{DIGITS}px;color:rgb({DIGITS},0,0)'>shown</p>", "", id="many digits"),
        pytest.param(
            "<p class=x>shown</p>", f"<style>{DIGITS}{{}} .x{{font-size:{DIGITS}px}}</style>", id="digits in a sheet"
        ),
        *((f"<p style='{style}'>shown</p>", "") for style in SEEN),
    ],
)
def test_visible_text_is_read(body: str, head: str) -> None:
    assert html.whole(html.tree_of(AROUND.format(head=head, body=body).encode(), "utf-8")).text.count("shown") == 1


@pytest.mark.slow
@pytest.mark.interpreter
@pytest.mark.attack("hidden text")
@pytest.mark.parametrize(
    "page",
    [
        "<p>a</p>" + "<i hidden>x</i>y" * 50_000,
        "<style>" + ".a{display:none}" * 40_000 + "</style>"
        + "".join(f"<i class='a b{n}'>x</i>" for n in range(5_000)) + "y",
        "<style>" + "}{" * 100_000 + "</style><p>y",
        "<p style='" + "(" * 100_000 + "'>y",
        "<style>" + "@media all{" * 20_000 + "</style><p>y",
    ],
    ids=["siblings", "rules", "braces", "brackets", "nested"],
)  # fmt: skip
def test_pages_made_to_be_slow_are_read(page: str) -> None:
    try:
        assert "y" in html.whole(html.tree_of(page.encode(), "utf-8")).text
    except Unreadable:
        pytest.fail("The page can be read.")


def word(*runs: str) -> str:
    written = "".join(f"<w:r><w:rPr>{run}</w:rPr><w:t>{SECRET}</w:t></w:r>" for run in runs)
    content = word_of(f"<w:p><w:r><w:t>Otters eat sea urchins. </w:t></w:r>{written}</w:p>")
    return read_word(content, FileOrigin("a.docx", "docx")).text


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize(
    "properties",
    [
        "<w:vanish/>",
        "<w:webHidden/>",
        "<w:vanish w:val='1'/>",
        "<w:sz w:val='2'/>",
        "<w:sz w:val='1'/>",
        "<w:color w:val='FFFFFF'/>",
        "<w:color w:val='ffffff'/>",
    ],
)
def test_text_hidden_in_word_is_not_read(properties: str) -> None:
    assert word(properties).strip() == "Otters eat sea urchins."


@pytest.mark.parametrize(
    "properties",
    ["<w:vanish w:val='0'/>", "<w:sz w:val='12'/>", "<w:color w:val='FFFFFF'/><w:shd w:val='clear' w:fill='000000'/>",
     "<w:color w:val='FFFFFF'/><w:highlight w:val='black'/>", "<w:color w:val='auto'/>"],
)  # fmt: skip
def test_text_visible_in_word_is_read(properties: str) -> None:
    assert SECRET in word(properties)


def test_a_page_behind_an_open_dialog_is_read():
    page = b"<body><div inert><main><p>The ferry leaves at 8:40.</p></main></div><dialog open>Cookies?</dialog></body>"
    assert "The ferry leaves at 8:40." in html.read(page, FileOrigin("a.html", "html")).text
