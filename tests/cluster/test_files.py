"""The files of cluster/: `ray up`, KubeRay, Slurm and the image, as far as no cloud is needed."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import ray
import yaml
from ray.autoscaler._private.util import prepare_config

from tests.cluster import kuberay

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "cluster"
UP = ("aws", "gcp", "on-premise")


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


def check_spec(spec, schema):
    """It fits, and what is not in the schema or of another type would be noticed."""
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(spec, schema)
    cluster = spec.get("rayClusterSpec", spec)
    for place, name, value in (
        (spec, "replicas", 3),
        (spec, "suspend", "no"),
        (cluster["headGroupSpec"], "rayStartParameters", {}),
        (cluster["workerGroupSpecs"][0], "replicas", "2"),
        (cluster["workerGroupSpecs"][0]["rayStartParams"], "num-cpus", 4),
    ):
        before = dict(place)
        place[name] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spec, schema)
        place.clear()
        place.update(before)
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        template = group.pop("template")
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spec, schema)
        group["template"] = template


@pytest.mark.parametrize("name", ["raycluster", "rayjob"])
def test_manifests_have_the_fields_of_kuberays_crds(name):
    *_, made = documents(f"{name}.yaml")
    assert made["apiVersion"] == "ray.io/v1"
    spec = made["spec"]
    assert spec.get("rayClusterSpec", spec)["rayVersion"] == ray.__version__
    check_spec(spec, kuberay.OUTLINE[made["kind"]])


@pytest.mark.parametrize("name", ["raycluster", "rayjob"])
def test_manifests_fit_the_whole_crds(name):
    folder = os.environ.get("RAYDP_SIM_KUBERAY_CRDS")
    if not folder:
        pytest.skip("RAYDP_SIM_KUBERAY_CRDS: helm-chart/kuberay-operator/crds of a KubeRay")
    *_, made = documents(f"{name}.yaml")
    theirs = kuberay.published(Path(folder), made["kind"])
    check_spec(made["spec"], kuberay.strict(theirs))
    assert kuberay.looser(kuberay.OUTLINE[made["kind"]], theirs) == []


def as_crd(kind, spec):
    """A CRD that has the outline's fields, and leaves out what a CRD does not say."""
    text = json.dumps(spec).replace(', "additionalProperties": false', "")
    other = {"name": "v1alpha1", "schema": {"openAPIV3Schema": {"properties": {"spec": {}}}}}
    schema = {"openAPIV3Schema": {"properties": {"spec": json.loads(text)}}}
    versions = [other, {"name": "v1", "schema": schema}]
    return {"spec": {"names": {"kind": kind}, "versions": versions}}


def test_a_crd_is_found_and_taken_at_its_word(tmp_path):
    for kind, outline in kuberay.OUTLINE.items():
        (tmp_path / f"{kind}.yaml").write_text(yaml.safe_dump(as_crd(kind, outline)))
    *_, made = documents("rayjob.yaml")
    theirs = kuberay.published(tmp_path, "RayJob")
    check_spec(made["spec"], kuberay.strict(theirs))
    assert kuberay.looser(kuberay.JOB, theirs) == []
    cluster = theirs["properties"]["rayClusterSpec"]
    cluster["required"].append("rayVersion")
    head = cluster["properties"]["headGroupSpec"]["properties"]
    head["rayStartParams"]["additionalProperties"]["type"] = "integer"
    del head["serviceType"]
    assert kuberay.looser(kuberay.JOB, theirs) == [
        "spec.rayClusterSpec.headGroupSpec.rayStartParams.additionalProperties: string for integer",
        "spec.rayClusterSpec.headGroupSpec.serviceType: not there",
        "spec.rayClusterSpec.rayVersion: not required",
    ]
    with pytest.raises(FileNotFoundError, match="no CRD of RayService"):
        kuberay.published(tmp_path, "RayService")


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


def test_the_page_says_what_the_pods_take():
    *_, made = documents("raycluster.yaml")
    cpus = memory = 0
    for group in (made["spec"]["headGroupSpec"], *made["spec"]["workerGroupSpecs"]):
        for container in group["template"]["spec"]["containers"]:
            asked = container["resources"]["requests"]
            assert asked == container["resources"]["limits"]
            cpus += int(asked["cpu"]) * group.get("replicas", 1)
            memory += int(asked["memory"].removesuffix("Gi")) * group.get("replicas", 1)
    assert f"{cpus} CPUs and {memory} GiB" in (FOLDER / "README.md").read_text()


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
