# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes conv_values.h: what PyTorch computes in float64 for convolutions, pools, unfold and
scatter, with gradients. Inputs are small whole numbers, made here and in the test by one formula:
element k of a tensor with the salt s is (k * 7 + s * 3) % 11 - 5. Made with torch 2.13.0 (CPU):

    python3 make_conv_values.py > conv_values.h
"""

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def emit(name, tensor):
    numbers = [float(x) for x in tensor.detach().reshape(-1).tolist()]
    print(f"static const double {name}[] = {{")
    line = "   "
    for number in numbers:
        item = repr(number)
        if len(line) + len(item) + 2 > 98:
            print(line)
            line = "   "
        line += f" {item},"
    print(line)
    print("};")


def leaf(salt, *shape):
    count = 1
    for size in shape:
        count *= size
    numbers = [(k * 7 + salt * 3) % 11 - 5 for k in range(count)]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape).requires_grad_(True)


def with_gradients(name, y, inputs):
    emit(f"{name}_y", y)
    g = leaf(9, *y.shape).detach()
    grads = torch.autograd.grad(y, [x for _, x in inputs], g)
    for (tag, _), grad in zip(inputs, grads):
        emit(f"{name}_{tag}", grad)


def convolutions():
    x, w, b = leaf(1, 2, 4, 7, 8), leaf(2, 6, 2, 3, 2), leaf(3, 6)
    y = F.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2)
    with_gradients("conv2d", y, [("gx", x), ("gw", w), ("gb", b)])
    x, w, b = leaf(1, 2, 4, 9), leaf(2, 6, 2, 3), leaf(3, 6)
    y = F.conv1d(x, w, b, stride=2, padding=3, dilation=2, groups=2)
    with_gradients("conv1d", y, [("gx", x), ("gw", w), ("gb", b)])
    x, w, b = leaf(1, 2, 4, 3, 4), leaf(2, 4, 3, 3, 2), leaf(3, 6)
    y = F.conv_transpose2d(x, w, b, stride=(2, 3), padding=(1, 0), output_padding=(1, 2),
                           dilation=(2, 1), groups=2)
    with_gradients("conv_transpose2d", y, [("gx", x), ("gw", w), ("gb", b)])


def pools():
    x = leaf(1, 2, 2, 7, 8)
    y, index = F.max_pool2d(x, (3, 2), (2, 3), (1, 1), (1, 2), True, return_indices=True)
    with_gradients("max_pool2d", y, [("gx", x)])
    emit("max_pool2d_index", index)
    y = F.avg_pool2d(x, (3, 4), (2, 3), (1, 2), True, False)
    with_gradients("avg_pool2d", y, [("gx", x)])
    y = F.avg_pool2d(x, (3, 4), (2, 3), (1, 2), True, True)
    emit("avg_pool2d_padded_y", y)
    emit("adaptive_avg_pool2d_y", F.adaptive_avg_pool2d(x, (3, 5)))
    emit("adaptive_max_pool2d_y", F.adaptive_max_pool2d(x, (3, 5)))


def movement():
    x = leaf(1, 3, 8)
    with_gradients("unfold", x.unfold(1, 3, 2), [("gx", x)])
    index = torch.tensor([[0, 2, 2], [1, 0, 1]])
    values = leaf(4, 2, 3)
    y = x.scatter_add(1, index, values)
    with_gradients("scatter_add", y, [("gx", x), ("gv", values)])
    y = torch.gather(x, 1, index)
    with_gradients("gather", y, [("gx", x)])
    with_gradients("select", x.index_select(1, torch.tensor([5, 0, 5, 7])), [("gx", x)])
    a, b = leaf(5, 2, 1, 3, 4), leaf(6, 3, 4, 2)
    with_gradients("matmul", a @ b, [("gx", a), ("gy", b)])


def main():
    print("/* SPDX-License-Identifier: MIT OR Apache-2.0 */")
    print("/*")
    print(" * conv_values.h - results of PyTorch in float64, made by make_conv_values.py.")
    print(" */")
    print("#ifndef BURN_TESTS_DATA_CONV_VALUES_H")
    print("#define BURN_TESTS_DATA_CONV_VALUES_H")
    convolutions()
    pools()
    movement()
    print("#endif /* BURN_TESTS_DATA_CONV_VALUES_H */")


if __name__ == "__main__":
    main()
