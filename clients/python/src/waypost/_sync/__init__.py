"""Clients with `async`.

Made by scripts/unasync.py.
"""
