"""Summaries as JSON, which has no word for infinite."""

import json
import math
from typing import Any


def dumped(document: dict[str, Any]) -> str:
    """Return a document as JSON; what is infinite becomes null.

    Example:
        >>> print(dumped({"epsilon": math.inf}))
        {
          "epsilon": null
        }
    """
    return json.dumps(_finite(document), indent=2, allow_nan=False)


def read_back(text: str) -> dict[str, Any]:
    """Return the document of a summary: where there is no guarantee, epsilons are infinite.

    Example:
        >>> summary = {"privacy": {"guarantee": "none", "epsilon": math.inf}}
        >>> read_back(dumped(summary)) == summary
        True
    """
    document: dict[str, Any] = json.loads(text)
    privacy = document.get("privacy", {})
    if privacy.get("guarantee") == "none":
        document["privacy"] = _infinite(privacy)
    return document


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _infinite(each) for key, each in value.items()}
    return math.inf if value is None else value
