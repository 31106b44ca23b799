"""The native transforms, which datasets and streams have as methods."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from typing_extensions import Self

    Keys = str | Iterable[str] | None
    Sizes = int | Iterable[int]


class Transforms:
    """What happens to tensors on their way into a batch: each method gives an object of the same kind
    whose samples are behind one more step."""

    if TYPE_CHECKING:

        def _transformed(self, name: str, *args: Any) -> Self:
            """What the method of that name makes."""

    def _typed(self, dtype: Any, strict: bool = False, keys: Keys = None) -> Self:
        """What an option `dtype=` makes."""
        return self._transformed("_typed", dtype, strict, keys)

    def cast(self, dtype: Any, strict: bool = False, keys: Keys = None) -> Self:
        """The samples with their tensors in another type.

        Like all transforms of a dataset it is done in C++ while a sample is moved into its batch, in the
        loader's threads; a chain of them is one pass over the bytes. Values are those of torch for the
        same steps on the host. Nothing is read here: errors about a sample come when it is read, and name
        it.

        Parameters
        ----------
        dtype
            The type, as any library names it: "float32", torch.float32, numpy.float32.
        strict
            Whether a value that the type has no number for (300 as uint8, NaN as int32, 1e300 as float32,
            1+2j as float32) raises InvalidArgumentError. Otherwise it becomes what torch makes of it.
            Rounding, and the cutting off of a fraction, are allowed in both cases.
        keys
            Which parts of a dict are meant, by the key of the innermost dict around them; None: every
            tensor of the sample.
        """
        return self._transformed("cast", dtype, strict, keys)

    def scale(self, factor: float, keys: Keys = None) -> Self:
        """The samples with each element multiplied by a number.

        Parameters
        ----------
        factor
            The number. The product is computed in the tensor's type, as in torch: that of float16 and
            bfloat16 in float32, and then rounded.
        keys
            As for cast().

        Raises
        ------
        DTypeMismatchError
            When a sample is read: its tensor is not float16, bfloat16, float32 or float64. Cast it first.
        """
        return self._transformed("scale", factor, keys)

    def normalize(
        self, mean: float | Iterable[float], std: float | Iterable[float], dim: int = 0, keys: Keys = None
    ) -> Self:
        """The samples as (x - mean[c]) / std[c], where c is the place along a dimension.

        Parameters
        ----------
        mean, std
            A number for each channel, or one for all of them. Those of `std` are greater than 0.
        dim
            The dimension of the channels, in a sample; negative ones count from the end.
        keys
            As for cast().

        Raises
        ------
        InvalidArgumentError
            A deviation of 0, or other numbers of means and deviations.
        DTypeMismatchError, ShapeMismatchError
            When a sample is read: its tensor is not float16, bfloat16, float32 or float64, or has another
            number of channels.
        """
        return self._transformed("normalize", mean, std, dim, keys)

    def clamp(self, min: float, max: float, keys: Keys = None) -> Self:
        """The samples with each element as the nearest value in [min, max]. NaN stays NaN.

        Parameters
        ----------
        min, max
            The bounds. For tensors of integers they must be numbers of their type.
        keys
            As for cast().
        """
        return self._transformed("clamp", min, max, keys)

    def permute(self, dims: Iterable[int], keys: Keys = None) -> Self:
        """The samples with their dimensions in another order.

        Parameters
        ----------
        dims
            For each dimension of the result, which one of the sample it is: (2, 0, 1) makes
            (channel, height, width) of (height, width, channel).
        keys
            As for cast().
        """
        return self._transformed("permute", dims, keys)

    def crop(self, begin: Sizes, size: Sizes, dims: Sizes | None = None, keys: Keys = None) -> Self:
        """A part of each sample: [begin[i], begin[i] + size[i]) of dimension dims[i].

        Parameters
        ----------
        begin, size
            A number for each dimension.
        dims
            Which dimensions; None: the last ones, as many as there are sizes.
        keys
            As for cast().

        Raises
        ------
        ShapeMismatchError
            When a sample is read that the part reaches out of.
        """
        return self._transformed("crop", begin, size, dims, keys)

    def center_crop(self, size: Sizes, dims: Sizes | None = None, keys: Keys = None) -> Self:
        """The middle of each sample, as torchvision's center_crop takes it.

        Parameters
        ----------
        size
            A number for each dimension.
        dims
            Which dimensions; None: the last ones, as many as there are sizes.
        keys
            As for cast().

        Raises
        ------
        ShapeMismatchError
            When a sample is read that is smaller.
        """
        return self._transformed("center_crop", size, dims, keys)

    def random_crop(
        self,
        size: Sizes,
        dims: Sizes | None = None,
        keys: Keys = None,
        scales: dict[str, int] | Iterable[int] | None = None,
    ) -> Self:
        """A part of each sample, at a place that is drawn anew in each epoch.

        The place depends on the loader's seed, the epoch and the sample's index alone: it is the same for
        any number of workers and in a resumed run. Datasets that are zipped draw alike where their random
        steps are alike, so that an image and its mask are cropped and flipped together. `dataset[i]` draws
        as epoch 0 of seed 0.

        Parameters
        ----------
        size
            A number for each dimension.
        dims
            Which dimensions; None: the last ones, as many as there are sizes.
        keys
            As for cast().
        scales
            Parts to crop at one place, whatever their sizes and rates, with how many elements of each stand
            for one of a part of scale 1: `{"audio": 160, "mel": 1}`. `size` counts at scale 1: each part
            keeps its scale times as much. The place is one that all of these parts have room at. Names are
            keys as in `keys`, which it excludes; for tuples, a list of numbers by place.
        """
        return self._transformed("random_crop", size, dims, keys, scales)

    def flip(self, dims: Sizes | None = None, keys: Keys = None) -> Self:
        """The samples in the opposite order along some dimensions.

        Parameters
        ----------
        dims
            Which dimensions; None: the last one.
        keys
            As for cast().
        """
        return self._transformed("flip", dims, keys)

    def random_flip(self, dims: Sizes | None = None, p: float = 0.5, keys: Keys = None) -> Self:
        """The samples, some of them in the opposite order along some dimensions.

        Which ones is drawn as for random_crop().

        Parameters
        ----------
        dims
            Which dimensions, all of them or none; None: the last one.
        p
            With what probability.
        keys
            As for cast().
        """
        return self._transformed("random_flip", dims, p, keys)

    def pad(
        self, before: Sizes, after: Sizes, value: float = 0.0, dims: Sizes | None = None, keys: Keys = None
    ) -> Self:
        """The samples with more elements of one value around them.

        To make samples of a batch equally large, see the collations pad() and pad_to() instead.

        Parameters
        ----------
        before, after
            How many elements in front and behind, a number for each dimension.
        value
            The value; the tensor's type must have it.
        dims
            Which dimensions; None: the last ones, as many as there are numbers.
        keys
            As for cast().
        """
        return self._transformed("pad", before, after, value, dims, keys)

    def one_hot(self, classes: int, keys: Keys = None) -> Self:
        """Class numbers as rows of zeros with a one, as torch.nn.functional.one_hot makes them.

        Parameters
        ----------
        classes
            How many there are: the size of the new last dimension.
        keys
            As for cast().

        Raises
        ------
        InvalidArgumentError
            When a sample is read that has a number outside [0, classes).
        """
        return self._transformed("one_hot", classes, keys)
