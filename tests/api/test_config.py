"""Where settings come from, and one line for every way to get them wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from mcad.api.config import Config, catalog_of, to_settings
from mcad.api.removed_settings import REMOVED
from mcad.api.scale_up.settings import Via
from mcad.api.sources import ENVIRONMENT_PREFIX, NAMES, ConfigError, load
from mcad.core.state.settings import Fairness, Fit, Policy, Settings
from mcad.core.state.units import SECOND


def test_the_defaults_are_those_of_the_core() -> None:
    assert to_settings(load()) == Settings()
    assert to_settings(Config()) == Settings()


# What is set, and what it is in the core.
UNITS: list[tuple[str, str, Any]] = [
    ("backoffTime=0.5", "backoff", SECOND // 2),
    ("headOfLineHoldingTime=30", "head_of_line_holding", 30 * SECOND),
    ("dispatchResourceReservationTimeout=1500", "reservation_timeout", 1_500_000),
    ("placementTimeout=0.5", "placement_timeout", 500_000),
    ("fit=aggregate", "fit", Fit.AGGREGATE),
    ("policy=StrictFIFO", "policy", Policy.STRICT_FIFO),
    ("fairness=leaf", "fairness", Fairness.LEAF),
    ("quotaGracePeriod=9", "quota_grace", 9 * SECOND),
    ("protectAfter=0.5", "protect_after", 500_000),
    ("preemption=true", "preemption", True),
    ("reclaim=false", "reclaim", False),
    ("minRunTime=7", "min_run_time", 7 * SECOND),
    ("maxEvictionsPerMinute=8", "max_evictions_per_minute", 8),
    ("preemptionGracePeriod=1.5", "preemption_grace", 1_500_000),
    ("topologyLevels=[block, rack]", "topology_levels", ("block", "rack")),
    ("scaleUp.via=auto", "scale_up", True),
    ("scaleUp.concurrent=3", "scale_up_concurrent", 3),
    ("scaleUp.timeout=2m30s", "scale_up_timeout", 150 * SECOND),
    ("scaleUp.startupTaints=[b, a, b]", "startup_taints", ("a", "b")),
    ("maxPriority={team-a: 100, '*': -5}", "max_priority", (("*", -5), ("team-a", 100))),
]


def test_every_setting_in_the_cores_units() -> None:
    settings = Settings()
    for text, field, value in UNITS:
        found = to_settings(load(sets=["quotaEnabled=true", text]))
        assert getattr(found, field) == value
        settings = replace(settings, **{field: value})
    together = [text for text, _, _ in UNITS if text != "fit=aggregate"]
    found = to_settings(load(sets=["quotaEnabled=true", *together]))
    assert found == replace(settings, fit=Fit.NODES)
    assert {field for _, field, _ in UNITS} == {*Settings.__struct_fields__} - {"binding_wait"}


def written(folder: Path, text: str, name: str = "config.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_later_sources_win(tmp_path: Path) -> None:
    path = written(tmp_path, "backoffTime: 1\nfit: aggregate\nheadOfLineHoldingTime: 1\n")
    environ = {"MCAD_BACKOFF_TIME": "2", "MCAD_HEAD_OF_LINE_HOLDING_TIME": "2", "HOME": "/"}
    config = load(path, environ, ["backoffTime=3"])
    assert config.backoff_time == 3
    assert config.head_of_line_holding_time == 2
    assert config.fit is Fit.AGGREGATE
    assert config.policy is Policy.BEST_EFFORT_FIFO


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}"])
def test_a_file_may_be_empty(tmp_path: Path, text: str) -> None:
    assert load(written(tmp_path, text)) == Config()


def test_a_file_may_be_json(tmp_path: Path) -> None:
    assert load(written(tmp_path, '{"backoffTime": 7}')).backoff_time == 7


def test_maps_and_lists_are_yaml_in_the_environment() -> None:
    config = load(
        environ={
            "MCAD_MAX_PRIORITY": "{team: 4}",
            "MCAD_WRAPPED_RESOURCES": "[{apiGroup: batch, resources: [jobs]}]",
            "MCAD_WATCH_NAMESPACES": "[b, a, b]",
        }
    )
    assert config.max_priority == {"team": 4}
    assert config.allowed == {("batch", "jobs")}
    assert config.watch_namespaces == ("a", "b")


def test_one_entry_of_a_map() -> None:
    environ = {"MCAD_MAX_PRIORITY": "{team: 4}"}
    config = load(environ=environ, sets=["maxPriority.*=8"])
    assert config.max_priority == {"team": 4, "*": 8}


@pytest.mark.parametrize(
    ("environ", "sets"),
    [
        ({}, ["impersonate.serviceAccount=runner", "watchNamespaces=[a]"]),
        ({"MCAD_IMPERSONATE": "{serviceAccount: runner}"}, ["watchNamespaces=[a]"]),
    ],
)
def test_items_are_created_as_an_account_of_the_appwrappers_namespace(
    environ: dict[str, str], sets: list[str]
) -> None:
    config = load(environ=environ, sets=sets)
    assert config.impersonate.user("a") == "system:serviceaccount:a:runner"
    assert Config().impersonate is None


def test_namespaces_of_never_preempt() -> None:
    config = load(sets=["neverPreempt=[b, '*', b]"])
    assert config.never_preempt == ("*", "b")
    assert catalog_of(config, ()).never_preempt == {"*", "b"}


@pytest.mark.parametrize("policy", Policy)
def test_every_policy_can_be_chosen(policy: Policy) -> None:
    assert to_settings(load(sets=[f"policy={policy.value}"])).policy is policy


def test_variables_that_kubernetes_adds_for_a_service_called_mcad() -> None:
    environ = {"MCAD_SERVICE_HOST": "10.0.0.1", "MCAD_PORT": "tcp://10.0.0.1:80"}
    assert load(environ=environ) == Config()


def test_every_setting_has_a_variable() -> None:
    assert NAMES["dispatchResourceReservationTimeout"] == (
        "MCAD_DISPATCH_RESOURCE_RESERVATION_TIMEOUT"
    )
    assert NAMES["fit"] == "MCAD_FIT"


@pytest.mark.parametrize("word", ["off", "'off'", "false"])
def test_yaml_reads_off_as_false(word: str) -> None:
    assert not load(sets=[f"scaleUp.via={word}"]).scale_up.is_on


def test_the_kinds_by_which_an_autoscaler_may_be_asked() -> None:
    group = "autoscaling.x-k8s.io"
    requests, buffers = (group, "provisioningrequests"), (group, "capacitybuffers")
    kinds = {via: load(sets=[f"scaleUp.via={via}"]).scale_up.kinds for via in Via}
    assert kinds == {
        Via.OFF: (),
        Via.AUTO: (requests, buffers),
        Via.PROVISIONING_REQUEST: (requests,),
        Via.CAPACITY_BUFFER: (buffers,),
        Via.PLACEHOLDER_PODS: (),
    }


def test_nothing_is_wrapped_by_default_that_gives_rights() -> None:
    allowed = Config().allowed
    assert ("", "pods") in allowed
    assert ("ray.io", "rayclusters") in allowed
    assert not {group for group, _ in allowed if "rbac" in group}
    assert ("", "serviceaccounts") not in allowed
    assert not [name for pair in allowed for name in pair if "*" in name]


WRONG: list[tuple[str, ...]] = [
    (
        "--set backofTime=3: there is no setting 'backofTime'. Did you mean \"backoffTime\"?",
        "backofTime=3",
    ),
    (
        'MCAD_BACKOF_TIME: there is no such setting. Did you mean "MCAD_BACKOFF_TIME"?',
        "MCAD_BACKOF_TIME=1",
    ),
    ("--set zzz=1: there is no setting 'zzz'. Settings: backoffTime, ", "zzz=1"),
    ("must be KEY=VALUE, like backoffTime=5.", "backoffTime"),
    (
        "MCAD_BACKOFF_TIME: backoffTime: must be a number, not the string 'soon'.",
        "MCAD_BACKOFF_TIME=soon",
    ),
    ("backoffTime: must be at least 0, not -1.", "backoffTime=-1"),
    ("must be at most 604800, not 9999999.", "backoffTime=9999999"),
    (
        "scaleUp.via: must be 'off', 'auto', 'ProvisioningRequest', 'CapacityBuffer' or "
        "'PlaceholderPods', not the string 'yes please'.",
        "scaleUp.via=yes please",
    ),
    ("scaleUp.concurrent: must be at least 1, not 0.", "scaleUp.concurrent=0"),
    ("scaleUp.timeout: must be at least 1, not 0.", "scaleUp.timeout=0"),
    (
        "scaleUp.startupTaints: 'a b' is not the key of a taint: 'a b' is not a key like",
        "scaleUp.startupTaints=[a b]",
    ),
    (
        "scaleUp needs fit: nodes, because with aggregate no pod lacks a node; set scaleUp.via to "
        "off, or fit to nodes",
        "scaleUp.via=auto",
        "fit=aggregate",
    ),
    ("fit: must be 'nodes' or 'aggregate', not the string 'x'.", "fit=x"),
    ("MCAD_QUEUE_NAME_TREE: queueNameTree: 'my teams' is not", "MCAD_QUEUE_NAME_TREE=my teams"),
    (
        "MCAD_NEVER_PREEMPT: neverPreempt: 'Team' is not the name of a namespace; '*' means all, "
        "[] none.",
        "MCAD_NEVER_PREEMPT=[Team]",
    ),
    ("preemption: must be true or false", "preemption=sometimes"),
    (
        "wrappedResources.0.resources: '*' is not a plural name; list each kind, never a pattern.",
        "wrappedResources=[{apiGroup: '', resources: ['*']}]",
    ),
    ("'*' is not an API group", "wrappedResources=[{apiGroup: '*', resources: [a]}]"),
    (
        "'pods/exec' is not a plural name",
        "wrappedResources=[{apiGroup: '', resources: [pods/exec]}]",
    ),
    (
        "an AppWrapper cannot wrap another one; remove appwrappers.",
        "wrappedResources=[{apiGroup: a, resources: [appwrappers]}]",
    ),
    (
        "wrappedResources.0: roles of rbac.authorization.k8s.io: users can gain rights by "
        "wrapping these; remove them, or set dangerous: true beside them",
        "wrappedResources=[{apiGroup: rbac.authorization.k8s.io, resources: [roles]}]",
    ),
    (
        "kube-system is in both watchNamespaces and excludedNamespaces; remove it from one of them",
        "watchNamespaces=[kube-system]",
    ),
    (
        "excludedNamespaces: 'A' is not the name of a namespace; [] means none",
        "excludedNamespaces=[A]",
    ),
    ("wrappedResources.0.resource: is unknown.", "wrappedResources=[{apiGroup: a, resource: [b]}]"),
    ("fit is the string 'nodes', not a map", "fit=nodes", "fit.x=1"),
    ("'A' is not the name of a namespace", "watchNamespaces=[A]"),
    (
        "configuration: impersonate needs watchNamespaces: the right to impersonate is granted in "
        "each of them, never cluster-wide; list the namespaces, or remove impersonate.",
        "impersonate.serviceAccount=runner",
    ),
    (
        "MCAD_IMPERSONATE: impersonate.serviceAccount: is required.",
        "MCAD_IMPERSONATE={}",
        "watchNamespaces=[a]",
    ),
    (
        "impersonate.serviceAccount: 'system:serviceaccount:a:b' is not the name of a service",
        "impersonate.serviceAccount=system:serviceaccount:a:b",
        "watchNamespaces=[a]",
    ),
    (
        "MCAD_IMPERSONATE: impersonate: must be a map, not the string 'runner'.",
        "MCAD_IMPERSONATE=runner",
        "watchNamespaces=[a]",
    ),
    (
        "maxPriority: 'Team' is not the name of a namespace; '*' means all others.",
        "maxPriority.Team=1",
    ),
    ("maxPriority.team: must be a whole number, not the string 'high'.", "maxPriority.team=high"),
    ("topologyLevels: names a label twice; remove one.", "topologyLevels=[rack, rack]"),
    ("topologyLevels: 'a b' is not a label of nodes: 'a b' is not a key", "topologyLevels=[a b]"),
    ("MCAD_MAX_PRIORITY: maxPriority: must be a map, not 10.", "MCAD_MAX_PRIORITY=10"),
    (
        "leaderElection: renewDeadline (10) must be less than leaseDuration (5): a holder must",
        "leaderElection.leaseDuration=5",
    ),
    (
        "leaderElection: retryPeriod (9) must be at most half of renewDeadline (10): there must",
        "leaderElection.retryPeriod=9",
    ),
    (
        "leaderElection.leaseDuration: must be a whole number, not 15.5.",
        "leaderElection.leaseDuration=15.5",
    ),
    ("leaderElection.name: 'A' is not the name of a Lease.", "leaderElection.name=A"),
    ("must be a list, not the string 'a'.", "watchNamespaces=a"),
    ("--set fit=[a: is not valid YAML in line 1; quote the value", "fit=[a"),
]


@pytest.mark.parametrize(("message", "given"), [(one[0], one[1:]) for one in WRONG])
def test_what_is_wrong_fits_into_one_line(message: str, given: tuple[str, ...]) -> None:
    environ = dict(one.split("=", 1) for one in given if one.startswith("MCAD_"))
    with pytest.raises(ConfigError) as caught:
        load(environ=environ, sets=[one for one in given if not one.startswith("MCAD_")])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_setting_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    message = f"{name} is no longer a setting; {REMOVED[name].advice}."
    setting, _, inner = name.partition(".")
    variable = ENVIRONMENT_PREFIX + re.sub("([A-Z])", r"_\1", setting).upper()
    text = json.dumps({inner: 1} if inner else 1)
    path = written(tmp_path, f"{setting}: {text}")
    for source, given in (
        (f"--config {path}", {"path": path}),
        (variable, {"environ": {variable: text}}),
        (f"--set {name}=1", {"sets": [f"{name}=1"]}),
        (f"--set {setting}={text}", {"sets": [f"{setting}={text}"]}),
    ):
        with pytest.raises(ConfigError) as caught:
            load(**given)
        assert str(caught.value) == f"{source}: {message}"
        assert name not in NAMES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "must be a map of settings, not a list."),
        ("a: [", "is not valid YAML in line 1"),
        ("fit: x", "fit: must be 'nodes' or 'aggregate', not the string 'x'."),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"--config {path}: ")
    assert message in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        load(tmp_path / "absent.yaml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not text"):
        load(path)


def test_a_configuration_can_be_written_down_and_read_again(tmp_path: Path) -> None:
    config = load(sets=["fit=aggregate", "maxPriority.team=4"])
    text = yaml.safe_dump(config.model_dump(mode="json", by_alias=True))
    assert load(written(tmp_path, text)) == config
