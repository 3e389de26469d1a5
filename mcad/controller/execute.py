"""Turns commands into requests and answers into events; never decides what an answer means (P3a).

The content of a request is fixed when the command is given, so that a later observation cannot
change a write that was decided before it.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from mcad.api import labels
from mcad.api.children import attempt_of
from mcad.api.manifest import NO_REQUESTS, render
from mcad.api.owner import controller_of
from mcad.controller.mirror import Mirror
from mcad.controller.pod_warnings import PodWarnings
from mcad.controller.quota_subtrees import Quotas
from mcad.controller.request_failures import answer_of
from mcad.controller.scale_ups import ScaleUps
from mcad.controller.status_writer import StatusWriter
from mcad.controller.write_lanes import Job, Lane, held_alone
from mcad.core.commands import (
    Command,
    CreateItem,
    DeleteItem,
    DeleteStray,
    ForceDeletion,
    InspectItem,
    LookForRemains,
    ReadWarnings,
    RecordEvent,
    RecordQuotaEvent,
    RequestScaleUp,
    ReviewAccess,
    WakeAt,
    WithdrawScaleUp,
    WriteQuota,
    WriteStatus,
)
from mcad.core.events import (
    AccessReviewed,
    DeletionRefused,
    Event,
    Holder,
    ItemCreated,
    ItemDeleted,
    ItemInspected,
    ItemRefused,
    LookFailed,
    Remaining,
    StrayRefused,
    WarningsRead,
)
from mcad.core.state.model import ObjectRef, Remnant
from mcad.core.state.quotation import quoted
from mcad.core.state.status_view import Urgency
from mcad.core.state.units import Instant
from mcad.kube.client import Client, CreateOptions, DeleteOptions, Selection
from mcad.kube.errors import ApiError, KubeError
from mcad.kube.kinds import APPWRAPPERS, PODS, QUOTA_SUBTREES
from mcad.kube.recorder import Recorder, Regarding
from mcad.kube.resource import Resource

Json = dict[str, Any]
_log = logging.getLogger(__name__)

DISPATCH_WIDTH = 24  # concurrent requests that are waited for; more would only queue in the server
REPORT_WIDTH = 4  # concurrent requests that no dispatch waits for


class Shell(Protocol):
    """What the executor needs of the controller. Without ``quotas`` no quota status is written,
    and without ``scale_ups`` no autoscaler is asked."""

    quotas: Quotas | None
    scale_ups: ScaleUps | None

    def feed(self, event: Event) -> None:
        """Feed an event to the core, now or after the step under way."""
        ...

    def observe_appwrapper(self, obj: Json) -> None:
        """Take an AppWrapper that was read outside the watch."""
        ...

    def wake_at(self, at: Instant) -> None:
        """Send Decide at this instant."""
        ...

    def errored(self, uid: str, error: Exception) -> None:
        """Hold the AppWrapper after an error of ours about it."""
        ...


class Executor:
    """Executes commands."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        recorder: Recorder,
        shell: Shell,
        *,
        creator: Callable[[str], str] = lambda _: "",
    ) -> None:
        """``creator`` returns the user that creates the items of a namespace, "" for ours."""
        self._client = client
        self._creator = creator
        self._mirror = mirror
        self._recorder = recorder
        self._shell = shell
        self._dispatches = Lane(DISPATCH_WIDTH, sleep=client.clock.sleep)
        self._reports = Lane(REPORT_WIDTH, before=self._dispatches)
        # An Event costs as much as a write that a dispatch waits for, and tells of nothing lasting.
        recorder.is_busy = lambda: self._dispatches.jobs > 1
        self.lanes = {"dispatch": self._dispatches, "report": self._reports}
        self._warnings = PodWarnings(client)
        self._statuses = StatusWriter(
            client, mirror, shell.feed, shell.observe_appwrapper, shell.errored
        )

    @property
    def is_behind(self) -> bool:
        """Whether intents wait for their turn. More of them would only wait longer, and an
        AppWrapper of a higher priority that comes meanwhile could not overtake them."""
        return self._dispatches.beginning > 0

    def submit(self, command: Command) -> None:  # noqa: PLR0912 - one branch per command
        """Start to execute a command; never blocks."""
        match command:
            case WriteStatus():
                is_report = command.urgency is Urgency.REPORT
                self._statuses.submit(command, self._reports if is_report else self._dispatches)
            case WriteQuota():
                self._submit_quota(command)
            case CreateItem():
                self._submit_create(command)
            case WakeAt():
                self._shell.wake_at(command.at)
            case RecordEvent() | RecordQuotaEvent():
                self._record(command)
            case InspectItem():
                self._run(command.uid, partial(self._inspect, command))
            case ReadWarnings():
                self._run(command.uid, partial(self._read_warnings, command), self._reports)
            case ReviewAccess():
                self._dispatches.submit(lambda: self._review(command))
            case DeleteItem():
                self._run(command.uid, partial(self._delete, command))
            case LookForRemains():
                self._run(command.uid, partial(self._look_for_remains, command))
            case ForceDeletion():
                self._run(command.uid, partial(self._force, command))
            case DeleteStray():
                self._run(command.uid, partial(self._delete_stray, command))
            case RequestScaleUp() | WithdrawScaleUp():
                self._submit_scale_up(command)

    def _run(self, uid: str, job: Job, lane: Lane | None = None) -> None:
        """Run a job about one AppWrapper in its turn; an error of ours holds that one."""
        (lane or self._dispatches).submit(partial(held_alone, self._shell.errored, uid, job))

    def _submit_quota(self, command: WriteQuota) -> None:
        quotas = self._shell.quotas
        if quotas is not None:
            self._reports.submit(lambda: quotas.write(command))

    def _submit_scale_up(self, command: RequestScaleUp | WithdrawScaleUp) -> None:
        ups = self._shell.scale_ups
        if ups is None:
            return  # the core has no such setting either
        job = ups.job(command)
        if job is not None:
            self._run(command.uid, job)

    # -- creation ----------------------------------------------------------------------------

    def _submit_create(self, command: CreateItem) -> None:
        seat = self._mirror.get(command.uid)
        if seat is None:
            return
        work, number = seat.workload, command.item
        manifest = seat.manifests.text(number)
        ups, about = self._shell.scale_ups, (command.uid, command.attempt)
        named = ups.named_by_pods(*about, number) if ups is not None else NO_REQUESTS
        body = render(manifest, work, number, command.attempt, command.node_rules, requests=named)
        ref = work.items[number].ref
        self._run(command.uid, partial(self._create, command, ref, body))

    async def _create(self, command: CreateItem, ref: ObjectRef, body: bytes) -> None:
        uid, attempt, item = command.uid, command.attempt, command.item
        options = CreateOptions(
            field_validation="Warn", as_user=self._creator(ref.namespace), metadata_only=True
        )
        try:
            made = await self._client.create_warned(resource_of(ref), ref.namespace, body, options)
        except KubeError as error:
            self._shell.feed(ItemRefused(uid, attempt, item, answer_of(error)))
            return
        object_uid = str(made.obj["metadata"]["uid"])
        warnings = tuple(map(quoted, made.warnings))
        self._shell.feed(ItemCreated(uid, attempt, item, object_uid, warnings))

    async def _inspect(self, command: InspectItem) -> None:
        uid, attempt, item, ref = command.uid, command.attempt, command.item, command.ref
        try:
            holder = await self._holder(ref)
        except KubeError as error:
            self._shell.feed(ItemInspected(uid, attempt, item, None, answer_of(error)))
            return
        self._shell.feed(ItemInspected(uid, attempt, item, holder))

    async def _read_warnings(self, command: ReadWarnings) -> None:
        words, about = await self._warnings.read(command), (command.uid, command.attempt)
        self._shell.feed(WarningsRead(*about, command.item, words, command.pod))

    async def _holder(self, ref: ObjectRef) -> Holder | None:
        live = await self._get_or_none(ref)
        if live is None:
            return None
        metadata, owner = live["metadata"], controller_of(live)
        ours = owner is not None and owner.is_appwrapper
        exists = ours and owner is not None and await self._exists(owner.uid, ref, owner.name)
        return Holder(
            uid=metadata["uid"],
            owner_uid=owner.uid if owner else "",
            owner_is_appwrapper=ours,
            owner_exists=exists,
            owner_name=f"{owner.kind} {ref.namespace}/{owner.name}" if owner else "",
            attempt=attempt_of(live),
            terminating="deletionTimestamp" in metadata,
        )

    async def _exists(self, uid: str, ref: ObjectRef, name: str) -> bool:
        if uid in self._mirror:
            return True
        try:
            live = await self._client.get(APPWRAPPERS, ref.namespace, name, metadata_only=True)
        except ApiError as error:
            if error.not_found:
                return False
            raise
        return bool(live["metadata"]["uid"] == uid)

    async def _review(self, command: ReviewAccess) -> None:
        ref, allowed = command.ref, None  # None: the review failed
        user = self._creator(ref.namespace)
        try:
            allowed = await self._client.self_subject_access_review(
                resource_of(ref), ref.namespace, "create", as_user=user
            )
        except ApiError as error:
            if user and error.forbidden:
                allowed = False  # we may not impersonate the account at all
        except KubeError:
            pass
        reviewed = AccessReviewed(ref.namespace, ref.group, ref.resource, allowed, user)
        self._shell.feed(reviewed)

    # -- deletion ----------------------------------------------------------------------------

    async def _delete(self, command: DeleteItem) -> None:
        uid, attempt, item, ref = command.uid, command.attempt, command.item, command.ref
        try:
            object_uid = command.object_uid or await self._find_own(uid, attempt, ref)
            if object_uid:
                await self._delete_object(ref, object_uid)
        except KubeError as error:
            self._shell.feed(DeletionRefused(uid, attempt, item, answer_of(error)))
            return
        self._shell.feed(ItemDeleted(uid, attempt, item))

    async def _find_own(self, uid: str, attempt: int, ref: ObjectRef) -> str:
        """The uid of the object if it is of this AppWrapper and an attempt up to ``attempt``."""
        live = await self._get_or_none(ref)
        owner = controller_of(live) if live is not None else None
        if live is None or owner is None or owner.uid != uid or attempt_of(live) > attempt:
            return ""
        return str(live["metadata"]["uid"])

    async def _delete_object(self, ref: ObjectRef, object_uid: str) -> ApiError | None:
        """Delete this very object in the foreground. Return the error if it is gone or replaced."""
        options = DeleteOptions(uid=object_uid, propagation="Foreground")
        try:
            await self._client.delete(resource_of(ref), ref.namespace, ref.name, options)
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise
            return error
        return None

    async def _delete_stray(self, command: DeleteStray) -> None:
        try:
            live = await self._get_or_none(command.ref)
            owner = controller_of(live) if live is not None else None
            if owner is not None and owner.uid == command.uid:
                gone = await self._delete_object(command.ref, command.object_uid)
                if gone is not None:  # it existed just now: only the watch can tell
                    answer = answer_of(gone)
                    self._shell.feed(StrayRefused(command.uid, command.object_uid, answer))
        except KubeError as error:
            _log.warning("a stray object cannot be deleted object=%s error=%s", command.ref, error)
            self._shell.feed(StrayRefused(command.uid, command.object_uid, answer_of(error)))

    async def _force(self, command: ForceDeletion) -> None:
        """Delete with a grace period of 0; the next look shows what is left."""
        ref = command.ref
        options = DeleteOptions(uid=command.object_uid, propagation="Background", grace_period_s=0)
        try:
            await self._client.delete(resource_of(ref), ref.namespace, ref.name, options)
        except KubeError as error:
            if not (isinstance(error, ApiError) and (error.not_found or error.conflict)):
                _log.warning("cannot be deleted by force object=%s error=%s", ref, error)
            return
        _log.info("deleted by force object=%s uid=%s", ref, command.object_uid)

    async def _look_for_remains(self, command: LookForRemains) -> None:
        uid, attempt = command.uid, command.attempt
        kinds = {(ref.group, ref.resource): resource_of(ref) for ref in command.inventory}
        kinds[PODS.group, PODS.plural] = PODS
        found: list[Remnant] = []
        try:
            for resource in kinds.values():
                found += await self._remains(resource, command)
        except KubeError as error:
            self._shell.feed(LookFailed(uid, attempt, answer_of(error)))
            return
        self._shell.feed(Remaining(uid, attempt, tuple(found)))

    async def _remains(self, resource: Resource, command: LookForRemains) -> list[Remnant]:
        selection = Selection(
            namespace=command.namespace,
            label_selector=f"{labels.APPWRAPPER_UID}={command.uid}",
            metadata_only=True,
        )
        try:
            items, _ = await self._client.list_all(resource, selection)
        except ApiError as error:
            if error.not_found:
                return []  # the kind itself is gone, and so are its objects
            raise
        return [_remnant(resource, item) for item in items if attempt_of(item) <= command.attempt]

    # -- the rest ----------------------------------------------------------------------------

    def _record(self, command: RecordEvent | RecordQuotaEvent) -> None:
        if isinstance(command, RecordQuotaEvent):
            regarding = _subtree_of(command)
        else:
            regarding = self._regarding(command)
        if regarding is not None:
            self._recorder.record(
                regarding,
                command.reason,
                command.note,
                action=command.action,
                warning=command.warning,
            )

    def _regarding(self, command: RecordEvent) -> Regarding | None:
        """The object that the Event is about: the AppWrapper if it exists, else ``about``."""
        seat, about = self._mirror.get(command.uid), command.about
        if seat is not None:
            work, version = seat.workload, f"{labels.GROUP}/{seat.workload.dialect.value}"
            return Regarding(
                version, labels.KIND, work.namespace, work.name, work.uid, seat.version
            )
        if about is None:
            return None
        ref = about.ref
        return Regarding(ref.api_version, ref.kind, ref.namespace, ref.name, about.uid, "")

    async def _get_or_none(self, ref: ObjectRef) -> Json | None:
        try:
            return await self._client.get(
                resource_of(ref), ref.namespace, ref.name, metadata_only=True
            )
        except ApiError as error:
            if error.not_found:
                return None
            raise


def resource_of(ref: ObjectRef) -> Resource:
    """The served kind of an object of the inventory."""
    return Resource(ref.group, ref.version, ref.resource, ref.kind, bool(ref.namespace))


def _subtree_of(command: RecordQuotaEvent) -> Regarding | None:
    """The QuotaSubtree that the Event is about, if there is one; the log has it in any case."""
    _log.warning("quota reason=%s why=%s", command.reason, command.note)
    one, kind = command.subtree, QUOTA_SUBTREES
    if one is None:
        return None
    return Regarding(kind.api_version, kind.kind, one.namespace, one.name, one.uid)


def _remnant(resource: Resource, obj: Json) -> Remnant:
    metadata = obj["metadata"]
    ref = ObjectRef(
        resource.group,
        resource.version,
        resource.plural,
        resource.kind,
        metadata.get("namespace", ""),
        metadata["name"],
    )
    return Remnant(
        ref,
        metadata["uid"],
        terminating="deletionTimestamp" in metadata,
        finalizers=tuple(metadata.get("finalizers") or ()),
    )
