"""Compiled code that is kept: across attempts, ranks and hosts, keyed, verified, bounded."""

from ettwatch_trainer.remedies.caches.cache import CacheResult, CacheSaved, CompileCache
from ettwatch_trainer.remedies.caches.first import rank_zero_first
from ettwatch_trainer.remedies.caches.key import CacheKey

__all__ = ["CacheKey", "CacheResult", "CacheSaved", "CompileCache", "rank_zero_first"]
