"""Parts of a model outside its blocks: how many parameters each has, from the model's sizes."""

from archfit.audit.family import Piece, Sizes


def token_table(sizes: Sizes) -> int:
    """One row a token, as wide as the stream or as the inner width of a factorised table."""
    return sizes["vocab"] * sizes.get("inner", sizes["width"])


def position_table(sizes: Sizes) -> int:
    """One row a position."""
    return sizes["positions"] * sizes["width"]


def two_more_positions(sizes: Sizes) -> int:
    """OPT and BART keep two rows before the first position."""
    return 2 * sizes["width"]


def inner_position_table(sizes: Sizes) -> int:
    """Positions as wide as a factorised table (ALBERT, ELECTRA)."""
    return sizes["positions"] * sizes["inner"]


def type_table(sizes: Sizes) -> int:
    """One row a segment."""
    return sizes["types"] * sizes["width"]


def inner_type_table(sizes: Sizes) -> int:
    """Segments as wide as a factorised table."""
    return sizes["types"] * sizes["inner"]


def layer_norm(sizes: Sizes) -> int:
    """Scale and shift over the width."""
    return 2 * sizes["width"]


def inner_layer_norm(sizes: Sizes) -> int:
    """Scale and shift over the inner width."""
    return 2 * sizes["inner"]


def widening(sizes: Sizes) -> int:
    """The matrix with bias from inner to full width, which ALBERT always has."""
    return (sizes["inner"] + 1) * sizes["width"]


def widening_if_narrow(sizes: Sizes) -> int:
    """The same where the widths differ (ELECTRA)."""
    return 0 if sizes["inner"] == sizes["width"] else widening(sizes)


def projections_if_narrow(sizes: Sizes) -> int:
    """OPT's way in and out of a narrow table, without biases."""
    return 0 if sizes["inner"] == sizes["width"] else 2 * sizes["inner"] * sizes["width"]


def dense(sizes: Sizes) -> int:
    """A square matrix with bias: a pooler, or the first layer of a prediction head."""
    return (sizes["width"] + 1) * sizes["width"]


def untied_head(sizes: Sizes) -> int:
    """A head of its own; none where the token table serves as the head."""
    if sizes["is_tied"]:
        return 0
    return sizes["vocab"] * sizes.get("inner", sizes["width"])


def untied_head_but_one(sizes: Sizes) -> int:
    """ImageGPT never predicts its start token."""
    return 0 if sizes["is_tied"] else (sizes["vocab"] - 1) * sizes["width"]


def untied_bias(sizes: Sizes) -> int:
    """A second bias, of the matrix, that BERT and its kin keep where nothing is tied."""
    return 0 if sizes["is_tied"] else sizes["vocab"]


def untied_tables(sizes: Sizes) -> int:
    """Tables of encoder and decoder, which BART keeps apart where nothing is tied."""
    return 2 * untied_head(sizes)


def head_bias(sizes: Sizes) -> int:
    """One number a token."""
    return sizes["vocab"]


def scaled_head(sizes: Sizes) -> int:
    """ModernBERT's prediction head: a matrix, a scale, a bias, and the token table again."""
    width = sizes["width"]
    return width * width + width + head_bias(sizes) + untied_head(sizes)


def inner_head(sizes: Sizes) -> int:
    """ALBERT predicts from the inner width: a matrix down to it with bias, a norm, a bias."""
    return (sizes["width"] + 3) * sizes["inner"] + sizes["vocab"] + untied_head(sizes)


def masked_head(sizes: Sizes) -> int:
    """BERT's prediction head: a dense layer, a norm, a bias, and the token table again."""
    return dense(sizes) + layer_norm(sizes) + head_bias(sizes) + untied_head(sizes)


def patch_map(sizes: Sizes) -> int:
    """Pixels of a patch to the width, with bias."""
    return (sizes["patch_dimensions"] + 1) * sizes["width"]


def patch_map_without_bias(sizes: Sizes) -> int:
    """The same without bias (CLIP)."""
    return sizes["patch_dimensions"] * sizes["width"]


def patch_positions(sizes: Sizes) -> int:
    """One row a patch."""
    return sizes["patches"] * sizes["width"]


def vectors(number: int) -> Piece:
    """`number` vectors of the width: class tokens and their positions, layer scales."""
    return lambda sizes: number * sizes["width"]


def head_layer_norms(sizes: Sizes) -> int:
    """Phi's scale and shift of queries and of keys, over one head."""
    return 4 * sizes["head_dim"]


def window_table(sizes: Sizes) -> int:
    """BEiT's bias for each offset between two patches and head."""
    return sizes["patch_offsets"] * sizes["heads"]


def relative_table(sizes: Sizes) -> int:
    """T5's bias for each bucket of distances and head, once a stack."""
    return sizes["buckets"] * sizes["heads"]


def convolution_stem(sizes: Sizes) -> int:
    """The convolutions in front of a speech encoder, without biases and norms."""
    return sizes["stem_weights"]


def stem_biases(sizes: Sizes) -> int:
    """One a channel of every convolution."""
    return sizes["stem_channels"]


def stem_norms(sizes: Sizes) -> int:
    """A norm after every convolution."""
    return 2 * sizes["stem_channels"]


def first_stem_norm(sizes: Sizes) -> int:
    """A norm after the first convolution alone."""
    return 2 * sizes["stem_first"]


def feature_map(sizes: Sizes) -> int:
    """A norm over the last channels and a linear map, with bias, to the width."""
    return 2 * sizes["stem_last"] + (sizes["stem_last"] + 1) * sizes["width"]


def convolutional_positions(sizes: Sizes) -> int:
    """A grouped convolution along time with weight norm: direction, length a tap, and bias."""
    width, taps = sizes["width"], sizes["position_taps"]
    return width * (width // sizes["position_groups"]) * taps + taps + width


def speech_stem(sizes: Sizes) -> int:
    """Whisper's two convolutions of three taps with biases."""
    width = sizes["width"]
    return (3 * sizes["mel_bins"] + 1) * width + (3 * width + 1) * width


def source_positions(sizes: Sizes) -> int:
    """Whisper's positions of the encoder: computed, but stored."""
    return sizes["source_positions"] * sizes["width"]


def target_positions(sizes: Sizes) -> int:
    """Whisper's positions of the decoder."""
    return sizes["target_positions"] * sizes["width"]


def class_head(sizes: Sizes) -> int:
    """A map with bias from the width to `vocab` outputs that is no input table (CTC letters)."""
    return (sizes["width"] + 1) * sizes["classes"]


def contact_head(sizes: Sizes) -> int:
    """ESM's regression from all attention maps, with one bias."""
    return sizes["depth"] * sizes["heads"] + 1


def discriminator_head(sizes: Sizes) -> int:
    """ELECTRA's: a dense layer and one output."""
    return dense(sizes) + sizes["width"] + 1


def pooling_head(sizes: Sizes) -> int:
    """SigLIP's: one query attends to all patches, then a norm and a feed-forward layer."""
    width, hidden = sizes["width"], sizes["feed_forward"]
    attention = 4 * (width + 1) * width + width
    return attention + layer_norm(sizes) + (2 * hidden + 1) * width + hidden
