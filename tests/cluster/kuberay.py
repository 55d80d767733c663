"""Fields of ray.io/v1 as KubeRay's published CRDs have them, and checks against a whole CRD.

The outline below was compared field by field with ray.io_rayclusters.yaml (commit 017710c) and
ray.io_rayjobs.yaml (commit 037e91b) in helm-chart/kuberay-operator/crds of
https://github.com/ray-project/kuberay (Apache-2.0): names and types are theirs, what either
requires is required, and what only the newer one has is left out, so that a manifest that fits
is taken by both. They have two megabytes, most of it pods, which are checked against Kubernetes'
own schema; so they are not kept here. With RAYDP_SIM_KUBERAY_CRDS=their folder, tests check the
manifests against the whole of them, and that this outline is no looser.
"""

from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]
OPEN: Schema = {"type": "object"}  # of Kubernetes, or none that our manifests use
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer"}
STRINGS: Schema = {"type": "object", "additionalProperties": TEXT}


def closed(*required: str, **properties: Schema) -> Schema:
    listed = {"required": list(required)} if required else {}
    return {"type": "object", **listed, "properties": properties, "additionalProperties": False}


POD = {"type": "object", "required": ["spec"]}
CLUSTER = closed(
    "headGroupSpec",
    autoscalerOptions=OPEN,
    enableInTreeAutoscaling=FLAG,
    gcsFaultToleranceOptions=OPEN,
    headGroupSpec=closed(
        "rayStartParams",  # of older ones
        "template",
        enableIngress=FLAG,
        headService=OPEN,
        rayStartParams=STRINGS,
        serviceType=TEXT,
        template=POD,
    ),
    headServiceAnnotations=STRINGS,
    rayVersion=TEXT,
    suspend=FLAG,
    workerGroupSpecs={
        "type": "array",
        "items": closed(
            "groupName",
            "maxReplicas",
            "minReplicas",
            "rayStartParams",  # of older ones
            "template",
            groupName=TEXT,
            idleTimeoutSeconds=COUNT,
            maxReplicas=COUNT,
            minReplicas=COUNT,
            numOfHosts=COUNT,
            rayStartParams=STRINGS,
            replicas=COUNT,
            scaleStrategy=closed(workersToDelete={"type": "array", "items": TEXT}),
            template=POD,
        ),
    },
)
JOB = closed(
    activeDeadlineSeconds=COUNT,
    backoffLimit=COUNT,
    clusterSelector=STRINGS,
    entrypoint=TEXT,
    entrypointNumCpus={"type": "number"},
    entrypointNumGpus={"type": "number"},
    entrypointResources=TEXT,
    jobId=TEXT,
    metadata=STRINGS,
    rayClusterSpec=CLUSTER,
    runtimeEnvYAML=TEXT,
    shutdownAfterJobFinishes=FLAG,
    submissionMode=TEXT,
    submitterConfig=closed(backoffLimit=COUNT),
    submitterPodTemplate=POD,
    suspend=FLAG,
    ttlSecondsAfterFinished=COUNT,
)
OUTLINE = {"RayCluster": CLUSTER, "RayJob": JOB}


def published(folder: Path, kind: str) -> Schema:
    """Return what a CRD among the files of a folder says of the `spec` of a kind, in ray.io/v1."""
    for file in sorted(folder.glob("*.yaml")):
        for crd in yaml.safe_load_all(file.read_text()):
            if crd and crd["spec"]["names"]["kind"] == kind:
                (version,) = (v for v in crd["spec"]["versions"] if v["name"] == "v1")
                return version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    raise FileNotFoundError(f"{folder}: no CRD of {kind} is there")


def strict(schema: Schema) -> Schema:
    """Return the JSON schema that refuses fields which a CRD does not have.

    Kubernetes itself drops them, with a warning at most.
    """
    found = {name: part for name, part in schema.items() if not name.startswith("x-kubernetes")}
    if "properties" in schema:
        found["properties"] = {n: strict(part) for n, part in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            found.setdefault("additionalProperties", False)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found[name] = strict(schema[name])
    return found


def looser(ours: Schema, theirs: Schema, place: str = "spec") -> list[str]:
    """Return where an outline takes what a CRD does not."""
    if ours.get("type") != theirs.get("type"):
        return [f"{place}: {ours.get('type')} for {theirs.get('type')}"]
    if "properties" not in ours:
        parts = [n for n in ("items", "additionalProperties") if isinstance(ours.get(n), dict)]
        found = [looser(ours[n], theirs.get(n, {}), f"{place}.{n}") for n in parts]
        return [line for lines in found for line in lines]
    known, wrong = theirs.get("properties", {}), []
    for name, part in ours["properties"].items():
        inside = f"{place}.{name}"
        wrong += looser(part, known[name], inside) if name in known else [f"{inside}: not there"]
    missing = set(theirs.get("required", ())) - set(ours.get("required", ()))
    return wrong + [f"{place}.{name}: not required" for name in sorted(missing)]
