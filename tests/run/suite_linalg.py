"""Factorisations, and what solves with them."""

import torch
from program import Values, of_function


def solve_and_invert(a, b):
    return torch.linalg.solve(a, b), torch.linalg.inv(a), torch.linalg.det(a)


def cholesky_solve(a, b):
    factor = torch.linalg.cholesky(a @ a.mT + torch.eye(a.shape[-1]))
    return factor, torch.cholesky_solve(b, factor)


def least_squares(a, b):
    q, r = torch.linalg.qr(a)
    return torch.linalg.solve_triangular(r, q.mT @ b, upper=True)


def low_rank(a):
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return s, (u[..., :2] * s[..., None, :2]) @ vh[..., :2, :], torch.linalg.pinv(a)


def spectrum(a):
    values, vectors = torch.linalg.eigh(a + a.mT)
    return values, (vectors * values.exp().unsqueeze(-2)) @ vectors.mT, torch.linalg.matrix_exp(a)


def general_spectrum(a):
    values, vectors = torch.linalg.eig(a)
    return values.abs().sort(-1).values, vectors.abs().square().sum(-2)


def programs():
    v = Values(112)
    square = torch.export.Dim("square", min=1, max=64)
    yield of_function("solve_and_invert", solve_and_invert, [(v.normal(3, 5, 5), v.normal(5, 2))])
    yield of_function("cholesky_solve", cholesky_solve, [
        (v.normal(4, 4), v.normal(4, 3)), (v.normal(1, 1), v.normal(1, 3)), (v.normal(33, 33), v.normal(33, 3))],
        ({0: square, 1: square}, {0: square}))
    yield of_function("least_squares", least_squares, [(v.normal(2, 7, 3), v.normal(2, 7, 1))])
    yield of_function("low_rank", low_rank, [(v.normal(2, 4, 6),)])
    yield of_function("spectrum", spectrum, [(v.normal(2, 5, 5),)])
    yield of_function("general_spectrum", general_spectrum, [(v.normal(2, 6, 6),)])
