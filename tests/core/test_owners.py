"""Only its owner changes a field of an AppWrapper or of the cluster."""

import ast
from collections import defaultdict
from dataclasses import fields
from pathlib import Path

from mcad.core.cluster import Cluster
from mcad.core.state.entry import Creation, Entry, Past, Removal, Run, StatusWrites, Wait
from mcad.core.state.settings import Settings

CORE = Path(__file__).parents[2] / "mcad" / "core"

OWNERS = {
    # the AppWrapper, its life and its attempt
    "workload story step_since superseded former": "state/entry.py",
    "edited": "state/entry.py observed/workloads.py",
    "phase dispatch": "state/entry.py observed/recovery.py",
    "unreadable": "observed/recovery.py",
    "error held_from": "state/entry.py",
    "timers": "state/entry.py state/agenda.py",
    "tries": "state/entry.py",
    "finished failed": "state/entry.py running/completion.py",
    "untested": "observed/workloads.py observed/recovery.py",
    "stage_since": "state/entry.py",
    "ungated_at": "state/entry.py observed/objects.py",
    "missing missing_since": "state/entry.py running/stage.py",
    "ends_at": "running/monitor.py",
    "deferred_before": "queue/equivalence.py",
    "refused refused_read": "state/entry.py attempts/pod_warnings.py",
    "calm_since": "running/stalls.py",
    "awaits_nodes waited_for_nodes": ("running/stage.py attempts/create.py observed/recovery.py"),
    "cursor": "state/entry.py attempts/create.py observed/recovery.py",
    "doubt": "state/entry.py attempts/create.py observed/recovery.py",
    "asked words": "attempts/create.py",
    "created": "state/entry.py attempts/teardown.py attempts/orphans.py",
    "absent": "state/entry.py",
    "read_again": "running/items.py",
    "undeleted overtaken forced": "attempts/teardown.py",
    "remains looks": "state/entry.py attempts/teardown.py",
    "remains_reported": "attempts/remains.py",
    # earlier attempts, which a restart reads from status
    "first_dispatch": "attempts/create.py observed/recovery.py",
    "requeueings": "running/requeue.py running/stage.py observed/recovery.py",
    "requeueing_wait": "running/requeue.py observed/recovery.py",
    "resets": "running/reset.py observed/recovery.py",
    "refusals": "attempts/create.py",
    "in_vain": "attempts/teardown.py",
    # its status
    "conditions": "state/entry.py observed/recovery.py",
    "pods counted_at": "status/pod_counts.py observed/recovery.py",
    "path": "attempts/create.py cycle/cycle.py cycle/quota_reports.py observed/recovery.py",
    "flying flying_in urgency": "state/entry.py",
    "serial written": "state/entry.py observed/workloads.py",
    "counted": "observed/recovery.py",
    "deleted_trees": "cycle/deleted_trees.py observed/recovery.py",
    "dirty": "cluster.py dispatcher.py internal_errors.py",
    # its wait, and what is reported of it
    "state hold pause": "queue/waiting.py",
    "head_since": "cycle/head_of_line.py",
    "head_for": "cycle/head_of_line.py attempts/create.py",
    "binding_since": "eligibility/binding_wait.py",
    "reported announced": "state/entry.py cycle/cycle.py",
    "reported_at": "cycle/cycle.py reservations/manage.py observed/workloads.py",
    "restored": "cycle/cycle.py observed/recovery.py",
    # reservations and evictions
    "reservation waits_for": "state/reservation_book.py",
    "patience eviction_patience scale_up_patience": "state/reservation_book.py",
    "planned_at": "preemption/search.py",
    "eviction": "preemption/eviction.py observed/recovery.py",
    # set when an AppWrapper becomes known, and never again
    "first_seen rebuilt creation removal run past wait writes": "",
    # the cluster
    "entries": "observed/workloads.py attempts/leftovers.py internal_errors.py",
    "evictions": "preemption/eviction.py",
    "reservations": "reservations/manage.py",
    "started": "cycle/cycle.py",
    "recovered": "cycle/cycle.py",
    "epoch": "cycle/cycle.py dispatcher.py",
    "settings agenda objects capacity forest waiting rights walk admission errors injections": "",
    "scale_ups": "",
    "eviction_pace quota_statuses history": "",
    "passed": "dispatcher.py",
}
"""The fields, and the modules that may change them."""

HOMONYMS = {
    "cycle/quota_reports.py": "writes serial flying tries",  # of QuotaWrites
    "queue/queue.py": "planned_at",  # of EquivalenceClass
    "assumed/pod_index.py": "finished",
    "attempts/access.py": "asked",  # of Rights
    "scale_up/observed.py": "state",  # of ScaleUpRequest
}
"""Fields of other classes with one of these names."""

_MUTATORS = {"add", "append", "clear", "discard", "pop", "popitem", "setdefault", "update"}


def _changed(node: ast.AST) -> list[ast.Attribute]:
    """The attribute that is assigned or deleted here, or changed by an index or a method."""
    match node:
        case ast.Attribute(ctx=ast.Store() | ast.Del()):
            return [node]
        case ast.Subscript(value=ast.Attribute() as field, ctx=ast.Store() | ast.Del()):
            return [field]
        case ast.Call(func=ast.Attribute(value=ast.Attribute() as field, attr=method)):
            return [field] if method in _MUTATORS else []
    return []


def _found() -> dict[str, set[str]]:
    """The modules that change each field. ``self`` is meant in the classes of the fields only."""
    found = defaultdict(set)
    for path in CORE.rglob("*.py"):
        module = path.relative_to(CORE).as_posix()
        nodes = ast.walk(ast.parse(path.read_text()))
        for field in [field for node in nodes for field in _changed(node)]:
            is_self = isinstance(field.value, ast.Name) and field.value.id == "self"
            if not is_self or module == "state/entry.py":
                found[field.attr].add(module)
    return found


def test_only_its_owner_changes_a_field() -> None:
    owners = {name: modules.split() for names, modules in OWNERS.items() for name in names.split()}
    known = {
        one.name
        for of in (Entry, StatusWrites, Creation, Removal, Run, Past, Wait)
        for one in fields(of)
    }
    known |= {name for name in vars(Cluster(Settings())) if not name.startswith("_")}
    assert known == set(owners)
    homonyms = {(name, module) for module, names in HOMONYMS.items() for name in names.split()}
    found = _found()
    for name in known:
        modules = {module for module in found[name] if (name, module) not in homonyms}
        assert modules == set(owners[name]), name


def test_no_field_is_changed_behind_a_name() -> None:
    for path in CORE.rglob("*.py"):
        names = {
            node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)
        }
        assert names.isdisjoint({"setattr", "delattr", "vars"}), path
