"""A backend that answers in any order Ray could: each actor in turn, actors in a random order."""

import random
from collections import deque

from raydp_sim.actors.backend import Inline, Lost, _Box


class Pending(_Box):
    """A result that may not be there yet."""

    __slots__ = ("done", "error")

    def __init__(self):
        super().__init__(None)
        self.done, self.error = False, None


class Scrambled(Inline):
    """Calls wait in a queue per actor; `wait` runs them until something it waits for is ready."""

    def __init__(self, seed=0, cpus=1):
        self.dice = random.Random(seed)
        self.queues = {}
        self.dead = {}  # the actors too: an id may be given to another when one is gone
        self.processors = cpus
        self.watch = lambda method, args: None

    def cpus(self):
        return self.processors

    def call(self, actor, method, *args, returns=1):
        refs = tuple(Pending() for _ in range(returns))
        self.queues.setdefault(id(actor), deque()).append((actor, method, args, refs))
        self.watch(method, args)
        return refs

    def kill(self, actor):
        self.dead[id(actor)] = actor

    def wait(self, refs):
        while not any(ref.done for ref in refs):
            self._run_one()
        ready = [ref for ref in refs if ref.done]
        self.dice.shuffle(ready)
        return ready[: self.dice.randint(1, len(ready))]

    def get(self, ref):
        while not ref.done:
            self._run_one()
        if ref.error is not None:
            raise ref.error
        return ref.value

    def _run_one(self):
        ready = [queue for queue in self.queues.values() if queue and self._can_run(queue[0])]
        queue = self.dice.choice(ready)
        actor, method, args, refs = queue.popleft()
        inputs = [arg for arg in args if isinstance(arg, Pending)]
        failed = next((arg.error for arg in inputs if arg.error is not None), None)
        if id(actor) in self.dead:
            failed = Lost("the actor is dead", type(actor).__name__.removesuffix("Actor").lower())
        try:
            if failed is not None:
                raise failed
            plain = [arg.value if isinstance(arg, Pending) else arg for arg in args]
            result = getattr(actor, method)(*plain)
        except Exception as error:
            for ref in refs:
                ref.done, ref.error = True, error
            return
        values = result if len(refs) > 1 else (result,)
        for ref, value in zip(refs, values, strict=True):
            ref.done, ref.value = True, value

    @staticmethod
    def _can_run(call):
        return all(arg.done for arg in call[2] if isinstance(arg, Pending))
