"""What is typed or piped as a name: NAME, TYPE/NAME, TYPE NAME, several of them, good and bad."""

import json

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mcad.cli.arguments.names import ObjectName, node_names, qualified, qualified_names
from mcad.cli.main import main
from mcad.cli.pages.human_amounts import human_amount
from mcad.core.state.quantity import format_amount
from tests.cli.cluster import crowd
from tests.cli.conftest import FakeEnvironment, Type

SECOND = "0002-aw-generic-deployment-2"


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        (["x"], ("x",)),
        (["aw/x", "AppWrapper/y", "z"], ("x", "y", "z")),
        (["appwrapper.workload.codeflare.dev/x"], ("x",)),
        (["appwrappers.v1beta2.workload.codeflare.dev/x"], ("x",)),
        (["aw", "x", "y"], ("x", "y")),
        (["appwrappers"], ()),
        (["aw/aw"], ("aw",)),
        (["x", "aw"], ("x", "aw")),
        (["x", "aw/x"], ("x",)),
    ],
)
def test_names(typed: list[str], names: tuple[str, ...]) -> None:
    assert qualified_names(typed) == tuple(map(ObjectName, names))


@pytest.mark.parametrize("typed", ["a/x", "aw/a/x", "appwrapper.workload.codeflare.dev/a/x"])
def test_names_with_their_namespace(typed: str) -> None:
    assert qualified_names([typed]) == (ObjectName("x", "a"),)


@pytest.mark.parametrize("namespace", ["a", "aw", "appwrappers"])
def test_what_is_printed_with_a_namespace_is_read_again(namespace: str) -> None:
    assert qualified_names([qualified(namespace, "x")]) == (ObjectName("x", namespace),)


@pytest.mark.parametrize("typed", ["a/b/c", "aw/", "/x", "a/", "aw/a/b/c", ""])
def test_what_is_no_name(typed: str) -> None:
    with pytest.raises(click.UsageError, match="is not an AppWrapper: write NAME, NAMESPACE/NAME"):
        qualified_names([typed])


def test_nodes() -> None:
    assert node_names(["nodes", "a", "no/b"]) == ("a", "b")


def test_what_one_command_prints_another_one_takes(mcad: Type) -> None:
    printed = mcad("queue", "-o", "name").stdout.split()
    assert mcad("describe", *printed).stdout.startswith(f"Name:         {SECOND}\n")
    assert mcad("get", *printed, "-o", "name").stdout.split() == printed
    full = mcad("queue", "-A", "-o", "name").stdout.split()
    assert full == [f"default/{SECOND}"]
    assert mcad("describe", *full).stdout.startswith(f"Name:         {SECOND}\n")
    assert mcad("get", *full, "-o", "name").stdout.split() == printed
    nodes = mcad("capacity", "-o", "name").stdout.split()
    assert mcad("capacity", *nodes, "--no-headers").stdout.startswith("minikube   cpu")


def test_several_pages_are_apart_and_several_objects_are_a_list() -> None:
    world = FakeEnvironment(crowd())

    def say(*args: str) -> str:
        return CliRunner().invoke(main, ["describe", *args], obj=world).stdout

    one, two = say("fits"), say("fragmented")
    assert say("fits", "aw/fragmented") == f"{one}\n\n{two}"
    items = json.loads(say("fits", "fragmented", "-o", "json"))["items"]
    assert [item["appwrapper"]["name"] for item in items] == ["fits", "fragmented"]
    items = json.loads(say("fits", "team-a/urgent", "-o", "json"))["items"]
    assert [item["appwrapper"]["name"] for item in items] == ["fits", "urgent"]


@pytest.mark.parametrize(
    ("args", "stdout"),
    [
        (("get", SECOND, "bad", "--no-headers"), SECOND),
        (("describe", "bad", SECOND), f"Name:         {SECOND}"),
        (("capacity", "minikube", "bad", "--no-headers"), "minikube"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_the_good_ones_are_shown_and_the_bad_ones_told(
    args: tuple[str, ...], stdout: str, mcad: Type
) -> None:
    said = mcad(*args)
    assert said.exit_code == 4
    assert said.stdout.startswith(stdout)
    assert len(said.stderr.splitlines()) == 1
    assert said.stderr.startswith("error: no ")
    assert '"bad"' in said.stderr


def test_the_version_is_an_option_too(mcad: Type) -> None:
    assert mcad("--version").stdout.split()[:2] == mcad("version").stdout.split()[:2]


@pytest.mark.parametrize(
    ("resource", "exact", "shown"),
    [
        ("memory", "6382092Ki", "6.1Gi"),
        ("memory", "512Mi", "512Mi"),
        ("memory", "1706Mi", "1.7Gi"),
        ("memory", "1023", "1023"),
        ("memory", "1073741823", "1Gi"),
        ("memory", "-3Gi", "-3Gi"),
        ("memory", "0", "0"),
        ("hugepages-2Mi", "2Gi", "2Gi"),
        ("ephemeral-storage", "8Ei", "8Ei"),
        ("cpu", "1950m", "1950m"),
        ("cpu", "3217450m", "3217.5"),
        ("cpu", "-500m", "-500m"),
        ("pods", "110", "110"),
        ("nvidia.com/gpu", "4096", "4096"),
    ],
)
def test_quantities_are_shown_as_people_say_them(resource: str, exact: str, shown: str) -> None:
    assert human_amount(resource, exact) == shown


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_rounding_never_makes_more_than_a_twentieth_of_a_unit(size: int) -> None:
    shown = human_amount("memory", format_amount("memory", size))
    power = "KMGTPE".find(shown[-2:-1]) + 1 if shown.endswith("i") else 0
    number = float(shown.rstrip("KMGTPEi"))
    assert abs(number - size / 1024**power) <= 0.051
    assert power == 0 or 1 <= abs(number) < 1024
