"""The shapes of the documents as JSON Schema; nothing in a document is left out of them."""

Schema = dict[str, object]

WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}


def document(**properties: Schema) -> Schema:
    """An object that has exactly these."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(items: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": items}


def or_null(schema: Schema) -> Schema:
    """It, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


_PARTS = document(blocks=WHOLE, biases_and_norms=WHOLE, embedding=WHOLE, total=WHOLE)
_SHAPE = {"depth": WHOLE, "width": WHOLE, "heads": WHOLE, "head_dim": WHOLE}
_IDEAL = document(depth=NUMBER, width=NUMBER, block_params=WHOLE)
_INTERVAL = document(low=NUMBER, high=NUMBER, basis=TEXT)

PLAN = document(
    question=document(
        budget=TEXT, vocab=or_null(WHOLE), used_vocab=or_null(WHOLE), rank=or_null(WHOLE),
        patch=or_null(list_of(WHOLE)), rank_limit=WHOLE, context=WHOLE, tied=FLAG,
        max_depth=WHOLE, data={"type": "null"},
    ),
    recommended=document(
        **_SHAPE, vocab=or_null(WHOLE), embedding_rank=WHOLE, params=_PARTS
    ),
    ideal=_IDEAL,
    rounding=document(of=_IDEAL, params_change=NUMBER),
    bottleneck=or_null(
        document(kind={"enum": ["vocabulary", "rank", "patch"]}, limit=WHOLE)
    ),
    leads_with={"enum": ["repairs", "shape"]},
    repairs=list_of(
        document(
            kind=TEXT, size=WHOLE, change=TEXT, command=TEXT, needs=TEXT, rank_limit=WHOLE,
            shape=document(**_SHAPE, params=_PARTS),
        )
    ),
    expected_effect=document(
        against=_IDEAL,
        params_saved=or_null(_INTERVAL),
        loss_percent=or_null(document(low=NUMBER, high=NUMBER)),
        source=TEXT,
    ),
    advisers=list_of(
        document(
            name=TEXT, depth=or_null(NUMBER), width=or_null(WHOLE),
            depths=or_null(list_of(NUMBER)), says=TEXT, source=TEXT, seen_in=TEXT, in_range=FLAG,
        )
    ),
    evidence_against=list_of(TEXT),
    check=document(sweep=TEXT, command=TEXT, refuted_if=TEXT),
    export=or_null(TEXT),
    training=document(
        tokens=WHOLE, tokens_per_param=NUMBER, flops=NUMBER, attention_flops=NUMBER,
        relative_latency=NUMBER,
        start=document(learning_rate=NUMBER, batch_tokens=WHOLE, source=TEXT, in_range=FLAG),
    ),
    memory_bytes=document(
        weights=WHOLE, gradients=WHOLE, optimiser=WHOLE, activations=WHOLE,
        batch_sequences=WHOLE, total=WHOLE,
    ),
    warnings=list_of(TEXT),
)  # fmt: skip

_BOUND = document(
    id=TEXT, side={"enum": ["lower", "upper"]}, log3=TEXT,
    exact={"anyOf": [WHOLE, TEXT, {"type": "null"}]},
    status={"enum": ["proved", "derived", "disputed"]}, status_line=TEXT, source=TEXT,
)  # fmt: skip

BOUNDS = document(
    inputs=document(
        depth=WHOLE, width=WHOLE, heads=WHOLE, head_dim=or_null(WHOLE), positions=or_null(WHOLE),
        vocab=or_null(WHOLE), rank=or_null(WHOLE), position_rank=WHOLE, residual=FLAG,
    ),
    embedding_rank=WHOLE,
    network=TEXT,
    regime=document(
        name=TEXT, paper_threshold=TEXT, paper_threshold_is=TEXT, corrected_threshold=TEXT,
        corrected_threshold_is=TEXT,
    ),
    lower=_BOUND,
    upper=_BOUND,
    bounds=list_of(_BOUND),
    saturation={
        "type": "object",
        "properties": {"share": TEXT, "is": TEXT},
        "required": ["share", "is"],
        "additionalProperties": False,
    },
    notes=list_of(TEXT),
)  # fmt: skip

_STACK = document(
    role=TEXT, depth=or_null(WHOLE), width=WHOLE, heads=or_null(WHOLE), head_dim=or_null(WHOLE),
    kv_heads=or_null(WHOLE), feed_forward=or_null(WHOLE), block_weights=or_null(WHOLE),
    distinct_blocks=or_null(WHOLE), attention_ratio=or_null(NUMBER),
)  # fmt: skip

AUDIT = list_of(
    document(
        name=TEXT, origin=TEXT, family=or_null(TEXT), modality=or_null(TEXT),
        depth=or_null(WHOLE), width=WHOLE, heads=or_null(WHOLE), head_dim=or_null(WHOLE),
        kv_heads=or_null(WHOLE), attention_ratio=or_null(NUMBER), vocab=or_null(WHOLE),
        vocab_real=or_null(WHOLE), input=TEXT, embedding_rank_limit=or_null(WHOLE),
        embedding_rank_measured={"type": "null"}, rank_ratio=or_null(NUMBER),
        params=or_null(WHOLE),
        params_parts=document(
            blocks=or_null(WHOLE), embedding=or_null(WHOLE), total=or_null(WHOLE)
        ),
        params_published=or_null(WHOLE), tied=or_null(FLAG), stacks=list_of(_STACK),
        spectrum={"type": "null"},
        findings=list_of(
            document(
                id=TEXT, severity={"enum": ["high", "medium", "low"]}, stack=TEXT,
                redundancy=or_null(_INTERVAL), evidence=TEXT, fix=TEXT,
            )
        ),
        assumed=list_of(TEXT), missing=list_of(TEXT), notes=list_of(TEXT),
    )
)  # fmt: skip

ERROR = document(error=TEXT)
