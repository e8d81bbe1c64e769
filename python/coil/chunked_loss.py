"""linear_cross_entropy's custom ops of torch.nn in terms of plain ops.

Torch walks the batch in chunks to keep few logits at a time. The loss and its gradients are those of the
whole batch: with the logits x = input @ weight.T + bias, row weights w and targets t,
loss = sum of w * (logsumexp(x) - x[t]), and the gradient of x is w * (softmax(x) - onehot(t)).
"""

import torch


def chunked_loss_ops():
    """(op, function); none where torch has not these ops."""
    try:
        import torch.nn.modules.linear_cross_entropy  # noqa: F401
    except ImportError:
        return
    ops = torch.ops.torch_nn
    yield ops._linear_cross_entropy_batch_chunked.default, reduced_loss
    yield ops._linear_cross_entropy_batch_chunked_no_reduction.default, loss_of_rows


class Rows:
    """The logits of all rows and what each weighs. Targets are classes, or a probability of each."""

    def __init__(self, input, linear_weight, target, linear_bias, weight, ignore_index, dtype):
        self.input, self.linear_weight = input.to(dtype), linear_weight.to(dtype)
        self.logits = self.input @ self.linear_weight.T
        if linear_bias is not None:
            self.logits = self.logits + linear_bias.to(dtype)
        self.log_sum = torch.logsumexp(self.logits, 1)
        self.has_classes = not target.dtype.is_floating_point
        if self.has_classes:
            ignored = target == ignore_index
            self.target = torch.where(ignored, 0, target)
            self.weights = (~ignored).to(dtype)
            if weight is not None:
                self.weights = self.weights * weight.to(dtype).index_select(0, self.target)
        else:
            self.wanted = target.to(dtype) if weight is None else target.to(dtype) * weight.to(dtype)
            self.weights = self.wanted.sum(1)

    def losses(self):
        if self.has_classes:
            chosen = self.logits.gather(1, self.target.unsqueeze(1)).squeeze(1)
            return self.weights * (self.log_sum - chosen)
        return self.weights * self.log_sum - (self.wanted * self.logits).sum(1)

    def scale(self, reduction):
        """What the sum of all losses is multiplied by."""
        if reduction == "sum":
            return torch.ones_like(self.weights.sum())
        if not self.has_classes:
            return torch.full_like(self.weights.sum(), len(self.weights)).reciprocal()
        total = self.weights.sum()
        return torch.where(total == 0, torch.nan, total.reciprocal())

    def logits_gradient(self):
        softmax = torch.exp(self.logits - self.log_sum.unsqueeze(1))
        if not self.has_classes:
            return softmax * self.weights.unsqueeze(1) - self.wanted
        classes = torch.arange(self.logits.shape[1], device=self.logits.device)
        hit = self.target.unsqueeze(1) == classes
        return self.weights.unsqueeze(1) * (softmax - hit.to(softmax.dtype))


def reduced_loss(
    input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing,
    batch_chunk_size, acc_policy, acc_dtype, allow_retain_graph, compute_input_grad,
    compute_linear_weight_grad, compute_linear_bias_grad,
):  # fmt: skip
    """The mean or sum, and the gradients that are asked for, of the input's dtype."""
    dtype = input.dtype
    rows = Rows(input, linear_weight, target, linear_bias, weight, ignore_index, acc_dtype)
    scale = rows.scale(reduction)
    loss = (rows.losses().sum() * scale).to(dtype)
    gradient = rows.logits_gradient() * scale

    def given(wanted, make, shape):
        return make().to(dtype) if wanted else input.new_empty(shape)

    return (
        loss,
        given(compute_input_grad, lambda: gradient @ rows.linear_weight, (0, 0)),
        given(compute_linear_weight_grad, lambda: gradient.T @ rows.input, (0, 0)),
        given(compute_linear_bias_grad, lambda: gradient.sum(0), (0,)),
    )


def loss_of_rows(
    input, linear_weight, target, linear_bias, weight, ignore_index, batch_chunk_size, acc_policy,
    acc_dtype,
):  # fmt: skip
    rows = Rows(input, linear_weight, target, linear_bias, weight, ignore_index, acc_dtype)
    return rows.losses().to(input.dtype)
