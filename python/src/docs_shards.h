#pragma once

// The docstring of what reads tar shards.

namespace penstock::python::docs {

inline constexpr const char* kShards = R"(Samples in tar shards, as WebDataset has them.

Each sample is a dict by field: the members of a shard that follow one another with one key. Every
sample can be read by itself, so that len(), dataset[i], shuffle=True, samplers, ranks and resumed
loaders are those of every other dataset. `stream(shards(...))` reads each shard once, from front to
back: then shards may be compressed (.tar.gz, .tar.zst), or come from standard input ("-").

The key is the path up to the first dot of its last part, and what follows is the field, in lower
case: "a/0001.seg.npy" has key "a/0001" and field "seg.npy". The last extension says what a field
is. Tensors: npy, npz, pt, pth, safetensors; nothing in them is run. A number: cls, cls2, class,
count, index, inx, id. Text: txt, text, transcript. Nested values: json, jsn. All else is bytes, for
a decoder of your own in `map`; pickles (pkl, pyd, pickle) are an error.

Shards are opened and their samples found when they are first counted or read.

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

Returns
-------
Dataset

Examples
--------
>>> data = penstock.shards("train-{000..146}.tar", keys=["npy", "cls"])
>>> for batch in penstock.DataLoader(data, batch_size=32, shuffle=True): ...)";

}  // namespace penstock::python::docs
