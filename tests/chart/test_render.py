"""What the chart renders, without a cluster: for many values, and never for wrong ones."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

import mcad
from mcad.api.catalog import WELL_KNOWN
from mcad.api.config import SYSTEM_NAMESPACES, Config
from mcad.api.crd import crds
from mcad.api.labels import GROUP
from mcad.api.removed_settings import REMOVED
from mcad.api.strict import Strict
from mcad.api.templates import PathError, follow
from mcad.api.wrapped_kinds import DANGEROUS, DEFAULT_WRAPPED, WITHOUT_PODS
from mcad.cli.commands.run import run
from mcad.client.installation import TRIED
from mcad.core.state.settings import Fairness, Fit, Policy
from tests.chart.helm import CHART, NAMESPACE, RELEASE, ROOT, Helm, HelmError, Object, of_kind, only
from tests.chart.rights import granted_to
from tests.documents import values as values_page

CHECKS = CHART / "templates" / "_checks.tpl"
MATRIX: dict[str, dict[str, Any]] = yaml.safe_load("""
default: {}
watch: {watchNamespaces: [team-a, team-b]}
impersonate:
  authorization: impersonate
  impersonate: {serviceAccount: runner}
  watchNamespaces: [team-a, team-b]
none: {authorization: none}
jobs: {wrappedResources: [{apiGroup: batch, resources: {jobs: Job}}]}
quota: {config: {quotaEnabled: true, queueNameTree: teams}}
quota where it watches: {config: {quotaEnabled: true}, watchNamespaces: [team-a, team-b]}
no visibility: {visibility: {enabled: false}}
no crds: {crds: {enabled: false}}
crds deleted: {crds: {keep: false}}
monitors:
  podMonitor: {enabled: true, labels: {release: prometheus}}
  serviceMonitor: {enabled: true, interval: 1m}
  prometheusRule: {enabled: true, labels: {release: prometheus}}
secure metrics: {metrics: {secure: {enabled: true}}, serviceMonitor: {enabled: true}}
no network policy: {networkPolicy: {enabled: false}}
closed:
  networkPolicy:
    from: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
    egress: [{ports: [{port: 6443}, {port: 53, protocol: UDP}]}]
own account:
  serviceAccount: {create: false, name: robot}
  rbac: {create: false, aggregateToUserRoles: false}
placed:
  nodeSelector: {kubernetes.io/os: linux}
  tolerations: [{key: control, operator: Exists}]
  affinity: {nodeAffinity: {}}
  priorityClassName: system-cluster-critical
  podLabels: {team: platform}
  podAnnotations: {note: "yes"}
image:
  image:
    repository: registry.example.com/mcad
    digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
    pullPolicy: Always
    pullSecrets: [{name: registry}]
settings:
  config:
    backoffTime: 5
    fit: aggregate
    policy: StrictFIFO
    fairness: namespace
    maxPriority: {"*": 0, team-a: 2000000000}
    faultTolerance:
      retryPausePeriod: 1m30s
      successTTL: 31622400
      retryLimit: 2
    autopilot:
      monitorNodes: false
      resourceTaints: {cpu: [{key: a.b/c, value: "", effect: NoExecute}]}
    inject:
      labels: {team: research}
      tolerations: [{key: dedicated, operator: Exists}]
      schedulingGates: [{name: a.b/c}]
    schedulerName: coscheduler
  logLevel: debug
  logFormat: json
names: {fullnameOverride: dispatcher, nameOverride: queue}
""")
IMPERSONATE = MATRIX["impersonate"]
REPORTS = {"appwrapperreports", "appwrapperreports/why", "capacityreports", "quotareports"}
REPORTS |= {"quotareports/node", "whatifs"}
INVISIBLE: dict[str, Any] = {"visibility": {"enabled": False}}

REFUSED: dict[str, str] = {
    "{replica: 2}": "additional properties 'replica' not allowed",
    "{replicas: -1}": "/replicas",
    "{config: {fitt: 1}}": "additional properties 'fitt' not allowed",
    "{config: {watchNamespaces: [a]}}": "additional properties 'watchNamespaces' not allowed",
    "{wrappedResources: [{apiGroup: '*', resources: {pods: Pod}}]}": "'*' does not match pattern",
    "{wrappedResources: [{apiGroup: '', resources: {'*': Pod}}]}": "'*' not allowed",
    "{wrappedResources: [{apiGroup: '', resources: [pods]}]}": "got array, want object",
    "{wrappedResources: []}": "minItems: got 0, want 1",
    "{wrappedResources: [{apiGroup: workload.codeflare.dev, resources: {appwrappers: A}}]}": (
        "an AppWrapper cannot wrap another one"
    ),
    "{wrappedResources: [{apiGroup: rbac.authorization.k8s.io, resources: {rolebindings: R}}]}": (
        "carries rights: users can gain rights by wrapping it"
    ),
    "{watchNamespaces: [team], excludedNamespaces: [team]}": "nothing is wrapped in team",
    f"{{watchNamespaces: [{NAMESPACE}]}}": f"nothing is wrapped in {NAMESPACE}",
    "{wrappedResources: [{apiGroup: '', resources: {pods: \"Pod' || 'a\"}}]}": "not match pattern",
    "{wrappedResources: [{apiGroup: '', resources: {pods: Pod, podz: Pod}}]}": (
        'pods and podz of the API group "" are both called Pod'
    ),
    "{authorization: webhook}": "/authorization",
    "{authorization: impersonate, watchNamespaces: [a]}": (
        "impersonate needs impersonate.serviceAccount"
    ),
    "{authorization: impersonate, impersonate: {serviceAccount: runner}}": (
        "impersonate needs watchNamespaces"
    ),
    "{impersonate: {serviceAccount: runner}}": (
        "impersonate.serviceAccount has no effect with authorization: policy"
    ),
    "{serviceAccount: {create: false}}": "name an existing account in serviceAccount.name",
    "{watchNamespaces: [Team A]}": "does not match pattern",
    "{service: {port: 0}}": "/service/port",
    "{image: {digest: latest}}": "/image/digest",
    "{config: {maxPriority: {Team A: 1}}}": "additional properties 'Team A' not allowed",
    "{config: {faultTolerance: {successTTL: 1 day}}}": "/config/faultTolerance",
    "{config: {faultTolerance: {failureGracePeriod: -1}}}": "failureGracePeriod",
    "{config: {autopilot: {resourceTaints: {a: [{key: b, value: c, effect: d}]}}}}": "/effect",
    "{config: {inject: {labels: {a: 1}}}}": "/config/inject/labels/a",
    "{config: {quotaEnabled: 'yes'}}": "/config/quotaEnabled",
    "{config: {preemption: 'yes'}}": "/config/preemption",
    "{metrics: {secure: {enabled: true}}, podMonitor: {enabled: true}}": (
        "a PodMonitor has no token of Prometheus itself"
    ),
    "{metrics: {secure: {enabled: true}}, serviceMonitor: {enabled: true, namespace: other}}": (
        "set tlsConfig of the monitor"
    ),
    "{config: {neverPreempt: [Team A]}}": "/config/neverPreempt/0",
    "{submissionWarnings: {nodeSizes: [{cpu: many}]}}": "/submissionWarnings/nodeSizes/0/cpu",
    "{submissionWarnings: {nodeSizes: [{}]}}": "/submissionWarnings/nodeSizes/0",
    '{submissionWarnings: {nodeSizes: [{"a\'b": 1}]}}': "/submissionWarnings/nodeSizes/0",
    "{submissionWarnings: {quotaLeaves: {teams: []}}}": "/submissionWarnings/quotaLeaves/teams",
    '{submissionWarnings: {quotaLeaves: {teams: ["a\'"]}}}': "/quotaLeaves/teams/0",
}


@pytest.fixture(scope="module", params=MATRIX, ids=lambda name: name.replace(" ", "-"))
def objects(request: pytest.FixtureRequest, helm: Helm) -> list[Object]:
    return helm.template(**MATRIX[request.param])


def pod_template(objects: list[Object]) -> Object:
    template: Object = only(objects, "Deployment")["spec"]["template"]
    return template


def config_of(objects: list[Object]) -> Config:
    text = only(objects, "ConfigMap")["data"]["config.yaml"]
    return Config.model_validate(yaml.safe_load(text))


# -- everything that is rendered --------------------------------------------------------------


def test_lint(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(CHART))


def test_pods_are_restricted(objects: list[Object]) -> None:
    """Pod Security Standards, level restricted, and the root file system is not written."""
    found = [one for one in objects if "template" in one.get("spec", {})]
    assert {one["kind"] for one in found} == {"Deployment"}
    for one in found:
        check_restricted(one["spec"]["template"]["spec"])


def check_restricted(spec: Object) -> None:
    """The spec of a pod."""
    context = spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] > 0
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    volumes = {next(iter(set(one) - {"name"})) for one in spec["volumes"]}
    assert {"emptyDir"} <= volumes <= {"configMap", "emptyDir", "secret"}
    for container in spec["containers"] + spec.get("initContainers", []):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def selected(objects: list[Object]) -> list[dict[str, str]]:
    """By what Service, PodDisruptionBudget, NetworkPolicy and Deployment find their pods."""
    specs = [one["spec"] for one in objects if "spec" in one]
    found = [one.get("selector") or one.get("podSelector") for one in specs]
    return [one.get("matchLabels", one) for one in found if one]


def test_helm_test_runs_beside_the_dispatcher(helm: Helm) -> None:
    """Its pod is restricted and selected by nothing, and its account is there for the test only."""
    hooks = helm.tests(**MATRIX["watch"])
    for one in hooks:
        assert one["metadata"]["annotations"]["helm.sh/hook"] == "test"
    pod = only(hooks, "Pod")
    labels = pod["metadata"]["labels"].items()
    selectors = selected(helm.template(**MATRIX["watch"]))
    assert len(selectors) == 4
    assert not [one for one in selectors if one.items() <= labels]
    running = pod_template(helm.template())["spec"]
    (container,), (dispatcher,) = pod["spec"]["containers"], running["containers"]
    assert pod["spec"]["securityContext"] == running["securityContext"]
    for key in ("image", "securityContext"):
        assert container[key] == dispatcher[key]
    assert container["args"][-1] == "--namespace=team-a"
    assert only(hooks, "Role")["metadata"]["namespace"] == "team-a"


@pytest.mark.parametrize("kinds", [*TRIED, ("batch", "cronjobs")])
def test_helm_test_may_create_what_it_tries(kinds: tuple[str, str], helm: Helm) -> None:
    group, plural = kinds
    kind = {(one.group, one.resource): one.kind for one in WELL_KNOWN}[kinds]
    hooks = helm.tests(wrappedResources=[{"apiGroup": group, "resources": {plural: kind}}])
    rules = only(hooks, "Role")["rules"]
    rights = {(rule["apiGroups"][0], rule["resources"][0]) for rule in rules}
    assert rights - {(GROUP, "appwrappers")} == ({kinds} & TRIED.keys())


def test_every_object_is_labelled_and_in_its_place(objects: list[Object]) -> None:
    for one in objects:
        labels = one["metadata"]["labels"]
        assert {key for key in labels if key.startswith("app.kubernetes.io/")} == {
            f"app.kubernetes.io/{key}"
            for key in ("name", "instance", "version", "component", "managed-by")
        }
        unbound = ("Cluster", "Custom", "ValidatingAdmission", "APIService")
        namespaced = not one["kind"].startswith(unbound)
        assert ("namespace" in one["metadata"]) == namespaced


def test_no_right_is_granted_by_a_pattern(objects: list[Object]) -> None:
    rules = [
        rule for one in objects if one["kind"] in ("Role", "ClusterRole") for rule in one["rules"]
    ]
    granted = [
        value
        for rule in rules
        for key in ("apiGroups", "resources", "verbs")
        for value in rule.get(key, ())
    ]
    assert not [value for value in granted if "*" in value]


def test_only_the_dispatcher_writes_the_status(objects: list[Object]) -> None:
    for role in of_kind(objects, "ClusterRole"):
        labels = role["metadata"]["labels"]
        resources = {one for rule in role["rules"] for one in rule.get("resources", ())}
        if any("aggregate-to" in key for key in labels):
            assert resources <= {"appwrappers", "quotasubtrees"} | REPORTS
            assert "appwrappers" in resources


QUOTA = {"config": {"quotaEnabled": True}}


def written_by(objects: list[Object]) -> dict[str, set[tuple[str, str]]]:
    """The rights on QuotaSubtrees of each ClusterRole."""
    return {
        role["metadata"]["name"]: {
            (resource, verb)
            for rule in role["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
            if resource.startswith("quotasubtrees")
        }
        for role in of_kind(objects, "ClusterRole")
    }


def test_trees_are_read_by_all_and_written_with_a_role_of_their_own(helm: Helm) -> None:
    reading = {("quotasubtrees", verb) for verb in ("get", "list", "watch")}
    roles = written_by(helm.template(**QUOTA))
    assert roles.pop("mcad") == {
        ("quotasubtrees", "list"),
        ("quotasubtrees", "watch"),
        ("quotasubtrees/status", "patch"),
        ("quotasubtrees/status", "update"),
    }
    assert roles.pop("mcad-view") == reading
    assert roles.pop("mcad-edit") == set()
    writing = roles.pop("mcad-quota-admin")
    assert writing > reading
    assert {resource for resource, _ in writing} == {"quotasubtrees"}
    assert not any(roles.values())
    admin = next(
        one for one in helm.template(**QUOTA) if one["metadata"]["name"] == "mcad-quota-admin"
    )
    assert not [key for key in admin["metadata"]["labels"] if "aggregate" in key]


def test_without_quota_there_are_no_rights_to_trees(helm: Helm) -> None:
    assert not any(written_by(helm.template()).values())


def test_where_it_watches_trees_are_read_there_only(helm: Helm) -> None:
    objects = helm.template(**QUOTA, watchNamespaces=["team-a"])
    assert written_by(objects)["mcad"] == set()
    (role,) = [one for one in of_kind(objects, "Role") if one["metadata"]["name"] == "mcad"]
    assert ["quotasubtrees/status"] in [rule["resources"] for rule in role["rules"]]


def test_notes_tell_how_to_begin_with_shares(helm: Helm) -> None:
    assert "quotasubtrees" not in helm.notes()
    said = helm.notes(**QUOTA)
    forest = dedent(
        said.partition(f"apply --namespace {NAMESPACE} -f - <<EOF\n")[2].partition("EOF")[0]
    )
    sample = (ROOT / "samples/quota/teams.yaml").read_text()
    assert list(yaml.safe_load_all(forest)) == list(yaml.safe_load_all(sample))
    notes = " ".join(said.split())
    assert "without one nothing is limited" in notes
    assert "mcad-quota-admin" in notes


def test_selectors_find_the_pod(objects: list[Object]) -> None:
    labels = pod_template(objects)["metadata"]["labels"].items()
    selectors = [only(objects, "Deployment")["spec"]["selector"]["matchLabels"]]
    services = {one["metadata"]["name"]: one for one in of_kind(objects, "Service")}
    name = only(objects, "Deployment")["metadata"]["name"]
    selectors += [services[name]["spec"]["selector"]]
    selectors += [
        one["spec"]["podSelector"]["matchLabels"] for one in of_kind(objects, "NetworkPolicy")
    ]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(objects, "PodMonitor")]
    assert all(selector.items() <= labels for selector in selectors)
    service = services[name]["metadata"]["labels"].items()
    monitors = of_kind(objects, "ServiceMonitor")
    assert all(one["spec"]["selector"]["matchLabels"].items() <= service for one in monitors)


def test_one_stands_by_on_another_node(objects: list[Object]) -> None:
    spec = only(objects, "Deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"] == spec["selector"]
    budget = only(objects, "PodDisruptionBudget")["spec"]
    assert budget == {"maxUnavailable": 1, "selector": spec["selector"]}


def test_one_alone_has_no_budget(helm: Helm) -> None:
    objects = helm.template(replicas=1)
    assert only(objects, "Deployment")["spec"]["replicas"] == 1
    assert of_kind(objects, "PodDisruptionBudget") == []


def test_it_may_be_stopped_by_no_replicas(helm: Helm) -> None:
    objects = helm.template(replicas=0)
    assert only(objects, "Deployment")["spec"]["replicas"] == 0
    assert of_kind(objects, "PodDisruptionBudget") == []


def test_all_users_may_read_the_lease_and_pauses_and_nothing_more(helm: Helm) -> None:
    lease = {"leaderElection": {"namespace": "ops", "name": "ours"}}
    objects = helm.template(config=lease)
    everyone = [
        binding
        for binding in [*of_kind(objects, "RoleBinding"), *of_kind(objects, "ClusterRoleBinding")]
        for one in binding["subjects"]
        if one["kind"] != "ServiceAccount"
    ]
    binding, pauses = everyone
    for one in everyone:
        assert [subject["name"] for subject in one["subjects"]] == ["system:authenticated"]
    (viewer,) = [
        one
        for one in of_kind(objects, "ClusterRole")
        if one["metadata"]["name"] == pauses["roleRef"]["name"]
    ]
    assert [(one["resources"], one["verbs"]) for one in viewer["rules"]] == [
        (["dispatchpauses"], ["get", "list", "watch"])
    ]
    (role,) = [
        one
        for one in of_kind(objects, "Role")
        if one["metadata"]["name"] == binding["roleRef"]["name"]
    ]
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "ops"
    assert role["rules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["ours"],
            "verbs": ["get"],
        }
    ]


def test_the_configuration_is_valid(objects: list[Object]) -> None:
    config_of(objects)


# -- what the values do -----------------------------------------------------------------------


def test_defaults_are_those_of_the_dispatcher(helm: Helm) -> None:
    config = config_of(helm.template())
    assert config.allowed == Config().allowed
    assert config.max_priority == {"*": 1_000_000}
    own = {
        "wrapped_resources": DEFAULT_WRAPPED,
        "excluded_namespaces": SYSTEM_NAMESPACES,
        "max_priority": {},
    }
    assert config.model_copy(update=own) == Config()


def test_nothing_is_wrapped_where_the_dispatcher_lives(helm: Helm) -> None:
    assert config_of(helm.template()).excluded_namespaces == (*SYSTEM_NAMESPACES, NAMESPACE)
    policy = policies(helm.template(excludedNamespaces=["infra"]))["mcad"]
    expressions = [one["expression"] for one in policy["spec"]["validations"]]
    assert f"!(request.namespace in ['infra', '{NAMESPACE}'])" in expressions


def test_the_chart_knows_the_same_dangerous_kinds(helm: Helm) -> None:
    """Each of them is refused by the chart, and the dispatcher refuses it as well."""
    for group, plurals in DANGEROUS.items():
        for plural in sorted(plurals) or ["anything"]:
            wrapped = {"apiGroup": group, "resources": {plural: "Kind"}}
            with pytest.raises(HelmError, match="carries rights"):
                helm.template(wrappedResources=[wrapped])
            objects = helm.template(wrappedResources=[wrapped | {"dangerous": True}])
            assert config_of(objects).allowed == {(group, plural)}
    told = re.search(r'define "mcad.dangerous" -}}(.*?){{- end', CHECKS.read_text(), re.DOTALL)
    assert yaml.safe_load(told[1]) == {group: sorted(names) for group, names in DANGEROUS.items()}


def test_plurals_have_their_kinds() -> None:
    """A wrong kind would make the policy ask for the wrong right."""
    kinds = {(one.group, one.resource): one.kind for one in WELL_KNOWN}
    for group in yaml.safe_load((CHART / "values.yaml").read_text())["wrappedResources"]:
        for plural, kind in group["resources"].items():
            assert kinds[group["apiGroup"], plural] == kind


def test_settings_reach_the_dispatcher(helm: Helm) -> None:
    config = config_of(helm.template(**MATRIX["settings"]))
    assert (config.backoff_time, config.fit, config.policy) == (5, "aggregate", "StrictFIFO")
    assert config.max_priority == {"*": 0, "team-a": 2_000_000_000}
    assert config.fault_tolerance.retry_pause_period == 90
    assert config.fault_tolerance.success_ttl == 31_622_400
    assert config.fault_tolerance.retry_limit == 2
    assert config.autopilot.evictions == ()
    assert list(config.autopilot.resource_taints) == ["cpu"]
    assert config.inject.labels == {"team": "research"}
    assert config.scheduler_name == "coscheduler"


def test_impersonation_reaches_the_dispatcher(helm: Helm) -> None:
    config = config_of(helm.template(**IMPERSONATE))
    assert config.impersonate.service_account == "runner"
    assert config.watch_namespaces == ("team-a", "team-b")


def test_the_pod_runs_the_dispatcher(helm: Helm) -> None:
    template = pod_template(helm.template(logLevel="debug", logFormat="json", **INVISIBLE))
    (container,) = template["spec"]["containers"]
    assert container["args"] == [
        "run",
        "--config=/etc/mcad/config.yaml",
        "--http=0.0.0.0:8080",
        "--log-level=debug",
        "--log-format=json",
    ]
    assert container["image"] == f"mcad:{mcad.__version__}"
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert {one["mountPath"] for one in container["volumeMounts"]} == {"/etc/mcad", "/tmp"}
    # A Service called mcad becomes variables MCAD_..., which is where settings come from.
    assert template["spec"]["enableServiceLinks"] is False


MORE: Object = {
    "commonLabels": {"team": "platform"},
    "extraArgs": ["--journal=/journal"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "journal", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "journal", "mountPath": "/journal"}],
    "topologySpreadConstraints": [],
    "startupProbe": {"failureThreshold": 5},
    "revisionHistoryLimit": 2,
}


@pytest.mark.parametrize("visible", [False, True])
def test_what_is_added_to_the_pod(helm: Helm, visible: bool) -> None:
    objects = helm.template(**MORE, visibility={"enabled": visible})
    assert all(one["metadata"]["labels"]["team"] == "platform" for one in objects)
    deployment = only(objects, "Deployment")["spec"]
    assert deployment["revisionHistoryLimit"] == 2
    spec = deployment["template"]["spec"]
    (container,) = spec["containers"]
    assert container["args"][-1] == "--journal=/journal"
    names = ["POD_IP", "TZ"] if visible else ["TZ"]
    assert [one["name"] for one in container["env"]] == names
    assert spec["volumes"][-1] == MORE["extraVolumes"][0]
    assert container["volumeMounts"][-1] == MORE["extraVolumeMounts"][0]
    assert "topologySpreadConstraints" not in spec
    assert container["startupProbe"]["failureThreshold"] == 5
    assert container["startupProbe"]["httpGet"]["path"] == "/healthz"


def test_without_additions_there_are_no_variables(helm: Helm) -> None:
    (container,) = pod_template(helm.template(**INVISIBLE))["spec"]["containers"]
    assert "env" not in container


def test_a_disruption_budget_may_be_left_out_or_widened(helm: Helm) -> None:
    none = helm.template(podDisruptionBudget={"enabled": False})
    assert of_kind(none, "PodDisruptionBudget") == []
    half = helm.template(podDisruptionBudget={"maxUnavailable": "50%"}, replicas=4)
    assert only(half, "PodDisruptionBudget")["spec"]["maxUnavailable"] == "50%"


@pytest.mark.parametrize(
    ("value", "kind", "endpoints"),
    [
        ("podMonitor", "PodMonitor", "podMetricsEndpoints"),
        ("serviceMonitor", "ServiceMonitor", "endpoints"),
    ],
)
def test_a_monitor_in_another_namespace(helm: Helm, value: str, kind: str, endpoints: str) -> None:
    rule = {"action": "labeldrop", "regex": "pod"}
    own = {"enabled": True, "namespace": "monitoring", "relabelings": [rule]}
    monitor = only(helm.template(**{value: own}), kind)
    assert monitor["metadata"]["namespace"] == "monitoring"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": [NAMESPACE]}
    assert monitor["spec"][endpoints][0]["relabelings"] == [rule]
    plain = only(helm.template(**{value: {"enabled": True}}), kind)
    assert plain["metadata"]["namespace"] == NAMESPACE
    assert "namespaceSelector" not in plain["spec"]
    assert "relabelings" not in plain["spec"][endpoints][0]


def test_the_dispatcher_knows_the_arguments(helm: Helm) -> None:
    objects = helm.template(logLevel="warning", forceCoexist=True)
    (container,) = pod_template(objects)["spec"]["containers"]
    assert container["args"][-1] == "--force-coexist"
    command, *args = container["args"]
    context = run.make_context(command, args)
    assert context.params["force_coexist"] is True
    assert context.params["log_level"] == "warning"
    assert (context.params["http"].host, context.params["http"].port) == ("0.0.0.0", 8080)


def test_another_configuration_is_another_pod(helm: Helm) -> None:
    sums = {
        pod_template(helm.template(config={"backoffTime": seconds}))["metadata"]["annotations"][
            "checksum/config"
        ]
        for seconds in (1, 2)
    }
    assert len(sums) == 2


def test_where_the_pod_goes(helm: Helm) -> None:
    spec = pod_template(helm.template(**MATRIX["placed"]))["spec"]
    wished = MATRIX["placed"]
    assert spec["nodeSelector"] == wished["nodeSelector"]
    assert spec["tolerations"] == wished["tolerations"]
    assert spec["affinity"] == wished["affinity"]
    assert spec["priorityClassName"] == wished["priorityClassName"]


def test_openshift_chooses_the_user(helm: Helm) -> None:
    """A null takes a default out, so that the security context constraint assigns an id."""
    unset = dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"))
    rendered = helm.template(podSecurityContext=unset)
    assert pod_template(rendered)["spec"]["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_a_digest_wins_over_a_tag(helm: Helm) -> None:
    (container,) = pod_template(helm.template(**MATRIX["image"]))["spec"]["containers"]
    assert container["image"] == "registry.example.com/mcad@sha256:" + "0" * 64


def test_crds_are_kept_or_not(helm: Helm) -> None:
    kept = of_kind(helm.template(), "CustomResourceDefinition")
    assert len(kept) == len(crds())
    for one in kept:
        assert one["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    deleted = of_kind(helm.template(crds={"keep": False}), "CustomResourceDefinition")
    assert not [one for one in deleted if "annotations" in one["metadata"]]
    assert not of_kind(helm.template(crds={"enabled": False}), "CustomResourceDefinition")


def test_monitors_only_when_asked_for(helm: Helm) -> None:
    assert not of_kind(helm.template(), "PodMonitor") + of_kind(helm.template(), "ServiceMonitor")
    objects = helm.template(**MATRIX["monitors"])
    assert only(objects, "PodMonitor")["metadata"]["labels"]["release"] == "prometheus"
    assert only(objects, "ServiceMonitor")["spec"]["endpoints"][0]["interval"] == "1m"


SECURE: dict[str, Any] = {"metrics": {"secure": {"enabled": True}}}


def test_secure_metrics(helm: Helm) -> None:
    """A port of its own, a certificate for the name that Prometheus expects, and a role to bind."""
    objects = helm.template(**MATRIX["secure metrics"] | INVISIBLE)
    (container,) = pod_template(objects)["spec"]["containers"]
    context = run.make_context(container["args"][0], container["args"][1:])
    address = context.params["metrics"]
    assert (address.host, address.port) == ("0.0.0.0", 8444)
    assert {"name": "metrics", "containerPort": 8444} in container["ports"]
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    assert str(context.params["metrics_certs"]) in mounted
    (endpoint,) = only(objects, "ServiceMonitor")["spec"]["endpoints"]
    secret, service = only(objects, "Secret"), only(objects, "Service")
    assert (endpoint["port"], endpoint["scheme"]) == ("metrics", "https")
    assert "metrics" in {one["name"] for one in service["spec"]["ports"]}
    name = f"{service['metadata']['name']}.{NAMESPACE}.svc"
    assert endpoint["tlsConfig"] == {
        "ca": {"secret": {"name": secret["metadata"]["name"], "key": "ca.crt"}},
        "serverName": name,
    }
    assert endpoint["bearerTokenFile"].endswith("/serviceaccount/token")
    assert f"DNS:{name}" in named_in(base64.b64decode(secret["data"]["tls.crt"]))
    (policy,) = only(objects, "NetworkPolicy")["spec"]["ingress"]
    assert policy["ports"] == [{"port": "http"}, {"port": "metrics"}]
    (reader,) = [one for one in objects if one["metadata"]["name"] == "mcad-metrics-reader"]
    assert reader["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def named_in(certificate: bytes) -> str:
    """The names of a certificate, as openssl prints them."""
    command = ["openssl", "x509", "-noout", "-ext", "subjectAltName"]
    return subprocess.run(
        command, input=certificate, capture_output=True, check=True
    ).stdout.decode()


def test_rights_to_review_only_with_secure_metrics(helm: Helm) -> None:
    reviews = {
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    }
    plain, secure = (
        {one[1:4] for one in granted_to(helm.template(**values), RELEASE, NAMESPACE)}
        for values in (INVISIBLE, SECURE | INVISIBLE)
    )
    assert secure - plain == reviews


def test_secure_metrics_with_a_certificate_and_a_token_of_ones_own(helm: Helm) -> None:
    token = {"credentials": {"name": "prometheus-token", "key": "token"}}
    own = {"enabled": True, "namespace": "monitoring", "tlsConfig": {"insecureSkipVerify": True}}
    objects = helm.template(
        **INVISIBLE,
        metrics={"secure": {"enabled": True, "secretName": "mine"}},
        podMonitor={"enabled": True, "authorization": token},
        serviceMonitor=own | {"authorization": token},
    )
    assert of_kind(objects, "Secret") == []
    (scrape,) = only(objects, "PodMonitor")["spec"]["podMetricsEndpoints"]
    assert scrape["authorization"] == token
    assert scrape["tlsConfig"]["ca"]["secret"]["name"] == "mine"
    (endpoint,) = only(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["tlsConfig"] == own["tlsConfig"]
    assert "bearerTokenFile" not in endpoint
    volumes = pod_template(objects)["spec"]["volumes"]
    assert {"name": "metrics", "secret": {"secretName": "mine"}} in volumes


def test_the_network_policy(helm: Helm) -> None:
    spec = only(helm.template(**INVISIBLE), "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["ingress"] == [{"ports": [{"port": "http"}]}]
    _, visible = only(helm.template(), "NetworkPolicy")["spec"]["ingress"]
    assert visible["ports"] == [{"port": "visibility"}]
    closed = only(helm.template(**MATRIX["closed"]), "NetworkPolicy")["spec"]
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    assert closed["egress"] == MATRIX["closed"]["networkPolicy"]["egress"]
    assert closed["ingress"][0]["from"] == MATRIX["closed"]["networkPolicy"]["from"]


def policies(objects: list[Object]) -> dict[str, Object]:
    """The admission policies by name; each is bound by a binding of the same name."""
    found = {one["metadata"]["name"]: one for one in of_kind(objects, "ValidatingAdmissionPolicy")}
    bindings = of_kind(objects, "ValidatingAdmissionPolicyBinding")
    assert {one["metadata"]["name"]: one["spec"]["policyName"] for one in bindings} == {
        name: name for name in found
    }
    return found


def test_only_the_policy_mode_asks_for_rights(helm: Helm) -> None:
    others = {"mcad-manifests", "mcad-warnings"}
    assert policies(helm.template()).keys() == {"mcad", *others}
    assert policies(helm.template(authorization="none")).keys() == others
    assert policies(helm.template(**IMPERSONATE)).keys() == others


def test_a_policy_that_fails_opens_no_door(helm: Helm) -> None:
    """Rights are never taken for granted; manifests are read by the dispatcher again."""
    found = policies(helm.template())
    assert {name: one["spec"]["failurePolicy"] for name, one in found.items()} == {
        "mcad": "Fail",
        "mcad-manifests": "Ignore",
        "mcad-warnings": "Ignore",
    }


def test_what_is_only_warned_of_is_never_denied(helm: Helm) -> None:
    bindings = of_kind(helm.template(), "ValidatingAdmissionPolicyBinding")
    actions = {one["metadata"]["name"]: one["spec"]["validationActions"] for one in bindings}
    assert actions == {"mcad": ["Deny"], "mcad-manifests": ["Deny"], "mcad-warnings": ["Warn"]}


def test_warnings_can_be_switched_off(helm: Helm) -> None:
    found = policies(helm.template(submissionWarnings={"enabled": False}))
    assert found.keys() == {"mcad", "mcad-manifests"}
    older = helm.template("--kube-version", "1.29.0", authorization="none")
    assert policies(older) == {}


def test_what_a_policy_cannot_know_is_judged_by_values_alone(helm: Helm) -> None:
    def checks(**warnings: Any) -> list[str]:
        found = policies(helm.template(submissionWarnings=warnings))["mcad-warnings"]["spec"]
        return [one["message"] for one in found["validations"]]

    assert len(checks()) == 3
    sizes = [{"cpu": 4, "nvidia.com/gpu": "8"}, {"memory": "1.5Gi"}]
    assert len(checks(nodeSizes=sizes)) == 4
    said = checks(quotaLeaves={"teams": ["a", "b"], "rooms": ["c"]})
    assert said[3:] == [
        "the quota tree rooms has no such leaf; set the label rooms to one of c.",
        "the quota tree teams has no such leaf; set the label teams to one of a, b.",
    ]


def test_the_policies_read_every_place_that_holds_objects(helm: Helm) -> None:
    """Where the CRD lets a whole object in, the dispatcher may create it."""
    schema = crds()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    places = set(embedded(schema["properties"]["spec"], "object.spec"))
    assert places == {
        ("object.spec.resources.GenericItems", "generictemplate"),
        ("object.spec.components", "template"),
    }
    lists = {
        "object.spec.resources.GenericItems": "variables.items",
        "object.spec.components": "variables.components",
    }
    found = policies(helm.template())
    for policy, name in (
        ("mcad", "kinds"),
        ("mcad-manifests", "nested"),
        ("mcad-manifests", "elsewhere"),
    ):
        variables = {one["name"]: one["expression"] for one in found[policy]["spec"]["variables"]}
        for place, template in places:
            holder = place if policy == "mcad" else lists[place]
            (item,) = re.findall(rf"{holder}\.filter\((\w), has\(\1\.{template}\)", variables[name])
            assert f"{item}.{template}." in variables[name]
    assert all(place in str(found["mcad-manifests"]["spec"]["variables"]) for place in lists), (
        "the lists are those of the spec"
    )


def test_the_policy_knows_the_kinds_without_pods(helm: Helm) -> None:
    rules = policies(helm.template())["mcad-manifests"]["spec"]["validations"]
    (told,) = (one["expression"] for one in rules if "has pods" in one["message"])
    kinds = {tuple(name.split("/")) for name in re.findall(r"'(\S*?/\S+?)'", told)}
    assert {(group, plural_of(kind)) for group, kind in kinds} == WITHOUT_PODS


def plural_of(kind: str) -> str:
    """Of the kinds without pods; Kubernetes makes plurals up in the same way."""
    word = kind.lower()
    if word.endswith(("s", "x")):
        return word if word == "endpoints" else f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def test_as_many_pod_sets_as_the_chart_says(helm: Helm) -> None:
    for most, values in ((8, {}), (64, {"maxPodSets": 64})):
        rules = policies(helm.template(**values))["mcad-manifests"]["spec"]["validations"]
        (told,) = (one for one in rules if "pod sets; use several" in one["message"])
        assert told["expression"] == f"variables.sets.sum() <= {most}"


def test_the_policy_reads_paths_as_the_dispatcher_does(helm: Helm) -> None:
    """One grammar, in two places: what the one takes for a path, the other follows."""
    text = str(policies(helm.template())["mcad-manifests"]["spec"]["variables"])
    (pattern,) = set(re.findall(r"matches\(r'(.*?)'\)", text.replace("\\\\", "\\")))
    for path in ("template", "template.a", "template[0]", "template.a-b[12].c", "template.a b"):
        assert re.search(pattern, path)
        with pytest.raises(PathError, match=r"nothing|not lead"):
            follow(path, {})
    for path in (
        "",
        "a",
        "templatex",
        "template.",
        "template..a",
        "template[a]",
        "template[-1]",
        "template[1234567]",
        "template.a]",
        "template.a[",
        " template",
    ):
        assert not re.search(pattern, path)
        with pytest.raises(PathError, match=r"must start|expected"):
            follow(path, {"a": {}})


def embedded(schema: Object, path: str) -> Iterator[tuple[str, str]]:
    """(list, field of its elements) of every place for a whole object."""
    for name, one in schema.get("properties", {}).items():
        if one.get("x-kubernetes-embedded-resource"):
            yield path, name
        yield from embedded(one, f"{path}.{name}")
        yield from embedded(one.get("items", {}), f"{path}.{name}")


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "said"), REFUSED.items())
def test_wrong_values_are_refused(helm: Helm, values: str, said: str) -> None:
    with pytest.raises(HelmError) as error:
        helm.template(**yaml.safe_load(values))
    assert said in str(error.value)


def test_as_a_part_of_another_chart_it_takes_what_helm_gives_to_parts(
    helm: Helm, tmp_path: Path
) -> None:
    """``global`` always, and ``enabled`` where the whole asks for it as Helm's own charts do."""
    part = {"name": "mcad", "version": "*", "repository": f"file://{CHART}"}
    part["condition"] = "mcad.enabled"
    chart = {"apiVersion": "v2", "name": "whole", "version": "1.0.0", "dependencies": [part]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(chart))
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / "mcad").symlink_to(CHART, target_is_directory=True)
    for enabled in (True, False):
        values = {"global": {"region": "x"}, "mcad": {"enabled": enabled, "replicas": 1}}
        text = helm.run("template", "whole", str(tmp_path), "--namespace", NAMESPACE, values=values)
        deployed = of_kind(filter(None, yaml.safe_load_all(text)), "Deployment")
        assert [one["spec"]["replicas"] for one in deployed] == [1] * enabled


def test_before_kubernetes_1_30_there_is_no_policy(helm: Helm) -> None:
    with pytest.raises(
        HelmError, match=r"policy needs Kubernetes 1\.30 or later, and this is v1\.29"
    ):
        helm.template("--kube-version", "1.29.3")
    assert policies(helm.template("--kube-version", "1.30.0"))
    assert not policies(helm.template("--kube-version", "1.29.3", authorization="none"))
    assert not policies(helm.template("--kube-version", "1.29.3", **IMPERSONATE))


# -- notes ------------------------------------------------------------------------------------


def test_notes_say_what_to_do_next(helm: Helm) -> None:
    notes = helm.notes()
    assert f"kubectl --namespace {NAMESPACE} rollout status deployment/mcad" in notes
    assert "Priorities above 1000000 are cut to it" in notes
    assert "WARNING" not in notes
    manifest = re.search(r"<<EOF\n(.*?)\nEOF\n", notes, re.DOTALL)
    assert manifest is not None, "a shell finds no end that is indented"
    assert yaml.safe_load(manifest[1])["kind"] == "AppWrapper"


def test_notes_tell_how_to_install_again_elsewhere(helm: Helm) -> None:
    assert "add --take-ownership to `helm install`" in helm.notes()
    assert "--take-ownership" not in helm.notes(crds={"keep": False})


def test_notes_warn_of_no_authorization(helm: Helm) -> None:
    assert "WARNING: authorization is none." in helm.notes(authorization="none")


def test_notes_tell_which_account_is_needed(helm: Helm) -> None:
    notes = " ".join(helm.notes(**IMPERSONATE).split())
    assert "service account runner" in notes
    assert "It has to exist in team-a, team-b" in notes
    assert "kubectl create --namespace team-a" in notes


# -- nothing is stale -------------------------------------------------------------------------


def test_the_crds_are_the_generated_ones(helm: Helm) -> None:
    expected, found = (
        {file.name: file.read_text() for file in sorted(home.iterdir())}
        for home in (ROOT / "deploy" / "crds", CHART / "files" / "crds")
    )
    assert found == expected, "run `make crd`"
    rendered = of_kind(helm.template(), "CustomResourceDefinition")
    assert {one["metadata"]["name"]: one["spec"] for one in rendered} == {
        one["metadata"]["name"]: one["spec"] for one in crds()
    }


def test_the_chart_has_the_version_of_the_dispatcher() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (mcad.__version__, mcad.__version__)


@pytest.mark.parametrize("setting", [Fit, Policy, Fairness], ids=lambda one: one.__name__.lower())
def test_the_schema_knows_every_choice_of_a_setting(setting: type[StrEnum]) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    known = schema["properties"]["config"]["properties"][setting.__name__.lower()]
    assert known["enum"] == [str(one) for one in setting]


def test_the_schema_knows_every_setting() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    ours = {"wrappedResources", "watchNamespaces", "excludedNamespaces", "impersonate"}
    settings = {info.alias or name for name, info in Config.model_fields.items()}
    known = schema["properties"]["config"]["properties"]
    assert {name for name in known if name not in REMOVED} == settings - ours


@pytest.mark.parametrize("setting", ["faultTolerance", "autopilot", "inject", "leaderElection"])
def test_the_schema_knows_what_is_in_a_setting(setting: str) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    (model,) = [
        info.annotation
        for name, info in Config.model_fields.items()
        if (info.alias or name) == setting
    ]
    assert isinstance(model, type)
    assert issubclass(model, Strict)
    inner = {info.alias or name for name, info in model.model_fields.items()}
    known = schema["properties"]["config"]["properties"][setting]["properties"]
    assert {name for name in known if f"{setting}.{name}" not in REMOVED} == inner


@pytest.mark.parametrize("name", REMOVED)
def test_the_chart_says_what_to_do_about_a_removed_setting(helm: Helm, name: str) -> None:
    """The schema lets each value in, so that a template can say it."""
    setting, _, inner = name.partition(".")
    for value in ("former", 7, [], {}):
        with pytest.raises(HelmError) as caught:
            helm.template(config={setting: {inner: value} if inner else value})
        message = f"config.{name} is no longer a setting; {REMOVED[name].advice}."
        assert message in str(caught.value)


def test_every_value_is_in_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) == set(schema["properties"]) - {"global", "enabled"}


def test_every_value_has_a_comment_or_is_part_of_one_that_has() -> None:
    said = values_page.comments((CHART / "values.yaml").read_text())
    rows = re.findall(r"^\| `([\w.]+)` \|", values_page.generated(), re.MULTILINE)
    assert len(rows) > 60
    paths = [tuple(row.split(".")) for row in rows]
    assert not [one for one in paths if not any(one[: n + 1] in said for n in range(len(one)))]


def test_the_licence_is_the_projects() -> None:
    assert (CHART / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
