"""What import-linter's contracts in pyproject.toml cannot say about imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

import raydp_sim

ROOT = Path(raydp_sim.__file__).parent


def modules() -> Iterator[tuple[str, set[str]]]:
    """Yield every module of ours with the full names of what it imports."""
    for path in sorted(ROOT.rglob("*.py")):
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


def test_torch_is_imported_by_nobody() -> None:
    assert not [name for name, imports in modules() if any("torch" in found for found in imports)]


def test_events_import_nothing_of_ours_but_their_checks() -> None:
    imports = dict(modules())
    for name, allowed in (("events", {"raydp_sim.privacy.checks"}), ("checks", set())):
        ours = {found for found in imports[f"privacy/{name}"] if found.startswith("raydp_sim")}
        assert ours <= allowed


def test_nobody_takes_anything_from_the_top() -> None:
    """`import raydp_sim` imports run, so a lower room that used it would turn the house around."""
    allowed = ("cli/", "bench/")
    for name, imports in modules():
        if not name.startswith(allowed):
            # `from raydp_sim import engine` names a module below, which is fine.
            assert "raydp_sim.cli" not in imports or name == "__main__", name
            path = ROOT / f"{name}.py"
            assert "import raydp_sim\n" not in path.read_text(encoding="utf-8"), name
