"""The sizes of one stack, as its class would read them."""

from archfit.audit.count import SizedStack, block_weights
from archfit.audit.family import Family, StackPlan
from archfit.audit.fields import shown
from archfit.audit.model import Stack
from archfit.audit.reader import Reader
from archfit.audit.spellings import SPELLINGS


def sized_stack(reader: Reader, plan: StackPlan, width: int, before: int | None) -> SizedStack:
    """The stack that `plan` describes; `before` is the depth of the stack in front of it.

    The decoder of a T5 is as deep as its encoder where the config does not say.
    """
    keys = plan.keys.get("depth", SPELLINGS["depth"])
    depth = reader.size("depth", keys) or before
    if depth is None:
        raise reader.refuse("depth", keys)
    sizes = {"width": width, "depth": depth}
    sizes |= _attention(reader, plan, width) | _feed_forward(reader, plan, width)
    sizes |= _mixture(reader, depth, sizes.get("feed_forward"))
    sizes["distinct"] = _distinct(reader, depth)
    return SizedStack(role=plan.role, has_cross_attention=plan.has_cross_attention, sizes=sizes)


def audited_stack(family: Family, stack: SizedStack) -> Stack:
    """The stack as an audit shows it."""
    sizes = stack.sizes
    return Stack(
        role=stack.role,
        depth=sizes.get("depth"),
        width=sizes["width"],
        heads=sizes.get("heads"),
        head_dim=sizes.get("head_dim"),
        kv_heads=sizes.get("kv_heads"),
        feed_forward=sizes.get("expert_feed_forward", sizes.get("feed_forward")),
        block_weights=block_weights(family, stack),
        distinct_blocks=sizes.get("distinct"),
    )


def _attention(reader: Reader, plan: StackPlan, width: int) -> dict[str, int]:
    family = reader.family
    keys = plan.keys.get("heads", SPELLINGS["heads"])
    heads = reader.size("heads", keys)
    if heads is None:
        reader.lack("heads", keys)
        return {"attention": width, "key_value": width} if family.is_square else {}
    kv_heads = _kv_heads(reader, heads)
    head_dim = reader.size("head_dim") if "head_dim" in family.needs else None
    if head_dim is None and family.is_square:
        head_dim = _square_head_dim(width, heads)
    if head_dim is None:
        reader.lack("head_dim")
        reader.assumed.append(
            f"heads * head_dim = {width}, the width, for the count alone: usual, but not known "
            "of this family"
        )
        share = {"attention": width, "key_value": width * kv_heads // heads}
        return {"heads": heads, "kv_heads": kv_heads} | share
    return {
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "attention": heads * head_dim,
        "key_value": kv_heads * head_dim,
    }


def _square_head_dim(width: int, heads: int) -> int:
    if width % heads:
        raise ValueError(
            f"width={width} is not a multiple of heads={heads}, so head_dim would be a fraction; "
            "give head_dim, or heads that divide the width"
        )
    return width // heads


def _kv_heads(reader: Reader, heads: int) -> int:
    family = reader.family
    if family.fixed_kv_heads is not None:
        return family.fixed_kv_heads
    kv_heads = reader.size("kv_heads") if "kv_heads" in family.needs else None
    if kv_heads is not None and kv_heads > heads:
        raise ValueError(
            f"there are more key-value heads ({shown(kv_heads)}) than heads ({heads}); "
            "several heads share one, so use at most as many"
        )
    return kv_heads or heads


def _feed_forward(reader: Reader, plan: StackPlan, width: int) -> dict[str, int]:
    keys = plan.keys.get("feed_forward", SPELLINGS["feed_forward"])
    found = reader.size("feed_forward", keys)
    multiple = reader.family.feed_forward_multiple
    if found is None and multiple is not None:
        found = multiple * width
    if found is None:
        reader.lack("feed_forward", keys)
        return {}
    return {"feed_forward": found}


def _mixture(reader: Reader, depth: int, feed_forward: int | None) -> dict[str, int]:
    """Sizes of the experts; nothing where every layer is dense."""
    needs = reader.family.needs
    experts = reader.size("experts", least=0) if "experts" in needs else None
    if not experts:
        return {}
    sizes = {"experts": experts, "dense": _dense_layers(reader, depth)}
    wide = reader.size("expert_feed_forward") if "expert_feed_forward" in needs else None
    if wide is not None or feed_forward is not None:
        sizes["expert_feed_forward"] = wide or feed_forward or 0
    if "shared_feed_forward" in needs:
        shared = reader.size("shared_feed_forward")
        sizes |= {} if shared is None else {"shared_feed_forward": shared}
    return sizes


def _dense_layers(reader: Reader, depth: int) -> int:
    """Layers of a mixture that have one feed-forward layer: every step-th layer has experts,
    unless it is listed as dense. Counted without walking through the layers."""
    step = reader.size("decoder_sparse_step", ("decoder_sparse_step",)) or 1
    listed = reader.document.get("mlp_only_layers") or []
    if not isinstance(listed, list):
        raise ValueError(f"mlp_only_layers={shown(listed)} is no list; use numbers of layers")
    dense = {at for at in listed if type(at) is int and 0 <= at < depth and (at + 1) % step == 0}
    return depth - depth // step + len(dense)


def _distinct(reader: Reader, depth: int) -> int:
    if "groups" not in reader.family.needs:
        return depth
    groups, inner = reader.size("groups"), reader.size("inner_groups")
    return (groups or 1) * (inner or 1)
