"""Small parts: tables, ages, log lines, the printed manifests."""

import json
import logging
import subprocess
import sys
import time
from io import StringIO

import pytest
import yaml

from mcad.cli.log_format import REMEMBERED_MAX, JsonLines, KeyValue, Repeats
from mcad.cli.pages.colours import palette
from mcad.cli.pages.describe import Description, Page
from mcad.cli.pages.tables import Columns, age, table
from mcad.client.figures import progress as lines
from mcad.client.figures.progress import Progress
from mcad.kube.durations import human
from tests.cli.conftest import Type

DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (8 * 3600 - 1, "7h59m"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY, "8d"),
        (2 * 365 * DAY, "2y"),
        (3 * 365 * DAY + DAY, "3y1d"),
        (9 * 365 * DAY, "9y"),
    ],
)
def test_durations_are_those_of_kubectl(seconds: int, text: str) -> None:
    assert human(seconds) == text


def test_ages() -> None:
    now = 1_800_000_000_000_000
    assert age("2027-01-15T07:59:00.000000Z", now) == "60s"
    assert age("2027-01-15T08:00:01Z", now) == "0s"
    assert age(None, now) == age("yesterday", now) == "<unknown>"


def test_tables() -> None:
    assert table(("A", "LONG"), [("xyz", "")]) == ["A     LONG", "xyz"]
    assert table(("A",), [], headers=False) == []


def test_a_column_gets_wider_and_never_narrower() -> None:
    columns = Columns(("A", "B"))
    assert columns.lines([("x", "y")], headers=True) == ["A   B", "x   y"]
    assert columns.lines([("long", "y")], headers=False) == ["long   y"]
    assert columns.lines([("x", "y")], headers=False) == ["x      y"]


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert table(("A",), [("\x1b[2Ja\nb\tc\x9b",)], headers=False) == ["?[2Ja b c?"]


@pytest.mark.parametrize(
    ("choice", "terminal", "env", "enabled"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
    ],
)
def test_colours_are_for_terminals(
    choice: str,
    terminal: bool,
    env: dict[str, str],
    enabled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert palette(choice, Stream(terminal)).enabled is enabled


class Stream(StringIO):
    """A terminal, or none."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def test_progress_is_for_terminals_and_for_patience() -> None:
    now = [0.0]
    stream = Stream(True)
    progress = Progress(lambda: now[0], stream)
    progress.add("pods", 500)
    assert stream.getvalue() == ""
    now[0] = 1.5
    progress.add("pods", 500)
    progress.add("nodes", 3)  # not before the next tenth of a second
    assert stream.getvalue() == "\r\x1b[Kreading: 1000 pods"
    now[0] = 1.7
    progress.add("pods", 1)
    assert stream.getvalue().endswith("\r\x1b[Kreading: 3 nodes, 1001 pods")
    progress.done()
    progress.add("pods", 1)
    assert stream.getvalue().endswith("1001 pods\r\x1b[K")


def test_progress_is_silent_in_pipes_and_about_what_is_quick() -> None:
    now = [0.0]
    pipe, terminal = Stream(False), Stream(True)
    for stream in (pipe, terminal):
        progress = Progress(lambda: now[0], stream)
        progress.add("pods", 500)
        progress.done()
    progress = Progress(lambda: now[0], pipe)
    now[0] = 5.0
    progress.add("pods", 500)
    progress.done()
    assert pipe.getvalue() == terminal.getvalue() == ""


def _formatted(message: str, *args: object, **more: object) -> str:
    record = logging.LogRecord("mcad.controller.x", logging.INFO, "", 0, message, args, None)
    record.created = 1_800_000_000.25
    record.__dict__ |= more
    return KeyValue().format(record)


def test_a_log_line_is_keys_and_values() -> None:
    assert _formatted("synced appwrappers=%d", 3) == (
        "ts=2027-01-15T08:00:00.250000Z level=info logger=controller.x msg=synced appwrappers=3"
    )


def test_values_with_blanks_are_quoted_and_stay_on_one_line() -> None:
    line = _formatted("cannot list kind=%s error=%s: %s", "pods", "E", 'a "b"\nlevel=info')
    assert line.endswith(r'msg="cannot list" kind=pods error="E: a \"b\"\nlevel=info"')


def test_an_exception_is_told_with_its_places() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        line = _formatted("broken", exc_info=sys.exc_info())
    assert "trace=" in line
    assert "test_an_exception_is_told_with_its_places" in line
    assert "\n" not in line


def test_crd_is_yaml_with_both_versions(mcad: Type) -> None:
    result = mcad("crd")
    found = list(yaml.safe_load_all(result.stdout))
    assert {one["kind"] for one in found} == {"CustomResourceDefinition"}
    versions = [[each["name"] for each in one["spec"]["versions"]] for one in found]
    assert versions == [["v1beta1", "v1beta2"], ["v1alpha1"], ["v1alpha1"]]


def test_crd_of_one_kind(mcad: Type) -> None:
    (crd,) = yaml.safe_load_all(mcad("crd", "quotasubtrees").stdout)
    assert crd["metadata"]["name"] == "quotasubtrees.quota.codeflare.dev"


def test_rbac_names_the_account_and_follows_the_configuration(mcad: Type) -> None:
    only = "wrappedResources=[{apiGroup: batch, resources: [jobs]}]"
    result = mcad("rbac", "-n", "batch", "--service-account", "me", "--set", only)
    objects = list(yaml.safe_load_all(result.stdout))
    account = {"name": "me", "namespace": "batch"}
    assert objects[0]["metadata"] == account
    deleting = [
        (rule["apiGroups"], rule["resources"])
        for obj in objects
        for rule in obj.get("rules", [])
        if "delete" in rule["verbs"]
    ]
    assert deleting == [(["batch"], ["jobs"]), ([""], ["pods"])]  # the latter by force


def test_rbac_alone_warns_of_the_missing_policy(mcad: Type) -> None:
    assert "may create every kind in wrappedResources" in mcad("rbac").stderr
    own = ["--set", "impersonate={serviceAccount: a}", "--set", "watchNamespaces=[team]"]
    assert mcad("rbac", *own).stderr == ""


def test_version(mcad: Type) -> None:
    assert mcad("version").stdout.startswith("mcad 0.")
    facts = json.loads(mcad("version", "-o", "json").stdout)
    assert facts["appWrapperVersions"] == [
        "workload.codeflare.dev/v1beta1",
        "workload.codeflare.dev/v1beta2",
    ]


@pytest.mark.parametrize("instruction", ["", "bash_complete"], ids=["help", "completion"])
def test_commands_are_listed_without_loading_any(instruction: str) -> None:
    code = (
        "import sys; from mcad.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "costly = ('kubernetes', 'aiohttp', 'pydantic', 'yaml', 'asyncio')\n"
        "own = [m for m in sys.modules if m.partition('.')[0] == 'mcad']\n"
        "print([*(m for m in costly if m in sys.modules), *sorted(own)])"
    )
    env = {"_MCAD_COMPLETE": instruction, "COMP_WORDS": "mcad ", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert "describe" in done.stdout
    options = [f"mcad.cli.arguments{one}" for one in ("", ".duration", ".global_options")]
    cli = ["mcad.cli", "mcad.cli.errors", "mcad.cli.extras", *options]
    shell = [*cli, *(f"mcad.cli.{one}" for one in ("invocation", "main", "removed", "start"))]
    progress = ["mcad.client.figures", "mcad.client.figures.progress"]
    client = ["mcad.client", "mcad.client.errors", *progress]
    kube = ["mcad.kube", "mcad.kube.errors", "mcad.kube.types"]
    light = ["mcad", "mcad.version", *shell, *client, *kube]
    assert done.stdout.splitlines()[-1] == str(sorted(light))


def test_the_queue_of_kueue_is_shown_for_what_it_is() -> None:
    """Manifests of v1beta2 carry it; without one there is no such line."""
    metadata = {"name": "a", "namespace": "b", "uid": "c"}
    tags = {"labels": {"kueue.x-k8s.io/queue-name": "research"}}
    page = Page(0, palette("never"))
    told = list(page.lines(Description({"metadata": metadata | tags}, None)))
    assert told[3] == "Queue:        research (Kueue's label; here is only one queue)"
    bare = list(page.lines(Description({"metadata": metadata}, None)))
    assert [one for one in told if one not in bare] == [told[3]]


def test_how_long_it_is_expected_to_run_is_shown_as_a_hint() -> None:
    meta = {"name": "a", "namespace": "team", "uid": "u"}
    hint = "Expected:     to run for 600 s (a hint for start time estimates; it may take longer)"
    for duration, told in (({"expected": 600, "limit": 900}, True), ({"limit": 900}, False)):
        spec = {"schedulingSpec": {"dispatchDuration": duration}}
        described = Description({"metadata": meta, "spec": spec}, None)
        assert (hint in Page(0, palette("never")).lines(described)) == told


def test_the_topology_domains_of_an_attempt_are_shown_by_item() -> None:
    domains = [
        {"item": item, "index": 0, "label": "rack", "value": value}
        for item, value in enumerate(("r1", "r1", "r2"))
    ]
    preferred = {"label": "block", "value": "b"}
    for dispatch, told in (
        (
            {"domains": domains},
            ["Domain:       rack=r1 (item 0, 1)", "Domain:       rack=r2 (item 2)"],
        ),
        ({"preferredDomain": preferred}, ["Prefers:      block=b"]),
    ):
        meta = {"name": "a", "namespace": "team", "uid": "u"}
        described = Description(
            {"metadata": meta, "status": {"dispatch": {"attempt": 1} | dispatch}}, None
        )
        lines = list(Page(0, palette("never")).lines(described))
        assert [one.strip() for one in lines if "Domain" in one or "Prefers" in one] == told


def test_the_nodes_that_an_attempt_excludes_are_shown_briefly() -> None:
    excluded = [
        {"item": 0, "nodes": [f"n{number}" for number in range(1, 7)]},
        {"item": 1, "nodes": ["n7"], "preferred": True},
    ]
    meta, dispatch = {"name": "a", "namespace": "team", "uid": "u"}, {"excludedNodes": excluded}
    described = Description({"metadata": meta, "status": {"dispatch": dispatch}}, None)
    lines = list(Page(0, palette("never")).lines(described))
    assert [one.strip() for one in lines if "Not on" in one] == [
        "Not on:       n1, n2, n3 and 3 more (item 0)",
        "Not on:       n7 (item 1, if there is room elsewhere)",
    ]


def _record(message: str, at: float, *args: object) -> logging.LogRecord:
    record = logging.LogRecord("mcad.x", logging.INFO, "", 0, message, args, None)
    record.created = 1_800_000_000 + at
    return record


def test_a_log_line_as_json() -> None:
    line = JsonLines().format(_record('says "no" name=%s', 0.25, "a b"))
    assert json.loads(line) == {
        "ts": "2027-01-15T08:00:00.250000Z",
        "level": "info",
        "logger": "x",
        "msg": 'says "no"',
        "name": "a b",
    }


def test_a_line_is_repeated_once_a_minute_at_most() -> None:
    repeats, said = Repeats(), []
    for second in range(130):
        record = _record("no news kind=%s", second, "pods")
        if repeats.filter(record):
            said.append(KeyValue().format(record).partition("logger=")[2])
    assert said == [
        'x msg="no news" kind=pods',
        'x msg="no news" kind=pods repeated=59',
        'x msg="no news" kind=pods repeated=59',
    ]
    assert repeats.filter(_record("no news kind=%s", 130, "nodes"))


def test_few_lines_are_remembered() -> None:
    repeats = Repeats()
    for number in range(3 * REMEMBERED_MAX):
        assert repeats.filter(_record("line %s", 0, number))
    assert len(repeats._known) <= REMEMBERED_MAX


def test_long_work_is_told_with_its_seconds_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "PATIENCE_S", 0.01)
    monkeypatch.setattr(lines, "TICK_S", 0.01)
    stream = Stream(True)
    with lines.shown_on(stream), lines.working(lambda: "3 of 7 requeued"):
        deadline = time.monotonic() + 10
        while stream.getvalue().count("3 of 7 requeued... 0 s") < 2:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    said = stream.getvalue()
    assert said.endswith(lines.CLEAR)
    time.sleep(0.03)
    lines.clear()
    assert stream.getvalue() == said


def test_quick_work_and_pipes_are_told_nothing() -> None:
    for stream in (Stream(True), Stream(False)):
        with lines.shown_on(stream), lines.working("trying"):
            pass
        assert stream.getvalue() == ""
