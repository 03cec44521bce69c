"""What people see: tables, progress, the demo. Built on the same client that programs use."""

import importlib.util
import os
import sys

if importlib.util.find_spec("artifact_client") is None:
    # In a checkout that was never installed the client lies in a folder of its own.
    sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", "clients", "python"))
