"""`ettwatch bench-remedies`: what each remedy gives back, measured by ettwatch on runs of the reference trainer."""

from ettwatch_app.remedies.bench import Bench
from ettwatch_app.remedies.kept import Kept, NotKept
from ettwatch_app.remedies.plan import Round, Variant, rounds, variants, workload

__all__ = ["Bench", "Kept", "NotKept", "Round", "Variant", "rounds", "variants", "workload"]
