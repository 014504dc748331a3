"""Whether the ClickHouse server answers and has the tables of this version."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

from ettwatch_app.clickhouse import ClickHouseAccess, ClickHouseSettingError
from ettwatch_app.doctor.finding import Finding

_ASK_S: Final = 5


def check_clickhouse(env: Mapping[str, str]) -> Iterator[Finding]:
    """Ask the server of `ETTWATCH_CLICKHOUSE`, where that is set and the package for it is installed."""
    if not env.get("ETTWATCH_CLICKHOUSE", "").strip():
        return
    try:
        from ettwatch_clickhouse import StoreError, StoreUnavailable
        from ettwatch_clickhouse.schema import check_schema
    except ImportError:
        yield Finding("clickhouse", "fail", "clickhouse-connect is not installed", "pip install 'ettwatch[sinks]'")
        return
    try:
        access = ClickHouseAccess.read(env)
    except ClickHouseSettingError as error:
        yield Finding("clickhouse", "fail", str(error), "correct it, or unset it")
        return
    try:
        with closing(access.connect(timeout_s=_ASK_S)) as store:
            check_schema(store)
            ((version,),) = store.query("SELECT version()").rows
    except StoreUnavailable as error:
        yield Finding("clickhouse", "fail", str(error), "is the server up, the name right, the port open?")
    except StoreError as error:
        yield Finding("clickhouse", "fail", f"{access.where}: {error}", "")
    else:
        yield Finding("clickhouse", "ok", f"{access.where}: ClickHouse {version} with the tables of this version")
