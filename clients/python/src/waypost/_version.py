"""The version, and how this client names itself."""

import platform

__version__ = "0.1.0"
USER_AGENT = f"waypost-python/{__version__} python/{platform.python_version()}"
