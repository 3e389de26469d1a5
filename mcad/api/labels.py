"""The label keys that the dispatcher reads or writes, and the values that it sets."""

import hashlib
import re

from mcad.api.wire import Json, as_map, as_text

GROUP = "workload.codeflare.dev"
KIND = "AppWrapper"
PREFIX = f"appwrapper.{GROUP}/"
"""Before the name of an AppWrapper, as kubectl prints it."""

VERSIONS = ("v1beta1", "v1beta2")
"""The versions that are served."""

VISIBILITY_GROUP = f"visibility.{GROUP}"
"""The API group that the dispatcher serves itself (mcad/controller/visibility)."""

QUOTA_GROUP = "quota.codeflare.dev"
QUOTA_VERSION = "v1alpha1"
QUOTA_KIND = "QuotaSubtree"
PAUSE_VERSION = "v1alpha1"
PAUSE_KIND = "DispatchPause"

TREE = "tree"
"""The label of a QuotaSubtree that names its tree. On an AppWrapper the name of a tree is a key."""

APPWRAPPER = f"{GROUP}/appwrapper"
APPWRAPPER_UID = f"{GROUP}/appwrapper-uid"
ATTEMPT = f"{GROUP}/attempt"
ITEM = f"{GROUP}/item"
PODSET = f"{GROUP}/podset"
OURS = (APPWRAPPER, APPWRAPPER_UID, ATTEMPT, ITEM, PODSET)
"""Labels of created objects; a manifest with another value for one of them is refused."""

SCALE_UP_UID = f"{GROUP}/scale-up-uid"
SCALE_UP_ATTEMPT = f"{GROUP}/scale-up-attempt"
SCALE_UP_CONTENT = f"{GROUP}/scale-up-content"
SCALE_UP_OBJECTS = f"{GROUP}/scale-up-objects"
SCALE_UP_GROUP = f"{GROUP}/scale-up-group"
"""Labels of a scale-up request and of all that is made for it: the AppWrapper and the attempt that
ask, a hash of what is asked, of how many objects the request consists, and the pods that have to be
in one topology domain."""

HUB = f"{GROUP}/hub"
GRANTED = f"{GROUP}/granted"
"""The label of a copy, which names its hub, and the annotation with the uid of the one copy that
the hub lets start: what a backup tool or a user creates anew has another uid."""

FINALIZER = f"{GROUP}/finalizer"
"""The finalizer that the upstream controller sets on every AppWrapper that it starts."""

LEGACY_APPWRAPPER = "appwrapper.mcad.ibm.com"
LEGACY_RESOURCE = "resourceName"
"""MCAD's labels, kept for selectors of users; the dispatcher does not read them."""

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
"""Kueue's label for the queue of an AppWrapper: shown, and with quota the leaf in the tree of the
setting ``queueNameTree``. The dispatcher has one queue."""

PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
"""Kueue's label for the WorkloadPriorityClass of an AppWrapper."""

LEASE_NAMESPACE = "kube-system"
LEASE_NAME = "mcad-dispatcher"
"""The Lease of the leading dispatcher: one per cluster, wherever the dispatcher is installed."""

CONTROLLERS = frozenset({"workload.codeflare.dev/appwrapper-controller"})
"""Values of ``spec.managedBy`` that mean this dispatcher."""

MAX_VALUE = 63
_DIGEST = 10
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)

MAX_ATTEMPT = 10**9 - 1
"""The largest number of an attempt: the label has nine digits for it."""


_PREFIX = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"((?=.{{1,253}}/){_PREFIX}/)?{_WORD}", re.ASCII)
_VALUE = re.compile(rf"({_WORD})?", re.ASCII)


def key_fault(text: str) -> str:
    """Why a text is not a valid key of a label, annotation or taint, "" if it is one."""
    return "" if _KEY.fullmatch(text) else f"{text!r} is not a key like team or example.com/team"


def value_fault(text: str) -> str:
    """Why a text is not a valid value of a label, "" if it is one."""
    if _VALUE.fullmatch(text):
        return ""
    return f"{text!r} is not a valid label value: use at most 63 letters, digits, '-', '_' and '.'"


def short_hash(text: str) -> str:
    """A hash of ten hexadecimal digits, for names and labels."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def label_value(name: str) -> str:
    """A name as a label value: longer ones are cut and end in a hash, so they stay distinct."""
    if len(name) <= MAX_VALUE:
        return name
    head = name[: MAX_VALUE - _DIGEST - 1].rstrip("-_.")
    return f"{head}-{short_hash(name)}"


def podset_value(item: int, index: int) -> str:
    """The value of the podset label: ``<item>.<index>``."""
    return f"{item}.{index}"


def parse_number(value: Json, default: int) -> int:
    """The whole number in a label value; the default if it is not one."""
    text = as_text(value)
    return int(text) if _NUMBER.fullmatch(text) else default


def parse_podset(value: Json) -> tuple[int, int]:
    """(item, index) of a podset label; (-1, -1) if it is malformed."""
    item, dot, index = as_text(value).partition(".")
    pair = parse_number(item, -1), parse_number(index, -1)
    return pair if dot and min(pair) >= 0 else (-1, -1)


def labels_of(obj: Json) -> dict[str, Json]:
    """``metadata.labels`` of any object."""
    return as_map(as_map(as_map(obj).get("metadata")).get("labels"))
