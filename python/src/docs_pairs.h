#pragma once

// Docstrings of what puts samples of several datasets together.

namespace penstock::python::docs {

inline constexpr const char* kZip = R"(Sample i is the tuple of sample i of each, or the dict of them by name.

The sizes must agree. Files are paired by their places: a PairWarning says where their names do not
pair so ("2.npy" with "3.npy", where another "2.npy" is there), and join() pairs them by name.
zip(), concat(), subset() and pack() also take datasets of penstock.torch.

Parameters
----------
datasets
    One dataset or more, for tuples.
named
    Datasets by name, for dicts: `zip(image=a, label=b)`.

Returns
-------
Dataset)";

inline constexpr const char* kJoin =
    R"(Samples of files that belong together by name, in the order of the first dataset.

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

Returns
-------
Dataset

Examples
--------
>>> pairs = penstock.join(penstock.files("images/*.npy"), penstock.files("masks/*.npy")))";

inline constexpr const char* kFields = R"(Sample i is a dict of several files, whose paths follow from that of file i.

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

Returns
-------
Dataset)";

inline constexpr const char* kChoice =
    R"(Sample i is sample i of one of several datasets of equal size, drawn for each epoch.

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

Returns
-------
Dataset)";

}  // namespace penstock::python::docs
