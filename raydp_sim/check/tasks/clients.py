"""What clients compute: values of the domain, whoever shares the call, and truths that add up."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from raydp_sim.check.finding import Failed, NotChecked, check, plural, require
from raydp_sim.check.tasks.subject import Made, TaskSubject
from raydp_sim.errors import InputError
from raydp_sim.mechanisms.randomizer import Randomizer
from raydp_sim.tasks.base import Answer, Arrays


@check("values lie in the domain")
def values(subject: TaskSubject) -> str:
    """Every value is finite, of the mechanism's width and in its domain, or clipped as allowed."""
    try:
        made = subject.releases
    except InputError as refused:
        raise Failed(str(refused)) from None
    except Exception:
        raise NotChecked("no release could be made, see above") from None
    count = sum(each.truth.clipped.values for each in made)
    clipped = sum(each.truth.clipped.rows for each in made)
    cut = f", {clipped} of them clipped as the scenario says" if clipped else ""
    return f"{plural(count, 'value')}{cut}"


@check("values do not depend on the block")
def blocks(subject: TaskSubject) -> str:
    """Values, client state and `seen` of all together are those of blocks of 1, 7 and the rest."""
    for made in subject.made:
        count = made.formed.reports
        whole = _answers(subject, made, [slice(0, count)])
        cuts = (0, min(1, count), min(8, count), count)
        parts = _answers(subject, made, [slice(*pair) for pair in pairwise(cuts)])
        for name, one in whole.items():
            same = _same(one, parts[name])
            require(same, f"{name} of clients: they depend on who shares the call of `client`")
    return "blocks of 1, 7 and the rest"


def _answers(subject: TaskSubject, made: Made, blocks: list[slice]) -> dict[str, Any]:
    """Let blocks of clients answer an ask, each from the state that its clients begin with."""
    answers = [_answer(subject, made, block) for block in blocks]
    owners = [
        np.arange(len(answer.values)) if answer.owner is None else np.asarray(answer.owner)
        for answer, _ in answers
    ]
    found: dict[str, Any] = {
        "the values": np.concatenate([np.asarray(answer.values) for answer, _ in answers]),
        "the owners": np.concatenate(
            [block.start + own for block, own in zip(blocks, owners, strict=True)]
        ),
    }
    seen = [answer.seen for answer, _ in answers if answer.seen is not None]
    if seen:
        found["what was `seen`"] = np.sum(seen, axis=0)
    for name in answers[0][1]:
        found[f"the first state {name!r}"] = np.concatenate([memory[name] for _, memory in answers])
        after = [answer.memory.get(name) for answer, _ in answers]
        given = all(column is not None for column in after)
        require(given, f"`client` returns no memory {name!r}; give every column back")
        found[f"the state {name!r}"] = np.concatenate([np.asarray(column) for column in after])
    return found


def _answer(subject: TaskSubject, made: Made, block: slice) -> tuple[Answer, Arrays]:
    task, setting, ids = subject.task, subject.setting, subject.ids[block]
    held = subject.data[block]
    memory = task.memory(setting, held, subject.stream.at("memory").clients(ids))
    slots, stream = subject.slots(made.ask), subject.stream.at("task", made.release)
    given = {name: column.copy() for name, column in memory.items()}
    randomizer = Randomizer(made.ask.mechanism)
    noise = subject.stream.at("randomize", made.release).clients(ids)
    randomizer.begin(noise, partial(task.settle, setting, made.ask))
    own = None if slots is None else slots[block]
    answer = task.client(setting, made.ask, held, given, own, randomizer, stream.clients(ids))
    require(
        isinstance(answer, Answer),
        f"`client` returns a {type(answer).__name__}; it must be an Answer",
    )
    return answer, memory


def _same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f"))


@check("truths add up")
def truths(subject: TaskSubject) -> str:
    """The truth of all clients is the sum of the truths of any parts of them, in integers."""
    task, setting, data = subject.task, subject.setting, subject.data
    whole = task.truth(setting, data)
    exact = isinstance(whole, np.ndarray) and whole.dtype == np.int64
    require(exact, "`truth` must be an array of int64, so that sums are exact")
    for cut in (1, 8, len(subject.ids) // 2):
        parts = task.truth(setting, data[:cut]) + task.truth(setting, data[cut:])
        require(
            np.array_equal(parts, whole),
            f"the truth of {cut} clients and that of the others do not add up to that of all",
        )
    return "parts of 1, 8 and half of the clients"
