"""Instrument PyTorch without a change of the code that trains: `ettwatch run --auto`, or `import ettwatch.auto`.

docs/auto.md says what is seen and how. Importing this imports no torch: what is to be hooked is hooked when it is
imported itself.
"""

from ettwatch.auto.install import install as _install

__all__: list[str] = []

_install()
