"""Generated pages say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcad.core.quota.tree import Flaw
from mcad.core.state.lifecycle import Signal
from tests.chart import dashboard
from tests.documents import PAGES as GENERATED
from tests.documents import performance
from tests.documents.lifecycle import MEANING
from tests.documents.pages import whole
from tests.documents.recording import PICTURE, picture, words


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.stem)
def test_a_generated_page_says_what_the_code_says(page: Path) -> None:
    assert page.read_text() == whole(page, GENERATED[page]()), "python -m tests.documents"


def test_every_http_application_is_on_the_page() -> None:
    made = {
        f"{path.parent.name}/{path.name}": path.read_text().count("web.Application(")
        for path in sorted((ROOT / "mcad").rglob("*.py"))
        if "sim" not in path.parts
    }
    assert {name: count for name, count in made.items() if count} == {
        "controller/http_port.py": 2,
        "visibility/routes.py": 1,
        "ui/server.py": 1,
    }, "add it to tests/documents/http.py"


def test_the_dashboard_is_the_generated_one() -> None:
    assert dashboard.DASHBOARD.read_text() == dashboard.text(), "python -m tests.chart.dashboard"


def test_the_picture_of_performance_is_that_of_its_page() -> None:
    page = performance.PAGE.read_text()
    drawn = performance.picture(page)
    assert performance.PICTURE.read_text() == drawn, "python -m tests.documents.performance"
    assert drawn.count("<circle") == 2 * len(performance.waits(page)) == 18
    assert drawn.count("round ") == len(performance.rates(page)) == 3


def test_what_can_be_wrong_with_a_quota_tree_is_explained() -> None:
    page = (Path(__file__).parents[1] / "docs/use/quotas.md").read_text()
    assert set(re.findall(r"^\| `([A-Z]\w+)` \|", page, re.MULTILINE)) == {*Flaw}


def test_every_signal_has_a_meaning() -> None:
    assert MEANING.keys() == set(Signal)


# -- rules ---------------------------------------------------------------------------------------

RULES = Path("docs/inside/rules.md")
CITED = re.compile(r"\b[PCR][0-9]{1,2}a?\b")
CITES = ("mcad/**/*.py", "tests/**/*.py", "benchmarks/*.py", "docs/**/*.md", "README.md")


def rules() -> dict[str, str]:
    """What is below each heading of the rules."""
    parts = re.split(r"^### (\S+) .*$", RULES.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_rule_that_is_cited_is_written_down() -> None:
    cited = {
        (rule, str(path))
        for pattern in CITES
        for path in Path().glob(pattern)
        for rule in CITED.findall(path.read_text())
    }
    assert len(cited) > 100
    known = rules()
    assert {one for one in cited if one[0] not in known} == set()


def test_every_rule_names_tests_that_exist() -> None:
    for rule, text in rules().items():
        named = re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)(?:::(\w+))?`", text)
        assert named or text.strip().startswith("Not built"), rule
        for path, function in named:
            content = Path(path).read_text()
            assert f"def {function}(" in content if function else content, (rule, path, function)


def test_every_function_of_the_walk_exists() -> None:
    walk = Path("docs/inside/walk.md").read_text()
    named = re.findall(r"\[`[\w/]+\.py(?:::(\w+))?`\]\(../../(mcad/[\w/]+\.py)\)", walk)
    assert len(named) > 20
    for name, path in named:
        defined = re.compile(rf"^ *(?:async )?(?:def|class) {name}\b", re.MULTILINE)
        assert defined.search(Path(path).read_text()), (path, name)


def _anchors(path: Path) -> set[str]:
    """The anchors that GitHub makes of the headings of a page, and those that it declares."""
    text = path.read_text()
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}
    return made | set(re.findall(r'<a id="([^"]+)"', text))


def _broken(page: Path) -> list[str]:
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            found.append(link)
    return found


ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_link_leads_to_nothing(page: Path) -> None:
    assert _broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`\n[a](#one-two) [b](#three) [c](gone.md) [d](https://example.com)")

    assert _broken(page) == ["#three", "gone.md"]


PICTURE_BYTES_MAX = 60_000


def test_the_recorded_terminal_shows_what_the_demo_prints() -> None:
    recorded = PICTURE.read_text()

    assert words(recorded) == words(picture()), "python -m tests.documents.recording"
    assert len(recorded) < PICTURE_BYTES_MAX
    assert "?[" not in recorded, "colours that were printed as text"
    assert "http" not in recorded.replace("http://www.w3.org/2000/svg", ""), "it loads nothing"


LOCKED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def test_the_site_is_built_beside_what_tests_use() -> None:
    """Both locks are installed into one environment."""
    tested = dict(LOCKED.findall((ROOT / "requirements-dev.lock").read_text()))
    site = dict(LOCKED.findall((ROOT / "requirements-docs.lock").read_text()))

    assert {"mkdocs", "mkdocs-material"} <= site.keys() - tested.keys()
    shared = site.keys() & tested.keys()
    assert {name: site[name] for name in shared} == {name: tested[name] for name in shared}
