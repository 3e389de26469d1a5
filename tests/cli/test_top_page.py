"""The screen of ``mcad top`` as a function of figures and a size."""

import re
import time
from typing import Any

import pytest

from mcad.cli.pages.colours import Palette
from mcad.cli.pages.top import Moment, frame
from tests.cli.test_server_figures import ROW

Json = dict[str, Any]

NOW_US = 1_800_000_000_000_000
SIZES = [(1, 1), (5, 3), (20, 4), (40, 10), (80, 24), (100, 30), (132, 50), (250, 100)]


def waiting(name: str, position: int, **more: Any) -> Json:
    return ROW | {"name": name, "uid": name, "position": position} | more


def running(name: str, **more: Any) -> Json:
    quiet = {"position": 0, "state": "Running", "waitsFor": "", "why": ""}
    return ROW | {"name": name, "uid": name} | quiet | more


def books(**resources: tuple[str, str, str, str]) -> Json:
    names = ("allocatable", "used", "reserved", "free")
    return {
        book: {name.replace("_", "/"): amounts[i] for name, amounts in resources.items()}
        for i, book in enumerate(names)
    }


def capacity(**resources: tuple[str, str, str, str]) -> Json:
    return {"nodes": [{}, {}], "total": books(**resources), "unplaced": {}}


CPU = capacity(cpu=("10", "5", "2500m", "2500m"))


def moment(rows: list[Json] | None, **more: Any) -> Moment:
    return Moment(NOW_US, "context here", rows, **({"capacity": CPU} | more))


def stripped(line: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", line)


def crowd() -> list[Json]:
    line = [waiting(f"waiting-{n}", n) for n in range(1, 41)]
    held = [waiting("held", 0, waitsFor="Suspended", why="spec.suspend is true; set it to false.")]
    done = [running("done", state="Completed"), running("broken", state="Failed")]
    return line + held + [running(f"running-{n}") for n in range(30)] + done


def painted(line: str) -> str:
    """The codes of a line, such as <2>, where they can be read."""
    return re.sub(r"\x1b\[([\d;]*)m", r"<\1>", line)


FEW = [
    waiting("a", 1),
    waiting("held", 0, waitsFor="Suspended", why="It is held."),
    running("b"),
    running("c", firstSeen=None),
    running("x", state="Pending"),
]


def test_all_of_it() -> None:
    one = moment(FEW, namespace="default", trouble="old news", notes=("mind this",))
    assert [painted(line) for line in frame(one, 80, 30, Palette(True))] == [
        f"<1>{'mcad top   context here   namespace default':<68}08:00:00 UTC<0>",
        "<31>old news<0>",
        "<33>mind this<0>",
        "AppWrappers: <33>1 in line<0>, <33>1 on hold<0>, <32>2 running<0>, "
        "1 being created or deleted",
        "",
        "<1>Capacity of 2 nodes<0>",
        f"  cpu  [<32>{'#' * 14}<0><33>{'+' * 7}<0><2>{'.' * 7}<0>]  used 5  reserved 2500m  "
        "free 2500m  of 10",
        "",
        "<1>Queue: 1 in line, 1 on hold<0>",
        "<7>POS      NAME   PRIORITY   DEMAND   AGE   WAITS-FOR<0>",
        "1        a      0          cpu=1    60s   cpu",
        "<2>      cpu: 1 requested, 0 available, 1 missing.<0>",
        "<none>   held   0          cpu=1    60s   Suspended",
        "<2>      It is held.<0>",
        "",
        "<1>Dispatched: 3<0>",
        "<7>NAME   STATE     PRIORITY   DEMAND   AGE<0>",
        "b      <32>Running<0>   0          cpu=1    60s",
        "x      <33>Pending<0>   0          cpu=1    60s",
        "c      <32>Running<0>   0          cpu=1    <unknown>",
    ]


def test_all_of_it_scrolled() -> None:
    lines = [painted(line) for line in frame(moment(FEW, skip=9), 80, 14, Palette(True))]
    assert lines[5:] == [
        "",
        "<2>... 2 above, 0 more<0>",
        "<2>      It is held.<0>",
        "",
        "<1>Dispatched: 3<0>",
        "<7>NAME        STATE     PRIORITY   DEMAND   AGE<0>",
        "default/b   <32>Running<0>   0          cpu=1    60s",
        "default/x   <33>Pending<0>   0          cpu=1    60s",
        "default/c   <32>Running<0>   0          cpu=1    <unknown>",
    ]
    whole = frame(moment(FEW), 80, 30)
    assert frame(moment(FEW, skip=9), 80, 30)[5:] == ["", "... 0 above, 0 more", *whole[5:]]


def test_all_of_it_on_a_narrow_and_low_screen() -> None:
    assert [painted(line) for line in frame(moment(FEW), 50, 14, Palette(True))] == [
        "<1>mcad top   context here   all namespaces   08:0...<0>",
        "AppWrappers: 1 in line, 1 on hold, 2 running, 1...",
        "",
        "<1>Capacity of 2 nodes<0>",
        "  cpu  used 5  reserved 2500m  free 2500m  of 10",
        "",
        "<1>Queue: 1 in line, 1 on hold<0>",
        "<7>POS      NAME           DEMAND   AGE   WAITS-FOR<0>",
        "<2>... 2 more<0>",
        "",
        "<1>Dispatched: 3<0>",
        "<7>NAME        STATE     DEMAND   AGE<0>",
        "<2>... 3 more<0>",
    ]


def test_all_of_the_lists_on_a_wide_screen() -> None:
    lines = frame(moment(FEW[:2]), 130, 30)
    assert lines[6:] == [
        "Queue: 1 in line, 1 on hold",
        "POS      NAME           PRIORITY   DEMAND   AGE   WAITS-FOR   WHY",
        "1        default/a      0          cpu=1    60s   cpu         "
        "cpu: 1 requested, 0 available, 1 missing.",
        "<none>   default/held   0          cpu=1    60s   Suspended   It is held.",
        "",
        "Dispatched: 0",
    ]


def test_both_lists_have_their_titles_as_long_as_there_is_room_for_them() -> None:
    lines = frame(moment(FEW), 80, 9)
    assert lines[5:] == ["", "Queue: 1 in line, 1 on hold", "", "Dispatched: 3"]


def test_what_is_left_out_is_counted_once() -> None:
    """After a row with its reason has no room, a later one without might have."""
    lines = frame(moment([waiting(f"w-{n}", n) for n in range(1, 6)]), 80, 14)
    assert [line for line in lines if " more" in line] == ["... 4 more"]


def test_a_state_keeps_its_colour_as_long_as_its_row_fits() -> None:
    row = "default/b   Running   0          cpu=1    60s"
    assert row in frame(moment([running("b")]), len(row), 30)
    colours = Palette(True)
    fits = [painted(one) for one in frame(moment([running("b")]), len(row), 30, colours)]
    assert row.replace("Running", "<32>Running<0>") in fits


def test_the_clock_is_that_of_greenwich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert frame(moment([]), 100, 20)[0].endswith("   08:00:00 UTC")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_long_note_has_as_many_lines_as_it_takes() -> None:
    assert frame(moment([], notes=("one two three four",)), 10, 20)[1:3] == [
        "one two",
        "three four",
    ]


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (-1, -1)])
def test_a_terminal_without_a_size_gets_a_line(size: tuple[int, int]) -> None:
    lines = frame(moment(FEW, notes=("a b",)), *size)
    assert 1 <= len(lines) <= max(size[1], 1)
    assert max(map(len, lines)) <= max(size[0], 1)


def test_bars_have_one_length() -> None:
    view = capacity(cpu=("2", "1", "0", "1"), memory=("8129036Ki", "1706Mi", "0", "6382092Ki"))
    lines = [line for line in frame(moment([], capacity=view), 90, 20) if "[" in line]
    assert len({line.index("]") for line in lines}) == 1


@pytest.mark.parametrize(
    ("amounts", "bar"),
    [
        (("10", "0", "0", "10"), "." * 40),
        (("10", "10", "0", "0"), "#" * 40),
        (("10", "1m", "0", "9999m"), "#" + "." * 39),
        (("10", "9900m", "100m", "0"), "#" * 39 + "+"),
        (("10", "12", "0", "-2"), "#" * 40),
        (("10", "6", "8", "-4"), "#" * 24 + "+" * 16),
    ],
)
def test_little_is_visible_and_too_much_fits(amounts: tuple[str, ...], bar: str) -> None:
    lines = frame(moment([], capacity=capacity(cpu=amounts)), 120, 20)  # type: ignore[arg-type]
    assert any(f"[{bar}]" in line for line in lines)


def test_usual_resources_come_first_and_what_no_node_has_is_left_out() -> None:
    amounts = ("4", "0", "0", "4")
    none = ("0", "0", "0", "0")
    view = capacity(
        **{"hugepages-2Mi": none, "nvidia.com_gpu": amounts},
        **{"pods": amounts, "memory": amounts, "cpu": amounts, "ephemeral-storage": amounts},
    )
    lines = frame(moment([], capacity=view), 120, 20)
    first = [line.split()[0] for line in lines if "[" in line]
    assert first == ["cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage"]


def test_reservations_without_a_node_are_told() -> None:
    view = CPU | {"unplaced": {"cpu": "2", "pods": "1"}}
    assert "  unplaced: cpu=2,pods=1" in frame(moment([], capacity=view), 100, 20)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("colours", [False, True])
def test_it_never_leaves_the_screen(size: tuple[int, int], colours: bool) -> None:
    width, height = size
    rows = [*crowd(), waiting("x" * 200, 41, why="y" * 300)]
    moments = [moment(rows, skip=skip) for skip in (None, 1, 7, 40, 70, 1000)]
    for one in (*moments, moment([]), moment(None), moment(rows, trouble="no news " * 30)):
        lines = frame(one, width, height, Palette(colours))
        assert 1 <= len(lines) <= height
        assert max(len(stripped(line)) for line in lines) <= width
        if not colours:
            assert all("\x1b" not in line for line in lines)


def test_colours_change_nothing_but_the_colour() -> None:
    for width, height in SIZES:
        plain = frame(moment(crowd()), width, height)
        assert list(map(stripped, frame(moment(crowd()), width, height, Palette(True)))) == plain


def test_on_a_narrow_screen_the_first_reasons_have_lines_of_their_own() -> None:
    lines = frame(moment([waiting(f"w-{n}", n) for n in range(1, 6)]), 80, 40)
    reasons = [n for n, line in enumerate(lines) if line.startswith("      cpu: 1 requested")]
    assert len(reasons) == 3
    assert [lines[n - 1].split()[1] for n in reasons] == [f"default/w-{n}" for n in (1, 2, 3)]


def test_one_namespace_only() -> None:
    rows = [waiting("a", 1), waiting("b", 2, namespace="team-a")]
    lines = frame(moment(rows, namespace="team-a"), 100, 30)
    assert "namespace team-a" in lines[0]
    assert any(re.match(r"2 +b ", line) for line in lines)
    assert not any(re.match(r"1 +a ", line) for line in lines)


def test_before_anything_is_known() -> None:
    lines = frame(moment(None, capacity=None), 80, 24)
    assert lines[1:] == ["", "reading the cluster..."]


def test_what_stands_in_a_cluster_cannot_steer_the_terminal() -> None:
    evil = waiting("a", 1, why="\x1b[2J\x07gone\nnext")
    lines = frame(moment([evil], trouble="\x1b]0;title\x07"), 200, 30)
    assert all("\x1b" not in line and "\x07" not in line and "\n" not in line for line in lines)


def test_every_row_can_be_scrolled_into_sight() -> None:
    rows = crowd()
    seen: set[str] = set()
    for skip in range(len(rows)):
        text = "\n".join(frame(moment(rows, skip=skip), 130, 24))
        seen |= {row["name"] for row in rows if re.search(rf"default/{row['name']}\b(?!-)", text)}
    ended = {"done", "broken"}
    assert seen == {row["name"] for row in rows} - ended


def test_scrolled_it_tells_how_many_rows_are_above_and_below() -> None:
    rows = crowd()
    total = sum(row["state"] not in ("Completed", "Failed") for row in rows)
    for width in (130, 90):
        for skip in (1, 2, 3, 20, 44, 60, 75, 1000):
            lines = frame(moment(rows, skip=skip), width, 24)
            told = next(line for line in lines if " above, " in line)
            above, left = map(int, re.findall(r"\d+", told))
            shown = sum(" default/" in f" {line}" for line in lines)
            assert above + shown + left == total, (width, skip)
            assert above <= skip
            assert (left == 0) is any("default/running-29" in line for line in lines)
            assert (above == 0) is any("default/waiting-1 " in line for line in lines)


SHARES = [
    ((1, 1), 40, (1, 1)),
    ((10, 10), 20, (4, 3)),
    ((10, 10), 21, (4, 4)),
    ((10, 10), 24, (6, 5)),
    ((10, 10), 30, (10, 8)),
    ((10, 10), 31, (10, 10)),
    ((2, 20), 20, (2, 6)),
    ((20, 2), 20, (6, 2)),
    ((4, 20), 19, (4, 3)),
    ((20, 4), 19, (3, 4)),
    ((20, 5), 19, (3, 3)),
    ((5, 20), 19, (3, 3)),
    ((3, 3), 7, (0, 0)),
]


@pytest.mark.parametrize(("there", "height", "expected"), SHARES, ids=str)
def test_two_lists_share_the_screen(
    there: tuple[int, int], height: int, expected: tuple[int, int]
) -> None:
    """Each gets what it needs, half if both need more, and no line is left over."""
    rows = [waiting(f"w-{n}", n) for n in range(1, there[0] + 1)]
    rows += [running(f"r-{n}") for n in range(there[1])]
    lines = frame(moment(rows), 130, height)
    shown = [sum(f"default/{kind}-" in line for line in lines) for kind in "wr"]
    assert tuple(shown) == expected
    left_out = [one - other for one, other in zip(there, shown, strict=True)]
    assert len(lines) == height or not any(left_out)
    if height > 7:
        assert [f"... {n} more" for n in left_out if n] == [x for x in lines if " more" in x]


def test_reasons_have_a_column_where_sixty_characters_are_left_for_them() -> None:
    with_column = [
        width
        for width in range(90, 140)
        if any(line.endswith("WHY") for line in frame(moment([waiting("a", 1)]), width, 30))
    ]
    head = "POS   NAME        PRIORITY   DEMAND   AGE   WAITS-FOR   "
    assert with_column == list(range(len(head) + 60, 140))


def test_the_latest_are_told_first_and_those_without_a_date_last() -> None:
    rows = [
        running("old", firstSeen="2027-01-01T00:00:00.000000Z"),
        running("undated", firstSeen=None),
        running("new", firstSeen="2027-01-02T00:00:00.000000Z"),
    ]
    lines = frame(moment(rows), 130, 30)
    assert re.findall(r"default/(\w+)", "\n".join(lines)) == ["new", "old", "undated"]


def test_the_colours_of_a_count_and_of_a_state() -> None:
    rows = [
        waiting("a", 1),
        running("b"),
        running("c", state="Failed"),
        running("d", state="Odd"),
        running("e", state="RunningHoldCompletion"),
        running("f", state="Completed"),
        running("g", state="Pending"),
    ]
    lines = frame(moment(rows), 150, 30, Palette(True))
    assert lines[1] == (
        "AppWrappers: \x1b[33m1 in line\x1b[0m, \x1b[2m0 on hold\x1b[0m, \x1b[32m1 running\x1b[0m, "
        "\x1b[32m1 half completed\x1b[0m, 1 completed, \x1b[31m1 failed\x1b[0m, "
        "1 being created or deleted, 1 Odd"
    )
    exact = len(stripped(lines[1]))
    assert frame(moment(rows), exact, 30, Palette(True))[1] == lines[1]
    assert "\x1b" not in frame(moment(rows), exact - 1, 30, Palette(True))[1]
