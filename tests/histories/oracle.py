"""Which ends of attempts the chronicle accounts for; everything else is a violation.

The oracle knows no rule of the dispatcher. It knows what was stored, what users did, and which
pods each AppWrapper declares. Where the order of two things is open, it allows both: whatever it
reports is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.histories.chronicle import NEVER, End, PodLife
from tests.histories.drawing import Submitted
from tests.histories.objects import Item
from tests.histories.world import World

Json = dict[str, Any]
SLACK_S = 3.0  # times of a dispatcher are those of conditions, and news takes a moment
LOOK_S = 45.0  # within which a dispatcher that runs has told, or ended, what there is
NOT_PLACED, TOO_FEW, FAILED_PODS = "PlacementTimeout", "InsufficientPodsReady", "FoundFailedPods"
MISSING, LOST, FAILED = "MissingComponent", "LostComponent", "FailedComponent"


@dataclass(frozen=True, slots=True)
class Violation:
    """What an end, or a state, is not accounted for by."""

    rule: str
    at_s: float
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.at_s:.1f} s {self.name}: {self.rule}: {self.text}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as it is at its end: its pods, and since when it is confirmed."""

    world: World
    end: End
    wrapper: Submitted
    pods: list[PodLife]
    confirmed_s: float

    @property
    def now_s(self) -> float:
        """Just before it ends."""
        return self.end.at_s - 0.001

    def of_set(self, name: str) -> list[PodLife]:
        """Its pods of one set."""
        return [pod for pod in self.pods if pod.set == name]

    def placed_s(self) -> float:
        """When all declared pods had nodes at one time, ``NEVER`` if they had not."""
        times = sorted({pod.bound_s for pod in self.pods if pod.bound_s < self.now_s})
        wanted = self.wrapper.declared().items()
        for at_s in times:
            if all(sum(p.holds(at_s) for p in self.of_set(name)) >= n for name, n in wanted):
                return at_s
        return NEVER

    def declared(self, pod: PodLife) -> bool:
        """Whether a pod without a node is one of those that are declared, not a surplus one."""
        others = [one for one in self.of_set(pod.set) if one is not pod]
        before = sum(
            one.holds(self.now_s) or (one.lives(self.now_s) and one.created_s < pod.created_s)
            for one in others
        )
        return before < self.wrapper.declared()[pod.set]

    def named(self, pods: Iterable[PodLife]) -> list[PodLife]:
        """Those that the message names; it names a few of many."""
        return [pod for pod in pods if pod.name in self.end.message]

    def last_news_s(self) -> float:
        """When a pod appeared or became ready for the last time."""
        times = [pod.created_s for pod in self.pods]
        times += [at_s for pod in self.pods for at_s in pod.ready_s[::2]]
        return max((at_s for at_s in times if at_s <= self.now_s - SLACK_S), default=0.0)

    def refused_since(self, since_s: float) -> list[str]:
        """The sets of which pods were refused since then."""
        sets = self.wrapper.declared()
        spells = [one for one in self.world.refusing if one[0] <= self.now_s]
        if spells and spells[-1][1]:  # controllers try again after a minute at the latest
            since_s = min(since_s, spells[-1][0])
        refused = [name for at_s, name in self.world.refusals if since_s <= at_s <= self.now_s]
        return [name for name in refused if name in sets]


def judge(world: World) -> list[Violation]:
    """Everything that is wrong in a history that was played."""
    by_name = {one.name: one for one in world.history.submitted}
    found = []
    for end in world.chronicle.ends():
        wrapper = by_name[end.obj["metadata"]["name"]]
        confirmed_s = world.chronicle.confirmed_s(end.uid, end.attempt)
        pods = world.chronicle.of_attempt(end.uid, end.attempt)
        attempt = Attempt(world, end, wrapper, pods, confirmed_s)
        if end.was == "dispatched" and (fault := _fault(attempt)):
            text = f"{end.reason}: {end.message}"
            found.append(Violation(fault, end.at_s, wrapper.name, text))
    found += _completed(world, by_name)
    found += _resumed(world)
    found += _crowded(world, by_name)
    found += _untrue(world)
    found += _at_last(world, by_name)
    return found


# -- ends of attempts ----------------------------------------------------------------------------


def _fault(one: Attempt) -> str:
    """Why this end is not accounted for, "" if it is."""
    spec = one.end.obj["spec"]
    match one.end.reason:
        case "Suspended":
            return "" if spec.get("suspend") else "the AppWrapper is not suspended"
        case "Preempted" | "Reclaimed":
            return "" if one.world.history.config.preemption else "nothing is preempted"
        case "SuccessTTL":
            return ""
        case str(reason) if reason == NOT_PLACED:
            return _not_placed(one)
        case str(reason) if reason == TOO_FEW:
            return _too_few(one)
        case str(reason) if reason == FAILED_PODS:
            return _failed_pods(one)
        case str(reason) if reason in (MISSING, LOST, FAILED):
            return _item(one)
    return "a reason that is not on the list"


def _not_placed(one: Attempt) -> str:
    timeout_s = one.world.history.config.placement_timeout
    if one.wrapper.is_v1beta2:
        return "placementTimeout is not for v1beta2"
    if one.placed_s() < one.now_s - SLACK_S:
        return "all declared pods had nodes"
    if one.named(_waiting(one, timeout_s)) or _is_lost(one, timeout_s):
        return ""
    return _unplaced_fault(one, timeout_s)


def _waiting(one: Attempt, wait_s: float) -> list[PodLife]:
    """Declared pods that have waited for a node for so long."""
    found = []
    for pod in one.pods:
        since_s = max(pod.created_s, one.confirmed_s, pod.ungated_s)
        is_late = since_s + wait_s <= one.now_s + SLACK_S
        if pod.lives(one.now_s) and pod.bound_s > one.now_s and is_late and one.declared(pod):
            found.append(pod)
    return found


def _unplaced_fault(one: Attempt, wait_s: float) -> str:
    """What is wrong with an end that rests on pods that do not exist, or should not be waited for;
    "" if they were refused for so long."""
    refused = one.refused_since(one.now_s - wait_s)
    known = [name for name in refused if one.wrapper.item_of(name).kind != "Widget"]
    if known and one.last_news_s() + wait_s <= one.now_s + SLACK_S:
        return ""
    if known:
        return "pods appeared or became ready just before"
    if refused:
        return "a count of pods of an unknown kind"
    live = [pod for pod in one.pods if pod.lives(one.now_s)]
    if any(pod.ungated_s > max(one.now_s - wait_s, pod.created_s) for pod in live):
        return "pods had scheduling gates"
    live = [pod for pod in live if pod.bound_s > one.now_s]
    if live and not any(map(one.declared, live)):
        return "only surplus pods had no node"
    if _is_suspended(one):
        return "an item was suspended by a user"
    wanted = one.wrapper.declared()
    stages = [name for item in one.wrapper.items for name in item.later]
    if any(len(one.of_set(name)) < wanted[name] for name in stages):
        return "a stage had not come"
    return "no declared pod waited for so long"


def _is_suspended(one: Attempt) -> bool:
    names = {item.name for item in one.wrapper.items}
    state: dict[tuple[str, str], bool] = {}
    for at_s, _, name, value, part in one.world.suspended:
        if name in names and one.confirmed_s <= at_s <= one.now_s:
            state[name, part] = value
    return any(state.values())


def _too_few(one: Attempt) -> str:
    graces = one.wrapper.graces_s
    if not one.wrapper.is_v1beta2:
        return "graces of pods are for v1beta2"
    if one.last_news_s() + min(graces.values()) > one.now_s + SLACK_S:
        return "pods appeared or became ready just before"
    late = [pod for pod in one.pods if _is_late(one, pod, graces["warmup"])]
    if late and (one.named(late) or len(late) > 3 or _is_lost(one, graces["admission"])):
        return ""
    if late:
        return "the message names no pod that is late"
    if one.placed_s() == NEVER and _waiting(one, graces["warmup"]):
        return "" if one.named(_waiting(one, graces["warmup"])) else "the message names no pod"
    if _is_lost(one, graces["admission"]):
        return ""
    return _unplaced_fault(one, graces["admission"])


def _is_lost(one: Attempt, grace_s: float) -> bool:
    """Whether pods were taken away before the grace began, and no others came."""
    by_users = {name for at_s, kind, name in one.world.deleted if kind == "Pod"}
    for name, wanted in one.wrapper.declared().items():
        pods = one.of_set(name)
        lost = [
            pod
            for pod in pods
            if (
                pod.disruption or pod.name in by_users or one.world.unseen_since(pod.gone_s) < NEVER
            )
            and pod.deleted_s + grace_s <= one.now_s + SLACK_S
        ]
        # A successor of this very moment may have come too late.
        left = sum(
            pod.holds(one.now_s - SLACK_S) and pod.deleted_s > one.now_s - SLACK_S for pod in pods
        )
        if lost and left < wanted:
            return True
    return False


def _is_late(one: Attempt, pod: PodLife, warmup_s: float) -> bool:
    """Whether a pod has had a node, and has not started, for the warm-up grace, and is needed. Of a
    pod with scheduling gates half of that has to be without them."""
    if not pod.lives(one.now_s) or pod.bound_s > one.now_s or pod.started_s <= one.now_s:
        return False
    started = sum(other.runs(one.now_s) for other in one.of_set(pod.set))
    is_needed = started < one.wrapper.declared()[pod.set]
    since_s = max(pod.created_s, one.confirmed_s, pod.ungated_s - warmup_s / 2)
    return is_needed and since_s + warmup_s <= one.now_s + SLACK_S


def _failed_pods(one: Attempt) -> str:
    grace_s = one.wrapper.graces_s["failure"]
    if not one.wrapper.is_v1beta2:
        return "failed pods end no AppWrapper of v1beta1"
    failed = [
        pod
        for pod in one.pods
        if pod.phase == "Failed" and pod.ended_s + grace_s <= one.now_s + SLACK_S
    ]
    if not failed:
        return "no pod had failed for so long"
    if not one.named(failed):
        return "the message names no failed pod"
    faults = {_failed_fault(one, pod) for pod in one.named(failed)}
    return "" if "" in faults else min(faults)


def _failed_fault(one: Attempt, pod: PodLife) -> str:
    item = one.wrapper.item_of(pod.set)
    obj = one.world.chronicle.at(item.kind, item.name, one.now_s) or {}
    status = obj.get("status") or {}
    if item.kind == "Job" and not _met(obj, "Failed", "FailureTarget"):
        failed = status.get("failedIndexes")
        return "an index failed, and others run" if failed else "the Job goes on by itself"
    if status.get("jobDeploymentStatus") == "Retrying":
        return "the RayJob begins again"
    if sum(p.holds(one.now_s) for p in one.of_set(pod.set)) >= one.wrapper.declared()[pod.set]:
        return "others have replaced it"
    return ""


def _item(one: Attempt) -> str:
    """An item that is not there, or says that it failed."""
    named = [item for item in one.wrapper.items if item.name in one.end.message]
    if not named:
        return "the message names no item"
    faults = {_item_fault(one, item) for item in named}
    return "" if "" in faults else min(faults)


def _item_fault(one: Attempt, item: Item) -> str:
    obj = one.world.chronicle.at(item.kind, item.name, one.now_s) or {}
    if one.end.reason == FAILED:
        return "" if _has_failed(item, obj) else "the item has not failed"
    by_user = any(name == item.name for at_s, _, name in one.world.deleted if at_s <= one.now_s)
    pods = [pod for pod in one.pods if pod.name == item.name]
    if one.end.reason == MISSING:
        if _has_succeeded(item, obj) and not _ended_unseen(one, item):
            return "the item had succeeded"
        # Nothing here leaves an Event about a pod that is lost, so it is missing later.
        is_lost_unseen = any(one.world.unseen_since(pod.gone_s) < NEVER for pod in pods)
        return "" if by_user or is_lost_unseen else "no user deleted the item"
    is_lost = any(pod.disruption or pod.phase == "Failed" for pod in pods)
    return "" if item.kind == "Pod" and is_lost else "no pod was lost"


def _ended_unseen(one: Attempt, item: Item) -> bool:
    """Whether it succeeded and was deleted between two dispatchers, so no word of it is left."""
    for at_s, kind, name in one.world.deleted:
        since_s = one.world.unseen_since(at_s)
        if (kind, name) == (item.kind, item.name) and since_s < NEVER:
            return not _has_succeeded(item, one.world.chronicle.at(kind, name, since_s) or {})
    return False


def _met(obj: Json, *types: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] in types and one["status"] == "True" for one in conditions)


def _has_failed(item: Item, obj: Json) -> bool:
    status = obj.get("status") or {}
    if item.kind == "RayJob":
        return bool(status.get("jobDeploymentStatus") == "Failed")
    if item.kind == "Pod":
        return bool(status.get("phase") == "Failed")
    return _met(obj, "Failed", "FailureTarget")


def _has_succeeded(item: Item, obj: Json) -> bool:
    status = obj.get("status") or {}
    if item.kind == "RayJob":
        return bool(status.get("jobStatus") == "SUCCEEDED")
    if item.kind == "Pod":
        return bool(status.get("phase") == "Succeeded")
    return _met(obj, "Complete", "Completed", "Succeeded", "SuccessCriteriaMet")


# -- other rules ---------------------------------------------------------------------------------


def _completed(world: World, by_name: dict[str, Submitted]) -> Iterator[Violation]:
    """Nothing is Completed before its items say that they have succeeded, and nothing runs again
    after all of them have."""
    done: dict[str, float] = {}
    for at_s, change in world.chronicle.wrappers:
        name, uid = change.obj["metadata"]["name"], change.obj["metadata"]["uid"]
        status, was = ((obj or {}).get("status") or {} for obj in (change.obj, change.previous))
        wrapper = by_name[name]
        items = [item for item in wrapper.items if item.ends]
        if status.get("state") == "Completed" != was.get("state"):
            for item in items:
                obj = world.chronicle.at(item.kind, item.name, at_s) or {}
                if not _has_succeeded(item, obj):
                    yield Violation("completed too early", at_s, name, f"{item.kind} {item.name}")
            done[uid] = at_s
        attempt, before = (one.get("dispatch") or {} for one in (status, was))
        if uid in done and attempt.get("attempt") != before.get("attempt"):
            yield Violation("run twice", at_s, name, f"attempt {attempt.get('attempt')}")


def _resumed(world: World) -> Iterator[Violation]:
    """What a user has suspended stays suspended until a user resumes it."""
    acts = world.suspended
    for number, (at_s, kind, name, value, part) in enumerate(acts):
        if not value:
            continue
        later = [one for one in acts[number + 1 :] if one[1:3] == (kind, name)]
        until_s = later[0][0] if later else NEVER
        uid = ""
        for when_s, change in world.chronicle.objects.get((kind, name), ()):
            if when_s < at_s:
                continue
            uid = uid or change.obj["metadata"]["uid"]
            is_same = change.obj["metadata"]["uid"] == uid
            if is_same and when_s < until_s and not _is_suspended_object(change.obj, part):
                yield Violation("resumed by the dispatcher", when_s, name, kind)
                break


def _is_suspended_object(obj: Json, part: str) -> bool:
    spec = obj["spec"]
    return bool((spec["workerGroupSpecs"][0] if part else spec).get("suspend"))


def _crowded(world: World, by_name: dict[str, Submitted]) -> Iterator[Violation]:
    """A declared pod finds its room taken, though nothing else took any. Of a kind that no table
    has, room is kept for a time only (C4)."""
    sets = {name: one for one in by_name.values() for name in one.declared()}
    for pod in world.chronicle.pods.values():
        for at_s in pod.refused_s[:1]:
            attempt = Attempt(
                world,
                End(at_s, pod.appwrapper, pod.attempt, "", {}),
                sets[pod.set],
                world.chronicle.of_attempt(pod.appwrapper, pod.attempt),
                0.0,
            )
            is_calm = at_s < world.crowded_s and not _has_surplus(world)
            is_calm = is_calm and pod.set not in world.history.apart  # not every node will do
            lasts = min(pod.bound_s, pod.deleted_s, world.ended_s) > at_s + LOOK_S
            is_known = attempt.wrapper.item_of(pod.set).kind != "Widget"
            is_calm = is_calm and not _has_news_of_sidecars(world, at_s)
            if is_calm and lasts and is_known and attempt.declared(pod):
                yield Violation("its room is taken", at_s, sets[pod.set].name, f"Pod {pod.name}")


def _has_news_of_sidecars(world: World, at_s: float) -> bool:
    """Whether pods ask for more than their template and are the first ones to show it: those of
    later attempts find the room that was found for them (ADR 61)."""
    every, added = world.chronicle.pods.values(), world.history.sidecars
    return any(
        pod.set in added
        and pod.lives(at_s)
        and not any(one.set == pod.set and one.attempt < pod.attempt for one in every)
        for pod in every
    )


def _has_surplus(world: World) -> bool:
    """Whether pods of which no room is kept run in this history."""
    return any(i.kind == "CronJob" for one in world.history.submitted for i in one.items)


def _untrue(world: World) -> Iterator[Violation]:
    """PodsReady is not True while an attempt ends, or there is none."""
    told: set[str] = set()
    for at_s, change in world.chronicle.wrappers:
        status, name = change.obj.get("status") or {}, change.obj["metadata"]["name"]
        phase = (status.get("dispatch") or {}).get("phase")
        is_over = phase in ("undeploying", "paused", "released", "creating")
        if is_over and _is_true(status, "PodsReady") and status.get("state") != "Completed":
            if name not in told:
                told.add(name)
                yield Violation("PodsReady is True", at_s, name, f"phase {phase}")


def _is_true(status: Json, kind: str) -> bool:
    conditions = status.get("conditions") or ()
    return any(one["type"] == kind and one["status"] == "True" for one in conditions)


def _at_last(world: World, by_name: dict[str, Submitted]) -> Iterator[Violation]:
    """At the end: what is over is Completed, and what does not run says why."""
    now_s = world.ended_s
    last: dict[str, Json] = {}
    for _, change in world.chronicle.wrappers:
        last[change.obj["metadata"]["name"]] = change.obj if change.type != "DELETED" else {}
    for name, obj in last.items():
        status = obj.get("status") or {}
        record = status.get("dispatch") or {}
        if not obj or "deletionTimestamp" in obj["metadata"] or record.get("phase") != "dispatched":
            continue
        wrapper = by_name[name]
        pods = world.chronicle.of_attempt(obj["metadata"]["uid"], record["attempt"])
        live = [pod for pod in pods if pod.lives(now_s)]
        if status.get("state") != "Completed" and _is_over(world, wrapper, pods, now_s):
            yield Violation("not Completed", now_s, name, str(status.get("state")))
        idle = [pod for pod in live if pod.started_s > now_s and pod.deleted_s > now_s]
        quiet_s = now_s - max((pod.created_s for pod in idle), default=now_s)
        if status.get("state") == "Completed":  # surplus pods are not waited for
            continue
        if idle and len(idle) == len(live) and quiet_s > LOOK_S and not _is_true(status, "Stalled"):
            yield Violation("nothing is told", now_s, name, f"Pod {idle[0].name} does not run")


def _is_over(world: World, wrapper: Submitted, pods: list[PodLife], now_s: float) -> bool:
    """Whether all items have said that they succeeded for some time, and nothing runs."""
    if any(pod.lives(now_s) or pod.ended_s > now_s - LOOK_S for pod in pods):
        return False
    return bool(pods) and all(
        item.ends
        and _has_succeeded(item, world.chronicle.at(item.kind, item.name, now_s - LOOK_S) or {})
        for item in wrapper.items
    )
