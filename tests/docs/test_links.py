"""Links between the pages lead somewhere, and every page is found."""

import os
import re

import pytest

from raydp_sim.cli.reference import anchor
from tests.docs.pages import PAGES, ROOT, prose

LINK = re.compile(r"\]\(([^)\s]+)\)")
KNOWN = {"download.pytorch.org", "flower.ai", "github.com", "opacus.ai", "ray-project.github.io"}


def anchors(page: str) -> set[str]:
    return {anchor(title) for title in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    links = [link for link in LINK.findall(prose(page)) if not link.startswith("https://")]
    for link in links:
        path, _, place = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if place:
            assert place in anchors(str(target.resolve().relative_to(ROOT))), link


def test_the_index_has_every_page() -> None:
    links = set(LINK.findall(PAGES["docs/index.md"]))
    pages = {os.path.relpath(name, "docs") for name in PAGES}
    assert pages - {"../README.md", "index.md"} <= links
    assert "docs/index.md" in LINK.findall(PAGES["README.md"])


def test_only_public_sites_are_named() -> None:
    """Projects that we are compared with; where ordinary machines find PyTorch and KubeRay."""
    text = "\n".join(PAGES.values())
    assert set(re.findall(r"https?://([\w.-]+)", text)) <= KNOWN
    assert not re.search(r"/(?:work|home|root|tmp)/", text)
