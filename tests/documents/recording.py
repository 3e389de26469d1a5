"""docs/pictures/demo.svg: what `make demo` prints, step by step, as a picture that moves.

``python -m tests.documents.recording`` writes it anew. The demo runs in virtual time, so the same
comes out of every run. The picture has no script and no font of its own; where no motion is wanted
it shows the step that explains.
"""

from __future__ import annotations

import html
import re
from io import StringIO
from random import Random

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from mcad.api.config import Config
from mcad.cli.commands.demo import load_tutorial
from mcad.cli.demo_cluster.cluster import embedded_cluster, leading
from mcad.cli.demo_cluster.tutorial import DemoOutput, TutorialDemo
from mcad.cli.pages.colours import Palette
from mcad.sim.clock import VirtualClock, run_virtually
from tests.documents.pages import DOCS

PICTURE = DOCS / "pictures" / "demo.svg"
COMMAND = "$ make demo"
STEP = re.compile(r"(?=^\S*\d/5  )", re.MULTILINE)
COLUMNS, LINES = 122, 28
CHAR, LINE, MARGIN = 12.2, 24.4, 16.0  # as rich draws them
SECONDS = 6  # of each step
QUIET = 4  # the step that is shown where no motion is wanted
PAUSE_S = 4.0  # as `mcad demo`: ages are those of a reader's screen

FONT = "font: 20px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def recorded() -> list[str]:
    """The output of the demo, a text with colours for each step."""
    said: list[str] = []

    async def work() -> None:
        rng = Random(1)
        output = DemoOutput(said.append, Palette(enabled=True), PAUSE_S)
        async with embedded_cluster(VirtualClock(), rng) as cluster:
            load_tutorial(cluster)
            async with leading(cluster, Config(), rng) as (client, figures):
                await TutorialDemo(client, figures, output).run()

    run_virtually(work())
    return [one.strip("\n") for one in STEP.split("\n".join(said)) if one.strip()]


def picture() -> str:
    """The SVG of all steps, one after the other, for ever."""
    steps = recorded()
    width, height = COLUMNS * CHAR + 2 * MARGIN, LINES * LINE + 2 * MARGIN
    total, share = SECONDS * len(steps), 100 / len(steps)
    groups = "\n".join(_step(number, text) for number, text in enumerate(steps, 1))
    delays = "\n".join(
        f"#step-{number} {{ animation-delay: {SECONDS * (number - 1)}s }}"
        for number in range(1, len(steps) + 1)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">
<title>mcad demo: the tutorial in a terminal</title>
<style>
text {{ {FONT}; white-space: pre }}
.step {{ visibility: hidden; animation: show {total}s step-end infinite }}
@keyframes show {{ 0% {{ visibility: visible }} {share:g}%, 100% {{ visibility: hidden }} }}
{delays}
@media (prefers-reduced-motion) {{
.step {{ animation: none }} #step-{QUIET} {{ visibility: visible }}
}}
</style>
<rect width="100%" height="100%" rx="8" fill="{SVG_EXPORT_THEME.background_color.hex}"/>
{groups}
</svg>
"""


def _step(number: int, text: str) -> str:
    """The lines of one step, drawn by rich."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor")
    lines = [COMMAND, "", *text.splitlines()]
    assert len(lines) <= LINES, f"step {number} has {len(lines)} lines"
    console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    drawn = console.export_svg(
        code_format="<style>{styles}</style>{matrix}", unique_id=f"s{number}"
    )
    drawn = re.sub(r' clip-path="[^"]*"', "", drawn).replace("&#160;", " ")
    drawn = re.sub(r"<text[^>]*>\s*</text>", "", drawn)
    place = f"translate({MARGIN:g},{MARGIN / 2:g})"
    return f'<g id="step-{number}" class="step" transform="{place}">{drawn}</g>'


def words(svg: str) -> list[str]:
    """The texts of a picture in their order."""
    return [html.unescape(one) for one in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


if __name__ == "__main__":
    PICTURE.write_text(picture())
