"""How often the kernel killed a process of this control group because memory ran out."""

import os

_ROOT = "/sys/fs/cgroup"


def oom_kills(root: str = _ROOT, membership: str = "/proc/self/cgroup") -> int | None:
    """Return the counter of this process's memory control group, None where there is none to read."""
    for path in _counters(root, membership):
        try:
            with open(path, encoding="ascii") as file:
                for line in file:
                    name, _, number = line.partition(" ")
                    if name == "oom_kill":
                        return int(number)
        except (OSError, ValueError):
            continue
    return None


def _counters(root: str, membership: str) -> list[str]:
    try:
        with open(membership, encoding="utf-8") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except (OSError, ValueError):
        return []
    paths = []
    for group in groups:
        if len(group) != 3:
            continue
        _, controllers, path = group
        # In a container the path may be that of the host: then the root of what is mounted is ours.
        for place in (path.lstrip("/"), ""):
            if "memory" in controllers.split(","):
                paths.append(os.path.join(root, "memory", place, "memory.oom_control"))
            elif not controllers:
                paths.append(os.path.join(root, place, "memory.events"))
    return paths
