#pragma once

/// Parts of one long array as samples: slices that differ in length, such as documents, sentences or recordings, and
/// windows of one length, over the array or over its slices. None has an index of its windows: at most a number for
/// each slice is kept.

#include <cstdint>
#include <optional>
#include <vector>

#include "penstock/dataset.h"

namespace penstock {

/// Samples are slices of the array that `rows` has the rows of: sample i is those from starts[i] on, lengths[i] of
/// them, as one tensor with their number as dimension 0. Slices may overlap, leave rows out, be empty and stand in any
/// order. Nothing is read; `lengths`, batches by length, `pad` and `ragged` know the lengths without reading. The index
/// takes 16 bytes a slice, and 8 where each begins where the one before ends. `rows` is what rows() gives, before any
/// transform: kInvalidArgument otherwise. kShapeMismatch where there are not as many lengths as starts,
/// kIndexOutOfRange for a slice that is not inside the array, kUnsupported for an array that is read row by row from a
/// file where rows have gaps between them.
///
/// Several arrays, as concat() puts rows() of them together, are one here: rows are numbered from array to array, and a
/// slice over the end of an array is put together. kDTypeMismatch and kShapeMismatch where their rows differ.
Dataset slices(const Dataset& rows, const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& lengths);
/// Slices of these lengths, one behind the other. kShapeMismatch where they do not add up to the rows of the array.
Dataset slices(const Dataset& rows, const std::vector<std::int64_t>& lengths);

/// Where windows over slices of an array may lie.
enum class JoinSlices : std::uint8_t {
  kNot,       ///< within one slice; a slice that is shorter has none
  kInOrder,   ///< on the slices put together in their order, and so over the ends of slices
  kShuffled,  ///< the same, with the slices in an order that is drawn for each epoch
};

struct WindowsOptions {
  /// Rows from where a window begins to where the next one does. Unset: its length.
  std::optional<Integer> stride = {};
  /// With a number above 0 a sample is the tuple (x, y), where y is the window so many rows further on: with 1 the next
  /// token for each token. Each sample takes length + shift rows, and with the default stride the last `shift` rows of
  /// y are the first ones of the next x.
  Integer shift = 0;
  JoinSlices join = JoinSlices::kNot;
};

/// Samples are windows of `length` rows: of the array that `dataset` has the rows of, or of its slices, where `dataset`
/// is what slices() gives. Window i begins at row i * stride. Rows at the end that fill no further window are in none.
/// Order, ranks and positions are those of any dataset: shuffle in the loader.
///
/// Over slices that are not joined each slice has windows of its own, and the index takes 8 bytes a slice. Joined and
/// shuffled, slices are put together in an order that follows from the loader's seed and the epoch (`get` has seed and
/// epoch 0), and cut into windows as one array; datasets of as many slices have the same order. Here the index takes a
/// byte a slice and epoch. A window over the end of a slice is put together from its pieces when it is fetched.
///
/// What concat() puts together of slices() counts as slices of several arrays, and of rows() as an array each: windows
/// lie within one of these, or over all of them where they are joined.
///
/// kInvalidArgument for a length or stride below 1, a negative shift, a dataset of neither kind, or joined rows of one
/// array.
/// kShapeMismatch where there is no window, because the array, or each slice, is shorter than length + shift.
/// kUnsupported to join slices of an array whose rows do not lie together.
Dataset windows(const Dataset& dataset, Integer length, const WindowsOptions& options = {});

/// `count` windows that begin anywhere, drawn for each sample from the loader's seed, the epoch and the sample's index,
/// as random_crop draws: the same for any number of workers and in a resumed run. All places are equally likely: of the
/// array, or of its slices, in none of which a window lies over the end. `shift` and errors are those of windows().
Dataset random_windows(const Dataset& dataset, Integer length, Integer count, Integer shift = 0);

}  // namespace penstock
