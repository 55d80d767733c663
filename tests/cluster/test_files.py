"""The files of cluster/: `ray up`, KubeRay, Slurm and the image, as far as no cloud is needed."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import ray
import yaml
from ray.autoscaler._private.util import prepare_config

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "cluster"
UP = ("aws", "gcp", "on-premise")

# Fields of ray.io/v1 as KubeRay's API defines them (apis/ray/v1), of which a CRD is generated:
# those that our manifests may use, their types, and which are required. The CRD itself is over a
# megabyte, most of it the pod template, which is checked against Kubernetes' own schema.
TEMPLATE = {"type": "object", "required": ["spec"]}
STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
COUNT = {"type": "integer", "minimum": 0}


def closed(required, **properties):
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": False,
    }


CLUSTER = closed(
    ["headGroupSpec"],
    suspend={"type": "boolean"},
    managedBy={"type": "string"},
    autoscalerOptions={"type": "object"},
    headServiceAnnotations=STRINGS,
    enableInTreeAutoscaling={"type": "boolean"},
    gcsFaultToleranceOptions={"type": "object"},
    headGroupSpec=closed(
        ["template", "rayStartParams"],
        template=TEMPLATE,
        headService={"type": "object"},
        enableIngress={"type": "boolean"},
        rayStartParams=STRINGS,
        serviceType={"enum": ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]},
    ),
    rayVersion={"type": "string"},
    workerGroupSpecs={
        "type": "array",
        "items": closed(
            ["groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"],
            suspend={"type": "boolean"},
            groupName={"type": "string"},
            replicas=COUNT,
            minReplicas=COUNT,
            maxReplicas=COUNT,
            idleTimeoutSeconds=COUNT,
            rayStartParams=STRINGS,
            template=TEMPLATE,
            scaleStrategy={"type": "object"},
            numOfHosts=COUNT,
        ),
    },
)
JOB = closed(
    [],
    activeDeadlineSeconds=COUNT,
    backoffLimit=COUNT,
    rayClusterSpec=CLUSTER,
    submitterPodTemplate=TEMPLATE,
    metadata=STRINGS,
    clusterSelector=STRINGS,
    submitterConfig={"type": "object"},
    managedBy={"type": "string"},
    entrypoint={"type": "string"},
    runtimeEnvYAML={"type": "string"},
    jobId={"type": "string"},
    submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode"]},
    entrypointResources={"type": "string"},
    entrypointNumCpus={"type": "number"},
    entrypointNumGpus={"type": "number"},
    ttlSecondsAfterFinished=COUNT,
    shutdownAfterJobFinishes={"type": "boolean"},
    suspend={"type": "boolean"},
)


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


@pytest.mark.parametrize("name", UP)
def test_ray_takes_the_files_of_ray_up(name):
    """Against ray-schema.json of the installed Ray, and with its defaults filled in."""
    (config,) = documents(f"{name}.yaml")
    schema = Path(ray.__file__).parent / "autoscaler" / "ray-schema.json"
    pytest.importorskip("jsonschema").validate(config, json.loads(schema.read_text()))
    filled = prepare_config(config)
    types = filled["available_node_types"]
    assert filled["head_node_type"] in types
    assert sum(each.get("min_workers", 0) for each in types.values()) == filled["max_workers"] == 2


@pytest.mark.parametrize("name", UP)
def test_every_node_gets_the_same_wheel_and_can_play_a_job(name):
    (config,) = documents(f"{name}.yaml")
    mounts = config["file_mounts"]
    assert (FOLDER / mounts["~/raydp-sim-constraints.txt"]).resolve() == ROOT / "constraints.txt"
    assert (FOLDER / mounts["~/raydp-sim-dist"]).resolve() == ROOT / "dist"
    assert any("raydp_sim-*.whl)[cluster]" in line for line in config["setup_commands"])
    head, worker = (config[f"{kind}_start_ray_commands"][-1] for kind in ("head", "worker"))
    for line in (head, worker, *config["setup_commands"]):
        subprocess.run(["bash", "-n", "-c", line], check=True)
    assert "PATH=$HOME/raydp-sim-env/bin:" in head and "PATH=$HOME/raydp-sim-env/bin:" in worker
    # Nothing but a tunnel reaches what takes in jobs.
    assert "--dashboard-host=127.0.0.1" in head


def test_the_makefile_makes_what_is_copied():
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^dist: .*\n(\t.*\n)*\t.*pip wheel .*-w dist", makefile, re.M)


@pytest.mark.parametrize("name", ["raycluster", "rayjob"])
def test_manifests_have_the_fields_of_kuberays_api(name):
    jsonschema = pytest.importorskip("jsonschema")
    *_, made = documents(f"{name}.yaml")
    assert made["apiVersion"] == "ray.io/v1"
    schema = {"RayCluster": CLUSTER, "RayJob": JOB}[made["kind"]]
    jsonschema.validate(made["spec"], schema)
    spec = made["spec"]["rayClusterSpec"] if made["kind"] == "RayJob" else made["spec"]
    assert spec["rayVersion"] == ray.__version__
    wrong = {**made["spec"], "replicas": 3}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


@pytest.mark.parametrize("name", ["raycluster", "rayjob"])
def test_pods_are_pods_of_kubernetes(name):
    kubernetes = pytest.importorskip("kubernetes_validate", reason="it has Kubernetes' schemas")
    first, *_, last = [*documents(f"{name}.yaml")] * 2
    version = kubernetes.latest_version()
    if first["kind"] == "PersistentVolumeClaim":
        kubernetes.validate(first, version, strict=True)
    spec = last["spec"]["rayClusterSpec"] if last["kind"] == "RayJob" else last["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
        kubernetes.validate({**pod, "spec": group["template"]["spec"]}, version, strict=True)
        pod["spec"] = {**group["template"]["spec"], "container": []}
        with pytest.raises(kubernetes.ValidationError):
            kubernetes.validate(pod, version, strict=True)


def test_both_manifests_describe_one_cluster():
    *_, cluster = documents("raycluster.yaml")
    *_, job = documents("rayjob.yaml")
    assert job["spec"]["rayClusterSpec"] == cluster["spec"]
    command = shlex.split(job["spec"]["entrypoint"])
    assert command[:2] == ["sh", "-c"]
    subprocess.run(["sh", "-n", "-c", command[2]], check=True)


def test_the_image_copies_what_there_is():
    text = (FOLDER / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (\S+) ", text, re.M)
    assert copied == ["dist/", "constraints.txt"]
    assert "[cluster]" in text and re.search(r"^USER ray$", text, re.M)


def test_the_page_has_a_section_for_every_file():
    page = (FOLDER / "README.md").read_text()
    for path in FOLDER.iterdir():
        if path.name != "README.md":
            assert f"cluster/{path.name}" in page, path.name
