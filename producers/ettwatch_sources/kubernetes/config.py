"""How to reach the API server: the account of the pod, or a kubeconfig. Secrets are read when they are needed.

Plain HTTPS is enough for lists and watches; the clients that exist bring dozens of packages with them.
"""

import base64
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where Kubernetes puts the token and the certificates of the pod's account."""


class ConfigError(ValueError):
    """The cluster cannot be reached as things are. The message says what to do, and holds no secret."""


@dataclass(frozen=True, slots=True)
class Access:
    """An API server and how to speak to it.

    Attributes:
        server: Its address, `https://…`.
        token: A fixed token.
        token_file: A file with a token that is replaced from time to time; it is read anew for every request.
        ca: Certificates that the server's must be signed by, PEM; empty: those of the system.
        client: Paths of the client's certificate and key; empty: none.
        verify: Whether the server's certificate is checked.
        namespace: The namespace of the account or the context.
    """

    server: str
    token: str = field(default="", repr=False)
    token_file: str = ""
    ca: str = ""
    client: tuple[str, str] | None = None
    verify: bool = True
    namespace: str = ""

    def headers(self) -> dict[str, str]:
        """Return the headers of a request. Raises ConfigError where the token cannot be read."""
        token = self.token
        if self.token_file:
            try:
                token = Path(self.token_file).read_text().strip()
            except OSError as error:
                raise ConfigError(f"cannot read the token in {self.token_file}: {error.strerror}") from None
        return {"Authorization": f"Bearer {token}"} if token else {}


def in_cluster(account: str = ACCOUNT) -> Access:
    """Return the access of the pod's own account. Raises ConfigError outside of a pod."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    token, ca = Path(account, "token"), Path(account, "ca.crt")
    if not host or not token.exists():
        raise ConfigError("this is no pod with an account; name a kubeconfig with --kubeconfig FILE")
    try:
        text = ca.read_text() if ca.exists() else ""
        namespace = Path(account, "namespace").read_text().strip() if Path(account, "namespace").exists() else ""
    except OSError as error:
        raise ConfigError(f"cannot read {error.filename}: {error.strerror}") from None
    shown = f"[{host}]" if ":" in host else host
    return Access(f"https://{shown}:{port}", token_file=str(token), ca=text, namespace=namespace)


def from_kubeconfig(path: str, context: str | None = None) -> Access:
    """Return the access that a kubeconfig describes: its current context, or the one named. Raises ConfigError."""
    import yaml

    try:
        told = yaml.safe_load(Path(path).expanduser().read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigError(f"{path} is no YAML") from None
    if not isinstance(told, dict):
        raise ConfigError(f"{path} is no kubeconfig")
    name = context or told.get("current-context")
    if not name:
        raise ConfigError(f"{path} has no current context; name one with --context")
    chosen = _named(told, "contexts", name, "context", path)
    cluster = _named(told, "clusters", chosen.get("cluster"), "cluster", path)
    user = _named(told, "users", chosen.get("user"), "user", path) if chosen.get("user") else {}
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise ConfigError(f"{path}: the cluster {chosen.get('cluster')!r} has no server")
    if user.get("exec") or user.get("auth-provider"):
        raise ConfigError(
            f"{path}: the user {chosen.get('user')!r} gets its token from a program, which is not run here; "
            "give a user with a token (kubectl create token), a token file or a certificate"
        )
    folder = Path(path).expanduser().parent
    return Access(
        server,
        token=str(user.get("token") or ""),
        token_file=_path(folder, user.get("tokenFile")),
        ca=_pem(folder, cluster, "certificate-authority", path),
        client=_client(folder, user, path),
        verify=not cluster.get("insecure-skip-tls-verify"),
        namespace=str(chosen.get("namespace") or ""),
    )


def _named(told: dict[str, Any], group: str, name: object, key: str, path: str) -> dict[str, Any]:
    for item in told.get(group) or ():
        if isinstance(item, dict) and item.get("name") == name and isinstance(item.get(key), dict):
            found: dict[str, Any] = item[key]
            return found
    raise ConfigError(f"{path}: there is no {key} {name!r}")


def _path(folder: Path, value: object) -> str:
    return str(folder / str(value)) if value else ""


def _pem(folder: Path, where: dict[str, Any], name: str, path: str) -> str:
    """What stands under `name` as a file, or under `name-data` in base64."""
    try:
        if where.get(f"{name}-data"):
            return base64.b64decode(str(where[f"{name}-data"]), validate=True).decode()
        if where.get(name):
            return Path(_path(folder, where[name])).read_text()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read {error.filename}: {error.strerror}") from None
    except ValueError:
        raise ConfigError(f"{path}: {name}-data is no base64") from None
    return ""


def _client(folder: Path, user: dict[str, Any], path: str) -> tuple[str, str] | None:
    if user.get("client-certificate") and user.get("client-key"):
        return _path(folder, user["client-certificate"]), _path(folder, user["client-key"])
    if user.get("client-certificate-data") or user.get("client-key-data"):
        raise ConfigError(
            f"{path}: the client certificate stands in the file itself; write it to files "
            "(client-certificate, client-key), as OpenSSL reads only those"
        )
    return None
