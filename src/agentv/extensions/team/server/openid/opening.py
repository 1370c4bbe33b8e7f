"""The OpenID provider of a server is opened from its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread

from agentv.errors import UsageError
from agentv.extensions.team.server.openid.provider import ClientSettings, OpenIdProvider
from agentv.extensions.team.server.openid.requesting import OpenIdError

SECRET_VARIABLE = "AGENTV_OIDC_CLIENT_SECRET"  # noqa: S105  # the name of a variable


def opened_provider(
    issuer: str | None, client_id: str | None, env: Mapping[str, str], problem: Callable[[str], None]
) -> OpenIdProvider | None:
    """The provider; None: people sign in with API tokens.

    Args:
        issuer: address of the provider.
        client_id: how it knows this server.
        env: has the client secret; without it, the provider must know the server as a public client.
        problem: called soon afterwards if the provider cannot be used at present.

    Raises:
        UsageError: only one of them is given, or the issuer is no address of a provider.
    """
    if issuer is None and client_id is None:
        return None
    if not issuer or not client_id:
        raise UsageError("sign-in with OpenID Connect needs two options", "give --oidc-issuer and --oidc-client-id")
    found = OpenIdProvider(ClientSettings(issuer, client_id, env.get(SECRET_VARIABLE, "")))

    def check() -> None:
        try:
            found.metadata()
        except OpenIdError as error:
            problem(str(error))

    Thread(target=check, name="agentv-openid", daemon=True).start()
    return found
