"""The QuotaSubtree on the wire, as MCAD has it (facts: MCAD, section 5.1), and what we answer.

Like those of the AppWrapper (models.py) these models are the source of the CRD's schema. Nothing is
required of a spec: what is wrong with a tree shows only beside its other objects, so all of it is
told in conditions.
"""

from typing import Annotated

from pydantic import Field, WithJsonSchema

from mcad.api.models import (
    CONDITION_MESSAGE,
    CONDITION_REASON,
    CONDITION_STATUS,
    CONDITION_TIME,
    CONDITION_TYPE,
    OBSERVED_GENERATION,
    Int,
    Long,
    Quantities,
    Time,
    Wire,
)

IGNORED = "Accepted and ignored, as MCAD did."

Amounts = dict[str, Annotated[str, WithJsonSchema({"type": "string"})]]
"""Canonical quantities, by resource."""


class Quotas(Wire):
    """The share of one node."""

    requests: Quantities | None = Field(
        default=None, description="Its share of each resource; what is not named is 0."
    )
    hard_limit: bool | None = Field(
        default=None,
        alias="hardLimit",
        description="True if nobody below may borrow beyond its share.",
    )
    disabled: bool | None = Field(default=None, description=IGNORED)


class QuotaChildSpec(Wire):
    """One node of the tree."""

    name: str | None = Field(
        default=None, description="Its name, unique in the tree; AppWrappers name leaves by it."
    )
    quotas: Quotas | None = None
    namespace: str | None = Field(default=None, description=IGNORED)
    path: str | None = Field(default=None, description=IGNORED)
    share: Int | None = Field(default=None, description=IGNORED)


class QuotaSubtreeSpec(Wire):
    """Nodes that hang under one parent. The label tree says of which tree."""

    parent: str | None = Field(
        default=None, description="The node that the children hang under; empty for the root."
    )
    parent_namespace: str | None = Field(default=None, alias="parentNamespace", description=IGNORED)
    children: list[QuotaChildSpec] | None = Field(
        default=None, description="The nodes, each with its share."
    )


class QuotaChildStatus(Wire):
    """What one node has, and what becomes of it."""

    name: str = Field(description="The node's name.")
    nominal: Amounts | None = Field(default=None, description="Its share.")
    allocated: Amounts | None = Field(default=None, description="What is in use below it.")
    borrowed: Amounts | None = Field(
        default=None, description="What of that exceeds its own share; no zeros."
    )
    lent: Amounts | None = Field(
        default=None, description="What others under the same parent use of its share."
    )
    waiting: Amounts | None = Field(
        default=None, description="What AppWrappers in line demand below it."
    )


class QuotaCondition(Wire):
    """One condition, in the form of metav1.Condition."""

    type: str = Field(description=CONDITION_TYPE)
    status: str = Field(description=CONDITION_STATUS)
    reason: str | None = Field(default=None, description=CONDITION_REASON)
    message: str | None = Field(default=None, description=CONDITION_MESSAGE)
    last_transition_time: Time | None = Field(
        default=None, alias="lastTransitionTime", description=CONDITION_TIME
    )


class QuotaSubtreeStatus(Wire):
    """What the dispatcher answers."""

    observed_generation: Long | None = Field(
        default=None, alias="observedGeneration", description=OBSERVED_GENERATION
    )
    conditions: list[QuotaCondition] | None = Field(
        default=None, description="Whether all of its nodes are in force."
    )
    children: list[QuotaChildStatus] | None = Field(
        default=None, description="What each of its nodes has, uses, borrows and lends."
    )
