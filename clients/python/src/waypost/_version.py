"""The version, the user agent, and the logger."""

import logging
import platform

__version__ = "0.1.0"
USER_AGENT = f"waypost-python/{__version__} python/{platform.python_version()}"
log = logging.getLogger("waypost")
