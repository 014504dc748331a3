"""The sums of one partition by group, and which buckets of which dimension changed since they were told. Pure."""

from collections.abc import Iterable
from hashlib import blake2b

from ettwatch_core.ownership import Owners
from ettwatch_core.windows.amounts import BASE_GPU, BASE_WALL, GPU, WALL, Amounts, Buckets, add, coarser, total
from ettwatch_core.windows.dims import FLEET, Dim, Group, dims_of
from ettwatch_core.windows.parts import Part, Places
from ettwatch_core.windows.sheet import Sheet
from ettwatch_core.windows.sizes import Sizes
from ettwatch_schemas import EFFECTIVE

__all__ = ["Sums"]

_TIME = (WALL, GPU)


class Sums:
    """Signed sums by group; who owns what is looked up only when they are told.

    Args:
        sizes: The windows.
        owners: Who owns which stage.
    """

    def __init__(self, sizes: Sizes, owners: Owners) -> None:
        self.sheets: dict[Group, Sheet] = {}
        self.owner_names = _names(owners)
        """Owners of whom is told, whether they lost something or not: what they lost is a part of what all jobs did."""
        self.changed: Places = {}
        self._sizes = sizes
        self._owners = owners
        self._known: dict[tuple[str, Group], str] = {}
        self._rekey = False

    @property
    def owners_digest(self) -> str:
        """What stands for who owns what, as it is known to be told: equal for equal rules."""
        if self._rekey:
            return ""
        rules = [(r.stage, r.cluster, r.model, r.owner.team) for r in self._owners.rules]
        return blake2b(repr(sorted(rules, key=repr)).encode(), digest_size=12).hexdigest()

    def fitting(self, buckets: Buckets, minutes: int) -> Buckets:
        """Return buckets of minutes as ones of so many minutes."""
        return buckets if minutes == 1 else coarser(buckets, minutes)

    def change(self, group: Group, hour: int, minutes: int, before: Buckets, after: Buckets) -> None:
        """Change the sums of an hour by a difference."""
        before, after = self.fitting(before, minutes), self.fitting(after, minutes)
        more: Buckets = {}
        for at in before.keys() | after.keys():
            old, new = before.get(at, {}), after.get(at, {})
            if old != new:
                amounts = dict(new)
                add(amounts, old, -1)
                more[at] = amounts
        if not more:
            return
        sheet = self.sheets.get(group)
        if sheet is None:
            sheet = self.sheets[group] = Sheet()
        sheet.change(hour, minutes, more)
        for dim in dims_of(group):
            self.changed.setdefault(dim, {}).setdefault(hour, set()).update(more)

    def turn(self, now: int, warm: int) -> None:
        """Give hours that are long ago longer buckets; pack those before `warm`."""
        for group, sheet in list(self.sheets.items()):
            for hour in sheet.hours():
                sheet.coarsen(hour, self._sizes.resolution(hour, now))
            sheet.cool(warm)
            if not sheet:
                del self.sheets[group]

    def own(self, owners: Owners) -> None:
        """Have stages owned by others."""
        self._owners = owners
        self._known = {}
        self._rekey = True

    def dirty(self) -> Places:
        """Return the buckets that changed since they were told, and take them for told."""
        places, self.changed = self.changed, {}
        names, where = self.owner_names, places.get(FLEET, {})
        if self._rekey:
            self.owner_names = _names(self._owners)
            names, where = names | self.owner_names, self._everywhere()
            self._rekey = False
        for name in names:
            of_owner = places.setdefault(Dim("owner", name), {})
            for hour, at in where.items():
                of_owner.setdefault(hour, set()).update(at)
        return {dim: hours for dim, hours in places.items() if hours}

    def redo(self, places: Places) -> None:
        """Have buckets told again."""
        for dim, hours in places.items():
            for hour, at in hours.items():
                self.changed.setdefault(dim, {}).setdefault(hour, set()).update(at)

    def tell(self, places: Places, clock: int) -> list[Part]:
        """Return buckets as they are now."""
        out: list[Part] = []
        for dim, hours in places.items():
            all_ = dim.scope == "owner"
            some = [(group, sheet) for group, sheet in self.sheets.items() if all_ or dim in dims_of(group)]
            for hour in sorted(hours):
                minutes = self._sizes.resolution(hour, clock)
                if minutes is None:
                    continue
                held = [(group, sheet.buckets(hour)) for group, sheet in some]
                wanted = sorted({at // minutes * minutes for at in hours[hour]})
                if dim.scope == "owner":
                    buckets = {at: self._of_owner(dim.name, at, held) for at in wanted}
                else:
                    buckets = {at: total(of_group.get(at, {}) for _, of_group in held) for at in wanted}
                out.append(Part(dim, hour, minutes, buckets))
        return out

    def _of_owner(self, name: str, at: int, held: Iterable[tuple[Group, Buckets]]) -> Amounts:
        if name not in self.owner_names:
            return {}  # owns nothing any more
        out: Amounts = {}
        for group, buckets in held:
            for key, amount in buckets.get(at, {}).items():
                if key[0] in _TIME:
                    add(out, {BASE_WALL if key[0] == WALL else BASE_GPU: amount})
                    stage = key[1:]
                    if stage != EFFECTIVE and self._owner(stage, group) == name:
                        add(out, {key: amount})
        return out

    def _owner(self, stage: str, group: Group) -> str:
        known = self._known.get((stage, group))
        if known is None:
            owner = self._owners.of(stage, group.cluster or None, group.model or None)
            known = self._known[(stage, group)] = "" if owner is None else owner.team
        return known

    def _everywhere(self) -> dict[int, set[int]]:
        out: dict[int, set[int]] = {}
        for sheet in self.sheets.values():
            for hour in sheet.hours():
                out.setdefault(hour, set()).update(sheet.buckets(hour))
        return out


def _names(owners: Owners) -> set[str]:
    """Return the owners there are, with the one that stands for nobody."""
    return {"", *(rule.owner.team for rule in owners.rules)}
