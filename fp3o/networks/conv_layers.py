"""Convolutions in front of a network, as data: their text form, defaults and sizes. Needs no JAX.

A convolution is `(channels, kernel, stride)`: square kernels, no padding, so that a kernel must fit
into the image. As text: `16x3x1,32x3x2`.
"""

import math
import re
from typing import Any, NamedTuple

from fp3o.errors import SettingError
from fp3o.options import show, to_type
from fp3o.spec import ImageShape

ConvSpec = tuple[tuple[int, int, int], ...]
"""Channels, kernel and stride of every convolution."""

FLATTEN = "flatten"
"""Text form of no convolutions."""

DEFAULT_CONVS: tuple[tuple[int, ConvSpec], ...] = (
    (64, ((32, 8, 4), (64, 4, 2), (64, 3, 1))),
    (20, ((16, 4, 2), (32, 3, 2))),
    (5, ((16, 3, 1), (32, 3, 2))),
    (3, ((16, 3, 1),)),
    (0, ()),
)
"""Convolutions by the shorter side of an image: those of the first number that is not larger."""

_LAYER = r"[0-9]{1,9}x[0-9]{1,9}x[0-9]{1,9}"


class ConvStack(NamedTuple):
    """Convolutions of the image that an input begins with; without layers there are none."""

    layers: ConvSpec = ()
    image: ImageShape = (0, 0, 0)

    @property
    def image_size(self) -> int:
        """Number of entries at the start of an input that are convolved."""
        return math.prod(self.image) if self.layers else 0

    @property
    def outputs(self) -> list[ImageShape]:
        """Height, width and channels after every layer."""
        shapes, (height, width, _) = [], self.image
        for channels, kernel, stride in self.layers:
            height, width = ((side - kernel) // stride + 1 for side in (height, width))
            shapes.append((height, width, channels))
        return shapes

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Inputs and outputs of every layer's matrix: a patch of the image, its channels."""
        channels = [self.image[2], *(layer[0] for layer in self.layers)]
        return [
            (kernel * kernel * before, after)
            for before, (after, kernel, _) in zip(channels, self.layers, strict=False)
        ]

    @property
    def largest_patches(self) -> int:
        """Largest number of entries of all patches of a layer, for one input."""
        shapes = zip(self.outputs, self.matrices, strict=True)
        return max((h * w * size for (h, w, _), (size, _) in shapes), default=0)

    def num_features(self, num_in: int) -> int:
        """Length of an input after the convolutions; entries that follow the image stay."""
        if not self.layers:
            return num_in
        return num_in - self.image_size + math.prod(self.outputs[-1])


def conv_stack(conv: ConvSpec | None, image: ImageShape | None) -> ConvStack:
    """The convolutions of an input with this image; None: those of `DEFAULT_CONVS`."""
    layers = default_conv(image) if conv is None else conv
    if image is None or not layers:
        return ConvStack()
    stack = ConvStack(layers, image)
    sides = [min(image[:2]), *(min(shape[:2]) for shape in stack.outputs)]
    for number, (side, (_, kernel, _)) in enumerate(zip(sides, layers, strict=False), 1):
        if kernel > side:
            raise SettingError(
                f"conv {write_conv(layers)}: convolution {number} has a kernel of {kernel}, and "
                f"its input is an image of {side} pixels ({image[0]}x{image[1]} before the first "
                f"one); use smaller kernels or strides, fewer layers, or {FLATTEN}"
            )
    return stack


def default_conv(image: ImageShape | None) -> ConvSpec:
    """Convolutions for images of this size."""
    side = min(image[:2]) if image else 0
    return next(layers for least, layers in DEFAULT_CONVS if side >= least)


def parse_conv(value: Any) -> ConvSpec | None:
    """Read convolutions from text or from a list of `(channels, kernel, stride)`."""
    if value is None or value == "None":
        return None
    plain = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(plain, str) and re.fullmatch(f"{_LAYER}(,{_LAYER})*", plain):
        plain = [[int(number) for number in layer.split("x")] for layer in plain.split(",")]
    plain = () if plain == FLATTEN else plain
    triples = isinstance(plain, list | tuple) and all(
        isinstance(layer, list | tuple) and len(layer) == 3 for layer in plain
    )
    if not triples:
        raise SettingError(
            f"conv: cannot read {show(value)}: write channels x kernel x stride of every "
            f"convolution, such as 16x3x1,32x3x2 or [[16, 3, 1], [32, 3, 2]]; {FLATTEN}: none; "
            "None: chosen by the size of the image"
        )
    return tuple(to_type("a layer of conv", tuple[int, ...], layer) for layer in plain)  # pyright: ignore


def write_conv(conv: ConvSpec | None) -> str:
    """The text form of convolutions."""
    if conv is None:
        return "None"
    return ",".join("x".join(map(str, layer)) for layer in conv) or FLATTEN
