"""The OpenAPI description of the API, made of the tables that its code reads requests with."""

import json
from collections.abc import Sequence
from importlib import resources

from archfit import __version__
from archfit.report.explorer.documents import AUDIT, BOUNDS, PLAN, Parameter
from archfit.report.explorer.exchange import (
    MOST_BODY_BYTES,
    MOST_HEAD_BYTES,
    MOST_SECONDS,
    REQUEST_SECONDS,
)

Schema = dict[str, object]

ADDRESS = "/api/openapi.json"
_SCHEMAS = resources.files("archfit.resources").joinpath("explorer-schemas.json")
REFUSALS = {
    "400": "A value is wrong; the sentence names it, the rule and the way out.",
    "405": "No such method here.",
    "413": f"The body is larger than {MOST_BODY_BYTES:,} bytes.",
    "422": f"It would take longer than {MOST_SECONDS:g} s; the sentence has the command line's "
    "equivalent, which has no such limit.",
    "429": "Too many wait for an answer; ask again in a second.",
}


def openapi_document() -> Schema:
    """The document at /api/openapi.json."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "archfit explorer",
            "version": __version__,
            "summary": "Which Transformer architecture fits my data?",
            "description": "The documents are those that `archfit plan`, `bounds` and `audit` "
            "print with --json. Sizes may be written 125M, 1.3B or 2e7. Limits: bodies of "
            f"{MOST_BODY_BYTES:,} bytes, request line and headers of {MOST_HEAD_BYTES:,}, "
            f"{MOST_SECONDS:g} s of computing, {REQUEST_SECONDS:g} s from the first byte of a "
            "request to the last of its answer. Nothing is stored, no file or other host is read.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/api/plan": {
                "get": _operation("plan", "The shape for a budget and a vocabulary.", PLAN)
            },
            "/api/bounds": {
                "get": _operation("bounds", "All bounds on the separation rank of a shape.", BOUNDS)
            },
            "/api/audit": {
                "get": _operation("audit", "What a published model's shape wastes.", AUDIT),
                "post": _operation("audit", "What the shape in a config.json wastes.", ())
                | {"operationId": "audit_config", "requestBody": _CONFIG},
            },
            ADDRESS: {
                "get": {
                    "operationId": "openapi",
                    "summary": "This description.",
                    "responses": {"200": _content("The description.", {"type": "object"})},
                }
            },
        },
        "components": {
            "schemas": json.loads(_SCHEMAS.read_text(encoding="utf-8")),
        },
    }


_CONFIG: Schema = {
    "required": True,
    "description": f"A config.json as Hugging Face's transformers writes it, of at most "
    f"{MOST_BODY_BYTES:,} bytes.",
    "content": {
        "application/json": {
            "schema": {"type": "object"},
            "example": {
                "model_type": "gpt2",
                "n_layer": 12,
                "n_embd": 768,
                "n_head": 12,
                "vocab_size": 50257,
            },
        }
    },
}


def _operation(name: str, summary: str, parameters: Sequence[Parameter]) -> Schema:
    refusals = {
        status: _content(words, {"$ref": "#/components/schemas/error"})
        for status, words in REFUSALS.items()
    }
    answer = _content(
        f"The document of archfit {name} --json.", {"$ref": f"#/components/schemas/{name}"}
    )
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [parameter.described() for parameter in parameters],
        "responses": {"200": answer} | refusals,
    }


def _content(words: str, schema: Schema) -> Schema:
    return {"description": words, "content": {"application/json": {"schema": schema}}}
