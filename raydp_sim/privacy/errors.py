"""What a bound raises when it is asked for something it is not proved for."""


class Unsupported(ValueError):
    """The bound is not proved for this randomizer, neighbouring relation or sampling."""


class NotApplicable(ValueError):
    """The bound is proved for this kind of input, but its stated condition does not hold here."""
