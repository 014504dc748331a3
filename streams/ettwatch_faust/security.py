"""Access to the brokers in the words of Faust and of aiokafka."""

import ssl
from typing import Any

from ettwatch_faust.brokers import Access

__all__ = ["broker_settings", "client_settings"]


def client_settings(access: Access) -> dict[str, Any]:
    """Return it as the settings of any client of aiokafka."""
    settings: dict[str, Any] = {
        "bootstrap_servers": list(access.brokers),
        "security_protocol": access.protocol,
    }
    if access.protocol.endswith("SSL"):
        settings["ssl_context"] = ssl.create_default_context(cafile=access.ca)
    if access.protocol.startswith("SASL"):
        settings |= {
            "sasl_mechanism": access.mechanism,
            "sasl_plain_username": access.user,
            "sasl_plain_password": access.password or "",
        }
    return settings


def broker_settings(access: Access) -> dict[str, Any]:
    """Return it as settings of a Faust app."""
    import faust

    settings: dict[str, Any] = {"broker": [f"kafka://{address}" for address in access.brokers]}
    context = ssl.create_default_context(cafile=access.ca) if access.protocol.endswith("SSL") else None
    if access.protocol.startswith("SASL"):
        credentials = faust.SASLCredentials(
            username=access.user, password=access.password or "", mechanism=access.mechanism, ssl_context=context
        )
        settings["broker_credentials"] = credentials
    elif context is not None:
        settings["broker_credentials"] = faust.SSLCredentials(context)
    return settings
