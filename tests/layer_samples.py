"""One row per layer of `ftrans.nn`: how it is made, and what it is called with.

The text makes the same layer in `torch.nn`, since names and arguments are the same there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ftrans import nn


class Integers(NamedTuple):
    """An input of integers from `low` up to and without `high`."""

    shape: tuple[int, ...]
    high: int
    low: int = 0


class Numbers(NamedTuple):
    """An input of uniform numbers."""

    shape: tuple[int, ...]
    low: float
    high: float


class Signs(NamedTuple):
    """An input of -1 and 1, which are integers if derivatives with respect to it make no sense."""

    shape: tuple[int, ...]
    whole: bool = False


class Row(NamedTuple):
    """A layer, as Python text; what it is called with: shapes stand for normal numbers; and more about it."""

    text: str
    inputs: tuple[Any, ...]
    # Whether results of one sample do not depend on the others in evaluation, with samples along axis 0.
    batched: bool = True
    # Whether it is compiled in tests; some layers only put others together.
    compiled: bool = True
    # Whether torch has this layer, too.
    in_torch: bool = True

    @property
    def name(self) -> str:
        """The class."""
        return self.text.split("(")[0]

    def make(self, library: Any = nn) -> Any:
        """The layer, of this library or of another one with the same names."""
        return eval(self.text, dict(vars(library)))

    def arrays(self, dtype: Any = np.float32) -> list[np.ndarray]:
        """The inputs."""
        rng = np.random.default_rng(len(self.text))
        return [_array(rng, x, dtype) for x in self.inputs]


def _array(rng: np.random.Generator, x: Any, dtype: Any) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, Integers):
        return rng.integers(x.low, x.high, x.shape)
    if isinstance(x, Numbers):
        return rng.uniform(x.low, x.high, x.shape).astype(dtype)
    if isinstance(x, Signs):
        return rng.choice([-1, 1], x.shape).astype(np.int64 if x.whole else dtype)
    return rng.normal(size=x).astype(dtype)


X = (4, 6)
IMAGES = (2, 4, 6, 5)
ACTIVATIONS = [
    "ReLU()", "ReLU(inplace=True)", "ReLU6()", "ReLU6(inplace=True)", "LeakyReLU(0.2)", "PReLU()",
    "PReLU(6, init=0.1)", "ELU(1.5)", "SELU()", "CELU(2.0)", "GELU()", "GELU(approximate='tanh')", "SiLU()",
    "Mish()", "Sigmoid()", "LogSigmoid()", "Tanh()", "Tanhshrink()", "Hardshrink()", "Softshrink(0.3)",
    "Hardtanh(-0.5, 2.0)", "Hardsigmoid()", "Hardswish()", "Softplus(2.0)", "Softsign()", "Softmax(dim=1)",
    "LogSoftmax(dim=-1)", "Softmin(dim=1)", "GLU()", "Threshold(0.1, 20.0)", "RReLU()",
]  # fmt: skip

ROWS = [
    *(Row(text, (X,)) for text in ACTIVATIONS),
    Row("Softmax2d()", (IMAGES,)),
    # Linear maps, tables.
    Row("Identity()", (X,)),
    Row("Linear(6, 3)", (X,)),
    Row("Linear(6, 3, bias=False)", ((2, 4, 6),)),
    Row("Bilinear(6, 5, 3)", (X, (4, 5))),
    Row("Embedding(7, 3)", (Integers((4, 2), 7),)),
    Row("Embedding(7, 3, padding_idx=-2)", (Integers((4, 2), 7),)),
    Row("Embedding(7, 3, max_norm=1.0, norm_type=1.5)", (Integers((4, 2), 7),), compiled=False),
    Row("Embedding(7, 3, scale_grad_by_freq=True)", (Integers((4, 2), 7),), compiled=False),
    Row("EmbeddingBag(7, 3)", (Integers((4, 5), 7),)),
    Row("EmbeddingBag(7, 3, mode='max', padding_idx=2)", (Integers((4, 5), 7),), compiled=False),
    Row("EmbeddingBag(7, 3, mode='max')", (Integers((9,), 7), np.array([0, 3, 3, 7])), False, compiled=False),
    Row("EmbeddingBag(7, 3, max_norm=1.0, mode='sum')", (Integers((9,), 7), np.array([0, 3, 3, 7])), False),
    Row(
        "EmbeddingBag(7, 3, mode='sum', include_last_offset=True)",
        (Integers((9,), 7), np.array([0, 3, 3, 9]), (9,)),
        batched=False,
        compiled=False,
    ),
    # Convolutions.
    Row("Conv1d(4, 6, 3)", ((2, 4, 9),), compiled=False),
    Row("Conv2d(4, 6, 3, padding=1)", (IMAGES,), compiled=False),
    Row("Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2, bias=False)", (IMAGES,)),
    Row("Conv2d(4, 2, 3, padding='same', dilation=2)", (IMAGES,), compiled=False),
    Row("Conv3d(2, 3, 2)", ((2, 2, 3, 4, 3),), compiled=False),
    Row("ConvTranspose1d(4, 6, 3, stride=2, output_padding=1)", ((2, 4, 5),), compiled=False),
    Row("ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2, dilation=2, bias=False)", (IMAGES,)),
    Row("ConvTranspose3d(2, 3, 2)", ((2, 2, 3, 2, 3),), compiled=False),
    # Pooling.
    Row("MaxPool1d(2)", ((2, 3, 7),), compiled=False),
    Row("MaxPool2d(3, stride=2, padding=1)", (IMAGES,)),
    Row("MaxPool2d((2, 3), dilation=(2, 1), ceil_mode=True)", (IMAGES,), compiled=False),
    Row("MaxPool2d(3, ceil_mode=True)", ((2, 3, 2, 4),), compiled=False),
    Row("MaxPool3d(2)", ((2, 2, 4, 4, 4),), compiled=False),
    Row("AvgPool1d(3, 2, 1)", ((2, 3, 7),), compiled=False),
    Row("AvgPool2d(2, count_include_pad=False, padding=1)", (IMAGES,), compiled=False),
    Row("AvgPool3d(2)", ((2, 2, 4, 4, 4),), compiled=False),
    Row("AdaptiveAvgPool1d(3)", ((2, 3, 7),), compiled=False),
    Row("AdaptiveAvgPool2d((2, None))", (IMAGES,), compiled=False),
    Row("AdaptiveAvgPool3d(1)", ((2, 2, 3, 4, 2),), compiled=False),
    Row("AdaptiveMaxPool1d(3)", ((2, 3, 7),), compiled=False),
    Row("AdaptiveMaxPool2d(2)", (IMAGES,)),
    Row("AdaptiveMaxPool3d(2)", ((2, 2, 3, 4, 2),), compiled=False),
    Row("LPPool1d(2, 3, stride=2, ceil_mode=True)", ((2, 3, 8),), compiled=False),
    Row("LPPool2d(2.0, (2, 3))", (IMAGES,)),
    Row("LPPool3d(3, 2)", (Numbers((2, 2, 4, 4, 4), 0.1, 2),), compiled=False),
    Row("MaxUnpool1d(2)", ((2, 1, 3), np.array([[[0, 3, 5]], [[1, 2, 4]]])), compiled=False),
    Row("MaxUnpool2d(2, stride=(2, 1))", ((2, 1, 2, 2), np.array([[[[0, 1], [7, 8]]], [[[4, 2], [10, 6]]]]))),
    Row("MaxUnpool3d((1, 2, 1))", ((1, 1, 1, 2, 1), np.array([[[[[1], [2]]]]])), compiled=False),
    Row("FractionalMaxPool2d(2, output_ratio=(0.5, 0.8))", (IMAGES,)),
    Row("FractionalMaxPool3d((1, 2, 1), output_size=2)", ((2, 2, 4, 4, 4),), compiled=False),
    # Normalization.
    Row("BatchNorm1d(6)", (X,), compiled=False),
    Row("BatchNorm1d(3, momentum=None)", ((4, 3, 5),)),
    Row("BatchNorm2d(4, momentum=0.3, eps=1e-3)", (IMAGES,)),
    Row("BatchNorm2d(4, affine=False)", (IMAGES,), compiled=False),
    Row("BatchNorm1d(6, track_running_stats=False)", (X,), batched=False),
    Row("BatchNorm3d(2)", ((2, 2, 3, 2, 2),), compiled=False),
    Row("SyncBatchNorm(2)", ((2, 2, 3, 2),), compiled=False, in_torch=False),
    Row("InstanceNorm1d(3)", ((4, 3, 5),), compiled=False),
    Row("InstanceNorm2d(4, affine=True, track_running_stats=True)", (IMAGES,), compiled=False),
    Row("InstanceNorm3d(2, affine=True)", ((2, 2, 3, 2, 2),), compiled=False),
    Row("LayerNorm(6)", (X,)),
    Row("LayerNorm((6, 5), eps=1e-3, bias=False)", (IMAGES,)),
    Row("RMSNorm(6)", (X,)),
    Row("RMSNorm([6], eps=1e-3, elementwise_affine=False)", (X,)),
    Row("GroupNorm(2, 4)", (IMAGES,)),
    Row("LocalResponseNorm(3, alpha=0.1)", (IMAGES,)),
    # Dropout.
    Row("Dropout(0.3)", (X,)),
    Row("Dropout1d(0.3)", ((2, 3, 7),), compiled=False),
    Row("Dropout2d(0.3)", (IMAGES,)),
    Row("Dropout3d(0.3)", ((2, 2, 3, 4, 2),), compiled=False),
    Row("AlphaDropout(0.3)", (X,)),
    Row("FeatureAlphaDropout(0.3)", (IMAGES,), compiled=False),
    # Attention, transformers.
    Row("MultiheadAttention(6, 2)", ((5, 2, 6), (4, 2, 6), (4, 2, 6)), batched=False, compiled=False),
    Row("MultiheadAttention(6, 3, batch_first=True, bias=False)", ((2, 5, 6),) * 3, compiled=False),
    Row("MultiheadAttention(6, 2, kdim=4, vdim=3, batch_first=True)", ((2, 5, 6), (2, 4, 4), (2, 4, 3))),
    Row("MultiheadAttention(6, 2, dropout=0.3, batch_first=True)", ((2, 5, 6),) * 3, compiled=False),
    Row("TransformerEncoderLayer(6, 2, 8, batch_first=True)", ((2, 5, 6),), compiled=False),
    Row("TransformerEncoderLayer(6, 2, 8, 0.0, 'gelu', norm_first=True, bias=False)", ((5, 2, 6),), batched=False),
    Row("TransformerDecoderLayer(6, 2, 8, batch_first=True)", ((2, 5, 6), (2, 4, 6)), compiled=False),
    Row(
        "TransformerDecoderLayer(6, 2, 8, 0.0, norm_first=True)",
        ((5, 2, 6), (4, 2, 6)),
        batched=False,
        compiled=False,
    ),
    Row(
        "TransformerEncoder(TransformerEncoderLayer(6, 2, 8, batch_first=True), 2, LayerNorm(6))",
        ((2, 5, 6),),
        compiled=False,
    ),
    Row(
        "TransformerDecoder(TransformerDecoderLayer(6, 2, 8, 0.0, batch_first=True), 2)",
        ((2, 5, 6), (2, 4, 6)),
        compiled=False,
    ),
    Row("Transformer(6, 2, 1, 1, 8, batch_first=True)", ((2, 5, 6), (2, 4, 6)), compiled=False),
    Row("MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True)", ((5, 2, 6),) * 3, batched=False),
    Row("MultiheadAttention(6, 2, 0.0, True, False, True, batch_first=True)", ((2, 5, 6),) * 3, compiled=False),
    Row("RotaryEmbedding(interleaved=True)", ((2, 3, 5, 6),), in_torch=False),
    # Recurrent layers.
    Row("LSTM(3, 5, 2, True, True, 0.0, True, 2)", ((2, 5, 3),), batched=False),
    Row("RNN(3, 4, nonlinearity='relu')", ((5, 2, 3),), batched=False, compiled=False),
    Row("RNN(3, 4, 2, bias=False, batch_first=True)", ((2, 5, 3), (2, 2, 4)), batched=False, compiled=False),
    Row("LSTM(3, 4, num_layers=2, bidirectional=True, dropout=0.3)", ((5, 2, 3),), batched=False, compiled=False),
    Row("GRU(3, 4, bidirectional=True, batch_first=True)", ((2, 5, 3),), batched=False),
    Row("RNNCell(3, 4)", ((2, 3), (2, 4)), compiled=False),
    Row("LSTMCell(3, 4, bias=False)", ((2, 3),), compiled=False),
    Row("GRUCell(3, 4)", ((2, 3), (2, 4))),
    # Shapes.
    Row("Flatten()", (IMAGES,)),
    Row("Flatten(-3, 2)", (IMAGES,)),
    Row("Unflatten(1, (2, 3))", (X,)),
    Row("PixelShuffle(2)", (IMAGES,), compiled=False),
    Row("PixelUnshuffle(3)", ((2, 2, 6, 3),)),
    Row("ChannelShuffle(2)", (IMAGES,)),
    Row("UpsamplingNearest2d(scale_factor=2)", (IMAGES,), compiled=False),
    Row("UpsamplingBilinear2d((4, 7))", (IMAGES,), compiled=False),
    Row("Upsample(scale_factor=2)", (IMAGES,)),
    Row("Upsample((4, 7), mode='bilinear', align_corners=True)", (IMAGES,)),
    Row("Upsample((7, 3), mode='bicubic')", (IMAGES,), compiled=False),
    Row("Unfold((3, 2), padding=(1, 0), stride=2)", (IMAGES,)),
    Row("Fold((6, 5), 2, dilation=2, padding=1, stride=(1, 2))", ((2, 8, 18),)),
    Row("ZeroPad1d(2)", ((2, 3, 7),), compiled=False),
    Row("ZeroPad2d((1, 2, 0, 1))", (IMAGES,)),
    Row("ConstantPad2d(1, 3.5)", (IMAGES,), compiled=False),
    Row("ReflectionPad2d(2)", (IMAGES,), compiled=False),
    Row("ReplicationPad1d((0, 3))", ((2, 3, 7),), compiled=False),
    Row("CircularPad2d(1)", (IMAGES,)),
    Row("Conv2d(4, 2, 3, padding=1, padding_mode='reflect')", (IMAGES,), compiled=False),
    Row("Conv2d(4, 2, 3, padding='same', padding_mode='circular')", (IMAGES,), compiled=False),
    # Losses.
    Row("L1Loss()", (X, X), batched=False, compiled=False),
    Row("MSELoss(reduction='sum')", (X, X), batched=False, compiled=False),
    Row("SmoothL1Loss(beta=0.5)", (X, X), batched=False, compiled=False),
    Row("HuberLoss(reduction='none', delta=0.7)", (X, X), compiled=False),
    Row("PoissonNLLLoss()", (X, Numbers(X, 0.5, 3.0)), batched=False, compiled=False),
    Row("GaussianNLLLoss(full=True)", (X, X, Numbers(X, 0.5, 2.0)), batched=False, compiled=False),
    Row("CrossEntropyLoss(label_smoothing=0.1)", (X, Integers((4,), 6)), batched=False),
    Row(
        "CrossEntropyLoss(reduction='sum', ignore_index=2)",
        ((2, 4, 5), Integers((2, 5), 4)),
        batched=False,
        compiled=False,
    ),
    Row("NLLLoss()", (X, Integers((4,), 6)), batched=False, compiled=False),
    Row("BCELoss()", (Numbers(X, 0.1, 0.9), Numbers(X, 0, 1)), batched=False, compiled=False),
    Row("BCEWithLogitsLoss()", (X, Numbers(X, 0, 1)), batched=False, compiled=False),
    Row("KLDivLoss(reduction='batchmean')", (X, Numbers(X, 0.1, 1)), batched=False, compiled=False),
    Row("SoftMarginLoss()", (X, Signs(X, whole=True)), batched=False, compiled=False),
    Row("MultiLabelMarginLoss()", (X, np.array([[0, 2, -1, 0, 0, 0]] * 4)), batched=False, compiled=False),
    Row("MultiLabelSoftMarginLoss()", (X, Numbers(X, 0, 1)), batched=False, compiled=False),
    Row("MultiLabelSoftMarginLoss(reduction='sum')", (X, Integers(X, 2)), batched=False, compiled=False),
    Row("MultiMarginLoss(p=2, margin=0.7)", (X, Integers((4,), 6)), batched=False, compiled=False),
    Row("CosineEmbeddingLoss(margin=0.1)", (X, X, Signs((4,), whole=True)), batched=False, compiled=False),
    Row("HingeEmbeddingLoss()", (X, Signs(X, whole=True)), batched=False, compiled=False),
    Row("MarginRankingLoss(margin=0.2)", ((4,), (4,), Signs((4,), whole=True)), batched=False, compiled=False),
    Row("TripletMarginLoss(margin=3.0, swap=True)", (X, X, X), batched=False, compiled=False),
    Row("TripletMarginWithDistanceLoss(margin=3.0, swap=True)", (X, X, X), batched=False, compiled=False),
    Row("CosineSimilarity(dim=-1)", (X, X)),
    Row("PairwiseDistance(p=3.0)", (X, X)),
    Row("AdaptiveLogSoftmaxWithLoss(6, 9, [2, 5], 2.0)", (X, Integers((4,), 9)), batched=False),
    Row("AdaptiveLogSoftmaxWithLoss(6, 9, [4], head_bias=True)", (X, Integers((4,), 9)), batched=False, compiled=False),
    Row(
        "CTCLoss()",
        ((7, 2, 4), np.array([[1, 2, 2], [3, 1, 0]]), np.array([7, 6]), np.array([3, 2])),
        batched=False,
        compiled=False,
    ),
]
