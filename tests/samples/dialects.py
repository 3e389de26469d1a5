"""An AppWrapper in the other dialect: what it wraps is the same, and pods are inferred."""

from typing import Any

Json = dict[str, Any]


def in_other_dialect(obj: Json) -> Json:
    """Items become components and the other way round; declarations and rules are left out."""
    spec = obj["spec"]
    if "components" in spec:
        version = "v1beta1"
        items = [{"generictemplate": part["template"]} for part in spec["components"]]
        other: Json = {"resources": {"GenericItems": items}}
    else:
        version = "v1beta2"
        items = spec["resources"]["GenericItems"]
        other = {"components": [{"template": item["generictemplate"]} for item in items]}
    group = obj["apiVersion"].partition("/")[0]
    return obj | {"apiVersion": f"{group}/{version}", "spec": other}
