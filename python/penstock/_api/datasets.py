"""Datasets: what samples there are."""

from __future__ import annotations

import penstock._core as _core
from penstock._api import methods_of, overload
from penstock._api.transforms import Transforms

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    import os
    import re
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from penstock._batches.streams import SampleStream
    from penstock._core import Dataset, LazyTensor


def rows(
    source: object,
    key: str | None = None,
    mmap: bool | None = None,
    *,
    dtype: object | None = None,
    strict: bool = False,
    shape: int | Sequence[int] | None = None,
    offset: int | None = None,
    order: str | None = None,
) -> Dataset:
    """Samples are the rows (dimension 0) of one large array.

    An uncompressed file is not read ahead: it is mapped, or each row is read when it is wanted.
    Checksums in the file are not verified. Reading a sample raises ChangedError when the file was
    written to since it was opened, and TruncatedError when it was cut.

    Parameters
    ----------
    source
        A path; a Source of penstock.remote; a LazyTensor of an archive; a Tensor or an array of any
        library; or a list of numbers, of nested lists of numbers, of strings, or of arrays of one
        shape. Floats of a list become float32, as torch.tensor makes them; an array keeps its type.
        Strings stay text: a batch has a list of them. Of another sequence (a column of a Hugging
        Face dataset) all items are read now. A numpy.memmap is not read: one of mode "r" is mapped from
        its file as a path is, and pickles as that; one that may be written to is memory as it stands.
    key
        Which tensor of the file, if it has several.
    mmap
        Whether the file is mapped (True) or each row is read (False). None: mapped if it fits into the
        memory that this process may use (machine, control group).
    dtype
        The type that tensors of floating-point and complex numbers get, as by torch's Module.to(dtype).
        Integers and bools stay; `cast` converts these. "promote" takes the type that the types of all
        samples promote to, which it finds in headers.
    strict
        Raise where a value does not fit into the type, as `cast` does.
    shape, offset, order
        One of them says that the file has no header, as `raw` has them. Then `dtype` is what the
        elements in the file are, and nothing is converted. A file that has a header is refused here.

    Examples
    --------
    >>> pairs = penstock.zip(penstock.rows("images.npy"), penstock.rows([0, 1, 1, 0]))
    >>> samples = penstock.rows("train.bin", dtype="uint16", shape=(-1, 512))
    """
    return _core.rows(source, key, mmap, dtype, strict, shape, offset, order)


def files(
    pattern: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: str | int | Iterable[str | int] | None = None,
    index: bool | str | os.PathLike[str] = False,
    exclude: str | Iterable[str] | None = None,
    raw: bool = False,
    class_folders: bool = False,
    *,
    dtype: object | None = None,
    strict: bool = False,
    source: Callable[[str], Any] | None = None,
) -> Dataset:
    """Each file is a sample: one tensor, or the dict, list or tuple of tensors and scalars in it.

    Parameters
    ----------
    pattern
        A file, a folder, a glob (`**` for any depth) or a list of paths. The order of a folder or
        glob is by name.
    keys
        Take only these keys of each file's dict, as a dict. A key is a name, several names with dots
        between them ("model.w", where a name that has dots itself is found first), or an integer.
    index
        Keep the list of files, in the user's cache folder (True) or in a file of your own. Next time,
        only folders that changed are listed. The file may be deleted at any time.
    exclude
        One or several folders and files to leave out of the list: a name or glob at any depth
        ("lost+found", "tmp*"), or the end of a path ("old/raw").
    raw
        The bytes of each file are its sample, as a tensor of uint8, for a decoder of your own in
        `map`. A folder still stands for its tensor files: name others by a glob ("images/*.ppm").
    class_folders
        A sample is a tuple of what the file holds and the number of its class: the first folder below
        the part that all paths share ("train/cat/1.pt" of "train/*/*.pt"). `classes` has the names.
    dtype
        The type that tensors of floating-point and complex numbers get, as by torch's Module.to(dtype).
        Integers and bools stay, unless `keys` names them. "promote" takes the type that the types of
        all samples promote to, which it finds in headers.
    strict
        Raise where a value does not fit into the type, as `cast` does.
    source
        A function that opens a file of the list of paths, which may be any text: it is given the path
        and gives the file's bytes, a Source of `penstock.remote`, another path, or an open file. It is
        called in the loader's threads. For stores that Penstock does not know.
    """
    return _core.files(pattern, keys, index, exclude, raw, class_folders, dtype, strict, source)


def shards(
    shards: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: str | Iterable[str] | None = None,
    raw: bool = False,
    index: bool | str | os.PathLike[str] = True,
) -> Dataset:
    """Samples in tar shards, as WebDataset has them.

    Each sample is a dict by field: the members of a shard that follow one another with one key. Every
    sample can be read by itself, so that len(), dataset[i], shuffle=True, samplers, ranks and resumed
    loaders are those of every other dataset. `stream(shards(...))` reads each shard once, from front to
    back: then shards may be compressed (.tar.gz, .tar.zst), or come from standard input ("-") or a
    FIFO.

    The key is the path up to the first dot of its last part, and what follows is the field, in lower
    case: "a/0001.seg.npy" has key "a/0001" and field "seg.npy". The last extension says what a field
    is. Tensors: npy, npz, pt, pth, safetensors; nothing in them is run. A number: cls, cls2, class,
    count, index, inx, id. Text: txt, text, transcript. Nested values: json, jsn. All else is bytes, for
    a decoder of your own in `map`; pickles (pkl, pyd, pickle) are an error.

    Shards are opened and their samples found when they are first counted or read. Shards with members
    of which none belongs to a sample are an error then; a ShardWarning where others have samples.

    Parameters
    ----------
    shards
        Paths, URLs, patterns ("train-*.tar"), ranges ("train-{000..146}.tar"), folders, lists joined
        by "::", or lists of wids (.json); one, or several.
    keys
        Take only these fields, in this order. "__key__" and "__url__" (the shard) may be among them.
        None: all fields behind "__key__".
    raw
        The bytes of each field are its value, whatever it holds.
    index
        Keep where each sample begins, in the user's cache folder (True) or in a file of your own, and
        next time look only into shards that changed. The file may be deleted at any time.

    Examples
    --------
    >>> data = penstock.shards("train-{000..146}.tar", keys=["npy", "cls"])
    >>> for batch in penstock.DataLoader(data, batch_size=32, shuffle=True): ...
    """
    return _core.shards(shards, keys, raw, index)


def packed(pattern: str | os.PathLike[str], mmap: bool | None = None) -> Dataset:
    """The samples that `pack` or the command `penstock pack` wrote.

    The files are not read ahead. Numbers come back as tensors without dimensions, which makes no
    difference in batches.

    Parameters
    ----------
    pattern
        A folder, a glob or a file: the samples of every file that it matches, one after the other.
    mmap
        As for `rows`. None decides by the size of all files together.
    """
    return _core.packed(pattern, mmap)


def pack(
    dataset: Dataset,
    folder: str | os.PathLike[str],
    *,
    shard_bytes: int = 256 << 20,
    format: str = "safetensors",
    verify: bool = True,
    progress: bool | Callable[[int, int], object] | None = None,
) -> dict[str, int]:
    """Writes the samples of a dataset, in order, into a few large `.safetensors` files.

    Tensors and numbers of equal shape are stacked. Tensors that differ in dimension 0 lie end to end,
    with an array of offsets. Text and None are refused. `packed` gives the samples back. Or into tar
    shards, which keep texts and bytes too, and which `shards` and WebDataset read.

    Parameters
    ----------
    dataset
        What to write.
    folder
        A new folder. It appears with all files or not at all. Or a prefix of a bucket (s3://, gs://,
        az://) that has no objects: all are uploaded before the first of them appears.
    shard_bytes
        About how large each file becomes.
    format
        "safetensors", or "tar": each part of a sample becomes a member by the rules of
        `Writer.add_sample`, and samples without a "__key__" are numbered.
    verify
        Check recorded checksums.
    progress
        True for a bar on a terminal and in a notebook, or a function (samples done, total), called in
        this thread. What it raises stops the work, so that no folder appears.

    Returns
    -------
    dict
        How many "samples", "shards" and "bytes" were written.
    """
    return _core.pack(dataset, folder, shard_bytes, format, verify, progress)


def documents(
    source: str | os.PathLike[str] | LazyTensor | Iterable[str | os.PathLike[str]],
    sequences: bool = False,
    begin: int | None = None,
    mmap: bool | None = None,
) -> Dataset:
    """The documents in files of tokens, each a tensor.

    They are slices of arrays that are not read ahead, so `windows` takes them, joined over all files or
    kept apart.
    Where documents lie is read now: Megatron's index, or all tokens of files that do not say it.

    Parameters
    ----------
    source
        A file of Megatron's ("NAME.idx", "NAME.bin" or "NAME"); a file of llm.c's; a glob or a list of
        these, whose documents follow each other; or an array of tokens that is not loaded, such as
        `raw` gives, with `begin`.
    sequences
        Take each sequence of Megatron's for itself. A document is several of them joined.
    begin
        The token that each document begins with, where the file does not say where documents lie.
        None: that of the tokenizer which the file of llm.c is for. What comes before the first one is a
        document too.
    mmap
        Whether the tokens are mapped or read, as for `rows`.

    Raises
    ------
    CorruptError, TruncatedError
        Where an index says what cannot be.

    Examples
    --------
    >>> documents = penstock.documents("corpus/wiki_text_document")
    >>> shards = penstock.documents("fineweb_train_*.bin")
    """
    return _core.documents(source, sequences, begin, mmap)


def dataset(samples: Iterable[Any] | int, get: Callable[[int], Any] | None = None) -> Dataset:
    """Samples of your own: a list of them, what a function gives for an index, or another dataset.

    A sample is a number, a text, an array of any library, or a dict, list or tuple of them.

    Parameters
    ----------
    samples
        A list of samples, which may differ in shape, type and structure: they stay in memory. Or a
        dataset of any library, with `__len__` and `__getitem__`: each sample is asked for when it is
        wanted, as by `get`. With `get`: how many there are.
    get
        Called with an index from 0 to samples - 1, in the loader's worker threads; each call has the
        interpreter's lock for itself alone.

    Examples
    --------
    >>> clips = penstock.dataset([numpy.ones(3), numpy.ones(5)])
    >>> squares = penstock.dataset(1000, lambda index: index * index)
    """
    return _core.dataset(samples, get)


def subset(dataset: Dataset, indices: Iterable[int]) -> Dataset:
    """The samples at `indices`, in that order; repeats are fine.

    Parameters
    ----------
    dataset
        The dataset to take samples from.
    indices
        An iterable, array or tensor of indices; negative ones count from the end.
    """
    return _core.subset(dataset, indices)


@overload
def mix(
    datasets: Iterable[Dataset], weights: Iterable[float], end: str = "first", size: int | None = None
) -> Dataset: ...
@overload
def mix(
    datasets: Iterable[SampleStream], weights: Iterable[float], end: str = "first", size: int | None = None
) -> SampleStream: ...
def mix(
    datasets: Iterable[Dataset], weights: Iterable[float], end: str = "first", size: int | None = None
) -> Dataset | SampleStream:
    """Samples of several datasets in exact shares.

    Of the first n samples, every dataset has given its share of n, up to less than one more or less.
    Each gives its samples in their order. The order depends on sizes and weights alone.

    Parameters
    ----------
    datasets
        The datasets.
    weights
        A number of 0 or more for each; shares are to each other as these.
    end
        "first" ends before a dataset would give a sample again. "all" ends when every dataset has given
        all of its samples; those that are used up begin again.
    size
        Samples of the mixture, in place of `end`.

    Returns
    -------
    Dataset
    """
    return _core.mix(datasets, weights, end, size)  # type: ignore[return-value]


def zip(*datasets: Dataset, **named: Dataset) -> Dataset:
    """Sample i is the tuple of sample i of each, or the dict of them by name.

    The sizes must agree. Files are paired by their places: a PairWarning says where their names do not
    pair so ("2.npy" with "3.npy", where another "2.npy" is there), and join() pairs them by name.
    zip(), concat(), subset() and pack() also take datasets of penstock.torch.

    Parameters
    ----------
    datasets
        One dataset or more, for tuples.
    named
        Datasets by name, for dicts: `zip(image=a, label=b)`.
    """
    return _core.zip(datasets, named, True)


def join(
    *datasets: Dataset | dict[str, Dataset],
    by: str | re.Pattern[str] | Callable[[str], str] = "stem",
    missing: str = "error",
    **named: Dataset,
) -> Dataset:
    """Samples of files that belong together by name, in the order of the first dataset.

    The samples of each dataset are files: those of files(), and what subset(), concat(), map(),
    filter(), native transforms and joins make of them. `paths` of the result are those of the first
    dataset. Two files of one name in a dataset are a ValueError that names both. Random steps belong
    behind a join, because it changes the places of samples, which they draw by; of several datasets
    with such steps a join is refused.

    Parameters
    ----------
    datasets
        Two datasets or more, for tuples; or one dict of them by name, for dicts.
    by
        What names a file: "stem", its name without the last extension; "name"; "path", its path below
        the folder that was listed, without the last extension, for files of equal names in several
        folders; a compiled regular expression, whose group (or match, or tuple of groups) in the path
        it is; or a function that gives the text for a path.
    missing
        "error" raises a ValueError that says how many files have no partner in which dataset, and names
        the first of them; "drop" leaves such files out. A join that pairs no files at all is an error.
    named
        Datasets by name, for dicts: `join(image=a, mask=b)`.

    Examples
    --------
    >>> pairs = penstock.join(penstock.files("images/*.npy"), penstock.files("masks/*.npy"))
    """
    if len(datasets) == 1 and isinstance(datasets[0], dict):
        twice = sorted(named.keys() & datasets[0].keys())
        if twice:
            from penstock.errors import InvalidArgumentError

            raise InvalidArgumentError(f"found two datasets of the name {twice[0]!r}; rename one")
        return _core.join((), {**named, **datasets[0]}, by, missing)
    return _core.join(datasets, named, by, missing)


def choice(datasets: Iterable[Dataset], weights: Iterable[float] | None = None) -> Dataset:
    """Sample i is sample i of one of several datasets of equal size, drawn for each epoch.

    Such as one of the captions of an image, or one of its augmentations. What is drawn depends on the
    loader's seed, the epoch and the sample's index alone: it is the same for any number of workers and
    ranks and in a resumed run. Choices that are zipped draw alike where weights and random steps below
    them are alike. `dataset[i]` draws as epoch 0 of seed 0. Headers do not tell what is drawn, so take
    lengths of the datasets themselves.

    Parameters
    ----------
    datasets
        Datasets of equal size.
    weights
        A number of 0 or more for each; probabilities are to each other as these. None: all are equal.
    """
    return _core.choice(datasets, weights)


def with_labels(
    dataset: Dataset, table: str | os.PathLike[str] | dict[str, Any], file: str | None = None, label: str | None = None
) -> Dataset:
    """Each sample, which is a file, as the tuple of itself and its label, joined by file name.

    A name in the table stands for the file whose path ends with it: "7.npy", "cat/7.npy", or "cat/7"
    without the extension. It labels all files that it stands for: with files of one name in several
    folders, write the folder too. Where several names stand for a file, the longest counts. Labels that
    are all whole numbers are integers, and those that are all numbers floats. Others are classes: the
    label is the number of the class, and `classes` has the names. A file without a label, or with an
    empty one, is a ValueError; names that stand for no file are fine.

    Parameters
    ----------
    dataset
        A dataset of files.
    table
        A CSV file whose first line names its columns, or a dict of labels by file name.
    file
        The column with the file names; by default the first.
    label
        The column with the labels; by default the second.
    """
    return _core.with_labels(dataset, table, file, label)


def lengths(dataset: Dataset, dim: int = 0, key: str | None = None) -> list[int]:
    """How long each sample is: the size of one of its dimensions, from headers alone.

    No payload is read. Behind map() nobody knows without calling the function, which is an
    UnsupportedError: take the lengths of the dataset below.

    Parameters
    ----------
    dataset
        The dataset whose samples are meant.
    dim
        The dimension whose size is the length; negative ones count from the last.
    key
        The part of a dict that is meant; by default the only tensor that has this dimension.
    """
    return _core.lengths(dataset, dim, key)


def pack_sequences(
    dataset: Dataset,
    length: int,
    too_long: str = "raise",
    value: float = 0,
    key: str | None = None,
    cu_seqlens: bool = False,
) -> Dataset:
    """Sequences that share rows of one length, so that nearly nothing is padding.

    Sequences are samples of one dimension and type; their lengths come from headers. The longest goes
    first, and each into the fullest row that has room. Every rank and every run has the same rows.
    Sample i is a dict of one row: "tokens", "positions" (int64, of each token in its sequence) and
    "segments" (int64, which counts sequences from 1). Behind the last sequence both are 0.

    Parameters
    ----------
    dataset
        The sequences. Those without elements are in no row.
    length
        Elements of a row.
    too_long
        What becomes of a sequence that is longer: "raise" names it, "cut" leaves out what lies beyond,
        "split" makes it several.
    value
        What fills rows behind their last sequence.
    key
        The part of a dict that is the sequence.
    cu_seqlens
        Add "cu_seqlens" (int32: where in the row each sequence begins, and the last one ends) and
        "max_seqlen" (an int: the elements of the longest), as attention over sequences of different
        length takes them. What fills a row counts as one more sequence there. All rows have as many
        numbers; behind the last sequence each is the length of the row.
    """
    return _core.pack_sequences(dataset, length, too_long, value, key, cu_seqlens)


@methods_of(_core.Dataset)
class DatasetMethods(Transforms):
    """A fixed sequence of samples: of rows(), files(), packed(), dataset(), zip(), concat() or subset().

    It knows where sample i lies and reads nothing until a loader or `dataset[i]` asks. Any number of
    threads may use it. Pickling keeps what it was made of, such as paths, and no file's bytes; the
    files are looked up again when it is unpickled.
    """

    def _repr_html_(self) -> str:
        from penstock._html import shown

        return shown(self)

    def describe(self: Dataset, index: int) -> str:
        """What a sample is, for messages: "clips/0007.pt".

        Parameters
        ----------
        index
            Which sample; negative ones count from the end.
        """
        return self._describe(index)

    def concat(self: Dataset, *others: Dataset) -> Dataset:
        """All samples of this one, then of the others in turn.

        Parameters
        ----------
        others
            Datasets.
        """
        return self._concat(*others)

    def slices(self: Dataset, starts: Iterable[int] | None = None, lengths: Iterable[int] | None = None) -> Dataset:
        """Slices of the array that rows() took the samples of: documents, sentences, recordings.

        Sample i is the rows from starts[i] on, lengths[i] of them, as one tensor. Nothing is read for it,
        and lengths(), length_buckets(), pad() and ragged() know the lengths without reading. The index
        takes 16 bytes a slice, and 8 where each begins where the one before ends. Slices may overlap, leave
        rows out, be empty and stand in any order; one that is not inside the array is an IndexError. What
        concat() makes of several rows() is one array here; a slice over the end of a file is put together.

        Parameters
        ----------
        starts
            Where each slice begins. None: where the one before ends; then the lengths must add up to the
            rows of the array, else it is a ValueError.
        lengths
            How many rows each has, as list, array or tensor.
        """
        return self._slices(starts, lengths)

    def windows(
        self: Dataset, length: int, stride: int | None = None, shift: int = 0, join: str | None = None
    ) -> Dataset:
        """Windows of one length: of the array that rows() took the samples of, or of its slices().

        Window i begins at row i * stride; rows at the end that fill no further window are in none. Shuffle,
        ranks and positions are those of the loader, as for any dataset. No index of windows is kept: at
        most 8 bytes a slice. An array, or slices, that are shorter than a window are a ValueError.
        Several arrays or files count as one where concat() or documents() put them together.

        Parameters
        ----------
        length
            Rows of a window.
        stride
            Rows from where a window begins to where the next one does; by default the length.
        shift
            0: samples are the windows. Above 0: samples are tuples (x, y), and y is the window so many rows
            further on; with 1 the next token for each token.
        join
            Of slices, or of several arrays. None: a window lies within one slice, and slices that are
            shorter have none; the repr says how many these are. "ordered": windows are those of all slices
            put together in their order. "shuffled": the same, in an order of the slices that follows from
            the loader's seed and the epoch, as Megatron makes samples of documents; `dataset[i]` has seed
            and epoch 0.
        """
        return self._windows(length, stride, shift, join)

    def random_windows(self: Dataset, length: int, count: int, shift: int = 0) -> Dataset:
        """Windows that begin anywhere, drawn anew in each epoch.

        The place is drawn from the loader's seed, the epoch and the sample's index: the same for any number
        of workers, and in a resumed run. All places are equally likely: of the array, or of its slices,
        where no window lies over the end of one. `dataset[i]` draws as epoch 0 of seed 0.

        Parameters
        ----------
        length
            Rows of a window.
        count
            Samples of an epoch.
        shift
            As for windows().
        """
        return self._random_windows(length, count, shift)

    def map(self: Dataset, function: Callable[..., Any], *, batched: bool = False, seeded: bool = False) -> Dataset:
        """Each sample (or each batch) as a function makes it from the one that was read.

        It is called in the loader's worker threads, which take the interpreter's lock for the call alone;
        order, resuming and memory stay as they are without it. What it raises arrives with its own type,
        and with the sample and its file in the text; the loader can go on behind it. Several maps run in
        the order in which they were asked for.

        Parameters
        ----------
        function
            Called with each sample: Tensors, numbers and texts, nested as they were read. It gives a sample
            (arrays of any library will do), for the same sample always the same: it may be called again.
        batched
            Whether it is called with whole batches instead, behind their collation.
        seeded
            Whether it is called with a numpy.random.Generator as well, made from the loader's seed, the
            epoch and the sample's index: the same for any number of workers and in a resumed run.

        Examples
        --------
        >>> noise = lambda x, random: x.numpy() + random.normal()
        >>> noisy = penstock.files("clips").map(noise, seeded=True)
        """
        return self._map(function, batched, seeded)

    def filter(
        self: Dataset, keep: Callable[[Any], Any], *, workers: str = "threads", num_workers: int | str = "auto"
    ) -> Dataset:
        """The samples for which a function is true, in their order.

        They are found now: every sample is read once, so that the length is known.

        Parameters
        ----------
        keep
            Called with each sample. What it raises, and a sample that cannot be read, ends the search.
        workers
            Who calls it, and functions of map before it: "threads", "processes" or "auto", as in
            DataLoader.
        num_workers
            Threads that read, and processes, as in DataLoader.
        """
        from penstock._processes import workers_for

        processes = workers_for(workers, num_workers, None)
        try:
            return self._filter(keep, processes, num_workers)
        finally:
            if processes is not None:
                processes.close()

    def take(self: Dataset, count: int) -> Dataset:
        """The first samples, or all where there are fewer.

        Parameters
        ----------
        count
            How many.
        """
        return self._take(count)

    def skip(self: Dataset, count: int) -> Dataset:
        """All but the first samples; none where there are fewer.

        Parameters
        ----------
        count
            How many.
        """
        return self._skip(count)

    def repeat(self: Dataset, times: int) -> Dataset:
        """All samples, several times one behind the other.

        Random steps below draw the same for each repetition of a sample; those that follow draw anew.

        Parameters
        ----------
        times
            How often.
        """
        return self._repeat(times)

    def fields(
        self: Dataset,
        templates: dict[str, str],
        *,
        missing: str = "error",
        check: bool = True,
        raw: bool | str | Iterable[str] | None = None,
    ) -> Dataset:
        """Sample i is a dict of several files, whose paths follow from that of file i.

        For files(), and what subset(), concat(), take() and the like make of them. `paths` of the result
        stay those of these files. Functions of map, transforms, `keys` and `class_folders` come behind the
        fields.

        A template has for "data/images/cat/0007.npy", found by files("data/images/**/*.npy"): {stem}
        "0007", {name} "0007.npy", {ext} "npy", {parent} "cat", {root} "data/images", the folder that was
        listed (of a list of paths, the one that all lie below), {path} "cat/0007", the path below it
        without extension; and {{ for a brace. A path begins in the folder of file i, unless its template
        begins with "/", {root} or a URL. ".." is taken by the text, whatever links there are. URLs by http
        keep their query unless the template has one.

        Parameters
        ----------
        templates
            A template for each field: `{"image": "{name}", "mask": "../masks/{stem}_mask.npy"}`.
        missing
            "error" raises a FileNotFoundError that counts the files that are not there and names the first
            ones; "drop" leaves their samples out.
        check
            Look for the files, which lists each folder once, of this machine and of buckets. Others, by
            http or `files(source=)`, are not looked for; an absent one is an error when its sample is read.
        raw
            Fields that are the bytes of their files, as with `files(raw=True)`: one name, or several; True
            or False for all. None: as these files are.
        """
        return self._fields(templates, missing, check, raw)
