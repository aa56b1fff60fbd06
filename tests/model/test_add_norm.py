"""The sum and its norm, written out."""

import pytest
import torch

from archfit.model.add_norm import AddNorm


@pytest.mark.parametrize("multiplier", [1.0, 0.25])
def test_the_sum_is_centred_divided_by_its_deviation_scaled_and_shifted(multiplier: float) -> None:
    torch.manual_seed(0)
    layer = AddNorm(6, branch_multiplier=multiplier).double()
    layer.weight.data.normal_()
    layer.bias.data.normal_()
    x_BND, branch_BND = torch.randn(2, 2, 3, 6, dtype=torch.float64)
    total_BND, normed_BND = layer(x_BND, branch_BND)
    expected_BND = x_BND + multiplier * branch_BND
    centred_BND = expected_BND - expected_BND.mean(-1, keepdim=True)
    unit_BND = centred_BND / (centred_BND.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(total_BND, expected_BND, atol=1e-12, rtol=0)
    torch.testing.assert_close(normed_BND, unit_BND * layer.weight + layer.bias, atol=1e-12, rtol=0)


def test_without_a_branch_the_stream_stays_as_it_is() -> None:
    x_BND = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0))
    total_BND, normed_BND = AddNorm(6, branch_multiplier=0.25)(x_BND, None)
    assert torch.equal(total_BND, x_BND)
    assert normed_BND.mean(-1).abs().max() < 1e-6
