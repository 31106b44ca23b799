#pragma once

// What lies in a bucket, by as many requests as it takes: for patterns of datasets, folders of checkpoints, `penstock
// ls` and `penstock uploads`.

#include <string_view>
#include <vector>

#include "io/remote/listed.h"
#include "io/remote/location.h"

namespace penstock::io::remote {

/// The objects whose keys begin with `prefix`, ordered bytewise by key: all of them (`deep`), or those without another
/// '/', and the folders beside them. One request for each thousand. The errors of reading; kUnsupported for a location
/// in no bucket.
Objects list_objects(const Location& bucket, std::string_view prefix, bool deep);

/// Whether the store keeps a list of them. Azure's do not, and delete by themselves what was not completed.
bool lists_uploads(const Location& bucket);
/// Those whose keys begin with `prefix`, all of them, in the store's order.
std::vector<Begun> list_uploads(const Location& bucket, std::string_view prefix);

}  // namespace penstock::io::remote
