"""Start-up in which nothing waits for what it does not need."""

from __future__ import annotations

from ettwatch_trainer.reference.start import Started, Steps
from ettwatch_trainer.remedies.startup import Startup


def beside_each_other(steps: Steps) -> Started:
    """The stream opens, the checkpoint is read, and ranks meet, while this thread compiles. Raises StartupError.

    Steps that talk to other ranks come one after the other: all ranks must speak in the same order.
    """
    startup = Startup(deadline_s=steps.config.startup_s, recorder=steps.recorder)
    startup.add("group", steps.join, phase="trainer_init.process_group_init")
    startup.add("metadata", steps.metadata, after=["group"], phase="trainer_init.shard_metadata")
    startup.add("place", steps.saving.newest)
    startup.add("read", steps.saving.read_ahead)
    startup.add("reader", steps.reader, needs=["place"], phase="trainer_init.get_first_batch_data")
    startup.add("dense", steps.dense, phase="trainer_init.train_module_creation", here=True)
    startup.add("engine", steps.engine, needs=["metadata", "dense"], phase="trainer_init.train_module_creation")
    # With a cache the ranks compile in turn, for which they must have met.
    first = ["dense", "metadata"] if steps.config.compile_cache else ["dense"]
    startup.add("compile", steps.compiled.ahead, after=first, here=True)
    # Loading draws and sets random numbers, which compiling ahead puts back: not at the same time.
    startup.add("restore", steps.restore, needs=["engine"], after=["compile", "read"])
    startup.add("connect", steps.connect, needs=["engine"], after=["restore"], here=True)
    startup.add("evaluation", steps.compiled.evaluation, after=["connect"], here=True)
    done = startup.run()
    first_batch, reader = done["reader"]
    return Started(done["engine"], steps.saving, done["restore"], first_batch, reader, steps.compiled)
