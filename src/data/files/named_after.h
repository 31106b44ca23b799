#pragma once

#include "penstock/dataset.h"

namespace penstock::data {

/// The samples of `samples`, whose files are those of `files`: paths and names in messages. Of equal sizes.
Dataset named_after(Dataset files, Dataset samples);

}  // namespace penstock::data
