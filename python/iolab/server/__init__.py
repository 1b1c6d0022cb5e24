"""Recordings and traces shown to a browser and to programs: read-only, to whoever has the token. The one place with `async`."""
