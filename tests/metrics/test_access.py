"""Tokens: what each opens, where they come from, and what is wrong with a file of them."""

import hmac
from pathlib import Path

import pytest

from raydp_sim.errors import InputError
from raydp_sim.metrics.live import access
from raydp_sim.metrics.live.access import admitted, grant, issued

LONG = "a token that is long enough"


def test_every_token_is_compared_whichever_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    compared, comparing = [], hmac.compare_digest

    def counting(one: str, other: str) -> bool:
        compared.append(other)
        return comparing(one, other)

    monkeypatch.setattr(access.hmac, "compare_digest", counting)
    grants = [grant(f"token number {each} of the run") for each in range(3)]
    for header in (None, "", "Bearer", "Bearer token number 0 of the run", "Basic abc", "Bearer é"):
        compared.clear()
        admitted(grants, header)
        assert compared == [each.digest for each in grants], header


def test_no_token_is_kept_but_its_digest() -> None:
    assert LONG not in repr(grant(LONG))


def test_tokens_that_are_made_differ_each_time_and_open_what_they_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(access.VARIABLE, raising=False)
    first, second = issued(None), issued(None)
    assert not set(first.made.values()) & set(second.made.values())
    everything, analyst = (
        admitted(first.grants, f"Bearer {token}") for token in first.made.values()
    )
    assert everything is not None and analyst is not None
    assert everything.opens("ledger", None) and everything.opens("simulation-only", None)
    assert analyst.opens("released", None)
    assert not analyst.opens("ledger", None) and not analyst.opens("simulation-only", None)


def test_the_environment_may_have_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(access.VARIABLE, LONG)
    found = issued(None)
    assert not found.made and admitted(found.grants, f"Bearer {LONG}") is not None


def test_a_file_may_have_several(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text(
        f"- {{token: '{LONG} 1', scopes: [released, ledger]}}\n"
        f"- {{token: '{LONG} 2', scopes: [released], reader: alice}}\n"
    )
    first, second = issued(file).grants
    assert first.opens("ledger", None) and not first.opens("simulation-only", None)
    assert second.opens("released", "alice") and not second.opens("released", None)
    # What one of several readers sees is not for whoever may see what is released to all.
    assert not first.opens("released", "alice") and grant(LONG).opens("released", "alice")
    file.write_text(f"{LONG}\n")
    assert issued(file).grants == [grant(LONG)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there are no tokens in it"),
        ("[]", "there are no tokens in it"),
        ("short", "a token has fewer than 16 characters"),
        ("- [a]", "an entry is not a mapping of token, scopes and reader"),
        (f"- {{token: {LONG}, scope: [released]}}", "an entry is not a mapping"),
        (f"- {{token: {LONG}, scopes: [all]}}", "choose among released, simulation-only, ledger"),
        (f"- {{token: {LONG}, reader: 3}}", "it must be the name of a reader"),
        ("{", "it is not YAML"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        issued(file)
    assert str(file)[:60] in str(caught.value) and LONG not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"metrics.tokens is .*No such file"):
        issued(tmp_path / "none")
