"""Where calls of Google (``gemini:``, ``vertex:``) and Amazon Bedrock (``bedrock:``) go.

The variables are those of the providers' own SDKs. A credential that has to be asked for (Google's application default
credentials, AWS's chain) is looked for when the call is made, not here.
"""

from __future__ import annotations

import importlib.util
import os
import re
from urllib.parse import urlsplit

from agentloom.adapters.models_route import Route
from agentloom.errors import ModelError, ProviderError

__all__ = ["native_route"]

_GEMINI = "https://generativelanguage.googleapis.com"
_REGIONS_OF_MANY = ("us", "eu")  # multi-regions have a host of another form
_VERSION = re.compile(r"v\d+(beta\d*|alpha\d*)?$")


def native_route(prefix: str, model: str, base_url: str | None, key: str | None) -> Route:
    """The route for a name with one of the prefixes above, or ``google:`` or ``vertexai:``. ``base_url`` and ``key``:
    those that the request gives.

    ModelError (``auth``) or ProviderError, with the remedy, when it is not known where or as whom.
    """
    if prefix == "bedrock":
        return _bedrock(model, base_url, key)
    return (
        _vertex(model, base_url, key) if prefix in ("vertex", "vertexai") else _gemini(model, base_url, key)
    )


def _gemini(model: str, base_url: str | None, given: str | None) -> Route:
    _needs(f"gemini:{model}", "google", "httpx2")
    key = given or _variable("GOOGLE_API_KEY", "GEMINI_API_KEY")
    root = base_url or _variable("GOOGLE_GEMINI_BASE_URL")
    if key is None and root is None:
        raise _no_credential("gemini", model, "GEMINI_API_KEY")
    return Route("google", "gemini", model, _versioned(root or _GEMINI, "v1beta"), key)


def _vertex(model: str, base_url: str | None, given: str | None) -> Route:
    _needs(f"vertex:{model}", "google", "httpx2")
    root = base_url or _variable("GOOGLE_VERTEX_BASE_URL")
    project, location = _variable("GOOGLE_CLOUD_PROJECT"), _variable("GOOGLE_CLOUD_LOCATION") or "global"
    if root is None:
        root = _vertex_host("global" if given else location)
        if given is None and project is None:
            raise ProviderError(
                f"it is not known in which project of Google Cloud {model} is called",
                hint="set GOOGLE_CLOUD_PROJECT (and GOOGLE_CLOUD_LOCATION), or name a key with api_key_env=",
            )
    if given is None:
        _needs(f"vertex:{model}", "google", "google.auth")
    url = _versioned(root, "v1beta1")
    if "/projects/" not in url and project is not None and given is None:
        url += f"/projects/{project}/locations/{location}"
    return Route("google", "vertex", model, url, given, bearer=given is None)


def _vertex_host(location: str) -> str:
    if location == "global":
        return "https://aiplatform.googleapis.com"
    if location in _REGIONS_OF_MANY:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


def _versioned(root: str, version: str) -> str:
    """``root`` with the version of the API behind it, unless its path holds one."""
    url = root.rstrip("/")
    parts = urlsplit(url).path.split("/")
    return url if any(_VERSION.match(part) for part in parts) else f"{url}/{version}"


def _bedrock(model: str, base_url: str | None, given: str | None) -> Route:
    _needs(f"bedrock:{model}", "bedrock", "httpx2", "botocore")
    from agentloom.adapters import models_bedrock_wire

    key = given or _variable("AWS_BEARER_TOKEN_BEDROCK")
    region = _region(model) or models_bedrock_wire.configured_region()
    url = base_url or _variable("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
    if region is None and url is None:
        raise ProviderError(
            f"it is not known in which region of AWS {model} is called",
            hint="set AWS_REGION, for example to us-east-1",
        )
    place = url or models_bedrock_wire.endpoint(region or "")
    return Route(
        "bedrock", "bedrock", model, place.rstrip("/"), key, key is not None, region=region or "us-east-1"
    )


def _region(model: str) -> str | None:
    """The region that a model's ARN names (``arn:aws:bedrock:eu-west-1:...``)."""
    parts = model.split(":")
    return parts[3] or None if parts[0] == "arn" and len(parts) > 4 else None


def _variable(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


def _needs(model: str, extra: str, *packages: str) -> None:
    for package in packages:
        if not _found(package):
            raise ProviderError(
                f"calling {model} needs the package {package.replace('.', '-')}, which is not installed",
                hint=f"pip install 'agentloom-runtime[{extra}]'",
                package=package.replace(".", "-"),
            )


def _found(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of a package within a package that is not there
        return False


def _no_credential(provider: str, model: str, variable: str) -> ModelError:
    return ModelError(
        "auth",
        f"no credential for {provider}: {variable} is not set",
        provider=provider,
        model=model,
        hint=f"set {variable}, or base_url= for a server of your own",
    )
