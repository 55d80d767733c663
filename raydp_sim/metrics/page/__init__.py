"""The web page: runs of a folder, finished or being played, in a browser.

What a page shows is made by pure functions from the tables of a run as one token sees it
(`seen.py`): JSON documents with thinned lines (`thin.py`, `lines.py`), heat maps, distributions.
`source.py` reads tables from disk or from the process that serves a run; `server.py` has the routes
and `static/` what the browser runs. Nothing of a run is told without a token.
"""
