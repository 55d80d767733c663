"""What import-linter's contracts in pyproject.toml cannot say about imports."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import raydp_sim

ROOT = Path(raydp_sim.__file__).parent
CONTRACTS = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
LAYERS = [contract for contract in CONTRACTS if contract["type"] == "layers"]


def modules() -> Iterator[tuple[str, set[str]]]:
    """Yield every module of ours with the full names of what it imports."""
    others = ROOT / "bench" / "peer_scripts"  # which other Pythons run, and nobody imports
    for path in sorted(path for path in ROOT.rglob("*.py") if path.parent != others):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: write imports in full"
                found.add(str(node.module))
        yield path.relative_to(ROOT).with_suffix("").as_posix(), found


def test_ray_is_imported_by_actors_and_run_only() -> None:
    importers = {
        name
        for name, imports in modules()
        if any(found == "ray" or found.startswith("ray.") for found in imports)
    }
    assert importers, "somebody has to"
    assert all(name.startswith("actors/") or name == "run" for name in importers), importers


def test_torch_is_imported_by_models_only_and_never_when_a_module_is_loaded() -> None:
    importers = [
        name for name, imports in modules() if any(f.split(".")[0] == "torch" for f in imports)
    ]
    assert all(name.startswith("models/") for name in importers), importers
    for name in importers:
        for node in ast.parse((ROOT / f"{name}.py").read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            assert not any(found.split(".")[0] == "torch" for found in names), name


def test_events_import_nothing_of_ours_but_their_checks() -> None:
    own = "raydp_sim.privacy.events", "raydp_sim.privacy.checks"
    found = {name: imports for name, imports in modules() if name.startswith("privacy/events/")}
    assert len(found) > 3, "one file per kind of view"
    for name, imports in found.items():
        ours = {each for each in imports if each.startswith("raydp_sim")}
        assert all(each.startswith(own) for each in ours), name
    checks = dict(modules())["privacy/checks"]
    assert not any(each.startswith("raydp_sim") for each in checks)


def test_nobody_takes_anything_from_the_top() -> None:
    """`import raydp_sim` imports run, so a lower room that used it would turn the house around."""
    allowed = ("cli/", "bench/")
    for name, imports in modules():
        if not name.startswith(allowed):
            # `from raydp_sim import engine` names a module below, which is fine.
            assert "raydp_sim.cli" not in imports or name == "__main__", name
            path = ROOT / f"{name}.py"
            assert "import raydp_sim\n" not in path.read_text(encoding="utf-8"), name


def rooms(package: Path) -> set[str]:
    """Return the modules and packages right below a package."""
    inside = {path.stem for path in package.glob("*.py")} - {"__init__"}
    return inside | {path.parent.name for path in package.glob("*/__init__.py")}


def test_every_room_is_in_the_import_contract() -> None:
    """Without import-linter: the list itself is complete, and the linter is asked to insist."""
    listed = {}
    for contract in LAYERS:
        assert contract["exhaustive"] is True and "ignore_imports" not in contract, contract["name"]
        (container,) = contract["containers"]
        listed[container] = {
            name.strip() for layer in contract["layers"] for name in layer.split("|")
        }
    assert listed == {
        "raydp_sim": rooms(ROOT),
        "raydp_sim.privacy": rooms(ROOT / "privacy"),
    }


def test_at_most_seven_loose_modules_stand_at_the_top() -> None:
    loose = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
    assert len(loose) <= 7, loose


def test_wires_and_parts_import_no_kind_of_mechanism() -> None:
    rooms = {"base", "domain", "parts", "wires"}
    for name, imports in modules():
        if name.startswith(("mechanisms/parts/", "mechanisms/wires/")):
            used = {found.split(".")[2] for found in imports if "raydp_sim.mechanisms." in found}
            assert used <= (rooms - {"wires"} if "/parts/" in name else rooms), name


def test_no_import_is_hidden_from_the_contracts() -> None:
    """An import for types alone would let a cycle stand that the linter does not see."""
    for name, _ in modules():
        # The package itself stands above all others, and loads what it offers when asked for it.
        if name == "__init__":
            continue
        assert "TYPE_CHECKING" not in (ROOT / f"{name}.py").read_text(encoding="utf-8"), name
