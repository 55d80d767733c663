"""Personalised learning with user-level privacy: DP-AdaPeD's divergence as its source states it."""


def adaped_rdp(
    alpha: float,
    rounds: float,
    clients: int,
    sampled: int,
    clips: tuple[float, float],
    sigmas: tuple[float, float],
) -> float:
    """Return (K/n)^2 6 (T/tau) alpha (C1^2/(K sigma1^2) + C2^2/(K sigma2^2)).

    000 Theorem 4.5.1. Its constant was not checked here: cite it as the source's.

    Args:
        alpha: real order > 1.
        rounds: T/tau, communication rounds.
        clients: n.
        sampled: K per round.
        clips: C1, C2 of the two quantities sent.
        sigmas: their noises.

    Example:
        >>> round(adaped_rdp(2, 100, 50, 10, (1.0, 1.0), (10.0, 10.0)), 9)
        0.096
    """
    if not (alpha > 1.0 and 1 <= sampled <= clients and rounds >= 0.0 and min(sigmas) > 0.0):
        raise ValueError(
            f"alpha, rounds, clients, sampled, sigmas are {alpha}, {rounds}, {clients}, {sampled}, "
            f"{sigmas}; they must be > 1, >= 0, >= sampled, >= 1, > 0"
        )
    noise = sum((c / s) ** 2 for c, s in zip(clips, sigmas, strict=True)) / sampled
    return (sampled / clients) ** 2 * 6.0 * rounds * alpha * noise
