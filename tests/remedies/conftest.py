"""Without the trainer extra there is no torch, and only what needs none can be tested."""

import importlib.util
from pathlib import Path

FILES = [] if importlib.util.find_spec("torch") else list(Path(__file__).parent.glob("test_*.py"))
collect_ignore = [path.name for path in FILES if "pytest.mark.torch" in path.read_text()]
