"""All events that the core receives. A closed union: ``Event`` at the end lists it.

Observations only change state; decisions are taken on ``Decide`` alone (core rule R5). The outcome
of a command comes back as an event with the facts of the server's answer; the core decides their
meaning (protocol P3a).
"""

from mcad.core.state.answer import Answer
from mcad.core.state.dispatch_pause import DispatchPause
from mcad.core.state.internal_error import InternalError
from mcad.core.state.model import Child, Node, Pod, Remnant, Workload
from mcad.core.state.quota_records import QuotaSubtree, QuotaView
from mcad.core.state.records import Struct
from mcad.core.state.scale_up import ScaleUpState
from mcad.core.state.units import Instant


class Leading(Struct, frozen=True):
    """This process leads by a lease of this epoch; before the first Decide, if at all (P12)."""

    epoch: int


class AppWrapperSeen(Struct, frozen=True):
    """An AppWrapper appeared or changed; ``listed`` if it came from a list rather than a watch.

    ``rewound`` says that it is older than its known state: the server was restored from a backup,
    and our later writes may be lost.
    """

    workload: Workload
    listed: bool = False
    rewound: bool = False


class AppWrapperGone(Struct, frozen=True):
    """The AppWrapper object no longer exists."""

    uid: str


class NodeSeen(Struct, frozen=True):
    """A node appeared or changed."""

    node: Node


class NodeGone(Struct, frozen=True):
    """A node no longer exists; pods that are still bound to it are assumed again (C6)."""

    name: str


class QuotaSeen(Struct, frozen=True):
    """A QuotaSubtree appeared or changed; ``shown`` is its status, None without one."""

    subtree: QuotaSubtree
    shown: QuotaView | None = None


class QuotaGone(Struct, frozen=True):
    """A QuotaSubtree no longer exists; charges to its nodes count at the root (R11)."""

    uid: str


class PauseSeen(Struct, frozen=True):
    """A DispatchPause appeared or changed."""

    pause: DispatchPause


class PauseGone(Struct, frozen=True):
    """A DispatchPause no longer exists; the AppWrappers that it held queue again."""

    uid: str


class PodSeen(Struct, frozen=True):
    """A pod appeared or changed."""

    pod: Pod


class PodGone(Struct, frozen=True):
    """A pod no longer exists."""

    uid: str


class ChildSeen(Struct, frozen=True):
    """A wrapped object of ours appeared or changed."""

    child: Child


class ChildGone(Struct, frozen=True):
    """A wrapped object of ours no longer exists."""

    uid: str


class KindWatched(Struct, frozen=True):
    """Whether the objects of a wrapped kind can be seen; if not, ``message`` says why (P11).

    AppWrappers that contain an unwatched kind are not dispatched: their names could be taken and
    their remains could not be found.
    """

    group: str
    resource: str
    watched: bool
    message: str = ""


class Decide(Struct, frozen=True):
    """The inbox is drained and every kind is synced: work on the queue and the timers.

    ``may_dispatch`` is False while a stream that capacity depends on is silent (protocol P14), and
    while many intents wait to be written: begun attempts go on, no new one is dispatched.
    """

    may_dispatch: bool = True


class Errored(Struct, frozen=True):
    """The controller, or its audit of the books, had an error of its own about an AppWrapper."""

    uid: str
    error: InternalError


class _OfWrite(Struct, frozen=True):
    """About a write of a status."""

    uid: str
    serial: int


class StatusWritten(_OfWrite, frozen=True):
    """The status write numbered ``serial`` is persisted."""


class StatusRefused(_OfWrite, frozen=True):
    """The status write numbered ``serial`` is not persisted, or its outcome is unknown."""

    answer: Answer


class QuotaWritten(_OfWrite, frozen=True):
    """The status of a QuotaSubtree shows the content of WriteQuota ``serial``."""


class QuotaRefused(_OfWrite, frozen=True):
    """The status of a QuotaSubtree was not written, or the outcome is unknown."""

    answer: Answer


class _OfAttempt(Struct, frozen=True):
    """About an attempt of an AppWrapper."""

    uid: str
    attempt: int


class _OfItem(_OfAttempt, frozen=True):
    """About an item of an attempt."""

    item: int


class ItemCreated(_OfItem, frozen=True):
    """The item was created by this very request.

    ``warnings`` are the API server's warnings: unknown fields, for example.
    """

    object_uid: str
    warnings: tuple[str, ...] = ()


class ItemRefused(_OfItem, frozen=True):
    """The item was not created, or the outcome is unknown."""

    answer: Answer


class Holder(Struct, frozen=True):
    """The object that holds an item's name, by live GET.

    ``owner_uid`` is its controller owner ("" if none); ``owner_is_appwrapper`` tells the kind of
    that owner and ``owner_exists`` whether that AppWrapper exists by live GET.
    """

    uid: str
    owner_uid: str
    owner_is_appwrapper: bool
    owner_exists: bool
    owner_name: str
    attempt: int
    terminating: bool


class ItemInspected(_OfItem, frozen=True):
    """The holder of the item's name, None without a holder; ``answer`` if the read failed."""

    holder: Holder | None
    answer: Answer | None = None


class WarningsRead(_OfItem, frozen=True):
    """Why pods of an item are not created, why a bare Pod was removed, or why ``pod`` (a uid) is
    not started, in the words of the latest Event about that; "" if there is none, or it could not
    be read."""

    words: str
    pod: str = ""


class AccessReviewed(Struct, frozen=True):
    """Whether the creator of the items has the right; None if the review failed.

    ``user`` is the impersonated creator, "" without impersonation.
    """

    namespace: str
    group: str
    resource: str
    allowed: bool | None
    user: str = ""


class ItemDeleted(_OfItem, frozen=True):
    """The server accepted the deletion of an inventoried item, or it was gone already."""


class DeletionRefused(_OfItem, frozen=True):
    """The deletion of an item failed or its outcome is unknown."""

    answer: Answer


class StrayRefused(Struct, frozen=True):
    """The deletion of a stray object failed or its outcome is unknown."""

    uid: str
    object_uid: str
    answer: Answer


class Remaining(_OfAttempt, frozen=True):
    """A live list found these objects and pods of attempts up to ``attempt`` (protocol P4 c)."""

    objects: tuple[Remnant, ...]


class LookFailed(_OfAttempt, frozen=True):
    """The live list of protocol P4 c could not be made."""

    answer: Answer


class ScaleUpServed(Struct, frozen=True):
    """Whether the cluster serves a kind by which an autoscaler can be asked; until this says other,
    it does."""

    served: bool


class ScaleUpSeen(_OfAttempt, frozen=True):
    """The scale-up request of an attempt, as its object shows it; also of a request that no
    AppWrapper waits for any more.

    ``message`` has the autoscaler's words, ``since`` is when the object was created, ``object``
    names it: "ProvisioningRequest default/grow-1". ``until_bound``: the pods of the attempt name
    the object, so that it has to stay until they are bound; else it goes at the dispatch.
    """

    state: ScaleUpState
    message: str
    since: Instant
    object: str
    until_bound: bool = False


class ScaleUpGone(_OfAttempt, frozen=True):
    """Nothing is left of the scale-up request of an attempt."""


class ScaleUpRefused(_OfAttempt, frozen=True):
    """The scale-up request was not created, or the outcome is unknown."""

    answer: Answer


Event = (
    Leading
    | AppWrapperSeen
    | AppWrapperGone
    | NodeSeen
    | NodeGone
    | QuotaSeen
    | QuotaGone
    | PauseSeen
    | PauseGone
    | PodSeen
    | PodGone
    | ChildSeen
    | ChildGone
    | KindWatched
    | Decide
    | Errored
    | StatusWritten
    | StatusRefused
    | QuotaWritten
    | QuotaRefused
    | ItemCreated
    | ItemRefused
    | ItemInspected
    | WarningsRead
    | AccessReviewed
    | ItemDeleted
    | DeletionRefused
    | StrayRefused
    | Remaining
    | LookFailed
    | ScaleUpServed
    | ScaleUpSeen
    | ScaleUpGone
    | ScaleUpRefused
)
