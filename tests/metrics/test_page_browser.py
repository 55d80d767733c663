"""The page in a real browser, beside a run that is being played.

Waits are for conditions, and generous: the machine may be busy.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from raydp_sim.metrics.page import serving
from raydp_sim.metrics.page.runs import Runs
from raydp_sim.run import Run, prepare, run
from raydp_sim.run.presence import availability
from tests.actors.leveled import analysts
from tests.conftest import scenario
from tests.metrics.pages import ALL, ANALYST, GRANTS, HOSTILE

pytestmark = pytest.mark.timeout(300, method="thread")

PATIENCE = 90_000  # milliseconds
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
PANEL = "[data-panel='what-the-clients-have-spent']"


@pytest.fixture(scope="module")
def chromium():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no chromium to open the page with")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=program, headless=True, args=FLAGS.split(), timeout=PATIENCE
        )
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium) -> Iterator:
    """A browser without any past; what it has to complain of, and any dialog, is a failure."""
    context = chromium.new_context(viewport={"width": 1200, "height": 700})
    context.set_default_timeout(PATIENCE)
    page, said = context.new_page(), []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: said.append(str(error)))
    # That nobody is signed in yet is told to the console, too.
    wrong = lambda each: each.type == "error" and "401" not in each.text  # noqa: E731  # short
    page.on("console", lambda each: said.append(each.text) if wrong(each) else None)
    yield page
    context.close()
    assert said == []


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a folder with a few runs."""
    folder = tmp_path_factory.mktemp("runs")
    run(scenario(rounds=5), out=folder / "first")
    nights = {"kind": "diurnal", "low": 0.2, "high": 1.0, "zones": [0.0, 12.0]}
    data = {"kind": "gaussian", "dimension": 6, "clip": 1.0}
    people = {"clients": 200, "data": data, "availability": nights}
    run(scenario(rounds=8, seed=12, population=people), out=folder / "second")
    run(analysts(rounds=3), out=folder / "levels")
    hostile = scenario(rounds=2).model_copy(update={"description": f"{HOSTILE}<img src=x>"})
    run(hostile, out=folder / HOSTILE)
    with serving.bound("127.0.0.1", 0, "--at") as listening:
        server = serving.Server(listening, Runs(folder), GRANTS, presence=availability)
        thread = server.start()
        yield serving.address("127.0.0.1", listening.getsockname()[1], secure=False)
        server.stop()
        thread.join()


def sign_in(page, address: str, token: str = ALL) -> None:
    page.goto(address)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Open").click()


def rows_of(page, panel: str, least: int) -> str:
    """Wait until a panel has so many points; return its picture."""
    words = "([panel, least]) => Number(document.querySelector(panel)?.dataset.rows) >= least"
    page.wait_for_function(words, arg=[panel, least])
    page.wait_for_selector(f"{panel} canvas")
    found: str = page.evaluate(
        "(panel) => document.querySelector(`${panel} canvas`).toDataURL()", panel
    )
    return found


def served(out: Path, rounds: int) -> tuple[Run, list[str]]:
    tokens = out.parent / "tokens"
    tokens.write_text(ALL)
    metrics = {"serve": True, "tokens": str(tokens)}
    made, pages = prepare(scenario(rounds=rounds, metrics=metrics), out=out), []
    made.watcher.served = lambda served: pages.append(served.page)
    return made, pages


def test_curves_grow_while_a_run_is_played_and_a_reload_keeps_the_place(
    opened, tmp_path: Path
) -> None:
    made, pages = served(tmp_path / "live", rounds=40)
    rows = made.play()
    for _ in range(5):
        next(rows)
    sign_in(opened, pages[0])
    opened.get_by_role("link", name="live", exact=True).click()
    before = rows_of(opened, PANEL, 5)
    assert opened.get_by_role("heading", name="live").is_visible()
    opened.get_by_text("holds for", exact=False).first.wait_for()
    for _ in range(20):
        next(rows)
    after = rows_of(opened, PANEL, 25)
    assert after != before
    opened.get_by_role("link", name="Clients").click()
    sizes = "[data-panel='batch-sizes']"
    rows_of(opened, sizes, 25)
    opened.evaluate("scrollTo(0, 300)")
    place, down = opened.url, opened.evaluate("scrollY")
    assert place.endswith("#/run/live/clients") and down > 0
    opened.reload()
    rows_of(opened, sizes, 25)
    assert opened.url == place
    assert opened.get_by_role("link", name="Clients").get_attribute("aria-current") == "page"
    opened.wait_for_function("(down) => Math.abs(scrollY - down) < 2", arg=down)
    for _ in range(14):
        next(rows)
    rows_of(opened, sizes, 39)
    for _ in rows:
        pass
    # The process that served it ends with the run. The page says that it is over or, where the
    # machine was too busy to tell it in time, that nobody is there any more.
    opened.wait_for_function(
        """() => document.querySelector(".state").textContent.includes("finished")
            || document.getElementById("link").textContent.includes("server")"""
    )


@pytest.mark.parametrize("token", ["a wrong token, long enough", ""])
def test_without_a_right_token_there_is_a_login_and_no_data(opened, address, token: str) -> None:
    answers: list[int] = []
    opened.on("response", lambda each: answers.append(each.status) if "/api/" in each.url else 0)
    opened.goto(f"{address}#/run/first")
    opened.get_by_label("Token").wait_for()
    if token:
        opened.get_by_label("Token").fill(token)
        opened.get_by_role("button", name="Open").click()
        opened.get_by_text("That token is not accepted").wait_for()
    assert set(answers) == {401}
    shown = opened.content()
    assert "first" not in shown and "finished" not in shown and "epsilon" not in shown
    assert opened.evaluate("document.querySelectorAll('canvas').length") == 0


def test_a_run_named_like_a_script_shows_as_text(opened, address) -> None:
    sign_in(opened, address)
    opened.get_by_role("link", name=HOSTILE, exact=True).click()
    rows_of(opened, PANEL, 2)
    assert opened.locator("h1").inner_text() == HOSTILE
    assert f"{HOSTILE}<img src=x>" in opened.locator("main").inner_text()
    assert opened.evaluate("document.querySelectorAll('main script, main img').length") == 0
    opened.get_by_role("link", name="Scenario").click()
    opened.get_by_text("kind: gaussian").wait_for()


def test_who_is_available_is_shown_once(opened, address) -> None:
    sign_in(opened, address)
    opened.get_by_role("link", name="second").wait_for()
    opened.goto(f"{address}#/run/second/clients")
    there = opened.locator("[data-panel='availability']")
    there.wait_for()
    opened.get_by_role("link", name="Results").click()
    opened.locator("[data-panel='how-far-off-the-estimate-is']").wait_for()
    opened.get_by_role("link", name="Clients").click()
    there.first.wait_for()
    assert there.count() == 1


def test_runs_are_found_compared_and_taken_away_by_keyboard(opened, address, tmp_path) -> None:
    sign_in(opened, address)
    opened.get_by_role("link", name="second").wait_for()
    opened.keyboard.press("/")
    opened.keyboard.type("small s")  # of the scenario, and of the name
    opened.get_by_text("2 of 4 runs").or_(opened.get_by_text("3 of 4 runs")).wait_for()
    opened.get_by_label("Search runs").fill("small")
    for name in ("first", "second"):
        opened.get_by_label(f"Choose {name} to compare").focus()
        opened.keyboard.press("Space")
    opened.get_by_role("link", name="Compare").focus()
    opened.keyboard.press("Enter")
    both = "[data-panel='epsilon-so-far,-client-charged-most']"
    rows_of(opened, both, 5)
    legend = opened.locator(f"{both} .legend button")
    assert legend.all_inner_texts() == ["first", "second"]
    legend.first.press("Enter")
    assert legend.first.get_attribute("aria-pressed") == "false"
    opened.locator(f"{both} .chart").focus()
    opened.keyboard.press("ArrowRight")
    assert "release 1" in opened.locator(f"{both} .tip").inner_text()
    for kind, starts in (("PNG", b"\x89PNG"), ("CSV", b'"release","first","second"')):
        with opened.expect_download() as download:
            opened.locator(both).get_by_role("button", name=re.compile(kind)).press("Enter")
        path = tmp_path / kind
        download.value.save_as(path)
        assert path.read_bytes().startswith(starts)


def test_a_token_for_analysts_sees_what_is_released_in_the_dark_on_a_phone(opened, address) -> None:
    opened.set_viewport_size({"width": 390, "height": 800})
    opened.emulate_media(color_scheme="dark")
    sign_in(opened, address, ANALYST)
    opened.get_by_role("link", name="levels").click()
    rows_of(opened, PANEL, 3)
    assert opened.evaluate("document.documentElement.dataset.theme") == "dark"
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.locator("[data-panel='how-far-off-the-estimate-is']").count() == 0
    opened.get_by_role("link", name="Analysts").click()
    rows_of(opened, "[data-panel='analysts-now']", 1)
    assert "analyst-1" not in opened.locator("[data-panel='analysts-now']").inner_text()
    opened.get_by_role("link", name="Data").click()
    take = opened.get_by_role("link", name="Download releases as csv")
    take.wait_for()
    place = take.bounding_box()
    assert place is not None and place["x"] + place["width"] <= 390  # without moving the table
    opened.get_by_role("button", name="Sign out").click()
    opened.get_by_label("Token").wait_for()
