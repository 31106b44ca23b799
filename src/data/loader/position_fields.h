#pragma once

// The fields of a LoaderPosition with their names: what JSON (loader_position.cpp) and Python's state_dict() are made
// of and read back from.

#include "penstock/loader.h"

namespace penstock::data {

/// Calls visit(name, member, is_required) for each field. Those that are not required are missing in states of older
/// releases, and keep their defaults. `position` is a LoaderPosition, const or not.
template <class Position, class Visit>
void for_each_field(Position& position, const Visit& visit) {
  visit("seed", position.seed, true);
  visit("epoch", position.epoch, true);
  visit("batch", position.batch, true);
  visit("samples", position.samples, true);
  visit("batch_size", position.batch_size, false);
  visit("num_replicas", position.num_replicas, false);
  visit("batches", position.batches, false);
  visit("order", position.order, false);
  visit("read", position.read, false);
  visit("held", position.held, false);
  visit("dataset", position.dataset, false);
  visit("indices", position.indices, false);
}

/// kInvalidArgument for a state without the field 'read' that stands inside of an epoch of a stream, whose
/// `samples` are 0: a source that can begin anywhere would begin at its first sample, and repeat what was taken.
void require_whole(const LoaderPosition& position, bool has_read);

}  // namespace penstock::data
