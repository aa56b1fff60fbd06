"""The loss against probabilities written out, for tokens and for patches."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F

from archfit.model.layers import batch_of, token_losses
from archfit.spec import Patches, Tokens, standard_architecture

PATCHES = Patches(vocab=5, size=3, encoding="one-hot")


SHAPE = standard_architecture(depth=1, width=8, heads=2, vocab=5, context=3)


def test_each_token_is_the_target_of_the_one_before() -> None:
    inputs_BS, targets_BS, places = batch_of(torch.tensor([[3, 1, 4, 1]]), SHAPE)
    assert places is None
    assert inputs_BS.tolist() == [[3, 1, 4]]
    assert targets_BS.tolist() == [[1, 4, 1]]


def test_each_patch_is_the_target_of_the_one_before() -> None:
    inputs_BS, targets_BS, _ = batch_of(torch.arange(9)[None], replace(SHAPE, input=PATCHES))
    assert inputs_BS.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert targets_BS.tolist() == [[3, 4, 5, 6, 7, 8]]


def test_an_encoder_s_row_is_what_it_sees_the_places_and_what_stood_there() -> None:
    row_BR = torch.tensor([[4, 0, 4, 0, 2, 3, 1]])  # tokens 0 and 2 are hidden
    seen, targets, places = batch_of(row_BR, replace(SHAPE, objective="masked"))
    assert places is not None
    assert [seen.tolist(), places.tolist(), targets.tolist()] == [[[4, 0, 4]], [[0, 2]], [[3, 1]]]


def test_the_loss_of_a_token_is_minus_ln_of_its_share() -> None:
    logits_BNP = torch.tensor([[[1.0, 2.0, 4.0, 1.0]]]).log()
    for target, share in enumerate([1 / 8, 2 / 8, 4 / 8, 1 / 8]):
        (loss,) = token_losses(logits_BNP, torch.tensor([[target]]), Tokens(vocab=4)).tolist()
        assert math.isclose(loss, -math.log(share), rel_tol=1e-6)


def test_a_position_predicts_each_token_of_its_patch_with_logits_of_its_own() -> None:
    logits_BNP = torch.randn(2, 4, 15, generator=torch.Generator().manual_seed(0))
    targets_BS = torch.arange(24).reshape(2, 12) * 2 % 5
    expected = [
        -logits_BNP[b, s // 3, s % 3 * 5 : s % 3 * 5 + 5].log_softmax(0)[targets_BS[b, s]].item()
        for b in range(2)
        for s in range(12)
    ]
    losses_M = token_losses(logits_BNP, targets_BS, PATCHES)
    torch.testing.assert_close(losses_M, torch.tensor(expected))


def test_losses_of_coarse_logits_are_not_rounded_again() -> None:
    logits_BNP = torch.randn(1, 4, 9, generator=torch.Generator().manual_seed(0)).bfloat16()
    targets_BS = torch.arange(4)[None]
    with torch.autocast("cpu", torch.bfloat16):
        losses_M = token_losses(logits_BNP, targets_BS, Tokens(vocab=9))
    exact_M = -logits_BNP.double().log_softmax(-1)[0, range(4), range(4)]
    torch.testing.assert_close(losses_M, exact_M.float(), atol=1e-6, rtol=0)


def test_the_gradient_of_the_loss_is_that_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    logits_BNP = (3 * torch.randn(2, 5, 9, generator=generator)).requires_grad_()
    targets_BS, slope_M = torch.arange(10).reshape(2, 5) % 9, torch.randn(10, generator=generator)
    ours_M = token_losses(logits_BNP, targets_BS, Tokens(vocab=9))
    plain_M = F.cross_entropy(logits_BNP.flatten(0, 1), targets_BS.flatten(), reduction="none")
    (ours,) = torch.autograd.grad((ours_M * slope_M).sum(), logits_BNP)
    (plain,) = torch.autograd.grad((plain_M * slope_M).sum(), logits_BNP)
    torch.testing.assert_close(ours, plain)
