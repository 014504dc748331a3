"""What Slurm, Kubernetes and Ray tell a process of the job that it is part of; each is imported where it is at work."""

__all__: list[str] = []
