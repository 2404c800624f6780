"""Clients with `async`."""
